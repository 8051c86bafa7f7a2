"""The annotations of the user's classes: what they mean, and how one that means nothing is refused."""

from __future__ import annotations

import ast
import sys
from typing import Any, ForwardRef

from pypoplar.codelet.language.diagnostics import refusal
from pypoplar.codelet.language.fields import Declared
from pypoplar.codelet.language.source_text import field_statement
from pypoplar.errors import CodeletError

HINTS: dict[Any, str] = {float: "FLOAT or HALF", int: "INT or UNSIGNED_INT", bool: "BOOL"}  # what Python's types are for


class NotAField(Exception):
    """An annotation that makes no field; the text says why."""


def refused_field(cls: type, attribute: str, reason: str, *, at_value: bool = False) -> CodeletError:
    """The error at a field's annotation, or at its value in the class."""
    declared: Declared = cls.__dict__["__declared__"]
    lines, statement = field_statement(declared.file, declared.line, cls.__name__, attribute)
    message = f"{cls.__name__}.{attribute}: {reason}"
    node = statement.annotation if isinstance(statement, ast.AnnAssign) and not at_value else getattr(statement, "value", statement)
    if node is None:
        return CodeletError(message, (declared.file, declared.line, None, None))
    return refusal(message, declared.file, lines, 1, node)


def evaluated(cls: type, annotation: Any) -> Any:
    """The object that an annotation means, if it was written as a string or under ``from __future__ import annotations``."""
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if not isinstance(annotation, str):
        return annotation
    module = sys.modules.get(cls.__module__)
    declared: Declared = cls.__dict__["__declared__"]
    names = declared.scope | (vars(module) if module else {}) | declared.names
    names.update({variable.__name__: variable for variable in getattr(cls, "__type_params__", ())})  # class Scale[T](Vertex)
    try:
        return eval(annotation, names)
    except Exception as error:
        raise NotAField(f"the annotation cannot be read: {error}") from error
