"""What tells executables of models apart, without making one: the key of the cache and of saved models."""

from __future__ import annotations

import contextlib
import hashlib
import platform
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
import torch
from torch import fx

import pypoplar.poptorch.lowering.whole_table  # noqa: F401 (the table's entries)
from pypoplar import resources
from pypoplar.errors import UnknownHandle
from pypoplar.host_code import cache
from pypoplar.interface.saved_layout import saved_layout
from pypoplar.options import EngineOptions
from pypoplar.poptorch import operators
from pypoplar.poptorch.capture import JointGraph
from pypoplar.poptorch.executor.code_texts import code_texts
from pypoplar.poptorch.executor.model_settings import ModelSettings
from pypoplar.poptorch.lowering.ipu_placement import ipus_of_nodes
from pypoplar.poptorch.lowering.lowering_table import TABLE
from pypoplar.target import Target

CUSTOM = (torch.ops.poptorch.custom_operation.default, torch.ops.poptorch.custom_operation_backward.default)


def model_key(operations: str, settings: ModelSettings, optimizer: str, target: Target) -> str:
    """A digest of all that an executable is made from.

    That is pypoplar's code with its codelets and the numbers of its interface; Python, NumPy and PyTorch; `operations`, by their
    `operations_key`; options, also those of the environment; what the `optimizer` does; and the target.
    """
    return digest(*versions(), operations, *options_told(settings), optimizer, target)


def operations_key(joint: JointGraph) -> str:
    """A digest of a graph: its operations with arguments, shapes, types and places; constants; inputs and results.

    The entries of its operations are part of it, and its operators of the program's own. What an entry or operator computes from
    files or variables of the environment that it reads itself is taken for granted.
    """
    return digest(*_operations(joint))


def digest(*told: Any) -> str:
    """A digest of texts, each apart from the next."""
    hashed = hashlib.sha256()
    for one in told:
        text = str(one).encode("utf-8", "surrogatepass")
        hashed.update(len(text).to_bytes(8, "little") + text)
    return hashed.hexdigest()


def lines_of(joint: JointGraph) -> str:
    """Modules and lines of the user's that operations were made for, which an executable has for its reports."""
    return "\n".join(f"{origin} {origin.scope}" if (origin := node.meta.get("origin")) else "" for node in joint.graph.nodes)


def _codelets() -> str:
    """A digest of the libraries' device code."""
    files = sorted(resources.directory("codelets").rglob("*.py"))
    return digest(*(part for file in files for part in (file.name, file.read_text(encoding="utf-8"))))


def versions() -> Iterator[Any]:
    """Those of all code that makes an executable, and its files."""
    yield from (*CODE, saved_layout())
    yield from (platform.python_version(), np.__version__, torch.__version__, torch.version.git_version)


def _operations(joint: JointGraph) -> Iterator[Any]:
    ipus = ipus_of_nodes(joint)
    for node in joint.graph.nodes:
        origin = node.meta.get("origin")
        place = None if origin is None else (origin.place, origin.scope, origin.operation, origin.plan)
        yield (node.name, node.op, node.target, node.args, node.kwargs, form_of(node.meta.get("val")))
        yield (node.meta.get("pass"), place, ipus.get(node))
    for one in joint.inputs:
        yield (one.kind, one.name, one.node.name, value_told(one.value))
    yield (joint.buffers, joint.changed, joint.gradients, joint.outputs, joint.loss, joint.structure)
    calls = [node for node in joint.graph.nodes if node.op == "call_function"]
    yield code_texts(TABLE[target] for target in dict.fromkeys(node.target for node in calls) if target in TABLE)
    yield code_texts(_own_operators(calls))


def _own_operators(calls: list[fx.Node]) -> Iterator[Any]:
    """The functions that the program has registered for operators of the graph."""
    texts = {text for node in calls if node.target in CUSTOM for text in (*node.args, *node.kwargs.values()) if type(text) is str}
    for key in sorted(texts):
        with contextlib.suppress(UnknownHandle):  # the others are no keys
            operator = operators.custom_operator(key)
            yield from (key, operator.forward, operator.gradient)


def options_told(settings: ModelSettings) -> Iterator[Any]:
    """Those of the model and of the engine, and what PyTorch computes constants by."""
    yield attrs.evolve(settings, cache=None, name="", strategy=None)
    yield settings.strategy
    yield sorted(EngineOptions.parse(settings.engine).to_json().items())
    yield (torch.get_default_dtype(), torch.get_default_device(), torch.get_float32_matmul_precision())
    yield (torch.are_deterministic_algorithms_enabled(), torch.backends.mkldnn.enabled)


def form_of(value: Any) -> Any:
    """Shapes, types and strides of what a node gives."""
    if isinstance(value, torch.Tensor):
        return (tuple(value.shape), value.dtype, value.stride() if value.layout is torch.strided else value.layout)
    return [form_of(one) for one in value] if isinstance(value, list | tuple) else repr(value)


def value_told(value: Any) -> Any:
    """What an input is known to be."""
    if not isinstance(value, torch.Tensor):
        return (type(value), repr(value))
    whole = value.detach().cpu().contiguous().reshape(-1)
    content = bytes(whole.view(torch.uint8).numpy()) if whole.numel() else b""
    return (value.dtype, tuple(value.shape), hashlib.sha256(content).hexdigest())


CODE = (cache.fingerprint("pypoplar"), _codelets())
"""As they are when this is imported: a file that changes later is not what this process runs."""
