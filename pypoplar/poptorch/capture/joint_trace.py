"""The joint graph of a module's forward pass and of its gradients, traced operation by operation with shapes alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from pypoplar.poptorch.capture.gradient_modes import without_gradients
from pypoplar.poptorch.capture.joint_graph import Pass
from pypoplar.poptorch.capture.mutations import changes_tensors, without_changes
from pypoplar.poptorch.capture.origins import origin_of
from pypoplar.poptorch.capture.pytorchs_forms import pytorchs_forms
from pypoplar.poptorch.capture.trace_marks import TraceMarks
from pypoplar.poptorch.capture.training_loss import LossError
from pypoplar.poptorch.operators import REPLACEMENTS


class _Forward(fx.Interpreter):
    """Runs an exported graph; the gradients of each operation are marked as made for it, too."""

    def __init__(self, module: fx.GraphModule, marks: TraceMarks) -> None:
        super().__init__(module)
        self.marks = marks
        self.known: set[Any] = set()

    def run_node(self, n: fx.Node) -> Any:
        origin = origin_of(n)
        self.marks.turn_to(origin, Pass.FORWARD)
        with torch.no_grad() if without_gradients(n) else contextlib.nullcontext():
            result = super().run_node(n)
        if n.op == "call_function":

            def mark(_: Any) -> None:
                self.marks.turn_to(origin, Pass.BACKWARD)

            for tensor in pytree.tree_leaves(result):
                if isinstance(tensor, torch.Tensor):
                    self._mark_gradients(tensor.grad_fn, mark)
        return result

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return super().call_function(REPLACEMENTS.get(target, target), args, kwargs)

    def _mark_gradients(self, function: Any, mark: Callable[[Any], None]) -> None:
        """Have gradient functions that no earlier operation made call `mark` before they run."""
        waiting = [function]
        while waiting:
            function = waiting.pop()
            if function is None or function in self.known:
                continue
            self.known.add(function)
            if type(function).__name__ != "AccumulateGrad":
                function.register_prehook(mark)
                waiting.extend(before for before, _ in function.next_functions)


def trace_joint(
    module: fx.GraphModule, fakes: list[Any], loss: int | None, trained: Mapping[str, torch.Tensor], marks: TraceMarks
) -> tuple[fx.Graph, list[Any], dict[str, Any]]:
    """The graph, what the module returns, flattened, and the gradients of the output number `loss` for each tensor of `trained`.

    `fakes` are inputs that have shape and type alone; those of `trained` are among them. `marks` know what is traced now.
    """

    def joint(*inputs: Any) -> tuple[list[Any], list[Any]]:
        results = _Forward(module, marks).run(*inputs)
        outputs = pytree.tree_leaves(results, is_leaf=lambda leaf: leaf is None)
        marks.turn_to(None, Pass.BACKWARD)
        gradients: list[Any] = []
        if loss is not None and trained:
            if not outputs[loss].requires_grad:
                raise LossError(
                    "the loss depends on no parameter that is trained: they are not used, are detached, or have requires_grad=False"
                )
            gradients = list(torch.autograd.grad(outputs[loss], list(trained.values()), allow_unused=True))
        marks.turn_to(None, Pass.FORWARD)
        return [one.detach() if isinstance(one, torch.Tensor) else one for one in outputs], gradients

    with torch.enable_grad() if loss is not None else torch.no_grad():
        traced = make_fx(joint, pytorchs_forms(), _allow_non_fake_inputs=True)(*fakes)
    if changes_tensors(traced.graph):
        traced = without_changes(_marked(traced), fakes)
    graph = _marked(traced).graph
    for node in list(graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:  # holds, for these shapes and types
            graph.erase_node(node)
    _leave_out_statistics(graph)
    graph.eliminate_dead_code()
    ((outputs, gradients),) = next(node for node in reversed(graph.nodes) if node.op == "output").args
    return graph, list(outputs), dict(zip(trained, gradients, strict=loss is not None))


def _marked(traced: fx.GraphModule) -> fx.GraphModule:
    """A traced graph whose nodes all have marks; what has none was made for nothing of the user's."""
    for node in traced.graph.nodes:
        node.meta.setdefault("origin", None)
        node.meta.setdefault("pass", Pass.FORWARD)
    return traced


def _leave_out_statistics(graph: fx.Graph) -> None:
    """Let gradients of norms that train not take running statistics, which they do not need and the forward pass changes."""
    for node in graph.nodes:
        if node.target is torch.ops.aten.native_batch_norm_backward.default and node.args[7] is True:
            node.args = (*node.args[:3], None, None, *node.args[5:])
