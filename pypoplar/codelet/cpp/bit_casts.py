"""The bits of numbers as numbers of other types: casts of pointers, unions, memcpy of a few bytes."""

from __future__ import annotations

import struct
from abc import abstractmethod

from pypoplar.codelet.cpp.cpp_values import NumberPlace, NumberText, literal
from pypoplar.codelet.cpp.walk_state import CppWalk
from pypoplar.codelet.cpp.writing import refuse
from pypoplar.codelet.cpp_tree.cpp_types import BITS, NAMES, register
from pypoplar.codelet.cpp_tree.tree import Node

SIZES = {"bool": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "f16": 2, "i32": 4, "u32": 4, "f32": 4, "i64": 8, "u64": 8, "f64": 4}
"""Bytes that a number has in memory."""
FORMATS = {
    "bool": "?", "u8": "B", "i8": "b", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f32": "f",
    "f16": "e",
}  # fmt: skip
"""The letters that `struct` has for them."""
_WHOLE = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


class BitCasts(CppWalk):
    """Numbers whose bits are seen as others, and places that are such numbers."""

    def bits_as(self, codes: list[NumberText], source: str, to: str) -> list[NumberText]:
        """Numbers of one type in memory order as those of another that lie in the same bytes."""
        if source == to:
            return codes
        few, many = SIZES[source], SIZES[to]
        if all(code.value is not None for code in codes):
            data = b"".join(
                struct.pack("<" + FORMATS[source], literal(0 if code.value is None else code.value, source).value) for code in codes
            )
            return [self.constant(value, to) for (value,) in struct.iter_unpack("<" + FORMATS[to], data)]
        if few == many:
            return [self.same_size(code, source, to) for code in codes]
        whole = [self.same_size(code, source, _WHOLE[few]) for code in codes]
        made = self.joined(whole, few, many) if few < many else self.split(whole, few, many)
        return [self.same_size(code, _WHOLE[many], to) for code in made]

    def joined(self, codes: list[NumberText], few: int, many: int) -> list[NumberText]:
        """Small unsigned numbers as larger ones, the lowest bits first."""
        work, made = ("u64" if many == 8 else "u32"), []
        node = self.whole_node
        for first in range(0, len(codes), many // few):
            code: NumberText | None = None
            for position, part in enumerate(codes[first : first + many // few]):
                wide = self.converted(part, work, node)
                if position:
                    wide = self.arithmetic("<<", self.exactly(wide), literal(8 * few * position, "u32"), work, node)
                code = wide if code is None else self.arithmetic("|", code, wide, work, node)
            assert code is not None
            made.append(self.converted(code, _WHOLE[many], node))
        return made

    def split(self, codes: list[NumberText], few: int, many: int) -> list[NumberText]:
        """Large unsigned numbers as smaller ones."""
        work, made, node = ("u64" if few == 8 else "u32"), [], self.whole_node
        for code in codes:
            code = code if code.named else self.kept(self.exactly(self.converted(code, work, node)))
            for position in range(few // many):
                part = self.converted(code, work, node)
                if position:
                    part = self.arithmetic(">>", part, literal(8 * many * position, "u32"), work, node)
                made.append(self.converted(part, _WHOLE[many], node))
        return made

    def same_size(self, code: NumberText, source: str, to: str) -> NumberText:
        """The bits of a number as one of a type of the same size."""
        if source == to:
            return code
        if source in BITS and to in BITS:
            return self.converted(code, to, self.whole_node)
        code = self.exactly(code)
        if source == "bool" or to == "bool":
            refuse(self.whole_node, "the bits of a bool as a float")
        if source in BITS and SIZES[source] == 2 and not code.text.endswith("]"):
            code = NumberText(f"{self.use(NAMES[source])}({code.text})", source, "i32")
        self.use(NAMES[to])
        return NumberText(f"{self.use('ipu.bit_cast')}({code.text}, {NAMES[to]})", to, register(to), counts=to in ("u8", "u16"))

    # places

    def read(self, place: NumberPlace) -> NumberText:
        """The number at a place."""
        if not place.view:
            return place.read()
        kept = place.view[0].type
        return self.bits_as([self.read(part) for part in place.view], kept, place.type)[place.part]

    def store(self, place: NumberPlace, code: NumberText, node: Node) -> None:
        """Let a place hold a number."""
        if not place.view:
            self.emit(f"{place.text} = {self.for_place(place, code, node)}")
            return
        kept = place.view[0].type
        code = self.converted(code, place.type, node)
        if SIZES[kept] <= SIZES[place.type]:
            parts = self.bits_as([code], place.type, kept)
        else:
            parts = self.bits_as([self.read(place.view[0])], kept, place.type)
            parts = self.bits_as([code if number == place.part else part for number, part in enumerate(parts)], place.type, kept)
        if len(parts) > 1:
            parts = [self.kept(part) for part in parts]
        for under, part in zip(place.view, parts, strict=True):
            self.store(under, part, node)

    def views(self, places: list[NumberPlace], to: str) -> list[NumberPlace]:
        """Places of one type in memory order as those of another that are in the same bytes."""
        kept = places[0].type
        if kept == to:
            return places
        few, many = SIZES[kept], SIZES[to]
        if few <= many:
            ratio = many // few
            groups = [tuple(places[first : first + ratio]) for first in range(0, len(places) - ratio + 1, ratio)]
            return [NumberPlace("", to, register(to), view=group, counts=to in ("u8", "u16")) for group in groups]
        return [
            NumberPlace("", to, register(to), view=(place,), part=part, counts=to in ("u8", "u16"))
            for place in places
            for part in range(few // many)
        ]

    @property
    def whole_node(self) -> Node:
        """What is told of where something has no form."""
        node = self.whole or self.function
        assert node is not None
        return node

    @abstractmethod
    def for_place(self, place: NumberPlace, code: NumberText, node: Node) -> str:
        """The text that is stored to a place that is no view."""
