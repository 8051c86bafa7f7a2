"""Loops, switch, and what leaves them. A loop that counts becomes range, any other while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attrs import evolve

from pypoplar.codelet.cpp.cpp_places import is_array, is_container
from pypoplar.codelet.cpp.cpp_statements import CppStatements
from pypoplar.codelet.cpp.cpp_values import SUM, NumberPlace, NumberText, Pointer, Rows, VectorName, literal
from pypoplar.codelet.cpp.memory_views import ZERO
from pypoplar.codelet.cpp.writing import refuse
from pypoplar.codelet.cpp_tree.changes import aliased_locals, changed_fields, changed_locals
from pypoplar.codelet.cpp_tree.cpp_types import register
from pypoplar.codelet.cpp_tree.tree import Node

_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


class CppLoops(CppStatements):
    """Statements that repeat."""

    def loop_statement(self, node: Node) -> None:
        match node.kind:
            case "FOR_STMT":
                self.for_loop(node)
            case "WHILE_STMT":
                self.while_loop(node)
            case "DO_STMT":
                self.do_loop(node)
            case "CXX_FOR_RANGE_STMT":
                self.for_range(node)
            case "SWITCH_STMT":
                self.switch(node)
            case "BREAK_STMT":
                if not self.switches or self.switches[-1] != "loop":
                    refuse(node, "a break inside of a branch of switch: let break be the last statement of its case")
                self.emit("break")
            case "CONTINUE_STMT":
                if not self.continues:
                    refuse(node, "continue outside of a loop")
                self.continues[-1]()
                self.emit("continue")

    @contextmanager
    def looping(self, before_continue: Callable[[], None] = lambda: None) -> Iterator[None]:
        self.continues.append(before_continue)
        self.switches.append("loop")
        with self.uncertain():
            yield
        self.switches.pop()
        self.continues.pop()

    # for

    def for_loop(self, node: Node) -> None:
        initial, condition, increment, body = self.header(node)
        with self.writing.scope():
            counted = self.counted_loop(initial, condition, increment, body)
            if counted is not None:
                declared, ranged, held, counts = counted
                name = self.writing.local(declared.name, held)
                self.bindings[declared.key] = NumberPlace(name, declared.type.code, held, counts=counts, is_local=True)
                self.emit(f"for {name} in {ranged}:")
                with self.writing.indented(), self.looping():
                    self.body(body)
                return
            if initial is not None:
                self.statement(initial)
            self.while_form(condition, body, increment)

    def header(self, node: Node) -> tuple[Node | None, Node | None, Node | None, Node]:
        """The four parts of ``for (a; b; c) body``, of which the tree leaves out those that are empty."""
        children = list(node.children)
        body = children.pop()
        if len(children) == 3:
            return children[0], children[1], children[2], body
        parts: list[Node | None] = []
        for is_there in _parts_there(node, 3 - len(children)):
            parts.append(children.pop(0) if is_there and children else None)
        if children:
            refuse(node, "this for has no form here: write it as while")
        return parts[0], parts[1], parts[2], body

    def counted_loop(
        self, initial: Node | None, condition: Node | None, increment: Node | None, body: Node
    ) -> tuple[Node, str, str, bool] | None:
        """Variable, range, type, and whether it only has numbers from zero on; None for a loop that does not count."""
        if initial is None or condition is None or increment is None or initial.kind != "DECL_STMT" or len(initial.children) != 1:
            return None
        declared = initial.children[0]
        if declared.kind != "VAR_DECL" or declared.type.sort != "number" or declared.type.code not in ("i32", "u32", "i64", "u64"):
            return None
        step = self.step_of(increment, declared)
        bound = self.bound_of(condition, declared)
        if step is None or bound is None or declared.key in changed_locals(body):
            return None
        symbol, end = bound
        upwards = step.value is None or int(step.value) > 0
        if step.value is None or (symbol in ("<", "<=") and not upwards) or (symbol in (">", ">=") and upwards):
            return None
        if symbol == "!=" and int(step.value) not in (1, -1):
            return None
        if not self.is_fixed(end, body):
            return None
        type = declared.type.code
        start_node = declared.parts[-1] if declared.parts else None
        if start_node is None:
            return None
        start = self.converted(self.number(start_node), type, declared)
        stop = self.converted(self.number(end), type, end) if end.type.value.code != type else self.number(end)
        return self.ranged(declared, start, stop, step, symbol)

    def ranged(
        self, declared: Node, start: NumberText, stop: NumberText, step: NumberText, symbol: str
    ) -> tuple[Node, str, str, bool] | None:
        type, by = declared.type.code, int(step.value or 0)
        if type in ("u32", "u64") and by < 0:
            return None
        if symbol == "!=" and not (by == 1 and start.value is not None and (stop.counts or (type[0] == "u" and start.value == 0))):
            return None
        wanted = "i32" if type in ("i32", "u32") and start.counts and (stop.counts or type == "i32") else register(type)
        if start.value is not None and stop.value is not None:
            wanted = "i32" if type in ("i32", "u32") and start.counts and stop.counts else wanted
        if not (stop.weak or (stop.counts and wanted == "i32")):
            stop = self.exactly(stop)
        if not (start.weak or (start.counts and wanted == "i32")):
            start = self.exactly(start)
        counts = start.counts and type in ("i32", "u32") and (by > 0) and (stop.counts or type == "i32")
        if by < 0:
            counts = symbol in (">=", ">") and stop.value is not None and int(stop.value) >= 0 and wanted == "i32"
        if symbol in ("<=", ">="):
            shift = 1 if symbol == "<=" else -1
            if stop.value is not None:
                stop = literal(int(stop.value) + shift, stop.type if wanted != "i32" else "i32")
            else:
                stop = NumberText(f"{stop.at(SUM)} {'+' if shift > 0 else '-'} 1", stop.type, stop.held, SUM)
        held = wanted
        if start.weak and stop.weak:
            held = "i32" if wanted == "i32" else wanted
            if wanted != "i32":
                stop = self.typed(stop)
        texts = [stop.text] if start.value == 0 and by == 1 else [start.text, stop.text]
        if by != 1:
            texts.append(str(by))
        return declared, f"{self.use('range')}({', '.join(texts)})", held, counts

    def step_of(self, increment: Node, declared: Node) -> NumberText | None:
        increment = increment.naked
        if not increment.parts:
            return None
        name = increment.parts[0].naked
        if name.kind != "DECL_REF_EXPR" or name.referenced is None or name.referenced.key != declared.key:
            return None
        if increment.kind == "UNARY_OPERATOR" and increment.operator in ("++", "--", "x++", "x--"):
            return literal(1 if "++" in increment.operator else -1, "i32")
        if increment.kind == "COMPOUND_ASSIGNMENT_OPERATOR" and increment.operator in ("+=", "-="):
            value = increment.parts[1].constant
            if isinstance(value, int) and 0 < value < 2**31:
                return literal(value if increment.operator == "+=" else -value, "i32")
        return None

    def bound_of(self, condition: Node, declared: Node) -> tuple[str, Node] | None:
        condition = condition.naked
        if condition.kind != "BINARY_OPERATOR" or condition.operator not in _MIRRORED:
            return None
        left, right = condition.parts
        symbol = condition.operator
        if not _is_name(left, declared):
            left, right, symbol = right, left, _MIRRORED[symbol]
        return (symbol, right) if _is_name(left, declared) else None

    def is_fixed(self, end: Node, body: Node) -> bool:
        """Whether the end of a loop is the same in all its rounds."""
        if end.constant is not None:
            return True
        if end.changes and not _is_size(end):
            return all(self.is_fixed(part, body) for part in end.parts) if _only_sizes(end) else False
        fields = changed_fields(body)
        return not any(self.may_change(node, body, fields) for node in end.walk())

    def may_change(self, node: Node, body: Node, fields: frozenset[str] | None) -> bool:
        """Whether a part of an expression may have another value in another round."""
        match node.kind:
            case "DECL_REF_EXPR":
                declared = node.referenced
                is_local = declared is not None and declared.kind in ("VAR_DECL", "PARM_DECL") and not is_container(declared.type)
                if not is_local or declared is None:
                    return False
                return declared.type.sort != "number" or declared.key in changed_locals(body) or self.is_aliased(declared)
            case "MEMBER_REF_EXPR" if node.type.value.sort == "number":
                field = self.book.fields.get(node.name)
                return field is None or ((fields is None or node.name in fields) and field.access != "input")
            case "ARRAY_SUBSCRIPT_EXPR":
                return True
            case "UNARY_OPERATOR":
                return node.operator == "*"
            case "CALL_EXPR":
                is_row = node.name == "operator[]" and is_container(node.type)
                return not _is_size(node) and not is_row and not (node.name.startswith("operator") and self.is_input(node))
        return False

    def is_aliased(self, declared: Node) -> bool:
        """Whether a local may be changed by another name than its own."""
        if declared.cursor.type.is_const_qualified():
            return False
        function = self.function
        if function is None or function.key != declared.cursor.semantic_parent.hash:
            function = Node(declared.cursor.semantic_parent)
        return declared.key in aliased_locals(function)

    def is_input(self, node: Node) -> bool:
        names = [one.name for one in node.walk() if one.kind == "MEMBER_REF_EXPR" and one.name in self.book.fields]
        return bool(names) and all(self.book.fields[name].access == "input" for name in names)

    # while

    def while_loop(self, node: Node) -> None:
        children = list(node.children)
        if children[0].kind == "VAR_DECL":
            refuse(node, "a while that declares a variable: declare it before, and set it at the end of the body")
        with self.writing.scope():
            self.while_form(children[0], children[1], None)

    def while_form(self, condition: Node | None, body: Node, increment: Node | None) -> None:
        """``while (condition) { body; increment; }``."""
        with self.writing.apart() as before:
            self.writing.depth += 1
            self.whole = condition
            code = None if condition is None else self.condition(condition)
            self.whole = None
            waiting, self.after = self.after, []
            if waiting and code is not None:
                code = self.kept(code)
                for text in waiting:
                    self.emit(text)
            self.writing.depth -= 1
        always = code is None or code.value is True
        self.emit(f"while {'True' if always or before or code is None else code.text}:")
        with self.writing.indented():
            if before and code is not None:
                self.writing.lines += before
                self.emit(f"if not {code.at(3)}:")
                with self.writing.indented():
                    self.emit("break")

            def step() -> None:
                if increment is not None:
                    self.whole = increment
                    self.effect(increment)
                    self.whole = None
                    self.flush()

            with self.looping(step):
                self.body(body)
                if not _leaves(body):
                    with self.at(increment if increment is not None else body):
                        step()

    def do_loop(self, node: Node) -> None:
        body, condition = node.children

        def test() -> None:
            self.whole = condition
            code = self.condition(condition)
            self.whole = None
            if self.after:
                code = self.kept(code)
                self.flush()
            if code.value is True:
                return
            self.emit("break" if code.value is False else f"if not {code.at(3)}:")
            if code.value is None:
                with self.writing.indented():
                    self.emit("break")

        def before_continue() -> None:
            test()

        self.emit("while True:")
        with self.writing.indented(), self.looping(before_continue):
            self.body(body)
            if not _leaves(body):
                with self.at(condition):
                    test()

    # for (x : vector)

    def for_range(self, node: Node) -> None:
        parts = [child for child in node.children if not child.kind.endswith("_REF")]
        variable, body = parts[0], parts[-1]
        vector_node = parts[-2]
        with self.writing.scope():
            if vector_node.type.value.spelling.removeprefix("const ") == "pypoplar::WorkerRange":
                self.worker_share(variable, vector_node, body)
                return
            vector = (
                self.pointer(vector_node)
                if vector_node.type.value.sort == "array" or is_array(vector_node.type)
                else self.container(vector_node)
            )
            type = variable.type
            if isinstance(vector, Rows):
                name = self.writing.local(variable.name, "span")
                self.bindings[variable.key] = VectorName(name, vector.to)
                self.emit(f"for {name} in {vector.text}:")
            elif type.sort != "reference" and isinstance(vector, VectorName):
                element = self.element_type(vector.to, node)
                code = NumberText(variable.name, element, register(element), counts=element in ("u8", "u16"), named=True)
                if type.value.code == element:
                    name = self.writing.local(variable.name, register(element))
                    self.bindings[variable.key] = NumberPlace(name, element, register(element), is_local=True)
                    self.emit(f"for {name} in {vector.text}:")
                else:
                    held = self.writing.temporary(register(element), f"{variable.name}_element")
                    self.emit(f"for {held} in {vector.text}:")
                    name = self.writing.local(variable.name, register(type.value.code))
                    self.writing.depth += 1
                    code = self.converted(evolve(code, text=held), type.value.code, node)
                    self.emit(self.declared(name, code, type.value.code))
                    self.writing.depth -= 1
                    self.bindings[variable.key] = NumberPlace(name, type.value.code, register(type.value.code), is_local=True)
            else:
                span = (
                    vector if isinstance(vector, Pointer) else Pointer(self.kept_span(vector.text, variable.name), ZERO, vector.to)
                )
                length = (
                    str(vector_node.type.value.count or self.array_type(vector_node.type).count)
                    if isinstance(vector, Pointer)
                    else f"{self.use('len')}({span.span})"
                )
                name = self.writing.local("i", "i32")
                index = NumberText(name, "i32", "i32", counts=True, named=True)
                if span.to.value.sort != "number":
                    refuse(node, "a loop over the rows of an array: write it with an index")
                place = self.element(span, index, node)
                self.emit(f"for {name} in {self.use('range')}({length}):")
                if type.sort != "reference":
                    local = self.writing.local(variable.name, register(type.code))
                    self.writing.depth += 1
                    self.emit(self.declared(local, self.converted(self.read(place), type.code, node), type.code))
                    self.writing.depth -= 1
                    place = NumberPlace(local, type.code, register(type.code), is_local=True)
                self.bindings[variable.key] = place
            with self.writing.indented(), self.looping():
                self.body(body)

    def worker_share(self, variable: Node, shared: Node, body: Node) -> None:
        """``for (int i : pypoplar::workerRange(worker, out))``, which Python has as `ipu.worker_range`."""
        calls = [one for one in shared.walk() if one.kind == "CALL_EXPR" and one.name == "workerRange"]
        if not calls or variable.type.sort != "number":
            refuse(shared, "write for (int i : pypoplar::workerRange(worker, out)): it stands in a range-for only")
        worker, of = calls[0].parts[-2:]
        if of.type.value.sort == "number":
            shown = self.exactly(self.converted(self.number(of), "i32", of)).text
        else:
            vector = self.container(of)
            if not isinstance(vector, VectorName | Rows):
                refuse(of, "what workers share is a vector, a list of rows, or a number")
            shown = vector.text
        number = self.exactly(self.converted(self.number(worker), "i32", worker)).text
        name = self.writing.local(variable.name, "i32")
        self.bindings[variable.key] = NumberPlace(name, variable.type.value.code, "i32", counts=True, is_local=True)
        self.emit(f"for {name} in {self.use('ipu.worker_range')}({number}, {shown}):")
        with self.writing.indented(), self.looping():
            self.body(body)

    # switch

    def switch(self, node: Node) -> None:
        """Cases, each of which ends in break, return or continue, or is empty."""
        test, body = node.children[-2], node.children[-1]
        self.whole = test
        code = self.number(test)
        self.whole = None
        self.flush()
        cases = _cases(body, node)
        if code.value is not None:
            chosen = next((case for case in cases if code.value in case[0]), None) or next(
                (case for case in cases if None in case[0]), None
            )
            if chosen is not None:
                self.case(chosen[1])
            return
        code = self.exactly(code)
        if not code.named:
            code = self.kept(code, "choice")
        cases.sort(key=lambda case: None in case[0])
        first = True
        for values, statements in cases:
            tests = " or ".join(f"{code.text} == {self.constant(value, code.type).text}" for value in values if value is not None)
            if None in values:
                if first:
                    self.case(statements)
                    return
                self.emit("else:")
            else:
                self.emit(f"{'if' if first else 'elif'} {tests}:")
            first = False
            with self.writing.indented(), self.uncertain():
                self.case(statements)

    def case(self, statements: list[Node]) -> None:
        self.switches.append("switch")
        with self.writing.scope():
            for statement in statements:
                self.statement(statement)
        self.switches.pop()


def _cases(body: Node, node: Node) -> list[tuple[list[int | None], list[Node]]]:
    cases: list[tuple[list[int | None], list[Node]]] = []
    fresh = False
    for statement in body.children:
        while statement.kind in ("CASE_STMT", "DEFAULT_STMT"):
            value = None if statement.kind == "DEFAULT_STMT" else statement.children[0].constant
            if not fresh:
                cases.append(([], []))
            cases[-1][0].append(None if value is None else int(value))
            fresh = True
            statement = statement.children[-1]
        if not cases:
            refuse(node, "a statement of switch before its first case")
        fresh = False
        cases[-1][1].append(statement)
    for position, (_, statements) in enumerate(cases):
        flat = statements
        while len(flat) == 1 and flat[0].kind == "COMPOUND_STMT":
            flat = list(flat[0].children)
        if flat and flat[-1].kind == "COMPOUND_STMT" and len(flat) > 1:
            flat = [*flat[:-1], *flat[-1].children]
        if flat and flat[-1].kind == "BREAK_STMT":
            flat = flat[:-1]
        elif position + 1 < len(cases) and not (flat and (_leaves(flat[-1]))):
            refuse(node, "a case that goes on into the next one: end it with break, or write the next one's statements into it")
        statements[:] = flat
    return cases


def _leaves(node: Node) -> bool:
    """Whether what follows a statement is not reached."""
    if node.kind in ("RETURN_STMT", "CONTINUE_STMT", "BREAK_STMT"):
        return True
    return node.kind == "COMPOUND_STMT" and bool(node.children) and _leaves(node.children[-1])


def _is_name(node: Node, declared: Node) -> bool:
    node = node.naked
    return node.kind == "DECL_REF_EXPR" and node.referenced is not None and node.referenced.key == declared.key


def _is_size(node: Node) -> bool:
    node = node.naked
    return node.kind == "CALL_EXPR" and node.name == "size"


def _only_sizes(node: Node) -> bool:
    """Whether all that an expression calls are sizes and elements."""
    return all(
        child.name in ("size", "min", "max") or child.name.startswith("operator")
        for child in node.walk()
        if child.kind == "CALL_EXPR"
    ) and not any(
        (child.kind == "UNARY_OPERATOR" and child.operator in ("++", "--", "x++", "x--"))
        or child.kind == "COMPOUND_ASSIGNMENT_OPERATOR"
        or (child.kind == "BINARY_OPERATOR" and child.operator == "=")
        for child in node.walk()
    )


def _parts_there(node: Node, missing: int) -> list[bool]:
    """Which of the three parts in the header of a for are there."""
    tokens = [token.spelling for token in node.cursor.get_tokens()]
    if "(" not in tokens:
        refuse(node, "this for has no form here: write it as while")
    depth, parts, filled = 0, [], False
    for token in tokens[tokens.index("(") :]:
        if token in ("(", "[", "{"):
            depth += 1
            filled = filled or depth > 1
        elif token in (")", "]", "}"):
            depth -= 1
            if depth == 0:
                parts.append(filled)
                break
        elif token == ";" and depth == 1:
            parts.append(filled)
            filled = False
        else:
            filled = True
    if len(parts) != 3 or parts.count(False) != missing:
        refuse(node, "this for has no form here: write it as while")
    return parts
