"""Running the vertices of a compute set."""

from __future__ import annotations

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.operands import check_one_element, check_writeable
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.program.base import Program, Vertices
from pypoplar.tracebacks import public
from pypoplar.types import BOOL


@public
class Execute(Program):
    """Run a compute set: all its vertices, in one step.

    Parameters
    ----------
    computeSet:
        What `Graph.addComputeSet` gave.
    result:
        BOOL of one element, which takes the AND of what the `compute` of all vertices returns. A string is the name.
    name:
        Its debug name.

    Raises
    ------
    PoplarTypeError
        If it is no compute set, or the result of another type or graph.
    TensorShapeError
        If the result does not have one element.
    TensorWriteError
        If the result is a constant.
    """

    def __init__(self, computeSet: ComputeSet, result: Tensor | str | None = None, name: str = "") -> None:
        if isinstance(result, str):
            name, result = result, None
        super().__init__(name)
        if not isinstance(computeSet, ComputeSet):
            raise PoplarTypeError(f"Execute takes a ComputeSet, got {computeSet!r}")
        if result is not None:
            check_one_element(result, "the result of Execute", (BOOL,))
            check_writeable(result, "Execute cannot put its result into")
            if result.graph is not computeSet.graph:
                raise PoplarTypeError(f"{computeSet!r} belongs to another graph than the result of Execute, {result._described()}")
        self.compute_set = computeSet
        self.result = result

    def reads(self) -> tuple[Tensor, ...]:
        return ()

    def writes(self) -> tuple[Tensor, ...]:
        return () if self.result is None else (self.result,)

    def contains(self) -> Vertices:
        return Vertices(self.compute_set)
