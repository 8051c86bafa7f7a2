"""From a codelet's source to its typed form: passes over the code until the types of the locals settle."""

from __future__ import annotations

import ast

from pypoplar.codelet.frontend.inference import Vertex
from pypoplar.codelet.frontend.locals import Found
from pypoplar.codelet.frontend.statements import Statements
from pypoplar.codelet.ir.typed import Local, TypedCodelet, TypedField
from pypoplar.codelet.language.source import CodeletSource
from pypoplar.errors import CodeletError

_PASSES = 20  # and two more for each local: types only widen, by two steps at most, in a chain of all locals at worst


def translate(source: CodeletSource) -> TypedCodelet:
    """The typed form of a codelet. What device code cannot do is a `CodeletError` at the user's line."""
    before: dict[str, Found] | None = None
    try:
        passes = 0
        while passes < _PASSES + 2 * len(before or ()):
            passes += 1
            one = Statements(source, before)
            typed = _pass(one)
            if one.locals.settled:
                if one.error is not None:
                    raise one.error
                return typed
            before = one.locals.found
    except RecursionError:
        listing = source.functions[0].listing
        raise CodeletError(
            f"{source.name}: an expression or a block is nested too deeply", (listing.file, listing.first_line, None, None)
        ) from None
    listing = source.functions[0].listing
    raise one.error or CodeletError(
        f"{source.name}: the types of its locals do not settle: annotate them, x: FLOAT = 0.0",
        (listing.file, listing.first_line, None, None),
    )


def _pass(one: Statements) -> TypedCodelet:
    source, frame = one.source, one.frame
    with one.recovering():
        worker = _parameters(one, frame.tree)
        one.declare(frame)
        one.body(frame.tree.body)
        returns = _returns(one, frame.tree)
    if one.error is not None:
        worker, returns = None, False
    return TypedCodelet(
        source.name,
        source.kind,
        tuple(TypedField(field.name, field.access, field.form, field.type.code) for field in source.fields),
        tuple(one.blocks[0]),
        returns,
        tuple(one.locations),
        tuple(one.texts),
        worker,
        tuple(one.helpers),
    )


def _parameters(one: Statements, tree: ast.FunctionDef) -> Local | None:
    """Bind ``self``, and the worker number of a MultiVertex."""
    wanted = ["self", "worker"] if one.source.kind == "multi" else ["self"]
    arguments = tree.args
    given = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    if len(given) != len(wanted) or arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        one.refuse(tree, f"compute of this kind of vertex is written def compute({', '.join(wanted)})")
    one.frame.bound[given[0]] = Vertex()
    if one.source.kind != "multi":
        return None
    unique = one.frame.names[given[1]]
    one.locals.declared[unique] = "i32"
    one.locals.assign(unique)
    return Local(unique, "i32")


def _returns(one: Statements, tree: ast.FunctionDef) -> bool:
    """Whether compute returns a bool, on every path or on none."""
    returns = [node for node in ast.walk(tree) if isinstance(node, ast.Return)]
    values = [node for node in returns if node.value is not None and not _is_none(node.value)]
    if values and len(values) < len(returns):
        bare = next(node for node in returns if node not in values)
        one.refuse(bare, "compute returns a BOOL elsewhere: return one on every path")
    if values and one.locals.assigned is not None:
        one.refuse(tree, "compute returns a BOOL on some paths and may end here without one: return one on every path")
    return bool(values)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
