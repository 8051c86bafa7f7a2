"""Unions: one set of locals, which all members see as numbers of their own."""

from __future__ import annotations

from pypoplar.codelet.cpp.cpp_calls import CppCalls
from pypoplar.codelet.cpp.cpp_values import NumberPlace, Struct, Value, VectorLanes, innermost
from pypoplar.codelet.cpp.memory_views import bytes_of, elements_of
from pypoplar.codelet.cpp.writing import refuse
from pypoplar.codelet.cpp_tree.cpp_types import NAMES, CppType, register
from pypoplar.codelet.cpp_tree.tree import Node


class Unions(CppCalls):
    """Unions of numbers, and of arrays and vectors of these."""

    def made_union(self, type: CppType, node: Node, name: str, values: list[Node] | None) -> Struct:
        """A union: locals for its largest members, which the others see as numbers of their own."""
        fields = [Node(cursor) for cursor in type.clang.get_fields()]
        if not fields or any(innermost(field.type).sort != "number" for field in fields):
            refuse(node, f"a union with members that are no numbers, and no arrays or vectors of some: {type.spelling}")
        widest = max(fields, key=lambda field: bytes_of(field.type))
        code = innermost(widest.type).code
        places: list[NumberPlace] = []
        for number in range(elements_of(widest.type)):
            local = self.writing.local(
                f"{name}_{widest.name}" + (f"_{number}" if elements_of(widest.type) > 1 else ""), register(code)
            )
            if values is None:
                self.emit(f"{local}: {self.use(NAMES[register(code)])}")
                self.writing.noted.add(local)
            else:
                self.emit(self.declared(local, self.constant(0, code), code))
            places.append(NumberPlace(local, code, register(code), is_local=True))
        members: dict[str, Value] = {}
        for field in fields:
            seen = self.views(places, innermost(field.type).code)[: elements_of(field.type)]
            members[field.name] = seen[0] if field.type.sort == "number" else VectorLanes(tuple(seen), field.type)
        if values:
            first = members[fields[0].name]
            if isinstance(first, NumberPlace):
                self.store(first, self.converted(self.number(values[0]), first.type, node), node)
            elif isinstance(first, VectorLanes) and first.type.sort == "vector":
                self.assign_lanes(first, self.lanes(values[0]), node)
            else:
                refuse(node, "a union whose first member is an array gets its values one by one")
        return Struct(members, type)

    def copied_union(self, union: Struct, name: str) -> Struct:
        """Another union with the same bytes."""
        node = self.whole_node
        made = self.made_union(union.type, node, name, None)
        for member, held in union.members.items():
            other = made.members[member]
            if all(not place.view for place in self.leaves(other, node)):
                for to, given in zip(self.leaves(other, node), self.leaves(held, node), strict=True):
                    self.store(to, self.read(given), node)
        return made


def is_union(type: CppType) -> bool:
    return type.clang is not None and type.clang.get_declaration().kind.name == "UNION_DECL"
