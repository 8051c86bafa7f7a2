"""The part of a batch whose activations a norm has: all of it, or that of one of several replicas."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from pypoplar import program
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.signatures import misfit
from pypoplar.types import ElementType

DistributedNormReduceCallback = Callable[..., Any]


@frozen(eq=False)
class BatchShare:
    """How many elements of a channel all batches have, and what adds up vectors of those that take part."""

    call: str
    elements: int
    replicas: int = 1
    reduce: DistributedNormReduceCallback | None = None

    @staticmethod
    def whole(acts: Tensor) -> BatchShare:
        """The activations are all that there are."""
        return BatchShare("", _of_channel(acts))

    @staticmethod
    def of_replicas(call: str, acts: Tensor, reduce: object, samples: object) -> BatchShare:
        """The activations of one of as many replicas as have so many samples together."""
        wrong = misfit(reduce, "graph", "tensors", "prog", "replicas", "debugContext", "options")
        if wrong:
            raise PoplarTypeError(
                f"{call}: what adds up statistics is a function of graph, tensors, prog, replicas, name, options, got {wrong}"
            )
        batch = acts.dim(0)
        whole = operator.index(samples) if hasattr(samples, "__index__") else -1
        if batch == 0 or whole < batch or whole % batch:
            raise PoplibsError(f"{call}: all replicas together have a multiple of the {batch} samples of each, got {samples!r}")
        assert callable(reduce)
        return BatchShare(call, _of_channel(acts) * (whole // batch), whole // batch, reduce)

    def sum_type(self, type: ElementType) -> ElementType:
        """The type of vectors that `together` takes, where what it gives is of `type`."""
        return type

    def spread(self, graph: Graph, acts: Tensor, vectors: Sequence[Tensor], prog: program.Sequence, debug: str) -> list[Tensor]:
        """Vectors like those that `together` gives with an element for each channel of the activations."""
        return list(vectors)

    def together(
        self, graph: Graph, vectors: Sequence[Tensor], type: ElementType, prog: program.Sequence, debug: str
    ) -> list[Tensor]:
        """The sums of vectors over the replicas that take part, of `type`."""
        if self.reduce is None:
            return list(vectors)
        sums = self.reduce(graph, list(vectors), prog, self.replicas, f"{debug}/allReduce", {})
        if not isinstance(sums, list | tuple) or [*map(_form, sums)] != [*map(_form, vectors)]:
            raise PoplarTypeError(f"{self.call}: what adds up statistics gives tensors like those that it gets, got {sums!r}")
        return list(sums)


def _form(tensor: object) -> object:
    return (tensor.elementType(), tuple(tensor.shape())) if isinstance(tensor, Tensor) else None


def _of_channel(acts: Tensor) -> int:
    return acts.numElements() // max(acts.dim(1), 1)
