"""Calls: functions of the libraries, the user's own, methods, lambdas, and structs that are made."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Any

from attrs import evolve

from pypoplar.codelet.cpp.cpp_places import EDGES, is_array, is_container
from pypoplar.codelet.cpp.cpp_values import (
    FunctionName,
    Itself,
    Lambda,
    NumberPlace,
    NumberText,
    Pointer,
    Rows,
    Struct,
    Value,
    VectorName,
    innermost,
    literal,
)
from pypoplar.codelet.cpp.memory_calls import MASKS, REFUSED, MemoryCalls
from pypoplar.codelet.cpp.memory_views import ZERO
from pypoplar.codelet.cpp.walk_state import DOUBLE
from pypoplar.codelet.cpp.writing import is_function, refuse
from pypoplar.codelet.cpp_tree.cpp_types import FLOATS, register, split_arguments, type_of
from pypoplar.codelet.cpp_tree.declarations_of import initial_of
from pypoplar.codelet.cpp_tree.tree import Node

_RENAMED = {
    "fabs": "abs",
    "abs": "abs",
    "fmax": "max",
    "fmin": "min",
    "max": "max",
    "min": "min",
    "rint": "round",
    "nearbyint": "round",
}
_OWN = {"sigmoid": "ipu.sigmoid", "rsqrt": "ipu.rsqrt", "f32sigm": "ipu.sigmoid", "popc": "ipu.popcount", "clz": "ipu.clz"}
_READINGS = {
    "__builtin_ipu_urand_f32": ("ipu.random_float", "f32"), "urand_f32": ("ipu.random_float", "f32"),
    "__builtin_ipu_urand32": ("ipu.random_uint", "u32"), "urand32": ("ipu.random_uint", "u32"),
    "__builtin_ipu_urand64": ("ipu.random_ulonglong", "u64"), "urand64": ("ipu.random_ulonglong", "u64"),
}  # fmt: skip
_NAMED = (
    *_READINGS, "__pypoplar_check", "printf", "memset", "memcpy", "load_postinc", "store_postinc",
    "__pypoplar_convert", "__pypoplar_bits",
)  # fmt: skip
_PREDICATES = ("isnan", "isinf", "isfinite")
_NO_FORM = {
    "malloc": "malloc: the device has no heap; declare an array", "free": "free: the device has no heap",
    "fma": "fma: it rounds once, and the device twice; write x * y + z",
    "tgamma": "tgamma: the device has no gamma function", "lgamma": "lgamma: the device has no gamma function",
}  # fmt: skip
_STD = "pypoplar/codelet/cpp/headers/"


class CppCalls(MemoryCalls):
    """What is called."""

    def called_number(self, node: Node) -> NumberText:
        found = self.call_value(node)
        if isinstance(found, NumberPlace):
            return self.read(found)
        if isinstance(found, NumberText):
            return found
        refuse(node, f"{node.name or 'this call'} gives no number")

    def call_value(self, node: Node) -> Value | None:  # noqa: C901, PLR0912 - one for each sort of function
        """What a call gives; None for nothing."""
        name, parts, function = node.name, node.parts, node.referenced
        if name.startswith("operator") and parts:
            handled = self.operator_call(node)
            if handled is not NotImplemented:
                return handled  # type: ignore[no-any-return]
        if function is None:
            refuse(node, "a function that is chosen at run time: call functions by their name")
        if function.kind == "CONSTRUCTOR":
            return self.constructed(node, function)
        pointed = self.bindings.get(function.key) if function.kind in ("VAR_DECL", "PARM_DECL") else None
        if isinstance(pointed, FunctionName):
            definition = pointed.node.cursor.get_definition()
            return self.own_function(node, pointed.node if definition is None else Node(definition), list(parts[1:]), None)
        arguments = list(parts[1:]) if parts and _is_callee(parts[0], name) else list(parts)
        callee = parts[0].naked if parts else None
        if callee is not None and callee.kind == "MEMBER_REF_EXPR" and callee.parts and is_container(callee.parts[0].type):
            return self.container_call(node, callee)
        if callee is not None and callee.kind == "MEMBER_REF_EXPR" and callee.parts and is_array(callee.parts[0].type):
            if name == "size":
                return literal(int(split_arguments(callee.parts[0].type.value.spelling)[1][1].rstrip("u")), "u32")
            return self.limit(callee.parts[0], name)
        known = self.library_call(node, function, arguments)
        if known is not NotImplemented:
            return known  # type: ignore[no-any-return]
        definition = function.cursor.get_definition()
        if definition is None:
            where = "is declared, and has no body that is known here"
            refuse(node, f"'{name}' {where}: give its definition in a header, found by -Idir")
        target = Node(definition) if not _has_body(function) else function
        this: Value | None = None
        if name.startswith("operator"):
            if name == "operator=" and (target.line, target.column) == _place_of(target):
                self.assign_struct(parts[0], parts[-1], node)
                return self.struct(parts[0])
            arguments = [part for part in parts if not _is_callee(part, name)]
            if target.kind == "CXX_METHOD":
                this, arguments = self.struct(arguments[0]), arguments[1:]
            return self.own_function(node, target, arguments, this)
        if target.kind == "CXX_METHOD" and callee is not None and not target.cursor.is_static_method():
            this = self.owner(callee)
            if target.cursor.is_virtual_method():
                refuse(node, f"'{name}' is virtual: device code has no tables of functions; call a function by its name")
        return self.own_function(node, target, arguments, this)

    def operator_call(self, node: Node) -> Any:
        """Operators of vectors, edges and lambdas; NotImplemented for those of the user."""
        name, parts = node.name, node.parts
        owner = parts[0]
        if name == "operator()":
            found = self.value(owner)
            if isinstance(found, Lambda):
                return self.call_lambda(node, found, list(parts[2:] if len(parts) > 1 else parts[1:]))
            return NotImplemented
        inner = owner.parts[0] if owner.kind == "MEMBER_REF_EXPR" and owner.name.startswith("operator") and owner.parts else owner
        base = split_arguments(inner.type.value.spelling.removeprefix("const "))[0]
        if is_array(inner.type) and name == "operator[]":
            pointer, index = self.pointer(inner), self.number(parts[-1])
            return self.element(pointer, index, node) if pointer.to.value.sort == "number" else self.row_of_array(pointer, index)
        if not is_container(inner.type):
            return NotImplemented
        if name == "operator[]":
            if node.type.value.sort == "record":
                return self.container(node)
            return self.called_place(node)
        if base in EDGES and name in ("operator=", "operator+=", "operator-=", "operator*=", "operator/="):
            place, right = self.scalar_edge(inner), self.number(parts[-1])
            if name == "operator=":
                self.emit(f"{place.text} = {self.for_place(place, right, node)}")
            else:
                result = self.arithmetic(name[8], self.converted(self.read(place), right.type, node), right, right.type, node)
                self.emit(f"{place.text} = {self.stored(result, place.type, node)}")
            return place
        if node.type.value.sort == "pointer" and name.startswith("operator "):
            return self.called_pointer(node)
        if base in EDGES and (name == "operator*" or name.startswith("operator ")):
            return self.scalar_edge(inner)
        return NotImplemented

    def container_call(self, node: Node, callee: Node) -> Value:
        name = node.name
        if name in ("begin", "end", "data"):
            return self.limit(callee.parts[0], name)
        if name == "size":
            found = self.container(callee.parts[0])
            return NumberText(f"{self.use('len')}({found.text})", "u32", "i32", counts=True)
        refuse(node, f"'{name}' of a vector has no form here")

    # functions of libraries

    def library_call(self, node: Node, function: Node, arguments: list[Node]) -> Any:
        """A function of a header of ours that means an operation; NotImplemented for others."""
        qualified = function.qualified()
        name = qualified.removeprefix("std::").removeprefix("ipu::")
        if name in _NO_FORM and "::" not in name and _STD in function.file:
            refuse(node, _NO_FORM[name])
        if qualified in ("std::move", "std::forward"):
            return self.value(arguments[0])
        if qualified == "pypoplar::workerCount":
            return NumberText(f"{self.use('ipu.worker_count')}()", "i32", "i32")
        if name in _NAMED or name.startswith("__builtin_ipu_"):
            named = self.named_call(node, name, arguments)
            if named is not NotImplemented:
                return named
        if _STD not in function.file or ("::" in name and not qualified.startswith(("std::", "ipu::"))):
            return NotImplemented if not name.startswith("__builtin") else self.builtin(node, name)
        types = {argument.type.value.sort for argument in arguments}
        if types <= {"number"} and arguments and not _has_body(function):
            type = node.type.value.code
            plain = (
                name[:-1]
                if name.endswith("f")
                and not is_function(name, "math")
                and (is_function(name[:-1], "math") or name[:-1] in _RENAMED)
                else name
            )
            if any(argument.type.value.code == "f64" for argument in arguments):
                refuse(node, DOUBLE)
            return self.library_function(plain, [self.number(argument) for argument in arguments], type, node)
        if types == {"vector"} and not _has_body(function) and node.type.value.sort == "vector":
            return self.function_of_lanes(name, arguments, node)
        return NotImplemented

    def named_call(self, node: Node, name: str, arguments: list[Node]) -> Any:
        """A function that is known by its name; NotImplemented for others."""
        if name == "__pypoplar_check":
            self.emit(f"{self.use('ipu.check')}({self.condition(arguments[0]).text})")
            return None
        if name == "printf":
            self.print_call(node, arguments)
            return None
        if name in ("memset", "memcpy"):
            self.memory_call(node, name, arguments)
            return None
        if name in _READINGS:
            python, type = _READINGS[name]
            return self.kept(NumberText(f"{self.use(python)}()", type, type))
        if name in ("load_postinc", "store_postinc"):
            return self.postincrement(node, name, arguments)
        if name in ("__pypoplar_convert", "__pypoplar_bits"):
            return self.recast(node, name, arguments[0])
        if name.startswith("__builtin_ipu_") and name.removeprefix("__builtin_ipu_") in REFUSED:
            refuse(node, f"{name}: {REFUSED[name.removeprefix('__builtin_ipu_')]}")
        if name.removeprefix("__builtin_ipu_").partition("_")[0] in MASKS and name.endswith("f32"):
            return self.masked(node, name, arguments)
        if name in ("__builtin_ipu_get_scount_l",):
            return self.kept(NumberText(f"{self.use('ipu.cycle_count')}()", "u32", "u32"))
        return NotImplemented

    def builtin(self, node: Node, name: str) -> Any:
        if name in ("__builtin_expect", "__builtin_assume_aligned", "__builtin_launder"):
            return self.value(node.parts[1])
        if name in ("__builtin_assume", "__builtin_unreachable"):
            return None
        refuse(node, f"{name}: this intrinsic has no form here yet")

    def library_function(self, name: str, arguments: list[NumberText], type: str, node: Node) -> NumberText:
        """An operation by the name that C++ has for it."""
        python = _OWN.get(name) or _RENAMED.get(name) or f"math.{name}"
        if python.startswith("math.") and not is_function(name, "math"):
            refuse(node, f"'{name}' is no operation of the device that is known here")
        if len(arguments) == 1:
            codes = [self.exactly(arguments[0])]
        else:
            left, right = self.meeting(arguments[0], arguments[1], arguments[0].type)
            if arguments[0].type in ("i32", "u32"):
                left, right = (code if code.weak else self.exactly(code) for code in (left, right))
            if left.weak and right.weak:
                left = self.typed(left)
            codes = [left, right]
        text = f"{self.use(python)}({', '.join(code.text for code in codes)})"
        if name in _PREDICATES:
            return NumberText(text, "bool", "bool")
        if name in ("abs",) and type in FLOATS:
            return NumberText(text, type, register(type))
        return NumberText(text, type, register(type), counts=all(code.counts for code in codes) and type in ("i32", "u32"))

    def print_call(self, node: Node, arguments: list[Node]) -> None:
        """A call of printf with a literal text."""
        literals = [one for one in arguments[0].walk() if one.kind == "STRING_LITERAL"]
        if len(literals) != 1:
            refuse(node, 'printf takes a literal text: printf("%f\\n", x)')
        text = _string(literals[0].name)
        codes = []
        for argument in arguments[1:]:
            argument = argument.bare
            inner = argument
            while inner.type.value.code in ("f64", "i32") and inner.kind == "UNEXPOSED_EXPR" and len(inner.parts) == 1:
                inner = inner.parts[0]
            codes.append(self.number(inner))
        self.emit(f"{self.use('print')}({_format(text, codes, node)})")

    # functions of the user

    def own_function(self, node: Node, function: Node, arguments: list[Node], this: Value | None) -> Value | None:
        """A call of a function whose body is known: a helper function of Python, or its body written here."""
        parameters = [child for child in function.children if child.kind == "PARM_DECL"]
        for parameter in parameters[len(arguments) :]:
            default = initial_of(parameter)
            if default is None:
                refuse(node, f"'{function.name}' is called with a default argument that is not known here: write it out")
            arguments = [*arguments, default]
        simple = all(_is_simple(parameter) for parameter in parameters) and _is_plain(function.cursor.result_type)
        pointers = [
            argument for argument, parameter in zip(arguments, parameters, strict=False) if parameter.type.sort == "pointer"
        ]
        if pointers and simple and not self.book.is_written(function):
            simple = self.are_plain(pointers, parameters)
        if simple and not isinstance(this, Struct) and not self.book.is_open(function):
            return self.helper_call(node, function, parameters, arguments, this)
        return self.inlined(node, function, parameters, arguments, this)

    def are_plain(self, arguments: list[Node], parameters: list[Node]) -> bool:
        """Whether pointers are each into a vector of its own, whose elements have the type that the function sees."""
        found = [self.pointer(argument) for argument in arguments if not _steps(argument)]
        wanted = [parameter.type for parameter in parameters if parameter.type.sort == "pointer"]
        if any(one.span in self.singles or one.span in self.columns for one in found):
            return False
        seen = [innermost(type.to or type).code for type in wanted]
        if len(found) == len(seen) and any(one.code != code for one, code in zip(found, seen, strict=True)):
            return False
        return len(arguments) == 1 or len({one.span for one in found}) == len(arguments)

    def helper_call(
        self, node: Node, function: Node, parameters: list[Node], arguments: list[Node], this: Value | None
    ) -> Value | None:
        name = self.book.helper(function, node)
        self.writing.names[name] = self.book.helper_meaning(name)
        texts = ["self"] if this is not None else []
        for parameter, argument in zip(parameters, arguments, strict=False):
            texts += self.argument(self.value(argument), parameter, argument)
        call = f"{name}({', '.join(texts)})"
        result = Node(function.cursor).cursor.result_type
        from pypoplar.codelet.cpp_tree.cpp_types import type_of

        type = type_of(result)
        if type.sort == "void":
            self.emit(call)
            return None
        return NumberText(call, type.value.code, register(type.value.code))

    def argument(self, value: Value, parameter: Node, node: Node) -> list[str]:
        match value:
            case NumberText() | NumberPlace():
                code = self.read(value) if isinstance(value, NumberPlace) else value
                return [self.exactly(self.converted(code, parameter.type.value.code, node)).text]
            case Pointer():
                return [value.span, value.at.text if value.at.weak else self.exactly(evolve(value.at, type="i32")).text]
            case VectorName() | Rows():
                return [value.text]
        refuse(node, "this cannot be given to a function")

    def call_lambda(self, node: Node, found: Lambda, arguments: list[Node]) -> Value | None:
        parameters = [child for child in found.node.children if child.kind == "PARM_DECL"]
        before = {key: self.bindings[key] for key, _ in found.copies}
        self.bindings.update(found.copies)
        result = self.inlined(node, found.node, parameters, arguments, self.this)
        self.bindings.update(before)
        return result

    @abstractmethod
    def inlined(
        self, node: Node, function: Node, parameters: list[Node], arguments: list[Node], this: Value | None
    ) -> Value | None:
        """A call that becomes the statements of what is called."""

    @abstractmethod
    def constructed(self, node: Node, function: Node) -> Value:
        """What a constructor makes."""


def _is_callee(node: Node, name: str) -> bool:
    bare = node.naked
    return bare.kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR", "OVERLOADED_DECL_REF") and bare.name == name


def _place_of(function: Node) -> tuple[int, int]:
    owner = Node(function.cursor.semantic_parent)
    return owner.line, owner.column


def _steps(node: Node) -> bool:
    """Whether an expression moves something, so that it is written once."""
    assigns = ("BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR")
    return any(
        (one.kind == "UNARY_OPERATOR" and one.operator in ("++", "--", "x++", "x--"))
        or (one.kind in assigns and one.operator.endswith("=") and one.operator not in ("==", "<=", ">=", "!="))
        or (one.kind == "CALL_EXPR" and not one.name.startswith("operator") and one.name not in ("begin", "end", "data", "size"))
        for one in node.walk()
    )


def _has_body(function: Node) -> bool:
    return any(child.kind in ("COMPOUND_STMT", "CXX_TRY_STMT") for child in function.children)


def _is_simple(parameter: Node) -> bool:
    """Whether a parameter is given as a number, a vector, or a pointer of numbers."""
    type = parameter.type
    if type.sort == "reference":
        inner = type.to
        const = inner is not None and inner.spelling.startswith("const ")
        return is_container(type) or (const and type.value.sort == "number")
    if type.sort == "pointer":
        return type.to is not None and type.to.value.sort == "number"
    return type.sort == "number" or is_container(type)


def _is_plain(result: Any) -> bool:
    type = type_of(result)
    return type.sort in ("void", "number")


def _string(spelling: str) -> str:
    return spelling[1:-1].encode().decode("unicode_escape") if spelling.startswith('"') else spelling


def _format(text: str, codes: list[NumberText], node: Node) -> str:
    """The arguments of print for a format of C."""
    end = "" if text.endswith("\n") else ', end=""'
    text = text.removesuffix("\n")
    pieces, position, rest = [], 0, list(codes)
    for found in re.finditer(r"%([-+ 0]*\d*(?:\.\d+)?)(?:hh|h|ll|l|z)?([a-zA-Z%])", text):
        pieces.append(_escaped(text[position : found.start()]))
        position = found.end()
        if found[2] == "%":
            pieces.append("%")
            continue
        if not rest:
            refuse(node, "printf has fewer values than its text names")
        code = rest.pop(0)
        width, letter = found[1], found[2]
        if letter in "diu":
            spec = width
        elif letter in "feEgGx":
            spec = width + letter
        else:
            refuse(node, f"printf's %{letter} has no form here: use %d, %u, %x, %f, %e or %g")
        inner = code.text.replace('"', "'")
        pieces.append("{" + inner + (f":{spec}" if spec else "") + "}")
    pieces.append(_escaped(text[position:]))
    if rest:
        refuse(node, "printf has more values than its text names")
    whole = "".join(pieces)
    return f'f"{whole}"{end}' if codes else f"{text!r}{end}"


def _escaped(text: str) -> str:
    return (
        text.replace("\\", "\\\\")
        .replace('"', '\\"')
        .replace("\n", "\\n")
        .replace("\t", "\\t")
        .replace("{", "{{")
        .replace("}", "}}")
    )


__all__ = ["ZERO", "CppCalls", "Itself"]
