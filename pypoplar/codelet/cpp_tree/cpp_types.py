"""The types of C++ as device code has them: by their size and sign, with `long` and pointers of 32 bits."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from pypoplar.codelet.cpp_tree.clang_library import clang as library

SCALARS = {
    3: "bool",
    4: "u8",
    5: "u8",
    6: "u16",
    7: "u32",
    8: "u16",
    9: "u32",
    10: "u32",
    11: "u64",
    13: "i8",
    14: "i8",
    15: "i32",
    16: "i16",
    17: "i32",
    18: "i32",
    19: "i64",
    21: "f32",
    22: "f64",
    23: "f64",
    31: "f16",
    32: "f16",
}
"""Our codes of the numbers of libclang's kinds of types."""
_VOID, _NULL, _POINTER, _REFERENCE, _MOVED, _RECORD, _ENUM, _ARRAY = 2, 24, 101, 103, 104, 105, 106, 112
_VECTORS = (113, 176)  # of GCC's and of OpenCL's kind

NAMES = {
    "bool": "BOOL",
    "u8": "UNSIGNED_CHAR",
    "i8": "SIGNED_CHAR",
    "i16": "SHORT",
    "u16": "UNSIGNED_SHORT",
    "i32": "INT",
    "u32": "UNSIGNED_INT",
    "i64": "LONGLONG",
    "u64": "UNSIGNED_LONGLONG",
    "f32": "FLOAT",
    "f16": "HALF",
}
"""What codelets in Python call them."""
BITS = {"bool": 1, "i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64}
FLOATS = ("f16", "f32", "f64")


@frozen
class CppType:
    """A type: ``number`` with its `code`, ``pointer``, ``reference``, ``array``, ``vector``, ``record``, ``void`` or ``other``."""

    sort: str
    code: str = ""
    to: CppType | None = None  # of a pointer, a reference, or the elements of an array or vector
    count: int = 0
    spelling: str = ""
    clang: Any = field(default=None, eq=False, repr=False)

    @property
    def value(self) -> CppType:
        """The type of what a reference refers to, and of anything else itself."""
        return self.to.value if self.sort == "reference" and self.to is not None else self


def type_of(clang: Any) -> CppType:
    """The type that libclang has found."""
    canonical = clang.get_canonical()
    kind, spelling = canonical._kind_id, clang.spelling
    if kind in SCALARS:
        return CppType("number", SCALARS[kind], spelling=spelling)
    if kind == _ENUM:
        return CppType(
            "number", SCALARS.get(canonical.get_declaration().enum_type.get_canonical()._kind_id, "i32"), spelling=spelling
        )
    if kind in (_POINTER, _REFERENCE, _MOVED):
        return CppType("pointer" if kind == _POINTER else "reference", to=type_of(canonical.get_pointee()), spelling=spelling)
    if kind in (_ARRAY, *_VECTORS):
        sort = "array" if kind == _ARRAY else "vector"
        return CppType(sort, to=type_of(_element_of(canonical)), count=canonical.element_count, spelling=spelling)
    if kind == _RECORD:
        return CppType("record", spelling=canonical.spelling, clang=canonical)
    return CppType("void" if kind == _VOID else "other", spelling=spelling)


def _element_of(clang: Any) -> Any:
    """The type of the elements of an array; the binding's own does not know of _Float16."""
    return library().functions.clang_getElementType(clang)


def register(code: str) -> str:
    """The type of the register that a number is in: narrow integers are in one of 32 bits."""
    return "i32" if code in ("i8", "u8", "i16", "u16") else code


def promoted(code: str) -> str:
    """Integer promotion."""
    return "i32" if code in ("bool", "i8", "u8", "i16", "u16") else code


def usual(left: str, right: str) -> str:
    """The usual arithmetic conversions."""
    for code in ("f64", "f32", "f16"):
        if code in (left, right):
            return code
    left, right = promoted(left), promoted(right)
    return next((code for code in ("u64", "i64", "u32") if code in (left, right)), "i32")


def wrapped(value: int, code: str) -> int:
    """An integer as one of a type is, modulo a power of two."""
    bits = BITS[code]
    value &= (1 << bits) - 1
    return value - (1 << bits) if code[0] == "i" and value >> (bits - 1) else value


def split_arguments(spelling: str) -> tuple[str, list[str]]:
    """``poplar::Input<poplar::Vector<float, 1> >`` is ``poplar::Input`` and its arguments."""
    base, bracket, rest = spelling.partition("<")
    if not bracket:
        return spelling, []
    pieces, depth = [""], 0
    for character in rest.rstrip()[:-1]:
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return base, [piece.strip() for piece in pieces]
