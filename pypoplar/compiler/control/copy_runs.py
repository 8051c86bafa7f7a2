"""Runs of copies: those that follow each other with nothing between that acts."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from itertools import chain, groupby

from attrs import frozen

from pypoplar.compiler.control.operation_tree import Choice, Group, Line, Loop, Operation, OperationTree, Perform
from pypoplar.graph.host_links import DataStream, RemoteBuffer
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import Program
from pypoplar.program.copying import Copy
from pypoplar.program.sequence import Sequence


class CopyKind(Enum):
    """Between what a Copy goes."""

    TENSORS = auto()
    STREAM_IN = auto()
    STREAM_OUT = auto()
    REMOTE = auto()  # a remote buffer and a tensor


@frozen(eq=False)
class PlacedCopy:
    """A Copy at one of the places where it stands."""

    copy: Copy
    position: int  # of the operation tree


@frozen(eq=False)
class CopyRun:
    """Copies of one kind, right after each other in program order."""

    kind: CopyKind
    copies: tuple[PlacedCopy, ...]


def copy_kind(program: Program) -> CopyKind | None:
    """Between what a Copy goes; None for what is none. What is made of Copy means else."""
    if type(program) is not Copy:
        return None
    match program.source, program.destination:
        case Tensor(), Tensor():
            return CopyKind.TENSORS
        case DataStream(), Tensor():
            return CopyKind.STREAM_IN
        case Tensor(), DataStream():
            return CopyKind.STREAM_OUT
        case (RemoteBuffer(), Tensor()) | (Tensor(), RemoteBuffer()):
            return CopyKind.REMOTE
        case _:
            return None


def copy_runs(tree: OperationTree) -> list[CopyRun]:
    """All copies of some programs and their functions, in runs, by position.

    Sequences within each other are one row of programs. A run ends where a loop, branch, call or other program stands.
    """
    runs: list[CopyRun] = []
    pending = [block.line for block in tree.blocks.values()]
    while pending:
        line = pending.pop()
        for kind, operations in groupby(_in_turn(line), _kind):
            if kind is None:
                inner = (operation.parts for operation in operations if isinstance(operation, Group | Loop | Choice))
                pending.extend(chain.from_iterable(inner))
            else:
                runs.append(CopyRun(kind, tuple(_placed(operation) for operation in operations)))
    return sorted(runs, key=lambda run: run.copies[0].position)


def _kind(operation: Operation) -> CopyKind | None:
    return copy_kind(operation.program) if isinstance(operation, Perform) else None


def _placed(operation: Operation) -> PlacedCopy:
    assert isinstance(operation, Perform)
    assert isinstance(operation.program, Copy)
    return PlacedCopy(operation.program, operation.position)


def _in_turn(line: Line) -> Iterator[Operation]:
    """The operations of a line and of the sequences in it, in order. What is made of Sequence may have a rule that acts."""
    unfinished = [iter(line.operations)]
    while unfinished:
        for operation in unfinished[-1]:
            if isinstance(operation, Group) and type(operation.program) is Sequence:
                unfinished.append(chain.from_iterable(part.operations for part in operation.parts))
                break
            yield operation
        else:
            unfinished.pop()
