"""The locals of a codelet: the one type of each, found by repeated passes, and which are assigned where.

A pass translates the whole codelet with the types that the pass before found and collects what is assigned to each local.
The first pass takes what it has met so far. When a pass finds the types it began with, it is the last.
"""

from __future__ import annotations

from attrs import evolve, frozen

from pypoplar.codelet.frontend.inference import Mixed, Weak, join, weak_with
from pypoplar.codelet.language.record_layout import RecordLayout


@frozen
class SpanContent:
    """A vector in a local, or rows, or records."""

    element: str
    writable: bool
    is_list: bool = False
    is_table: bool = False
    depth: int = 0  # as that of a `SpanView`
    unit: int = 1
    by_byte: bool = False
    layout: RecordLayout | None = None  # of records
    is_record: bool = False  # one of them


@frozen
class LocalContent:
    """What is assigned to a local: a typed number, numbers whose type is open, or spans."""

    type: str | None = None
    weak: tuple[Weak, ...] = ()
    span: SpanContent | None = None

    @property
    def resolved(self) -> str | None:
        type = self.type
        for number in self.weak:
            type = number.alone if type is None else weak_with(number, type)
        return type

    def joined(self, other: LocalContent) -> LocalContent:
        if self == LocalContent():
            return other
        if (self.span is None) != (other.span is None):
            raise Mixed("it is a vector in one place and a number in another; use two names")
        if self.span is not None and other.span is not None:
            if self.span.is_list != other.span.is_list:
                raise Mixed("it is a vector in one place and rows in another; use two names")
            if self.span.is_record != other.span.is_record:
                raise Mixed("it is one record in one place and a vector in another; use two names")
            if self.span.layout != other.span.layout:
                raise Mixed("it holds other records, or none, elsewhere; use two names")
            if self.span.by_byte != other.span.by_byte:
                raise Mixed("it is a part of a record in one place and another vector elsewhere; use two names")
            if self.span.element != other.span.element:
                raise Mixed("it is a vector of another element type elsewhere; use two names")
            writable, is_table = self.span.writable and other.span.writable, self.span.is_table or other.span.is_table
            depth = max(self.span.depth, other.span.depth)
            return LocalContent(span=evolve(self.span, writable=writable, is_table=is_table, depth=depth))
        type = self.type or other.type
        if self.type is not None and other.type is not None:
            type = join(self.type, other.type)
        joined = LocalContent(type, tuple(dict.fromkeys((*self.weak, *other.weak))))
        return joined if joined.resolved else other


class Locals:
    """The types of all locals in one pass. Names are unique in the codelet, those of inlined helpers too."""

    def __init__(self, before: dict[str, LocalContent] | None) -> None:
        self.before = before
        self.contents: dict[str, LocalContent] = {}
        self.declared: dict[str, str] = {}
        self.assigned: frozenset[str] | None = frozenset()  # on every path to here; None where no path leads

    def add(self, name: str, content: LocalContent) -> None:
        """Note an assignment."""
        self.contents[name] = self.contents.get(name, LocalContent()).joined(content)

    def assign(self, name: str) -> None:
        if self.assigned is not None:
            self.assigned |= {name}

    def type(self, name: str) -> str | None:
        """The register type of a local that holds numbers."""
        if name in self.declared:
            return self.declared[name]
        content = self._known(name)
        return None if content is None else content.resolved

    def holds_span(self, name: str) -> SpanContent | None:
        content = self._known(name)
        return None if content is None else content.span

    def _known(self, name: str) -> LocalContent | None:
        if self.before is not None and name in self.before:
            return self.before[name]
        return self.contents.get(name)

    @property
    def settled(self) -> bool:
        return self.before == self.contents


def both(left: frozenset[str] | None, right: frozenset[str] | None) -> frozenset[str] | None:
    """What is assigned where two paths meet."""
    if left is None or right is None:
        return left if right is None else right
    return left & right
