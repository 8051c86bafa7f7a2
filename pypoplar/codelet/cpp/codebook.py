"""What the functions of one codelet share: its fields, its helper functions, its tables."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from attrs import define, field

from pypoplar.codelet.cpp.cpp_values import Itself, NumberPlace, NumberText, Pointer, Rows, Value, VectorName, as_type, literal
from pypoplar.codelet.cpp.writing import TAKEN, Refused, Writing, refuse
from pypoplar.codelet.cpp_tree.changes import ends
from pypoplar.codelet.cpp_tree.cpp_types import NAMES, CppType, register, type_of
from pypoplar.codelet.cpp_tree.tree import Node
from pypoplar.codelet.language.constant_tables import ConstantTable
from pypoplar.codelet.language.source import FunctionSource, Meaning
from pypoplar.codelet.language.source_text import Listing
from pypoplar.types import BY_NAME

if TYPE_CHECKING:
    from pypoplar.codelet.cpp.class_fields import CppField
    from pypoplar.codelet.cpp.walk_state import CppWalk

_FORMATS = {
    "bool": "?",
    "u8": "B",
    "i8": "b",
    "i16": "h",
    "u16": "H",
    "i32": "i",
    "u32": "I",
    "i64": "q",
    "u64": "Q",
    "f32": "f",
    "f16": "e",
}


@define
class Codebook:
    """One codelet while it is written."""

    fields: dict[str, CppField]
    name: str
    functions: list[FunctionSource | None] = field(factory=list)
    helper_names: dict[str, int] = field(factory=dict)
    keys: dict[int, str] = field(factory=dict)  # functions of C++ that are helper functions
    open: list[Node] = field(factory=list)  # those that are being written
    tables: dict[str, tuple[ConstantTable, CppType]] = field(factory=dict)
    refusals: list[Refused] | None = None  # where all are wanted, those so far; else the first one is raised
    table_keys: dict[int, str | None] = field(factory=dict)

    # functions

    def compute(self, function: Node, arguments: list[str]) -> None:
        """Write compute, the first of the functions."""
        self.functions.append(None)
        self.functions[0] = self.written(function, "compute", ["self", *arguments], method=True)

    def helper(self, function: Node, node: Node) -> str:
        """The name of the helper function for a function of C++, which is written when it is first called."""
        if function.key in self.keys:
            name = self.keys[function.key]
            if any(one.key == function.key for one in self.open):
                names = " -> ".join([*(one.name for one in self.open), function.name])
                refuse(node, f"recursion ({names}): device code has no call stack; write a loop")
            return name
        base = function.name if function.name.isidentifier() else "function"
        base = base + "_" if base in TAKEN or base == "compute" else base
        name, count = base, 1
        while name in self.helper_names or name in self.tables:
            count += 1
            name = f"{base}_{count}"
        number = len(self.functions)
        self.functions.append(None)
        self.helper_names[name] = number
        self.keys[function.key] = name
        method = function.kind == "CXX_METHOD" and not function.cursor.is_static_method()
        self.functions[number] = self.written(function, name, ["self"] if method else [], method=method)
        return name

    def helper_meaning(self, name: str) -> Meaning:
        return Meaning("helper", self.helper_names[name])

    def is_open(self, function: Node) -> bool:
        """Whether a function is one that device code cannot call as a helper function."""
        return function.kind == "LAMBDA_EXPR"

    def is_written(self, function: Node) -> bool:
        """Whether a function has been written as a helper function, or is being written."""
        return function.key in self.keys and any(one.key == function.key for one in self.open)

    def result_of(self, function: Node) -> str:
        type = type_of(function.cursor.result_type)
        if type.value.sort != "number":
            refuse(function, f"{function.name} returns {type.spelling}")
        return type.value.code

    def written(self, function: Node, name: str, parameters: list[str], *, method: bool) -> FunctionSource:
        from pypoplar.codelet.cpp.cpp_loops import CppLoops

        body = next((child for child in function.children if child.kind in ("COMPOUND_STMT", "CXX_TRY_STMT")), None)
        if body is None:
            refuse(function, f"{name} has no body")
        if body.kind != "COMPOUND_STMT":
            refuse(body, "try: device code has no exceptions")
        writing = Writing(function.file, place=function.line)
        walk = CppLoops(self, writing)
        walk.function = function
        walk.this = Itself() if method else None
        self.open.append(function)
        words = list(parameters)
        for child in function.children:
            if child.kind == "PARM_DECL":
                words += bind(walk, child, worker=name == "compute")
        walk.body(body)
        gives = name != "compute" and type_of(function.cursor.result_type).sort != "void"
        if (
            gives
            and not ends(body)
            and not (writing.lines and writing.lines[-1].depth == 1 and writing.lines[-1].text.startswith("return "))
        ):
            walk.emit(f"{writing.use('ipu.check')}(False, {f'{function.name} ends without a value'!r})")
            walk.emit(f"return {walk.typed(literal(0, self.result_of(function))).text}")
        self.open.pop()
        text, places = writing.text(f"def {name}({', '.join(words)}):")
        return FunctionSource(name, Listing(function.file, function.line, text, places), writing.names)

    def reserve(self, walk: CppWalk, text: str) -> None:
        """An array, which is declared before everything else."""
        walk.writing.reserve(text)

    # tables

    def table_of(self, declared: Node) -> tuple[str, CppType] | None:
        """The name of the table that a constant array is, and the type of its elements; None for what is none."""
        if declared.key in self.table_keys:
            name = self.table_keys[declared.key]
            return None if name is None else (name, self.tables[name][1])
        found = _table(declared)
        if found is None:
            self.table_keys[declared.key] = None
            return None
        name, count = declared.name if declared.name not in TAKEN else declared.name + "_", 1
        while name in self.tables or name in self.helper_names:
            count += 1
            name = f"{declared.name}_{count}"
        self.tables[name] = found
        self.table_keys[declared.key] = name
        return name, found[1]

    def table_meaning(self, name: str) -> Meaning:
        return Meaning("table", list(self.tables).index(name))


def bind(walk: Any, parameter: Node, *, worker: bool) -> list[str]:
    """The names of Python's parameters for one of C++."""
    writing: Writing = walk.writing
    type = parameter.type
    value: Value
    if type.value.sort == "number":
        held = register(type.value.code)
        name = writing.local(parameter.name or "unused", "i32" if worker else held)
        value = NumberPlace(name, type.value.code, "i32" if worker else held, counts=worker, is_local=True)
        walk.bindings[parameter.key] = value
        return [name]
    if type.sort == "pointer" and type.to is not None:
        span, at = writing.local(parameter.name, "span"), writing.local(f"{parameter.name}_at", "i32")
        walk.bindings[parameter.key] = Pointer(span, NumberText(at, "i32", "i32", named=True), type.to)
        return [span, at]
    from pypoplar.codelet.cpp.class_fields import vector_type

    form, element = vector_type(type.value, parameter)
    name = writing.local(parameter.name, "span")
    walk.bindings[parameter.key] = Rows(name, element) if form == "list" else VectorName(name, element)
    return [name]


def _table(declared: Node) -> tuple[ConstantTable, CppType] | None:
    type = declared.type
    if "const" not in declared.cursor.type.spelling or type.sort != "array" or type.to is None:
        return None
    element, count = type, 1
    while element.sort == "array" and element.to is not None:
        count *= element.count
        element = element.to.value
    if element.sort != "number" or element.code not in _FORMATS:
        return None
    initial = next((part for part in reversed(declared.parts) if part.kind in ("INIT_LIST_EXPR", "UNEXPOSED_EXPR")), None)
    if initial is None:
        definition = declared.cursor.get_definition()
        if definition is None or definition.hash == declared.cursor.hash:
            return None
        return _table(Node(definition))
    values: list[int | float | bool] = []
    if not _values(initial.bare, type, values):
        return None
    data = b"".join(struct.pack("<" + _FORMATS[element.code], as_type(value, element.code)) for value in values)
    return ConstantTable(BY_NAME[NAMES[element.code]], (count,), data), type.to


def _values(node: Node, type: CppType, values: list[int | float | bool]) -> bool:
    """Append the constants of an initialiser of an array, with zeros where it gives none."""
    if type.sort != "array":
        if node.constant is None:
            return False
        values.append(node.constant)
        return True
    if node.kind != "INIT_LIST_EXPR" or type.to is None:
        return False
    parts = list(node.parts)
    for position in range(type.count):
        if position < len(parts):
            part = parts[position]
            if not _values(part.bare if type.to.value.sort == "array" else part, type.to.value, values):
                return False
        else:
            values += [0] * _count(type.to.value)
    return True


def _count(type: CppType) -> int:
    return type.count * _count(type.to.value) if type.sort == "array" and type.to is not None else 1


__all__ = ["Codebook", "bind", "literal"]
