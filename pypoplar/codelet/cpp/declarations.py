"""Declarations: numbers, pointers, arrays, references, and names of vectors."""

from __future__ import annotations

from itertools import pairwise

from attrs import evolve

from pypoplar.codelet.cpp.cpp_places import is_array, is_container
from pypoplar.codelet.cpp.cpp_values import (
    ALONE,
    FunctionName,
    Lambda,
    NumberPlace,
    NumberText,
    Pointer,
    Rows,
    Struct,
    Value,
    VectorLanes,
    VectorName,
    innermost,
    literal,
)
from pypoplar.codelet.cpp.memory_views import ZERO, elements_of
from pypoplar.codelet.cpp.structs import Structs
from pypoplar.codelet.cpp.writing import refuse
from pypoplar.codelet.cpp_tree.changes import is_changed
from pypoplar.codelet.cpp_tree.cpp_types import NAMES, CppType, register, type_of
from pypoplar.codelet.cpp_tree.declarations_of import element_of, initial_of, is_place
from pypoplar.codelet.cpp_tree.tree import Node


class Declarations(Structs):
    """Variables of every kind."""

    def declaration(self, node: Node) -> None:
        if node.kind in (
            "TYPEDEF_DECL",
            "TYPE_ALIAS_DECL",
            "STRUCT_DECL",
            "CLASS_DECL",
            "ENUM_DECL",
            "STATIC_ASSERT",
            "USING_DECLARATION",
            "USING_DIRECTIVE",
            "NAMESPACE_ALIAS",
            "UNION_DECL",
            "EMPTY_DECL",
        ):
            return
        if node.kind != "VAR_DECL":
            refuse(node, "this declaration has no form in device code")
        type, initial = node.type, initial_of(node)
        if node.cursor.storage_class.name in ("STATIC", "EXTERN") and "const" not in node.cursor.type.spelling:
            refuse(node, f"'{node.name}' is static: what lasts from run to run is kept in a field of the vertex")
        self.whole = initial
        if initial is not None and (initial.bare.kind == "LAMBDA_EXPR" or "(lambda at" in type.value.spelling):
            self.bindings[node.key] = self.lambda_of(initial)
        elif type.sort == "reference":
            self.bindings[node.key] = self.reference(node, initial)
        elif is_container(type):
            self.bindings[node.key] = self.view(node, initial)
        elif type.sort == "number":
            self.number_variable(node, initial, type.code)
        elif type.sort == "pointer":
            self.pointer_variable(node, initial)
        elif type.sort == "array" or is_array(type):
            self.array_variable(node, initial)
        elif type.sort == "record":
            self.bindings[node.key] = self.struct_variable(node, initial)
        elif type.sort == "vector":
            self.bindings[node.key] = self.lanes_variable(node, initial)
        else:
            refuse(node, f"a variable of type {type.spelling} has no form here")
        self.whole = None
        self.flush()

    def lambda_of(self, node: Node) -> Lambda:
        while node.kind in ("CALL_EXPR", "UNEXPOSED_EXPR") and len(node.parts) == 1:
            node = node.parts[0]  # a copy
        if node.bare.kind == "LAMBDA_EXPR":
            return Lambda(node.bare, self.copies(node.bare))
        found = self.bound(node.naked)
        if not isinstance(found, Lambda):
            refuse(node, "this is no lambda that is known here")
        return found

    def copies(self, node: Node) -> tuple[tuple[int, Value], ...]:
        """What a lambda holds copies of: the locals that change behind it, where it does not capture them by reference."""
        tokens = [token.spelling for token in node.cursor.get_tokens()]
        names = tokens[1 : tokens.index("]")] if "]" in tokens else []
        by_copy = {name for before, name in pairwise(["[", *names]) if name.isidentifier() and before != "&"}
        by_name = {name for before, name in pairwise(["[", *names]) if name.isidentifier() and before == "&"}
        made: dict[int, Value] = {}
        for one in node.walk():
            declared = one.referenced if one.kind == "DECL_REF_EXPR" else None
            if declared is None or declared.key in made or declared.key not in self.bindings or not self.changed(declared):
                continue
            if not (one.name in by_copy or ("=" in names and one.name not in by_name)):
                continue
            bound = self.bindings[declared.key]
            match bound:
                case NumberPlace():
                    name = self.writing.temporary(bound.held, one.name)
                    self.emit(self.declared(name, self.exactly(self.read(bound)), bound.type))
                    made[declared.key] = NumberPlace(name, bound.type, bound.held, is_local=True)
                case Pointer() if bound.at.named:
                    made[declared.key] = evolve(bound, at=self.kept(bound.at, one.name))
                case Struct():
                    made[declared.key] = self.copied(bound, one.name)
                case VectorLanes():
                    made[declared.key] = self.new_lanes(one.name, self.codes(bound), bound.type)
        return tuple(made.items())

    def number_variable(self, node: Node, initial: Node | None, type: str) -> None:
        if type == "f64":
            if initial is not None and initial.constant is not None and node.cursor.type.is_const_qualified():
                self.bindings[node.key] = literal(initial.constant, "f64")
                return
            refuse(node, f"'{node.name}' is a double, which the device has not: make it float")
        if initial is not None and node.cursor.type.is_const_qualified() and initial.constant is not None:
            self.bindings[node.key] = self.constant(initial.constant, type)
            return
        held = register(type)
        if initial is None:
            name = self.writing.local(node.name, held)
            self.writing.noted.add(name)
            self.emit(f"{name}: {self.use(NAMES[held])}")
        else:
            code = self.converted(self.source_of(initial, type), type, node)
            name = self.writing.local(node.name, held)
            self.emit(self.declared(name, code, type))
        self.bindings[node.key] = NumberPlace(name, type, held, is_local=True)

    def declared(self, name: str, code: NumberText, type: str) -> str:
        """The statement that makes a local, with its type where Python would find another."""
        held = register(type)
        if code.value is not None:
            code = self.constant(code.value, type)
            alone = {"int": "i32", "float": "f32"}.get(code.held, code.held)
        else:
            if held in ("i32", "u32") and type in ("i32", "u32"):
                code = self.exactly(code)
            code = self.settled(code)
            alone = code.held
        if held not in ALONE:  # a literal would make it another
            alone = ""
        if alone != held:
            self.writing.noted.add(name)
        note = "" if alone == held else f": {self.use(NAMES[held])}"
        return f"{name}{note} = {code.text}"

    def pointer_variable(self, node: Node, initial: Node | None) -> None:
        if node.type.to is not None and node.type.to.sort == "other":
            self.bindings[node.key] = self.function_named(node, initial, self.changed(node))
            return
        if initial is None:
            refuse(node, f"'{node.name}' points nowhere: give it its vector where it is declared")
        pointer = self.pointer(initial)
        self.bindings[node.key] = self.variable_of(pointer, node)

    def variable_of(self, pointer: Pointer, node: Node) -> Pointer:
        """A pointer in a variable: the index is a local where it may change, or what it is made of."""
        if not self.changed(node) and pointer.at.value is not None:
            return evolve(pointer, span=self.kept_span(pointer.span, node.name))
        return self.moving(pointer, node.name)

    def moving(self, pointer: Pointer, name: str) -> Pointer:
        """A pointer whose index is a local of its own."""
        pointer = evolve(pointer, span=self.kept_span(pointer.span, name))
        at = evolve(pointer.at, type="i32")
        name = self.writing.local(name, "i32")
        self.emit(f"{name} = {at.text if at.weak else self.exactly(at).text}")
        return evolve(pointer, at=NumberText(name, "i32", "i32", named=True))

    def kept_span(self, span: str, name: str) -> str:
        """A vector that is named once: a row is bound to a local."""
        if "[" not in span or span in self.columns:
            return span
        row = self.writing.local(f"{name}_row", "span")
        self.emit(f"{row} = {span}")
        return row

    def function_named(self, node: Node, initial: Node | None, changed: bool) -> FunctionName:
        """The function that a pointer has for good."""
        name = initial.naked if initial is not None else None
        if name is not None and name.kind == "UNARY_OPERATOR" and name.operator == "&":
            name = name.parts[0].naked
        if name is not None and name.kind == "DECL_REF_EXPR" and name.referenced is not None and not changed:
            bound = self.bindings.get(name.referenced.key)
            if isinstance(bound, FunctionName):
                return bound
            if name.referenced.kind in ("FUNCTION_DECL", "CXX_METHOD"):
                return FunctionName(name.referenced)
        refuse(
            node, f"'{node.name}' is a pointer to a function that may be another: call functions by their name, or give a lambda"
        )

    def array_variable(self, node: Node, initial: Node | None) -> None:
        type = node.type
        inner = self.array_type(type)
        if element_of(inner).value.sort == "record":
            self.structs_variable(node, initial, inner)
            return
        element = self.element_type(innermost(inner), node)
        table = self.book.table_of(node)
        if table is not None:
            self.writing.names[table[0]] = self.book.table_meaning(table[0])
            self.bindings[node.key] = Pointer(table[0], ZERO, inner.to or inner)
            return
        name = self.writing.local(node.name, f"array {element} {elements_of(inner)}")
        self.book.reserve(self, f"{name} = {self.use('ipu.array')}({self.use(NAMES[element])}, {elements_of(inner)})")
        pointer = Pointer(name, ZERO, inner.to or inner)
        self.bindings[node.key] = pointer
        if initial is not None:
            self.fill(pointer, initial, inner, element, node)

    def structs_variable(self, node: Node, initial: Node | None, inner: CppType) -> None:
        """An array of structs: an array for each member."""
        record = element_of(inner).value
        count = 1
        type: CppType | None = inner
        while type is not None and type.value.sort == "array":
            count, type = count * type.value.count, type.value.to
        pointer = Pointer(self.array_of_structs(node.name, record, count, node), ZERO, inner.to or inner)
        self.bindings[node.key] = pointer
        if initial is None or (initial.bare.kind == "CALL_EXPR" and not initial.bare.parts):
            return
        if initial.bare.kind != "INIT_LIST_EXPR" or inner.to is None or inner.to.value.sort != "record":
            refuse(node, "an array of structs gets its values in braces, P x[2] = {{1, 2}, {3, 4}}")
        values = initial.bare.parts
        for position in range(count):
            place = self.struct_at(evolve(pointer, at=literal(position, "i32")), node)
            given = values[position] if position < len(values) else None
            made = self.struct(given) if given is not None else self.made(record, node, node.name, [])
            self.copy_members(place, made, node)

    def array_type(self, type: CppType) -> CppType:
        if type.sort == "array":
            return type
        record = type.clang
        return CppType(
            "array",
            to=type_of(record.get_template_argument_type(0)),
            count=int(type.spelling.rstrip(">").rpartition(",")[2].rstrip("uUlL ")),
        )

    def fill(self, pointer: Pointer, initial: Node, type: CppType, element: str, node: Node) -> None:
        """``= {1, 2}``."""
        initial = initial.bare
        values: list[Node] = []
        _flatten(initial, values)
        count = elements_of(type)
        if initial.kind == "CALL_EXPR" and not values:
            return  # made without values
        if type.to is not None and type.to.value.sort == "vector" and initial.kind == "INIT_LIST_EXPR":
            self.fill_vectors(pointer, initial.parts, type, node)
            return
        if initial.kind != "INIT_LIST_EXPR":
            refuse(node, "an array gets its values in braces, float x[2] = {1, 2}")
        if any(part.kind == "INIT_LIST_EXPR" and part is not initial for part in initial.walk()) and len(values) not in (0, count):
            refuse(node, "nested braces give all values of an array")
        for position, value in enumerate(values):
            self.emit(f"{pointer.span}[{position}] = {self.stored(self.number(value), element, value)}")
        if len(values) < count:
            index = self.writing.temporary("i32", "i")
            begin = f"{len(values)}, " if values else ""
            self.emit(f"for {index} in {self.use('range')}({begin}{count}):")
            with self.writing.indented():
                self.emit(f"{pointer.span}[{index}] = {self.constant(0, element).text}")

    def fill_vectors(self, pointer: Pointer, values: tuple[Node, ...], type: CppType, node: Node) -> None:
        """An array of vectors of the hardware; those that are not given are zero."""
        assert type.to is not None
        zero = VectorLanes((self.constant(0, innermost(type).code),) * type.to.value.count, type.to.value)
        for position in range(type.count):
            place = self.lanes_at(self.stepping(pointer, literal(position, "i32")), node)
            self.assign_lanes(place, self.lanes(values[position]) if position < len(values) else zero, node)

    def reference(self, node: Node, initial: Node | None) -> Value:
        """What a reference stands for, from now on."""
        assert initial is not None
        type = node.type.value
        if is_container(type):
            return self.view(node, initial)
        if "(lambda at" in type.spelling:
            return self.lambda_of(initial)
        if type.sort == "record" and not is_array(type):
            return self.struct(initial)
        if type.sort == "vector":
            return self.steady(self.lanes(initial), node.name)
        if type.sort in ("array",) or is_array(type):
            return self.pointer(initial)
        if type.sort != "number":
            refuse(node, f"a reference to {type.spelling} has no form here")
        bare = initial.naked
        const = node.type.to is not None and node.type.to.spelling.startswith("const ")
        if const and not is_place(bare):
            code = self.converted(self.number(initial), type.code, node)
            if code.value is not None:
                return code
            name = self.writing.local(node.name, register(type.code))
            self.emit(self.declared(name, code, type.code))
            return NumberPlace(name, type.code, register(type.code), is_local=True)
        return self.frozen(self.place(bare), node.name)

    def frozen(self, place: NumberPlace, name: str) -> NumberPlace:
        """A place that stays the same whatever becomes of the locals in its index."""
        if place.view:
            return evolve(place, view=tuple(self.frozen(part, name) for part in place.view), index=None)
        if place.span is None or place.index is None:
            return place
        span = self.kept_span(place.span, name)
        index = place.index
        if index.value is None and not index.counts:
            index = self.kept(self.exactly(evolve(index, type="i32")), f"{name}_at")
        return evolve(place, text=f"{span}[{index.text}]", span=span, index=index)

    def steady(self, lanes: VectorLanes, name: str) -> VectorLanes:
        """A vector that stays where it is, whatever becomes of the locals in its index."""
        parts = tuple(self.frozen(part, name) if isinstance(part, NumberPlace) else self.kept(part) for part in lanes.parts)
        return evolve(lanes, parts=parts)

    def view(self, node: Node, initial: Node | None) -> VectorName | Rows:
        if initial is None:
            refuse(node, f"'{node.name}' is a vector without elements: use an array")
        found = self.container(initial)
        if isinstance(found, VectorName) and "[" in found.text:
            name = self.writing.local(node.name, "span")
            self.emit(f"{name} = {found.text}")
            return evolve(found, text=name)
        return found

    def changed(self, node: Node) -> bool:
        """Whether a local may be changed after its declaration."""
        return self.function is None or is_changed(self.function, node)


def _flatten(node: Node, values: list[Node]) -> None:
    if node.kind == "INIT_LIST_EXPR":
        for part in node.parts:
            _flatten(part.bare if part.bare.kind == "INIT_LIST_EXPR" else part, values)
    elif node.kind != "CALL_EXPR" or node.type.value.sort == "number":
        values.append(node)
