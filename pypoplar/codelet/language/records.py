"""Records: the structs that device code sees in bytes.

    class Ray(Record):
        origin: Array[FLOAT, 3]
        hit: INT

    class Trace(Vertex):
        rays: InOut[Vector[Ray]]     # connected to a tensor of CHARs, 16 bytes a record

        def compute(self):
            for i in range(len(self.rays)):
                self.rays[i].hit = int(self.rays[i].origin[0] > 0.0)

The bytes are laid out as C does it (`RecordLayout`). A record says what bytes mean and nothing more, so it has no instances.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin, overload

import numpy as np

from pypoplar.codelet.language.annotations import HINTS, NotAField, evaluated, refused_field
from pypoplar.codelet.language.fields import Bracketed, Declared, Edge, Item, Number, RecordItem, Vector, VectorList, noted
from pypoplar.codelet.language.record_layout import RecordField, RecordLayout
from pypoplar.errors import CodeletError, PoplarAttributeError, PoplarError, PoplarTypeError
from pypoplar.types import Element, ElementType, check_type

Size = TypeVar("Size", covariant=True)  # of an array, a Literal


class _RecordType:
    """``Ray.dtype``."""

    def __get__(self, instance: object, record: type[Record]) -> np.dtype[Any]:
        return layout_of(record).dtype


class Record:
    """Base of records, the structs that device code sees in bytes.

    Fields are numbers (``hit: INT``), arrays (``origin: Array[FLOAT, 3]``) and records (``centre: Point``), laid out as C does
    it.

    ``Ray.dtype`` is the structured dtype of NumPy by which a host reads and writes them: ``np.zeros(8, Ray.dtype)``, whose
    bytes, ``.view(np.uint8)``, are what a tensor of UNSIGNED_CHARs holds.

    Examples
    --------
    >>> from pypoplar import FLOAT, INT, Array, Record
    >>> class Ray(Record):
    ...     origin: Array[FLOAT, 3]
    ...     hit: INT
    >>> Ray.dtype.itemsize
    16
    """

    __declared__: ClassVar[Declared]
    __layout__: ClassVar[RecordLayout]

    if TYPE_CHECKING:
        dtype: ClassVar[np.dtype[np.void]]
    else:
        dtype = _RecordType()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.__declared__ = noted(cls, None)

    def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
        raise PoplarTypeError(
            f"{cls.__name__} is a record of device memory and has no instances; on the host write np.zeros(8, {cls.__name__}.dtype)"
        )


class Array(Bracketed, Generic[Item, Size]):
    """So many elements of a type within a record: ``Array[FLOAT, 3]``, for type checkers ``Array[FLOAT, Literal[3]]``.

    In ``compute``: ``ray.origin[i]``, ``ray.origin[begin:end]`` (a view), ``len(ray.origin)``, iteration.
    """

    if TYPE_CHECKING:

        @overload
        def __getitem__(self: Array[Element[Number], Any], index: int) -> Number: ...
        @overload
        def __getitem__(self: Array[RecordItem, Any], index: int) -> RecordItem: ...
        @overload
        def __getitem__(self, index: slice) -> Vector[Item]: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: int, value: float) -> None: ...
        def __len__(self) -> int: ...
        @overload
        def __iter__(self: Array[Element[Number], Any]) -> Iterator[Number]: ...
        @overload
        def __iter__(self: Array[RecordItem, Any]) -> Iterator[RecordItem]: ...
        def __iter__(self) -> Iterator[Any]: ...


def is_record(content: Any) -> bool:
    """Whether what stands in an annotation is a record."""
    return isinstance(content, type) and issubclass(content, Record)


def layout_of(record: type[Record], within: tuple[type[Record], ...] = ()) -> RecordLayout:
    """The layout of a record, which is a field of those that it is `within`. What is no record is a `CodeletError` at its line."""
    if record in within:
        raise NotAField(f"{record.__name__} would hold itself, and have no end")
    if "__layout__" not in vars(record):
        record.__layout__ = _layout(record, (*within, record))
    return record.__layout__


def _layout(record: type[Record], within: tuple[type[Record], ...]) -> RecordLayout:
    if record is Record:
        raise PoplarAttributeError("Record is the base of records and none itself: write class Ray(Record)")
    if record.__bases__ != (Record,):
        bases = ", ".join(base.__name__ for base in record.__bases__)
        reason = f"a record derives from Record alone, not from {bases}; hold another record as a field"
        raise _refused(record, reason)
    annotations = inspect.get_annotations(record)
    for attribute, value in vars(record).items():
        if attribute.startswith("__annotate"):
            continue
        if callable(value) or isinstance(value, staticmethod | classmethod | property):
            raise refused_field(record, attribute, "a record has no methods: write a function that takes the record", at_value=True)
        if attribute.startswith("__") and attribute not in annotations:
            continue
        if attribute in annotations:
            what = "has fields without values: its bytes are those of the tensor"
        else:
            what = f"has annotated fields only: write {attribute}: INT"
        raise refused_field(record, attribute, f"a record {what}", at_value=True)
    if not annotations:
        raise _refused(record, "a record without fields: write hit: INT")
    layout, fields = None, []
    for attribute, annotation in annotations.items():
        try:
            fields.append(_record_field(record, attribute, annotation, within))
            layout = RecordLayout(record.__name__, tuple(fields))
        except CodeletError:
            raise
        except (NotAField, PoplarError, ValueError) as reason:
            raise refused_field(record, attribute, str(reason)) from None
    assert layout is not None
    return layout


def _refused(record: type[Record], reason: str) -> CodeletError:
    declared = record.__declared__
    return CodeletError(f"{record.__name__}: {reason}", (declared.file, declared.line, None, None))


def _record_field(record: type[Record], attribute: str, annotation: Any, within: tuple[type[Record], ...]) -> RecordField:
    content = evaluated(record, annotation)
    origin, arguments = get_origin(content) or content, get_args(content)
    if origin is not Array:
        return RecordField(attribute, _held(content, within))
    if len(arguments) != 2:
        raise NotAField("write Array[FLOAT, 3]: the type and how many; for type checkers Array[FLOAT, Literal[3]]")
    count = evaluated(record, arguments[1])
    count = get_args(count)[0] if get_origin(count) is Literal else count
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise NotAField(f"an Array has one element or more, their number is an int; got {count!r}")
    return RecordField(attribute, _held(evaluated(record, arguments[0]), within), int(count))


def _held(content: Any, within: tuple[type[Record], ...]) -> ElementType | RecordLayout:
    """The type of a field's elements."""
    if isinstance(content, ElementType):
        return check_type(content)
    if is_record(content):
        return layout_of(content, within)
    if isinstance(content, type) and content in HINTS:
        raise NotAField(f"{content.__name__} is Python's; write {HINTS[content]}")
    if isinstance(content, TypeVar):
        raise NotAField(f"a record has no type parameters such as {content}: write one for each type")
    origin = get_origin(content) or content
    if origin is Array:
        raise NotAField("an Array of Arrays: make one of the product of their sizes, or an Array of a record")
    if origin in (Vector, VectorList, list, tuple):
        raise NotAField(f"the fields of a record have a size: write Array[FLOAT, 3], not {origin.__name__}")
    if origin is Annotated:
        raise NotAField("the fields of a record lie as in C; align their vector: Input[Annotated[Vector[Ray], Aligned(8)]]")
    if isinstance(origin, type) and issubclass(origin, Edge):
        raise NotAField(f"{origin.__name__} is for the fields of a vertex: write the type alone")
    shown = getattr(content, "__name__", repr(content))
    raise NotAField(f"a field of a record is of an element type such as FLOAT, an Array of one, or a record; got {shown}")
