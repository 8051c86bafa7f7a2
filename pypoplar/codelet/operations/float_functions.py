"""Functions on FLOAT and HALF that the host's C library computes in float64: the one meaning that both engines share.

Their result is rounded once to the type. Prices are those of popops' operations, without what a round of its loop loads, stores
and counts (`pypoplar.popops.elements.loop_cycles`): PopLibs' averages over random arguments, for sine and cosine between -pi and
pi. (PopLibs counts one floating-point operation for a function that the machine has or calls; those that it does not have count
the same, but for what is plainly made of others.)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from pypoplar.codelet.operations import c_library
from pypoplar.codelet.operations.device_operation import DeviceOperation, Emitter, Flops, IssueSlots, Recipe, slots
from pypoplar.codelet.operations.float_arithmetic import NO_BOOLS, divided
from pypoplar.codelet.operations.registers import FLOATS

_exponential = c_library.function("exp")


def _sigmoid(a: float) -> float:
    return 1.0 / (1.0 + _exponential(-a))


def _reciprocal_root(a: float) -> float:
    if a < 0.0:
        return math.nan
    return divided(1.0, math.sqrt(a))


def _in_double(recipe: Recipe) -> Recipe:
    """What is done in float64 and rounded once."""

    def rounded_once(emitter: Emitter, *arguments: Any) -> Any:
        return emitter.narrowed(recipe(emitter, *(emitter.widened(argument) for argument in arguments)))

    return rounded_once


def _sigmoid_recipe(emitter: Emitter, a: Any) -> Any:
    builder, unit = emitter.builder, emitter.constant(a, 1.0)
    return builder.fdiv(unit, builder.fadd(unit, emitter.library("exp", builder.fneg(a))))


def _reciprocal_root_recipe(emitter: Emitter, a: Any) -> Any:
    return emitter.builder.fdiv(emitter.constant(a, 1.0), emitter.intrinsic("llvm.sqrt", a))


def _library_recipe(name: str, emitter: Emitter, *arguments: Any) -> Any:
    return emitter.library(name, *arguments)


def _row(
    name: str,
    prices: Sequence[IssueSlots],
    calls: str = "",
    *,
    function: str = "",
    flops: Flops = Flops(1, "S"),  # noqa: B008  # frozen
    **more: Any,
) -> DeviceOperation:
    """A function of the C library, by default of the operation's name."""
    function = function or name
    return DeviceOperation(
        name=name,
        signature="T " * c_library.ARGUMENTS[function] + "-> T",
        types=FLOATS,
        calls=tuple(calls.split()),
        meaning=c_library.function(function),
        llvm=_in_double(functools.partial(_library_recipe, function)),
        library=(function,),
        prices=tuple(prices),
        flops=flops,
        **more,
    )


def _called(single: int, mark: str, half: int, half_mark: str) -> Sequence[IssueSlots]:
    """Prices of a software function."""
    return slots("f32", single, mark, software=True), slots("f16", half, half_mark, software=True)


_POWER = _called(312, "S", 325, "S")
_ERROR_FUNCTION = _called(41, "S", 13, "S")  # of halves by an approximation of its own
_TWO_EXPONENTIALS = (slots("f32 f16", 15, "I", software=True),)  # and a division

ROWS: tuple[DeviceOperation, ...] = (
    DeviceOperation(
        name="rsqrt", signature="T -> T", types=FLOATS, calls=("ipu.rsqrt",), meaning=_reciprocal_root,
        llvm=_in_double(_reciprocal_root_recipe), pole=(0, 0.0), flops=Flops(1, "S"),
        prices=(slots("f32", 4, "S"), slots("f16", 5, "S")),
    ),
    DeviceOperation(
        name="sigmoid", signature="T -> T", types=FLOATS, calls=("ipu.sigmoid",), meaning=_sigmoid,
        llvm=_in_double(_sigmoid_recipe), library=("exp",), flops=Flops(1, "S"),
        prices=(slots("f32", 5, "S"), slots("f16", 2, "S", lanes=2)),
    ),
    _row("exp", (slots("f32", 3, "S"), slots("f16", 2, "S", lanes=2)), "math.exp ipu.exp"),
    _row("exp2", (slots("f32", 3, "S"), slots("f16", 2, "S", lanes=2)), "math.exp2 ipu.exp2", flops=Flops(1, "I")),
    _row("expm1", (slots("f32", 4, "S"), slots("f16", 3, "S", lanes=2)), "math.expm1"),
    _row("log", (slots("f32", 6, "S"), slots("f16", 2, "S", lanes=2)), "math.log ipu.log", pole=(0, 0.0)),
    _row("log2", (slots("f32", 6, "S"), slots("f16", 2, "S", lanes=2)), "math.log2 ipu.log2", pole=(0, 0.0), flops=Flops(1, "I")),
    _row("log10", (slots("f32", 7, "I"), slots("f16", 3, "I")), "math.log10", pole=(0, 0.0), flops=Flops(1, "I")),
    _row("log1p", (slots("f32", 9, "S"), slots("f16", 5, "S")), "math.log1p", pole=(0, -1.0)),
    _row("sin", _called(2300, "S", 25, "S"), "math.sin"),
    _row("cos", _called(2300, "S", 25, "S"), "math.cos"),
    _row("tan", _called(5100, "S", 5700, "S"), "math.tan"),
    _row("asin", _called(102, "S", 102, "S"), "math.asin"),
    _row("acos", _called(102, "I", 102, "I"), "math.acos"),
    _row("atan", _called(102, "I", 102, "I"), "math.atan"),
    _row("sinh", _TWO_EXPONENTIALS, "math.sinh", flops=Flops(1, "I")),
    _row("cosh", _TWO_EXPONENTIALS, "math.cosh", flops=Flops(1, "I")),
    _row("tanh", (slots("f32", 5, "S"), slots("f16", 1, "S", lanes=2)), "math.tanh ipu.tanh"),
    _row("erf", _ERROR_FUNCTION, "math.erf"),
    _row("erfc", _ERROR_FUNCTION, "math.erfc", flops=Flops(1, "I")),
    _row("atan2", _called(136, "S", 145, "S"), "math.atan2"),
    _row(
        "hypot", (slots("f32 f16", 8, "I"),), "math.hypot",
        flops=Flops(4, "I"),  # two products, their sum, its root
    ),
    _row("pow", _POWER, "math.pow", pole=(0, 0.0)),
    _row("power", _POWER, "**", function="pow", pole=(0, 0.0), words={"bool": NO_BOOLS}),
)  # fmt: skip
