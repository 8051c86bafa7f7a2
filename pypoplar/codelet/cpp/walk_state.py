"""The state of the walk over one function of C++, and the numbers' conversions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from attrs import evolve

from pypoplar.codelet.cpp.cpp_values import ATOM, COMPARISON, NumberText, Pointer, Value, is_settled, literal
from pypoplar.codelet.cpp.writing import Writing, refuse
from pypoplar.codelet.cpp_tree.cpp_types import BITS, FLOATS, NAMES, CppType, register
from pypoplar.codelet.cpp_tree.tree import Node

if TYPE_CHECKING:
    from pypoplar.codelet.cpp.codebook import Codebook

DOUBLE = "this is computed in double, which the device has not: write 0.5f for 0.5, or float(...) around each operation"


class CppWalk(ABC):
    """One function while it is written. Sub-classes write places, expressions, calls and statements."""

    def __init__(self, book: Codebook, writing: Writing) -> None:
        self.book = book
        self.writing = writing
        self.bindings: dict[int, Value] = {}
        self.after: list[str] = []  # what follows the statement that is being written: x++
        self.whole: Node | None = None  # the full expression that is being written; None inside of parts that may not be reached
        self.continues: list[Callable[[], None]] = []  # what comes before continue, of each loop
        self.switches: list[str] = []  # "loop" or "switch" of what break would leave
        self.results: list[Any] = []  # of functions written where they are called
        self.function: Node | None = None

    # what sub-classes have

    @abstractmethod
    def number(self, node: Node) -> NumberText:
        """The value of an expression that is a number."""

    @abstractmethod
    def value(self, node: Node) -> Value:
        """The value of any expression."""

    @abstractmethod
    def pointer(self, node: Node) -> Pointer:
        """The value of an expression that is a pointer or an array."""

    @abstractmethod
    def arithmetic(self, symbol: str, left: NumberText, right: NumberText, type: str, node: Node) -> NumberText:
        """``left symbol right`` of numbers that have the type of the result; of a shift the left one has."""

    @abstractmethod
    def narrow(self, node: Node, to: str) -> NumberText | None:
        """A double that is a number of a narrower type."""

    @abstractmethod
    def declared(self, name: str, code: NumberText, type: str) -> str:
        """The statement that makes a local, with its type where Python would find another."""

    @abstractmethod
    def fill(self, pointer: Pointer, initial: Node, type: CppType, element: str, node: Node) -> None:
        """Set the elements of an array to the values in braces."""

    @abstractmethod
    def moving(self, pointer: Pointer, name: str) -> Pointer:
        """A pointer whose index is a local of its own."""

    @abstractmethod
    def bind_parameters(self, node: Node, parameters: list[Node], arguments: list[Node]) -> None:
        """Let the parameters of a function stand for what it is called with."""

    @abstractmethod
    def statement(self, node: Node) -> None:
        """Write a statement."""

    @abstractmethod
    def parts_of_if(self, node: Node) -> tuple[NumberText, Node, Node | None]:
        """The condition and the two branches of an if."""

    # names

    def use(self, name: str) -> str:
        return self.writing.use(name)

    def emit(self, text: str) -> None:
        self.writing.emit(text)

    @contextmanager
    def at(self, node: Node) -> Iterator[None]:
        """Lines written inside come from the line of `node`."""
        before = self.writing.place
        if node.file == self.writing.file and node.line:
            self.writing.place = node.line
        yield
        self.writing.place = before

    @contextmanager
    def uncertain(self) -> Iterator[None]:
        """What is written inside may not be reached: nothing may be put off until after the statement."""
        whole, self.whole = self.whole, None
        yield
        self.whole = whole

    def flush(self) -> None:
        """Write what was put off."""
        after, self.after = self.after, []
        for text in after:
            self.emit(text)

    def kept(self, code: NumberText, name: str = "t") -> NumberText:
        """A number in a local of its own, safe from what is written later."""
        if code.value is not None:
            return code
        code = self.typed(self.settled(code))
        unique = self.writing.temporary(code.held, name)
        self.emit(f"{unique} = {code.text}")
        return evolve(code, text=unique, level=ATOM, named=True)

    # conversions

    def called(self, function: str, code: NumberText, type: str, held: str) -> NumberText:
        return NumberText(f"{self.use(function)}({code.text})", type, held)

    def settled(self, code: NumberText) -> NumberText:
        """The number with the register that its type has."""
        if is_settled(code):
            return code
        if code.type == "f32":
            return self.called("float", code, "f32", "f32")
        return self.called(NAMES[code.type], code, code.type, register(code.type))

    def typed(self, code: NumberText) -> NumberText:
        """A number whose type is not open."""
        if code.weak:
            if "math." in code.text:
                self.use(code.text.lstrip("-"))
            return evolve(self.called(NAMES[code.type], code, code.type, register(code.type)), counts=code.counts)
        return code

    def exactly(self, code: NumberText) -> NumberText:
        """A number in the register of its type, for what looks at its sign, as an unsigned one."""
        code = self.typed(self.settled(code))
        if code.held != register(code.type):
            code = self.called(NAMES[code.type], code, code.type, register(code.type))
        return code

    def converted(self, code: NumberText, to: str, node: Node) -> NumberText:
        """A number as one of another type."""
        source = code.type
        if source == to:
            return code
        if code.value is not None:
            return self.constant(code.value, to)
        if "f64" in (source, to):
            refuse(node, DOUBLE)
        if to == "bool":
            code = self.settled(code)
            return NumberText(f"{code.at(COMPARISON + 1)} != 0", "bool", "bool", COMPARISON)
        if to in ("i32", "u32") and source in ("i32", "u32", "i8", "u8", "i16", "u16"):
            return evolve(code, type=to)
        if to == "f32" and source in ("i32", "u32", "i8", "u8", "i16", "u16", "f16"):
            return evolve(self.settled(code), type="f32", counts=False)
        code = self.settled(code)
        if to in BITS and source in BITS and source != "bool" and _holds(to, source):
            return evolve(code, type=to)
        function = {"i32": "int", "f32": "float"}.get(to, NAMES[to]) if source in (*FLOATS, "bool") else NAMES[to]
        return self.called(function, code, to, register(to))

    def constant(self, value: int | float | bool, to: str) -> NumberText:
        """A constant of a type."""
        code = literal(value, to)
        if code.text.lstrip("-").startswith("math."):
            self.use(code.text.lstrip("-"))
        return code

    def position(self, at: NumberText) -> str:
        """The text of an index that a local keeps, an INT."""
        return at.text if at.weak else self.exactly(evolve(at, type="i32")).text

    def stored(self, code: NumberText, type: str, node: Node) -> str:
        """The text that is stored where a number of a type is kept, which converts it itself where it can."""
        if code.value is not None:
            return self.constant(code.value, type).text
        if type in BITS and type != "bool" and code.type in BITS and code.type != "bool":
            return self.exactly(code).text if BITS[type] > 32 and not code.counts else code.text
        if {code.type, type} == {"f32", "f16"}:
            return self.settled(code).text
        code = self.converted(code, type, node)
        if code.type == "f32" and code.held in ("i32", "u32", "f16"):
            return code.text
        return self.settled(code).text

    def element_type(self, type: CppType, node: Node) -> str:
        """The code of the elements of an array, a pointer or a vector; what is no number is refused."""
        type = type.value
        if type.sort != "number" or type.code == "f64":
            shown = type.spelling
            refuse(node, f"elements are numbers that the device has, not {shown}")
        return type.code


def _holds(to: str, source: str) -> bool:
    """Whether an integer type, of 32 bits at most, has all numbers of another."""
    if BITS[to] > 32:
        return False
    return BITS[to] > BITS[source] if to[0] == "i" else source[0] == "u" and BITS[to] >= BITS[source]
