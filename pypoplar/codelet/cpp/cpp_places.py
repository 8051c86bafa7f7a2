"""Places: locals, fields, elements; pointers, vectors and rows."""

from __future__ import annotations

from abc import abstractmethod

from attrs import evolve

from pypoplar.codelet.cpp.cpp_values import (
    CHOICE,
    OR,
    Broken,
    Itself,
    Lambda,
    NumberPlace,
    NumberText,
    Pointer,
    Rows,
    Struct,
    Value,
    VectorLanes,
    VectorName,
    literal,
)
from pypoplar.codelet.cpp.memory_views import ZERO, MemoryViews
from pypoplar.codelet.cpp.writing import refuse
from pypoplar.codelet.cpp_tree.cpp_types import CppType, register, split_arguments
from pypoplar.codelet.cpp_tree.tree import Node

EDGES = ("poplar::Input", "poplar::Output", "poplar::InOut")
_CONTAINERS = (*EDGES, "poplar::Vector", "poplar::VectorList", "poplar::RowsOfEdges")


def is_container(type: CppType) -> bool:
    """Whether a type is one of Poplar's vectors or lists, or a row of one."""
    base = split_arguments(type.value.spelling.removeprefix("const "))[0]
    return type.value.sort == "record" and (base in _CONTAINERS or type.value.spelling.endswith("::Row"))


def is_array(type: CppType) -> bool:
    """Whether a type is ``std::array``."""
    return type.value.sort == "record" and type.value.spelling.removeprefix("const ").startswith("std::array<")


class CppPlaces(MemoryViews):
    """What can be read and written."""

    def value(self, node: Node) -> Value:
        """The value of any expression."""
        type = node.type.value
        if node.bare.kind == "LAMBDA_EXPR" or "(lambda at" in type.spelling:
            return self.lambda_of(node)
        if is_container(type):
            return self.container(node)
        match type.sort:
            case "number":
                return self.number(node)
            case "pointer" | "array":
                return self.pointer(node)
            case "record":
                return self.pointer(node) if is_array(type) else self.struct(node)
            case "vector":
                return self.lanes(node)
        refuse(node, f"an expression of type {type.spelling or 'void'} has no value here")

    def bound(self, node: Node) -> Value:
        """What a name stands for."""
        if node.kind == "CXX_THIS_EXPR":
            return self.this_value(node)
        declared = node.referenced
        if declared is not None and declared.key in self.bindings:
            found = self.bindings[declared.key]
            if isinstance(found, Broken):
                refuse(node, "")  # its declaration has been refused
            return found
        if node.kind == "LAMBDA_EXPR":
            return Lambda(node)
        if declared is not None and declared.kind == "VAR_DECL":
            table = self.book.table_of(declared)
            if table is not None:
                name, type = table
                self.writing.names[name] = self.book.table_meaning(name)
                return Pointer(name, ZERO, type)
            if declared.file.endswith("/cpp/headers/tileimplconsts.h"):
                refuse(node, f"'{node.name}' is a number of the machine that is not public: pypoplar has its name, and no value")
            const = (
                "is not constant: keep it in a field of the vertex"
                if "const" not in declared.cursor.type.spelling
                else "has no value here"
            )
            refuse(node, f"'{node.name}' {const}")
        refuse(node, f"'{node.name}' has no form in device code")

    def this_value(self, node: Node) -> Value:
        return self.this if self.this is not None else Itself()

    this: Value | None = None

    # places of numbers

    def place(self, node: Node) -> NumberPlace:  # noqa: C901, PLR0912 - an arm for each kind of expression
        """Where a number is that an expression names."""
        node = node.naked
        match node.kind:
            case "DECL_REF_EXPR":
                bound = self.bound(node)
                if isinstance(bound, NumberPlace):
                    return bound
            case "MEMBER_REF_EXPR" | "MEMBER_REF":
                return self.member_place(node)
            case "ARRAY_SUBSCRIPT_EXPR":
                base, index = node.parts
                if base.type.value.sort == "vector" or self.is_kept_in_lanes(base):
                    found = self.lane(node)
                    if isinstance(found, NumberPlace):
                        return found
                    refuse(node, "an element of a vector that is no variable cannot be set")
                return self.element(self.pointer(base), self.number(index), node)
            case "UNARY_OPERATOR" if node.operator == "*":
                return self.element(self.pointer(node.parts[0]), ZERO, node)
            case "UNARY_OPERATOR" if node.operator in ("++", "--"):
                self.number(node)
                return self.place(node.parts[0])
            case "CALL_EXPR":
                return self.called_place(node)
            case "BINARY_OPERATOR" | "COMPOUND_ASSIGNMENT_OPERATOR" if node.operator.endswith("="):
                self.number(node)
                return self.place(node.parts[0])
            case "CXX_STATIC_CAST_EXPR" | "CXX_CONST_CAST_EXPR" | "CSTYLE_CAST_EXPR" | "CXX_FUNCTIONAL_CAST_EXPR":
                return self.place(node.parts[-1])
            case "CXX_REINTERPRET_CAST_EXPR":
                return self.element(self.seen_as(self.address(node.parts[-1], node), node.type, node), ZERO, node)
            case "CONDITIONAL_OPERATOR":
                refuse(node, "a place chosen at run time: write if and else")
        refuse(node, "this has no place in device code")

    def called_place(self, node: Node) -> NumberPlace:
        """The element or the field that an operator of a vector or an edge gives."""
        name = node.name
        parts = node.parts
        if name == "operator[]" and parts:
            owner = parts[0]
            if is_array(owner.type):
                return self.element(self.pointer(owner), self.number(parts[-1]), node)
            vector = self.container(owner)
            if isinstance(vector, VectorName):
                return self.element(Pointer(vector.text, ZERO, vector.to), self.number(parts[-1]), node)
            refuse(node, "this is a row: index it")
        if name in ("operator*", "operator->", "operator()") or name.startswith("operator "):
            owner = parts[0]
            if owner.kind == "MEMBER_REF_EXPR" and owner.name.startswith("operator") and owner.parts:
                owner = owner.parts[0]
            if owner.type.value.sort == "record" and split_arguments(owner.type.value.spelling.removeprefix("const "))[0] in EDGES:
                return self.scalar_edge(owner)
        result = self.call_value(node)
        if isinstance(result, NumberPlace):
            return result
        refuse(node, "this call gives no place that could be written")

    def scalar_edge(self, node: Node) -> NumberPlace:
        """The number of an Input, Output or InOut that is no vector."""
        node = node.naked
        if node.kind == "MEMBER_REF_EXPR":
            field = self.book.fields.get(node.name)
            if field is not None and field.form == "scalar":
                return NumberPlace(f"self.{field.attribute}", field.code, register(field.code), field=node.name)
        refuse(node, "an edge of one number is used under its own name")

    def member_place(self, node: Node) -> NumberPlace:
        """A field of the vertex, or a member of a struct."""
        owner = self.owner(node)
        if isinstance(owner, Struct):
            member = owner.members.get(node.name)
            if isinstance(member, NumberPlace):
                return member
            refuse(node, f"'{node.name}' is no number")
        field = self.book.fields.get(node.name)
        if field is None or field.form != "scalar":
            refuse(node, f"'{node.name}' is no number")
        return NumberPlace(f"self.{field.attribute}", field.code, register(field.code), field=node.name)

    def owner(self, node: Node) -> Value:
        """What has the member that an expression names."""
        parts = node.parts
        if not parts:
            return self.this_value(node)
        owner = parts[0].naked
        if _is_this(owner):
            return self.this_value(owner)
        if is_container(owner.type):
            return self.container(owner)
        if owner.type.value.sort == "pointer":
            return self.struct_at(self.pointer(owner), node)
        return self.struct(owner)

    # vectors, rows, pointers, structs

    def container(self, node: Node) -> VectorName | Rows:
        """One of Poplar's vectors or lists."""
        node = node.bare
        if node.kind in ("MEMBER_REF_EXPR", "MEMBER_REF"):
            owner = self.owner(node)
            field = self.book.fields.get(node.name)
            if isinstance(owner, Itself) and field is not None and field.form == "vector":
                return VectorName(f"self.{field.attribute}", field.element, node.name)
            if isinstance(owner, Itself) and field is not None and field.form == "list":
                return Rows(f"self.{field.attribute}", field.element)
        if node.kind == "DECL_REF_EXPR":
            bound = self.bound(node)
            if isinstance(bound, VectorName | Rows):
                return bound
        if node.kind == "CALL_EXPR" and node.name in ("operator[]", "operator*"):
            owner = self.container(node.parts[0])
            if isinstance(owner, Rows) and node.name == "operator[]":
                return VectorName(f"{owner.text}[{self.number(node.parts[-1]).text}]", owner.to)
            return owner
        if node.kind in ("CALL_EXPR", "UNEXPOSED_EXPR", "CXX_STATIC_CAST_EXPR") and len(node.parts) == 1:
            return self.container(node.parts[0])  # copied: a row is a view
        refuse(node, "this vector is reached in a way that device code has not: name the field, or a row of it")

    def vector_of(self, node: Node) -> VectorName:
        found = self.container(node)
        if not isinstance(found, VectorName):
            refuse(node, "this is a list of rows: index it first")
        return found

    def pointer(self, node: Node) -> Pointer:  # noqa: PLR0911, C901, PLR0912 - one for each way to make a pointer
        """A pointer: its vector and its index."""
        node = node.bare
        parts = node.parts
        match node.kind:
            case "DECL_REF_EXPR":
                bound = self.bound(node)
                if isinstance(bound, Pointer):
                    return bound
            case "MEMBER_REF_EXPR":
                owner = self.owner(node)
                if isinstance(owner, Struct) and isinstance(owner.members.get(node.name), Pointer):
                    return owner.members[node.name]  # type: ignore[no-any-return]
                table = self.book.table_of(node.referenced) if node.referenced is not None else None
                if table is not None:
                    self.writing.names[table[0]] = self.book.table_meaning(table[0])
                    return Pointer(table[0], ZERO, table[1])
            case "UNARY_OPERATOR" if node.operator == "&":
                return self.address(parts[0], node)
            case "UNARY_OPERATOR" if node.operator in ("++", "--", "x++", "x--"):
                return self.stepped(node)
            case "UNARY_OPERATOR" if node.operator == "*" and node.type.value.sort == "array":
                return self.row_of_array(self.pointer(parts[0]), ZERO)
            case "ARRAY_SUBSCRIPT_EXPR":
                return self.row_of_array(self.pointer(parts[0]), self.number(parts[1]))
            case "BINARY_OPERATOR" if node.operator in ("+", "-"):
                first, second = parts
                if first.type.value.sort not in ("pointer", "array"):
                    first, second = second, first
                base = self.pointer(first)
                return evolve(base, at=self.moved(base.at, self.scaled(base, self.number(second)), node.operator))
            case "BINARY_OPERATOR" | "COMPOUND_ASSIGNMENT_OPERATOR" if node.operator.endswith("="):
                self.assign_pointer(node)
                return self.pointer(parts[0])
            case "CALL_EXPR":
                return self.called_pointer(node)
            case (
                "UNEXPOSED_EXPR" | "CSTYLE_CAST_EXPR" | "CXX_STATIC_CAST_EXPR" | "CXX_CONST_CAST_EXPR" | "CXX_REINTERPRET_CAST_EXPR"
            ):
                return self.cast_pointer(node)
            case "CONDITIONAL_OPERATOR":
                return self.chosen_pointer(node)
            case "CXX_NEW_EXPR":
                refuse(node, "new: the device has no heap; declare an array, float work[16];")
            case "CXX_NULL_PTR_LITERAL_EXPR" | "INTEGER_LITERAL":
                refuse(node, "a null pointer: a pointer stands for a vector and an index; keep a bool beside it")
        refuse(node, "this pointer has no vector that is known here: take it from a field, &field[i], or from an array")

    def chosen_pointer(self, node: Node) -> Pointer:
        """``c ? p : q`` of pointers into one vector."""
        test, *branches = node.parts
        condition = self.condition(test)
        if condition.value is not None:
            return self.pointer(branches[0] if condition.value else branches[1])
        with self.uncertain(), self.writing.apart() as lines:
            yes, no = (self.pointer(branch) for branch in branches)
        if yes.span != no.span or lines:
            refuse(node, "a pointer that may point into one of two vectors: write if and else")
        first, second = (self.typed(self.exactly(evolve(pointer.at, type="i32"))) for pointer in (yes, no))
        at = NumberText(f"{first.at(OR)} if {condition.at(OR)} else {second.at(CHOICE)}", "i32", "i32", CHOICE)
        return evolve(yes, at=self.kept(at, "at"))

    def cast_pointer(self, node: Node) -> Pointer:
        inner, wanted = self.pointer(node.parts[-1]), node.type.value.to
        return inner if node.type.value.sort != "pointer" or wanted is None else self.seen_as(inner, wanted, node)

    def row_of_array(self, pointer: Pointer, index: NumberText) -> Pointer:
        return evolve(self.stepping(pointer, index), to=pointer.to.value.to or pointer.to)

    def address(self, node: Node, whole: Node) -> Pointer:
        """``&x[i]``, ``&x``."""
        type = node.type.value
        if type.sort == "array":
            return evolve(self.pointer(node), to=type)
        if is_array(type):
            return self.pointer(node)
        found = self.location(node)
        if found is not None:
            return evolve(found, to=type)
        if type.sort == "record":
            return self.address_of(self.struct(node), type, node.naked.name)
        if type.sort == "vector":
            lanes = self.lanes(node)
            first = lanes.parts[0]
            if isinstance(first, NumberPlace) and first.span is not None and first.index is not None and not first.view:
                return Pointer(first.span, first.index, type)
            return self.address_of(lanes, type, node.naked.name)
        if type.sort != "number":
            refuse(whole, f"the address of {type.spelling or 'this'}: use it by reference")
        place = self.place(node)
        if place.span is None or place.index is None:
            return self.address_of(place, type, node.naked.name)
        if place.view:
            refuse(whole, "the address of a number that is made of the bytes of others: keep the pointer that it was read by")
        return Pointer(place.span, place.index, type)

    def location(self, node: Node) -> Pointer | None:
        """The pointer to an element of an array of vectors of the hardware or of structs, and to what ``*p`` names."""
        node = node.naked
        parts = node.parts
        if node.kind == "ARRAY_SUBSCRIPT_EXPR" and parts[0].type.value.sort in ("pointer", "array"):
            if self.is_kept_in_lanes(parts[0]):
                return None
            return self.stepping(self.pointer(parts[0]), self.number(parts[1]))
        if node.kind == "UNARY_OPERATOR" and node.operator == "*" and parts[0].naked.kind != "CXX_THIS_EXPR":
            return self.pointer(parts[0])
        if node.kind == "CALL_EXPR" and node.name == "operator[]" and is_array(parts[0].type):
            return self.stepping(self.pointer(parts[0]), self.number(parts[-1]))
        return None

    def is_kept_in_lanes(self, node: Node) -> bool:
        """Whether an expression is an array whose elements are kept one by one: a member of a union."""
        node = node.naked
        if node.kind != "MEMBER_REF_EXPR" or node.type.value.sort != "array" or not node.parts:
            return False
        owner = node.parts[0].type.value
        owner = owner.to.value if owner.sort == "pointer" and owner.to is not None else owner
        return owner.clang is not None and owner.clang.get_declaration().kind.name == "UNION_DECL"

    def called_pointer(self, node: Node) -> Pointer:
        """begin, end, data of a vector; the conversion of a vector that is a pointer; or a function that gives a pointer."""
        name, parts = node.name, node.parts
        owner = parts[0] if parts else None
        if owner is not None and owner.kind == "MEMBER_REF_EXPR" and owner.parts and name in ("begin", "end", "data"):
            return self.limit(owner.parts[0], name)
        if owner is not None and name.startswith("operator "):
            inner = (
                owner.parts[0] if owner.kind == "MEMBER_REF_EXPR" and owner.name.startswith("operator") and owner.parts else owner
            )
            vector = self.vector_of(inner)
            return Pointer(vector.text, ZERO, vector.to)
        result = self.call_value(node)
        if isinstance(result, Pointer):
            return result
        refuse(node, "this call gives no pointer that is known here")

    def limit(self, owner: Node, name: str) -> Pointer:
        if is_array(owner.type):
            base = self.pointer(owner)
            size = int(split_arguments(owner.type.value.spelling)[1][1].rstrip("u"))
            return evolve(base, at=self.moved(base.at, literal(size, "i32"))) if name == "end" else base
        vector = self.vector_of(owner)
        length = NumberText(f"{self.use('len')}({vector.text})", "i32", "i32", counts=True)
        return Pointer(vector.text, length if name == "end" else ZERO, vector.to)

    # what other parts have

    @abstractmethod
    def stepped(self, node: Node) -> Pointer:
        """A pointer that is moved, as a value."""

    @abstractmethod
    def assign_pointer(self, node: Node) -> None:
        """Let a pointer point elsewhere in its vector."""

    @abstractmethod
    def condition(self, node: Node) -> NumberText:
        """An expression as a bool."""

    @abstractmethod
    def lambda_of(self, node: Node) -> Lambda:
        """An expression that is a lambda."""

    @abstractmethod
    def lanes(self, node: Node) -> VectorLanes:
        """An expression that is a vector of the hardware."""

    @abstractmethod
    def lane(self, node: Node) -> NumberText | NumberPlace:
        """An element of a vector of the hardware."""

    @abstractmethod
    def struct(self, node: Node) -> Struct:
        """An expression that is a struct."""

    @abstractmethod
    def call_value(self, node: Node) -> Value | None:
        """What a call gives; None for nothing."""


def _is_this(node: Node) -> bool:
    """Whether an expression is ``this`` or ``*this``, also as the class that is derived from it, ``static_cast<D *>(this)``."""
    while node.kind in ("CXX_STATIC_CAST_EXPR", "CSTYLE_CAST_EXPR") or (node.kind == "UNARY_OPERATOR" and node.operator == "*"):
        if len(node.parts) != 1:
            return False
        node = node.parts[0].naked
    return node.kind == "CXX_THIS_EXPR"
