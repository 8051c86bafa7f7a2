"""Where mutants may stand in a module, and the mutant that stands at such a place."""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Iterator

from attrs import frozen
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

from mutation.operators import operators

Point = tuple[int, int]  # line and column

# Arguments that decide about checks, comparisons of objects and kept results only, and decorators that keep them.
QUIET_KEYWORDS = ("strict", "eq", "maxsize", "stacklevel")
QUIET_DECORATORS = ("lru_cache", "cache", "once", "kept", "overload", "abstractmethod", "final", "override", "public")


@frozen
class Place:
    """The `occurrence`-th change that an operator can make in a module."""

    module: str
    line: int
    operator: str
    occurrence: int


@frozen
class Mutant:
    """A module with one change; `before` and `after` are the lines that differ."""

    place: Place
    source: str
    before: str
    after: str
    diff: str


def places_of(module: str, source: str) -> list[Place]:
    """All places of a module, in the order of its lines."""
    barred = list(_barred(ast.parse(source)))
    nodes = list(ast_nodes(get_ast(source)))
    found = []
    for name, operator in operators().items():
        positions = (position for node in nodes for position in operator.mutation_positions(node))
        for occurrence, (begin, end) in enumerate(positions):
            if not any(first <= begin and end <= last for first, last in barred):
                found.append(Place(module, begin[0], name, occurrence))
    return sorted(found, key=lambda place: place.line)


def mutant_at(place: Place, source: str) -> Mutant | None:
    """The mutant of a place; None where the change is no Python, or none at all."""
    changed = mutate_code(source, operators()[place.operator], place.occurrence)
    if changed is None or changed == source:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", SyntaxWarning)
            same = ast.dump(ast.parse(changed)) == ast.dump(ast.parse(source))
            compile(changed, place.module, "exec")
    except (SyntaxError, ValueError):
        return None
    if same:
        return None
    diff = list(difflib.unified_diff(source.splitlines(), changed.splitlines(), place.module, place.module, lineterm="", n=2))
    before, after = ("\n".join(line[1:].strip() for line in diff[2:] if line[0] == sign) for sign in "-+")
    return Mutant(place, changed, before, after, "\n".join(diff))


def _barred(tree: ast.Module) -> Iterator[tuple[Point, Point]]:
    """What is left alone: types, assertions, and what decides about nothing that programs do."""
    for node in ast.walk(tree):
        match node:
            case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")) | ast.Assert():
                yield _span(node)
            case ast.AnnAssign(annotation=annotation) | ast.arg(annotation=ast.expr() as annotation):
                yield _span(annotation)
            case ast.keyword(arg=name) if name in QUIET_KEYWORDS:
                yield _span(node)
            case ast.Call(func=ast.Name(id="TypeVar" | "cast" | "assert_never")):
                yield _span(node)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield _span(node)
            case ast.FunctionDef(decorator_list=decorators) | ast.ClassDef(decorator_list=decorators):
                yield from (_span(each) for each in [getattr(node, "returns", None)] if each is not None)
                for decorator in decorators:
                    if ast.unparse(decorator).partition("(")[0].rpartition(".")[2] in QUIET_DECORATORS:
                        (line, column), (last, _) = _span(decorator)
                        yield (line, column - 1), (last + 1, 0)  # with its @ and the end of its line


def _span(node: ast.expr | ast.stmt | ast.keyword) -> tuple[Point, Point]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
