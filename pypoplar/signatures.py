"""Functions that users hand over, and whether they can be called as they will be."""

from __future__ import annotations

import inspect
from typing import Any


def misfit(function: Any, *arguments: Any, **keywords: Any) -> str:
    """How a function is declared that cannot be called with these arguments, and where: ``fill(a, b), program.py:12``.

    Nothing for one that can be called so, or that does not say how it is to be called.
    """
    if not callable(function):
        return type(function).__name__
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # it is not written in Python
        return ""
    try:
        signature.bind(*arguments, **keywords)
    except TypeError:
        return f"{_declared(function, signature)}{_place(function)}"
    return ""


def _declared(function: Any, signature: inspect.Signature) -> str:
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    name = getattr(function, "__name__", type(function).__name__)
    return f"{name}{signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)}"


def _place(function: Any) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f", {code.co_filename}:{code.co_firstlineno}" if code else ""
