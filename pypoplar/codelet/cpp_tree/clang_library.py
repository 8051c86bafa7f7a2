"""libclang, loaded when the first C++ file comes: its version, and what its Python binding leaves out."""

from __future__ import annotations

import functools
from ctypes import c_double, c_int, c_longlong, c_ulonglong, c_void_p
from typing import Any

from attrs import frozen

from pypoplar.errors import MissingFeature
from pypoplar.extras import install_command

OLDEST = 18
"""The oldest release that was tried; older ones do not say which operator an expression has."""


@frozen
class Clang:
    """The binding, an index, and the functions of the library that it does not wrap."""

    cindex: Any
    index: Any

    @property
    def functions(self) -> Any:
        """The library's functions by their names in C."""
        return self.cindex.conf.lib

    def constant(self, cursor: Any) -> int | float | bool | None:
        """The value of a constant expression or variable; None for any other."""
        functions = self.functions
        result = functions.clang_Cursor_Evaluate(cursor)
        if not result:
            return None
        try:
            kind = functions.clang_EvalResult_getKind(result)
            if kind == 1:
                if functions.clang_EvalResult_isUnsignedInt(result):
                    return int(functions.clang_EvalResult_getAsUnsigned(result))
                return int(functions.clang_EvalResult_getAsLongLong(result))
            return float(functions.clang_EvalResult_getAsDouble(result)) if kind == 2 else None
        finally:
            functions.clang_EvalResult_dispose(result)

    def children(self, cursor: Any) -> list[Any]:
        """The children of a cursor; the binding's own leaves some out where Python's stack ends inside of its visitor."""
        found: list[Any] = []

        def visit(child: Any, parent: Any, data: Any) -> int:
            child._tu = cursor._tu  # keeps the tree alive
            found.append(child)
            return 1

        _leave_room(8)
        if self.functions.clang_visitChildren(cursor, self.cindex.callbacks["cursor_visit"](visit), None):
            raise RecursionError
        return found

    def operator(self, cursor: Any) -> str:
        """The symbol of a binary operator or of an assignment: ``+``, ``+=``."""
        functions = self.functions
        kind = functions.clang_getCursorBinaryOperatorKind(cursor)
        return str(functions.clang_getBinaryOperatorKindSpelling(kind))

    def unary_operator(self, cursor: Any) -> str:
        """The symbol of a unary operator: ``++`` before its operand, ``x++`` behind it."""
        kind = self.functions.clang_getCursorUnaryOperatorKind(cursor)
        return {1: "x++", 2: "x--", 3: "++", 4: "--", 5: "&", 6: "*", 7: "+", 8: "-", 9: "~", 10: "!"}.get(kind, "?")


def _leave_room(calls: int) -> None:
    """A `RecursionError` where the stack has no room for some calls more: one inside of a visitor would be lost."""
    if calls:
        _leave_room(calls - 1)


def _functions(cindex: Any) -> Any:
    return cindex.conf.lib


@functools.cache
def clang() -> Clang:
    """The library, loaded once; without it a `MissingFeature` says how it is installed."""
    try:
        from clang import cindex
    except ImportError:
        raise MissingFeature(f"codelets in C++ need libclang: {install_command('cpp')}") from None
    try:
        index = cindex.Index.create()
        functions = _functions(cindex)
        operator_kind = functions.clang_getCursorBinaryOperatorKind
    except cindex.LibclangError as problem:
        raise MissingFeature(
            f"codelets in C++ need libclang, which cannot be loaded: {problem}; {install_command('cpp')}"
        ) from None
    except AttributeError:
        raise MissingFeature(
            f"codelets in C++ need libclang {OLDEST} or newer, and this one is older: {install_command('cpp')}"
        ) from None
    cursor = cindex.Cursor
    for function in (operator_kind, functions.clang_getCursorUnaryOperatorKind):
        function.argtypes, function.restype = [cursor], c_int
    spelling = functions.clang_getBinaryOperatorKindSpelling
    spelling.argtypes, spelling.restype, spelling.errcheck = [c_int], cindex._CXString, cindex._CXString.from_result
    functions.clang_Cursor_Evaluate.argtypes, functions.clang_Cursor_Evaluate.restype = [cursor], c_void_p
    for name, result in (
        ("getKind", c_int), ("isUnsignedInt", c_int), ("getAsUnsigned", c_ulonglong), ("getAsLongLong", c_longlong),
        ("getAsDouble", c_double), ("dispose", None),
    ):  # fmt: skip
        function = getattr(functions, f"clang_EvalResult_{name}")
        function.argtypes, function.restype = [c_void_p], result
    return Clang(cindex, index)
