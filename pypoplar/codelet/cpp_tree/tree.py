"""The tree of a C++ file: libclang's cursors, each read once, without parentheses and casts that change nothing."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pypoplar.codelet.cpp_tree.clang_library import clang
from pypoplar.codelet.cpp_tree.cpp_types import CppType, type_of

_SEEN_THROUGH = ("PAREN_EXPR", "UNEXPOSED_EXPR", "CXX_FUNCTIONAL_CAST_EXPR", "CXX_STATIC_CAST_EXPR", "CSTYLE_CAST_EXPR")
_OPERATORS = ("BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR")
_CHANGES = ("CALL_EXPR", "COMPOUND_ASSIGNMENT_OPERATOR", "CXX_THROW_EXPR", "LAMBDA_EXPR", "STMT_EXPR", "CXX_NEW_EXPR")


class Node:
    """A declaration, a statement or an expression."""

    def __init__(self, cursor: Any) -> None:
        self.cursor = cursor

    @cached_property
    def kind(self) -> str:
        """What it is, as libclang calls it."""
        try:
            return str(self.cursor.kind.name)
        except ValueError:  # a kind that the binding does not know
            return "UNKNOWN"

    @cached_property
    def name(self) -> str:
        return str(self.cursor.spelling)

    @cached_property
    def children(self) -> tuple[Node, ...]:
        return tuple(Node(cursor) for cursor in clang().children(self.cursor))

    @cached_property
    def parts(self) -> tuple[Node, ...]:
        """The children that are expressions or statements, without the names of types and namespaces."""
        return tuple(
            child
            for child in self.children
            if not child.kind.endswith("_REF") and child.kind not in ("UNEXPOSED_ATTR", "ANNOTATE_ATTR")
        )

    @cached_property
    def type(self) -> CppType:
        return type_of(self.cursor.type)

    @cached_property
    def line(self) -> int:
        return int(self.cursor.location.line)

    @cached_property
    def column(self) -> int:
        return int(self.cursor.location.column)

    @cached_property
    def file(self) -> str:
        file = self.cursor.location.file
        return "" if file is None else str(file.name)

    @cached_property
    def operator(self) -> str:
        """``+`` of a binary operator, ``+=`` of an assignment, ``-`` or ``x++`` of a unary one."""
        if self.kind in _OPERATORS:
            return clang().operator(self.cursor)
        return clang().unary_operator(self.cursor) if self.kind == "UNARY_OPERATOR" else ""

    @cached_property
    def referenced(self) -> Node | None:
        """What a name or a call means."""
        cursor = self.cursor.referenced
        return None if cursor is None else Node(cursor)

    @cached_property
    def key(self) -> int:
        """What tells a declaration from all others."""
        return int(self.cursor.hash)

    @cached_property
    def bare(self) -> Node:
        """The expression inside parentheses, and inside casts to a type of the same numbers."""
        node = self
        while True:
            parts = node.parts
            if len(parts) != 1 or node.kind not in _SEEN_THROUGH:
                return node
            inner = parts[0]
            if node.kind != "PAREN_EXPR" and inner.type.value != node.type.value and not _same(inner.type.value, node.type.value):
                return node
            node = inner

    @cached_property
    def naked(self) -> Node:
        """The expression inside parentheses alone and casts that are written nowhere."""
        node = self
        while node.kind in ("PAREN_EXPR", "UNEXPOSED_EXPR") and len(node.parts) == 1:
            node = node.parts[0]
        return node

    @cached_property
    def changes(self) -> bool:
        """Whether evaluating it may do more than give a value."""
        if self.kind in _CHANGES:
            return not (self.kind == "CALL_EXPR" and _is_constant_call(self))
        if self.kind == "BINARY_OPERATOR" and self.operator == "=":
            return True
        if self.kind == "UNARY_OPERATOR" and self.operator in ("++", "--", "x++", "x--"):
            return True
        return any(part.changes for part in self.parts)

    @cached_property
    def constant(self) -> int | float | bool | None:
        """The value of a constant expression; None for others."""
        return None if self.changes else clang().constant(self.cursor)

    def qualified(self) -> str:
        """The name of a declaration with its namespaces and classes."""
        names, cursor = [self.name], self.cursor.semantic_parent
        while cursor is not None and cursor.kind.name != "TRANSLATION_UNIT":
            if cursor.spelling and cursor.kind.name != "LINKAGE_SPEC":
                names.append(cursor.spelling)
            cursor = cursor.semantic_parent
        return "::".join(reversed(names))

    def walk(self) -> list[Node]:
        """The node and all below it."""
        found, rest = [], [self]
        while rest:
            node = rest.pop()
            found.append(node)
            rest += reversed(node.children)
        return found


def _same(first: CppType, second: CppType) -> bool:
    """Whether two types have the same values: those of one name, where one is constant."""
    if first.sort != second.sort:
        return False
    if first.sort == "number":
        return first.code == second.code
    if first.sort == "pointer" and first.to is not None and second.to is not None:
        return _same(first.to, second.to)
    if first.sort == "vector" and first.to is not None and second.to is not None:
        return first.count == second.count and _same(first.to, second.to)
    return first.sort == "record" and first.spelling.removeprefix("const ") == second.spelling.removeprefix("const ")


def _is_constant_call(node: Node) -> bool:
    """A call that libclang itself can evaluate, such as one of ``numeric_limits``."""
    return clang().constant(node.cursor) is not None and not any(part.changes for part in node.parts)
