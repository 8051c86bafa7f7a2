"""Tensors whose neighbours in one dimension lie together, as tensors whose neighbours in another do."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from math import gcd
from typing import overload

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import distinct
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.popops.rearrange.transpose_calls import (
    MAX_STRIDE,
    TRANSPOSABLE,
    getMinimumRegroupGrainSize,
    negative_stride,
    partialTranspose,
)
from pypoplar.poputil.arguments import (
    check_call,
    check_codelet,
    check_compute_set,
    check_operands,
    check_own,
    dimension_of,
    whole_number,
)
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import fits, overloaded
from pypoplar.poputil.placement.tiles_of_elements import place_on, tiles_of_elements
from pypoplar.poputil.structure.groupings import GroupingInfo, detectDimGroupings
from pypoplar.poputil.tile_mapping import chooseMappingOffset
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy, Execute, Sequence
from pypoplar.tracebacks import public


@overload
def regroupTensor(
    graph: Graph,
    t: Tensor,
    copies: Sequence,
    transposeCS: ComputeSet,
    from_: GroupingInfo,
    to: GroupingInfo,
    debugContext: str | None = None,
) -> Tensor: ...
@overload
def regroupTensor(
    graph: Graph,
    t: Tensor,
    copies: list[Copy],
    transposeCS: ComputeSet,
    from_: GroupingInfo,
    to: GroupingInfo,
    debugContext: str | None = None,
) -> Tensor: ...
@overloaded("popops.rearrange.regroupTensor")
def regroupTensor(
    graph: Graph,
    t: Tensor,
    copies: Sequence | list[Copy],
    transposeCS: ComputeSet,
    from_: GroupingInfo,
    to: GroupingInfo,
    debugContext: str | None = None,
) -> Tensor:
    """`t` in other memory, in which its elements lie in groups of another dimension.

    Groups may be cut into smaller ones to use more tiles. A vector, or a tensor without elements, is given back as it is.

    Parameters
    ----------
    t:
        A tensor of elements of 16 or 32 bits.
    copies:
        What is copied before goes into this Sequence or list.
    transposeCS:
        The vertices go into this compute set, which the caller executes behind the copies.
    from_:
        The groups of `t`: a pair of a dimension and a size, as `poputil.detectDimGroupings` gives them.
    to:
        The groups of the result, another dimension.

    Returns
    -------
    Tensor
        Of the shape and type of `t`.

    Raises
    ------
    PoplibsError
        For groups that do not divide their dimension, for two of one dimension, and for other types.
    PoplarIndexError
        For a dimension that `t` does not have.
    InvalidTileMapping
        If an element of `t` has no tile.
    """
    call = "popops.rearrange.regroupTensor"
    check_own(call, graph, t)
    source, wanted = _grouping(call, t, "from_", from_), _grouping(call, t, "to", to)
    if t.rank() <= 1 or t.numElements() == 0:
        return t
    if t.elementType() not in TRANSPOSABLE:
        raise PoplibsError(f"{call} transposes elements of 16 and 32 bits, got {t!r}")
    check_operands(call, graph, t)
    check_compute_set(call, graph, transposeCS)
    if source[0] == wanted[0]:
        raise PoplibsError(f"{call} takes groups of two dimensions, got {from_!r} and {to!r}")
    return _regrouped(graph, t, copies, transposeCS, source, wanted, debugContext)


def _grouping(call: str, t: Tensor, name: str, grouping: GroupingInfo) -> GroupingInfo:
    if not fits(grouping, SequenceOf[int]) or len(grouping) != 2:
        raise PoplarTypeError(f"{call}: {name} is a pair of a dimension and the size of its groups, got {grouping!r}; write (1, 8)")
    dimension, size = dimension_of(call, f"the dimension of {name}", t, grouping[0]), whole_number(call, "a group", grouping[1], 1)
    if t.dim(dimension) % size:
        raise PoplibsError(f"{call}: groups of {size} do not divide dimension {dimension} of {t!r}")
    return dimension, size


def _regrouped(
    graph: Graph,
    t: Tensor,
    copies: Sequence | list[Copy],
    transposeCS: ComputeSet,
    source: GroupingInfo,
    wanted: GroupingInfo,
    debugContext: str | None,
) -> Tensor:
    debug = below(debugContext, "regroup")
    source, wanted = updated_groupings(graph, t, source, wanted)
    grouped = grouped_by(t, wanted, source)
    tiles = _tiles_of_matrices(graph, _matrices(grouped)[:, 0], t.shape())
    before = graph.addVariable(t.elementType(), grouped.shape(), below(debug, "preRegroup"))
    place_on(graph, _matrices(before), np.broadcast_to(tiles[:, None], _matrices(before).shape()))
    copy = Copy(grouped, before, debug)
    if isinstance(copies, Sequence):
        copies.add(copy)
    else:
        copies.append(copy)
    return ungrouped(partialTranspose(graph, before, transposeCS, debug), wanted, source)


def grouped_by(t: Tensor, first: GroupingInfo, second: GroupingInfo) -> Tensor:
    """The tensor with the groups of two dimensions as its last two dimensions."""
    for dimension, size in (first, second):
        t = t.reshapePartial(dimension, dimension + 1, [t.dim(dimension) // size, size]).dimRoll(dimension + 1, t.rank())
    return t


def ungrouped(t: Tensor, last: GroupingInfo, before: GroupingInfo) -> Tensor:
    """The opposite of `grouped_by`: the last dimension are the groups of `last`, the one before it those of `before`."""
    for dimension, _ in (last, before):
        t = t.dimRoll(t.rank() - 1, dimension + 1).flatten(dimension, dimension + 2)
    return t


def _matrices(grouped: Tensor) -> Tensor:
    size = grouped.dim(grouped.rank() - 2) * grouped.dim(grouped.rank() - 1)
    return grouped.reshape([grouped.numElements() // size, size])


def _tiles_of_matrices(graph: Graph, first: Tensor, shape: list[int]) -> Int64s:
    """Matrices spread over the tiles of the IPUs that have their first elements, from a tile that the shape decides on."""
    per_ipu = graph.getTarget().getTilesPerIPU()
    ipus = tiles_of_elements(graph, first) // per_ipu
    tiles = np.zeros(len(ipus), np.int64)
    start = chooseMappingOffset(per_ipu, shape)
    for ipu in distinct(ipus):
        own = np.flatnonzero(ipus == ipu)
        tiles[own] = ipu * per_ipu + (start + np.arange(len(own)) // ceiling(len(own), per_ipu)) % per_ipu
    return tiles


def _most_elements_of_an_ipu(graph: Graph, t: Tensor) -> int:
    target = graph.getTarget()
    if target.getNumIPUs() == 1:
        return t.numElements()
    ipus = tiles_of_elements(graph, t) // target.getTilesPerIPU()
    return int(np.bincount(ipus.reshape(-1)).max())


def updated_groupings(graph: Graph, t: Tensor, source: GroupingInfo, wanted: GroupingInfo) -> tuple[GroupingInfo, GroupingInfo]:
    """Groups cut into smaller ones where more, smaller matrices keep more tiles and workers busy."""
    target, grain = graph.getTarget(), getMinimumRegroupGrainSize(t.elementType())
    if source[1] % grain or wanted[1] % grain:
        return source, wanted
    size, tiles, workers = source[1] * wanted[1], target.getTilesPerIPU(), target.getNumWorkerContexts()
    matrices = ceiling(_most_elements_of_an_ipu(graph, t), size)
    blocks = size // (grain * grain)
    allowed = tiles * min(ceiling(negative_stride(max(source[1], wanted[1])), MAX_STRIDE), workers)
    factors = [factor for factor in range(1, blocks + 1) if blocks % factor == 0 and matrices * factor <= allowed] or [1]
    factor = min(factors, key=lambda number: blocks // number * ceiling(ceiling(matrices * number, tiles), workers))
    of_source = gcd(factor, source[1] // grain)
    of_wanted = gcd(factor // of_source, wanted[1] // grain)
    return (source[0], source[1] // of_source), (wanted[0], wanted[1] // of_wanted)


@public
def regroupIfPossible(graph: Graph, t: Tensor, prog: Sequence, to: GroupingInfo, debugContext: str | None = None) -> Tensor:
    """`t` in other memory, in which its elements lie in certain groups; or `t` as it is. `prog` is extended.

    It stays as it is where it is a vector, or grouped by that dimension already, or its groups are too small to be transposed
    well.

    Parameters
    ----------
    t:
        A tensor of elements of 16 or 32 bits.
    to:
        The groups that are wanted: a pair of a dimension and a size.

    Returns
    -------
    Tensor
        Of the shape and type of `t`, or `t`.

    Raises
    ------
    PoplibsError
        For groups that do not divide their dimension, and for other types.
    PoplarIndexError
        For a dimension that `t` does not have.
    """
    call = "popops.rearrange.regroupIfPossible"
    check_call(call, graph, prog, debugContext)
    check_own(call, graph, t)
    if t.rank() <= 1 or t.numElements() == 0:
        return t
    wanted = _grouping(call, t, "to", to)
    groupings = detectDimGroupings(graph, t)
    if not groupings or groupings[0][0] == wanted[0] or groupings[0][1] % getMinimumRegroupGrainSize(t.elementType()):
        return t
    return _executed(call, graph, t, prog, groupings[0], wanted, debugContext)


@overload
def regroupIfBeneficial(graph: Graph, in_: Tensor, ref: Tensor, prog: Sequence, debugContext: str | None = None) -> Tensor: ...
@overload
def regroupIfBeneficial(
    graph: Graph, in_: Tensor, ref: Tensor, copies: list[Copy], transposeCS: ComputeSet, debugContext: str | None = None
) -> Tensor: ...
@overload
def regroupIfBeneficial(
    graph: Graph, in_: Tensor, preferredGrouping: int, prog: Sequence, debugContext: str | None = None
) -> Tensor: ...
@overloaded("popops.rearrange.regroupIfBeneficial")
def regroupIfBeneficial(
    graph: Graph,
    in_: Tensor,
    ref: Tensor | None = None,
    preferredGrouping: int | None = None,
    prog: Sequence | None = None,
    copies: list[Copy] | None = None,
    transposeCS: ComputeSet | None = None,
    debugContext: str | None = None,
) -> Tensor:
    """`in_` in other memory if it is better so, in groups as those of another tensor or of the last dimension.

    `in_` stays as it is where it is grouped by that dimension, or groups are too small to be transposed well, and for types but
    those of 16 and 32 bits.

    Parameters
    ----------
    in_:
        The tensor that is regrouped.
    ref:
        A tensor of its shape, whose innermost groups are wanted.
    preferredGrouping:
        The size of groups of the last dimension, which they divide, instead.
    copies:
        A list that a copy goes into, instead of `prog`, which is extended.
    transposeCS:
        The vertices go into this compute set then, which the caller executes behind the copy.

    Returns
    -------
    Tensor
        Of the shape and type of `in_`, or `in_`.

    Raises
    ------
    PoplibsError
        If `ref` has another shape, and if groups do not divide the last dimension.
    """
    call = "popops.rearrange.regroupIfBeneficial"
    check_own(call, graph, in_, *(() if ref is None else (ref,)))
    if ref is not None and in_.shape() != ref.shape():
        raise PoplibsError(f"{call}: in_ and ref have one shape, got {in_!r} and {ref!r}")
    if ref is None and in_.rank():
        _grouping(call, in_, "preferredGrouping", (in_.rank() - 1, whole_number(call, "preferredGrouping", preferredGrouping, 1)))
    if in_.rank() <= 1 or in_.numElements() == 0 or in_.elementType() not in TRANSPOSABLE:
        return in_
    check_operands(call, graph, in_, *(() if ref is None else (ref,)))
    source = detectDimGroupings(graph, in_)
    wanted = [(in_.rank() - 1, preferredGrouping or 1)] if ref is None else detectDimGroupings(graph, ref)
    grain = getMinimumRegroupGrainSize(in_.elementType())
    if not source or not wanted or source[0][0] == wanted[0][0] or source[0][1] % grain or wanted[0][1] % grain:
        return in_
    if prog is not None:
        return _executed(call, graph, in_, prog, source[0], wanted[0], debugContext)
    assert copies is not None
    assert transposeCS is not None
    check_compute_set(call, graph, transposeCS)
    return _regrouped(graph, in_, copies, transposeCS, source[0], wanted[0], debugContext)


def _executed(
    call: str, graph: Graph, t: Tensor, prog: Sequence, source: GroupingInfo, wanted: GroupingInfo, debugContext: str | None
) -> Tensor:
    if t.elementType() not in TRANSPOSABLE:
        raise PoplibsError(f"{call} transposes elements of 16 and 32 bits, got {t!r}")
    check_operands(call, graph, t)
    check_codelet(call, graph, templateVertex("popops::Transpose1D", t.elementType()))
    cs = graph.addComputeSet(below(debugContext, "Transpose"))
    result = _regrouped(graph, t, prog, cs, source, wanted, debugContext)
    prog.add(Execute(cs))
    return result
