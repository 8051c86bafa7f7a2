"""What each of several programs does to the variables of a graph: what it finds in them, and what it leaves there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import ragged
from pypoplar.arrays.interval_algebra import overlay, touched_strands, union
from pypoplar.compiler.check.connected_regions import collect_regions
from pypoplar.compiler.control.operation_tree import Access, Block, Choice, Group, Invoke, Line, Loop, OperationTree
from pypoplar.compiler.control.program_walk import operation_tree
from pypoplar.compiler.control.stackless import answer
from pypoplar.compiler.control.view_runs import ViewRuns
from pypoplar.compiler.field_table import INPUT, field_table
from pypoplar.compiler.liveness.atoms import KINDS, READ, Atoms, find_atoms
from pypoplar.compiler.liveness.liveness import AtomFlow, full_edges
from pypoplar.compiler.liveness.set_touches import touches_of_variables
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.graph import Graph
from pypoplar.program.base import Program


@frozen(eq=False)
class AtomEffects:
    """What programs, a row each, do to atoms, a column each. See `pypoplar.compiler.liveness.atoms`."""

    variable: Int64s  # of each atom
    finds: Bools  # [programs, atoms]: what was there before may be read
    defines: Bools  # [programs, atoms]: written whatever happens
    writes: Bools  # [programs, atoms]: may be written


@frozen(eq=False)
class BlockEffects:
    """What programs do to a graph.

    By `surely` an Output that a vertex may leave in part is found as well, by `probably` it is written in full.
    """

    frozen: FrozenGraph
    surely: AtomEffects
    probably: AtomEffects
    accesses: tuple[tuple[Access, ...], ...]  # of each program, with those of functions that it calls


@frozen
class Touched:
    """The variables, by number, of which a program may read something, and may write something."""

    read: frozenset[int]
    written: frozenset[int]


def touched_variables(graph: Graph, frozen: FrozenGraph, programs: Sequence[Program]) -> list[Touched]:
    """What each of many programs touches, variable by variable, which is told sooner than `block_effects`."""
    tree = operation_tree(programs, graph)
    return [_touched(frozen, _accesses(tree, block)) for block in tree.programs()]


def _touched(frozen: FrozenGraph, accesses: Iterable[Access]) -> Touched:
    of_sets = touches_of_variables(frozen)
    read, written = set[int](), set[int]()
    for access in accesses:
        for numbers, by_set, tensors in ((read, of_sets.read, access.reads), (written, of_sets.written, access.writes)):
            numbers |= by_set.get(access.compute_set, frozenset())
            numbers.update(*(tensor.variable_numbers() for tensor in tensors))
    return Touched(frozenset(read), frozenset(written))


def block_effects(graph: Graph, frozen: FrozenGraph, programs: Sequence[Program]) -> BlockEffects:
    """What programs of a graph do, which has been frozen as it is. Constants are nothing that they do something to."""
    tree = operation_tree(programs, graph)
    accesses = tuple(tuple(_accesses(tree, block)) for block in tree.programs())
    return BlockEffects(frozen, *_divided(graph, frozen, tree, _constants(frozen)), accesses)


def effects_on_each_other(graph: Graph, frozen: FrozenGraph, programs: Sequence[Program], initial: frozenset[int]) -> BlockEffects:
    """What programs do to variables that several of them touch and one of them writes. The others have no atom.

    A variable without an `initial` value that one program alone writes, all of it, is one atom, which that one defines and all
    others that read of it find: which parts they read makes no difference then, and most of what is read is looked at no closer.
    """
    tree = operation_tree(programs, graph)
    accesses = tuple(tuple(_accesses(tree, block)) for block in tree.programs())
    reads, writes = (np.zeros((len(programs), len(frozen.variables.names)), bool) for _ in range(2))
    for row, own in enumerate(accesses):
        touched = _touched(frozen, own)
        reads[row, list(touched.read)] = writes[row, list(touched.written)] = True
    shared = ((reads | writes).sum(0) > 1) & writes.any(0) & ~_constants(frozen)
    handed_on = shared & (writes.sum(0) == 1)
    handed_on[list(initial)] = False
    handed_on &= _written_whole(frozen, tree.accesses, handed_on)
    whole = np.flatnonzero(handed_on)
    reads, writes = reads[:, whole], writes[:, whole]
    simple = AtomEffects(whole, reads & ~writes, writes, writes)
    surely, probably = (_beside(simple, one) for one in _divided(graph, frozen, tree, ~shared | handed_on))
    return BlockEffects(frozen, surely, probably, accesses)


def _constants(frozen: FrozenGraph) -> Bools:
    constant = np.zeros(len(frozen.variables.names), bool)
    constant[list(frozen.variables.constants)] = True
    return constant


def _divided(graph: Graph, frozen: FrozenGraph, tree: OperationTree, fixed: Bools) -> tuple[AtomEffects, AtomEffects]:
    """What programs surely do, and probably, to the atoms of all variables but the `fixed` ones."""
    touched, others = touches_of_variables(frozen), set(np.flatnonzero(~fixed).tolist())
    sets = {access.compute_set for access in tree.accesses}
    chosen = [one for one in sorted(sets) if any(not others.isdisjoint(of.get(one, ())) for of in (touched.read, touched.written))]
    regions = collect_regions(frozen, chosen)
    full = full_edges(frozen, graph.replicas().tiles.target.getNumWorkerContexts(), regions)
    surely, probably = (
        _effects(tree, find_atoms(frozen, tree.accesses, regions, of, fixed), len(fixed)) for of in (full, np.ones_like(full))
    )
    return surely, probably


def _beside(first: AtomEffects, second: AtomEffects) -> AtomEffects:
    """What the same programs do to atoms of one kind, and of another."""
    tables = (np.concatenate((getattr(first, name), getattr(second, name)), axis=1) for name in ("finds", "defines", "writes"))
    return AtomEffects(np.concatenate((first.variable, second.variable)), *tables)


def _written_whole(frozen: FrozenGraph, accesses: Sequence[Access], variables: Bools) -> Bools:
    """bool [variables]: those of the `variables` of which every element may be written."""
    written, chosen = touches_of_variables(frozen).written, set(np.flatnonzero(variables).tolist())
    sets = np.zeros(len(frozen.compute_sets) + 1, bool)
    sets[[access.compute_set for access in accesses if not chosen.isdisjoint(written.get(access.compute_set, ()))]] = True
    edges, fields = frozen.edges, field_table(frozen)
    access = fields.access[fields.entries(frozen.vertices.codelet[edges.vertex], edges.field)]
    edge = np.flatnonzero(sets[frozen.vertices.compute_set[edges.vertex]] & (access != INPUT))
    count = edges.first_run[edge + 1] - edges.first_run[edge]
    run = ragged(edges.first_run[edge], count)
    views = [tensor for one in accesses for tensor in one.writes if not chosen.isdisjoint(tensor.variable_numbers())]
    runs = ViewRuns.of(views)
    found = [
        touched_strands(owner, *columns)
        for owner, *columns in (
            (np.repeat(edge, count), edges.run_start[run], edges.run_count[run], edges.run_step[run]),
            (runs.view, runs.start, runs.count, runs.step),
        )
    ]
    begin = np.concatenate([strands.begin for strands in found])
    begin, end = union(begin, begin + np.concatenate([strands.length for strands in found]))
    first = frozen.variables.first.astype(np.int64)
    parts = overlay(begin, end, first[:-1], first[1:])
    elements = np.zeros(len(variables), np.int64)
    np.add.at(elements, parts.right, parts.end - parts.begin)
    whole: Bools = variables & (elements == np.diff(first))
    return whole


def _effects(tree: OperationTree, atoms: Atoms, variables: int) -> AtomEffects:
    flow, blocks = AtomFlow(tree, atoms, variables), tree.programs()
    summaries = [answer(flow.summary(block.line)) for block in blocks]
    writes = np.zeros((len(blocks), len(atoms.variable)), bool)
    for row, block in zip(writes, blocks, strict=True):
        for one in _with_called(tree, block):
            events = slice(int(flow.first[one.begin]), int(flow.first[one.end]))
            row[flow.atom[events][flow.kind[events] % KINDS != READ]] = True
    finds, defines = (np.array([getattr(one, name) for one in summaries], bool) for name in ("use", "define"))
    shape = writes.shape
    return AtomEffects(atoms.variable, finds.reshape(shape), defines.reshape(shape), writes)


def _accesses(tree: OperationTree, block: Block) -> Iterator[Access]:
    """What happens in a block and in the functions that it calls."""
    for one in _with_called(tree, block):
        for position in range(one.begin, one.end):
            if position in tree.access_at:
                yield tree.accesses[tree.access_at[position]]


def _with_called(tree: OperationTree, block: Block) -> list[Block]:
    """A block and the functions that it calls, each once."""
    found = {block.name: block}
    unseen = [block]
    while unseen:
        for call in _calls(unseen.pop().line):
            called = tree.function(call.function)
            if called.name not in found:
                found[called.name] = called
                unseen.append(called)
    return list(found.values())


def _calls(line: Line) -> Iterator[Invoke]:
    lines = [line]
    while lines:
        for operation in lines.pop().operations:
            match operation:
                case Invoke():
                    yield operation
                case Group() | Loop() | Choice():
                    lines += operation.parts
