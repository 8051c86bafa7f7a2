"""The codelet of trees: its text, written from their steps, the class made of it, and what its vertices cost."""

from __future__ import annotations

import functools
import hashlib
import linecache
import re

from attrs import frozen

from pypoplar.codelet.language.fields import NEAREST, MultiVertex
from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.popops.elements.cast_cycles import cast_cycles, cast_round
from pypoplar.popops.elements.element_cycles import FORMS, operation_flops, start_cycles
from pypoplar.popops.elements.element_operations import HELPERS
from pypoplar.popops.elements.loop_cycles import Form, LoopRound, loop_round
from pypoplar.popops.elements.map_types import MapStep, TypedOperand, TypedTrees
from pypoplar.popops.elements.repeated_operands import inner_field, offset_field, row_cycles
from pypoplar.poputil.cycles import share_of_worker
from pypoplar.types import BOOL, FLOAT, HALF, INT, ElementType

LONGEST_NAME = 160  # characters of an expression in the name of a codelet
HEAD = """\
import math

from pypoplar import *
from pypoplar import ipu
"""


@frozen
class MapCodelet:
    """Trees as a codelet. `single` are the placeholders of tensors with one element; `in_place` results replace tensors.

    Of tensors that are `repeated` a vertex has each element once. A codelet that is `always_nearest` never rounds at random.
    """

    trees: TypedTrees
    single: frozenset[int]
    in_place: int
    always_nearest: bool = False
    repeated: frozenset[int] = frozenset()

    @functools.cached_property
    def inputs(self) -> list[int]:
        """The placeholders that are read, and those that results replace."""
        return sorted(self.trees.read | set(range(1, self.in_place + 1)))

    def field(self, placeholder: int) -> str:
        """The field of a tensor."""
        return f"in{placeholder}Out" if placeholder <= self.in_place else f"in{placeholder}"

    def result(self, number: int) -> str:
        """The field that a result is written to."""
        if self.in_place:
            return self.field(number + 1)
        return "out" if len(self.trees.results) == 1 else f"out{number + 1}"

    @functools.cached_property
    def name(self) -> str:
        """The name of the codelet: equal names have equal code."""
        shown = ";".join(self._shown(result) for result in self.trees.results)
        if len(shown) > LONGEST_NAME:
            shown = f"{shown[:LONGEST_NAME]}...{hashlib.sha256(shown.encode()).hexdigest()[:16]}"
        types = [self.trees.types[number - 1].spelling + self._kind(number) for number in self.inputs]
        kind = ("MapInPlace" if self.in_place else "Map") + ("ToNearest" if self.always_nearest else "")
        return f"popops::{kind}<{','.join([shown, *types])}>"

    def _kind(self, placeholder: int) -> str:
        return " scalar" if placeholder in self.single else " repeated" if placeholder in self.repeated else ""

    def _shown(self, result: TypedOperand) -> str:
        texts: list[str] = []

        def shown(operand: TypedOperand) -> str:
            return texts[operand.step] if operand.step >= 0 else f"{operand.type.spelling}({operand.constant!r})"

        for step in self.trees.steps:
            function = f"cast to {step.type.spelling}" if step.operation is None else step.operation.function
            texts.append(f"_{step.placeholder}" if step.placeholder else f"{function}({','.join(map(shown, step.operands))})")
        return shown(result)

    @functools.cached_property
    def text(self) -> str:
        """The module of the codelet, as a file would have it."""
        lines = {number: self._line(number, step) for number, step in enumerate(self.trees.steps)}
        names = {word for line in lines.values() for word in re.findall(r"\w+", line)}
        helpers = [text for name, text in HELPERS.items() if name in names]
        before = [line for number, line in lines.items() if number in self.once]
        body = [line for number, line in lines.items() if number not in self.once]
        stores = [f"self.{self.result(number)}[i] = {_operand(result)}" for number, result in enumerate(self.trees.results)]
        module = [
            HEAD + "\n".join(helpers),
            f"\nclass Map(MultiVertex, name={self.name!r}{f', rounding={NEAREST!r}' if self.always_nearest else ''}):",
            *(f"    {line}" for line in self._fields()),
            "",
            "    def compute(self, worker):",
            *(f"        {line}" for line in before),
            f"        for i in ipu.worker_range(worker, self.{self._divided}):",
            *(f"            {line}" for line in (*body, *stores)),
        ]
        return "\n".join(module) + "\n"

    @property
    def _divided(self) -> str:
        """The result that workers divide: the one of the smallest type, so that they share no word of any."""
        sizes = [result.type.dtype.itemsize for result in self.trees.results]
        return self.result(sizes.index(min(sizes)))

    @functools.cached_property
    def once(self) -> frozenset[int]:
        """The steps that depend on single elements and constants alone: they are done before the loop."""
        once: set[int] = set()
        for number, step in enumerate(self.trees.steps):
            alone = all(operand.step < 0 or operand.step in once for operand in step.operands)
            if step.placeholder in self.single if step.placeholder else alone:
                once.add(number)
        return frozenset(once)

    def _fields(self) -> list[str]:
        lines = []
        for number in self.inputs:
            access = "InOut" if number <= self.in_place else "Input"
            lines.append(f"{self.field(number)}: {access}[Vector[{self.trees.types[number - 1].__name__}]]")
            if number in self.repeated:
                lines += [f"{of_operand(self.field(number))}: INT" for of_operand in (offset_field, inner_field)]
        if not self.in_place:
            results = enumerate(self.trees.results)
            lines += [f"{self.result(number)}: Output[Vector[{result.type.__name__}]]" for number, result in results]
        return lines

    def _line(self, number: int, step: MapStep) -> str:
        """The line that computes a step."""
        if step.placeholder:
            field = self.field(step.placeholder)
            index = "0" if step.placeholder in self.single else "i"
            if step.placeholder in self.repeated:
                index = f"(i + self.{offset_field(field)}) // self.{inner_field(field)} % len(self.{field})"
            return f"v{number} = self.{field}[{index}]"
        operands = tuple(_operand(operand) for operand in step.operands)
        if step.operation is None:
            return f"v{number} = {cast_text(operands[0], step.operands[0].type, step.type)}"
        return f"v{number} = {step.operation.text(step.worked_type, operands)}"

    def cycles(self, share: int) -> int:
        """Worker cycles of a vertex whose busiest worker has so many elements: its start, and the loops of all operations."""
        if len(self.trees.operations) == 1 and self.trees.operations[0].operation is None and not self.once:
            return cast_cycles(share, self.trees.operations[0].operands[0].type, self.trees.operations[0].type)
        steps = ((number, step) for number, step in enumerate(self.trees.steps) if not step.placeholder)
        loops = sum(self.round_of(step).of(1 if number in self.once else share) for number, step in steps)
        return self._start() + loops + sum(cast_round(type, type).of(share) for type in self._stored)

    @property
    def _stored(self) -> list[ElementType]:
        """The types of the results that the loop stores and does not compute: elements, single ones and constants."""
        steps, results = self.trees.steps, self.trees.results
        return [result.type for result in results if result.step < 0 or steps[result.step].placeholder or result.step in self.once]

    def outer_cycles(self, vertex: VertexIntrospector) -> int:
        """What a vertex's loops over the rows of its repeated operands take beside the loops within."""
        elements = vertex.fieldSize(self.result(0))
        sizes = [(int(vertex.value(inner_field(name))), vertex.fieldSize(name)) for name in map(self.field, self.repeated)]
        return sum(row_cycles(vertex.target, elements, inner, once) for inner, once in sizes if once < elements)

    def _start(self) -> int:
        """What entering the vertex takes: the start of the operation that gives the result."""
        if self._root is None or self._root.operation is None:
            return start_cycles(None, self.trees.results[0].type, "plain")
        return start_cycles(self._root.operation, self._root.worked_type, self._form(self._root))

    @property
    def _root(self) -> MapStep | None:
        """The step that gives the first result; none of a constant."""
        return self.trees.steps[self.trees.results[0].step] if self.trees.results[0].step >= 0 else None

    def _has_single(self, step: MapStep) -> bool:
        return any(operand.step < 0 or operand.step in self.once for operand in step.operands)

    def round_of(self, step: MapStep) -> LoopRound:
        """The round of the loop that does a step."""
        if step.operation is None:
            return cast_round(step.operands[0].type, step.type)
        return loop_round(step.operation.name, step.worked_type.code, self._form(step))

    def _form(self, step: MapStep) -> Form:
        """How an operation stands to its operands and its result."""
        return FORMS[len(step.operands) == 2 and self._has_single(step), bool(self.in_place) and step is self._root]

    @property
    def flops(self) -> int:
        """Floating-point operations of an element."""
        operations = self.trees.operations
        return sum(operation_flops(step.operation, step.worked_type) for step in operations if step.operation is not None)


def _operand(operand: TypedOperand) -> str:
    """A step's value or a constant of its type, as device code."""
    if operand.step >= 0:
        return f"v{operand.step}"
    if operand.type is BOOL:
        return str(bool(operand.constant))
    value = float(operand.constant) if operand.type in (FLOAT, HALF) else int(operand.constant)
    if value != value or value in (float("inf"), float("-inf")):
        return f"{operand.type.__name__}({'math.nan' if value != value else 'math.inf' if value > 0 else '-math.inf'})"
    return f"{operand.type.__name__}({value!r})"


def cast_text(operand: str, source: ElementType, target: ElementType) -> str:
    """Device code that makes one type of another: floats are cut towards 0 and held at the ends of the range, integers wrap."""
    if source is target:
        return operand
    if target is BOOL:
        return f"bool({operand})"
    if source is BOOL:
        return f"{target.__name__}(int({operand}))"
    if source.is_floating and not target.is_floating:
        number = f"float({operand})" if source is HALF else operand
        if target.size >= INT.size:
            return f"{target.__name__}({number})"
        low, high = target.limits
        return f"{target.__name__}(min(max(int({number}), {low}), {high}))"
    if target is HALF and source is not FLOAT:
        return f"HALF(float({operand}))"
    return f"{target.__name__}({operand})"


_CLASSES: dict[str, type[MultiVertex]] = {}


def codelet_class(codelet: MapCodelet) -> type[MultiVertex]:
    """The class of a codelet, made of its text once; debuggers and messages find the text under a name of its own."""
    text = codelet.text
    known = _CLASSES.get(text)
    if known is not None:
        return known
    file = f"<popops.map {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, object] = {"__name__": file}
    exec(compile(text, file, "exec", dont_inherit=True), names)
    cls = names["Map"]
    assert isinstance(cls, type)
    assert issubclass(cls, MultiVertex)
    cls.cycles = functools.partial(_estimate, codelet)  # type: ignore[attr-defined]
    _CLASSES[text] = cls
    return cls


def _estimate(codelet: MapCodelet, cls: type, vertex: VertexIntrospector) -> VertexPerfEstimate:
    elements = vertex.fieldSize(codelet.result(0))
    cycles = codelet.cycles(share_of_worker(elements, vertex.target)) + codelet.outer_cycles(vertex)
    return VertexPerfEstimate(cycles, elements * codelet.flops)
