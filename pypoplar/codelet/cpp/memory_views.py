"""What pointers see: numbers, vectors of the hardware and structs in the bytes of a vector, or in a local."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import evolve

from pypoplar.codelet.cpp.bit_casts import SIZES, BitCasts
from pypoplar.codelet.cpp.cpp_values import (
    PRODUCT,
    SUM,
    NumberPlace,
    NumberText,
    Pointer,
    Struct,
    VectorLanes,
    innermost,
    literal,
    weak_in,
)
from pypoplar.codelet.cpp.writing import refuse
from pypoplar.codelet.cpp_tree.cpp_types import NAMES, CppType, register, type_of
from pypoplar.codelet.cpp_tree.tree import Node

ZERO = literal(0, "i32")


class Members(Mapping[str, Any]):
    """The members of a struct in memory, each found when it is asked for."""

    def __init__(self, names: tuple[str, ...], find: Callable[[str], Any]) -> None:
        self.names, self.find = names, find

    def __getitem__(self, name: str) -> Any:
        if name not in self.names:
            raise KeyError(name)
        return self.find(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


class MemoryViews(BitCasts):
    """Pointers, and what they point at."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.columns: dict[str, dict[str, str]] = {}  # of arrays of structs: the array of each member
        self.singles: dict[str, NumberPlace | Struct | VectorLanes] = {}  # what is no array, and has had its address taken

    # sizes

    def units(self, pointer: Pointer) -> int:
        """The elements of its vector that a step of a pointer goes on."""
        if pointer.span in self.columns:
            return _structs_in(pointer.to)
        return bytes_of(pointer.to) // SIZES[pointer.code] if innermost(pointer.to).sort != "void" else 1

    def scaled(self, pointer: Pointer, index: NumberText) -> NumberText:
        """Steps of a pointer as elements of its vector."""
        size = self.units(pointer)
        if size == 1:
            return index
        if index.value is not None:
            return literal(int(index.value) * size, "i32")
        return NumberText(f"{index.at(PRODUCT)} * {size}", "i32", index.held, PRODUCT)

    def moved(self, at: NumberText, by: NumberText, sign: str = "+") -> NumberText:
        """An index that is moved by another, modulo 2**32, as addresses are."""
        if by.type in ("i64", "u64") and by.value is None:
            by = self.converted(by, "i32", self.whole) if self.whole is not None else by
        if at.value is not None and by.value is not None:
            return literal(int(at.value) + int(by.value) * (1 if sign == "+" else -1), "i32")
        if by.value is not None:
            by = weak_in(by, "i32")
            value = int(by.value or 0) * (1 if sign == "+" else -1)
            if value == 0:
                return at
            return NumberText(f"{at.at(SUM)} {'-' if value < 0 else '+'} {abs(value)}", "i32", at.held, SUM)
        if at.value == 0 and sign == "+":
            return evolve(by, type="i32") if by.type in ("i32", "u32") else by
        held = "u32" if "u32" in (at.held, by.held) else "i32"
        return NumberText(f"{at.at(SUM)} {sign} {by.at(PRODUCT)}", "i32", held, SUM)

    def stepping(self, pointer: Pointer, index: NumberText) -> Pointer:
        """A pointer some steps on."""
        return evolve(pointer, at=self.moved(pointer.at, self.scaled(pointer, index)))

    def seen_as(self, pointer: Pointer, wanted: CppType, node: Node) -> Pointer:
        """A pointer that is cast to one to another type."""
        wanted = wanted.value
        if wanted.sort in ("void", "other") or wanted == pointer.to.value:
            return pointer
        if pointer.span in self.columns:
            if _plain(wanted) == _plain(innermost(pointer.to)):
                return evolve(pointer, to=wanted)
            refuse(node, f"an array of structs as {wanted.spelling}: its members are kept one by one; read them by their names")
        code = pointer.code
        if not code:
            refuse(node, f"a pointer to {pointer.to.spelling} as one to {wanted.spelling}: read its members by their names")
        sizes = {SIZES[one] for one in codes_of(wanted, node)}
        if pointer.span not in self.singles and min(sizes) < SIZES[code]:
            shown = f"a pointer to elements of {8 * SIZES[code]} bits as one to {wanted.spelling}, which has smaller ones"
            refuse(node, f"{shown}: read the elements as they are, and take their bits apart")
        return evolve(pointer, to=wanted, kept=code)

    # what is there

    def element(self, pointer: Pointer, index: NumberText, node: Node) -> NumberPlace:
        """The number that a pointer and an index name."""
        if pointer.to.value.sort == "array":
            refuse(node, "this is an array: index it")
        if pointer.span in self.singles:
            return self.single_number(pointer, index, node)
        type, kept = self.element_type(pointer.to, node), pointer.code
        at = self.moved(pointer.at, self.scaled(pointer, index))
        if at.value is not None and at.value < 0:
            refuse(node, f"index {at.value} lies before the first element")
        if kept == type:
            return NumberPlace(f"{pointer.span}[{at.text}]", type, register(type), pointer.span, at)
        if SIZES[type] < SIZES[kept]:
            refuse(node, f"{8 * SIZES[type]} bits of an element of {8 * SIZES[kept]}: read the element, and take its bits apart")
        if at.value is None and SIZES[type] > SIZES[kept] and not at.named:
            at = self.kept(self.exactly(evolve(at, type="i32")), "at")
        under = [self.element_at(pointer.span, kept, self.moved(at, literal(k, "i32"))) for k in range(SIZES[type] // SIZES[kept])]
        return evolve(self.views(under, type)[0], span=pointer.span, index=at)

    def element_at(self, span: str, code: str, at: NumberText) -> NumberPlace:
        return NumberPlace(f"{span}[{at.text}]", code, register(code), span, at)

    def single_number(self, pointer: Pointer, index: NumberText, node: Node) -> NumberPlace:
        """What a pointer to a local of one number, or a few, names."""
        at = self.moved(pointer.at, self.scaled(pointer, index))
        places = self.leaves(self.singles[pointer.span], node)
        if at.value is None:
            refuse(node, "a pointer into a local that is moved at run time: make the local an array")
        type = self.element_type(pointer.to, node)
        begin = int(at.value) * SIZES[pointer.code]
        seen = self.views(places, type) if all(place.type == places[0].type for place in places) else places
        offset = 0
        for place in seen:
            if offset == begin and place.type == type:
                return place
            offset += SIZES[place.type]
        refuse(node, "this lies beyond the local that the pointer points at, or is a part of one of its numbers")

    def lanes_at(self, pointer: Pointer, node: Node) -> VectorLanes:
        """The vector that a pointer points at."""
        type = pointer.to.value
        if pointer.span in self.singles and isinstance(self.singles[pointer.span], VectorLanes):
            found = self.singles[pointer.span]
            assert isinstance(found, VectorLanes)
            if pointer.at.value == 0 and _plain(found.type) == _plain(type):
                return found
        at = pointer.at
        if at.value is None and not at.named and pointer.span not in self.singles:
            at = self.kept(self.exactly(evolve(at, type="i32")), "at")
        inner = evolve(pointer, at=at, to=innermost(type), kept=pointer.code)
        return VectorLanes(tuple(self.element(inner, literal(k, "i32"), node) for k in range(type.count)), type)

    def struct_at(self, pointer: Pointer, node: Node) -> Struct:
        """The struct that a pointer points at."""
        type = pointer.to.value
        single = self.singles.get(pointer.span)
        if isinstance(single, Struct) and pointer.at.value == 0 and not pointer.kept:
            return single
        at = pointer.at
        if at.value is None and not at.named and pointer.span not in self.singles:
            at = self.kept(self.exactly(evolve(at, type="i32")), "at")
            pointer = evolve(pointer, at=at)
        fields = {field.name: field for field in (Node(cursor) for cursor in type.clang.get_fields())}
        return Struct(Members(tuple(fields), lambda name: self.member_at(pointer, fields[name], node)), type)

    def member_at(self, pointer: Pointer, field: Node, node: Node) -> Any:
        """A member of a struct in memory."""
        type = field.type.value
        if pointer.span in self.columns:
            per = bytes_of(type) // SIZES[innermost(type).code] if innermost(type).sort == "number" else 1
            at = pointer.at if per == 1 else self.moved(ZERO, _times(pointer.at, per))
            inner = Pointer(self.columns[pointer.span][field.name], at, type)
        else:
            offset, size = field.cursor.get_field_offsetof() // 8, SIZES[pointer.code]
            if offset % size or any(SIZES[code] < size for code in codes_of(type, node)):
                refuse(node, f"member '{field.name}' is a part of an element of {8 * size} bits: read the elements as they are")
            inner = Pointer(pointer.span, self.moved(pointer.at, literal(offset // size, "i32")), type, pointer.code)
        return self.object_at(inner, node)

    def object_at(self, pointer: Pointer, node: Node) -> Any:
        """What a pointer points at: a place, an array, a vector of the hardware or a struct."""
        match pointer.to.value.sort:
            case "number":
                return self.element(pointer, ZERO, node)
            case "array":
                return evolve(pointer, to=pointer.to.value.to or pointer.to)
            case "vector":
                return self.lanes_at(pointer, node)
            case "record":
                return self.struct_at(pointer, node)
        refuse(node, f"{pointer.to.spelling} in memory has no form here")

    def array_of_structs(self, name: str, type: CppType, count: int, node: Node) -> str:
        """Arrays for the members of some structs; the name that stands for all of them."""
        key = f"{name}[]"
        self.columns[key] = {}
        for field in (Node(cursor) for cursor in type.clang.get_fields()):
            unique, inner = f"{name}_{field.name}", innermost(field.type)
            number = count * (bytes_of(field.type) // bytes_of(inner))
            if inner.sort == "record":
                self.columns[key][field.name] = self.array_of_structs(unique, inner, number, node)
                continue
            element = self.element_type(inner, field)
            local = self.writing.local(unique, f"array {element} {number}")
            self.book.reserve(self, f"{local} = {self.use('ipu.array')}({self.use(NAMES[element])}, {number})")
            self.columns[key][field.name] = local
        return key

    def leaves(self, value: Any, node: Node) -> list[NumberPlace]:
        """The places of all numbers in something, in the order of memory."""
        match value:
            case NumberPlace():
                return [value]
            case VectorLanes():
                return [place for part in value.parts for place in self.leaves(part, node)]
            case Struct():
                return [place for name in value.members for place in self.leaves(value.members[name], node)]
        refuse(node, "this has no place in memory")

    def address_of(self, value: NumberPlace | Struct | VectorLanes, type: CppType, name: str) -> Pointer:
        """A pointer to a local that is no array."""
        key = f"&{name or 'local'}"
        while key in self.singles and self.singles[key] != value:
            key += "'"
        self.singles[key] = value
        return Pointer(key, ZERO, type, innermost(type).code)

    @abstractmethod
    def location(self, node: Node) -> Pointer | None:
        """The pointer to what an expression names, if that is in memory."""


def bytes_of(type: CppType) -> int:
    """The size of something in memory."""
    type = type.value
    if type.sort == "number":
        return SIZES[type.code]
    if type.sort in ("array", "vector") and type.to is not None:
        return type.count * bytes_of(type.to)
    return int(type.clang.get_size()) if type.clang is not None else 4


def elements_of(type: CppType) -> int:
    """The numbers in a number, in an array or a vector of some."""
    type = type.value
    return type.count * elements_of(type.to) if type.sort in ("array", "vector") and type.to is not None else 1


def codes_of(type: CppType, node: Node) -> list[str]:
    """The types of the numbers that something is made of."""
    type = type.value
    if type.sort == "number":
        return [type.code]
    if type.sort in ("array", "vector") and type.to is not None:
        return codes_of(type.to, node)
    if type.sort == "record":
        found = [code for cursor in type.clang.get_fields() for code in codes_of(type_of(cursor.type), node)]
        if found:
            return found
    refuse(node, f"a pointer to {type.spelling}: what it points at are numbers, and structs of these")


def _structs_in(type: CppType) -> int:
    type = type.value
    return type.count * _structs_in(type.to) if type.sort == "array" and type.to is not None else 1


def _plain(type: CppType) -> str:
    return type.value.spelling.removeprefix("const ")


def _times(at: NumberText, count: int) -> NumberText:
    if at.value is not None:
        return literal(int(at.value) * count, "i32")
    return NumberText(f"{at.at(PRODUCT)} * {count}", "i32", at.held, PRODUCT)
