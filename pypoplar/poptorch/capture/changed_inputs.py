"""Changes in place that no graph makes: of shapes, and of what it only reads, parameters and tensors that the module holds."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from pypoplar.poptorch.capture.origins import operation_name, origin_of
from pypoplar.poptorch.capture.problems import Problem, Whereabouts, at_node
from pypoplar.poptorch.capture.side_effects import replaced
from pypoplar.poptorch.capture.written_operands import Owners, written_operands

KINDS = {
    InputKind.PARAMETER: "the parameter {} is changed in place: change it on the host between calls, or make a new tensor",
    InputKind.CONSTANT_TENSOR: "the tensor {} of the module is changed in place: register it as a buffer",
}


UNSAFE = (torch.ops.aten.unsafe_split.Tensor, torch.ops.aten.unsafe_split_with_sizes.default)
NEW = {
    **{f"{name}_": name for name in ("squeeze", "unsqueeze", "t", "transpose", "swapaxes", "swapdims", "as_strided")},
    **dict.fromkeys(("resize_", "resize_as_"), "reshape"),
}
"""Methods of tensors that give them another shape in place, and which ones give a new tensor."""


@contextlib.contextmanager
def noticed_shapes(module: torch.nn.Module, whereabouts: Whereabouts, problems: list[Problem]) -> Iterator[None]:
    """While a module is exported, note where its arguments and buffers get other shapes, in which export fails."""
    kept: dict[int, tuple[str, torch.Tensor]] = {}
    depth = [0]  # one of these methods calls another one

    def begin(_: Any, args: Any, kwargs: Any) -> None:
        tensors = [("an argument", one) for one in pytree.tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        tensors += [(f"the buffer {name}", one) for name, one in module.named_buffers()]
        kept.update((id(one), (what, one)) for what, one in tensors)

    def noting(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def reshaped(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            before = tensor.shape, tensor.stride()
            depth[0] += 1
            try:
                result = original(tensor, *args, **kwargs)
            finally:
                depth[0] -= 1
            if not depth[0] and id(tensor) in kept and (tensor.shape, tensor.stride()) != before:
                shapes = f"{tuple(before[0])} before and {tuple(tensor.shape)} then"
                what = f"{name} gives {kept[id(tensor)][0]} another shape in place, {shapes}: make a new tensor, as by {NEW[name]}"
                problems.append(Problem(what, whereabouts.now()))
            return result

        return reshaped

    data: Any = torch.Tensor.data

    def set_data(tensor: torch.Tensor, value: torch.Tensor) -> None:
        data.__set__(tensor, value)
        if id(tensor) in kept:
            what = (
                f"{kept[id(tensor)][0]} is given other data, which no graph sees: change it by copy_, or set the buffer to a tensor"
            )
            problems.append(Problem(what, whereabouts.now()))

    hook = module.register_forward_pre_hook(begin, with_kwargs=True)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(replaced(torch.Tensor, "data", property(data.__get__, set_data)))
            for name in NEW:
                stack.enter_context(replaced(torch.Tensor, name, noting(name, getattr(torch.Tensor, name))))
            yield
    finally:
        hook.remove()


def _other_shapes(graph: fx.Graph) -> list[Problem]:
    """Operations whose ``out`` has another shape than their result: PyTorch makes it larger or smaller, and warns of it."""
    problems = []
    for node in graph.nodes:
        for operand in written_operands(node):
            value, result = operand.meta.get("val"), node.meta.get("val")
            single = isinstance(value, torch.Tensor) and isinstance(result, torch.Tensor) and "out" in node.kwargs
            if single and value.numel() and value.shape != result.shape:
                what = f"out has the shape {tuple(value.shape)}, and the result {tuple(result.shape)}: give one of its shape"
                problems.append(at_node(what, origin_of(node)))
            by = _not_once(operand)
            if by:
                what = f"a view by {by}, which does not show each element once, is changed in place: change slices of the tensor"
                problems.append(at_node(what, origin_of(node)))
    return problems


def _not_once(view: Any) -> str:
    """The operation by which a view shows some elements not at all or more than once: PyTorch's graphs would have other numbers.

    They have zeros where an unfold leaves elements out, and the sum of what is written where several places are one element.
    """
    while isinstance(view, fx.Node) and view.op == "call_function" and view.args and isinstance(view.args[0], fx.Node):
        if view.target is torch.ops.aten.unfold.default:
            whole, dim, size, step = view.args
            extent = whole.meta["val"].shape[dim] if whole.meta["val"].dim() else 1
            if size != step or extent % step:
                return "unfold"
        shown = view.meta.get("val")
        if isinstance(shown, torch.Tensor) and _repeats_elements(shown):
            return operation_name(view.args[0] if view.target is operator.getitem else view)
        view = view.args[0] if _is_view(view) else None
    return ""


def _repeats_elements(tensor: torch.Tensor) -> bool:
    """Whether several places of a tensor may be one element; of a tensor of none there are no places."""
    reach = 0
    if not tensor.numel():
        return False
    for stride, extent in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if extent > 1 and stride <= reach:
            return True
        reach += stride * (extent - 1)
    return False


def _is_view(node: fx.Node) -> bool:
    """Whether an operation may give what it reads, or one of several parts of it."""
    target = node.target
    known = isinstance(target, torch._ops.OpOverload) and (torch.Tag.inplace_view in target.tags or target.is_view)
    return known or target is operator.getitem


def _changed_parts(graph: fx.Graph, owners: Owners) -> list[Problem]:
    """Changes of parts that a graph holds for copies, or of their whole; `torch.unsafe_split` itself has another form."""
    problems = []
    apart: dict[fx.Node | None, str] = {}
    for node in graph.nodes:
        for owner in map(owners.of, written_operands(node)):
            if owner in apart:
                name = apart[owner]
                what = f"parts by torch.ops.aten.{name}, or their whole, are changed in place: take torch.{name}"
                problems.append(at_node(what, origin_of(node)))
        if node.target in UNSAFE:
            apart.update((owners.of(one), operation_name(node)) for one in (node.args[0], *node.users))
    return problems


def changed_inputs(exported: ExportedProgram) -> list[Problem]:
    """The operations of an exported program, before its decompositions, that change what they may not."""
    specs = {spec.arg.name: spec for spec in exported.graph_signature.input_specs}
    owners = Owners(exported.graph)
    problems = [*_other_shapes(exported.graph), *_changed_parts(exported.graph, owners)]
    for node in exported.graph.nodes:
        for operand in written_operands(node):
            owner = owners.of(operand)
            spec = specs.get(owner.name) if owner is not None and owner.op == "placeholder" else None
            if spec is not None and spec.kind in KINDS:
                problems.append(at_node(KINDS[spec.kind].format(spec.target), origin_of(node)))
    return problems
