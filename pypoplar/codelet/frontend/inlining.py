"""Helper functions: each call is replaced by the function's body, with the types of its arguments."""

from __future__ import annotations

import ast
from abc import abstractmethod

from pypoplar.codelet.frontend.calls import Calls
from pypoplar.codelet.frontend.expressions import FALSE
from pypoplar.codelet.frontend.inference import Number, RecordView, TupleValue, Value, View, Weak
from pypoplar.codelet.frontend.locals import LocalContent
from pypoplar.codelet.frontend.translator_state import FunctionScope, nodes_of, stored_names
from pypoplar.codelet.ir.typed import Apply, Local, Once
from pypoplar.codelet.language.diagnostics import STARS
from pypoplar.spelling import nearest

_MOST_CALLS = 5000


class Inlining(Calls):
    """Calls of helper functions and of the vertex's own methods."""

    @abstractmethod
    def body(self, statements: list[ast.stmt]) -> None:
        """Translate statements, one after the other."""

    @abstractmethod
    def assign_name(self, target: ast.Name, value: Value, node: ast.expr) -> None:
        """Let a name stand for a value."""

    @abstractmethod
    def declare(self, frame: FunctionScope) -> None:
        """Note the types that a function's annotations give to its locals."""

    def helper(self, node: ast.Call, number: int, first: Value | None) -> Value:
        self._refuse_recursion(node, number)
        self.inlined += 1
        if self.inlined > _MOST_CALLS:
            self.refuse(node, f"helper functions of helper functions: more than {_MOST_CALLS} calls when all are written out")
        name = self.source.functions[number].name
        arguments = self._bind(node, number, first)
        frame = self.enter(number, f"_{name}{self.inlined}")
        self.declare(frame)
        stored = stored_names(frame.tree)
        for parameter, (value, where) in arguments.items():
            if parameter not in stored:
                frame.bound[parameter] = self.pin(value)
            elif isinstance(value, View):
                self.assign_span(frame.names[parameter], value, where, parameter)
            else:
                self.assign_number(frame.names[parameter], self._plain(value, where), where, parameter)
        self.helpers[name] = None
        reached = self.locals.assigned
        self.frames.append(frame)
        result = self._inline(node, frame)
        self.frames.pop()
        self.spare += frame.arrays
        self.locals.assigned = reached if self.locals.assigned is not None or frame.ended else None
        if isinstance(result, Local):
            self.locals.assign(result.name)
        return result

    def _plain(self, value: Value, node: ast.AST) -> Number:
        if not isinstance(value, Weak | Local) and not hasattr(value, "type"):
            self.refuse(node, f"the helper function assigns to this parameter, which is {self.described(value)}")
        return value  # type: ignore[return-value]

    def _refuse_recursion(self, node: ast.Call, number: int) -> None:
        numbers = [frame.number for frame in self.frames]
        if number in numbers:
            names = [frame.source.name for frame in self.frames[numbers.index(number) :]]
            cycle = " -> ".join([*names, names[0]])
            self.refuse(node, f"recursion ({cycle}): device code has no call stack; write a loop")

    # arguments

    def _bind(self, node: ast.Call, number: int, first: Value | None) -> dict[str, tuple[Value, ast.AST]]:
        """The values of the parameters, evaluated in the order of the call; defaults where it leaves them out."""
        tree, source = self.tree_of(number), self.source.functions[number]
        parameters = tree.args
        if parameters.vararg or parameters.kwarg:
            self.refuse(node, f"{source.name} takes * arguments, which device code has not: name its parameters")
        positional = [parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)]
        every = positional + [parameter.arg for parameter in parameters.kwonlyargs]
        bound: dict[str, tuple[Value, ast.AST]] = {}
        free = list(positional)
        if first is not None and free:
            bound[free.pop(0)] = (first, node)
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                self.refuse(argument, STARS)
            if not free:
                self.refuse(argument, f"{source.name} takes {len(positional)} positional argument{'s' * (len(positional) != 1)}")
            bound[free.pop(0)] = (self._argument(argument), argument)
        unnamed = {parameter.arg for parameter in parameters.posonlyargs}
        for keyword in node.keywords:
            name = self._keyword(keyword, source.name, every, unnamed)
            if name in bound:
                self.refuse(keyword, f"{source.name} gets '{name}' twice")
            bound[name] = (self._argument(keyword.value), keyword.value)
        for name in every:
            if name not in bound and name in source.defaults:
                bound[name] = (self.meant(node, source.defaults[name]), node)
            elif name not in bound:
                self.refuse(node, f"{source.name} needs a value for '{name}'")
        return bound

    def _keyword(self, keyword: ast.keyword, function: str, every: list[str], unnamed: set[str]) -> str:
        """The parameter that an argument is given to by its name; those in `unnamed` cannot be."""
        if keyword.arg is None:
            self.refuse(keyword.value, STARS)
        if keyword.arg not in every or keyword.arg in unnamed:
            self.refuse(keyword, f"{function} has no parameter '{keyword.arg}'{nearest(keyword.arg, every)}")
        return keyword.arg

    def _argument(self, node: ast.expr) -> Value:
        value = self.value(node)
        if isinstance(value, TupleValue):
            self.refuse(node, "an argument is a number, a vector or the vertex; unpack several values first")
        return value

    # results

    def _inline(self, node: ast.Call, frame: FunctionScope) -> Value:
        statements = frame.tree.body
        returns = [statement for statement in nodes_of(frame.tree) if isinstance(statement, ast.Return)]
        if not returns or (len(returns) == 1 and statements[-1] is returns[0]):
            return self._straight(frame, returns)
        arities = {_arity(statement) for statement in returns}
        if len(arities) > 1:
            self.refuse(returns[-1], f"{frame.source.name} returns different numbers of values; return as many everywhere")
        arity = arities.pop()
        prefix = f"{frame.source.name}{self.inlined}"
        frame.results = tuple(self.hidden(f"{prefix}_result{position}") for position in range(max(arity, 0)))
        if any(_returns_inside(loop) for loop in nodes_of(frame.tree) if isinstance(loop, ast.For | ast.While)):
            frame.returned = self.hidden(f"{prefix}_returned")
        with self.block() as inner:
            if frame.returned is not None:
                self.emit(Apply(Local(frame.returned, "bool"), "copy_bool", (FALSE,), self.where(node)))
            self.body(statements)
            if self.locals.assigned is not None and arity >= 0:
                self.refuse(frame.tree, f"{frame.source.name} may end without a return value: return one on every path")
        self.emit(Once(tuple(inner)))
        values = tuple(Local(name, self.locals.type(name) or "i32") for name in frame.results)
        return TupleValue(values) if arity != 1 else values[0]

    def _straight(self, frame: FunctionScope, returns: list[ast.Return]) -> Value:
        """A function with one return, at its end, or with none."""
        statements = frame.tree.body
        if not returns:
            self.body(statements)
            return TupleValue(())
        self.body(statements[:-1])
        value = returns[0].value
        if self.locals.assigned is None or value is None or (isinstance(value, ast.Constant) and value.value is None):
            return TupleValue(())
        result = self.value(value)
        self.refuse_ended(result, value)
        return result

    def return_from_helper(self, node: ast.Return, frame: FunctionScope) -> None:
        """Set the results and mark the path as ended; the caller leaves the block."""
        frame.ended = True
        if node.value is None or not frame.results:
            return
        nodes = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        values = [self.value(where) for where in nodes]
        if len(values) == 1 and isinstance(values[0], TupleValue):
            self.refuse(node, "return the values one by one: a, b = f(x), then return a, b")
        for unique, value, where in zip(frame.results, values, nodes, strict=True):
            if isinstance(value, View):
                kind = "record" if isinstance(value, RecordView) else "vector"
                self.refuse(where, f"a helper function that returns a {kind} has one return, at its end")
            self.assign_number(unique, self._plain(value, where), where, frame.source.name, flexible=True)

    @abstractmethod
    def assign_number(self, unique: str, number: Number, node: ast.AST, shown: str, flexible: bool = False) -> None:
        """Set a local, `shown` to the user; a `flexible` one is a helper's result, where a literal takes the others' type."""

    def hidden(self, name: str) -> str:
        """A name for a local of our own that keeps its name from pass to pass."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def content_of(number: Number, flexible: bool) -> LocalContent:
    """What an assignment of `number` says of a local's type. The type of a `flexible` one stays open for a literal."""
    if isinstance(number, Weak):
        return LocalContent(weak=(number,)) if flexible else LocalContent(number.alone)
    return LocalContent(number.type)


def _arity(node: ast.Return) -> int:
    """How many values a return gives; -1 for none."""
    if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
        return -1
    return len(node.value.elts) if isinstance(node.value, ast.Tuple) else 1


def _returns_inside(loop: ast.For | ast.While) -> bool:
    return any(isinstance(node, ast.Return) for node in ast.walk(loop))
