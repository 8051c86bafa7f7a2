"""What a stage computes again before its gradients, from what has come into it, so that no stash has it meanwhile."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf

from attrs import frozen

from pypoplar.compiler.liveness.block_effects import Touched, touched_variables
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.graph import Graph
from pypoplar.graph.host_links import HostFunction
from pypoplar.program import Call
from pypoplar.program.base import Program


@frozen
class KeptVariables:
    """Variables, by number, that are put aside beside the inputs of a stage; and those that alone are made again, if not all."""

    tensors: frozenset[int] = frozenset()
    again: frozenset[int] | None = None


def steps_again(
    graph: Graph,
    frozen: FrozenGraph,
    forward: SequenceOf[Program],
    backward: SequenceOf[Program],
    kept: frozenset[int],
    chosen: KeptVariables,
) -> list[Program]:
    """The steps of a stage forward that make again what its steps backward read.

    What functions of the host give is made once, and so are the variables that are `chosen`, and what comes from variables
    that are `kept` from one micro-batch to the next and change: that is put aside. So is what it makes together with others.
    """
    touched = touched_variables(graph, frozen, [*forward, *backward])
    own, behind = touched[: len(forward)], touched[len(forward) :]
    once = _once(forward, own, kept) | _beside(own, chosen)
    if chosen.again is None:
        once |= {n for n, one in enumerate(own) if one.written & chosen.tensors}
    needed = frozenset(variable for one in behind for variable in one.read)
    while True:
        again = _needed(own, once, needed)
        fresh = _torn(own, once, again)
        if not fresh:
            return [forward[number] for number in again]
        once |= fresh


def done_once(
    graph: Graph, frozen: FrozenGraph, forward: SequenceOf[Program], kept: frozenset[int], chosen: KeptVariables
) -> set[int]:
    """The steps, by number, that are not done again.

    These are functions of the host, what has to do with what changes and is `kept`, and all beside what is `chosen`.
    """
    own = touched_variables(graph, frozen, forward)
    return _once(forward, own, kept) | _beside(own, chosen)


def _beside(own: SequenceOf[Touched], chosen: KeptVariables) -> set[int]:
    """The steps, by number, that make nothing of what alone is made again, and nothing that it is made of and is not put aside."""
    if chosen.again is None:
        return set()
    making, wanted = set[int](), set(chosen.again)
    for number in reversed(range(len(own))):
        if own[number].written & wanted:
            making.add(number)
            wanted |= own[number].read - chosen.tensors
    return set(range(len(own))) - making


def _once(forward: SequenceOf[Program], own: SequenceOf[Touched], kept: frozenset[int]) -> set[int]:
    changed = {variable for one in own for variable in one.written & kept}
    return {n for n, step in enumerate(forward) if _calls_host(step) or (own[n].read | own[n].written) & changed}


def _calls_host(step: Program) -> bool:
    pending = [step]
    while pending:
        inner = pending.pop()
        if isinstance(inner, Call) and isinstance(inner.function, HostFunction):
            return True
        pending += [one for one in inner.runs() if isinstance(one, Program)]
    return False


def _needed(own: SequenceOf[Touched], once: set[int], needed: frozenset[int]) -> list[int]:
    """The steps, by number, that make variables, and what these are made of; but for those that are done once."""
    found, wanted = list[int](), set(needed)
    for number in reversed(range(len(own))):
        if number not in once and own[number].written & wanted:
            found.append(number)
            wanted |= own[number].read
    return found[::-1]


def _torn(own: SequenceOf[Touched], once: set[int], again: SequenceOf[int]) -> set[int]:
    """The steps that write to what a step that is done once writes, too, or that read of it what is there no longer at the end."""
    written: dict[int, int] = {}  # by variable: the last step that is done once and writes to it
    for number in once:
        for variable in own[number].written:
            written[variable] = max(written.get(variable, -1), number)
    return {
        number
        for number in again
        if any(variable in written for variable in own[number].written)
        or any(written.get(variable, -1) > number for variable in own[number].read)
    }
