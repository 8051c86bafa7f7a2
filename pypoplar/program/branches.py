"""Programs that run one of their parts."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any, Self

from pypoplar.braces import ordered
from pypoplar.errors import ControlProgramError, PoplarTypeError
from pypoplar.graph.operands import check_one_element
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import GrowingProgram, OneOf, Part, Program, part_program
from pypoplar.program.messages import ErrorProgram
from pypoplar.program.sequence import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import INT, UNSIGNED_INT

CASES = "[(0, a), (1, b)]"


@public
class If(Program):
    """Run one program if a tensor is not zero, else another.

    Parameters
    ----------
    predicate:
        An integer or BOOL of one element, read when the program comes here.
    then:
        Run if it is not zero.
    otherwise:
        Run if it is zero; None: nothing.
    name:
        Its debug name.

    Raises
    ------
    PoplarTypeError
        If the predicate is no such tensor, or a part is no program.
    TensorShapeError
        If the predicate does not have one element.
    """

    def __init__(self, predicate: Tensor, then: Program, otherwise: Program | None = None, name: str = "") -> None:
        super().__init__(name)
        self.predicate = check_one_element(predicate, "the predicate of If", None)
        self.then = part_program(then, "If")
        self.otherwise = Sequence() if otherwise is None else part_program(otherwise, "If")

    def reads(self) -> tuple[Tensor, ...]:
        return (self.predicate,)

    def writes(self) -> tuple[Tensor, ...]:
        return ()

    def contains(self) -> OneOf:
        empty = isinstance(self.otherwise, Sequence) and not self.otherwise.programs
        return OneOf((Part(self.then, "then", "then"), Part(self.otherwise, "otherwise", "" if empty else "else")))

    def detail(self) -> str:
        return f"if {self.predicate.getDebugStr()}"


@public
class Switch(GrowingProgram):
    """Run the case whose value a tensor has; else `default`, or nothing if there is none.

    Cases may also be added later with `add`, before the Switch is put into a program.

    Parameters
    ----------
    index:
        INT or UNSIGNED_INT of one element, read when the program comes here.
    cases:
        Pairs of a value and a program, ``[(0, a), (1, b)]``, or a dict.
    default:
        Run if there is no case of the value.
    name:
        Its debug name.

    Raises
    ------
    PoplarTypeError
        If the index is no such tensor, a value no whole number, or a part no program.
    TensorShapeError
        If the index does not have one element.
    ControlProgramError
        If two cases have one value, or the index cannot have it.

    Examples
    --------
    >>> from pypoplar import INT, Engine, Graph, IPUModel
    >>> from pypoplar.program import Abort, Sequence, Switch
    >>> device = IPUModel("tiny").createDevice()
    >>> graph = Graph(device)
    >>> choice = graph.addVariable(INT, [], "choice")
    >>> graph.setTileMapping(choice, 0)
    >>> graph.setInitialValue(choice, 1)
    >>> program = Switch(choice, [(0, Abort("the first")), (1, Sequence())], default=Abort("another"))
    >>> Engine(graph, program).loadAndRun(device)
    """

    def __init__(
        self, index: Tensor, cases: Iterable[tuple[int, Program]] = (), default: Program | None = None, name: str = ""
    ) -> None:
        super().__init__(name)
        self.index = check_one_element(index, "the index of Switch", (INT, UNSIGNED_INT))
        self.cases: list[tuple[int, Program]] = []
        self.default = None if default is None else part_program(default, "Switch")
        for value, program in _pairs(cases):
            self.add(value, program)

    @staticmethod
    def switchWithUnreachableDefault(index: Tensor, cases: Iterable[tuple[int, Program]] = (), name: str = "") -> Switch:
        """A Switch whose index always has the value of a case; a run in which it has another stops with an error that shows it.

        Parameters
        ----------
        index:
            INT or UNSIGNED_INT of one element.
        cases:
            As `Switch` takes them.
        name:
            Its debug name.

        Returns
        -------
        Switch
            With an `ErrorProgram` as its default.
        """
        return Switch(index, cases, ErrorProgram("the index of a Switch has the value of no case", index), name)

    def add(self, value: int, program: Program) -> None:
        """Add a case. What is added to its program later is not part of it.

        Parameters
        ----------
        value:
            The value of the index for which it is run.
        program:
            What is run.

        Raises
        ------
        ControlProgramError
            If there is a case of that value, the index cannot have it, or the program holds this Switch.
        PoplarTypeError
            If the value is no whole number, or `program` is none.
        """
        try:
            number = operator.index(value)
        except TypeError:
            raise PoplarTypeError(f"a case of Switch has a whole number, got {value!r}") from None
        low = -(1 << 31) if self.index.elementType() is INT else 0
        if not low <= number < low + (1 << 32):
            raise ControlProgramError(f"Switch cannot have a case {number}: its index is {self.index.elementType()!r}")
        if any(number == known for known, _ in self.cases):
            raise ControlProgramError(f"Switch has a case {number} already")
        self.cases.append((number, self._part(program, "Switch")))

    def taken(self) -> Self:
        kept = super().taken()
        kept.cases = list(self.cases)
        return kept

    def reads(self) -> tuple[Tensor, ...]:
        return (self.index,)

    def writes(self) -> tuple[Tensor, ...]:
        return ()

    def contains(self) -> OneOf:
        cases = [Part(program, f"case {value}", f"case {value}") for value, program in self.cases]
        default = [] if self.default is None else [Part(self.default, "default", "default")]
        return OneOf((*cases, *default), always=self.default is not None)

    def detail(self) -> str:
        return f"by {self.index.getDebugStr()}"


def _pairs(cases: Any) -> Iterable[tuple[int, Program]]:
    """The cases that a Switch is made of, as pairs of a value and a program."""
    if isinstance(cases, Mapping):
        return cases.items()
    listed = list(ordered(cases, "the cases of Switch", CASES)) if isinstance(cases, Iterable) else [cases]
    for case in listed:
        if not isinstance(case, tuple | list) or len(case) != 2:
            raise PoplarTypeError(f"a case of Switch is a pair of a value and a program, got {case!r}; write {CASES}")
    return listed
