"""What a codelet class is written with: vertex kinds, and the annotations that make an attribute a field.

    class Scale(Vertex):
        x: Input[Vector[FLOAT]]      # an edge that is read: a vector
        y: Output[Vector[FLOAT]]     # an edge that is written
        factor: FLOAT                # a plain field: state of the vertex
        offset: FLOAT = 0.0          # a plain field with a default

        def compute(self):
            for i in range(len(self.x)):
                self.y[i] = self.factor * self.x[i] + self.offset

The classes here say what a field is and nothing more: device code never runs as Python on the host, so they have no
instances. Their methods are what type checkers see of ``self.x[i]``, ``len(self.x)`` and ``self.out = value``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any, Generic, NoReturn, TypeVar, get_args, get_origin, overload

from attrs import field, frozen

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.codelet.ir.terms import exactly
from pypoplar.errors import PoplarTypeError
from pypoplar.spelling import nearest
from pypoplar.tracebacks import public
from pypoplar.types import Element

if TYPE_CHECKING:
    from pypoplar.codelet.language.records import Record

Content = TypeVar("Content", covariant=True)  # an element type, Vector[...] or VectorList[...]
Item = TypeVar("Item", covariant=True)  # an element type
Number = TypeVar("Number")  # float, int or bool: what type checkers see of an element
RecordItem = TypeVar("RecordItem", bound="Record")


def default(value: float | Sequence[float] | AnyArray) -> Any:
    """A default that type checkers accept: ``n: INT = default(3)`` means ``n: INT = 3``, whose 3 is no INT to them.

    Parameters
    ----------
    value:
        The default of a plain field: a number, or a list or array of them for a vector.

    Returns
    -------
    Any
        The value, as it is.

    Examples
    --------
    >>> from pypoplar import INT, default
    >>> default(3)
    3
    """
    return value


NEAREST = "nearest"
"""The value of the class keyword `rounding`."""
UNSAID: Any = object()
"""The value of a class keyword that a class does not have."""


@frozen
class Declared:
    """What the class statement of a codelet said, kept on the class as ``__declared__``."""

    name: str | None  # from ``class Fill(Vertex, name="popops::Fill")``
    file: str
    line: int
    names: dict[str, Any]  # local names of the enclosing function that the annotations may mean
    scope: dict[str, Any] = field(eq=False, repr=False)  # the names of its module
    constraint: object = UNSAID  # from ``class Add(Vertex, constraint="elem(*x) != elem(*y)")``
    writes_all: object = UNSAID  # from ``class Add(Vertex, writes_all="out")``
    rounding: object = UNSAID  # from ``class Add(Vertex, rounding="nearest")``


def noted(
    cls: type, name: str | None, constraint: object = UNSAID, writes_all: object = UNSAID, rounding: object = UNSAID
) -> Declared:
    """What the class statement said that has just made `cls`; called by its ``__init_subclass__``."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") != cls.__module__:
        frame = frame.f_back
    words = " ".join(text for text in vars(cls).get("__annotations__", {}).values() if isinstance(text, str))
    names = {} if frame.f_locals is frame.f_globals else {key: value for key, value in frame.f_locals.items() if key in words}
    return Declared(name, frame.f_code.co_filename, frame.f_lineno, names, frame.f_globals, constraint, writes_all, rounding)


class Vertex:
    """Base of codelets that run on one worker: ``compute(self)`` returns nothing, or a bool on every path.

    The codelet's name is the class's; ``class Fill(Vertex, name="popops::Fill")`` gives another. A class that is also
    ``Generic[T]`` is a template: ``Fill[FLOAT]`` or ``"popops::Fill<float>"`` names an instance. Template arguments that
    are not types are written into the name, before the types: ``name="popops::Reduce<add>"`` with one type parameter has
    the instance ``"popops::Reduce<add,float>"``.

    ``class Add(Vertex, constraint="elem(*x) != elem(*y)")`` demands that fields do not overlap in memory: a string, several joined
    by ``&&``, or a list of such; ``elem(**rows)`` for a `VectorList`. Derived classes have the demands of their bases. Where two
    Inputs are connected to the same elements, or an Input to those of an Output, the Input is copied on its tile; what cannot be
    kept apart raises `MemoryElemConstraintsError` when the Engine is made.

    ``class Sum(Vertex, writes_all="out")`` promises that every run of a vertex stores to every element of the Output: a name, or a
    list of names; derived classes promise what their bases do. What stood there before is then not kept for the vertex, and its
    memory may be another variable's. Where loops go from end to end pypoplar sees as much itself.
    ``Engine(..., mode="interpret")`` holds a codelet to its promise.

    ``class Scale(Vertex, rounding="nearest")`` rounds to the nearest HALF also while stochastic rounding is on
    (`setStochasticRounding`), and so do derived classes.

    A method ``cycles(self, vertex)`` is an estimator: host Python that returns the worker cycles of a vertex, given a
    `VertexIntrospector`: ``fieldSize(name)``, ``value(name)``, ``templateArguments()``, ``target``. It is called once for all
    vertices that are equal in the sizes and values that it reads, and replaces the price derived from the code as executed.

    Fields are annotations of the class: edges `Input`, `Output` and `InOut`, plain fields of an element type, and `Vector` and
    `VectorList` of them. Device code has what docs/codelets.md lists and `pypoplar.ipu`.

    Examples
    --------
    >>> from pypoplar import FLOAT, InOut, Vector, Vertex
    >>> class Double(Vertex):
    ...     x: InOut[Vector[FLOAT]]
    ...
    ...     def compute(self):
    ...         for i in range(len(self.x)):
    ...             self.x[i] = 2.0 * self.x[i]
    """

    __declared__: Declared

    def __init_subclass__(
        cls,
        *,
        name: str | None = None,
        constraint: str | Sequence[str] = UNSAID,
        writes_all: str | Sequence[str] = UNSAID,
        rounding: str = UNSAID,
        **keywords: Any,
    ) -> None:
        for keyword in keywords:
            if hint := nearest(keyword, ("name", "constraint", "writes_all", "rounding")):
                raise PoplarTypeError(f"class {cls.__name__} has the unknown keyword {keyword!r}{hint}")
        super().__init_subclass__(**keywords)
        cls.__declared__ = noted(cls, name, constraint, writes_all, rounding)

    def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
        raise PoplarTypeError(f"{cls.__name__} is a codelet: it runs on the device and has no instances; use graph.addVertex")


class MultiVertex(Vertex):
    """Base of codelets that use all workers of the tile: ``compute(self, worker)`` runs for workers 0 to 5, in order."""


class SupervisorVertex(Vertex):
    """Base of codelets that run on the tile's supervisor instead of a worker: ``compute(self)``, one instruction in 6 cycles."""


@frozen(repr=False, init=False)
class Aligned:
    """A demand: the vector, or each row of the VectorList, begins at a multiple of so many bytes of its tile's memory.

    ``Input[Annotated[Vector[FLOAT], Aligned(8)]]``, with `Annotated` of `typing`. What does not lie so is copied on its tile
    before the vertex runs, and what the vertex writes is copied back.

    Parameters
    ----------
    bytes:
        4, 8, 16 or 32.

    Raises
    ------
    PoplarTypeError
        For anything but one argument. That the number is one of these is asked when the codelet is added.
    """

    bytes: int = field(eq=exactly)  # typing keeps what is equal: 8.0 is not 8

    def __repr__(self) -> str:
        return f"Aligned({self.bytes!r})"

    if TYPE_CHECKING:

        def __init__(self, bytes: int) -> None: ...

    else:

        @public
        def __init__(self, *values: int, **named: int) -> None:
            if len(values) + len(named) != 1 or not named.keys() <= {"bytes"}:
                given = ", ".join([*map(repr, values), *(f"{name}={value!r}" for name, value in named.items())])
                raise PoplarTypeError(f"Aligned takes the bytes of one alignment, as in Aligned(8); got Aligned({given})")
            self.__attrs_init__(*values, **named)

        __signature__ = Signature([Parameter("bytes", Parameter.POSITIONAL_OR_KEYWORD, annotation=int)])

        def __class_getitem__(cls, bytes: Any) -> NoReturn:
            raise PoplarTypeError(f"Aligned takes bytes in parentheses: write Aligned({bytes!r})")


def _spelled(content: Any) -> str:
    """A type as an annotation has it: ``Vector[FLOAT]``."""
    if get_origin(content) is Annotated:
        return f"Annotated[{_spelled(content.__origin__)}, {', '.join(map(repr, content.__metadata__))}]"
    inner = ", ".join(map(_spelled, get_args(content)))
    name = getattr(content, "__name__", "FLOAT")
    return f"{name}[{inner}]" if inner else name


class Bracketed:
    """The base of what stands in annotations, with types in square brackets; it has no instances."""

    if not TYPE_CHECKING:

        def __new__(cls, *types: Any, **keywords: Any) -> NoReturn:
            whole = f"{cls.__name__}[{_spelled(types[0]) if types else 'FLOAT'}]"
            example = "" if issubclass(cls, Edge) else f", and Input[{whole}] for an edge"
            raise PoplarTypeError(f"{cls.__name__} takes types in square brackets: write {whole}{example}")

        def __class_getitem__(cls, types: Any) -> Any:
            if isinstance(types, tuple) and len(types) > len(getattr(cls, "__parameters__", types)):
                written = ", ".join(map(_spelled, types[: len(cls.__parameters__)]))
                aligned = "an alignment is written Input[Annotated[Vector[FLOAT], Aligned(8)]]"
                raise PoplarTypeError(f"write {cls.__name__}[{written}]; layouts are not modelled, and {aligned}")
            return super().__class_getitem__(types)


class Vector(Bracketed, Generic[Item]):
    """A field of rank 1, of numbers or of records: ``Vector[FLOAT]``."""

    if TYPE_CHECKING:

        @overload
        def __getitem__(self: Vector[Element[Number]], index: int) -> Number: ...
        @overload
        def __getitem__(self: Vector[RecordItem], index: int) -> RecordItem: ...
        @overload
        def __getitem__(self, index: slice) -> Vector[Item]: ...
        @overload
        def __getitem__(self, index: int) -> Any: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: int, value: Any) -> None: ...
        def __len__(self) -> int: ...
        @overload
        def __iter__(self: Vector[Element[Number]]) -> Iterator[Number]: ...
        @overload
        def __iter__(self: Vector[RecordItem]) -> Iterator[RecordItem]: ...
        @overload
        def __iter__(self) -> Iterator[Any]: ...
        def __iter__(self) -> Iterator[Any]: ...
        def __get__(self, vertex: object, owner: type) -> Vector[Item]: ...


class VectorList(Bracketed, Generic[Item]):
    """A rank-2 field whose rows may differ in length. In ``compute``: ``self.rows[r]`` is a vector, ``len(self.rows)``."""

    if TYPE_CHECKING:

        def __getitem__(self, index: int) -> Vector[Item]: ...
        def __len__(self) -> int: ...
        def __iter__(self) -> Iterator[Vector[Item]]: ...


class Edge(Bracketed, Generic[Content]):
    """What Input, Output and InOut have in common."""

    if TYPE_CHECKING:

        @overload
        def __get__(self: Edge[Vector[Item]], vertex: object, owner: type) -> Vector[Item]: ...
        @overload
        def __get__(self: Edge[VectorList[Item]], vertex: object, owner: type) -> VectorList[Item]: ...
        @overload
        def __get__(self: Edge[Element[Number]], vertex: object, owner: type) -> Number: ...
        @overload
        def __get__(self, vertex: object, owner: type) -> Any: ...
        def __get__(self, vertex: object, owner: type) -> Any: ...
        def __set__(self, vertex: object, value: float) -> None: ...


class Input(Edge[Content]):
    """An edge that the vertex reads: ``Input[FLOAT]``, ``Input[Vector[FLOAT]]``, ``Input[VectorList[FLOAT]]``."""


class Output(Edge[Content]):
    """An edge that the vertex writes. Reading it gives what this vertex wrote; elements not written keep their value."""


class InOut(Edge[Content]):
    """An edge that the vertex reads and writes: ``InOut[FLOAT]``, ``InOut[Vector[FLOAT]]``, ``InOut[VectorList[FLOAT]]``."""
