"""The codelets of a C++ file: classes derived from Poplar's, their names, their fields."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from pypoplar.codelet.cpp.writing import refuse
from pypoplar.codelet.cpp_tree.clang_library import clang
from pypoplar.codelet.cpp_tree.cpp_types import NAMES, CppType, split_arguments, type_of
from pypoplar.codelet.cpp_tree.tree import Node
from pypoplar.codelet.ir.terms import Access, Form, Kind
from pypoplar.codelet.language.declaration import Field
from pypoplar.types import BY_NAME

_KINDS: dict[str, Kind] = {
    "poplar::SupervisorVertexIf<true>": "supervisor",
    "poplar::SupervisorVertexIf<false>": "vertex",
    "poplar::MultiVertexIf<true>": "multi",
    "poplar::MultiVertexIf<false>": "vertex",
    "poplar::Vertex": "vertex",
    "poplar::MultiVertex": "multi",
    "poplar::SupervisorVertex": "supervisor",
}
_ACCESS: dict[str, Access] = {"poplar::Input": "input", "poplar::Output": "output", "poplar::InOut": "inout"}
LAYOUTS = {
    "ONE_PTR": 4, "SPAN": 8, "SHORT_SPAN": 4, "COMPACT_PTR": 2, "SCALED_PTR32": 2, "SCALED_PTR64": 2, "SCALED_PTR128": 2,
    "DELTAN": 8, "DELTANELEMENTS": 8, "COMPACT_DELTAN": 6,
}  # fmt: skip
"""Bytes of a vertex that the layouts of a vector, or of a list of rows, take: a pointer, and a length where they have one."""
ROW_LAYOUTS = LAYOUTS | {"DELTAN": 4, "DELTANELEMENTS": 4, "COMPACT_DELTAN": 4}
"""Bytes for each row: of a list an offset and a length in one word."""
_NAME = re.compile(r"(?!(true|false)$)[A-Za-z_]\w*(::\w+)*")
"""A number of a template that is given by its name."""
_LISTS = ("poplar::VectorList",)


@frozen
class CppField:
    """A member of a codelet's class that is a field of the vertex."""

    name: str
    access: Access
    form: Form
    element: CppType
    alignment: int = 0
    default: float | None = None
    layouts: tuple[str, str] = ("", "")  # of the vector or list, and of the rows of a vector of edges

    @property
    def code(self) -> str:
        return self.element.value.code

    @property
    def attribute(self) -> str:
        """The name in Python."""
        return self.name + "_" if keyword.iskeyword(self.name) else self.name

    def field(self) -> Field:
        """As graphs have it."""
        return Field(
            self.name, self.access, self.form, BY_NAME[NAMES[self.code]], default=self.default, aligned=self.alignment,
            pointer_bytes=LAYOUTS.get(self.layouts[0], 0), row_bytes=ROW_LAYOUTS.get(self.layouts[1], 0),
        )  # fmt: skip


@frozen
class CppClass:
    """A class of a codelet, or an instance of a template."""

    name: str
    kind: Kind
    node: Node
    type: Any
    bases: Mapping[str, Any] = field(factory=dict)  # types by their names, of bases that depend on the arguments of a template


def kind_of(cursor: Any) -> Kind | None:
    """The kind of vertex that a class, a template or an instance of one is derived from; None for other classes."""
    for base in bases_of(cursor):
        kind = _KINDS.get(base.type.get_canonical().spelling) or kind_of(declared_base(base))
        if kind is not None:
            return kind
    return None


def is_open(cursor: Any) -> bool:
    """Whether a class, or one of its bases, has a base that is named by an argument of a template alone."""
    declared = [declared_base(base) for base in bases_of(cursor)]
    return any(("CLASS" not in one.kind.name and "STRUCT" not in one.kind.name) or is_open(one) for one in declared)


def has_compute(cursor: Any) -> bool:
    """Whether a class, a template or an instance of one has a compute, its own or one of its bases."""
    if own_compute(cursor):
        return True
    return any(has_compute(base) for base in map(declared_base, bases_of(cursor)) if not _is_poplars(base))


def own_compute(cursor: Any) -> bool:
    """Whether a class or the template that it is made of declares a compute."""
    template = template_of(cursor)
    return any(child.spelling == "compute" for one in (cursor, template) if one is not None for child in one.get_children())


def template_of(cursor: Any) -> Any:
    """The template, or the partial specialisation, that a class is an instance of; None for other classes."""
    return clang().functions.clang_getSpecializedCursorTemplate(cursor)


def bases_of(cursor: Any) -> list[Any]:
    """The places where a class names its bases; an instance of a template has those of the template."""
    found = [child for child in cursor.get_children() if child.kind.name == "CXX_BASE_SPECIFIER"]
    template = None if found else template_of(cursor)
    return bases_of(template) if template is not None else found


def declared_base(base: Any) -> Any:
    """The class that a base is, or the template where that depends on arguments."""
    if base.type.get_canonical().kind.name == "RECORD":
        return base.type.get_canonical().get_declaration()
    named = next((child for child in base.get_children() if child.kind.name == "TEMPLATE_REF"), None)
    return (named or base).referenced or base


def _is_poplars(cursor: Any) -> bool:
    return Node(cursor).qualified().startswith("poplar::")


def bases_by_name(cursor: Any, known: Mapping[str, Any]) -> list[str]:
    """The names of the bases of a class, and of theirs, that depend on the arguments of a template and are not known."""
    missing: list[str] = []
    for base in bases_of(cursor):
        declared = declared_base(base)
        if _is_poplars(declared):
            continue
        if declared.kind.name == "CLASS_TEMPLATE":
            if declared.spelling in known:
                declared = known[declared.spelling].get_declaration()
            else:
                missing.append(declared.spelling)
        missing += bases_by_name(declared, known)
    return missing


def poplar_name(spelling: str) -> str:
    """A class's name as Poplar has it: ``ns::Scale<half,unsigned int>``."""
    base, arguments = split_arguments(spelling)
    if not arguments:
        return base
    return f"{base}<{','.join(_argument(argument) for argument in arguments)}>"


def spelling_of(type: Any) -> str:
    """The spelling of a class, with what libclang leaves out of its arguments: namespaces of enumerators and of other numbers."""
    base, arguments = split_arguments(type.spelling)
    declared = type.get_declaration()
    template = template_of(declared)
    if template is None or declared.get_num_template_arguments() < len(arguments):
        return str(type.spelling)
    while template.kind.name == "CLASS_TEMPLATE_PARTIAL_SPECIALIZATION":  # whose parameters are others
        template = template_of(template)
    parameters = [child for child in template.get_children() if child.kind.name.startswith("TEMPLATE_")]
    for number, parameter in enumerate(parameters[: len(arguments)]):
        enum = parameter.type.get_canonical()
        if parameter.kind.name == "TEMPLATE_NON_TYPE_PARAMETER" and enum.kind.name == "ENUM":
            value = declared.get_template_argument_value(number)
            arguments[number] = _enumerator(enum, value) or arguments[number]
        elif parameter.kind.name == "TEMPLATE_NON_TYPE_PARAMETER" and _NAME.fullmatch(arguments[number]):  # of its namespace
            arguments[number] = str(declared.get_template_argument_value(number))
    return f"{base}<{', '.join(arguments)}>"


def _enumerator(enum: Any, value: int) -> str | None:
    """The qualified name of a value of an enumeration."""
    declared = enum.get_declaration()
    for child in declared.get_children():
        if child.kind.name == "ENUM_CONSTANT_DECL" and child.enum_value == value:
            scope = enum.spelling if declared.is_scoped_enum() else enum.spelling.rpartition("::")[0]
            return f"{scope}::{child.spelling}" if scope else str(child.spelling)
    return None


def _argument(text: str) -> str:
    base, arguments = split_arguments(text)
    words = " ".join(base.split())
    words = {"_Float16": "half", "unsigned": "unsigned int", "__fp16": "half"}.get(words, words)
    if words.startswith("(") and ")" in words:  # an enumerator without a name
        words = words.partition(")")[2]
    if words.rstrip("uUlL").isdigit():
        words = words.rstrip("uUlL")
    return f"{words}<{','.join(_argument(argument) for argument in arguments)}>" if arguments else words


def fields_of(one: CppClass) -> dict[str, CppField]:
    """The fields of a codelet, those of its bases first."""
    found: dict[str, CppField] = {}
    _collect(one.type, one, found)
    return found


def _collect(type: Any, one: CppClass, found: dict[str, CppField]) -> None:
    for base in bases_of(type.get_declaration()):
        declared = declared_base(base)
        if _is_poplars(declared):
            continue
        if declared.kind.name == "CLASS_TEMPLATE":
            _collect(one.bases[declared.spelling], one, found)
        elif base.type.get_canonical().kind.name == "RECORD":
            _collect(base.type.get_canonical(), one, found)
        else:
            text = " ".join(token.spelling for token in base.get_tokens() if token.spelling not in ("public", "struct", "class"))
            refuse(Node(base), f"which class '{text}' is depends on arguments: derive from a class or a template by its name")
    for cursor in type.get_fields():
        field = Node(cursor)
        if field.name in found:
            refuse(field, f"field '{field.name}' is that of a base, too: give it another name")
        found[field.name] = _field(field)


def _field(node: Node) -> CppField:
    type = node.type
    if any(word in ("poplar::quarter", "poplar::quarter_metadata") for word in re.findall(r"[\w:]+", type.spelling)):
        refuse(node, f"field '{node.name}' is a {type.spelling}: pypoplar has no quarter in codelets yet; use half")
    if type.sort == "record":
        base, _ = split_arguments(type.spelling.removeprefix("const "))
        if base in _ACCESS:
            return _edge(node, _ACCESS[base], type)
        if base == "poplar::Vector":
            inner = type_of(type.clang.get_template_argument_type(0))
            outer = split_arguments(inner.spelling)[0]
            _check_nesting(inner, node)
            if outer in _ACCESS:
                held = type_of(inner.clang.get_template_argument_type(0))
                layouts = _layout(type), _layout(held) or "SPAN"
                return CppField(node.name, _ACCESS[outer], "list", _element(held, node), _alignment(held, node), layouts=layouts)
            return CppField(node.name, "state", "vector", _element(type, node), _alignment(type, node))
        refuse(
            node,
            f"field '{node.name}' is a {type.spelling}: fields are numbers, and Input, Output, InOut of them or of vectors",
        )
    if type.sort == "number":
        if type.code == "f64":
            refuse(node, f"field '{node.name}' is a double, which the device has not: make it float")
        default = None
        initial = [part for part in node.parts if part.constant is not None]
        if initial:
            default = initial[-1].constant
        return CppField(node.name, "state", "scalar", type, default=default)
    what = {"pointer": "a pointer", "array": "an array", "reference": "a reference", "vector": "a vector of the hardware"}.get(
        type.sort, type.spelling
    )
    refuse(node, f"field '{node.name}' is {what}, which a vertex cannot keep: write Vector<...>, or Input<Vector<...>>")


def _edge(node: Node, access: Access, type: CppType) -> CppField:
    inner = type_of(type.clang.get_template_argument_type(0))
    if inner.value.sort == "number":
        return CppField(node.name, access, "scalar", inner)
    form, element = vector_type(inner, node)
    layouts = _layout(inner), _layout(inner) if form == "list" else ""
    return CppField(node.name, access, form, element, _alignment(inner, node), layouts=layouts)


def _layout(type: CppType) -> str:
    """The layout that a vector or a list has among its arguments."""
    _, arguments = split_arguments(type.spelling.removeprefix("const "))
    named = [argument.rpartition("::")[2] for argument in arguments[1:2]]
    usual = "DELTAN" if "VectorList<" in type.spelling else "SPAN"
    return named[0] if named and named[0] in LAYOUTS else usual


def vector_type(type: CppType, node: Node) -> tuple[Form, CppType]:
    """The form and the elements of one of Poplar's vectors or lists, also inside of an edge."""
    base, _ = split_arguments(type.spelling.removeprefix("const "))
    if type.spelling.endswith("::Row"):
        return "vector", _element_of(type_of(type.clang.get_declaration().semantic_parent.type.get_template_argument_type(0)), node)
    if base in _ACCESS:
        return vector_type(type_of(type.clang.get_template_argument_type(0)), node)
    if base == "poplar::Vector":
        inner = type_of(type.clang.get_template_argument_type(0))
        if split_arguments(inner.spelling)[0] in _ACCESS:
            return "list", _element(type_of(inner.clang.get_template_argument_type(0)), node)
        _check_nesting(inner, node)
        return "vector", _element(type, node)
    if base in _LISTS:
        return "list", _element(type, node)
    refuse(node, f"'{node.name}' is a {type.spelling}, which has no form in device code")


def _check_nesting(inner: CppType, node: Node) -> None:
    if split_arguments(inner.spelling)[0] in ("poplar::Vector", *_LISTS):
        refuse(node, f"'{node.name}' is a vector of vectors: write Vector<Input<Vector<T>>>, or Input<VectorList<T>>")


def _element(type: CppType, node: Node) -> CppType:
    if type.clang is None or type.clang.get_num_template_arguments() < 1:
        refuse(node, f"'{node.name}' is a {node.type.spelling}, which has no form in device code")
    return _element_of(type_of(type.clang.get_template_argument_type(0)), node)


def _element_of(inner: CppType, node: Node) -> CppType:
    if split_arguments(inner.spelling)[0] in ("poplar::Vector", *_LISTS):
        return _element(inner, node)
    if inner.value.sort != "number" or inner.value.code == "f64":
        refuse(node, f"'{node.name}' has elements of {inner.spelling}: elements are numbers that the device has")
    return inner


def _alignment(type: CppType, node: Node) -> int:
    """The alignment that a vector demands beyond that of its elements."""
    _, arguments = split_arguments(type.spelling)
    if len(arguments) < 3 or not arguments[2].rstrip("uUlL ").isdigit():
        return 0
    alignment = int(arguments[2].rstrip("uUlL "))
    element = type_of(type.clang.get_template_argument_type(0))
    size = {"i8": 1, "u8": 1, "bool": 1, "i16": 2, "u16": 2, "f16": 2, "i64": 8, "u64": 8}.get(element.value.code, 4)
    if alignment <= max(size, 2) or alignment < 4:
        return 0
    if alignment not in (4, 8, 16, 32):
        refuse(node, f"field '{node.name}' demands an alignment of {alignment} bytes: those are 4, 8, 16 and 32")
    return alignment if alignment >= size else 0
