"""The text of user functions and classes: from files, notebooks, and whatever else linecache knows."""

from __future__ import annotations

import ast
import inspect
import linecache
from functools import lru_cache
from types import FunctionType
from typing import Any

from attrs import frozen

from pypoplar.errors import CodeletError


@frozen
class Listing:
    """Some lines of a file, or what stands for some of a file in another language: then `places` has the line of each line."""

    file: str
    first_line: int
    text: str
    places: tuple[int, ...] = ()

    @property
    def shown(self) -> list[str]:
        """The lines as messages show them: none of what the user has not written."""
        return [] if self.places else self.text.splitlines(keepends=True)


@frozen
class _ParsedFile:
    """The functions and classes of a file by name, of each name in the order in which a walk meets them."""

    text_hash: int
    functions: dict[str, list[ast.FunctionDef]]
    classes: dict[str, list[ast.ClassDef]]


_parsed: dict[str, _ParsedFile] = {}


STANDARD_INPUT = "<stdin>"
NAMELESS = "<string>"  # the file of every text given to exec; since Python 3.13 the lines of `python -c` are known under it


def _lines(file: str, namespace: dict[str, Any] | None) -> list[str]:
    linecache.checkcache(file)
    return linecache.getlines(file, namespace)


def _parsed_file(file: str, lines: list[str]) -> _ParsedFile | None:
    text = "".join(lines)
    known = _parsed.get(file)
    if known is not None and known.text_hash == hash(text):
        return known
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a notebook cell with magics, say
        return None
    functions: dict[str, list[ast.FunctionDef]] = {}
    classes: dict[str, list[ast.ClassDef]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            classes.setdefault(node.name, []).append(node)
    parsed = _parsed[file] = _ParsedFile(hash(text), functions, classes)
    return parsed


def _start(node: ast.FunctionDef | ast.ClassDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def function_listing(function: FunctionType) -> Listing:
    """The source lines of `function`, indented as they stand. Without source: a `CodeletError` that says what to do."""
    code = function.__code__
    file, first = code.co_filename, code.co_firstlineno
    lines = _lines(file, function.__globals__)
    if not lines:
        raise _not_available(function)
    parsed = _parsed_file(file, lines)
    if parsed is None:
        return Listing(file, first, "".join(inspect.getblock(lines[first - 1 :])))
    for node in parsed.functions.get(code.co_name, ()):
        if first in (node.lineno, _start(node)):
            return Listing(file, node.lineno, "".join(lines[node.lineno - 1 : node.end_lineno]))
    if file == NAMELESS:
        raise _not_available(function)
    raise CodeletError(
        f"the source of {function.__qualname__} is no longer at {file}, line {first}: the file has changed since it was imported",
        (file, first, None, None),
    )


def _not_available(function: FunctionType) -> CodeletError:
    file, first = function.__code__.co_filename, function.__code__.co_firstlineno
    remedy = "write the class in a .py file or a notebook cell, or put text given to exec into linecache.cache"
    if file == STANDARD_INPUT:
        remedy = "what comes from standard input cannot be read again; save it to a file and run that"
    return CodeletError(
        f"the source of {function.__qualname__} is not available ({file}, line {first}); codelets are translated from "
        f"their source: {remedy}",
        (file, first, None, None),
    )


def field_statement(file: str, line: int, class_name: str, attribute: str) -> tuple[list[str], ast.stmt | None]:
    """All lines of `file`, and the statement that annotates or assigns `attribute` in the class at or after `line`."""
    lines, nodes = _classes(file, line, class_name)
    for node in nodes:
        for statement in node.body:
            targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
            if any(isinstance(target, ast.Name) and target.id == attribute for target in targets):
                return lines, statement
    return lines, None


def class_keyword(file: str, line: int, class_name: str, name: str) -> tuple[list[str], ast.expr | None]:
    """All lines of `file`, and the value of a keyword of the class at or after `line`."""
    lines, nodes = _classes(file, line, class_name)
    for node in nodes:
        for keyword in node.keywords:
            if keyword.arg == name:
                return lines, keyword.value
    return lines, None


def _classes(file: str, line: int, class_name: str) -> tuple[list[str], list[ast.ClassDef]]:
    """All lines of `file`, and the classes of a name whose statement has `line`."""
    lines = _lines(file, None)
    parsed = _parsed_file(file, lines) if lines else None
    nodes = parsed.classes.get(class_name, ()) if parsed is not None else ()
    return lines, [node for node in nodes if _start(node) <= line <= (node.end_lineno or line)]


@lru_cache(maxsize=512)
def parse_function(listing: Listing) -> ast.FunctionDef:
    """The tree of a listed function, to be read only; lines and columns are those of its file."""
    indented = listing.text[:1] in " \t"
    try:
        tree = ast.parse("if True:\n" + listing.text if indented else listing.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CodeletError(f"not a function that can be read: {error}", (listing.file, listing.first_line, None, None)) from error
    body: list[ast.stmt] = tree.body
    if indented and body and isinstance(body[0], ast.If):
        body = body[0].body
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        raise CodeletError("expected one function definition", (listing.file, listing.first_line, None, None))
    if listing.places:
        _place(body[0], listing.places)
    else:
        ast.increment_lineno(body[0], listing.first_line - (2 if indented else 1))
    return body[0]


def _place(tree: ast.FunctionDef, places: tuple[int, ...]) -> None:
    """Give the nodes of a function the lines that theirs stand for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr | ast.arg | ast.keyword):
            node.lineno = places[min(node.lineno, len(places)) - 1]
            node.end_lineno = node.lineno
