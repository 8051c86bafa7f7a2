"""Divides the variables into atoms: sets of elements that every access of the programs treats alike.

A compute set, or a program with tensors, is an *access*: it reads some elements, and then it writes some. Elements of a variable
that the same accesses read and the same accesses write are of one atom. So what is true of an atom is true of each of its elements,
and slices that are written one by one define their variable when the last one is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import distinct, ragged
from pypoplar.arrays.interval_algebra import keys, overlay, touched_strands, union
from pypoplar.arrays.splitmix import splitmix64
from pypoplar.compiler.check.connected_regions import Regions
from pypoplar.compiler.control.operation_tree import NO_COMPUTE_SET, Access
from pypoplar.compiler.control.view_runs import ViewRuns
from pypoplar.compiler.field_table import OUTPUT
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.tensor import Tensor

READ, WRITE, TOUCH = 0, 1, 2
"""What is done to elements: a touch writes some elements of a variable that is not divided, and defines none."""
KINDS = 3
AT_ONCE = 1 << 22  # strands
MOST_PARTS = 1 << 20  # of a variable, over all accesses: one that is cut more finely than that is not divided


@frozen(eq=False)
class Atoms:
    """Entries `first[k]` to `first[k + 1]` of `atom` are those that list k names; list ``KINDS * access + kind``."""

    variable: Int64s  # [atoms]
    first: Int64s  # [lists + 1]
    atom: Int64s


@frozen(eq=False)
class Stretches:
    """Elements by list, sorted by list and element; a list names no element twice."""

    list: Int64s
    begin: Int64s  # element ids
    end: Int64s


def find_atoms(graph: FrozenGraph, accesses: Sequence[Access], regions: Regions, full: Bools, fixed: Bools) -> Atoms:
    """The atoms of all variables but the `fixed` ones (bool per variable).

    `full`: bool, the edges of `regions` to which a vertex writes all elements.
    """
    first = graph.variables.first.astype(np.int64)
    elements = int(first[-1])
    stretches = _joined([_of_compute_sets(accesses, regions, graph, full), *_of_tensors(accesses, elements)], elements)
    parts = overlay(stretches.begin, stretches.end, first[:-1], first[1:])
    kept = ~fixed[parts.right] & (parts.begin < parts.end)
    stretches = Stretches(stretches.list[parts.left[kept]], parts.begin[kept], parts.end[kept])
    variable = parts.right[kept]
    fine = _too_fine(stretches, variable, first)
    if fine.any():
        stretches, variable = _undivided(stretches, variable, first, fine)
    return _divided(stretches, variable, first, len(accesses))


def _of_compute_sets(accesses: Sequence[Access], regions: Regions, graph: FrozenGraph, full: Bools) -> Stretches:
    """What the vertices of each compute set read and write."""
    number = np.full(len(graph.compute_sets), -1)
    for access, happening in enumerate(accesses):
        if happening.compute_set != NO_COMPUTE_SET:
            number[happening.compute_set] = access
    reads = (regions.fields.access[regions.entry] != OUTPUT) | ~full
    stretches = []
    for what, chosen in ((READ, reads[regions.strands.owner]), (WRITE, regions.written)):
        begin, end = _union_of(regions, chosen)
        compute_set = begin // regions.span
        start = compute_set * regions.span
        stretches.append(Stretches(number[compute_set] * KINDS + what, begin - start, end - start))
    return _appended(stretches)


def _union_of(regions: Regions, chosen: Bools) -> tuple[Int64s, Int64s]:
    """The keys that the chosen strands cover. Many are looked at part by part: what many vertices read is there once afterwards."""
    begins, ends = [], []
    for first in range(0, max(len(chosen), 1), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        own = chosen[part]
        key, length = regions.key[part], regions.strands.length[part]
        if not bool(own.all()):
            key, length = key[own], length[own]
        begin, end = union(key, key + length)
        begins.append(begin)
        ends.append(end)
    return (begins[0], ends[0]) if len(begins) == 1 else union(np.concatenate(begins), np.concatenate(ends))


def _of_tensors(accesses: Sequence[Access], elements: int) -> Iterator[Stretches]:
    """What programs read and write by themselves: of a few accesses at a time, whose views may come element by element."""
    lists: list[int] = []
    views: list[Tensor] = []
    waiting = 0  # elements
    for access, happening in enumerate(accesses):
        for what, tensors in ((READ, happening.reads), (WRITE, happening.writes)):
            for tensor in tensors:
                lists.append(access * KINDS + what)
                views.append(tensor)
                waiting += tensor.numElements()
        if waiting >= AT_ONCE:
            yield _of_views(lists, views, elements)
            lists, views, waiting = [], [], 0
    yield _of_views(lists, views, elements)


def _of_views(lists: list[int], views: list[Tensor], elements: int) -> Stretches:
    """What is read and written there, each element once."""
    runs = ViewRuns.of(views)
    strands = touched_strands(np.array(lists, np.int64)[runs.view], runs.start, runs.count, runs.step)
    return _joined([Stretches(strands.owner, strands.begin, strands.begin + strands.length)], elements)


def _appended(pieces: list[Stretches]) -> Stretches:
    return Stretches(*(np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("list", "begin", "end")))


def _joined(pieces: list[Stretches], elements: int) -> Stretches:
    whole = _appended(pieces)
    key = keys(whole.list, whole.begin, elements + 1)
    begin, end = union(key, key + (whole.end - whole.begin))
    lists = begin // (elements + 1)
    start = lists * (elements + 1)
    return Stretches(lists, begin - start, end - start)


def _cuts(stretches: Stretches, first: Int64s) -> Int64s:
    """Where an access begins or ends to treat elements otherwise, or a variable begins."""
    return distinct(np.concatenate((stretches.begin, stretches.end, first)))


def _too_fine(stretches: Stretches, variable: Int64s, first: Int64s) -> Bools:
    """bool [variables]: cut into so many parts by so many accesses that looking at each would take long."""
    cuts = _cuts(stretches, first)
    parts = np.searchsorted(cuts, stretches.end) - np.searchsorted(cuts, stretches.begin)
    fine: Bools = np.bincount(variable, parts, len(first) - 1) > MOST_PARTS
    return fine


def _undivided(stretches: Stretches, variable: Int64s, first: Int64s, fine: Bools) -> tuple[Stretches, Int64s]:
    """Look at the `fine` variables as a whole: reading a part reads all, and only what writes all at once defines it."""
    begin, end = first[variable], first[variable + 1]
    undivided = fine[variable]
    part = undivided & (stretches.list % KINDS == WRITE) & ((stretches.begin > begin) | (stretches.end < end))
    lists = np.where(part, stretches.list - WRITE + TOUCH, stretches.list)
    whole = Stretches(lists, np.where(undivided, begin, stretches.begin), np.where(undivided, end, stretches.end))
    once = np.unique(np.stack((whole.list, whole.begin, whole.end, variable)), axis=1)
    return Stretches(*once[:3]), once[3]


def _divided(stretches: Stretches, variable: Int64s, first: Int64s, accesses: int) -> Atoms:
    """Elements whose lists have the same sum of random numbers are of one atom."""
    cuts = _cuts(stretches, first)
    begin, end = np.searchsorted(cuts, stretches.begin), np.searchsorted(cuts, stretches.end)
    change = np.zeros(len(cuts) + 1, np.uint64)
    number = splitmix64(stretches.list.astype(np.uint64))
    np.add.at(change, begin, number)
    np.subtract.at(change, end, number)
    signature = np.cumsum(change)[: len(cuts)]
    of = np.clip(np.searchsorted(first, cuts, "right") - 1, 0, max(len(first) - 2, 0))
    _, alike = np.unique(signature, return_inverse=True)
    pairs, atom = np.unique(of * (int(alike.max(initial=0)) + 1) + alike, return_inverse=True)
    atom_variable = np.zeros(len(pairs), np.int64)
    atom_variable[atom] = of

    count = end - begin
    key = distinct(np.repeat(stretches.list, count) * max(len(pairs), 1) + atom[ragged(begin, count)])
    lists = key // max(len(pairs), 1)
    return Atoms(atom_variable, np.searchsorted(lists, np.arange(accesses * KINDS + 1)), key - lists * max(len(pairs), 1))
