"""The element types of the machine.

Each type is a class, so that ``Input[Vector[FLOAT]]`` is a legal annotation for type checkers. Sizes are those of the
device (``reference`` D:Type): BOOL and the CHARs 1 byte, SHORTs and HALF 2, INTs and FLOAT 4, LONGLONGs 8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from pypoplar.errors import PoplarTypeError, TypeNotSupportedError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class ElementType(type):
    """The metaclass of the element types: ``FLOAT.size``, ``FLOAT.dtype``, ``repr(FLOAT) == "FLOAT"``.

    Attributes
    ----------
    code:
        The form of the type in a tile's memory: ``f32 f16 i8 u8 i16 u16 i32 u32 i64 u64 bool``.
    register:
        The form in which a codelet computes with it: 8- and 16-bit integers are promoted to ``i32``.
    spelling:
        The C++ name that Poplar prints and that templates use: ``"Scale<float>"``.
    dtype:
        The type of NumPy's arrays on the host.
    supported:
        Whether the device has the type.
    """

    code: str
    register: str
    spelling: str
    dtype: np.dtype[Any]
    supported: bool

    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        spelling: str = "",
        code: str = "",
        dtype: Any = None,
        supported: bool = True,
    ) -> ElementType:
        """Make the class of an element type, with what it says of itself."""
        element = super().__new__(mcs, name, bases, namespace)
        element.spelling = spelling
        element.code = code
        element.register = "i32" if code in ("i8", "u8", "i16", "u16") else code
        element.dtype = np.dtype(dtype)
        element.supported = supported
        return element

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_: Any) -> None:
        super().__init__(name, bases, namespace)

    @property
    def size(cls) -> int:
        """Bytes of one element in a tile's memory."""
        return int(cls.dtype.itemsize)

    @property
    def limits(cls) -> tuple[int | float, int | float]:
        """The lowest and the largest finite value."""
        if cls.dtype == np.bool_:
            return 0, 1
        if cls.is_floating:
            return float(np.finfo(cls.dtype).min), float(np.finfo(cls.dtype).max)
        return int(np.iinfo(cls.dtype).min), int(np.iinfo(cls.dtype).max)

    @property
    def is_floating(cls) -> bool:
        """Whether it is FLOAT or HALF."""
        return cls.code in ("f32", "f16")

    def __repr__(cls) -> str:
        return cls.__name__

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        """An error: an element type has no instances on the host."""
        raise PoplarTypeError(f"{cls.__name__} is an element type; it has no instances")


Number = TypeVar("Number", covariant=True)


class Element(Generic[Number]):
    """What type checkers see in device code: a plain field ``factor: FLOAT`` and a cast ``FLOAT(x)`` are a float, int or bool."""

    if TYPE_CHECKING:

        def __new__(cls, value: Any) -> Number: ...  # type: ignore[misc]  # noqa: D102
        def __get__(self, vertex: object, owner: type) -> Number: ...
        def __set__(self, vertex: object, value: float) -> None: ...


class FLOAT(Element[float], metaclass=ElementType, spelling="float", code="f32", dtype=np.float32):
    """IEEE float of 32 bits, ``float32`` in NumPy; each operation rounds once."""


class HALF(Element[float], metaclass=ElementType, spelling="half", code="f16", dtype=np.float16):
    """IEEE float of 16 bits, ``float16`` in NumPy; each operation rounds once."""


class INT(Element[int], metaclass=ElementType, spelling="int", code="i32", dtype=np.int32):
    """Signed integer of 32 bits, ``int32`` in NumPy; arithmetic wraps."""


class UNSIGNED_INT(Element[int], metaclass=ElementType, spelling="unsigned int", code="u32", dtype=np.uint32):
    """Unsigned integer of 32 bits, ``uint32`` in NumPy; arithmetic wraps."""


class SHORT(Element[int], metaclass=ElementType, spelling="short", code="i16", dtype=np.int16):
    """Signed integer of 16 bits, ``int16`` in NumPy; promoted to INT in arithmetic."""


class UNSIGNED_SHORT(Element[int], metaclass=ElementType, spelling="unsigned short", code="u16", dtype=np.uint16):
    """Unsigned integer of 16 bits, ``uint16`` in NumPy; promoted to INT in arithmetic."""


class CHAR(Element[int], metaclass=ElementType, spelling="char", code="i8", dtype=np.int8):
    """Integer of 8 bits, signed on this machine, ``int8`` in NumPy; promoted to INT in arithmetic."""


class SIGNED_CHAR(Element[int], metaclass=ElementType, spelling="signed char", code="i8", dtype=np.int8):
    """Signed integer of 8 bits, ``int8`` in NumPy; promoted to INT in arithmetic."""


class UNSIGNED_CHAR(Element[int], metaclass=ElementType, spelling="unsigned char", code="u8", dtype=np.uint8):
    """Unsigned integer of 8 bits, ``uint8`` in NumPy; promoted to INT in arithmetic."""


class BOOL(Element[bool], metaclass=ElementType, spelling="bool", code="bool", dtype=np.bool_):
    """A truth value in one byte, 0 or 1, ``bool`` in NumPy."""


class LONGLONG(Element[int], metaclass=ElementType, spelling="long long", code="i64", dtype=np.int64):
    """Signed integer of 64 bits, ``int64`` in NumPy; arithmetic wraps."""


class UNSIGNED_LONGLONG(Element[int], metaclass=ElementType, spelling="unsigned long long", code="u64", dtype=np.uint64):
    """Unsigned integer of 64 bits, ``uint64`` in NumPy; arithmetic wraps."""


class QUARTER(metaclass=ElementType, spelling="quarter", code="f8", dtype=np.uint8, supported=False):
    """Float of 8 bits: not there yet; its use raises `TypeNotSupportedError`."""


class DOUBLE(metaclass=ElementType, spelling="double", code="f64", dtype=np.float64, supported=False):
    """The device has no double: its use raises `TypeNotSupportedError`; use `FLOAT`."""


class LONG(metaclass=ElementType, spelling="long", code="long", dtype=np.int64, supported=False):
    """No type of the device: its use raises `TypeNotSupportedError`; use `LONGLONG`."""


class UNSIGNED_LONG(metaclass=ElementType, spelling="unsigned long", code="ulong", dtype=np.uint64, supported=False):
    """No type of the device: its use raises `TypeNotSupportedError`; use `UNSIGNED_LONGLONG`."""


SUPPORTED: tuple[ElementType, ...] = (
    FLOAT, HALF, INT, UNSIGNED_INT, SHORT, UNSIGNED_SHORT, CHAR, SIGNED_CHAR, UNSIGNED_CHAR, BOOL, LONGLONG, UNSIGNED_LONGLONG,
)  # fmt: skip
BY_NAME: dict[str, ElementType] = {type.__name__: type for type in SUPPORTED}
BY_SPELLING: dict[str, ElementType] = {type.spelling: type for type in SUPPORTED}


def check_type(type: object) -> ElementType:
    """Return `type` if it is a supported element type; else raise, naming what would be right."""
    if not isinstance(type, ElementType):
        raise PoplarTypeError(f"expected an element type such as pypoplar.FLOAT, got {type!r}")
    if not type.supported:
        hint = {"DOUBLE": "; use FLOAT", "LONG": "; use LONGLONG", "UNSIGNED_LONG": "; use UNSIGNED_LONGLONG"}
        raise TypeNotSupportedError(f"{type.__name__} is not a type of the device{hint.get(type.__name__, ' yet')}")
    return type


def type_of_dtype(dtype: DTypeLike) -> ElementType:
    """The element type whose host form is a NumPy dtype (``equivalent_device_type`` in Poplar).

    Parameters
    ----------
    dtype:
        A dtype, or what NumPy makes one of.

    Returns
    -------
    ElementType
        `SIGNED_CHAR`, not `CHAR`, of int8.

    Raises
    ------
    PoplarTypeError
        If the device has no such type.
    """
    wanted = np.dtype(dtype)
    for type in SUPPORTED:
        if type.dtype == wanted and type is not CHAR:
            return type
    hint = "; the device has no double: use numpy.float32" if wanted == np.float64 else ""
    raise PoplarTypeError(f"no element type has the NumPy dtype {wanted}{hint}")
