"""What each of several programs does to the variables of a graph: what it finds in them, and what it leaves there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.compiler.check.connected_regions import Regions, collect_regions
from pypoplar.compiler.control.operation_tree import Access, Block, Choice, Group, Invoke, Line, Loop, OperationTree
from pypoplar.compiler.control.program_walk import operation_tree
from pypoplar.compiler.control.stackless import answer
from pypoplar.compiler.control.usage import find_usage
from pypoplar.compiler.field_table import OUTPUT
from pypoplar.compiler.liveness.atoms import KINDS, READ, Atoms, find_atoms
from pypoplar.compiler.liveness.liveness import AtomFlow, full_edges
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
    regions: Regions
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
    regions = collect_regions(frozen, find_usage(tree, []).compute_sets)
    owner = regions.strands.owner
    variable = np.searchsorted(frozen.variables.first, regions.strands.begin, "right") - 1
    compute_set = frozen.vertices.compute_set[regions.vertex][owner].astype(np.int64)
    of_sets = []
    for chosen in (regions.fields.access[regions.entry][owner] != OUTPUT, regions.written):
        by_set: dict[int, set[int]] = defaultdict(set)
        pairs = np.unique(np.stack((compute_set[chosen], variable[chosen])), axis=1)
        for one, number in zip(*pairs.tolist(), strict=True):
            by_set[one].add(number)
        of_sets.append(by_set)
    touched = []
    for block in tree.programs():
        found: tuple[set[int], set[int]] = set(), set()
        for access in _accesses(tree, block):
            for numbers, by_set, tensors in zip(found, of_sets, (access.reads, access.writes), strict=True):
                numbers |= by_set.get(access.compute_set, set())
                numbers |= {number for tensor in tensors for number in tensor.variable_numbers()}
        touched.append(Touched(frozenset(found[0]), frozenset(found[1])))
    return touched


def block_effects(graph: Graph, frozen: FrozenGraph, programs: Sequence[Program]) -> BlockEffects:
    """What programs of a graph do, which has been frozen as it is. Constants are nothing that they do something to."""
    workers = graph.replicas().tiles.target.getNumWorkerContexts()
    tree = operation_tree(programs, graph)
    usage = find_usage(tree, [])
    regions = collect_regions(frozen, usage.compute_sets)
    constant = np.zeros(len(frozen.variables.names), bool)
    constant[list(frozen.variables.constants)] = True
    full = full_edges(frozen, workers, regions)
    surely, probably = (
        _effects(tree, find_atoms(frozen, tree.accesses, regions, of, constant), len(constant)) for of in (full, np.ones_like(full))
    )
    accesses = tuple(tuple(_accesses(tree, block)) for block in tree.programs())
    return BlockEffects(frozen, regions, surely, probably, accesses)


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
