"""Checks of matrices and shapes, and views of matrices of any rank as groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil import arguments
from pypoplar.poputil.arguments import check_operands, check_own, element_type
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.types import FLOAT, HALF, ElementType


def check_real(call: str, type: ElementType) -> None:
    """`PoplibsError` for a type that is neither FLOAT nor HALF."""
    if element_type(call, type) not in (FLOAT, HALF):
        raise PoplibsError(f"{call} is for FLOAT and HALF, got {type!r}")


def check_matrix(call: str, graph: Graph, name: str, matrix: Tensor) -> None:
    """`PoplibsError` unless a tensor has FLOATs or HALFs, all of which have a tile, and its shape is [..., n, n]."""
    check_own(call, graph, **{name: matrix})
    if matrix.elementType() not in (FLOAT, HALF):
        raise PoplibsError(f"{call} is for FLOAT and HALF, got {matrix!r}")
    check_square(call, name, matrix.shape())
    check_operands(call, graph, **{name: matrix})


def check_square(call: str, name: str, shape: Sequence[int]) -> None:
    """`PoplibsError` unless the last two dimensions have one size."""
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise PoplibsError(f"{call}: {name} is [..., n, n] = {list(shape)}, and its last two dimensions have one size")


def shape_of(call: str, name: str, given: Iterable[int]) -> list[int]:
    """A shape that is an argument."""
    return list(arguments.shape_of(f"{name} of {call}", given))


def check_sides(call: str, a: Sequence[int], b: Sequence[int], left_side: bool) -> None:
    """`PoplibsError` unless a triangular system with matrices of these shapes has sides that fit."""
    check_square(call, "A", a)
    names = "[..., n, k]" if left_side else "[..., k, n]"
    fitting = len(a) == len(b) and list(a[:-2]) == list(b[:-2]) and b[-2 if left_side else -1] == a[-1]
    if not fitting:
        raise PoplibsError(f"{call}: A is [..., n, n] = {list(a)}, B is {names} = {list(b)}, and all but k have one size in both")


def grouped(shape: Sequence[int]) -> list[int]:
    """A shape with all dimensions but the last two as one."""
    return [prod(shape[:-2]), *shape[-2:]]
