"""Refusals: a `CodeletError` that shows the user's line with a caret and says what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from pypoplar.errors import CodeletError


def refusal(message: str, file: str, lines: Iterable[str], first_line: int, node: ast.AST) -> CodeletError:
    """The error for `node` of a function whose source `lines` begin at `first_line` of `file`; node lines are those of the file."""
    line = getattr(node, "lineno", first_line)
    texts = list(lines)
    position = line - first_line
    text = texts[position] if 0 <= position < len(texts) else ""
    encoded = text.encode()  # ast counts columns in bytes
    offset = len(encoded[: getattr(node, "col_offset", 0)].decode(errors="ignore")) + 1
    end_line = getattr(node, "end_lineno", line) or line
    end_text = texts[end_line - first_line] if 0 <= end_line - first_line < len(texts) else ""
    end = len(end_text.encode()[: getattr(node, "end_col_offset", 0) or 0].decode(errors="ignore")) + 1
    return CodeletError(message, (file, line, offset, text.rstrip("\r\n"), end_line, end))


_FOR = "; write the loop out with for and range"
_STATEMENTS: dict[type[ast.AST], str] = {
    ast.Try: "try: it has no exceptions",
    ast.Raise: "raise: it has no exceptions; use ipu.check(condition, message)",
    ast.With: "with: it has no context managers",
    ast.Global: "global: module-level values are constants here; keep state in a plain field of the vertex",
    ast.Nonlocal: "nonlocal: a helper function gives its results with return",
    ast.FunctionDef: "a nested function: define it at module level",
    ast.AsyncFunctionDef: "async: it runs from its start to its end",
    ast.ClassDef: "a nested class: the device has numbers, vectors and rows only",
    ast.Import: "import: import at the top of the module",
    ast.ImportFrom: "import: import at the top of the module",
    ast.Delete: "del: its locals live to its end",
    ast.Match: "match: write if and elif",
    ast.AsyncFor: "async: it runs from its start to its end",
    ast.AsyncWith: "async: it runs from its start to its end",
}
_EXPRESSIONS: dict[type[ast.AST], str] = {
    ast.Lambda: "lambda: define a function with def at module level",
    ast.ListComp: "a list comprehension: the device has no lists" + _FOR,
    ast.SetComp: "a set comprehension: the device has no sets" + _FOR,
    ast.DictComp: "a dict comprehension: the device has no dicts" + _FOR,
    ast.GeneratorExp: "a generator expression: the device has no iterators" + _FOR,
    ast.List: "a list: the device has no lists; write ipu.array(FLOAT, 16) for working memory",
    ast.Dict: "a dict: the device has no dicts; pass a Vector field as a table",
    ast.Set: "a set: the device has no sets",
    ast.JoinedStr: "a string: the device has no strings; debug_print and print take them",
    ast.Await: "await: it runs from its start to its end",
    ast.Yield: "yield: compute is not a generator",
    ast.YieldFrom: "yield: compute is not a generator",
    ast.NamedExpr: "an assignment inside an expression: put it on a line of its own",
    ast.Starred: "* in a call or tuple: write the values out",
    ast.Slice: "a slice outside a vector's brackets",
}


def unsupported(node: ast.AST) -> str:
    """Why this kind of statement or expression cannot stand in device code, and what can."""
    for table in (_STATEMENTS, _EXPRESSIONS):
        if type(node) in table:
            return f"device code cannot use {table[type(node)]}"
    return f"device code cannot use {type(node).__name__}"


_SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip


def without_effect(node: ast.expr, *, ends_helper: bool = False) -> str:
    """Why an expression cannot be a statement, and what was probably meant; `ends_helper` if it is a helper function's last."""
    shown = ast.unparse(node)
    match node:
        case ast.UnaryOp(op=ast.UAdd(), operand=ast.UnaryOp(op=ast.UAdd(), operand=target)) if _assignable(target):
            return f"++ is two plus signs in Python and changes nothing: write {ast.unparse(target)} += 1"
        case ast.UnaryOp(op=ast.USub(), operand=ast.UnaryOp(op=ast.USub(), operand=target)) if _assignable(target):
            return f"-- is two minus signs in Python and changes nothing: write {ast.unparse(target)} -= 1"
        case _ if ends_helper:
            hint = f"did you mean return {shown}?"
        case ast.Compare(left=target, ops=[ast.Eq()], comparators=[value]) if _assignable(target):
            hint = f"== compares; did you mean {ast.unparse(target)} = {ast.unparse(value)}?"
        case ast.Compare():
            hint = f"did you mean ipu.check({shown})?"
        case ast.BinOp(left=target, op=symbol, right=value) if _assignable(target) and type(symbol) in _SYMBOLS:
            hint = f"did you mean {ast.unparse(target)} {_SYMBOLS[type(symbol)]}= {ast.unparse(value)}?"
        case ast.BoolOp() | ast.IfExp():
            hint = "write an if statement"
        case ast.Constant():
            hint = "write pass, or ..., where there is nothing to do"
        case _:
            hint = f"assign it, name = {shown}, or leave the line out"
    return f"{shown} has no effect here: nothing uses its value; {hint}"


def _assignable(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript)


STARS = "device code cannot use * and ** in a call: write the arguments out"

BUILTIN_HINTS: dict[str, str] = {
    "sum": "sum: write a loop that adds the elements",
    "enumerate": "enumerate: write `for i in range(len(x))` and use x[i]",
    "zip": "zip: write `for i in range(len(a))` and use a[i], b[i]",
    "reversed": "reversed: write `for i in range(len(x) - 1, -1, -1)`",
    "sorted": "sorted: the device has no lists; sort a Vector field in place with loops",
    "pow": "pow: write a ** b, or math.pow(a, b)",
    "divmod": "divmod: write a // b and a % b",
    "any": "any: write a loop with break",
    "all": "all: write a loop with break",
    "map": "map: write a loop",
    "filter": "filter: write a loop with if",
    "list": "list: the device has no lists; write ipu.array(FLOAT, 16) for working memory",
    "tuple": "tuple: the device has no tuples",
    "dict": "dict: the device has no dicts; pass a Vector field as a table",
    "set": "set: the device has no sets",
    "str": "str: the device has no strings; use ipu.debug_print(text, value)",
    "super": "super: call the base class's method by name, Base.method(self, ...)",
    "isinstance": "isinstance: types are known when the codelet is added; use a template, Generic[T]",
    "input": "input: it cannot talk to the host; use a stream",
    "open": "open: it has no files",
    "eval": "eval: it is translated before it runs",
    "exec": "exec: it is translated before it runs",
}
"""Builtins people try in device code, and what to write instead."""
