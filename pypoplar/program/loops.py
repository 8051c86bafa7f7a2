"""Programs that run their parts again and again."""

from __future__ import annotations

import operator

from pypoplar.errors import ControlProgramError, PoplarTypeError
from pypoplar.graph.operands import check_one_element
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import Part, Program, Rounds, part_program
from pypoplar.tracebacks import public


@public
class Repeat(Program):
    """Run a program a number of times that is known when it is built.

    Parameters
    ----------
    count:
        How often, 0 to 2**63 - 1.
    body:
        What is run.
    name:
        Its debug name.

    Raises
    ------
    PoplarTypeError
        If the count is no whole number, or the body no program.
    ControlProgramError
        If the count is out of range.
    """

    def __init__(self, count: int, body: Program, name: str = "") -> None:
        super().__init__(name)
        try:
            self.count = operator.index(count)
        except TypeError:
            given: object = count
            hint = "; RepeatWhileTrue asks a tensor" if isinstance(given, Tensor) else ""
            raise PoplarTypeError(f"Repeat takes a whole number known when the program is built, got {count!r}{hint}") from None
        if not 0 <= self.count < 1 << 63:
            raise ControlProgramError(f"Repeat takes a count of at least 0 and less than 2**63, got {count}")
        self.body = part_program(body, "Repeat")

    def reads(self) -> tuple[Tensor, ...]:
        return ()

    def writes(self) -> tuple[Tensor, ...]:
        return ()

    def contains(self) -> Rounds:
        body = Part(self.body, "body")
        return Rounds(body, None) if self.count else Rounds(None, body)

    def detail(self) -> str:
        return f"{self.count:,} times"


@public
class _While(Program):
    def __init__(self, condition: Program, predicate: Tensor, body: Program, name: str = "") -> None:
        super().__init__(name)
        kind = type(self).__name__
        self.condition = part_program(condition, kind)
        self.predicate = check_one_element(predicate, f"the predicate of {kind}", None)
        self.body = part_program(body, kind)

    def reads(self) -> tuple[Tensor, ...]:
        return (self.predicate,)

    def writes(self) -> tuple[Tensor, ...]:
        return ()

    def contains(self) -> Rounds:
        return Rounds(Part(self.condition, "condition", "condition"), Part(self.body, "body", "body"))


@public
class RepeatWhileTrue(_While):
    """Run `condition`; while a tensor is not zero then, run `body` and `condition` again.

    Parameters
    ----------
    condition:
        Run before every look at the predicate.
    predicate:
        An integer or BOOL of one element.
    body:
        Run as long as it is not zero.
    name:
        Its debug name.

    Raises
    ------
    PoplarTypeError
        If the predicate is no such tensor, or a part is no program.
    TensorShapeError
        If the predicate does not have one element.
    """

    def detail(self) -> str:
        return f"while {self.predicate.getDebugStr()}"


@public
class RepeatWhileFalse(_While):
    """Run `condition`; while a tensor is zero then, run `body` and `condition` again.

    Parameters
    ----------
    condition:
        Run before every look at the predicate.
    predicate:
        An integer or BOOL of one element.
    body:
        Run as long as it is zero.
    name:
        Its debug name.

    Raises
    ------
    PoplarTypeError
        If the predicate is no such tensor, or a part is no program.
    TensorShapeError
        If the predicate does not have one element.
    """

    def detail(self) -> str:
        return f"until {self.predicate.getDebugStr()}"
