"""What tells exported programs apart before they are decomposed and traced: the key of what is known of their graphs."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from pypoplar.poptorch.capture.origins import origin_of
from pypoplar.poptorch.executor.code_texts import ADDRESS
from pypoplar.poptorch.executor.model_key import digest, form_of, options_told, value_told, versions
from pypoplar.poptorch.executor.model_settings import ModelSettings
from pypoplar.poptorch.lowering.lowering_table import TABLE

OURS = ("aten", "prims", "poptorch")  # namespaces of operations whose decompositions are PyTorch's and pypoplar's own
BY_KEY = (  # operations that stand for functions of the program
    torch.ops.poptorch.custom_operation.default,
    torch.ops.poptorch.custom_operation_backward.default,
    torch.ops.poptorch.call_cpu_op.default,
)
PACKAGE = __name__.partition(".")[0]


def exported_key(exported: ExportedProgram, module: torch.nn.Module, training: bool, settings: ModelSettings) -> str | None:
    """A digest of all that a captured graph is made from once it is exported; None where more than that decides.

    That is the code of pypoplar, PyTorch and others by their versions; operations with arguments, shapes, types, modules, lines and
    marks; which tensors are inputs, which are one, and which are trained; constants; options; and what PyTorch computes by.
    """
    if _decided_elsewhere(exported):
        return None
    told = (*versions(), training, *options_told(settings), *_modes(), *_operations(exported), *_inputs(exported, module))
    texts = [str(one) for one in told]
    return None if any(ADDRESS in text for text in texts) else digest("exported", *texts)


def _decided_elsewhere(exported: ExportedProgram) -> bool:
    """Whether functions of the program decide what becomes of the graph: operators and entries of its own, modes that it is in."""
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        return True
    if any(not entry.__module__.startswith(f"{PACKAGE}.") for entry in TABLE.values()):
        return True
    return not all(map(_is_ours, exported.graph.nodes))


def _is_ours(node: fx.Node) -> bool:
    if node.op in ("placeholder", "output"):
        return True
    if node.op != "call_function":  # of graphs within
        return False
    target = node.target
    plain = isinstance(target, torch._ops.OpOverload) and target.namespace in OURS and target not in BY_KEY
    return plain or target is operator.getitem


def _modes() -> Iterator[Any]:
    """What is traced by, and kernels that a program may have put in the place of PyTorch's."""
    yield (torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"))
    yield sorted(torch.library._impls)


def _operations(exported: ExportedProgram) -> Iterator[Any]:
    for node in exported.graph.nodes:
        origin, meta = origin_of(node), node.meta
        yield (node.name, node.op, node.target, node.args, node.kwargs, form_of(meta.get("val")))
        yield (origin, str(origin), meta.get("custom"))  # as a text with what stands in the line
        yield list((meta.get("nn_module_stack") or {}).values())


def _inputs(exported: ExportedProgram, module: torch.nn.Module) -> Iterator[Any]:
    signature = exported.graph_signature
    yield (signature.input_specs, signature.output_specs, exported.call_spec)
    yield [(name, value_told(value)) for name, value in exported.constants.items()]
    first: dict[int, str] = {}  # names of tensors that are one
    for kind in (module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False)):
        for name, tensor in kind:
            yield (name, first.setdefault(id(tensor), name), tensor.requires_grad, form_of(tensor), type(tensor))
