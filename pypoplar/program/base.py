"""What every kind of program says of itself: what it reads, what it writes, what it contains, and how control goes through that.

The compiler, the graph's drawings and the reports know programs by this only. It is said by abstract members, so that a kind that
leaves something out cannot be made.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from copy import copy
from typing import Any, Self, TypeAlias, assert_never

from attrs import frozen

from pypoplar.braces import ordered
from pypoplar.codelet.ir.terms import line_text
from pypoplar.errors import ControlProgramError, PoplarTypeError
from pypoplar.graph.host_links import Function
from pypoplar.graph.location import caller_location
from pypoplar.graph.runnable import Runnable
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.notebook import ShownInNotebooks


@frozen(eq=False)
class Part:
    """A program within another one, for what `Program.contains` gives.

    Parameters
    ----------
    program:
        The inner program.
    name:
        The argument that it was: "body", "case 3".
    heading:
        What stands over it in a report's program tree; without one it stands directly below the program.
    """

    program: Program
    name: str = ""
    heading: str = ""


@frozen(eq=False)
class Nothing:
    """No programs, for `Program.contains`: what the program does, it does itself."""


@frozen(eq=False)
class Vertices:
    """All vertices of a compute set, for `Program.contains`: they read and write their edges; then the program writes.

    Parameters
    ----------
    compute_set:
        The compute set.
    """

    compute_set: ComputeSet


@frozen(eq=False)
class InTurn:
    """Parts one after another, for `Program.contains`: the program reads; each part runs once; the program writes.

    Parameters
    ----------
    parts:
        In their order.
    """

    parts: tuple[Part, ...]


@frozen(eq=False)
class Rounds:
    """A loop, for `Program.contains`.

    `head` runs; the program reads, and as long as it wants to go on, `body`, and `head` and the reading again; the program
    writes.

    Parameters
    ----------
    head:
        What runs before every reading; None: nothing.
    body:
        What runs while the loop goes on; None: nothing.
    """

    head: Part | None
    body: Part | None


@frozen(eq=False)
class OneOf:
    """A choice, for `Program.contains`: the program reads; one of the parts, or none of them unless `always`; the program writes.

    Parameters
    ----------
    parts:
        Those of which one runs.
    always:
        Whether one of them always runs.
    """

    parts: tuple[Part, ...]
    always: bool = True


@frozen(eq=False)
class Calling:
    """A call, for `Program.contains`: the program reads; a function of the graph runs; the program writes.

    Parameters
    ----------
    function:
        What `Graph.addFunction` gave.
    """

    function: Function


Contents: TypeAlias = Nothing | Vertices | InTurn | Rounds | OneOf | Calling
"""What a program contains, and how control goes through it."""


@frozen(eq=False)
class Effects:
    """What a program says of itself, asked once; the compiler believes it, and holds the program's rule to it."""

    reads: tuple[Tensor, ...]
    writes: tuple[Tensor, ...]
    contents: Contents


class Program(Runnable, ShownInNotebooks):
    """The base of all programs.

    A kind of program defines `reads`, `writes` and `contains`. An engine runs it if the compiler has a rule for it: see
    `pypoplar.compiler.flattening.rules`.

    Parameters
    ----------
    name:
        Its debug name, for reports.

    Attributes
    ----------
    name:
        Its debug name.
    location:
        The user's line that made it.

    Raises
    ------
    PoplarTypeError
        If the name is no string.
    """

    def __init__(self, name: str = "") -> None:
        if not isinstance(name, str):
            raise PoplarTypeError(f"the last argument of {type(self).__name__} is a debug name, got {name!r}")
        self.name = name
        self.location = caller_location(self)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for method in ("reads", "writes", "contains"):
            if not callable(getattr(cls, method)):
                raise PoplarTypeError(f"{cls.__name__}.{method} is {kind_of(getattr(cls, method))}: expected a method")

    @abstractmethod
    def reads(self) -> tuple[Tensor, ...]:
        """The tensors of which it may read an element itself; what its vertices and parts read is theirs."""

    @abstractmethod
    def writes(self) -> tuple[Tensor, ...]:
        """The tensors that it writes itself, every element whatever happens; what its vertices and parts write is theirs."""

    @abstractmethod
    def contains(self) -> Contents:
        """What it contains, and how control goes through that."""

    def detail(self) -> str:
        """What a report's program tree says of it besides its kind and name, in words: "100 times"."""
        return ""

    def taken(self) -> Program:
        """The program as another one keeps it: unchanged by what is added to this one later."""
        return self

    def effects(self) -> Effects:
        """What it says of itself; `ControlProgramError` where that is no tuple of tensors, or none of the forms of contents."""
        if "location" not in vars(self):
            raise ControlProgramError(f"a {type(self).__name__} is not made yet: its __init__ does not call super().__init__(name)")
        reads, writes = self.reads(), self.writes()
        for method, tensors in (("reads", reads), ("writes", writes)):
            wrong = _wrong_tensors(tensors)
            if wrong:
                raise ControlProgramError(f"{method}() of {self!r} {wrong}")
        return Effects(reads, writes, self._contents())

    def _contents(self) -> Contents:
        contents = self.contains()
        misfit = _misfit(contents)
        if misfit:
            raise ControlProgramError(f"contains() of {self!r} gives {misfit}")
        return contents

    def parts(self) -> tuple[Part, ...]:
        """The programs that it contains itself, in order, each with its place there."""
        match contents := self._contents():
            case InTurn() | OneOf():
                return contents.parts
            case Rounds():
                return tuple(part for part in (contents.head, contents.body) if part is not None)
            case Nothing() | Vertices() | Calling():
                return ()
            case _:
                assert_never(contents)

    def runs(self) -> Iterable[Runnable | ComputeSet]:
        """The programs and compute sets that it runs itself."""
        match contents := self._contents():
            case Vertices():
                return (contents.compute_set,)
            case Calling():
                return (contents.function.program,)
            case _:
                return [part.program for part in self.parts()]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{f' {self.name!r}' if self.name else ''} made at {line_text(self.location)}>"


class GrowingProgram(Program):
    """A program to which others are added. Other programs hold it as it is when they are made."""

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self._self = object()  # which copies share: whose state they are
        self._was_taken = False

    def taken(self) -> Self:
        self._was_taken = True
        return copy(self)

    def _part(self, program: Any, kind: str) -> Program:
        """A program to be added, as it is now. `ControlProgramError` if it is this one or holds it."""
        if isinstance(program, Program) and (program is self or self._was_taken) and self._is_in(program):
            what = "itself" if program is self else f"{program!r}, which holds it"
            raise ControlProgramError(f"{self!r} cannot hold {what}; make another {kind}, or a Repeat of what comes again")
        return part_program(program, kind)

    def _is_in(self, program: Program) -> bool:
        """Whether a program is this one, as it is or was, or holds it."""
        pending, seen = [program], {id(program)}
        while pending:
            inner = pending.pop()
            if isinstance(inner, GrowingProgram) and inner._self is self._self:
                return True
            new = [part.program for part in inner.parts() if id(part.program) not in seen]
            seen.update(map(id, new))
            pending += new
        return False


def kind_of(value: object) -> str:
    """What something is, in a message: "None", "a list"."""
    name = type(value).__name__
    return "None" if value is None else f"an {name}" if name[0] in "AEIOUaeiou" else f"a {name}"


def _wrong_tensors(tensors: object) -> str:
    """What is wrong with what a program says that it reads or writes; nothing if it is well-formed."""
    if not isinstance(tensors, tuple):
        return f"gives {kind_of(tensors)}: expected a tuple of tensors, as in (self.x,)"
    for tensor in tensors:
        if not isinstance(tensor, Tensor) or not tensor.valid():
            return f"names {tensor!r}: expected tensors of a graph"
    return ""


def _misfit(contents: object) -> str:
    """What a program says that it contains, with what was to be expected; nothing if it is well-formed."""
    match contents:
        case Nothing():
            return ""
        case InTurn(parts) | OneOf(parts):
            return _wrong(contents, parts, tuple, "a tuple of parts, as in (Part(self.body),)") or _wrong_part(contents, parts)
        case Rounds(head, body):
            return _wrong_part(contents, [part for part in (head, body) if part is not None])
        case Vertices(compute_set):
            return _wrong(contents, compute_set, ComputeSet, "a ComputeSet")
        case Calling(function):
            return _wrong(contents, function, Function, "what graph.addFunction gave")
        case _:
            forms = "Nothing(), Vertices(compute set), InTurn(parts), Rounds(head, body), OneOf(parts) or Calling(function)"
            return f"{kind_of(contents)}: expected {forms}"


def _wrong_part(contents: object, parts: Iterable[object]) -> str:
    for part in parts:
        program = part.program if isinstance(part, Part) else None
        if not isinstance(program, Program):
            return _wrong(contents, part, Part, "Part(program)") or _wrong(part, program, Program, "a program")
    return ""


def _wrong(form: object, value: object, kind: type, expected: str) -> str:
    return "" if isinstance(value, kind) else f"{type(form).__name__} of {kind_of(value)}: expected {expected}"


def part_program(program: Any, kind: str) -> Program:
    """An argument of a `kind` of program that is a program, as it is now."""
    if isinstance(program, Program):
        return program.taken()
    ordered(program, f"a program of {kind}", "Sequence([a, b])")
    raise PoplarTypeError(f"{kind} takes programs, got {program!r}{program_hint(program)}")


def program_hint(given: object) -> str:
    """What to write for something that is no program."""
    if isinstance(given, ComputeSet):
        return "; Execute(computeSet) is a program"
    return "; write Sequence([a, b]) for several" if isinstance(given, list | tuple) else ""


def function_program(function: Function) -> Program:
    """The program of a function of the graph."""
    if not isinstance(function.program, Program):
        raise PoplarTypeError(f"the function made at {line_text(function.location)} is of no program, but of {function.program!r}")
    return function.program
