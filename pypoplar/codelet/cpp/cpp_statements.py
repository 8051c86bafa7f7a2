"""Statements: declarations, branches, returns; functions whose bodies are written where they are called."""

from __future__ import annotations

from abc import abstractmethod

from pypoplar.codelet.cpp.cpp_inlining import CppInlining
from pypoplar.codelet.cpp.cpp_values import Broken, NumberPlace, NumberText, literal
from pypoplar.codelet.cpp.writing import Refused, refuse
from pypoplar.codelet.cpp_tree.cpp_types import BITS
from pypoplar.codelet.cpp_tree.tree import Node

_LEAVING = {
    "GOTO_STMT": "goto: write loops, break and functions", "CXX_TRY_STMT": "try: device code has no exceptions",
    "INDIRECT_GOTO_STMT": "goto: write loops, break and functions", "LABEL_STMT": "a label: write loops, break and functions",
}  # fmt: skip


class CppStatements(CppInlining):
    """Statements in order."""

    def body(self, node: Node) -> None:
        """A block, or the one statement of a branch or a loop."""
        with self.writing.scope():
            for statement in node.children if node.kind == "COMPOUND_STMT" else (node,):
                self.statement(statement)

    def statement(self, node: Node) -> None:
        """Write a statement. Where all refusals are wanted, one that has no form is left out, and what it declares, too."""
        if self.book.refusals is None:
            self.written_statement(node)
            return
        writing = self.writing
        depth, place, lines, active = writing.depth, writing.place, writing.lines, set(writing.active)
        whole, this, function = self.whole, self.this, self.function
        lengths = len(self.switches), len(self.continues), len(self.results)
        try:
            self.written_statement(node)
        except Refused as reason:
            if reason.message:
                self.book.refusals.append(reason)
            writing.depth, writing.place, writing.lines, writing.active = depth, place, lines, active
            self.whole, self.this, self.function, self.after = whole, this, function, []
            del self.switches[lengths[0] :], self.continues[lengths[1] :], self.results[lengths[2] :]
            for one in node.walk():
                if one.kind == "VAR_DECL" and one.key not in self.bindings:
                    self.bindings[one.key] = Broken()

    def written_statement(self, node: Node) -> None:
        with self.at(node):
            match node.kind:
                case "COMPOUND_STMT":
                    self.body(node)
                case "DECL_STMT":
                    for child in node.children:
                        self.declaration(child)
                case "IF_STMT":
                    self.if_statement(node)
                case "FOR_STMT" | "WHILE_STMT" | "DO_STMT" | "CXX_FOR_RANGE_STMT" | "SWITCH_STMT" | "BREAK_STMT" | "CONTINUE_STMT":
                    self.loop_statement(node)
                case "RETURN_STMT":
                    self.return_statement(node)
                case "NULL_STMT":
                    pass
                case "ASM_STMT" | "GCC_ASM_STMT" | "MS_ASM_STMT":
                    self.assembler(node)
                case kind if kind in _LEAVING:
                    refuse(node, _LEAVING[kind])
                case "UNEXPOSED_STMT" if node.parts:
                    self.statement(node.parts[-1])
                case _:
                    self.whole = node
                    self.effect(node)
                    self.whole = None
                    self.flush()

    def effect(self, node: Node) -> None:  # noqa: C901, PLR0912 - an arm for each kind of expression
        """An expression whose value nobody wants."""
        node = node.naked
        parts = node.parts
        match node.kind:
            case "UNARY_OPERATOR" if node.operator in ("++", "--", "x++", "x--"):
                symbol = "++" if "++" in node.operator else "--"
                if node.type.value.sort == "pointer":
                    pointer = self.pointer(parts[0])
                    if not pointer.at.named:
                        refuse(node, "this is no pointer that can be moved")
                    self.emit(f"{pointer.at.text} {symbol[0]}= {self.scaled(pointer, literal(1, 'i32')).text}")
                else:
                    place = self.place(parts[0])
                    if not self.stepped_view(place, node):
                        self.emit(self.step_text(place, f"{symbol[0]}=", node))
            case "BINARY_OPERATOR" if node.operator == "=":
                self.assign(node)
            case "BINARY_OPERATOR" if node.operator == ",":
                self.effect(parts[0])
                self.flush()
                self.effect(parts[1])
            case "BINARY_OPERATOR" if node.operator in ("&&", "||"):
                word = "" if node.operator == "&&" else "not "
                self.emit(f"if {word}{self.condition(parts[0]).at(3)}:")
                with self.writing.indented(), self.uncertain():
                    self.effect(parts[1])
            case "COMPOUND_ASSIGNMENT_OPERATOR":
                self.assign_compound(node)
            case "CONDITIONAL_OPERATOR":
                self.branches(self.condition(parts[0]), lambda: self.effect(parts[1]), lambda: self.effect(parts[2]))
            case "CALL_EXPR":
                found = self.call_value(node)
                if (
                    isinstance(found, NumberText)
                    and "(" in found.text
                    and found.value is None
                    and found.text.partition("(")[0] in self.book.helper_names
                ):
                    self.emit(found.text)
            case "CSTYLE_CAST_EXPR" | "CXX_STATIC_CAST_EXPR" | "CXX_FUNCTIONAL_CAST_EXPR" | "UNEXPOSED_EXPR" if parts:
                if node.changes:
                    self.effect(parts[-1])
            case "CXX_DELETE_EXPR" | "CXX_NEW_EXPR":
                refuse(node, "new and delete: the device has no heap; declare an array, float work[16];")
            case "CXX_THROW_EXPR":
                refuse(node, "throw: device code has no exceptions; write assert(condition)")
            case _:
                if node.changes:
                    self.value(node)

    def assembler(self, node: Node) -> None:
        tokens = [token.spelling for token in node.cursor.get_tokens()]
        texts = [token for token in tokens if token.startswith('"')]
        if len(texts) == 1 and texts[0].strip('"').strip() in ("nop", ""):
            return
        words = {word for text in texts for word in text.strip('"').replace("\\n", " ").split()}
        if words & {"run", "runall"}:
            refuse(
                node, "workers started by assembler: write a MultiVertex, whose bool compute(unsigned worker) runs on each of them"
            )
        if "sync" in words:
            refuse(node, "a wait for workers in assembler: write a MultiVertex, behind whose compute all workers are waited for")
        refuse(node, "inline assembler: write it in C++, or with an intrinsic; only nop is taken")

    # declarations

    # structs

    # branches

    def if_statement(self, node: Node) -> None:
        condition, then, orelse = self.parts_of_if(node)
        if condition.value is not None:
            taken = then if condition.value else orelse
            if taken is not None:
                self.body(taken)
            return
        self.branches(condition, lambda: self.body(then), (lambda: self.body(orelse)) if orelse is not None else None)

    def parts_of_if(self, node: Node) -> tuple[NumberText, Node, Node | None]:
        children = [child for child in node.children if not child.kind.endswith("_REF")]
        while children and children[0].kind in ("DECL_STMT", "VAR_DECL"):
            first = children.pop(0)
            if first.kind == "VAR_DECL":
                self.declaration(first)
                place = self.bindings[first.key]
                if not isinstance(place, NumberPlace):
                    refuse(node, "a condition that declares what is no number")
                if len(children) in (2, 3) and children[0].kind not in ("COMPOUND_STMT",) and children[0].type.sort == "number":
                    children.pop(0)
                return self.converted(self.read(place), "bool", node), children[0], children[1] if len(children) > 1 else None
            self.statement(first)
        if len(children) not in (2, 3):
            refuse(node, "this if has no form here: write the statement before it on a line of its own")
        self.whole = children[0]
        condition = self.condition(children[0])
        self.whole = None
        if self.after:
            condition = self.kept(condition)
            self.flush()
        return condition, children[1], children[2] if len(children) == 3 else None

    def branches(self, condition: NumberText, then: object, orelse: object) -> None:
        self.emit(f"if {condition.text}:")
        with self.writing.indented(), self.uncertain():
            then()  # type: ignore[operator]
        if orelse is None:
            return
        with self.writing.apart() as lines:
            self.writing.depth += 1
            with self.uncertain():
                orelse()  # type: ignore[operator]
            self.writing.depth -= 1
        if not lines:
            return
        if lines[0].text.startswith("if ") and all(
            line.depth > lines[0].depth or line.text.startswith(("elif ", "else:")) for line in lines[1:]
        ):
            lines[0].text = "el" + lines[0].text
            for line in lines:
                line.depth -= 1
        else:
            self.emit("else:")
        self.writing.lines += lines

    def return_statement(self, node: Node) -> None:
        parts = node.parts
        if self.results:
            refuse(node, "a return from the middle of a function that is written where it is called: have one return, at its end")
        if not parts:
            self.emit("return")
            return
        self.whole = parts[0]
        type = self.book.result_of(self.function) if self.function is not None else "bool"
        code = self.converted(self.number(parts[0]), type, node)
        code = self.exactly(code)
        self.whole = None
        if self.after:
            code = self.kept(code)
            self.flush()
        self.emit(f"return {code.text}")

    # functions that are written where they are called

    @abstractmethod
    def loop_statement(self, node: Node) -> None:
        """A loop, a switch, or what leaves one."""


__all__ = ["BITS", "CppStatements"]
