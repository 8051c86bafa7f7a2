"""What the compiler reads of a graph: flat arrays, no Python object per vertex, edge or element.

Every element of every variable and constant has a number, its *element id*: a variable's elements are consecutive, in row-major
order, from ``first[variable]``. A view is a list of *runs* of element ids: ``start + k * step`` for ``k < count``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import AnyArray, Bools, Int16s, Int32s, Int64s, UInt64s
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.ir.terms import Location
from pypoplar.types import ElementType


@frozen(eq=False)
class ElementRuns:
    """Element ids of a view in flattened order. A run of one element has step 1; a broadcast one has step 0."""

    start: Int64s
    count: Int64s
    step: Int64s

    def elements(self) -> int:
        """How many elements all runs have together."""
        return int(self.count.sum())

    def stretches(self) -> int:
        """In how many stretches of memory the elements lie, if those of different runs are apart."""
        return int(np.where(self.step == 1, 1, self.count).sum())


@frozen(eq=False)
class FrozenVariables:
    """The variables of a graph; elements are numbered over all of them."""

    names: tuple[str, ...]
    types: tuple[ElementType, ...]
    shapes: tuple[tuple[int, ...], ...]
    locations: tuple[Location, ...]
    first: Int64s  # [variables + 1]: element id of each variable's first element; the last entry is the total
    constants: dict[int, AnyArray]  # variable number -> its values (flat, of the type's dtype)
    initial: tuple[tuple[ElementRuns, AnyArray], ...]  # setInitialValue of tensors, in order of the calls


@frozen(eq=False)
class FrozenMapping:
    """Which tile holds which elements: sorted disjoint intervals of element ids, merged where they touch."""

    begin: Int64s
    end: Int64s
    tile: Int64s


@frozen(eq=False)
class FrozenVertices:
    """The vertices of a graph, a row each."""

    codelet: Int32s  # index into FrozenGraph.codelets
    compute_set: Int32s
    tile: Int32s  # -1 where no tile was given
    location: Int32s  # index into FrozenGraph.locations


@frozen(eq=False)
class FrozenEdges:
    """One entry per connected field, or per connected row of a list field. Sorted by vertex, field, row."""

    vertex: Int64s
    field: Int32s  # position in the codelet's fields
    row: Int32s  # 0 but for lists
    type: Int16s  # index into pypoplar.types.SUPPORTED: the type of the connected tensor
    first_run: Int64s  # [edges + 1]: an edge's runs are first_run[e] to first_run[e + 1]
    run_start: Int64s
    run_count: Int64s
    run_step: Int64s
    no_rows: Int64s  # [lists, 2]: vertex and field of list fields connected to no rows, which have no edge


@frozen(eq=False)
class FrozenState:
    """Values and defaults of plain fields. Scalars as raw 8-byte little-endian bits of the field's type, vectors as arrays."""

    vertex: Int64s
    field: Int32s
    bits: UInt64s
    vectors: dict[tuple[int, int], AnyArray]  # (vertex, field) -> values


@frozen(eq=False)
class FrozenEstimates:
    """Worker cycles and flops of single vertices, from `setPerfEstimate` or an estimator."""

    vertex: Int64s
    cycles: Int64s
    flops: Int64s  # -1 where none were given
    by_estimator: Bools


@frozen(eq=False)
class FrozenGraph:
    """All that the compiler knows of a graph, as arrays that no later change touches."""

    tiles: int
    variables: FrozenVariables
    mapping: FrozenMapping
    codelets: tuple[Codelet, ...]
    compute_sets: tuple[str, ...]  # debug names, unique
    compute_set_locations: tuple[Location, ...]  # where they were made
    vertices: FrozenVertices
    edges: FrozenEdges
    state: FrozenState
    estimated: Callable[[FrozenGraph], FrozenEstimates]
    locations: tuple[Location, ...]  # where vertices were added

    @cached_property
    def estimates(self) -> FrozenEstimates:
        """What the program's estimators say of vertices: they are asked when this is first wanted, as it takes time."""
        return self.estimated(self)

    @cached_property
    def analyses(self) -> dict[Hashable, Any]:
        """What `pypoplar.codelet.ir.kept_analyses` keeps of it."""
        return {}
