"""Structs: locals for each of their members."""

from __future__ import annotations

from abc import abstractmethod

from attrs import evolve

from pypoplar.codelet.cpp.cpp_places import is_container
from pypoplar.codelet.cpp.cpp_values import NumberPlace, NumberText, Pointer, Struct, Value, VectorLanes, innermost
from pypoplar.codelet.cpp.memory_views import ZERO, elements_of
from pypoplar.codelet.cpp.unions import Unions, is_union
from pypoplar.codelet.cpp.writing import refuse
from pypoplar.codelet.cpp_tree.cpp_types import NAMES, CppType, register
from pypoplar.codelet.cpp_tree.declarations_of import element_of, initial_of
from pypoplar.codelet.cpp_tree.tree import Node


class Structs(Unions):
    """Structs by value, whose members are locals, and their constructors."""

    def struct(self, node: Node) -> Struct:
        node = node.bare
        located = self.location(node)
        if located is not None:
            return self.struct_at(located, node)
        if node.kind == "DECL_REF_EXPR":
            bound = self.bound(node)
            if isinstance(bound, Struct):
                return bound
        if node.kind == "MEMBER_REF_EXPR":
            owner = self.owner(node)
            if isinstance(owner, Struct) and isinstance(owner.members.get(node.name), Struct):
                return owner.members[node.name]  # type: ignore[no-any-return]
        if node.kind == "CXX_THIS_EXPR" or (node.kind == "UNARY_OPERATOR" and node.operator == "*"):
            found = self.this_value(node)
            if isinstance(found, Struct):
                return found
        if node.kind == "CALL_EXPR":
            found_call = self.call_value(node)
            if isinstance(found_call, Struct):
                return found_call
        if node.kind in (
            "INIT_LIST_EXPR",
            "CXX_FUNCTIONAL_CAST_EXPR",
            "UNEXPOSED_EXPR",
            "CXX_STATIC_CAST_EXPR",
            "COMPOUND_LITERAL_EXPR",
        ):
            if node.kind != "INIT_LIST_EXPR" and node.parts:
                return self.struct(node.parts[-1])
            return self.made(node.type.value, node, "t", list(node.parts))
        refuse(node, f"a struct {node.type.value.spelling} that is kept in memory: only locals are structs here")

    def struct_variable(self, node: Node, initial: Node | None) -> Struct:
        type = node.type.value
        if initial is None or (initial.bare.kind == "CALL_EXPR" and not initial.bare.parts and not _user_made(initial.bare)):
            return self.made(type, node, node.name, None)
        bare = initial.bare
        if bare.kind == "INIT_LIST_EXPR":
            return self.made(type, node, node.name, list(bare.parts))
        found = self.struct(bare)
        if bare.kind == "CALL_EXPR" and bare.referenced is not None and bare.referenced.kind == "CONSTRUCTOR":
            return found
        return self.copied(found, node.name)

    def made(self, type: CppType, node: Node, name: str, values: list[Node] | None) -> Struct:  # noqa: C901, PLR0912 - an arm for each kind of member
        """A struct of new locals; without values they are not set yet."""
        if is_union(type):
            return self.made_union(type, node, name, values)
        members: dict[str, Value] = {}
        for position, field in enumerate(Node(cursor) for cursor in _fields(type, node)):
            unique = f"{name}_{field.name}"
            given = values[position] if values is not None and position < len(values) else None
            own = initial_of(field)
            given = given if given is not None else own
            sort = field.type.sort
            if sort == "vector":
                lanes = self.codes(self.lanes(given)) if given is not None else None
                if lanes is None and values is not None:
                    lanes = [self.constant(0, innermost(field.type).code)] * field.type.count
                members[field.name] = self.new_lanes(unique, lanes, field.type)
            elif sort == "number":
                held = register(field.type.code)
                if given is None and values is None:
                    local = self.writing.local(unique, held)
                    self.emit(f"{local}: {self.use(NAMES[held])}")
                else:
                    code = (
                        self.constant(0, field.type.code)
                        if given is None
                        else self.converted(self.number(given), field.type.code, node)
                    )
                    local = self.writing.local(unique, held)
                    self.emit(self.declared(local, code, field.type.code))
                members[field.name] = NumberPlace(local, field.type.code, held, is_local=True)
            elif sort == "array":
                element = self.element_type(element_of(field.type), node)
                local = self.writing.local(unique, f"array {element} {elements_of(field.type)}")
                self.book.reserve(self, f"{local} = {self.use('ipu.array')}({self.use(NAMES[element])}, {elements_of(field.type)})")
                pointer = Pointer(local, ZERO, field.type.to or field.type)
                members[field.name] = pointer
                if given is not None:
                    self.fill(pointer, given, field.type, element, node)
            elif sort == "record" and not is_container(field.type):
                inner = list(given.bare.parts) if given is not None and given.bare.kind == "INIT_LIST_EXPR" else None
                if given is not None and inner is None:
                    members[field.name] = self.copied(self.struct(given), unique)
                else:
                    members[field.name] = self.made(field.type, node, unique, inner if given is not None else (values and []))
            elif sort == "pointer" and given is not None:
                members[field.name] = self.moving(self.pointer(given), unique)  # methods may move it
            elif sort == "reference" and given is not None:
                members[field.name] = self.reference(field, given)
            else:
                refuse(node, f"member '{field.name}' of type {field.type.spelling} has no form here")
        return Struct(members, type)

    def copied(self, struct: Struct, name: str) -> Struct:
        """A copy in locals of its own."""
        if is_union(struct.type):
            return self.copied_union(struct, name)
        members: dict[str, Value] = {}
        fields = [Node(cursor) for cursor in _fields(struct.type, self.whole_node)]
        arrays = {field.name: field for field in fields if field.type.sort == "array"}
        references = {field.name for field in fields if field.type.sort == "reference"}
        for member, held in struct.members.items():
            if member in references:
                members[member] = held
            elif isinstance(held, NumberPlace):
                local = self.writing.local(f"{name}_{member}", held.held)
                self.emit(self.declared(local, self.exactly(self.read(held)), held.type))
                members[member] = evolve(held, text=local, span=None, index=None, is_local=True, field=None)
            elif isinstance(held, Struct):
                members[member] = self.copied(held, f"{name}_{member}")
            elif isinstance(held, VectorLanes) and held.type.sort == "vector":
                members[member] = self.new_lanes(f"{name}_{member}", self.codes(held), held.type)
            elif isinstance(held, Pointer) and member in arrays:
                members[member] = self.copied_array(held, f"{name}_{member}", arrays[member])
            elif isinstance(held, Pointer):
                members[member] = self.moving(held, f"{name}_{member}")
            else:
                members[member] = held
        return Struct(members, struct.type)

    def copied_array(self, held: Pointer, name: str, field: Node) -> Pointer:
        """A copy of an array that is a member."""
        code = self.element_type(innermost(field.type), field)
        local = self.writing.local(name, f"array {code} {elements_of(field.type)}")
        self.book.reserve(self, f"{local} = {self.use('ipu.array')}({self.use(NAMES[code])}, {elements_of(field.type)})")
        made = Pointer(local, ZERO, field.type.to or field.type)
        self.copy_elements(made, held, elements_of(field.type), field)
        return made

    def assign_struct(self, target: Node, source: Node, node: Node) -> None:
        to, given = self.struct(target), self.struct(source)
        before = self.copied(given, "t") if len(to.members) > 1 else given
        self.copy_members(to, before, node)

    def copy_members(self, to: Struct, given: Struct, node: Node) -> None:
        """Set the members of a struct to those of another."""
        for member in to.members:
            place, value = to.members[member], given.members[member]
            if isinstance(place, NumberPlace) and isinstance(value, NumberPlace):
                self.store(place, self.read(value), node)
            elif isinstance(place, VectorLanes) and isinstance(value, VectorLanes):
                self.assign_lanes(place, value, node)
            elif isinstance(place, Struct) and isinstance(value, Struct):
                self.copy_members(place, value, node)
            elif isinstance(place, Pointer) and isinstance(value, Pointer) and place.to == value.to:
                fields = {field.name: field for field in (Node(cursor) for cursor in _fields(to.type, node))}
                if fields[member].type.sort == "pointer":
                    self.move(place, value, node)
                else:
                    self.copy_elements(place, value, elements_of(fields[member].type), node)
            else:
                refuse(node, f"member '{member}' is no number: assign it by itself")

    def copy_elements(self, place: Pointer, value: Pointer, count: int, node: Node) -> None:
        """Copy the numbers of an array that is a member."""
        index = self.writing.temporary("i32", "i")
        at = NumberText(index, "i32", "i32", named=True)
        self.emit(f"for {index} in {self.use('range')}({count}):")
        with self.writing.indented():
            inner = evolve(value, to=innermost(value.to), kept=value.code)
            self.store(
                self.element(evolve(place, to=innermost(place.to), kept=place.code), at, node),
                self.read(self.element(inner, at, node)),
                node,
            )

    def constructed(self, node: Node, function: Node) -> Value:
        """``P(1, 2)``."""
        type, parts = node.type.value, list(node.parts)
        if is_container(type):
            return self.container(parts[0])
        body = next((child for child in function.children if child.kind == "COMPOUND_STMT"), None)
        if body is None or function.cursor.is_default_method() or is_implicit(function):
            if len(parts) == 1 and parts[0].type.value.sort == "record":
                return self.copied(self.struct(parts[0]), "t")
            return self.made(type, node, "t", None)
        return self.construct(node, function, parts)

    def constructed_member(self, field: Node, value: Node | None, node: Node) -> Value:
        """A member that is no number, as the list before a constructor's body sets it."""
        match field.type.sort:
            case "vector":
                return self.new_lanes(field.name, None if value is None else self.codes(self.lanes(value)), field.type)
            case "pointer" if value is not None:
                return self.moving(self.pointer(value), field.name)
            case "record" if value is not None and not is_container(field.type):
                return self.copied(self.struct(value), field.name)
            case "reference" if value is not None:
                return self.reference(field, value)
        refuse(node, f"a constructor of a struct with member '{field.name}' of type {field.type.spelling}, which has no form here")

    @abstractmethod
    def reference(self, node: Node, initial: Node | None) -> Value:
        """What a reference stands for, from now on."""

    def construct(self, node: Node, function: Node, arguments: list[Node]) -> Struct:
        """A struct by a constructor of the user: its members from the list before the body, then the body."""
        children = list(function.children)
        parameters = [child for child in children if child.kind == "PARM_DECL"]
        self.bind_parameters(node, parameters, arguments)
        given: dict[str, Node] = {}
        for position, child in enumerate(children):
            if child.kind == "MEMBER_REF" and position + 1 < len(children):
                given[child.name] = children[position + 1]
        members: dict[str, Value] = {}
        for field in (Node(cursor) for cursor in _fields(node.type.value, node)):
            value = given.get(field.name) or initial_of(field)
            if field.type.sort != "number":
                members[field.name] = self.constructed_member(field, value, node)
                continue
            held = register(field.type.code)
            if value is not None:
                code = self.converted(self.number(value), field.type.code, node)
                local = self.writing.local(field.name, held)
                self.emit(self.declared(local, code, field.type.code))
            else:
                local = self.writing.local(field.name, held)
                self.emit(f"{local}: {self.use(NAMES[held])}")
            members[field.name] = NumberPlace(local, field.type.code, held, is_local=True)
        made = Struct(members, node.type.value)
        body = next(child for child in children if child.kind == "COMPOUND_STMT")
        before, self.this = self.this, made
        for statement in body.children:
            self.statement(statement)
        self.this = before
        return made


def _fields(type: CppType, node: Node) -> list[object]:
    if type.clang is None:
        refuse(node, f"{type.spelling} has no members that are known")
    return list(type.clang.get_fields())


def is_implicit(function: Node) -> bool:
    """Whether a function is one that the compiler has made, at the place of its struct."""
    owner = Node(function.cursor.semantic_parent)
    return (function.line, function.column) == (owner.line, owner.column)


def _user_made(node: Node) -> bool:
    function = node.referenced
    return (
        function is not None
        and function.kind == "CONSTRUCTOR"
        and any(child.kind == "COMPOUND_STMT" for child in function.children)
        and not function.cursor.is_default_method()
        and not is_implicit(function)
    )
