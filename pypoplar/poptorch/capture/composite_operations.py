"""Exported programs whose operations change no tensors; those that PyTorch composes of others stay whole."""

from __future__ import annotations

from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import fx
from torch.export import ExportedProgram, ExportGraphSignature, exported_program

from pypoplar.poptorch.capture.gradient_modes import without_gradients
from pypoplar.poptorch.capture.written_operands import memory_of

UNUSED = frozenset(
    (
        torch.ops.aten._assert_tensor_metadata.default,  # holds, for these shapes and types
        *(torch.ops.aten.permute.default, torch.ops.aten.matmul.default, torch.ops.aten.to.dtype),
    )
)


def decomposed(exported: ExportedProgram) -> ExportedProgram:
    """What ``exported.run_decompositions({})`` gives.

    That prepares each of some 900 composite operations to stay whole, which takes longer than all else of a small model's capture.
    Here it is told those that the program has.
    """
    _leave_out_unused(exported)
    nodes = _calls(exported)
    showing = {node.target for node in nodes if _shows_an_operand(node)}
    whole = [one for one in {node.target for node in nodes} - showing if _is_composite(one)]
    kept = dict.fromkeys(whole, exported_program._special_op_to_preserve_cia)

    def split(table: dict[Any, Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
        return dict(kept), table

    before = exported_program._split_decomp_table_to_cia_and_python_decomp, exported_program._remove_unnecessary_copy_op_pass
    exported_program._split_decomp_table_to_cia_and_python_decomp = split
    exported_program._remove_unnecessary_copy_op_pass = _equal_copies_left_out
    try:
        return exported.run_decompositions({})
    finally:
        exported_program._split_decomp_table_to_cia_and_python_decomp, exported_program._remove_unnecessary_copy_op_pass = before


def _equal_copies_left_out(module: fx.GraphModule, signature: ExportGraphSignature) -> tuple[fx.GraphModule, ExportGraphSignature]:
    """What is copied into a whole buffer is its new value, if it has its type, shape and gradients, and is not another one's, too.

    PyTorch's pass does not ask whether.
    """
    changed = {*signature.buffers_to_mutate, *signature.parameters_to_mutate}
    with module._set_replace_hook(signature.get_replace_hook()):
        for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten.copy.default):
            value = node.args[1]
            if node.name not in changed or not isinstance(value, fx.Node) or value.name in changed:
                continue
            if _form(value) == _form(node) and not _cut_off(node, value):
                changed.add(value.name)
                node.replace_all_uses_with(value)
                module.graph.erase_node(node)
    module.recompile()
    return module, signature


def _cut_off(copy: fx.Node, value: fx.Node) -> bool:
    """Whether gradients end at a copy, which was made without them, and not at its value already."""
    return without_gradients(copy) and not without_gradients(value)


def _form(node: fx.Node) -> tuple[torch.dtype, torch.Size]:
    return node.meta["val"].dtype, node.meta["val"].shape


def _leave_out_unused(exported: ExportedProgram) -> None:
    """Leave out what nothing takes, of operations that do nothing but give a value: each would be traced twice more."""
    for node in reversed(exported.graph.nodes):
        if node.op == "call_function" and not node.users and node.target in UNUSED:
            exported.graph.erase_node(node)


def _calls(exported: ExportedProgram) -> list[fx.Node]:
    """The operations of a program and of the graphs within it."""
    graphs = (module.graph for module in exported.graph_module.modules() if isinstance(module, fx.GraphModule))
    return [node for graph in graphs for node in graph.nodes if node.op == "call_function"]


def _shows_an_operand(node: fx.Node) -> bool:
    """Whether a result lies where an operand does."""
    operands = {storage for operand in node.all_input_nodes for storage in _storages(operand.meta.get("val"))}
    return not operands.isdisjoint(_storages(node.meta.get("val")))


def _storages(value: Any) -> list[int]:
    return [memory_of(one) for one in pytree.tree_leaves(value) if isinstance(one, torch.Tensor)]


def _is_composite(operation: Any) -> bool:
    return isinstance(operation, torch._ops.OpOverload) and bool(exported_program._is_preservable_cia_op(operation))
