"""Assignments and steps, also inside of expressions."""

from __future__ import annotations

from abc import abstractmethod

from attrs import evolve

from pypoplar.codelet.cpp.cpp_places import CppPlaces
from pypoplar.codelet.cpp.cpp_values import ALONE, SUM, NumberPlace, NumberText, Pointer, VectorLanes, literal
from pypoplar.codelet.cpp.walk_state import DOUBLE
from pypoplar.codelet.cpp.writing import refuse
from pypoplar.codelet.cpp_tree.cpp_types import BITS, FLOATS, register, usual
from pypoplar.codelet.cpp_tree.tree import Node


class Assignments(CppPlaces):
    """What changes a place."""

    def step(self, node: Node) -> NumberText:
        """``++x``, ``x--`` of a number, as a value."""
        place = self.place(node.parts[0])
        symbol = "+=" if "++" in node.operator else "-="
        if place.view:
            before = self.kept(self.read(place))
            self.stepped_view(place, node)
            return self.read(place) if node.operator in ("++", "--") else before
        if node.operator in ("++", "--"):
            self.emit(self.step_text(place, symbol, node))
            return self.read(place)
        if place.is_local and self.may_wait(node):
            self.after.append(self.step_text(place, symbol, node))
            return self.read(place)
        before = self.kept(self.read(place))
        self.emit(self.step_text(place, symbol, node))
        return before

    def stepped_view(self, place: NumberPlace, node: Node) -> bool:
        """A step of a number that is kept in the bytes of others."""
        if place.view:
            symbol = "+" if "++" in node.operator else "-"
            work = "i32" if place.type in ("i8", "u8", "i16", "u16") else place.type
            left = self.converted(self.read(place), work, node)
            self.store(place, self.arithmetic(symbol, left, self.constant(1, work), work, node), node)
        return bool(place.view)

    def step_text(self, place: NumberPlace, symbol: str, node: Node) -> str:
        if place.type == "bool":
            refuse(node, "++ of a bool")
        if place.is_local and place.type in ("i8", "u8", "i16", "u16"):
            whole = NumberText(f"{place.text} {symbol[0]} 1", "i32", "i32", SUM)
            return f"{place.text} = {self.converted(whole, place.type, node).text}"
        return f"{place.text} {symbol} 1"

    def may_wait(self, node: Node) -> bool:
        """Whether a local is changed after the statement: it stands in it once, and is certainly reached."""
        if self.whole is None:
            return False
        name = node.parts[0].naked
        declared = name.referenced
        if declared is None:
            return False
        uses = [one for one in self.whole.walk() if one.kind == "DECL_REF_EXPR" and one.name == name.name]
        return len(uses) == 1

    def stepped(self, node: Node) -> Pointer:
        """``p++``, ``--p``."""
        name = node.parts[0].naked
        pointer = self.pointer(name)
        if not pointer.at.named:
            refuse(node, f"'{name.name}' is no pointer that can be moved")
        size = self.scaled(pointer, literal(1, "i32")).text
        text = f"{pointer.at.text} {'+' if '++' in node.operator else '-'}= {size}"
        if node.operator in ("++", "--"):
            self.emit(text)
            return pointer
        if self.may_wait(node):
            self.after.append(text)
            return pointer
        before = self.kept(evolve(pointer.at, type="i32"), "at")
        self.emit(text)
        return evolve(pointer, at=before)

    def assign(self, node: Node) -> None:
        """``a = b``, of numbers, pointers and structs."""
        target, source = node.parts
        sort = target.type.value.sort
        if sort == "pointer":
            self.assign_pointer(node)
            return
        if sort == "record":
            self.assign_struct(target, source, node)
            return
        if sort == "vector":
            self.assign_lanes(self.lanes(target), self.lanes(source), node)
            return
        if sort != "number":
            refuse(node, f"an assignment of {target.type.spelling}")
        self.assign_number(target, source, node)

    def assign_number(self, target: Node, source: Node, node: Node) -> None:
        type = target.type.value.code
        code = self.source_of(source, type)
        self.store(self.place(target), code, node)

    def source_of(self, source: Node, type: str) -> NumberText:
        """A number that is stored to a type: what the store converts by itself is not converted before."""
        inner = source.naked if source.kind == "UNEXPOSED_EXPR" else source
        if type in BITS and type != "bool" and inner is not source and source.constant is None:
            given = inner.type.value
            if given.sort == "number" and given.code in BITS and given.code != "bool":
                return self.number(inner)
        return self.number(source)

    def for_place(self, place: NumberPlace, code: NumberText, node: Node) -> str:
        if not place.is_local:
            return self.stored(code, place.type, node)
        code = self.converted(code, place.type, node)
        if code.value is not None:
            constant = self.constant(code.value, place.type)
            return constant.text if place.held in ALONE or place.text in self.writing.noted else self.typed(constant).text
        if place.held in ("i32", "u32") and place.type in ("i32", "u32"):
            return self.exactly(code).text if code.held != place.held else code.text
        return self.settled(code).text

    def assign_compound(self, node: Node) -> None:
        """``x += y``."""
        target, source = node.parts
        symbol = node.operator[:-1]
        if target.type.value.sort == "vector":
            self.assign_compound_lanes(node)
            return
        if target.type.value.sort == "pointer":
            pointer = self.pointer(target)
            if not pointer.at.named:
                refuse(node, "this is no pointer that can be moved")
            index = self.scaled(pointer, self.number(source))
            self.emit(f"{pointer.at.text} {symbol}= {self.position(index)}")
            return
        place_type = target.type.value.code
        type = place_type if symbol in ("<<", ">>") else usual(place_type, source.type.value.code)
        if symbol in ("<<", ">>"):
            type = register(place_type)
        right = self.compound_source(source, type, place_type, node) if symbol not in ("<<", ">>") else self.number(source)
        type = place_type if type == "f64" else type
        place = self.place(target)
        left = self.converted(self.read(place), type, node)
        if symbol not in ("<<", ">>"):
            right = self.converted(right, type, node)
        result = self.arithmetic(symbol, left, right, type, node)
        if place.view:
            self.store(place, self.converted(result, place_type, node), node)
            return
        short = f"{left.text} {symbol} " if symbol != "/" or type in FLOATS else f"{left.text} // "
        if (
            register(place_type) == type
            and left.text == place.text
            and result.held == place.held
            and result.text.startswith(short)
            and (not place.is_local or place_type == type)
        ):
            python = short.split()[-1]
            rest = result.text[len(short) :]
            rest = rest[1:-1] if rest.startswith("(") and _closes(rest) else rest
            self.emit(f"{place.text} {python}= {rest}")
            return
        self.emit(
            f"{place.text} = {self.for_place(place, self.converted(result, place_type, node) if place.is_local else result, node)}"
        )

    def compound_source(self, source: Node, type: str, place: str, node: Node) -> NumberText:
        if type != "f64":
            return self.number(source)
        narrow = self.narrow(source, place) if place in ("f32", "f16") else None
        if narrow is None:
            refuse(node, DOUBLE)
        return narrow

    def assign_pointer(self, node: Node) -> None:
        target, source = node.parts
        self.move(self.pointer(target), self.pointer(source), node)

    def move(self, old: Pointer, new: Pointer, node: Node) -> None:
        """Let a pointer point where another does, into the same vector."""
        if old.span != new.span:
            refuse(node, f"this pointer points into {old.span}, and would point into {new.span}: use two pointers")
        if not old.at.named:
            refuse(node, "this is no pointer that can be moved")
        self.emit(f"{old.at.text} = {self.position(new.at)}")

    @abstractmethod
    def assign_lanes(self, target: VectorLanes, source: VectorLanes, node: Node) -> None:
        """Set all elements of a vector of the hardware."""

    @abstractmethod
    def assign_compound_lanes(self, node: Node) -> None:
        """``v += w`` of vectors of the hardware."""

    @abstractmethod
    def effect(self, node: Node) -> None:
        """An expression whose value nobody wants."""

    @abstractmethod
    def assign_struct(self, target: Node, source: Node, node: Node) -> None:
        """Copy the members of a struct into those of another."""


def _closes(text: str) -> bool:
    """Whether the bracket that a text begins with is closed at its end."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position == len(text) - 1
    return False
