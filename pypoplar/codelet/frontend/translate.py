"""From a codelet's source to its typed form: passes over the code until the types of the locals settle."""

from __future__ import annotations

import ast
from functools import lru_cache

from pypoplar.codelet.frontend.inference import VertexValue
from pypoplar.codelet.frontend.locals import LocalContent
from pypoplar.codelet.frontend.statements import Statements
from pypoplar.codelet.frontend.translator_state import nodes_of
from pypoplar.codelet.frontend.vectors import table_name
from pypoplar.codelet.ir.typed import Block, Local, Scratch, Span, SpanList, TypedArray, TypedCodelet, TypedField, TypedTable
from pypoplar.codelet.ir.walk import operands, walk
from pypoplar.codelet.language.source import CodeletSource
from pypoplar.codelet.operations.table import revision
from pypoplar.errors import CodeletError

_PASSES = 20  # and two more for each local: types only widen, by two steps at most, in a chain of all locals at worst


def translate(source: CodeletSource) -> TypedCodelet:
    """The typed form of a codelet. What device code cannot do is a `CodeletError` at the user's line.

    A codelet that another graph has, too, is not translated again.
    """
    return _translated(source, revision())


@lru_cache(maxsize=1024)
def _translated(source: CodeletSource, revision: int) -> TypedCodelet:
    before: dict[str, LocalContent] | None = None
    try:
        passes = 0
        while passes < _PASSES + 2 * len(before or ()):
            passes += 1
            attempt = Statements(source, before)
            typed = _pass(attempt)
            if attempt.locals.settled:
                if attempt.error is not None:
                    raise attempt.error
                return typed
            before = attempt.locals.contents
    except RecursionError:
        listing = source.functions[0].listing
        raise CodeletError(
            f"{source.name}: an expression or a block is nested too deeply", (listing.file, listing.first_line, None, None)
        ) from None
    listing = source.functions[0].listing
    raise attempt.error or CodeletError(
        f"{source.name}: the types of its locals do not settle: annotate them, x: FLOAT = 0.0",
        (listing.file, listing.first_line, None, None),
    )


def _pass(attempt: Statements) -> TypedCodelet:
    source, frame = attempt.source, attempt.frame
    with attempt.recovering():
        worker = _parameters(attempt, frame.tree)
        attempt.declare(frame)
        attempt.body(frame.tree.body)
        returns = _returns(attempt, frame.tree)
    if attempt.error is not None:
        worker, returns = None, False
    return TypedCodelet(
        source.name,
        source.kind,
        tuple(
            TypedField(field.name, field.access, field.form, field.type.code, field.unit, field.aligned) for field in source.fields
        ),
        tuple(attempt.blocks[0]),
        returns,
        tuple(attempt.locations),
        tuple(attempt.texts),
        worker,
        tuple(attempt.helpers),
        _tables(source, tuple(attempt.blocks[0])),
        _arrays(attempt, tuple(attempt.blocks[0])),
        source.distinct,
        source.writes_all,
        source.always_nearest,
        bool(source.functions[0].listing.places),  # which C++ has
    )


def _tables(source: CodeletSource, body: Block) -> tuple[TypedTable, ...]:
    """The tables that device code reads; a constant may have ruled others out."""
    read = {operand.name for statement in walk(body) for operand in operands(statement) if isinstance(operand, Span | SpanList)}
    named = ((table_name(number), table) for number, table in enumerate(source.tables))
    return tuple(TypedTable(name, table.type.code, table.shape, table.data) for name, table in named if name in read)


def _arrays(attempt: Statements, body: Block) -> tuple[TypedArray, ...]:
    """The scratch arrays of code that may run."""
    declared = {statement.array for statement in walk(body) if isinstance(statement, Scratch)}
    return tuple(array for array in attempt.arrays if array.name in declared)


def _parameters(attempt: Statements, tree: ast.FunctionDef) -> Local | None:
    """Bind ``self``, and the worker number of a MultiVertex."""
    wanted = ["self", "worker"] if attempt.source.kind == "multi" else ["self"]
    arguments = tree.args
    given = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    if len(given) != len(wanted) or arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        attempt.refuse(tree, f"compute of this kind of vertex is written def compute({', '.join(wanted)})")
    attempt.frame.bound[given[0]] = VertexValue()
    if attempt.source.kind != "multi":
        return None
    unique = attempt.frame.names[given[1]]
    attempt.locals.declared[unique] = "i32"
    attempt.locals.assign(unique)
    return Local(unique, "i32")


def _returns(attempt: Statements, tree: ast.FunctionDef) -> bool:
    """Whether compute returns a bool, on every path or on none."""
    returns = [node for node in nodes_of(tree) if isinstance(node, ast.Return)]
    values = [node for node in returns if node.value is not None and not _is_none(node.value)]
    if values and len(values) < len(returns):
        bare = next(node for node in returns if node not in values)
        attempt.refuse(bare, "compute returns a BOOL elsewhere: return one on every path")
    if values and attempt.locals.assigned is not None:
        attempt.refuse(tree, "compute returns a BOOL on some paths and may end here without one: return one on every path")
    return bool(values)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
