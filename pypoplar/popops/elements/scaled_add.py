"""Adding a multiple of one tensor to another, or to a multiple of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import overload

from attrs import evolve, frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.host_values import values_of
from pypoplar.popops.elements.cast import cast
from pypoplar.popops.elements.element_functions import mulInPlace
from pypoplar.popops.elements.element_vertices import add_element_vertices
from pypoplar.poputil.arguments import check_codelet, check_float, check_operands, check_writeable
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.copies import apart
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.half_accuracy import castToDeviceHalfValue, checkAccuracyWhenCast
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.types import FLOAT, HALF, INT, UNSIGNED_INT, ElementType

OPTIONS: dict[str, Kind] = {"optimizeForSpeed": bool, "scaleFloatToHalfTolerance": float}
TOLERANCE = 1e-6
REALS = (FLOAT, HALF)
TYPES = (FLOAT, HALF, INT, UNSIGNED_INT)
Scale = float | Tensor


class ScaledAddSpecialisation(Enum):
    """What becomes of the first tensor of `scaledAddTo`.

    Attributes
    ----------
    DEFAULT:
        It is multiplied by `scaleA`.
    X_MINUS_AX_PLUS_BY:
        `scaleA` times itself is taken from it.
    """

    DEFAULT = "DEFAULT"
    X_MINUS_AX_PLUS_BY = "X_MINUS_AX_PLUS_BY"


@overload
def scaledAddTo(
    graph: Graph, A: Tensor, B: Tensor, scaleB: float | Tensor, prog: Sequence, debugContext: str | None = None,
    options: Mapping[str, object] | None = None,
) -> None: ...  # fmt: skip
@overload
def scaledAddTo(
    graph: Graph, A: Tensor, scaleA: float, B: Tensor, scaleB: float, prog: Sequence, debugContext: str | None = None,
    options: Mapping[str, object] | None = None,
) -> None: ...  # fmt: skip
@overload
def scaledAddTo(
    graph: Graph, A: Tensor, scaleA: Tensor, B: Tensor, scaleB: Tensor, prog: Sequence, debugContext: str | None = None,
    options: Mapping[str, object] | None = None,
) -> None: ...  # fmt: skip
@overload
def scaledAddTo(
    graph: Graph, A: Tensor, scaleA: float, B: Tensor, scaleB: float, prog: Sequence, speciality: ScaledAddSpecialisation,
    debugContext: str | None = None, options: Mapping[str, object] | None = None,
) -> None: ...  # fmt: skip
@overload
def scaledAddTo(
    graph: Graph, A: Tensor, scaleA: Tensor, B: Tensor, scaleB: Tensor, prog: Sequence, speciality: ScaledAddSpecialisation,
    debugContext: str | None = None, options: Mapping[str, object] | None = None,
) -> None: ...  # fmt: skip
@overloaded("popops.scaledAddTo")
def scaledAddTo(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    A: Tensor,
    B: Tensor,
    scaleB: float | Tensor,
    prog: Sequence,
    scaleA: float | Tensor | None = None,
    speciality: ScaledAddSpecialisation = ScaledAddSpecialisation.DEFAULT,
    debugContext: str | None = None,
    options: Mapping[str, object] | None = None,
) -> None:
    """A += scaleB B for each element, or A = scaleA A + scaleB B, or A = A - scaleA A + scaleB B; `prog` is extended.

    The work is done where A lives. For FLOAT and HALF the sum is taken in float and rounded once to the type of A. For
    integers, which wrap, B and the scales become that type first. B of integers becomes the type of A as well.

    Parameters
    ----------
    A:
        What is written: FLOAT, HALF, INT or UNSIGNED_INT.
    B:
        A tensor of the shape of A, of one of these types, not necessarily the same.
    scaleB:
        A number, or a tensor of one element of these types. Of integers a number has to be one of the type of A.
    scaleA:
        As `scaleB`; without it A is taken as it is.
    speciality:
        X_MINUS_AX_PLUS_BY, for FLOAT and HALF, gives the third of the formulas.
    options:
        Known are

        - ``scaleFloatToHalfTolerance`` (1e-6): where A and B are HALF, numbers that are HALFs but for a smaller relative error
          are taken as such, both or none. Scales in tensors are taken as they are.
        - ``optimizeForSpeed`` (false): changes nothing. What it would have in memory to be faster is not modelled.

    Raises
    ------
    PoplibsError
        For other types, two shapes, a scale of several elements or that is NaN, and if A holds an element twice or a constant.
    PoplarTypeError
        For a scale that the type does not have.
    InvalidTileMapping
        If an element of a tensor has no tile.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popops, program, testing
    >>> def compute(graph, a, b):
    ...     popops.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     popops.scaledAddTo(graph, a, b, 0.5, prog)
    ...     return prog
    >>> testing.run(compute, {"a": np.float32([1, 2, 3]), "b": np.float32([10, 20, 30])})["a"]
    array([ 6., 12., 18.], dtype=float32)
    """
    debug, tolerance = below(debugContext, "AddTo"), _tolerance("popops.scaledAddTo", options)
    shrinks = speciality is ScaledAddSpecialisation.X_MINUS_AX_PLUS_BY
    ScaledSum("popops.scaledAddTo", graph, A, B, scaleA, scaleB, prog, debug, tolerance, shrinks=shrinks).build()


@overload
def scaledSubtractFrom(
    graph: Graph, A: Tensor, B: Tensor, scaleB: float | Tensor, prog: Sequence, debugContext: str | None = None,
    options: Mapping[str, object] | None = None,
) -> None: ...  # fmt: skip
@overload
def scaledSubtractFrom(
    graph: Graph, A: Tensor, scaleA: float, B: Tensor, scaleB: float, prog: Sequence, debugContext: str | None = None,
    options: Mapping[str, object] | None = None,
) -> None: ...  # fmt: skip
@overload
def scaledSubtractFrom(
    graph: Graph, A: Tensor, scaleA: Tensor, B: Tensor, scaleB: Tensor, prog: Sequence, debugContext: str | None = None,
    options: Mapping[str, object] | None = None,
) -> None: ...  # fmt: skip
@overloaded("popops.scaledSubtractFrom")
def scaledSubtractFrom(
    graph: Graph,
    A: Tensor,
    B: Tensor,
    scaleB: float | Tensor,
    prog: Sequence,
    scaleA: float | Tensor | None = None,
    debugContext: str | None = None,
    options: Mapping[str, object] | None = None,
) -> None:
    """A -= scaleB B for each element, or A = scaleA A - scaleB B; `prog` is extended.

    Types and rounding are those of `scaledAddTo`.

    Parameters
    ----------
    A:
        What is written: FLOAT, HALF, INT or UNSIGNED_INT.
    B:
        A tensor of the shape of A, of one of these types.
    scaleB:
        A number, or a tensor of one element.
    scaleA:
        As `scaleB`; without it A is taken as it is.
    options:
        As for `scaledAddTo`.

    Raises
    ------
    PoplibsError
        As for `scaledAddTo`.
    PoplarTypeError
        For a scale that the type does not have.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    debug, tolerance = below(debugContext, "AddTo"), _tolerance("popops.scaledSubtractFrom", options)
    ScaledSum("popops.scaledSubtractFrom", graph, A, B, scaleA, scaleB, prog, debug, tolerance, subtracts=True).build()


@frozen(eq=False)
class ScaledSum:
    """A call. `subtracts` takes scaleB B from A, `shrinks` takes scaleA A from it."""

    call: str
    graph: Graph
    A: Tensor
    B: Tensor
    scaleA: Scale | None
    scaleB: Scale
    prog: Sequence
    debug: str
    tolerance: float
    subtracts: bool = False
    shrinks: bool = False

    def _check(self) -> None:
        """Shapes and types that go together; `PoplibsError`, before the graph is changed."""
        scales = [scale for scale in (self.scaleA, self.scaleB) if isinstance(scale, Tensor)]
        check_operands(self.call, self.graph, self.A, self.B, *scales)
        check_codelet(self.call, self.graph, templateVertex("popops::ScaledAdd", FLOAT, FLOAT))
        if self.A.shape() != self.B.shape():
            raise PoplibsError(f"{self.call} takes tensors of one shape, got {self.A!r} and {self.B!r}")
        for tensor in (self.A, self.B):
            if tensor.elementType() not in TYPES:
                raise PoplibsError(f"{self.call} takes {_names(TYPES)}, got {tensor!r}")
        if self.shrinks and self.A.elementType() not in REALS:
            raise PoplibsError(f"{self.call} has X_MINUS_AX_PLUS_BY of FLOAT and HALF, got {self.A!r}")
        for name, scale in (("scaleA", self.scaleA), ("scaleB", self.scaleB)):
            if scale is not None:
                _check_scale(self.call, name, scale, self.A)
        check_writeable(self.call, self.A)

    def build(self) -> None:
        """Extend the graph and the program."""
        self._check()
        (self._of_integers() if self.A.elementType() not in REALS else self._of_floats())._add()

    def _of_integers(self) -> ScaledSum:
        """The sum with B and the scales in A's type, once A is scaled; they are taken before it is."""
        scaleA, scaleB = (self._cast(scale, (self.A.elementType(),)) for scale in (self.scaleA, self.scaleB))
        B = self._cast_tensor(self.B, (self.A.elementType(),))
        if scaleA is not None:
            B, scaleB = self._apart(B), self._apart(scaleB) if isinstance(scaleB, Tensor) else scaleB
        if scaleA is not None and not (isinstance(scaleA, int) and scaleA == 1):
            mulInPlace(self.graph, self.A, scaleA.reshape([]) if isinstance(scaleA, Tensor) else scaleA, self.prog, self.debug)
        assert scaleB is not None
        return evolve(self, B=B, scaleA=None, scaleB=scaleB)

    def _of_floats(self) -> ScaledSum:
        """The sum with B and the scales in FLOAT or HALF, both scales in one of the two."""
        B = self._cast_tensor(self.B, (self.A.elementType(), *REALS))
        scaleA, scaleB = (self._cast(scale, (FLOAT, HALF)) for scale in (self.scaleA, self.scaleB))
        if isinstance(scaleA, Tensor) and isinstance(scaleB, Tensor) and scaleA.elementType() is not scaleB.elementType():
            scaleA, scaleB = (self._cast_tensor(scale, (FLOAT,)) for scale in (scaleA, scaleB))
        assert scaleB is not None
        return evolve(self, B=B, scaleA=scaleA, scaleB=scaleB)

    def _cast(self, scale: Scale | None, types: tuple[ElementType, ...]) -> Scale | None:
        if isinstance(scale, Tensor):
            return self._cast_tensor(scale, types)
        return int(scale) if scale is not None and types[0] not in REALS else scale

    def _cast_tensor(self, tensor: Tensor, types: tuple[ElementType, ...]) -> Tensor:
        """The tensor itself if it has one of the types, else as the first of them."""
        return tensor if tensor.elementType() in types else cast(self.graph, tensor, types[0], self.prog, self.debug)

    def _add(self) -> None:
        """A compute set of the sum, with what it reads apart from what it writes."""
        scales = {name: scale for name, scale in (("scaleA", self.scaleA), ("scaleB", self.scaleB)) if scale is not None}
        B = self._apart(self.B)
        edges = {name: self._apart(scale).reshape([]) for name, scale in scales.items() if isinstance(scale, Tensor)}
        values = self._numbers({name: scale for name, scale in scales.items() if not isinstance(scale, Tensor)})
        cs = self.graph.addComputeSet(self.debug)
        add_element_vertices(
            self.graph, cs, self._vertex(B, edges, values), "A", {"A": self.A, "B": B}, edges=edges, values=self._fields(values)
        )
        self.prog.add(Execute(cs))

    def _apart(self, tensor: Tensor) -> Tensor:
        return apart(self.graph, tensor, self.A, self.prog, f"{self.debug}/copy")

    def _numbers(self, scales: Mapping[str, float]) -> dict[str, float]:
        """Numbers as vertices take them: HALFs where they are as good, what is subtracted negative."""
        numbers = dict(scales)
        if self._takes_halves(numbers):
            numbers = {name: castToDeviceHalfValue(self.graph.getTarget(), scale) for name, scale in numbers.items()}
        if self.subtracts and "scaleB" in numbers:
            numbers["scaleB"] = -numbers["scaleB"]
        return numbers

    def _takes_halves(self, scales: Mapping[str, float]) -> bool:
        """Whether numbers are HALFs within the tolerance, where all else is HALF."""
        target = self.graph.getTarget()
        return self.A.elementType() is self.B.elementType() is HALF and all(
            checkAccuracyWhenCast(target, scale, FLOAT, HALF, self.tolerance) for scale in scales.values()
        )

    def _vertex(self, B: Tensor, edges: Mapping[str, Tensor], numbers: Mapping[str, float]) -> str:
        """The vertex type of codelets/popops_scaled_add.py."""
        data = self.A.elementType()
        if data not in REALS:
            name = "ScaledSubtractInteger" if edges and self.subtracts else "ScaledAddInteger"
            return templateVertex(f"popops::{name}Tensor" if edges else f"popops::{name}", data)
        scale = edges["scaleB"].elementType() if edges else HALF if self._takes_halves(numbers) else FLOAT
        if self.scaleA is None:
            name = "ScaledSubtract" if edges and self.subtracts else "ScaledAdd"
            types = (scale,) if edges else ()
        else:
            name = "XMinusaXPlusbY" if self.shrinks else "aXMinusbY" if edges and self.subtracts else "aXPlusbY"
            types = (scale,)
        return templateVertex(f"popops::{name}Tensor" if edges else f"popops::{name}", data, B.elementType(), *types)

    def _fields(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """The plain fields: a number that B alone is scaled by is called `scale`."""
        if self.A.elementType() is UNSIGNED_INT:
            numbers = {name: int(number) % 2**32 for name, number in numbers.items()}
        return {"scale": numbers["scaleB"]} if numbers and self.scaleA is None else dict(numbers)


def _tolerance(call: str, options: Mapping[str, object] | None) -> float:
    tolerance = float(read_options(call, options, OPTIONS).get("scaleFloatToHalfTolerance", TOLERANCE))
    if not tolerance >= 0:
        raise PoplibsError(f"{call}: the option 'scaleFloatToHalfTolerance' is 0 at least, got {tolerance}")
    return tolerance


def _check_scale(call: str, name: str, scale: Scale, A: Tensor) -> None:
    """`PoplibsError` for a scale of several elements or another type; `PoplarTypeError` for a number that A's type has not."""
    if isinstance(scale, Tensor):
        if scale.numElements() != 1 or scale.elementType() not in TYPES:
            raise PoplibsError(f"{call}: {name} is a number or a tensor of one element, {_names(TYPES)}, got {scale!r}")
        return
    check_float(call, name, scale)
    if A.elementType() not in REALS:
        whole = int(scale) if math.isfinite(scale) and scale == int(scale) else scale
        values_of(A.elementType(), whole, 1, f"{name} of {call}")


def _names(types: tuple[ElementType, ...]) -> str:
    names = [type.__name__ for type in types]
    return f"{', '.join(names[:-1])} or {names[-1]}"
