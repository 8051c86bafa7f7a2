"""What a user assumes of control that data decide, for engines that price programs without running them."""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any, TypeAlias

from attrs import field, frozen

from pypoplar.codelet.ir.terms import Location, line_text
from pypoplar.errors import ControlProgramError, PoplarTypeError
from pypoplar.graph.location import caller_location
from pypoplar.graph.operands import check_one_element
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import Program
from pypoplar.program.branches import If
from pypoplar.program.loops import RepeatWhileFalse, RepeatWhileTrue
from pypoplar.tracebacks import public

MOST_ROUNDS = 1 << 48  # what a decision of an executable can have


@frozen(eq=False)
class AssumedValue:
    """That a tensor has a value wherever a program asks for it; see `assume`."""

    tensor: Tensor
    value: int
    location: Location = field(factory=caller_location)

    def __str__(self) -> str:
        return f"assume({self.tensor.getDebugStr()}, {self.value}) at {line_text(self.location)}"


@frozen(eq=False)
class AssumedCount:
    """That a loop has so many rounds; see `assume_count`."""

    program: RepeatWhileTrue | RepeatWhileFalse
    count: int
    location: Location = field(factory=caller_location)

    def __str__(self) -> str:
        return f"assume_count({_named(self.program)}, {self.count}) at {line_text(self.location)}"


@frozen(eq=False)
class AssumedShare:
    """That an If takes its first branch so often; see `assume_share`."""

    program: If
    share: float
    location: Location = field(factory=caller_location)

    def __str__(self) -> str:
        return f"assume_share({_named(self.program)}, {self.share:g}) at {line_text(self.location)}"


Assumption: TypeAlias = AssumedValue | AssumedCount | AssumedShare


def _named(program: Program) -> str:
    return f"{type(program).__name__} {program.name!r}" if program.name else type(program).__name__


@public
def assume(tensor: Tensor, value: int | bool) -> AssumedValue:
    """For an engine with ``mode="cost"``: a tensor has this value wherever a program decides by it.

    Parameters
    ----------
    tensor:
        The predicate or index of an `If`, `Switch`, `RepeatWhileTrue`, `RepeatWhileFalse` or `AbortOnCondition`: one element.
    value:
        A whole number, True or False.

    Returns
    -------
    AssumedValue
        For the argument `assumptions` of `Engine` and of `predict`.

    Raises
    ------
    PoplarTypeError
        If it is no tensor, or the value no whole number.
    TensorShapeError
        If the tensor does not have one element.
    ControlProgramError
        If the tensor's type does not have the value.

    Examples
    --------
    >>> from pypoplar import BOOL, Engine, Graph, IPUModel, SyncType, assume
    >>> from pypoplar.program import If, Sequence, Sync
    >>> device = IPUModel("tiny").createDevice()
    >>> graph = Graph(device)
    >>> found = graph.addVariable(BOOL, [], "found")
    >>> graph.setTileMapping(found, 0)
    >>> choice = If(found, Sync(SyncType.INTERNAL), Sequence())
    >>> engine = Engine(graph, choice, mode="cost", assumptions=[assume(found, True)])
    >>> engine.loadAndRun(device)
    >>> engine.getReport().execution.totalCycles.total > 0
    True
    """
    check_one_element(tensor, "assume", None)
    try:
        whole = operator.index(value)
    except TypeError:
        raise PoplarTypeError(f"assume: expected a whole number, True or False, got {value!r}") from None
    least, most = tensor.elementType().limits
    if not least <= whole <= most:
        raise ControlProgramError(f"assume: {tensor._described()} has values from {least} to {most}, got {whole}")
    return AssumedValue(tensor, whole)


@public
def assume_count(program: RepeatWhileTrue | RepeatWhileFalse, count: int) -> AssumedCount:
    """For an engine with ``mode="cost"``: the body of a loop runs this often whenever a program comes to the loop.

    Parameters
    ----------
    program:
        A `RepeatWhileTrue` or `RepeatWhileFalse`.
    count:
        How often its body runs, 0 at least; what stands before its predicate runs once more.

    Returns
    -------
    AssumedCount
        For the argument `assumptions` of `Engine` and of `predict`.

    Raises
    ------
    PoplarTypeError
        If it is no such loop, or the count no whole number.
    ControlProgramError
        If the count is below 0, or above 2**48.
    """
    if not isinstance(program, RepeatWhileTrue | RepeatWhileFalse):
        raise PoplarTypeError(f"assume_count: expected a RepeatWhileTrue or RepeatWhileFalse, got {_kind(program)}")
    try:
        rounds = operator.index(count)
    except TypeError:
        raise PoplarTypeError(f"assume_count: expected a whole number, got {count!r}") from None
    if rounds < 0:
        raise ControlProgramError(f"assume_count: a loop has 0 rounds or more, got {rounds}")
    if rounds > MOST_ROUNDS:
        raise ControlProgramError(f"assume_count: a loop has {MOST_ROUNDS:,} rounds at most, got {rounds}")
    return AssumedCount(program, rounds)


@public
def assume_share(program: If, share: float) -> AssumedShare:
    """For an engine with ``mode="cost"``: this share of the times that a program comes to an `If`, it takes the first branch.

    Parameters
    ----------
    program:
        An `If`.
    share:
        0 to 1. Counts of steps are rounded to whole numbers, so a run that comes there too seldom for the share is refused: put it
        into a `Repeat`. A trace shows the branch that is taken more often.

    Returns
    -------
    AssumedShare
        For the argument `assumptions` of `Engine` and of `predict`.

    Raises
    ------
    PoplarTypeError
        If it is no `If`, or the share no number.
    ControlProgramError
        If the share is below 0 or above 1.
    """
    if not isinstance(program, If):
        raise PoplarTypeError(f"assume_share: expected an If, got {_kind(program)}")
    given: object = share  # NumPy's numbers are none of Python's
    if isinstance(given, bool) or not isinstance(given, Real):
        raise PoplarTypeError(f"assume_share: expected a number from 0 to 1, got {share!r}")
    if not 0 <= share <= 1:
        raise ControlProgramError(f"assume_share: expected a number from 0 to 1, got {share!r}")
    return AssumedShare(program, float(share))


def _kind(program: Any) -> str:
    return type(program).__name__
