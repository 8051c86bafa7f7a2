"""Runs codelet classes in both engines without a graph around them, and shows typed forms as text."""

import functools
import linecache
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from native_rig import DTYPES, Array, Memory, random_states, run_native

from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.cost.pricing import SCALAR, priced
from pypoplar.codelet.ir.typed import Literal, Local, PricedCodelet, Span, SpanList
from pypoplar.codelet.python.interpreted import VertexContext, VertexFault
from pypoplar.codelet.python.python_form import PythonForm
from pypoplar.interface.context_words import UNLIMITED
from pypoplar.interface.fault_codes import EXCEPTIONS
from pypoplar.target import Target
from pypoplar.testing.comparing import assert_same_bits

FaultFacts = tuple[int, int, int, int]  # code, line, value, bound


class Ran:
    """What one vertex left behind: its fields, slots, result, and the fault as (code, line, value, bound)."""

    def __init__(self, fields: dict[str, Any], slots: int, result: bool, fault: FaultFacts | None, printed: list[Any]) -> None:
        self.fields, self.slots, self.result, self.fault, self.printed = fields, slots, result, fault, printed
        self.touched: dict[tuple[Any, ...], list[int]] = {}
        self.random: list[int] = []

    def __getitem__(self, name: str) -> Any:
        value = self.fields[name]
        return [row.tolist() for row in value] if isinstance(value, list) else value.tolist()


BOW = Target.of_preset("bow")


def codelet_of(cls: Any) -> Codelet:
    """What the class is now, translated anew."""
    return cls if isinstance(cls, Codelet) else Codelet.of_class(cls)


@functools.lru_cache
def _once(cls: Any) -> Codelet:
    """The codelet of a class that is run, translated once, however often it is."""
    return codelet_of(cls)


def priced_codelet(cls: Any, cost: str = SCALAR) -> PricedCodelet:
    """A codelet ready to run, with the prices of a Bow IPU."""
    return priced(cls.typed, BOW, cost) if isinstance(cls, Codelet) else _priced_once(cls, cost)


@functools.lru_cache
def _priced_once(cls: Any, cost: str) -> PricedCodelet:
    return priced(_once(cls).typed, BOW, cost)


def _form(cls: Any, touches: bool) -> PythonForm:
    return PythonForm(priced_codelet(cls), record_touches=touches) if isinstance(cls, Codelet) else _form_once(cls, touches)


@functools.lru_cache
def _form_once(cls: Any, touches: bool) -> PythonForm:
    return PythonForm(priced_codelet(cls), record_touches=touches)


def interpret(cls: Any, *, touches: bool = False, random: Sequence[int] | None = None, **settings: Any) -> Ran:
    """Run one vertex in its Python form; keywords are fields, and settings of the context under their names."""
    codelet = priced_codelet(cls)
    names = {field.name for field in codelet.fields}
    fields = {name: settings.pop(name) for name in list(settings) if name in names}
    memory = Memory(codelet, [fields], touches=touches)
    printed: list[Any] = []
    context = VertexContext(
        random=random_states(random, settings.get("workers", 6)), debug_print=lambda *record: printed.append(record), **settings
    )
    fault, slots, result = None, 0, True
    try:
        slots, result = _form(cls, touches).run(memory.bytes, memory.rows[0], 0, memory.table, context)
    except VertexFault as error:
        fault = (error.code, error.where, error.value, error.bound)
        slots = context.slots
    assert memory.outside_is_untouched()
    ran = Ran(memory.fields()[0], slots, result, fault, printed)
    ran.touched, ran.random = memory.touch_bytes(), context.random.ravel().tolist()
    return ran


def run(cls: Any, *, nan_bits: bool = False, **settings: Any) -> Ran:
    """Run one vertex in both engines, which must agree in every bit; fault locations are given as lines.

    A NaN is a NaN: the bits of one that an operation makes are left open by IEEE arithmetic. `nan_bits` compares them too.
    """
    codelet = cls if isinstance(cls, Codelet) else _once(cls)
    first = interpret(cls, **settings)
    names = {field.name for field in codelet.fields}
    fields = {name: value for name, value in settings.items() if name in names}
    mask, limit = settings.get("floating_point_mask", 0), settings.get("cycle_limit", UNLIMITED)
    second = run_native(
        priced_codelet(cls), [fields], cycle_limit=limit, clock=settings.get("clock", 0), random=settings.get("random"), mask=mask,
        workers=settings.get("workers", 6), record_touches=settings.get("touches", False),
        floating_point_checks=mask & EXCEPTIONS != 0, uninitialised_checks=settings.get("uninitialised_is_fault", False),
    )  # fmt: skip
    native_fault = (second.fault[0], *second.fault[2:]) if second.fault else None
    assert first.fault == native_fault
    for name, value in first.fields.items():
        rows, others = (value, second.fields[0][name]) if isinstance(value, list) else ([value], [second.fields[0][name]])
        for row, other in zip(rows, others, strict=True):
            assert_same_bits(row, other, name, ("interpreted", "native"), nan_bits=nan_bits)
    if first.fault is None:
        assert first.slots == max(second.slots)
        assert first.result == bool(second.results[0])
        assert first.random == second.random
    if first.fault is not None:
        code, where, value, bound = first.fault
        first.fault = (code, codelet.typed.locations[where].line, value, bound)
    return first


def array(element: str, values: object) -> Array:
    return np.array(values, DTYPES[element])


def lines(cls: Any) -> list[str]:
    """The typed form as lines of text, indented by blocks, without locations."""
    return list(_lines(priced_codelet(cls).body, ""))


def _operand(operand: object) -> str:
    match operand:
        case Local():
            return operand.name
        case Literal():
            return f"{operand.value}:{operand.type}"
        case Span() | SpanList():
            return operand.name
        case tuple():
            return ", ".join(_operand(part) for part in operand)
    return str(operand)


def _lines(block: Iterable[Any], margin: str) -> Iterator[str]:
    for statement in block:
        values = {key: getattr(statement, key) for key in statement.__slots__ if key != "__weakref__"}
        blocks = {key: values.pop(key) for key in ("head", "then", "orelse", "body") if key in values}
        values = {
            key: value
            for key, value in values.items()
            if key not in ("where", "checked", "flops", "bytes", "bound", "block", "rounds_of", "end_kept", "together")
            and value is not None
        }
        target = values.pop("target", None)
        shown = " ".join(_operand(value) for value in values.values())
        name = type(statement).__name__.lower()
        if name == "apply":
            name, shown = statement.operation, _operand(statement.arguments)
        if target is not None:
            kind = target.type if isinstance(target, Local) else target.element + "[]"
            shown = f"{target.name}:{kind} = {name} {shown}".rstrip()
        else:
            shown = f"{name} {shown}".rstrip()
        yield margin + shown
        for key, inner in blocks.items():
            if key in ("head", "orelse") and inner:
                yield f"{margin}{key}"
            yield from _lines(inner, margin + "  ")


_count = 0
PRELUDE = """\
import math
from pypoplar import ipu
from pypoplar.codelet.language.fields import InOut, Input, MultiVertex, Output, SupervisorVertex, Vector, VectorList, Vertex
from pypoplar.types import *
"""


def module_from(text: str, file: str | None = None) -> dict[str, Any]:
    """The names that a module's text defines; its source is known to linecache alone."""
    global _count
    _count += 1
    file = file or f"<codelet test {_count}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": f"codelet_test_{_count}"}
    exec(compile(text, file, "exec", dont_inherit=True), names)
    return names


def vertex(body: str, *, fields: str = "", prelude: str = "", base: str = "Vertex", head: str = "self") -> Any:
    """A codelet class ``Test`` whose compute has this body."""
    text = PRELUDE + textwrap.dedent(prelude) + f"\nclass Test({base}):\n"
    text += textwrap.indent(textwrap.dedent(fields).strip() + "\n", "    ") if fields else ""
    text += f"    def compute({head}):\n" + textwrap.indent(textwrap.dedent(body).strip() + "\n", "        ")
    return module_from(text)["Test"]
