"""What the compiler reads of a graph: flat arrays, no Python object per vertex, edge or element.

Every element of every variable and constant has a number, its *element id*: a variable's elements are consecutive, in row-major
order, from ``first[variable]``. A view is a list of *runs* of element ids: ``start + k * step`` for ``k < count``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

from pypoplar.codelet.ir.typed import Location
from pypoplar.codelet.language.codelet import Codelet
from pypoplar.types import ElementType

Array = np.ndarray[Any, np.dtype[Any]]


@frozen(eq=False)
class Runs:
    """Element ids of a view in flattened order. A run of one element has step 1; a broadcast one has step 0."""

    start: Array  # int64
    count: Array  # int64
    step: Array  # int64

    def elements(self) -> int:
        return int(self.count.sum())


@frozen(eq=False)
class FrozenVariables:
    names: tuple[str, ...]
    types: tuple[ElementType, ...]
    shapes: tuple[tuple[int, ...], ...]
    locations: tuple[Location, ...]
    first: Array  # int64 [variables + 1]: element id of each variable's first element; the last entry is the total
    constants: dict[int, Array]  # variable number -> its values (flat, of the type's dtype)
    initial: tuple[tuple[Runs, Array], ...]  # setInitialValue of tensors, in order of the calls


@frozen(eq=False)
class FrozenMapping:
    """Which tile holds which elements: sorted disjoint intervals of element ids, merged where they touch."""

    begin: Array  # int64
    end: Array  # int64
    tile: Array  # int64


@frozen(eq=False)
class FrozenVertices:
    codelet: Array  # int32, index into FrozenGraph.codelets
    compute_set: Array  # int32
    tile: Array  # int32, -1 where no tile was given
    location: Array  # int32, index into FrozenGraph.locations


@frozen(eq=False)
class FrozenEdges:
    """One entry per connected field, or per connected row of a list field. Sorted by vertex, field, row."""

    vertex: Array  # int64
    field: Array  # int32, position in the codelet's fields
    row: Array  # int32, 0 but for lists
    type: Array  # int16, index into pypoplar.types.SUPPORTED: the type of the connected tensor
    first_run: Array  # int64 [edges + 1]: an edge's runs are first_run[e] to first_run[e + 1]
    run_start: Array  # int64
    run_count: Array  # int64
    run_step: Array  # int64


@frozen(eq=False)
class FrozenState:
    """Initial values of plain fields. Scalars as raw 8-byte little-endian bits of the field's type, vectors as arrays."""

    vertex: Array  # int64
    field: Array  # int32
    bits: Array  # uint64
    vectors: dict[tuple[int, int], Array]  # (vertex, field) -> values


@frozen(eq=False)
class FrozenEstimates:
    """Worker cycles and flops of single vertices, from `setPerfEstimate` or an estimator."""

    vertex: Array  # int64
    cycles: Array  # int64
    flops: Array  # int64, -1 where none were given
    by_estimator: Array  # bool


@frozen(eq=False)
class FrozenGraph:
    tiles: int
    variables: FrozenVariables
    mapping: FrozenMapping
    codelets: tuple[Codelet, ...]
    compute_sets: tuple[str, ...]  # debug names, unique
    compute_set_locations: tuple[Location, ...]
    vertices: FrozenVertices
    edges: FrozenEdges
    state: FrozenState
    estimates: FrozenEstimates
    locations: tuple[Location, ...]  # where vertices were added
