"""Files of compiled models.

What `loadExecutable` takes of a file is numbers, texts and tensors, which PyTorch reads without running anything. The module, its
optimiser and options are pickled apart from them: restoring these runs what the file says, and is left to who asks for it.
"""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree
from attrs import frozen
from torch.serialization import get_unsafe_globals_in_checkpoint

from pypoplar.errors import FileLoadError, PoplarTypeError
from pypoplar.poptorch.options import Options

FORMAT = "pypoplar.poptorch model 3"
ENTRIES: dict[str, Any] = {
    "format": str,
    "kept": torch.Tensor,
    "arguments": tuple,
    "exported": torch.Tensor | None,
    "random_state": list | None,
}


@frozen(eq=False)
class ExportedModel:
    """A module with what its executor was made with."""

    module: torch.nn.Module
    optimizer: torch.optim.Optimizer | None
    options: Options


@frozen(eq=False)
class ModelFile:
    """What a file holds."""

    kept: bytes  # a `KeptModel`
    arguments: Any  # args and kwargs like those that it was compiled for
    exported: bytes | None  # an `ExportedModel`, pickled; None where the executable is all
    random_state: list[int] | None


def write_model(path: str | os.PathLike[str], file: ModelFile) -> None:
    """Write a file; folders on the way are made."""
    if not isinstance(path, str | os.PathLike):
        raise PoplarTypeError(f"save takes the name of a file, got {path!r}")
    place = os.fspath(path)
    if os.path.isdir(place):
        place = os.path.join(place, "model.poptorch")
    os.makedirs(os.path.dirname(place) or ".", exist_ok=True)
    content = {
        "format": FORMAT,
        "kept": _tensor(file.kept),
        "arguments": pytree.tree_map(
            lambda leaf: torch.zeros_like(leaf) if isinstance(leaf, torch.Tensor) else leaf, file.arguments
        ),
        "exported": None if file.exported is None else _tensor(file.exported),
        "random_state": file.random_state,
    }
    torch.save(content, place)


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """Read a file, but not what is exported in it; `FileLoadError` if it is none of ours. Nothing that it says is run."""
    name = os.fspath(path)
    try:
        content = torch.load(name, weights_only=True)
    except FileNotFoundError:
        raise FileLoadError(f"there is no file {name}") from None
    except Exception as problem:  # whatever a reader of foreign bytes comes upon
        raise FileLoadError(f"{name} is no file of a model: {_reason(name, problem)}") from problem
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FileLoadError(f"{name} is no file of a model that `save` wrote")
    if content.keys() != ENTRIES.keys() or not all(isinstance(content[entry], kind) for entry, kind in ENTRIES.items()):
        raise FileLoadError(f"{name} is no whole file of a model: it has not the entries that `save` writes")
    arguments, exported, state = content["arguments"], content["exported"], content["random_state"]
    fine = len(arguments) == 2 and isinstance(arguments[0], tuple) and isinstance(arguments[1], dict)
    if not fine or any(type(word) is not int for word in state or ()):
        raise FileLoadError(f"{name} is no whole file of a model: its arguments or random state are none")
    kept, pickled = (None if part is None else _bytes(name, part) for part in (content["kept"], exported))
    assert kept is not None
    return ModelFile(kept, arguments, pickled, state)


def pack(model: ExportedModel) -> bytes:
    """A module with its optimiser and options, for `ModelFile.exported`."""
    content = io.BytesIO()
    torch.save((model.module, model.optimizer, model.options), content)
    return content.getvalue()


def unpack(path: str | os.PathLike[str], exported: bytes, *, run_code_of_file: bool) -> ExportedModel:
    """What `pack` was given.

    Unless a file's code may be run, `FileLoadError` for classes and functions that neither PyTorch nor the user has called safe.
    """
    name = os.fspath(path)
    try:
        content = torch.load(io.BytesIO(exported), weights_only=not run_code_of_file)
    except Exception as problem:
        if run_code_of_file:
            raise FileLoadError(f"the module in {name} cannot be restored: {problem}") from problem
        reason = _reason(io.BytesIO(exported), problem)
        raise FileLoadError(
            f"{name} has a module, which is restored by running code that the file names ({reason}). "
            "If you trust who wrote it, poptorch.load(..., run_code_of_file=True) does so; if not, make the model in your program "
            "and call its loadExecutable, which runs nothing"
        ) from None
    kinds = (torch.nn.Module, torch.optim.Optimizer | None, Options)
    if not (isinstance(content, tuple) and len(content) == len(kinds) and all(map(isinstance, content, kinds))):
        raise FileLoadError(f"{name} has something else in the place of a module, an optimizer and options")
    return ExportedModel(*content)


def _reason(file: str | io.BytesIO, problem: Exception) -> str:
    """What a file has that only running code could restore; else the beginning of PyTorch's words."""
    try:
        named = get_unsafe_globals_in_checkpoint(file)
    except Exception:  # it is for a message alone
        named = []
    if named:
        ours = ("pypoplar.", "torch.")
        told = sorted(named, key=lambda name: (name.startswith(ours), name))  # what is the file's own comes first
        return f"it needs {', '.join(told[:5])}{'' if len(told) <= 5 else f' and {len(told) - 5} more'}"
    return str(problem).strip().partition("\n")[0] or type(problem).__name__


def _tensor(content: bytes) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(content, np.uint8).copy())


def _bytes(name: str, content: torch.Tensor) -> bytes:
    if content.dtype is not torch.uint8 or content.ndim != 1 or content.layout is not torch.strided:
        raise FileLoadError(f"{name} is no whole file of a model: its executable is no row of bytes")
    return content.numpy().tobytes()
