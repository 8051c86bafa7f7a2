"""A traced graph without changes of tensors in place, of which PyTorch's gradients make some."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from pypoplar.poptorch.capture.trace_marks import TraceMarks


class _Again(fx.Interpreter):
    """Runs a traced graph; what its operations become is for the same origin."""

    def __init__(self, module: fx.GraphModule, marks: TraceMarks) -> None:
        super().__init__(module)
        self.marks = marks

    def run_node(self, n: fx.Node) -> Any:
        self.marks.turn_to(n.meta.get("origin"), n.meta["pass"])
        return super().run_node(n)


def changes_tensors(graph: fx.Graph) -> bool:
    """Whether an operation of a graph writes into one of its operands."""
    targets = [node.target for node in graph.nodes if node.op == "call_function"]
    return any(isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable for target in targets)


def without_changes(traced: fx.GraphModule, fakes: list[Any]) -> fx.GraphModule:
    """The same function, traced again with new tensors in place of changed ones; also what views of them show."""
    marks = TraceMarks()

    def again(*inputs: Any) -> Any:
        results = _Again(traced, marks).run(*inputs)
        marks.turn_to(None, marks.now[1])
        return results

    with torch.no_grad():
        return make_fx(torch.func.functionalize(again, remove="mutations"), _allow_non_fake_inputs=True)(*fakes)
