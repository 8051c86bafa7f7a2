"""Functions of bytes and of vectors: memcpy, memset, casts of bits, loads that move a pointer, operations on each element."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from attrs import evolve

from pypoplar.codelet.cpp.bit_casts import SIZES
from pypoplar.codelet.cpp.cpp_values import NumberPlace, NumberText, Pointer, Value, VectorLanes, literal
from pypoplar.codelet.cpp.hardware_vectors import HardwareVectors, element_code
from pypoplar.codelet.cpp.memory_views import bytes_of
from pypoplar.codelet.cpp.writing import refuse
from pypoplar.codelet.cpp_tree.tree import Node

_MASK = "its result is a mask in floats, which are NaNs here: compare with <, which gives integers, and choose with ?:"
_STATE = "it works on registers of the accumulator, which have no form here: write the loop"
REFUSED = {
    **{
        f"{prefix}{name}": _MASK
        for prefix in ("", "f32", "f32v2", "f16v2", "f16v4")
        for name in ("cmpeq", "cmpne", "cmplt", "cmple", "cmpgt", "cmpge")
    },
    "get_worker_id": "take the number of the worker from compute of a MultiVertex: bool compute(unsigned worker)",
    "get_tile_id": "a codelet does not know its tile here: connect the number to an Input",
    "get_scount_u": "the upper half of the cycle counter: take the difference of two readings of __builtin_ipu_get_scount_l",
    **dict.fromkeys(("f32v2aop", "f32v2axpy", "f16v2gina", "f32v2gina", "f32v2cmac", "f16v2cmac", "f16v4cmac"), _STATE),
    **dict.fromkeys(("ld64putcs", "ld128putcs", "tapack"), _STATE),
    **dict.fromkeys(
        ("put", "uput", "uputf", "get", "uget", "ugetf"), "the tile's control registers have no form here: leave it out"
    ),
}
"""Intrinsics that are declared and have no form, with what to write."""
MASKS = {"and": "&", "andc": "& ~", "or": "|"}
_LIMIT = 64  # bytes that are copied one number at a time


class MemoryCalls(HardwareVectors):
    """What is called by bytes, and for each element of a vector."""

    def memory_call(self, node: Node, name: str, arguments: list[Node]) -> None:
        """A call of memcpy or memset."""
        target = self.pointer(_uncast(arguments[0]))
        source = self.pointer(_uncast(arguments[1])) if name == "memcpy" else None
        value = self.number(arguments[1]).value if source is None else None
        if source is None and value is None:
            refuse(node, "memset of a value that is no constant: write a loop, or std::fill")
        count = self.number(arguments[2])
        alike = source is None or (source.code == target.code and source.span not in self.singles)
        if target.span in self.singles or target.span in self.columns or not alike:
            self.copy_few(node, target, source, value, count)
            return
        size = SIZES[target.code]
        if count.value is not None and int(count.value) % size == 0:
            rounds = str(int(count.value) // size)
        else:
            rounds = self.divided("/", self.exactly(count), literal(size, "u32"), "u32").text
        index = self.writing.temporary("i32" if count.value is not None else "u32", "i")
        where = NumberText(index, "i32", "i32", named=True)
        if source is None:
            stored = self.pattern(int(value or 0), target.code).text
        else:
            stored = f"{source.span}[{self.moved(source.at, where).text}]"
        self.emit(f"for {index} in {self.use('range')}({rounds}):")
        with self.writing.indented():
            self.emit(f"{target.span}[{self.moved(target.at, where).text}] = {stored}")

    def pattern(self, byte: int, code: str) -> NumberText:
        """A number whose bytes are all the same."""
        return self.bits_as([literal(byte & 255, "u8")] * SIZES[code], "u8", code)[0]

    def copy_few(self, node: Node, target: Pointer, source: Pointer | None, value: Any, count: NumberText) -> None:
        """Copy some bytes, of which there are a known few, number by number, whatever types they have at both ends."""
        if count.value is None or not 0 <= int(count.value) <= _LIMIT:
            known = "a number that is known here" if count.value is None else f"{_LIMIT} at most"
            refuse(node, f"memcpy and memset of locals, structs and other types take {known} bytes: write a loop")
        bytes = int(count.value)
        places = self.few(target, bytes, node)
        if source is None:
            codes = [self.pattern(int(value), place.type) for place in places]
        else:
            given = self.few(source, bytes, node)
            codes = [self.read(place) for place in given]
            if [place.type for place in given] != [place.type for place in places]:
                types = ({place.type for place in given}, {place.type for place in places})
                if any(len(one) != 1 for one in types):
                    refuse(node, "memcpy between structs of different members: copy them one by one")
                codes = self.bits_as(codes, types[0].pop(), types[1].pop())
            if len(places) > 1:
                codes = [self.kept(code) for code in codes]
        for place, code in zip(places, codes, strict=True):
            self.store(place, code, node)

    def few(self, pointer: Pointer, bytes: int, node: Node) -> list[NumberPlace]:
        """The places of the numbers in some bytes behind a pointer."""
        if pointer.span in self.singles:
            if pointer.at.value != 0:
                refuse(node, "bytes from the middle of a local: name its member")
            places = self.leaves(self.singles[pointer.span], node)
        elif pointer.span in self.columns:
            rounds = bytes // bytes_of(pointer.to)
            structs = [self.struct_at(self.stepping(pointer, literal(k, "i32")), node) for k in range(rounds)]
            places = [place for one in structs for place in self.leaves(one, node)]
        else:
            at = pointer.at
            if at.value is None and not at.named:
                at = self.kept(self.exactly(evolve(at, type="i32")), "at")
            number = bytes // SIZES[pointer.code]
            places = [self.element_at(pointer.span, pointer.code, self.moved(at, literal(k, "i32"))) for k in range(number)]
        found, held = [], 0
        for place in places:
            if held == bytes:
                break
            found.append(place)
            held += SIZES[place.type]
        if held != bytes:
            refuse(node, f"{bytes} bytes of what has {held}, in numbers of its own: copy its members one by one")
        return found

    def recast(self, node: Node, name: str, argument: Node) -> Value:
        """``__builtin_convertvector`` and ``__builtin_bit_cast``."""
        to, given = node.type.value, argument.type.value
        codes = self.codes(self.lanes(argument)) if given.sort == "vector" else [self.number(argument)]
        source = element_code(given) if given.sort == "vector" else given.code
        if to.sort not in ("number", "vector") or given.sort not in ("number", "vector"):
            refuse(node, f"{given.spelling} as {to.spelling}: only numbers and vectors of these have bits here")
        code = element_code(to) if to.sort == "vector" else to.code
        if name == "__pypoplar_convert":
            made = [self.converted(one, code, node) for one in codes]
        else:
            made = self.bits_as(codes, source, code)
        if to.sort == "number":
            return made[0]
        if len(made) != to.count:
            refuse(node, f"{given.spelling} as {to.spelling}, which has another size")
        return VectorLanes(tuple(made), to)

    def masked(self, node: Node, name: str, arguments: list[Node]) -> Value:
        """The bits of floats that a mask leaves; the mask is a constant that is no NaN, because bits of a NaN are left open."""
        word = name.removeprefix("__builtin_ipu_").partition("_")[0]
        values = [self.codes(self.lanes(one)) if one.type.value.sort == "vector" else [self.number(one)] for one in arguments]
        made = []
        for left, right in zip(*values, strict=True):
            constant = next((code.value for code in (left, right) if code.value is not None), None)
            if constant is None or constant != constant:
                refuse(node, f"{name}: one of its values is a constant that is no NaN, whose bits floats have not here")
            first, second = self.bits_as([left], "f32", "u32")[0], self.bits_as([right], "f32", "u32")[0]
            if word == "andc":
                second = self.negated("~", second, node) if second.value is None else self.constant(~int(second.value), "u32")
            result = self.arithmetic("|" if word == "or" else "&", first, second, "u32", node)
            made.append(self.bits_as([result], "u32", "f32")[0])
        return made[0] if node.type.value.sort == "number" else VectorLanes(tuple(made), node.type.value)

    def function_of_lanes(self, name: str, arguments: list[Node], node: Node) -> VectorLanes:
        """An operation on each element."""
        type = node.type.value
        code = element_code(type)
        values = [self.codes(self.lanes(argument)) for argument in arguments]
        return VectorLanes(tuple(self.library_function(name, list(each), code, node) for each in zip(*values, strict=True)), type)

    def postincrement(self, node: Node, name: str, arguments: list[Node]) -> Value | None:
        """``ipu::load_postinc(&p, 1)`` and ``ipu::store_postinc(&p, v, 1)``."""
        target = arguments[0].naked
        if target.kind != "UNARY_OPERATOR" or target.operator != "&":
            refuse(node, f"{name} takes the address of a pointer that is a variable: ipu::{name}(&p, ...)")
        pointer = self.pointer(target.parts[0])
        if not pointer.at.named:
            refuse(node, "this is no pointer that can be moved")
        found = self.object_at(pointer, node)
        result: Value | None = None
        if name == "store_postinc":
            if isinstance(found, VectorLanes):
                self.assign_lanes(found, self.lanes(arguments[1]), node)
            else:
                self.store(found, self.number(arguments[1]), node)
        elif isinstance(found, VectorLanes):
            result = self.kept_lanes(found)
        else:
            result = self.kept(self.read(found))
        steps = self.scaled(pointer, self.number(arguments[-1]))
        if steps.value is not None and int(steps.value) < 0:
            self.emit(f"{pointer.at.text} -= {-int(steps.value)}")
        elif steps.value != 0:
            self.emit(f"{pointer.at.text} += {self.position(steps)}")
        return result

    @abstractmethod
    def call_value(self, node: Node) -> Value | None:
        """What a call gives; None for nothing."""


def _uncast(node: Node) -> Node:
    """A pointer without the conversion to ``void *``."""
    node = node.naked
    while node.kind in ("CSTYLE_CAST_EXPR", "CXX_STATIC_CAST_EXPR", "CXX_REINTERPRET_CAST_EXPR") and node.type.value.to is not None:
        if node.type.value.to.value.sort != "void":
            return node
        node = node.parts[-1].naked
    return node
