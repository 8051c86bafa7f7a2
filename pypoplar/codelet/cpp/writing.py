"""The text of a function as it is written: lines of Python, each with its line of C++, and the names that it uses."""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from attrs import define, field

from pypoplar.codelet.cpp_tree.tree import Node
from pypoplar.codelet.language.source import Meaning
from pypoplar.codelet.operations.table import functions_of, python_functions
from pypoplar.errors import CodeletError
from pypoplar.types import BY_NAME

_INDENT = "    "
TAKEN = frozenset(
    {
        "self",
        "math",
        "ipu",
        "len",
        "range",
        "int",
        "float",
        "bool",
        "print",
        "round",
        *python_functions(),
        *BY_NAME,
        *keyword.kwlist,
    }
)


@define
class WrittenLine:
    """A line of Python, and where it comes from."""

    text: str
    depth: int
    place: int


class Refused(Exception):
    """What has no form in Python; the text says what to write."""

    def __init__(self, node: Node, message: str) -> None:
        super().__init__(message)
        self.node, self.message = node, message


def refused(node: Node, message: str, lines: Any) -> CodeletError:
    """The error of a refusal, at its line with a caret; `lines` gives the text of a line of a file."""
    text = lines(node.file, node.line)
    extent = node.cursor.extent
    end = extent.end.column if extent.end.line == node.line else None
    return CodeletError(message, (node.file, node.line, node.column, text, node.line, end))


@define
class Writing:
    """One function of Python while it is written."""

    file: str
    names: dict[str, Meaning] = field(factory=dict)  # those from outside
    own: dict[str, str] = field(factory=dict)  # locals and the types that they have
    active: set[str] = field(factory=set)  # locals that may still be read
    lines: list[WrittenLine] = field(factory=list)
    depth: int = 1
    place: int = 1
    arrays: list[str] = field(factory=list)
    noted: set[str] = field(factory=set)  # locals whose type is said

    def reserve(self, text: str) -> None:
        """A scratch array, which is declared before everything else."""
        if text not in self.arrays:
            self.arrays.append(text)

    def emit(self, text: str) -> None:
        self.lines.append(WrittenLine(text, self.depth, self.place))

    @contextmanager
    def indented(self) -> Iterator[None]:
        """What stands below a statement that ends in a colon; nothing is written as pass."""
        before = len(self.lines)
        self.depth += 1
        yield
        if len(self.lines) == before:
            self.emit("pass")
        self.depth -= 1

    @contextmanager
    def apart(self) -> Iterator[list[WrittenLine]]:
        """Lines written inside stand in a list of their own."""
        outer, self.lines = self.lines, []
        try:
            yield self.lines
        finally:
            self.lines = outer

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A block of C++: the names of its locals are free again after it."""
        active = set(self.active)
        yield
        self.active = active

    def local(self, name: str, type: str) -> str:
        """The name of a local: C++'s, where Python has it free and no other local of another type has it."""
        base = name + "_" if name in TAKEN or name in self.names else name
        unique, count = base, 1
        while unique in self.names or unique in TAKEN or unique in self.active or self.own.get(unique, type) != type:
            count += 1
            unique = f"{base}_{count}"
        self.own[unique] = type
        self.active.add(unique)
        return unique

    def temporary(self, type: str, name: str = "t") -> str:
        return self.local(name, type)

    def use(self, name: str) -> str:
        """A name from outside: a type, a builtin, ``math.sqrt``, ``ipu.exp``."""
        root, _, path = name.partition(".")
        if path and root == "math":
            meaning = (
                Meaning("constant", {"inf": float("inf"), "nan": float("nan")}[path])
                if path in ("inf", "nan")
                else Meaning("math", path)
            )
        elif path:
            meaning = Meaning("ipu", path)
        else:
            meaning = Meaning("type", name) if name in BY_NAME else Meaning("builtin", name)
        self.names[name] = meaning
        return name

    def text(self, header: str) -> tuple[str, tuple[int, ...]]:
        """All of the function, and for each line that of C++."""
        first = self.place
        body = [*(WrittenLine(text, 1, first) for text in self.arrays), *self.lines] or [WrittenLine("pass", 1, first)]
        rows = [header, *(_INDENT * line.depth + line.text for line in body)]
        return "\n".join(rows) + "\n", (first, *(line.place for line in body))


def is_function(name: str, module: str) -> bool:
    """Whether device code has a function of ``math`` or ``ipu``."""
    return name in functions_of(module)


def refuse(node: Node, message: str) -> NoReturn:
    """Leave the walk: this has no form."""
    raise Refused(node, message)
