"""The environment of device code: what each name in it means, found when the codelet is added."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from pypoplar.codelet.language.declaration import Bindings, base_name, bindings_of, fields_of, full_name, kind_of, user_classes
from pypoplar.codelet.language.fields import Vertex
from pypoplar.codelet.language.source import CodeletSource, FunctionSource, Meaning
from pypoplar.codelet.language.source_text import function_listing, parse_function
from pypoplar.errors import CodeletError
from pypoplar.spelling import nearest
from pypoplar.types import ElementType

BUILTINS = ("abs", "bool", "breakpoint", "float", "int", "len", "max", "min", "print", "range", "round")
_IPU = "pypoplar.ipu"


def codelet_source(cls: type[Vertex], bindings: Bindings) -> CodeletSource:
    """The self-contained source of a codelet class, or of an instance of a template."""
    compute = inspect.getattr_static(cls, "compute", None)
    if not isinstance(compute, FunctionType) or hasattr(compute, "__wrapped__"):
        declared = cls.__declared__
        said = "has no compute method" if compute is None else "has a compute that is decorated, or not a method"
        raise CodeletError(
            f"{base_name(cls)} {said}: device code is written as def compute(self)", (declared.file, declared.line, None, None)
        )
    collection = _Collection(cls, bindings)
    collection.add(compute)
    arguments = tuple(bindings[one] for one in getattr(cls, "__parameters__", ()) if one in bindings)
    return CodeletSource(
        full_name(cls, arguments),
        kind_of(cls),
        fields_of(cls, bindings),
        tuple(one for one in collection.functions if one is not None),
        collection.attributes,
    )


class _Collection:
    """The functions that device code reaches, each once, in the order in which they are met."""

    def __init__(self, cls: type[Vertex], bindings: Bindings) -> None:
        self.cls = cls
        self.variables: dict[Any, ElementType] = {}
        for bound in reversed(bindings_of(cls, bindings).values()):
            self.variables |= bound
        self.functions: list[FunctionSource | None] = []
        self.numbers: dict[FunctionType, int] = {}
        self.attributes: dict[str, Meaning] = {}

    def add(self, function: FunctionType) -> int:
        """The position of `function`, collected with all that it reaches."""
        if function in self.numbers:
            return self.numbers[function]
        listing = function_listing(function)
        tree = parse_function(listing)
        number = self.numbers[function] = len(self.functions)
        self.functions.append(None)  # a recursive function finds itself
        names = {name: self._dotted(function, name) for name in _names(tree)}
        parameters = {one.arg for one in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in parameters:
                self._attribute(node.attr)
        self.functions[number] = FunctionSource(function.__name__, listing, names, self._defaults(function))
        return number

    def _defaults(self, function: FunctionType) -> dict[str, Meaning]:
        code = function.__code__
        values = function.__defaults__ or ()
        positional = code.co_varnames[: code.co_argcount]
        defaults = dict(zip(positional[len(positional) - len(values) :], values, strict=True))
        defaults |= function.__kwdefaults__ or {}
        return {name: self._meaning(value) for name, value in defaults.items()}

    def _attribute(self, name: str) -> None:
        if name in self.attributes:
            return
        for one in user_classes(self.cls):
            if name in vars(one):
                found = vars(one)[name]
                break
        else:
            return
        if isinstance(found, FunctionType):
            self.attributes[name] = self._function(found, "method")
        elif isinstance(found, staticmethod):
            self.attributes[name] = self._meaning(found.__func__)
        else:
            self.attributes[name] = self._meaning(found)

    def _dotted(self, function: FunctionType, dotted: str) -> Meaning:
        """The meaning of a dotted name as `function` sees it."""
        root, *rest = dotted.split(".")
        scopes: list[dict[str, Any]] = [_closure(function), function.__globals__, vars(builtins)]
        for scope in scopes:
            if root in scope:
                found = scope[root]
                break
        else:
            known = [name for scope in scopes[:2] for name in scope] + list(BUILTINS)
            return Meaning("missing", f"name '{root}' is not defined{nearest(root, known)}")
        if found is _EMPTY:
            return Meaning("missing", f"'{root}' has no value yet where the codelet is added")
        path = root
        for one in rest:
            if not isinstance(found, ModuleType | type):
                return Meaning("foreign", f"{path}.{one}: {path} is {_describe(found)}")
            if not hasattr(found, one):
                return Meaning("missing", f"{_describe(found)} has no '{one}'{nearest(one, dir(found))}")
            found = getattr(found, one)
            path += "." + one
        return self._meaning(found)

    def _meaning(self, found: Any) -> Meaning:
        if isinstance(found, np.generic) and isinstance(found.item(), bool | int | float):
            found = found.item()
        for plain in (bool, int, float, str):  # as such, not as a member of an IntEnum, say
            if isinstance(found, plain):
                return Meaning("constant", plain(found))
        if isinstance(found, TypeVar | ElementType):
            return self._type(found)
        if isinstance(found, FunctionType):
            return self._function(found, "helper")
        name = getattr(found, "__name__", "")
        if isinstance(found, BuiltinFunctionType) and getattr(math, name, None) is found:
            return Meaning("math", name)
        if getattr(builtins, name, None) is found:
            return Meaning("builtin" if name in BUILTINS else "foreign", name)
        return Meaning("foreign", _describe(found))

    def _type(self, named: TypeVar | ElementType) -> Meaning:
        if isinstance(named, TypeVar):
            if named in self.variables:
                return Meaning("type", self.variables[named].__name__)
            return Meaning("foreign", f"type variable {named.__name__}, which has no type here")
        if not named.supported:
            return Meaning("foreign", f"{named.__name__}: the device has no such numbers; use FLOAT, HALF, INT or LONGLONG")
        return Meaning("type", named.__name__)

    def _function(self, found: FunctionType, sort: Any) -> Meaning:
        if found.__module__ == _IPU:
            return Meaning("ipu", found.__name__)
        if found.__name__ == "<lambda>":
            return Meaning("foreign", "a lambda: define a function with def")
        if hasattr(found, "__wrapped__"):
            return Meaning("foreign", f"the decorated function {found.__name__}: helper functions stand without decorators")
        try:
            return Meaning(sort, self.add(found))
        except CodeletError as error:
            return Meaning("foreign", f"the function {found.__name__}: {error.msg}")


_EMPTY = object()


def _closure(function: FunctionType) -> dict[str, Any]:
    def content(cell: CellType) -> Any:
        try:
            return cell.cell_contents
        except ValueError:
            return _EMPTY

    cells = function.__closure__ or ()
    return {name: content(cell) for name, cell in zip(function.__code__.co_freevars, cells, strict=True)}


def _describe(found: Any) -> str:
    if isinstance(found, ModuleType):
        return f"module {found.__name__}"
    if isinstance(found, type):
        return f"class {found.__name__}"
    if isinstance(found, np.ndarray):
        return f"an array of shape {list(found.shape)}: pass it as an Input field"
    if callable(found) and hasattr(found, "__name__"):
        module = getattr(found, "__module__", None) or type(found).__module__
        return f"{module}.{found.__name__}" if isinstance(module, str) else str(found.__name__)
    article = "an" if type(found).__name__[:1] in "aeiou" else "a"
    return f"{article} {type(found).__name__}"


def _names(tree: ast.FunctionDef) -> list[str]:
    """The dotted names that a function reads from outside, as written, each once."""
    own = {one.arg for one in ast.walk(tree.args) if isinstance(one, ast.arg)}
    own |= {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    found: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        dotted = dotted_name(node)
        if dotted is not None and dotted.partition(".")[0] not in own:
            found[dotted] = None
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    for statement in tree.body:
        visit(statement)
    return list(found)


def dotted_name(node: ast.AST) -> str | None:
    """``"a.b.c"`` of a name or a chain of attributes, else None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        root = dotted_name(node.value)
        return None if root is None else f"{root}.{node.attr}"
    return None
