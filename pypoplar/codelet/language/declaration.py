"""What the class statement of a codelet declares: its name, kind and fields, with type variables bound."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Generic, TypeVar, assert_never, get_args, get_origin

import numpy as np
from attrs import evolve, field, frozen

from pypoplar.codelet.ir.terms import Access, Form, Kind
from pypoplar.codelet.language.alignments import SPELLING, check_alignment, demanded_alignment
from pypoplar.codelet.language.annotations import HINTS, NotAField, evaluated, refused_field
from pypoplar.codelet.language.defaults import Default, default_value, same_default
from pypoplar.codelet.language.diagnostics import refusal
from pypoplar.codelet.language.fields import (
    Declared,
    InOut,
    Input,
    MultiVertex,
    Output,
    SupervisorVertex,
    Vector,
    VectorList,
    Vertex,
)
from pypoplar.codelet.language.record_layout import RecordLayout
from pypoplar.codelet.language.records import Array, Record, is_record, layout_of
from pypoplar.codelet.language.source_text import class_keyword
from pypoplar.errors import CodeletError, PoplarError
from pypoplar.types import UNSIGNED_CHAR, ElementType, check_type

Bindings = Mapping[Any, ElementType]  # type variables of a template and the types they stand for

_ACCESS: dict[object, Access] = {Input: "input", Output: "output", InOut: "inout"}
_NUMBERS, _TABLES = (int, float, bool), (tuple, list, np.ndarray)
_ROOTS = (Vertex, MultiVertex, SupervisorVertex)


@frozen
class Field:
    """A field of a codelet. `name` is the graph's: ``in_`` in the class is ``in`` here."""

    name: str
    access: Access
    form: Form
    type: ElementType
    default: Default | None = field(default=None, eq=same_default)  # of a plain field
    record: RecordLayout | None = None  # of a vector of records, whose type is that of their bytes
    aligned: int = 0  # bytes that the user demands the place of the vector, or of each row, to be a multiple of; 0: nothing
    pointer_bytes: int = 0  # that the vertex keeps for it, pointer and length, as a layout of C++ has it; 0: a word for each
    row_bytes: int = 0  # for each row, the same

    @property
    def unit(self) -> int:
        """Elements that an index counts: 1, or the bytes of a record."""
        return 1 if self.record is None else self.record.size

    @property
    def alignment(self) -> int:
        """What the place of the field's elements in memory is a multiple of."""
        return max(min(self.type.size, 4) if self.record is None else self.record.alignment, self.aligned)

    @property
    def attribute(self) -> str:
        """The name in the class."""
        return self.name + "_" if keyword.iskeyword(self.name) else self.name

    def place(self, row: int, index: int) -> str:
        """``element 3 of row 1 of field 'y'``; a vector has no row, a scalar is only named, of records it is a byte."""
        if self.record is not None:
            return f"byte {index % self.unit} of record {index // self.unit} of field '{self.name}'"
        match self.form:
            case "scalar":
                return f"field '{self.name}'"
            case "vector":
                return f"element {index} of field '{self.name}'"
            case "list":
                return f"element {index} of row {row} of field '{self.name}'"
            case unknown:
                assert_never(unknown)


def user_classes(cls: type[Vertex]) -> Iterator[type]:
    """The user's classes that make up a codelet, the most derived first."""
    for base in cls.__mro__:
        if issubclass(base, Vertex) and base not in _ROOTS:
            yield base


def kind_of(cls: type[Vertex]) -> Kind:
    if issubclass(cls, MultiVertex):
        return "multi"
    return "supervisor" if issubclass(cls, SupervisorVertex) else "vertex"


def parameters_of(cls: type[Vertex]) -> tuple[Any, ...]:
    """The type variables of a template, in order; none for an ordinary codelet."""
    return tuple(getattr(cls, "__parameters__", ()))


def base_name(cls: type[Vertex]) -> str:
    """The name without type arguments."""
    return declared_of(cls).name or cls.__name__


def declared_of(cls: type[Vertex]) -> Declared:
    return cls.__dict__.get("__declared__", cls.__declared__)  # type: ignore[no-any-return]


def refused_keyword(cls: type, base: type, name: str, message: str) -> CodeletError:
    """The error about a class, at the keyword in the class statement of its base, or of itself, that has it."""
    declared = declared_of(base)
    lines, node = class_keyword(declared.file, declared.line, base.__name__, name)
    message = f"{cls.__name__}: {message}"
    if node is None:
        return CodeletError(message, (declared.file, declared.line, None, None))
    return refusal(message, declared.file, lines, 1, node)


def split_name(name: str) -> tuple[str, tuple[str, ...]]:
    """``"popops::Reduce<add, float>"`` is ``("popops::Reduce", ("add", "float"))``; nested angle brackets stay whole."""
    base, bracket, rest = name.partition("<")
    if not bracket or not rest.endswith(">"):
        return name, ()
    pieces, depth = [""], 0
    for character in rest[:-1]:
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return base.strip(), tuple(" ".join(piece.split()) for piece in pieces)


def full_name(cls: type[Vertex], arguments: tuple[ElementType, ...]) -> str:
    """The name of a codelet or of an instance of a template: ``"Scale<float>"``."""
    base, fixed = split_name(base_name(cls))
    words = [*fixed, *(argument.spelling for argument in arguments)]
    return f"{base}<{','.join(words)}>" if words else base


def bindings_of(cls: type, own: Bindings) -> dict[type, dict[Any, ElementType]]:
    """For each class of a codelet the types that its type variables stand for."""
    bindings: dict[type, dict[Any, ElementType]] = {cls: dict(own)}
    for base in cls.__dict__.get("__orig_bases__", cls.__bases__):
        origin, arguments = get_origin(base) or base, get_args(base)
        if origin is Generic or not isinstance(origin, type) or not issubclass(origin, Vertex):
            continue
        bound = {}
        for variable, argument in zip(getattr(origin, "__parameters__", ()), arguments, strict=False):
            element = own.get(argument, argument) if isinstance(argument, TypeVar) else argument
            if isinstance(element, ElementType):
                bound[variable] = element
        bindings = bindings_of(origin, bound) | bindings
    return bindings


def check_arguments(cls: type[Vertex], arguments: tuple[Any, ...]) -> Bindings:
    """The bindings of a template's type variables to `arguments`; else raise, naming what the template takes."""
    variables = parameters_of(cls)
    if len(variables) != len(arguments):
        wanted = ", ".join(variable.__name__ for variable in variables)
        raise CodeletError(
            f"{base_name(cls)} takes {len(variables)} type argument{'s' * (len(variables) != 1)}"
            f"{f' ({wanted})' if wanted else ''}, got {len(arguments)}"
        )
    for variable, argument in zip(variables, arguments, strict=True):
        type = check_type(argument)
        allowed = variable.__constraints__
        if allowed and type not in allowed:
            names = ", ".join(constraint.__name__ for constraint in allowed)
            raise CodeletError(f"{base_name(cls)}: {variable.__name__} is one of {names}, got {type.__name__}")
    return dict(zip(variables, arguments, strict=True))


def fields_of(cls: type[Vertex], own: Bindings) -> tuple[Field, ...]:
    """The fields of a codelet, those of base classes first."""
    fields: dict[str, Field] = {}
    bindings = bindings_of(cls, own)
    for base in reversed(list(user_classes(cls))):
        for attribute, annotation in inspect.get_annotations(base).items():
            try:
                field = _field(base, attribute, annotation, bindings.get(base, {}))
            except NotAField as reason:
                raise refused_field(base, attribute, str(reason)) from None
            except CodeletError:  # of a record, at its own line
                raise
            except PoplarError as reason:
                raise refused_field(base, attribute, str(reason)) from reason
            if field is not None:
                fields.pop(field.name, None)
                fields[field.name] = field
    return tuple(_with_default(cls, field) for field in fields.values())


def _with_default(cls: type[Vertex], field: Field) -> Field:
    """The field with the value that the class, or a base of it, gives to its attribute."""
    owner = next((base for base in user_classes(cls) if field.attribute in vars(base)), None)
    if owner is None:
        return field
    value = vars(owner)[field.attribute]
    if field.access != "state":
        reason = "only plain fields have a value in the class; connect an edge to a tensor, or to a constant, graph.addConstant"
        raise refused_field(owner, field.attribute, reason, at_value=True)
    try:
        return evolve(field, default=default_value(field.type, field.form, value))
    except PoplarError as reason:
        raise refused_field(owner, field.attribute, str(reason), at_value=True) from reason


def _field(cls: type, attribute: str, annotation: Any, bindings: Bindings) -> Field | None:
    annotation = evaluated(cls, annotation)
    if annotation is ClassVar or get_origin(annotation) is ClassVar:
        return None
    kind, value = get_origin(annotation) or annotation, vars(cls).get(attribute)
    if (kind in _NUMBERS and isinstance(value, int | float)) or (kind in _TABLES and isinstance(value, _TABLES)):
        return None  # SIZE: int = 8 is a constant, TAPS: tuple[float, ...] = (0.5, 0.5) a table
    access, content = _access(cls, annotation)
    content, aligned = _demanded(cls, access, content)
    form: Form = "scalar"
    origin = get_origin(content) or content
    if origin in (Vector, VectorList):
        form = "vector" if origin is Vector else "list"
        arguments = get_args(content)
        if len(arguments) != 1:
            raise NotAField(f"write {origin.__name__}[FLOAT], or another element type in the brackets")
        content = evaluated(cls, arguments[0])
    if form == "list" and access == "state":
        raise NotAField("a VectorList is an edge: write Input[VectorList[...]], Output[...] or InOut[...]")
    name = attribute[:-1] if attribute.endswith("_") and keyword.iskeyword(attribute[:-1]) else attribute
    if is_record(content):
        field = Field(name, access, form, UNSIGNED_CHAR, record=_record(content, access, form))
    else:
        field = Field(name, access, form, _element(content, form, bindings))
    if aligned:
        check_alignment(aligned, access, form, field.type if field.record is None else field.record)
    return evolve(field, aligned=aligned)


def _demanded(cls: type, access: Access, content: Any) -> tuple[Any, int]:
    """What `Annotated` stands around, and the alignment that it demands."""
    if get_origin(content) is not Annotated:
        return content, 0
    inner = evaluated(cls, content.__origin__)
    if access == "state" and (get_origin(inner) or inner) in _ACCESS:
        raise NotAField(f"Annotated stands inside: write {SPELLING}")
    return inner, demanded_alignment(content.__metadata__)


def _record(record: type[Record], access: Access, form: Form) -> RecordLayout:
    """The layout of the records that a field holds."""
    name = record.__name__
    if form == "list":
        raise NotAField(
            f"records stand in a Vector: write Input[VectorList[UNSIGNED_CHAR]] here, and ipu.view(self.rows[r], {name}) in compute"
        )
    if access == "state":
        raise NotAField(f"records are the bytes of a tensor: write Input[Vector[{name}]], Output[...] or InOut[...]")
    if form == "scalar":
        raise NotAField(f"records stand in a Vector: write Input[Vector[{name}]], connected to the bytes of one record")
    return layout_of(record)


def _access(cls: type, annotation: Any) -> tuple[Access, Any]:
    origin = get_origin(annotation) or annotation
    if isinstance(origin, type) and origin in _ACCESS:
        arguments = get_args(annotation)
        if len(arguments) != 1:
            raise NotAField(f"write {origin.__name__}[FLOAT] or {origin.__name__}[Vector[FLOAT]]")
        return _ACCESS[origin], evaluated(cls, arguments[0])
    return "state", annotation


def _element(content: Any, form: Form, bindings: Bindings) -> ElementType:
    if isinstance(content, TypeVar):
        if content not in bindings:
            raise NotAField(f"{content} has no type here: make the class Generic[{content.__name__}]")
        return bindings[content]
    if isinstance(content, ElementType):
        return check_type(content)
    if isinstance(content, type) and content in HINTS:
        raise NotAField(f"{content.__name__} is Python's; write {HINTS[content]}")
    origin = get_origin(content) or content
    if origin in (Vector, VectorList) and form != "scalar":
        raise NotAField("a vector of vectors is VectorList[FLOAT]; fields have at most two dimensions")
    if origin is Annotated:
        raise NotAField(f"Aligned is said of the whole vector, not of its elements: write {SPELLING}")
    if origin is Array:
        raise NotAField("Array is for the fields of a Record; write Vector[FLOAT]")
    if isinstance(origin, type) and origin in _ACCESS:
        raise NotAField("Input, Output or InOut stands outside: Input[Vector[FLOAT]], Input[VectorList[FLOAT]]")
    shown = getattr(content, "__name__", repr(content))
    raise NotAField(f"a field is of an element type such as FLOAT, of Vector or of VectorList; got {shown}")
