"""What functions of a program do, as a text that is another where they may do something else."""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

FOREIGN = ("torch", "numpy", "pypoplar")  # packages whose versions and sources stand elsewhere in a key
ADDRESS = " at 0x"  # in what objects say of themselves where their class has no words for it
PLAIN = (int, float, complex, str, bytes, bool, type(None), type(...))


def code_texts(functions: Iterable[Any]) -> str:
    """A digest of functions: their code, the values that it uses from outside, and the files where those were written.

    Libraries are known by their names. What a function computes at run time it may get anywhere else: files that it reads,
    variables of the environment.
    """
    walk = _CodeWalk()
    for function in functions:
        walk.add(function)
    return hashlib.sha256("\n".join(walk.told).encode()).hexdigest()


class _CodeWalk:
    """Goes through functions and what they use, each once."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self._seen: dict[int, tuple[int, Any]] = {}  # keeps what has been seen, so that no two have one id

    def add(self, value: Any) -> None:
        if type(value) in PLAIN:
            self.told.append(f"{type(value).__name__} {value!r}")
            return
        if id(value) in self._seen:
            self.told.append(f"again {self._seen[id(value)][0]}")
            return
        self._seen[id(value)] = (len(self._seen), value)
        self._tell(value)

    def _tell(self, value: Any) -> None:
        match value:
            case types.FunctionType():
                self._function(value)
            case types.MethodType():
                self.add(value.__func__)
                self.add(value.__self__)
            case functools.partial():
                self._several("partial", [value.func, value.args, value.keywords])
            case types.CodeType():
                self._code(value)
            case type():
                self._class(value)
            case types.ModuleType():
                self.told.append(f"module {value.__name__} {_file_digest(value.__name__)}")
            case torch.Tensor():
                array = value.detach().cpu().contiguous()
                self.told.append(f"tensor {value.dtype} {tuple(value.shape)} {_bytes_digest(array)}")
            case np.ndarray():
                self.told.append(f"array {value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}")
            case dict():
                self._several("dict", [part for pair in value.items() for part in pair])
            case list() | tuple():
                self._several(type(value).__name__, value)
            case set() | frozenset():
                self._several(type(value).__name__, sorted(value, key=repr))
            case _:
                self._object(value)

    def _several(self, kind: str, parts: Iterable[Any]) -> None:
        listed = list(parts)
        self.told.append(f"{kind} of {len(listed)}")
        for part in listed:
            self.add(part)

    def _function(self, function: types.FunctionType) -> None:
        self.told.append(f"function {function.__module__}.{function.__qualname__}")
        if _is_foreign(function.__module__) and function.__module__.partition(".")[0] != "pypoplar":
            return
        self._code(function.__code__)
        self._several("defaults", [function.__defaults__, function.__kwdefaults__])
        self._several("closure", [_content(cell) for cell in function.__closure__ or ()])
        if _is_foreign(function.__module__):
            return  # what pypoplar's own code uses is in its sources
        self.told.append(_file_digest(function.__module__))
        for name in _names(function.__code__):
            if name in function.__globals__:
                self.told.append(f"global {name}")
                self.add(function.__globals__[name])

    def _code(self, code: types.CodeType) -> None:
        self.told.append(f"code {code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}")
        for constant in code.co_consts:
            self.add(constant)

    def _class(self, kind: type) -> None:
        self.told.append(f"class {kind.__module__}.{kind.__qualname__}")
        if _is_foreign(kind.__module__):
            return
        try:
            self.told.append(inspect.getsource(kind))
        except (OSError, TypeError):  # made without a file
            self.told.append("no text")
        self.told.append(_file_digest(kind.__module__))
        for base in kind.__bases__:
            self.add(base)
        for name, member in sorted(vars(kind).items()):
            if isinstance(member, types.FunctionType | classmethod | staticmethod | property) or type(member) in PLAIN:
                self.told.append(name)
                self.add(getattr(member, "__func__", getattr(member, "fget", member)))

    def _object(self, value: Any) -> None:
        """An object by its class and its attributes; one of a library, such as a type, by what it says of itself."""
        self.add(type(value))
        text = repr(value) if _is_foreign(type(value).__module__) else ""
        self.told.append("object" if ADDRESS in text else f"object {text}")
        if hasattr(value, "__dict__") and (not text or isinstance(value, torch.nn.Module)):
            self.add(vars(value))


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _names(code: types.CodeType) -> list[str]:
    """The names that code, and code in it, may take from its module."""
    inner = [name for constant in code.co_consts if isinstance(constant, types.CodeType) for name in _names(constant)]
    return sorted({*code.co_names, *inner})


def _is_foreign(module: str | None) -> bool:
    first = (module or "").partition(".")[0]
    return first in FOREIGN or first in sys.stdlib_module_names


def _file_digest(module: str | None) -> str:
    """A digest of a module's file; empty where there is none, and of libraries."""
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    if file is None or _is_foreign(module) or "site-packages" in Path(file).parts:
        return ""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:  # it is gone, or in an archive
        return ""


def _bytes_digest(tensor: torch.Tensor) -> str:
    whole = tensor.reshape(-1)
    return hashlib.sha256(bytes(whole.view(torch.uint8).numpy()) if whole.numel() else b"").hexdigest()
