"""The environment of device code: what each name in it means, found when the codelet is added."""

from __future__ import annotations

import ast
import builtins
import enum
import inspect
import math
from functools import lru_cache
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from pypoplar.codelet.language.constant_tables import ConstantTable, NoTable, table_of
from pypoplar.codelet.language.constraints import distinct_fields
from pypoplar.codelet.language.declaration import Bindings, base_name, bindings_of, fields_of, full_name, kind_of, user_classes
from pypoplar.codelet.language.fields import Vertex
from pypoplar.codelet.language.half_rounding import always_nearest
from pypoplar.codelet.language.promises import promised_fields
from pypoplar.codelet.language.record_layout import RecordLayout
from pypoplar.codelet.language.records import Record, is_record, layout_of
from pypoplar.codelet.language.source import CodeletSource, FunctionSource, Meaning
from pypoplar.codelet.language.source_text import function_listing, parse_function
from pypoplar.errors import CodeletError
from pypoplar.spelling import nearest
from pypoplar.types import ElementType

_IPU = "pypoplar.ipu"


def builtins_of_device_code() -> list[str]:
    """Python's functions that device code may call: those of the language, and those that are device operations."""
    from pypoplar.codelet.operations.call_forms import LANGUAGE  # late: graphs are made without operations
    from pypoplar.codelet.operations.table import python_functions

    return sorted({*LANGUAGE, *python_functions()})


def codelet_source(cls: type[Vertex], bindings: Bindings) -> CodeletSource:
    """The self-contained source of a codelet class, or of an instance of a template."""
    compute = inspect.getattr_static(cls, "compute", None)
    if not isinstance(compute, FunctionType) or hasattr(compute, "__wrapped__"):
        declared = cls.__declared__
        problem = "has no compute method" if compute is None else "has a compute that is decorated, or not a method"
        raise CodeletError(
            f"{base_name(cls)} {problem}: device code is written as def compute(self)", (declared.file, declared.line, None, None)
        )
    collection = _Collection(cls, bindings)
    collection.add(compute)
    arguments = tuple(bindings[variable] for variable in getattr(cls, "__parameters__", ()) if variable in bindings)
    fields = fields_of(cls, bindings)
    own = {field.attribute for field in fields}  # a default in the class is no constant
    return CodeletSource(
        full_name(cls, arguments),
        kind_of(cls),
        fields,
        tuple(function for function in collection.functions if function is not None),
        {path: meaning for path, meaning in collection.attributes.items() if path.partition(".")[0] not in own},
        tuple(collection.tables),
        tuple(collection.records),
        distinct_fields(cls, fields),
        promised_fields(cls, fields),
        always_nearest(cls),
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
        self.tables: dict[ConstantTable, int] = {}
        self.records: dict[RecordLayout, int] = {}

    def add(self, function: FunctionType) -> int:
        """The position of `function`, collected with all that it reaches."""
        if function in self.numbers:
            return self.numbers[function]
        listing = function_listing(function)
        tree = parse_function(listing)
        number = self.numbers[function] = len(self.functions)
        self.functions.append(None)  # a recursive function finds itself
        names = {name: self._dotted(function, name) for name in _names(tree)}
        for path in _paths(tree):
            self._attribute(path)
        self.functions[number] = FunctionSource(function.__name__, listing, names, self._defaults(function))
        return number

    def _defaults(self, function: FunctionType) -> dict[str, Meaning]:
        code = function.__code__
        values = function.__defaults__ or ()
        positional = code.co_varnames[: code.co_argcount]
        defaults = dict(zip(positional[len(positional) - len(values) :], values, strict=True))
        defaults |= function.__kwdefaults__ or {}
        return {name: self._meaning(value) for name, value in defaults.items()}

    def _attribute(self, path: str) -> None:
        """Collect what ``self.path`` means, ``SIZE`` or ``Kind.WALL``, unless it is no attribute of the class."""
        name, *rest = path.split(".")
        if path in self.attributes:
            return
        for base in user_classes(self.cls):
            if name in vars(base):
                member = vars(base)[name]
                break
        else:
            return
        if rest:
            self.attributes[path] = self._member(member, name, rest)
        elif isinstance(member, FunctionType):
            self.attributes[name] = self._function(member, "method")
        elif isinstance(member, staticmethod):
            self.attributes[name] = self._meaning(member.__func__)
        else:
            self.attributes[name] = self._meaning(member)

    def _dotted(self, function: FunctionType, dotted: str) -> Meaning:
        """The meaning of a dotted name as `function` sees it."""
        root, *rest = dotted.split(".")
        scopes: list[dict[str, Any]] = [_closure(function), function.__globals__, vars(builtins)]
        for scope in scopes:
            if root in scope:
                value = scope[root]
                break
        else:
            known = [name for scope in scopes[:2] for name in scope] + builtins_of_device_code()
            return Meaning("missing", f"name '{root}' is not defined{nearest(root, known)}")
        if value is _EMPTY:
            return Meaning("missing", f"'{root}' has no value yet where the codelet is added")
        return self._member(value, root, rest)

    def _member(self, value: Any, path: str, names: list[str]) -> Meaning:
        """The meaning of ``path.names``, where `value` is what the path means: a module, a class, or a member of an enum."""
        for name in names:
            if not isinstance(value, ModuleType | type) and not _gives(value, name):
                return Meaning("foreign", f"{path}.{name}: {path} is {_describe(value)}")
            if not hasattr(value, name):
                return Meaning("missing", f"{_describe(value)} has no '{name}'{nearest(name, dir(value))}")
            value = getattr(value, name)
            path += "." + name
        return self._meaning(value)

    def _meaning(self, value: Any) -> Meaning:
        if isinstance(value, np.generic | np.ndarray) and np.ndim(value) == 0 and isinstance(value.item(), bool | int | float):
            value = value.item()
        if isinstance(value, list | tuple | np.ndarray):
            return self._table(value)
        for plain in (bool, int, float, str):  # as such, not as a member of an IntEnum, say
            if isinstance(value, plain):
                return Meaning("constant", plain(value))
        if isinstance(value, TypeVar | ElementType):
            return self._type(value)
        if is_record(value) and value is not Record:
            return Meaning("record", self.records.setdefault(layout_of(value), len(self.records)))
        if isinstance(value, FunctionType):
            return self._function(value, "helper")
        name = getattr(value, "__name__", "")
        if isinstance(value, BuiltinFunctionType) and getattr(math, name, None) is value:
            return Meaning("math", name)
        if getattr(builtins, name, None) is value:
            return Meaning("builtin" if name in builtins_of_device_code() else "foreign", name)
        if isinstance(value, enum.Enum):
            enumeration = type(value).__name__
            member = f"{enumeration}.{value.name}"
            return Meaning("foreign", f"{member}: it is no number; make {enumeration} an IntEnum, or write {member}.value")
        if isinstance(value, enum.EnumMeta) and len(value):
            member = f"{name}.{next(iter(value)).name}"
            return Meaning("foreign", f"the enum {name}: name one of its members, such as {member}")
        return Meaning("foreign", _describe(value))

    def _table(self, value: Any) -> Meaning:
        try:
            table = table_of(value)
        except NoTable as reason:
            return Meaning("foreign", str(reason))
        return Meaning("table", self.tables.setdefault(table, len(self.tables)))

    def _type(self, named: TypeVar | ElementType) -> Meaning:
        if isinstance(named, TypeVar):
            if named in self.variables:
                return Meaning("type", self.variables[named].__name__)
            return Meaning("foreign", f"type variable {named.__name__}, which has no type here")
        if not named.supported:
            return Meaning("foreign", f"{named.__name__}: the device has no such numbers; use FLOAT, HALF, INT or LONGLONG")
        return Meaning("type", named.__name__)

    def _function(self, function: FunctionType, sort: Any) -> Meaning:
        if function.__module__ == _IPU:
            return Meaning("ipu", function.__name__)
        if function.__name__ == "<lambda>":
            return Meaning("foreign", "a lambda: define a function with def")
        if hasattr(function, "__wrapped__"):
            return Meaning("foreign", f"the decorated function {function.__name__}: helper functions stand without decorators")
        try:
            return Meaning(sort, self.add(function))
        except CodeletError as error:
            return Meaning("foreign", f"the function {function.__name__}: {error.msg}")


def _gives(value: Any, name: str) -> bool:
    """Whether a value that is no module and no class has an attribute that device code may name."""
    return (isinstance(value, enum.Enum) and name in ("name", "value")) or (isinstance(value, np.dtype) and name == "itemsize")


_EMPTY = object()


def _closure(function: FunctionType) -> dict[str, Any]:
    def content(cell: CellType) -> Any:
        try:
            return cell.cell_contents
        except ValueError:
            return _EMPTY

    cells = function.__closure__ or ()
    return {name: content(cell) for name, cell in zip(function.__code__.co_freevars, cells, strict=True)}


def _describe(value: Any) -> str:
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, type):
        return f"class {value.__name__}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {list(value.shape)}"
    if callable(value) and hasattr(value, "__name__"):
        module = getattr(value, "__module__", None) or type(getattr(value, "__self__", value)).__module__
        module = "numpy.random" if isinstance(module, str) and module.startswith("numpy.random.") else module  # its public name
        return f"{module}.{value.__name__}" if isinstance(module, str) else str(value.__name__)
    article = "an" if type(value).__name__[:1] in "aeiou" else "a"
    return f"{article} {type(value).__name__}"


@lru_cache(maxsize=512)
def _names(tree: ast.FunctionDef) -> tuple[str, ...]:
    """The dotted names that a function reads from outside, as written, each once."""
    local_names = {node.arg for node in ast.walk(tree.args) if isinstance(node, ast.arg)}
    local_names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    names: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        dotted = dotted_name(node)
        if dotted is not None and dotted.partition(".")[0] not in local_names:
            names[dotted] = None
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    for statement in tree.body:
        visit(statement)
    return tuple(names)


@lru_cache(maxsize=512)
def _paths(tree: ast.FunctionDef) -> tuple[str, ...]:
    """What a function reads of its parameters, ``SIZE`` of ``self.SIZE``, each once."""
    parameters = {parameter.arg for parameter in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)}
    dotted = (dotted_name(node) or "" for node in ast.walk(tree))
    paths = (path for root, _, path in (name.partition(".") for name in dotted) if path and root in parameters)
    return tuple(dict.fromkeys(paths))


def dotted_name(node: ast.AST) -> str | None:
    """``"a.b.c"`` of a name or a chain of attributes, else None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        root = dotted_name(node.value)
        return None if root is None else f"{root}.{node.attr}"
    return None
