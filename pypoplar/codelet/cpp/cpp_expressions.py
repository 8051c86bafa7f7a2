"""Expressions that are numbers: operators, conversions, assignments and steps inside of them."""

from __future__ import annotations

from abc import abstractmethod

from attrs import evolve

from pypoplar.codelet.cpp.assignments import Assignments
from pypoplar.codelet.cpp.cpp_places import EDGES
from pypoplar.codelet.cpp.cpp_values import (
    AND,
    ATOM,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    CHOICE,
    COMPARISON,
    NOT,
    OR,
    PRODUCT,
    SHIFT,
    SIGN,
    SUM,
    NumberPlace,
    NumberText,
    Pointer,
    is_exact,
    literal,
    weak_in,
)
from pypoplar.codelet.cpp.walk_state import DOUBLE
from pypoplar.codelet.cpp.writing import WrittenLine, refuse
from pypoplar.codelet.cpp_tree.cpp_types import FLOATS, register, split_arguments
from pypoplar.codelet.cpp_tree.tree import Node
from pypoplar.codelet.frontend.inference import Mixed, promote

_LEVELS = {
    "+": SUM,
    "-": SUM,
    "*": PRODUCT,
    "/": PRODUCT,
    "%": PRODUCT,
    "&": BIT_AND,
    "|": BIT_OR,
    "^": BIT_XOR,
    "<<": SHIFT,
    ">>": SHIFT,
}
_COMPARED = ("<", "<=", ">", ">=", "==", "!=")
_CASTS = (
    "UNEXPOSED_EXPR", "CSTYLE_CAST_EXPR", "CXX_STATIC_CAST_EXPR", "CXX_FUNCTIONAL_CAST_EXPR", "CXX_CONST_CAST_EXPR", "CALL_EXPR",
)  # fmt: skip
_PLACES = ("DECL_REF_EXPR", "MEMBER_REF_EXPR", "MEMBER_REF", "ARRAY_SUBSCRIPT_EXPR")


class CppExpressions(Assignments):
    """Numbers."""

    def number(self, node: Node) -> NumberText:  # noqa: C901, PLR0911, PLR0912 - an arm for each kind of expression
        type = node.type.value
        if type.sort != "number":
            if split_arguments(type.spelling.removeprefix("const "))[0] in EDGES:
                edge = node.naked
                while edge.kind == "CALL_EXPR" and len(edge.parts) == 1:  # a copy of it, for a function
                    edge = edge.parts[0].naked
                if edge.name in self.book.fields and self.book.fields[edge.name].form == "scalar":
                    return self.read(self.scalar_edge(edge))
            refuse(node, f"expected a number, got {type.spelling or 'nothing'}")
        value = node.constant
        if value is not None:
            return self.constant(value, type.code)
        parts = node.parts
        match node.kind:
            case "PAREN_EXPR":
                return self.number(parts[0])
            case "UNARY_OPERATOR":
                return self.unary(node)
            case "BINARY_OPERATOR":
                return self.binary(node)
            case "COMPOUND_ASSIGNMENT_OPERATOR":
                self.assign_compound(node)
                return self.read(self.place(parts[0]))
            case "CONDITIONAL_OPERATOR":
                return self.choice(node)
            case "CALL_EXPR":
                return self.called_number(node)
            case "DECL_REF_EXPR" if isinstance(found := self.bound(node), NumberText):
                return found  # a parameter that is a constant here
            case "ARRAY_SUBSCRIPT_EXPR" if parts[0].type.value.sort == "vector":
                found = self.lane(node)
                return self.read(found) if isinstance(found, NumberPlace) else found
            case kind if kind in _PLACES:
                return self.read(self.place(node))
            case kind if kind in _CASTS and parts:
                return self.cast(node, parts[-1])
            case "INIT_LIST_EXPR":
                return self.number(parts[0]) if parts else self.constant(0, type.code)
            case "CXX_REINTERPRET_CAST_EXPR":
                if parts[-1].type.value.sort == "number":
                    return self.read(self.place(node))
                return self.cast(node, parts[-1])
            case "CXX_NEW_EXPR":
                refuse(node, "new: the device has no heap; declare an array, float work[16];")
            case "CXX_THROW_EXPR":
                refuse(node, "throw: device code has no exceptions; write assert(condition)")
            case "STMT_EXPR":
                refuse(node, "a statement inside an expression: write it before")
        refuse(node, "this expression has no form in device code")

    def cast(self, node: Node, inner: Node) -> NumberText:
        to, source = node.type.value.code, inner.type.value
        if source.sort == "vector":
            (made,) = self.joined_lanes(inner, to, node)
            return made
        if source.sort == "pointer":
            refuse(node, "a pointer as a number: a pointer stands for a vector and an index")
        if source.sort == "record":
            found = self.value(inner)
            if isinstance(found, NumberPlace):
                return self.converted(self.read(found), to, node)
            refuse(node, f"{source.spelling} as a number")
        if source.code == "f64" and to != "f64":
            return self.rounded(inner, to)
        return self.converted(self.number(inner), to, node)

    # double

    def rounded(self, node: Node, to: str) -> NumberText:
        """What is computed in double and rounded to a type at once, where that is what the type itself would give."""
        node = node.bare
        if node.constant is not None:
            return self.constant(node.constant, to)
        if to not in ("f32", "f16"):
            inner = self.narrow(node, "f32")
            if inner is None:
                refuse(node, DOUBLE)
            return self.converted(inner, to, node)
        narrow = self.narrow(node, to)
        if narrow is not None:
            return narrow
        parts = node.parts
        if node.kind == "CONDITIONAL_OPERATOR":
            return self.choice(node, to)
        if node.kind == "UNARY_OPERATOR" and node.operator == "-":
            return NumberText(f"-{self.rounded(parts[0], to).at(SIGN)}", to, to, SIGN)
        if node.kind == "BINARY_OPERATOR" and node.operator in ("+", "-", "*", "/"):
            left, right = (self.narrow(part, to) for part in parts)
            if left is not None and right is not None:
                return self.arithmetic(node.operator, left, right, to, node)
        if node.kind == "CALL_EXPR" and node.name in ("sqrt", "fabs", "floor", "ceil", "trunc", "abs") and len(parts) > 1:
            argument = self.narrow(parts[-1], to)
            if argument is not None:
                return self.library_function(node.name, [argument], to, node)
        refuse(node, DOUBLE)

    def narrow(self, node: Node, to: str) -> NumberText | None:
        """A double that is a number of a narrower type."""
        node = node.bare
        if node.constant is not None:
            return self.constant(node.constant, to) if is_exact(node.constant, to) else None
        if node.type.value.code == to:
            return self.number(node)
        if node.kind in _CASTS and len(node.parts) == 1 and node.parts[0].type.value.sort == "number":
            source = node.parts[0].type.value.code
            if source == to or (to == "f32" and source in ("f16", "i8", "u8", "i16", "u16")):
                return self.converted(self.number(node.parts[0]), to, node)
        return None

    # operators

    def unary(self, node: Node) -> NumberText:
        (part,) = node.parts
        symbol, type = node.operator, node.type.value.code
        match symbol:
            case "++" | "--" | "x++" | "x--":
                return self.step(node)
            case "*":
                return self.read(self.place(node))
            case "!":
                code = self.number(part)
                return NumberText(f"not {code.at(NOT)}", "bool", "bool", NOT)
            case "+":
                return self.number(part)
            case "-" | "~":
                code = self.typed(self.number(part))
                if type in FLOATS or type in ("i64", "u64"):
                    code = self.typed(self.settled(code))
                return NumberText(f"{symbol}{code.at(SIGN)}", type, code.held, SIGN)
        refuse(node, f"the operator {symbol} has no form here")

    def binary(self, node: Node) -> NumberText:
        left_node, right_node = node.parts
        symbol, type = node.operator, node.type.value.code
        if symbol == "=":
            self.assign(node)
            return self.read(self.place(left_node))
        if symbol == ",":
            self.effect(left_node)
            self.flush()
            return self.number(right_node)
        if symbol in ("&&", "||"):
            return self.connected(node, symbol)
        if symbol in _COMPARED:
            return self.compared(node, symbol)
        if type == "f64":
            refuse(node, DOUBLE)
        if left_node.type.value.sort in ("pointer", "array"):
            first, second = self.pointer(left_node), self.pointer(right_node)
            self.same_span(first, second, node)
            return self.moved(first.at, second.at, "-")
        return self.arithmetic(symbol, self.number(left_node), self.number(right_node), type, node)

    def same_span(self, first: Pointer, second: Pointer, node: Node) -> None:
        if first.span != second.span:
            refuse(node, f"pointers into {first.span} and into {second.span}: compare and subtract those of one vector")

    def arithmetic(self, symbol: str, left: NumberText, right: NumberText, type: str, node: Node) -> NumberText:
        """``left symbol right`` of numbers that have the type of the result; of a shift the left one has."""
        level = _LEVELS[symbol]
        if left.value is not None and right.value is not None:
            left = self.typed(left)
        if symbol in ("<<", ">>"):
            left = self.exactly(left) if symbol == ">>" or type in ("i64", "u64") else self.typed(left)
            right = right if right.weak else self.settled(right)
            if register(right.type) in ("i64", "u64") and not right.weak and left.held in ("i32", "u32"):
                right = self.converted(right, "i32", node)
            return NumberText(f"{left.at(level)} {symbol} {right.at(level + 1)}", type, left.held, level)
        if type in FLOATS:
            left, right = self.meeting(left, right, type)
            if symbol == "%":
                refuse(node, "% of floats")
            return NumberText(f"{left.at(level)} {symbol} {right.at(level + 1)}", type, type, level)
        if symbol in ("/", "%"):
            return self.divided(symbol, left, right, type)
        if type in ("i64", "u64"):
            left, right = self.meeting(left, right, type)
            return NumberText(f"{left.at(level)} {symbol} {right.at(level + 1)}", type, type, level)
        left, right = weak_in(left, right.held), weak_in(right, left.held)
        if right.weak and symbol in "+-" and isinstance(right.value, int) and right.value < 0 and right.value > -(2**31):
            symbol, right = "-" if symbol == "+" else "+", literal(-right.value, "i32")
        held = "u32" if "u32" in (left.held, right.held) else "i32"
        counts = left.counts and right.counts and symbol in "&|^"
        return NumberText(f"{left.at(level)} {symbol} {right.at(level + 1)}", type, held, level, counts=counts)

    def meeting(self, left: NumberText, right: NumberText, type: str) -> tuple[NumberText, NumberText]:
        """Two operands that Python's front end computes in a type."""
        register_type = register(type)
        held = [code.held for code in (left, right) if not code.weak]
        try:
            together = promote(held[0], held[-1]) if held else ""
        except Mixed:
            together = ""
        if together == register_type:
            return left, right
        if left.weak:
            return left, self.exactly(right)
        left = self.exactly(left)
        return left, right if right.weak or right.held == register_type else self.exactly(right)

    def divided(self, symbol: str, left: NumberText, right: NumberText, type: str) -> NumberText:
        """Division of integers, which cuts: that of numbers that are not below zero is Python's."""
        if type in ("u32", "u64") or (left.counts and right.counts):
            if not (left.counts and right.counts):
                left = left if left.weak and not right.weak else self.exactly(left)
                right = right if right.weak else self.exactly(right)
                if left.weak:
                    right = self.exactly(right)
            elif left.weak and right.weak:
                left = self.typed(left)
            python = "//" if symbol == "/" else "%"
            held = left.held if not left.weak else right.held
            return NumberText(
                f"{left.at(PRODUCT)} {python} {right.at(PRODUCT + 1)}", type, held, PRODUCT, counts=left.counts and right.counts
            )
        function = self.use("ipu.quotient" if symbol == "/" else "ipu.remainder")
        left = left if left.weak and not right.weak else self.exactly(left)
        right = right if right.weak else self.exactly(right)
        return NumberText(f"{function}({left.text}, {right.text})", type, register(type))

    def compared(self, node: Node, symbol: str) -> NumberText:
        left_node, right_node = node.parts
        if left_node.type.value.sort in ("pointer", "array"):
            first, second = self.pointer(left_node), self.pointer(right_node)
            self.same_span(first, second, node)
            left, right = evolve(first.at, type="i32"), evolve(second.at, type="i32")
            if left.value is not None and right.value is not None:
                left = self.typed(left)
            left, right = (code if code.weak else self.exactly(code) if code.held != "i32" else code for code in (left, right))
            return NumberText(f"{left.at(COMPARISON + 1)} {symbol} {right.at(COMPARISON + 1)}", "bool", "bool", COMPARISON)
        if left_node.type.value.code == "f64":
            left_code, right_code = (self.narrow(part, "f32") for part in (left_node, right_node))
            if left_code is None or right_code is None:
                refuse(node, DOUBLE)
            left, right = left_code, right_code
        else:
            left, right = self.number(left_node), self.number(right_node)
        left, right = self.comparable(left, right, symbol)
        return NumberText(f"{left.at(COMPARISON + 1)} {symbol} {right.at(COMPARISON + 1)}", "bool", "bool", COMPARISON)

    def comparable(self, left: NumberText, right: NumberText, symbol: str) -> tuple[NumberText, NumberText]:
        """Two operands that Python's front end compares as C++ does."""
        type = left.type
        if left.value is not None and right.value is not None:
            left = self.typed(left)
        if type not in ("i32", "u32"):
            return (left, right) if type == "bool" else self.meeting(left, right, type)
        if left.held == right.held and symbol in ("==", "!="):
            return left, right
        if left.counts and right.counts:  # both have the same order in either register
            return left, right
        if left.weak:
            return left, self.exactly(right)
        if right.weak:
            return self.exactly(left), right
        if type == "u32" and "u32" in (left.held, right.held):  # Python's front end compares them as UNSIGNED_INT
            return left, right
        return self.exactly(left), self.exactly(right)

    def condition(self, node: Node) -> NumberText:
        """A bool."""
        code = self.number(node)
        return code if code.type == "bool" else self.converted(code, "bool", node)

    def connected(self, node: Node, symbol: str) -> NumberText:
        """``a && b``, ``a || b``."""
        left_node, right_node = node.parts
        left = self.condition(left_node)
        if left.value is not None:
            return left if bool(left.value) == (symbol == "||") else self.condition(right_node)
        with self.uncertain(), self.writing.apart() as inner:
            right = self.condition(right_node)
        level, word = (AND, "and") if symbol == "&&" else (OR, "or")
        if not inner:
            return NumberText(f"{left.at(level)} {word} {right.at(level)}", "bool", "bool", level)
        result = self.writing.temporary("bool")
        self.emit(f"{result} = {left.text}")
        self.emit(f"if {result}:" if symbol == "&&" else f"if not {result}:")
        self.paste(inner)
        self.writing.depth += 1
        self.emit(f"{result} = {right.text}")
        self.writing.depth -= 1
        return NumberText(result, "bool", "bool", named=True)

    def paste(self, lines: list[WrittenLine]) -> None:
        """Lines that were written apart, one level deeper."""
        for line in lines:
            line.depth += 1
            self.writing.lines.append(line)

    def choice(self, node: Node, to: str | None = None) -> NumberText:
        """``c ? a : b``."""
        test, *branches = node.parts
        type = to or node.type.value.code
        condition = self.condition(test)
        convert = (lambda part: self.rounded(part, type)) if to is not None else self.number
        if condition.value is not None:
            return convert(branches[0] if condition.value else branches[1])
        if type == "f64":
            refuse(node, DOUBLE)
        written = []
        for branch in branches:
            with self.uncertain(), self.writing.apart() as inner:
                code = convert(branch)
                code = code if code.weak else self.exactly(code)
            written.append((code, inner))
        (yes, before), (no, instead) = written
        held = register(type)
        if yes.weak and no.weak:
            yes = self.typed(yes)
        if not before and not instead:
            return NumberText(f"{yes.at(OR)} if {condition.at(OR)} else {no.at(CHOICE)}", type, held, CHOICE)
        result = self.writing.temporary(held)
        for header, code, lines in ((f"if {condition.text}:", yes, before), ("else:", no, instead)):
            self.emit(header)
            self.paste(lines)
            self.writing.depth += 1
            self.emit(f"{result} = {self.typed(code).text}")
            self.writing.depth -= 1
        return NumberText(result, type, held, named=True)

    # changes inside of expressions

    @abstractmethod
    def joined_lanes(self, inner: Node, to: str, node: Node) -> list[NumberText]:
        """The bits of a vector as one number."""

    @abstractmethod
    def called_number(self, node: Node) -> NumberText:
        """The number that a call gives."""

    @abstractmethod
    def library_function(self, name: str, arguments: list[NumberText], type: str, node: Node) -> NumberText:
        """An operation by the name that C++ has for it."""


__all__ = ["ATOM", "CppExpressions"]
