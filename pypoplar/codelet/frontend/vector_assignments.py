"""Vectors of the hardware: ``a, b = ipu.float2(x, y)``, whose elements are computed, loaded and stored together.

Each element is a number of its own, in both engines. What is done with all of them alike follows each other in the typed form,
and says that it is one instruction, which its price goes by.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial

from attrs import evolve, frozen

from pypoplar.codelet.frontend.inference import NAMES, Value, Weak
from pypoplar.codelet.frontend.loop_statements import Loops
from pypoplar.codelet.ir.typed import Apply, Length, Literal, Load, Local, Operand, Statement, Store
from pypoplar.codelet.operations.registers import FLOATS

VECTORS = {"float2": ("f32", 2), "float4": ("f32", 4), "half2": ("f16", 2), "half4": ("f16", 4)}
"""Their names in `pypoplar.ipu`: the type of the elements, and their number."""
WRITE = "write a, b = ipu.float2(x, y): a vector of the hardware is given to a target for each of its elements"

Elements = Load | Store | Apply


@frozen
class _Lane:
    """What is done for one element: what a vector may do at once, each with what comes before it, and what comes after all."""

    steps: tuple[tuple[tuple[Statement, ...], Elements], ...]
    rest: tuple[Statement, ...]


class VectorAssignments(Loops):
    """Assignments of them."""

    vectors = 0  # instructions on vectors so far

    def vector_called(self, func: ast.expr) -> str | None:
        """The vector that a call makes, by its name in `pypoplar.ipu`."""
        if not isinstance(func, ast.Attribute | ast.Name) or (isinstance(func, ast.Attribute) and func.attr not in VECTORS):
            return None
        if ast.unparse(func).partition(".")[0] in self.frame.names:
            return None
        meaning, _ = self._callee(func)
        name = str(meaning.value)
        return name if meaning.sort == "ipu" and name in VECTORS else None

    def assign_vector(self, node: ast.Assign) -> None:
        call = node.value
        assert isinstance(call, ast.Call)
        name = str(self.vector_called(call.func))
        type, count = VECTORS[name]
        if len(call.args) != count or call.keywords or any(isinstance(argument, ast.Starred) for argument in call.args):
            self.refuse(call, f"ipu.{name} takes {count} numbers")
        target = node.targets[0]
        if len(node.targets) != 1 or not isinstance(target, ast.Tuple | ast.List):
            self.refuse(node, WRITE)
        if len(target.elts) != count:
            self.refuse(target, f"{len(target.elts)} targets for the {count} elements of ipu.{name}")
        changed = {self.frame.names[element.id] for element in target.elts if isinstance(element, ast.Name)}
        values = self.woven([partial(self._element_of_vector, argument, name, type, changed) for argument in call.args])
        places = zip(target.elts, values, call.args, strict=True)
        self.woven([partial(self._assign_element, element, value, where) for element, value, where in places])

    def _element_of_vector(self, node: ast.expr, name: str, type: str, changed: Set[str]) -> Value:
        number = self.number(node)
        if not isinstance(number, Weak) and number.type != type:
            self.refuse(node, f"the elements of ipu.{name} are {NAMES[type]}s, got {NAMES[number.type]}: write {NAMES[type]}(...)")
        operand = self.converted(number, type, node)
        if isinstance(operand, Local) and operand.name in changed:  # it may be set before it is read
            operand = self.apply(f"copy_{type}", (operand,), type, node)
        return self.pin(operand)

    def _assign_element(self, target: ast.expr, value: Value, node: ast.expr) -> Value:
        self.assign(target, value, node)
        return value

    def woven(self, lanes: Sequence[partial[Value]]) -> list[Value]:
        """What some calls give, whose statements are brought together where they do the same."""
        values, blocks = [], []
        for lane in lanes:
            with self.block() as statements:
                values.append(lane())
            blocks.append(statements)
        split = [_lane(block) for block in blocks]
        known = [lane for lane in split if lane is not None]
        if len(known) == len(blocks) and len({tuple(_kind(step) for _, step in lane.steps) for lane in known}) == 1:
            for statement in self._brought_together(known):
                self.emit(statement)
        else:
            for statement in (statement for block in blocks for statement in block):
                self.emit(statement)
        return values

    def _brought_together(self, lanes: Sequence[_Lane]) -> Iterator[Statement]:
        makers = [
            {one.target.name: one for before, _ in lane.steps for one in before if isinstance(one, Apply | Load)} for lane in lanes
        ]
        for number in range(len(lanes[0].steps)):
            steps = []
            for lane in lanes:
                before, step = lane.steps[number]
                yield from before
                steps.append(step)
            if not isinstance(steps[0], Apply) and not _follow(steps, makers):
                yield from steps
                continue
            self.vectors += 1
            yield from (evolve(step, together=self.vectors) for step in steps)
        for lane in lanes:
            yield from lane.rest

    @abstractmethod
    def assign(self, target: ast.expr, value: Value, node: ast.expr) -> None:
        """Let a target hold a value."""


def _lane(block: Sequence[Statement]) -> _Lane | None:
    """The steps of an element; None if it does what keeps its place in the order of the text."""
    steps: list[tuple[tuple[Statement, ...], Elements]] = []
    before: list[Statement] = []
    for statement in block:
        if not isinstance(statement, Apply | Load | Store | Length):
            return None
        if not isinstance(statement, Length) and _is_of_floats(statement):
            steps.append((tuple(before), statement))
            before.clear()
        elif isinstance(statement, Store):
            return None
        else:
            before.append(statement)
    return _Lane(tuple(steps), tuple(before))


def _is_of_floats(statement: Elements) -> bool:
    if isinstance(statement, Apply):
        return statement.target.type in FLOATS and all(argument.type in FLOATS for argument in statement.arguments)
    return statement.span.element in FLOATS


def _kind(step: Elements) -> object:
    """Equal for steps that one instruction may do."""
    return ("apply", step.operation) if isinstance(step, Apply) else (type(step).__name__, step.span)


def _follow(steps: Sequence[Elements], makers: Sequence[Mapping[str, Statement]]) -> bool:
    """Whether loads or stores are of neighbours, as the indices are written."""
    places = [_index_place(step.index, known) for step, known in zip(steps, makers, strict=True) if isinstance(step, Load | Store)]
    base, first = places[0]
    return places == [(base, first + number) for number in range(len(steps))]


def _index_place(index: Operand, makers: Mapping[str, Statement]) -> tuple[object, int]:
    """An index as something, equal for what is computed alike, and a constant."""
    if isinstance(index, Literal):
        return None, int(index.value)
    made = makers.get(index.name)
    if not isinstance(made, Apply):
        return (made.span, _index_place(made.index, makers)) if isinstance(made, Load) else index.name, 0
    if made.operation in ("add_i32", "add_u32", "sub_i32", "sub_u32"):
        left, right = made.arguments
        if isinstance(left, Literal) and made.operation.startswith("add"):
            left, right = right, left
        if isinstance(left, Local) and isinstance(right, Literal):
            base, constant = _index_place(left, makers)
            return base, constant + int(right.value) * (1 if made.operation.startswith("add") else -1)
    return (made.operation, *(_index_place(argument, makers) for argument in made.arguments)), 0
