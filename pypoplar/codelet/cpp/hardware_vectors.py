"""Vectors of the hardware, `float2` to `char4`: a number for each element."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pypoplar.codelet.cpp.bit_casts import SIZES
from pypoplar.codelet.cpp.cpp_expressions import CppExpressions
from pypoplar.codelet.cpp.cpp_values import CHOICE, COMPARISON, OR, SIGN, NumberPlace, NumberText, Struct, VectorLanes
from pypoplar.codelet.cpp.writing import WrittenLine, refuse
from pypoplar.codelet.cpp_tree.cpp_types import FLOATS, NAMES, CppType, register
from pypoplar.codelet.cpp_tree.declarations_of import initial_of
from pypoplar.codelet.cpp_tree.tree import Node

AT_ONCE = {("f32", 2): "float2", ("f32", 4): "float4", ("f16", 2): "half2", ("f16", 4): "half4"}
"""Vectors that the machine computes with, by the type and number of their elements: their names in `pypoplar.ipu`."""
_COMPARED = ("<", "<=", ">", ">=", "==", "!=")
_CASTS = (
    "UNEXPOSED_EXPR", "CSTYLE_CAST_EXPR", "CXX_STATIC_CAST_EXPR", "CXX_FUNCTIONAL_CAST_EXPR", "CXX_REINTERPRET_CAST_EXPR",
    "CXX_CONST_CAST_EXPR", "COMPOUND_LITERAL_EXPR", "BUILTIN_BIT_CAST_EXPR",
)  # fmt: skip


class HardwareVectors(CppExpressions):
    """Expressions and statements of vectors."""

    def lanes(self, node: Node) -> VectorLanes:  # noqa: C901, PLR0911, PLR0912 - an arm for each kind of expression
        """An expression that is a vector."""
        node = node.naked if node.naked.type.value == node.type.value else node
        while node.kind == "PAREN_EXPR":
            node = node.parts[0]
        type, parts = node.type.value, node.parts
        found = self.location(node) if node.kind not in _CASTS else None  # a cast may give the bits another type
        if found is not None:
            return self.lanes_at(found, node)
        match node.kind:
            case "DECL_REF_EXPR":
                return self.named_lanes(node)
            case "MEMBER_REF_EXPR":
                owner = self.owner(node)
                member = owner.members.get(node.name) if isinstance(owner, Struct) else None
                if isinstance(member, VectorLanes):
                    return member
            case "INIT_LIST_EXPR":
                return self.listed(parts, type, node)
            case "UNARY_OPERATOR" if node.operator in ("-", "~", "+"):
                return self.mapped(lambda code: self.negated(node.operator, code, node), self.lanes(parts[0]), type)
            case "UNARY_OPERATOR" if node.operator == "!":
                zero = self.constant(0, element_code(parts[0].type))
                return self.compared_lanes("==", self.lanes(parts[0]), VectorLanes((zero,) * type.count, type), type)
            case "BINARY_OPERATOR":
                return self.binary_lanes(node)
            case "COMPOUND_ASSIGNMENT_OPERATOR":
                self.assign_compound_lanes(node)
                return self.lanes(parts[0])
            case "CONDITIONAL_OPERATOR":
                return self.chosen_lanes(node)
            case "CALL_EXPR":
                result = self.call_value(node)
                if isinstance(result, VectorLanes):
                    return result
            case "UNEXPOSED_EXPR" if len(parts) > 2:
                return self.shuffled(parts, type, node)
            case kind if kind in _CASTS and parts:
                return self.cast_lanes(node, parts[-1])
        refuse(node, f"this vector of {type.count} elements has no form in device code")

    def named_lanes(self, node: Node) -> VectorLanes:
        declared = node.referenced
        initial = initial_of(declared) if declared is not None and declared.kind == "VAR_DECL" else None
        if (
            declared is not None
            and declared.key not in self.bindings
            and initial is not None
            and "const" in declared.cursor.type.spelling
        ):
            return self.lanes(initial)
        found = self.bound(node)
        if not isinstance(found, VectorLanes):
            refuse(node, f"'{node.name}' is no vector that is known here")
        return found

    def listed(self, parts: tuple[Node, ...], type: CppType, node: Node) -> VectorLanes:
        """``{1, 2}``; what is not given is zero."""
        code = element_code(type)
        if len(parts) == 1 and parts[0].type.value.sort == "vector":
            return self.lanes(parts[0])
        values = [
            self.rounded(part, code) if part.type.value.code == "f64" else self.converted(self.number(part), code, node)
            for part in parts
        ]
        return VectorLanes((*values, *(self.constant(0, code) for _ in range(type.count - len(values)))), type)

    def mapped(self, function: Callable[[NumberText], NumberText], lanes: VectorLanes, type: CppType) -> VectorLanes:
        return VectorLanes(tuple(function(code) for code in self.codes(lanes)), type)

    def codes(self, lanes: VectorLanes) -> list[NumberText]:
        """The elements as numbers."""
        return [self.read(part) if isinstance(part, NumberPlace) else part for part in lanes.parts]

    def negated(self, symbol: str, code: NumberText, node: Node) -> NumberText:
        type = code.type
        if symbol == "+":
            return code
        wide = "i32" if SIZES[type] < 4 and type not in FLOATS else type
        code = self.typed(self.converted(code, wide, node))
        if type in FLOATS or type in ("i64", "u64"):
            code = self.typed(self.settled(code))
        return self.converted(NumberText(f"{symbol}{code.at(SIGN)}", wide, code.held, SIGN), type, node)

    # operators

    def binary_lanes(self, node: Node) -> VectorLanes:
        left, right = node.parts
        symbol, type = node.operator, node.type.value
        if symbol == "=":
            self.assign_lanes(self.lanes(left), self.lanes(right), node)
            return self.lanes(left)
        if symbol == ",":
            self.effect(left)
            self.flush()
            return self.lanes(right)
        first, second = (
            self.lanes(part) if part.type.value.sort == "vector" else self.splat(part, type, node) for part in (left, right)
        )
        if symbol in _COMPARED:
            return self.compared_lanes(symbol, first, second, type)
        return self.combined(symbol, first, second, type, node)

    def combined(self, symbol: str, first: VectorLanes, second: VectorLanes, type: CppType, node: Node) -> VectorLanes:
        """Arithmetic of two vectors, in the type of their elements."""
        code = element_code(type)
        work = "i32" if code in ("i8", "u8", "i16", "u16") else code
        made = []
        for left, right in zip(self.codes(first), self.codes(second), strict=True):
            result = self.arithmetic(symbol, self.converted(left, work, node), self.converted(right, work, node), work, node)
            made.append(self.converted(result, code, node))
        return VectorLanes(tuple(made), type)

    def compared_lanes(self, symbol: str, first: VectorLanes, second: VectorLanes, type: CppType) -> VectorLanes:
        """Comparisons: all bits of an element are set where one holds."""
        made = []
        for test in self.tests(symbol, first, second):
            yes, no = self.typed(self.constant(-1, element_code(type))), self.constant(0, element_code(type))
            made.append(NumberText(f"{yes.at(OR)} if {test.at(OR)} else {no.text}", yes.type, register(yes.type), CHOICE))
        return VectorLanes(tuple(made), type)

    def tests(self, symbol: str, first: VectorLanes, second: VectorLanes) -> list[NumberText]:
        made = []
        for left, right in zip(self.codes(first), self.codes(second), strict=True):
            left, right = self.comparable(left, right, symbol)
            made.append(NumberText(f"{left.at(COMPARISON + 1)} {symbol} {right.at(COMPARISON + 1)}", "bool", "bool", COMPARISON))
        return made

    def chosen_lanes(self, node: Node) -> VectorLanes:
        """``c ? a : b``, of one condition or of one for each element."""
        test, *branches = node.parts
        type, code = node.type.value, element_code(node.type)
        if test.type.value.sort == "vector":
            inner = test
            while inner.kind in ("UNEXPOSED_EXPR", "PAREN_EXPR") and len(inner.parts) == 1:
                inner = inner.parts[0]
            if inner.kind == "BINARY_OPERATOR" and inner.operator in _COMPARED:
                tests = self.tests(inner.operator, *(self.lanes(part) for part in inner.parts))
            else:
                tests = [self.converted(one, "bool", node) for one in self.codes(self.lanes(test))]
            lanes = [self.codes(self.lanes(branch)) for branch in branches]
        else:
            condition = self.condition(test)
            if condition.value is not None:
                return self.lanes(branches[0] if condition.value else branches[1])
            lanes, lines = [], []
            for branch in branches:
                with self.uncertain(), self.writing.apart() as inner_lines:
                    lanes.append([self.exactly(one) for one in self.codes(self.lanes(branch))])
                lines.append(inner_lines)
            if lines[0] or lines[1]:
                return self.branched(condition, lanes, lines, type)
            tests = [self.kept(condition)] * type.count
        made = []
        for choice, yes, no in zip(tests, *lanes, strict=True):
            yes, no = self.exactly(yes), self.exactly(no)
            made.append(NumberText(f"{yes.at(OR)} if {choice.at(OR)} else {no.at(CHOICE)}", code, register(code), CHOICE))
        return VectorLanes(tuple(made), type)

    def branched(
        self, condition: NumberText, lanes: list[list[NumberText]], lines: list[list[WrittenLine]], type: CppType
    ) -> VectorLanes:
        """A choice between vectors that take statements: their elements are kept."""
        code = element_code(type)
        names = [self.writing.temporary(register(code)) for _ in range(type.count)]
        for header, made, inner in zip((f"if {condition.text}:", "else:"), lanes, lines, strict=True):
            self.emit(header)
            self.paste(inner)
            with self.writing.indented():
                for name, one in zip(names, made, strict=True):
                    self.emit(f"{name} = {self.typed(one).text}")
        return VectorLanes(tuple(NumberText(name, code, register(code), named=True) for name in names), type)

    # conversions

    def cast_lanes(self, node: Node, inner: Node) -> VectorLanes:
        """A number for each element, or the same bits as a vector of another type."""
        to, given = node.type.value, inner.type.value
        if given.sort == "number":
            if node.kind == "UNEXPOSED_EXPR" or (
                node.kind != "CXX_REINTERPRET_CAST_EXPR" and to.count * SIZES[element_code(to)] != SIZES[given.code]
            ):
                return self.splat(inner, to, node)
            return self.same_bits([self.number(inner)], given.code, to, node)
        if given.sort != "vector":
            refuse(node, f"{given.spelling} as {to.spelling}")
        lanes = self.lanes(inner)
        if element_code(given) == element_code(to) and given.count == to.count:
            return lanes
        return self.same_bits(self.codes(lanes), element_code(given), to, node)

    def same_bits(self, codes: list[NumberText], source: str, to: CppType, node: Node) -> VectorLanes:
        code = element_code(to)
        if len(codes) * SIZES[source] != to.count * SIZES[code]:
            refuse(node, f"a cast to {to.spelling} of what has another size")
        return VectorLanes(tuple(self.bits_as(codes, source, code)), to)

    def joined_lanes(self, inner: Node, to: str, node: Node) -> list[NumberText]:
        """The bits of a vector as one number."""
        lanes = self.codes(self.lanes(inner))
        source = element_code(inner.type)
        if len(lanes) * SIZES[source] != SIZES[to]:
            refuse(node, f"{inner.type.value.spelling} as a number of another size")
        return self.bits_as(lanes, source, to)

    def splat(self, inner: Node, type: CppType, node: Node) -> VectorLanes:
        """One number for all elements."""
        code = element_code(type)
        number = self.rounded(inner, code) if inner.type.value.code == "f64" else self.converted(self.number(inner), code, node)
        if number.value is None and not number.named:
            number = self.kept(number)
        return VectorLanes((number,) * type.count, type)

    def shuffled(self, parts: tuple[Node, ...], type: CppType, node: Node) -> VectorLanes:
        """``__builtin_shufflevector(a, b, 1, 2)``."""
        codes = [*self.codes(self.lanes(parts[0])), *self.codes(self.lanes(parts[1]))]
        chosen = [part.constant for part in parts[2:]]
        if any(not isinstance(one, int) for one in chosen):
            refuse(node, "an element of a shuffle that is no constant")
        return VectorLanes(tuple(codes[max(int(one or 0), 0)] for one in chosen), type)

    # elements, variables, assignments

    def lane(self, node: Node) -> NumberText | NumberPlace:
        """``v[0]``, and an element of an array that is kept in lanes."""
        base, index = node.parts
        if base.type.value.sort == "vector":
            lanes = self.lanes(base)
        else:
            owner = self.owner(base.naked)
            found = owner.members.get(base.naked.name) if isinstance(owner, Struct) else None
            if not isinstance(found, VectorLanes):
                refuse(node, "this array has no elements that are known here")
            lanes = found
        at = self.number(index)
        if at.value is None:
            first = lanes.parts[0]
            if not isinstance(first, NumberPlace) or first.span is None or first.index is None or first.view:
                refuse(node, "an element of a vector that is chosen at run time: keep the vector in a variable of its own")
            place = self.moved(first.index, at)
            return self.element_at(first.span, first.type, place)
        if not 0 <= int(at.value) < len(lanes.parts):
            refuse(node, f"element {at.value} of a vector of {len(lanes.parts)}")
        return lanes.parts[int(at.value)]

    def lanes_variable(self, node: Node, initial: Node | None) -> VectorLanes:
        """A variable that is a vector; in an array where an index chooses an element at run time."""
        type = node.type.value
        code = element_code(type)
        given = self.codes(self.lanes(initial)) if initial is not None else None
        if self.function is not None and node.key in _indexed(self.function):
            name = self.writing.local(node.name, f"array {code} {type.count}")
            self.book.reserve(self, f"{name} = {self.use('ipu.array')}({self.use(NAMES[code])}, {type.count})")
            places = tuple(self.element_at(name, code, self.constant(k, "i32")) for k in range(type.count))
            made = VectorLanes(places, type, name)
            if given is not None:
                self.assign_lanes(made, VectorLanes(tuple(given), type), node)
            return made
        return self.new_lanes(node.name, given, type)

    def new_lanes(self, name: str, given: list[NumberText] | None, type: CppType) -> VectorLanes:
        """Locals for the elements; without values they are not set yet."""
        code, places = element_code(type), []
        held = register(code)
        at_once = given is not None and (code, type.count) in AT_ONCE
        for number in range(type.count):
            local = self.writing.local(f"{name}_{number}", held)
            if at_once:
                pass
            elif given is None:
                self.writing.noted.add(local)
                self.emit(f"{local}: {self.use(NAMES[held])}")
            else:
                self.emit(self.declared(local, given[number], code))
            places.append(NumberPlace(local, code, held, is_local=True))
        if at_once and given is not None:
            self.set_at_once(places, given, code)
        return VectorLanes(tuple(places), type)

    def kept_lanes(self, lanes: VectorLanes) -> VectorLanes:
        """The elements in locals of their own, safe from what is written later."""
        codes, code = self.codes(lanes), element_code(lanes.type)
        if (code, len(codes)) not in AT_ONCE or all(one.value is not None for one in codes):
            return VectorLanes(tuple(self.kept(one) for one in codes), lanes.type)
        return VectorLanes(tuple(self.codes(self.new_lanes("t", codes, lanes.type))), lanes.type)

    def set_at_once(self, places: Sequence[NumberPlace], codes: Sequence[NumberText], code: str) -> None:
        """An assignment of all elements, which the machine computes together."""
        texts = []
        for one in codes:
            one = self.constant(one.value, code) if one.value is not None else self.settled(one)
            texts.append((self.typed(one) if "math." in one.text else one).text)
        name = AT_ONCE[code, len(places)]
        self.emit(f"{', '.join(place.text for place in places)} = {self.use(f'ipu.{name}')}({', '.join(texts)})")

    def assign_lanes(self, target: VectorLanes, source: VectorLanes, node: Node) -> None:
        code = element_code(target.type)
        codes = [self.converted(one, code, node) for one in self.codes(source)]
        places = [place for place in target.parts if isinstance(place, NumberPlace) and not place.view and place.type == code]
        if (code, len(places)) in AT_ONCE and len(places) == len(target.parts):
            self.set_at_once(places, codes, code)
            return
        if self.entangled(target, codes):
            codes = [self.kept(one) for one in codes]
        for place, one in zip(target.parts, codes, strict=True):
            if not isinstance(place, NumberPlace):
                refuse(node, "this vector is no variable that could be set")
            self.store(place, one, node)

    def entangled(self, target: VectorLanes, codes: list[NumberText]) -> bool:
        """Whether an element is made of one that has been set before."""
        texts = [code.text for code in codes if code.value is None]
        if any(isinstance(place, NumberPlace) and not place.is_local for place in target.parts):
            return any("[" in text or "(" in text for text in texts)
        names = [re.escape(place.text) for place in target.parts if isinstance(place, NumberPlace) and place.text]
        earlier = [
            name
            for position, name in enumerate(names)
            if any(re.search(rf"\b{name}\b", code.text) for code in codes[position + 1 :])
        ]
        return bool(earlier)

    def assign_compound_lanes(self, node: Node) -> None:
        """``v += w``."""
        target, source = node.parts
        right = self.lanes(source) if source.type.value.sort == "vector" else self.splat(source, target.type.value, node)
        lanes = self.lanes(target)
        self.assign_lanes(lanes, self.combined(node.operator[:-1], lanes, right, target.type.value, node), node)


def element_code(type: CppType) -> str:
    """The code of a vector's elements."""
    inner = type.value.to
    assert inner is not None
    return inner.value.code


def _indexed(function: Node) -> frozenset[int]:
    """The vectors of which a function chooses an element at run time."""
    known: frozenset[int] | None = function.__dict__.get("indexed_vectors")
    if known is None:
        found = set()
        for node in function.walk():
            if node.kind == "ARRAY_SUBSCRIPT_EXPR" and node.parts[0].type.value.sort == "vector" and node.parts[1].constant is None:
                name = node.parts[0].naked
                if name.kind == "DECL_REF_EXPR" and name.referenced is not None:
                    found.add(name.referenced.key)
        known = function.__dict__["indexed_vectors"] = frozenset(found)
    return known
