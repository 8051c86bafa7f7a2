"""The state of one pass of translation: the function being translated, the statements made so far, and how to refuse."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NoReturn

from attrs import define, evolve, field

from pypoplar.codelet.frontend.inference import Mixed, RecordView, RowsView, SpanView, Value
from pypoplar.codelet.frontend.locals import LocalContent, Locals
from pypoplar.codelet.ir.terms import Location
from pypoplar.codelet.ir.typed import Local, Span, SpanList, Statement, TypedArray
from pypoplar.codelet.language.declaration import Field
from pypoplar.codelet.language.diagnostics import refusal
from pypoplar.codelet.language.source import CodeletSource, FunctionSource
from pypoplar.codelet.language.source_text import parse_function
from pypoplar.errors import CodeletError


@define
class LoopPaths:
    """A loop of the user's code while its body is translated. Paths that leave it meet after it."""

    breaks: list[frozenset[str]] = field(factory=list)
    continues: list[frozenset[str]] = field(factory=list)


@define
class FunctionScope:
    """A function while its body is translated: compute, or one inlined call of a helper."""

    number: int  # its position in the source's functions
    source: FunctionSource
    tree: ast.FunctionDef
    names: dict[str, str]  # its own names and those of the typed form
    bound: dict[str, Value] = field(factory=dict)  # parameters that stand for their arguments
    loops: list[LoopPaths] = field(factory=list)
    results: tuple[str, ...] | None = None  # a helper's result locals
    returned: str | None = None  # the local that says that a helper has returned, where a loop must be left first
    ended: bool = False  # whether some path reaches a return
    arrays: list[TypedArray] = field(factory=list)  # its scratch arrays


@lru_cache(maxsize=512)  # as many as trees are kept; a helper is inlined again and again, in each pass
def nodes_of(tree: ast.FunctionDef) -> tuple[ast.AST, ...]:
    """All nodes of a function's tree, which is only read."""
    return tuple(ast.walk(tree))


@lru_cache(maxsize=512)
def own_names(tree: ast.FunctionDef) -> tuple[str, ...]:
    """Parameters and assigned names of a function, in order of appearance."""
    names = [parameter.arg for parameter in ast.walk(tree.args) if isinstance(parameter, ast.arg)]
    stores = [name for name in nodes_of(tree) if isinstance(name, ast.Name) and not isinstance(name.ctx, ast.Load)]
    names += [name.id for name in sorted(stores, key=lambda name: (name.lineno, name.col_offset))]
    return tuple(dict.fromkeys(names))


@lru_cache(maxsize=512)
def stored_names(tree: ast.FunctionDef) -> frozenset[str]:
    """The names that a function assigns."""
    return frozenset(name.id for name in nodes_of(tree) if isinstance(name, ast.Name) and not isinstance(name.ctx, ast.Load))


class Translation:
    """One pass over a codelet. Sub-classes translate expressions, calls, helper functions and statements."""

    def __init__(self, source: CodeletSource, before: dict[str, LocalContent] | None) -> None:
        self.source = source
        self.fields: dict[str, Field] = {field.attribute: field for field in source.fields}
        self.field_names = {field.name for field in source.fields}
        self.locals = Locals(before)
        self.locations: dict[Location, int] = {}
        self.texts: dict[str, int] = {}
        self.helpers: dict[str, None] = {}
        self.error: CodeletError | None = None  # the first of this pass
        self.temporaries = 0
        self.inlined = 0  # calls of helper functions so far
        self.frames: list[FunctionScope] = []
        self.blocks: list[list[Statement]] = [[]]
        self.taken: set[str] = set()
        self.span_names: dict[str, str] = {}
        self.pinned: set[str] = set()  # temporaries with more than one use
        self.arrays: list[TypedArray] = []  # scratch arrays
        self.spare: list[TypedArray] = []  # those of helper functions that have returned
        self.frames.append(self.enter(0, ""))

    @property
    def frame(self) -> FunctionScope:
        return self.frames[-1]

    def enter(self, number: int, suffix: str) -> FunctionScope:
        """A frame for a function; its names get `suffix` and stay unique."""
        function = self.source.functions[number]
        tree = self.tree_of(number)
        names = {}
        for name in own_names(tree):
            unique = name + suffix
            while unique in self.taken:
                unique += "_"
            self.taken.add(unique)
            names[name] = unique
        return FunctionScope(number, function, tree, names)

    def tree_of(self, number: int) -> ast.FunctionDef:
        return parse_function(self.source.functions[number].listing)

    # refusing

    def refuse(self, node: ast.AST, message: str) -> NoReturn:
        listing = self.frame.source.listing
        raise refusal(message, listing.file, listing.shown, listing.first_line, node)

    @contextmanager
    def at(self, node: ast.AST, about: str = "") -> Iterator[None]:
        """Types that do not go together are refused at `node`."""
        try:
            yield
        except Mixed as reason:
            self.refuse(node, f"{about}{reason}")

    @contextmanager
    def recovering(self) -> Iterator[None]:
        """Keep the first refusal of the pass and go on: later passes may know better types."""
        depth = len(self.frames)
        try:
            yield
        except CodeletError as error:
            del self.frames[depth:]
            if self.error is None:
                self.error = error

    # emitting

    def emit(self, statement: Statement) -> None:
        self.blocks[-1].append(statement)

    def retarget(self, temporary: Local | Span | SpanList, target: Local | Span | SpanList) -> bool:
        """Let the statement that has just set `temporary` set `target` instead; False if the last statement is another."""
        last = self.blocks[-1][-1] if self.blocks[-1] else None
        if last is None or getattr(last, "target", None) != temporary:
            return False
        if temporary.name in self.taken or temporary.name in self.pinned:
            return False
        statement: Any = last
        self.blocks[-1][-1] = evolve(statement, target=target)
        return True

    def pin(self, value: Value) -> Value:
        """Keep `value` as it is: it has more than one use."""
        if isinstance(value, Local):
            self.pinned.add(value.name)
        elif isinstance(value, SpanView | RecordView):
            self.pinned.add(value.span.name)
        elif isinstance(value, RowsView):
            self.pinned.add(value.rows.name)
        return value

    @contextmanager
    def block(self, statements: list[Statement] | None = None) -> Iterator[list[Statement]]:
        """Statements emitted inside go to the list, a new one or at the end of `statements`."""
        statements = [] if statements is None else statements
        depth = len(self.blocks)
        self.blocks.append(statements)
        try:
            yield statements
        finally:
            del self.blocks[depth:]

    def temporary(self, type: str) -> Local:
        return Local(self.fresh(""), type)

    def fresh(self, name: str) -> str:
        """A name that nothing else has."""
        while True:
            self.temporaries += 1
            unique = f"{name}_{self.temporaries}"
            if unique not in self.taken and unique not in self.field_names:
                return unique

    def span_name(self, unique: str) -> str:
        """The name of a span that the local `unique` stands for; fields are spans too, under their own names."""
        if unique not in self.span_names:
            name = unique
            while name in self.field_names or (name != unique and name in self.taken):
                name += "_"
            self.taken.add(name)
            self.span_names[unique] = name
        return self.span_names[unique]

    def where(self, node: ast.AST) -> int:
        """The number of the location of `node`."""
        listing = self.frame.source.listing
        location = Location(listing.file, getattr(node, "lineno", listing.first_line), self.frame.source.name)
        return self.locations.setdefault(location, len(self.locations))

    def text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))
