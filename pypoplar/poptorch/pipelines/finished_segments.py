"""How far a pipeline has come: which segments have been done how often, told from the steps that have been executed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as SequenceOf

from attrs import frozen

from pypoplar.executable.program_tree import ProgramTree


@frozen
class SegmentOfCycle:
    """A segment as a cycle has it: what its function is called by, and how many cycles behind the first segment it is."""

    name: str
    offset: int


@frozen
class NextSegment:
    """The segment that comes next, or goes on, and of which micro-batch of a call."""

    name: str
    batch: int


def next_segment(
    tree: ProgramTree, executions: Mapping[int, int], segments: SequenceOf[SegmentOfCycle], batches: int
) -> NextSegment | None:
    """What a call has come to by the executions of steps, by number; `segments` are those of a cycle, in its order.

    A step has so many `batches`. None where a segment ends with what is not one step, so that nobody can tell.
    """
    last = _last_steps(tree)
    found = []
    for place, segment in enumerate(segments):
        step = last.get(segment.name)
        if step is None:
            return None
        done = executions.get(step, 0)
        found.append((done // batches, done % batches + segment.offset, place, NextSegment(segment.name, done)))
    return min(found, key=lambda one: one[:3])[-1] if found else None


def _last_steps(tree: ProgramTree) -> dict[str, int | None]:
    """By the name of a call: the step with which its function ends; None where it ends with something else."""
    return {tree.name[node]: _last_step(tree, node) for node in _nodes(tree, "Call")}


def _nodes(tree: ProgramTree, type: str) -> Iterable[int]:
    return (node for node in range(len(tree)) if tree.type[node] == type)


def _last_step(tree: ProgramTree, node: int) -> int | None:
    while tree.type[node] in ("Call", "Sequence") and len(children := tree.children(node)):
        if tree.type[node] == "Call" and len(children) > 1:
            return None
        node = int(children[-1])
        if tree.type[node] == "Call":
            return None
    step = int(tree.step[node])
    return step if step >= 0 else None
