"""Functions whose bodies are written where they are called: those that get references, structs and lambdas."""

from __future__ import annotations

from attrs import evolve

from pypoplar.codelet.cpp.cpp_places import is_array, is_container
from pypoplar.codelet.cpp.cpp_values import Itself, NumberPlace, NumberText, Value, VectorLanes
from pypoplar.codelet.cpp.declarations import Declarations
from pypoplar.codelet.cpp.writing import refuse
from pypoplar.codelet.cpp_tree.changes import ends, is_changed
from pypoplar.codelet.cpp_tree.cpp_types import register, type_of
from pypoplar.codelet.cpp_tree.declarations_of import is_place
from pypoplar.codelet.cpp_tree.tree import Node


class CppInlining(Declarations):
    """Calls that become the statements of what is called."""

    def bind_parameters(self, node: Node, parameters: list[Node], arguments: list[Node]) -> None:
        for parameter, argument in zip(parameters, arguments, strict=False):
            type = parameter.type
            if type.sort == "reference" or is_container(type):
                bound = self.reference(parameter, argument)
            elif "(lambda at" in type.spelling:
                bound = self.lambda_of(argument)
            elif type.sort == "number":
                code = self.converted(self.number(argument), type.code, node)
                if code.value is not None and not is_changed(Node(parameter.cursor.semantic_parent), parameter):
                    bound = self.constant(code.value, type.code)
                else:
                    name = self.writing.local(parameter.name or "t", register(type.code))
                    self.emit(self.declared(name, code, type.code))
                    bound = NumberPlace(name, type.code, register(type.code), is_local=True)
            elif type.sort == "vector":
                bound = self.new_lanes(parameter.name or "t", self.codes(self.lanes(argument)), type)
            elif type.sort == "pointer" and type.to is not None and type.to.sort == "other":
                bound = self.function_named(parameter, argument, is_changed(Node(parameter.cursor.semantic_parent), parameter))
            elif type.sort == "pointer":
                pointer = self.pointer(argument)
                at = evolve(pointer.at, type="i32")
                span = self.kept_span(pointer.span, parameter.name)
                if is_changed(Node(parameter.cursor.semantic_parent), parameter) or at.value is None:
                    name = self.writing.local(parameter.name, "i32")
                    self.emit(f"{name} = {at.text if at.weak else self.exactly(at).text}")
                    at = NumberText(name, "i32", "i32", named=True)
                bound = evolve(pointer, span=span, at=at)
            elif type.sort == "record" and not is_array(type):
                bound = self.copied(self.struct(argument), parameter.name)
            else:
                refuse(node, f"an argument of type {type.spelling} has no form here")
            self.bindings[parameter.key] = bound

    def inlined(
        self, node: Node, function: Node, parameters: list[Node], arguments: list[Node], this: Value | None
    ) -> Value | None:
        body = next((child for child in function.children if child.kind == "COMPOUND_STMT"), None)
        if body is None:
            refuse(node, f"'{function.name}' has no body that is known here")
        if function.key in self.results:
            refuse(node, f"recursion ({function.name}): device code has no call stack; write a loop")
        if len(arguments) < len(parameters):
            refuse(node, "default arguments: write them out")
        before, whole, outer = self.this, self.whole, self.function
        self.bind_parameters(node, parameters, arguments)
        self.this = this if not isinstance(this, Itself) else None
        self.whole = None
        self.function = function
        self.results.append(function.key)
        written = len(self.writing.lines)
        result = self.written(list(body.children), node)
        self.results.pop()
        self.this, self.whole, self.function = before, whole, outer
        if len(self.writing.lines) > written and _has_other_calls(whole):  # another call may change what it is made of
            if isinstance(result, NumberText):
                return self.kept(result)
            if isinstance(result, VectorLanes):
                return self.kept_lanes(result)
        return result

    def written(self, statements: list[Node], node: Node) -> Value | None:
        """Statements, the last of which may return; early returns in branches become the branches of the rest."""
        for position, statement in enumerate(statements):
            rest = statements[position + 1 :]
            if statement.kind == "RETURN_STMT":
                return self.returned(statement)
            if statement.kind == "COMPOUND_STMT" and _returns(statement):
                return self.written([*statement.children, *rest], node)
            if statement.kind == "IF_STMT" and _returns(statement):
                return self.early(statement, rest, node)
            if _returns(statement):
                refuse(node, "a return inside a loop of a function that gets references or structs: have one return, at its end")
            self.statement(statement)
        return None

    def returned(self, statement: Node) -> Value | None:
        with self.at(statement):
            if not statement.parts:
                return None
            part = statement.parts[0]
            type = (
                type_of(self.function.cursor.result_type)
                if self.function is not None and self.function.kind != "LAMBDA_EXPR"
                else part.type
            )
            if type.value.sort == "number":
                if type.sort == "reference" and is_place(part.naked):
                    return self.place(part.naked)
                self.whole = part
                code = self.converted(self.number(part), type.value.code, statement)
                self.whole = None
                if self.after:
                    code = self.kept(code)
                    self.flush()
                return code
            if type.sort == "void" or part.type.sort == "void":
                self.effect(part)
                return None
            return self.value(part)

    def early(self, statement: Node, rest: list[Node], node: Node) -> Value | None:  # noqa: C901, PLR0912 - two branches, of each its value
        """``if (c) return a; rest``."""
        condition, then, orelse = self.parts_of_if(statement)
        yes, no = [then], [*([orelse] if orelse is not None else [])]
        if not ends(then):
            yes += rest
        if orelse is None or not ends(orelse):
            no += rest
        if condition.value is not None:
            return self.written(yes if condition.value else no, node)
        made = []
        for part in (yes, no):
            with self.writing.apart() as lines, self.writing.scope(), self.uncertain():
                made.append((self.written(part, node), lines))
        results = [self.read(value) if isinstance(value, NumberPlace) else value for value, _ in made]
        name = ""
        if all(isinstance(value, VectorLanes) for value in results):
            lanes = [[self.exactly(code) for code in self.codes(value)] for value in results if isinstance(value, VectorLanes)]
            assert isinstance(results[0], VectorLanes)
            return self.branched(condition, lanes, [lines for _, lines in made], results[0].type)
        if any(isinstance(value, NumberText) for value in results):
            codes = [value for value in results if isinstance(value, NumberText)]
            if len(codes) < 2:
                refuse(node, "a function that returns a value on some paths only")
            name = self.writing.temporary(register(codes[0].type), "result")
        elif any(value is not None for value in results):
            refuse(node, "a function with several returns gives a number: return structs and pointers at one place")
        for header, value, (_, lines) in ((f"if {condition.text}:", results[0], made[0]), ("else:", results[1], made[1])):
            if not lines and value is None and header == "else:":
                continue
            self.emit(header)
            self.paste(lines)
            self.writing.depth += 1
            if isinstance(value, NumberText):
                self.emit(f"{name} = {self.exactly(value).text}")
            elif not lines:
                self.emit("pass")
            self.writing.depth -= 1
        if not name:
            return None
        type = codes[0].type
        return NumberText(name, type, register(type), named=True)


def _returns(node: Node) -> bool:
    if node.kind == "LAMBDA_EXPR":
        return False
    return node.kind == "RETURN_STMT" or any(_returns(child) for child in node.children)


def _has_other_calls(whole: Node | None) -> bool:
    """Whether an expression may call more than one function, or is not known as a whole."""
    if whole is None:
        return True
    return sum(node.kind == "CALL_EXPR" and _is_function(node.name) for node in whole.walk()) > 1


def _is_function(name: str) -> bool:
    """Whether a call is of a function or a lambda, and not of another operator."""
    return name == "operator()" or not name.startswith("operator")
