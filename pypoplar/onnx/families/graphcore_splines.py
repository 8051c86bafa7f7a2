"""Operators of Graphcore's domain, ``ai.graphcore``, of splines: B-splines over the edges of graphs, and sums by them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pypoplar.onnx.families.graphcore_nodes import DOMAIN
from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import operator

BASES: dict[int, tuple[Callable[[Tensor], Tensor], ...]] = {
    1: (lambda v: 1 - v, lambda v: v),
    2: (lambda v: 0.5 * v * v - v + 0.5, lambda v: -v * v + v + 0.5, lambda v: 0.5 * v * v),
    3: (
        lambda v: (1 - v) * (1 - v) * (1 - v) / 6,
        lambda v: (3 * v * v * v - 6 * v * v + 4) / 6,
        lambda v: (-3 * v * v * v + 3 * v * v + 3 * v + 1) / 6,
        lambda v: v * v * v / 6,
    ),
}
"""The pieces of a B-spline of each degree, by how far a place is behind a knot."""


@operator("SplineBasis", domain=DOMAIN, attributes=("degree",), operands=(3, 3))
def spline_basis(op: NodeCall, pseudo: Tensor) -> tuple[Tensor, Tensor]:
    """What the pieces of B-splines are at places [edges, axes] from 0 to 1, and the number of the kernel's weight for each."""
    degree = op.attribute("degree", 0)
    if degree not in BASES:
        raise op.error(f"degree is 1, 2 or 3, got {degree}")
    sizes, opened = op.ints(1) or [], op.ints(2) or []
    if pseudo.dim() != 2 or not len(sizes) == len(opened) == pseudo.shape[1]:
        raise op.error(
            f"places are [edges, axes], and kernel_size and is_open_spline have a number for each axis; got {list(pseudo.shape)}, "
            f"{sizes} and {opened}"
        )
    bases, numbers = [], []
    for piece in range((degree + 1) ** len(sizes)):
        basis, number, stride, rest = None, None, 1, piece
        for axis, (size, is_open) in enumerate(zip(sizes, opened, strict=True)):
            rest, part = divmod(rest, degree + 1)
            place = pseudo[:, axis] * float(size - degree * is_open)
            knot = torch.floor(place)
            factor = BASES[degree][part](place - knot)
            index = torch.remainder(knot.to(torch.int32) + part, size) * stride
            basis = factor if basis is None else basis * factor
            number = index if number is None else number + index
            stride *= size
        assert basis is not None
        assert number is not None
        bases.append(basis)
        numbers.append(number)
    return torch.stack(bases, 1), torch.stack(numbers, 1).to(torch.int32)


@operator("SplineWeighting", domain=DOMAIN, attributes=())
def spline_weighting(op: NodeCall, x: Tensor, weight: Tensor, basis: Tensor, index: Tensor) -> Tensor:
    """Features [edges, in] times the weights [kernel, in, out] that an index [edges, pieces] names, each by its basis."""
    if x.dim() != 2 or weight.dim() != 3 or basis.dim() != 2 or basis.shape != index.shape or weight.shape[1] != x.shape[1]:
        raise op.error(
            f"it takes [edges, in], [kernel, in, out] and twice [edges, pieces], got {list(x.shape)}, {list(weight.shape)}, "
            f"{list(basis.shape)} and {list(index.shape)}"
        )
    edges, pieces = basis.shape
    chosen = torch.index_select(weight, 0, index.reshape(-1)).reshape(edges, pieces * weight.shape[1], weight.shape[2])
    scaled = (basis.unsqueeze(2) * x.unsqueeze(1)).reshape(edges, 1, -1)
    return torch.matmul(scaled, chosen).squeeze(1)
