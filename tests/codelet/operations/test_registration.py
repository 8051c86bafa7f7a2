"""A device operation is one row: registered from outside it runs in both engines and is priced; a row with gaps is refused."""

import functools
import math
import re
import textwrap
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest
from attrs import evolve
from codelet_rig import BOW, codelet_of, lines, run, vertex
from llvmlite import ir
from native_rig import run_native

from pypoplar import ipu
from pypoplar.codelet.cost.pricing import SCALAR, priced
from pypoplar.codelet.frontend import expressions
from pypoplar.codelet.frontend.translate import translate
from pypoplar.codelet.ir.typed import Price
from pypoplar.codelet.ir.walk import walk
from pypoplar.codelet.language.source import CodeletSource
from pypoplar.codelet.operations import table
from pypoplar.codelet.operations.call_forms import COMPARISONS, OPERANDS, OPERATORS
from pypoplar.codelet.operations.device_operation import (
    ARCHITECTURES,
    ByType,
    DeviceOperation,
    Flops,
    IssueSlots,
    OperandFault,
    slots,
)
from pypoplar.codelet.operations.float_functions import _in_double
from pypoplar.codelet.operations.matrix_unit import VECTOR_OPERATIONS
from pypoplar.codelet.operations.registers import FLOATS
from pypoplar.codelet.operations.table import OPERATIONS, called, register, remove, typed_operation
from pypoplar.codelet.operations.tile_readings import READINGS, TileReading
from pypoplar.errors import CodeletError
from pypoplar.host_code import cache
from pypoplar.interface.fault_codes import FaultCode
from pypoplar.presets import PRESETS


def cube_recipe(emitter, a):
    builder = emitter.builder
    return emitter.rounded(builder.fmul(emitter.rounded(builder.fmul(a, a)), a))


def cube_root_recipe(emitter, a):
    return emitter.narrowed(emitter.library("cbrt", emitter.widened(a)))


CUBE = DeviceOperation(
    name="cubed", signature="T -> T", types=("f32",), calls=("ipu.cubed",), meaning=lambda a: float(np.float32(a * a)) * a,
    llvm=cube_recipe, lanes=("f32",), prices=(slots("f32", 7, "I"),), flops=Flops(2, "I"),
)  # fmt: skip
CUBE_ROOT = evolve(
    CUBE, name="cbrt", types=("f32", "f16"), calls=("ipu.cbrt",), meaning=math.cbrt, llvm=cube_root_recipe, lanes=(),
    library=("cbrt",), prices=(slots("f32", 9, "I"), slots("f16", 11, "I", software=True)),
)  # fmt: skip
SCALED = evolve(
    CUBE, name="scaled", signature="f32 i32 -> f32", types=(), calls=("ipu.scaled",), lanes=(), prices=(slots("", 3, "I"),),
    meaning=lambda a, n: a * n,
    llvm=lambda emitter, a, n: emitter.builder.fmul(a, emitter.builder.sitofp(n, a.type)),
)  # fmt: skip
DOT = evolve(
    SCALED, name="dot", signature="f32[] f32[] -> f32", calls=("ipu.dot",),
    meaning=lambda a, b: sum(x * y for x, y in zip(a, b, strict=True)),
)  # fmt: skip


def device_function(name):
    """What a line in pypoplar/ipu.py would be."""

    def function(*arguments):
        raise NotImplementedError

    function.__name__ = function.__qualname__ = name
    function.__module__ = "pypoplar.ipu"
    return function


@pytest.fixture
def registered(monkeypatch):
    """Registers rows until the test ends."""
    rows = []

    def add(row):
        register(row)
        rows.append(row)
        for call in row.calls:
            name = call.removeprefix("ipu.")
            monkeypatch.setattr(ipu, name, device_function(name), raising=False)

    yield add
    for row in rows:
        if any(operation.row is row for operation in OPERATIONS.values()):
            remove(row)


def test_a_registered_operation_runs_in_both_engines_and_costs_what_its_row_says(registered):
    registered(CUBE)
    cls = vertex("self.x[0] = ipu.cubed(self.x[0])", fields="x: InOut[Vector[FLOAT]]")
    ran = run(cls, x=[1.1])
    x = np.float32(1.1)
    assert ran.fields["x"][0] == x * x * x
    assert "_2:f32 = cubed_f32 _1" in lines(cls)
    (price,) = [statement for statement in walk(priced(codelet_of(cls).typed, BOW, SCALAR).body) if isinstance(statement, Price)]
    assert (price.slots, price.flops) == (12 + 1 + 7 + 1, 2)
    assert {OPERATIONS["cubed_f32"].price(architecture).slots for architecture in ARCHITECTURES} == {7}


def test_a_registered_operation_runs_side_by_side(registered):
    registered(CUBE)
    body = "t = 0.0\nfor i in range(len(self.x)):\n    t += ipu.cubed(self.x[i])\nself.out = t"
    codelet = priced(codelet_of(vertex(body, fields="x: Input[Vector[FLOAT]]\nout: Output[FLOAT]")).typed, BOW, SCALAR)
    vertices = [{"x": np.linspace(-1, 2, 20, dtype=np.float32) * k, "out": 0} for k in range(16)]
    for given, ran in zip(vertices, run_native(codelet, vertices).fields, strict=True):
        total = np.float32(0)
        for x in given["x"]:
            total += x * x * x
        assert ran["out"][0] == total


def test_a_registered_operation_may_call_another_function_of_the_c_library(registered):
    registered(CUBE_ROOT)
    for element, scalar in (("FLOAT", np.float32), ("HALF", np.float16)):
        ran = run(vertex("self.x = ipu.cbrt(self.x)", fields=f"x: {element}"), x=7.0)
        assert ran.fields["x"][0] == scalar(math.cbrt(7.0))


def test_a_row_of_fixed_types_is_called_with_them(registered):
    registered(SCALED)
    assert run(vertex("self.x = ipu.scaled(self.x, self.k) + ipu.scaled(2, 3)", fields="x: FLOAT\nk: INT"), x=1.5, k=3)["x"] == [
        10.5
    ]
    with pytest.raises(CodeletError, match=r"ipu.scaled takes FLOAT and INT, got FLOAT and FLOAT"):
        codelet_of(vertex("self.x = ipu.scaled(self.x, self.x)", fields="x: FLOAT"))


def test_a_removed_operation_is_unknown_again_and_may_come_back_with_another_recipe(registered):
    cls = vertex("self.x = ipu.cubed(self.x)", fields="x: FLOAT")
    registered(CUBE)
    codelet = codelet_of(cls)
    assert run(codelet, x=2.0)["x"] == [8.0]
    remove(CUBE)
    with pytest.raises(LookupError, match=r"no device operation 'cubed_f32'"):
        typed_operation("cubed_f32")
    assert not called("ipu.cubed")
    with pytest.raises(LookupError, match=r"no device operation 'cubed_f32'"):
        priced(codelet.typed, BOW, SCALAR)
    with pytest.raises(CodeletError, match=r"pypoplar.ipu has no device function 'cubed'"):
        codelet_of(cls)
    other = evolve(CUBE, meaning=lambda a: a + a, llvm=lambda emitter, a: emitter.builder.fadd(a, a))
    registered(other)
    assert run(codelet, x=3.0)["x"] == [6.0]


def test_code_with_an_operation_from_outside_is_not_kept_on_disk(registered, monkeypatch):
    stored = []
    monkeypatch.setattr(cache, "store", lambda key, content: stored.append(key))
    monkeypatch.setattr(cache, "load", lambda key: None)
    registered(CUBE)
    run(vertex("self.x = ipu.cubed(self.x) + 3.25", fields="x: FLOAT"), x=2.0)
    assert not stored
    run(vertex("self.x = self.x * 3.1875", fields="x: FLOAT"), x=2.0)
    assert len(stored) == 1


INCOMPLETE = {
    "no price": (evolve(CUBE, prices=()), "cubed_f32 has no price for architecture 'ipu1'"),
    "no price for one type": (evolve(CUBE_ROOT, prices=(slots("f32", 1, "I"),)), "cbrt_f16 has no price for architecture 'ipu1'"),
    "no price for one architecture": (
        evolve(CUBE, prices=(IssueSlots(("f32",), 1, "I", architectures=("ipu1", "cpu")),)),
        "cubed_f32 has no price for architecture 'ipu2'",
    ),
    "two prices": (evolve(CUBE, prices=CUBE.prices * 2), "cubed_f32 has 2 prices for architecture 'ipu1'"),
    "a negative price": (evolve(CUBE, prices=(slots("f32", -1, "I"),)), "cubed_f32: a price of -1 slots"),
    "no meaning": (evolve(CUBE, meaning=None), "cubed_f32 has no meaning in Python"),
    "no emission": (evolve(CUBE, llvm=None), "cubed_f32 has no recipe for LLVM"),
    "no flops": (evolve(CUBE, flops=None), "cubed_f32 does not say how many floating-point operations it is"),
    "an unknown type": (evolve(CUBE, signature="T -> f64"), "cubed_f32: there is no type 'f64' in its signature"),
    "no result": (evolve(CUBE, signature="T"), "cubed_f32: its signature is 'T'; write it as"),
    "a name that there is": (evolve(CUBE, name="add"), "add_f32: there is one of this name"),
    "a call that there is": (evolve(CUBE, calls=("math.exp",)), "cubed_f32: math.exp is exp_f32"),
}


@pytest.mark.parametrize(("row", "message"), INCOMPLETE.values(), ids=INCOMPLETE)
def test_a_row_that_leaves_something_out_is_refused_by_name(row, message):
    before = dict(OPERATIONS)
    with pytest.raises(ValueError, match=f"device operation {message}"):
        register(row)
    assert dict(OPERATIONS) == before


def fault_of(**changes):
    """`fault` of a row: an error where the last argument is 2."""
    fault = OperandFault(
        FaultCode.ZERO_DIVISION, 0, lambda a: a == 2,
        lambda emitter, a: emitter.builder.icmp_unsigned("==", a, emitter.constant(a, 2)),
    )  # fmt: skip
    return lambda type: evolve(fault, **changes)


HALVED = evolve(
    CUBE, name="halved", types=("i32", "u64"), calls=("ipu.halved",), meaning=lambda a: a // 2, lanes=(), flops=Flops(0, "S"),
    prices=(slots("i32 u64", 1, "I"),), fault=fault_of(),
    llvm=lambda emitter, a: (emitter.builder.ashr if emitter.signed else emitter.builder.lshr)(a, emitter.constant(a, 1)),
)  # fmt: skip

cube, halved, scaled = (functools.partial(evolve, row) for row in (CUBE, HALVED, SCALED))
WRONG = {
    "no row at all": (5, "the table takes a DeviceOperation, got 5"),
    "a blank name": (cube(name=" "), "device operation ' ': its name is one that a name of Python may be"),
    "a number as name": (cube(name=3), "device operation 3: its name is one that a name of Python may be"),
    "a number as signature": (cube(signature=3), "cubed: its signature is a text such as 'T T -> T', got 3"),
    "T without types": (cube(types=()), "cubed: `types` says what T is in its signature 'T -> T', got ()"),
    "types without T": (cube(signature="f32 -> f32"), "what T is in its signature 'f32 -> f32', got ('f32',)"),
    "types as a text": (cube(types="f32"), "cubed: `types` is a tuple of str, got 'f32'"),
    "an unknown type of T": (cube(types=("f64",)), "cubed: `types` are some of f32, f16, i32, u32, i64, u64, bool, each"),
    "a type twice": (cube(types=("f32", "f32")), "each once; got ('f32', 'f32')"),
    "a meaning that is none": (cube(meaning=3), "cubed: `meaning` is a function, got 3"),
    "a meaning of two arguments": (cube(meaning=lambda a, b: a), "cubed_f32: its meaning does not take 1 argument"),
    "a meaning in C of two": (cube(meaning=math.copysign), "cubed_f32: its meaning does not take 1 argument"),
    "a meaning by type of two": (cube(meaning=ByType(lambda type: max_of)), "cubed_f32: its meaning does not take 1"),
    "a meaning by no type": (cube(meaning=ByType(lambda: max_of)), "cubed: `meaning` by type is a function of a register type"),
    "a meaning by type that is none": (cube(meaning=ByType(lambda type: 3)), "cubed_f32: its meaning is a function, got 3"),
    "exact as a number": (cube(exact=1), "cubed: `exact` is True or False, got 1"),
    "a recipe without emitter": (cube(llvm=lambda a: a), "its recipe for LLVM does not take 1 argument after the emitter"),
    "lanes of another type": (cube(lanes=("f16",)), "cubed_f32: `lanes` are some of f32, got ('f16',)"),
    "lanes that no type is": (cube(lanes=("q9",)), "cubed_f32: `lanes` are some of f32, got ('q9',)"),
    "a function that C has not": (cube(library=("cubert",)), "cubed: C has no function 'cubert' of float64 numbers"),
    "functions as a text": (cube(library="cbrt"), "cubed: `library` is a tuple of str, got 'cbrt'"),
    "a number as price": (cube(prices=(3,)), "cubed: `prices` is a tuple of IssueSlots, got (3,)"),
    "a price with a fraction": (cube(prices=(slots("f32", 1.5, "I"),)), "cubed_f32: a price of 1.5 slots, expected a whole"),
    "a price that no word holds": (cube(prices=(slots("f32", 1 << 64, "I"),)), "cubed_f32: a price of 18446744073709551616 slots"),
    "a price that is a bool": (cube(prices=(slots("f32", True, "I"),)), "cubed_f32: a price of True slots"),
    "a price without a mark": (cube(prices=(slots("f32", 1, ""),)), "a price of 1 slots with the mark '', expected some of D ("),
    "a price with an unknown mark": (cube(prices=(slots("f32", 1, "Q"),)), "a price of 1 slots with the mark 'Q', expected"),
    "a price for no type": (cube(prices=(slots("", 1, "I"),)), "the types of a price are a tuple of some of (f32), got ()"),
    "a price for an unknown type": (cube(prices=(slots("f32 q9", 1, "I"),)), "some of (f32), got ('f32', 'q9')"),
    "a price by type without T": (scaled(prices=(slots("f32", 1, "I"),)), "scaled: the types of a price are"),
    "a price for an unknown chip": (
        cube(prices=(IssueSlots(("f32",), 1, "I", architectures=(*ARCHITECTURES, "ipu9")),)),
        "cubed_f32: the architectures of a price are a tuple of some of (ipu1, ipu2, cpu), got ('ipu1', 'ipu2', 'cpu', 'ipu9')",
    ),
    "software as a text": (cube(prices=(IssueSlots(("f32",), 1, "I", "no"),)), "`software` of a price is True or False"),
    "flops as a number": (cube(flops=2), "cubed_f32: `flops` are Flops(number, mark), got 2"),
    "negative flops": (cube(flops=Flops(-1, "I")), "cubed_f32: work of -1 floating-point operations, expected a whole number"),
    "flops without a mark": (cube(flops=Flops(1, " ")), "work of 1 floating-point operations with the mark ' ', expected"),
    "calls as a text": (cube(calls="ipu.cubed"), "cubed: `calls` is a tuple of str, got 'ipu.cubed'"),
    "a conversion": (cube(calls=("float",)), "cubed_f32: float has another meaning in device code"),
    "a reading": (cube(calls=("ipu.cycle_count",)), "cubed_f32: ipu.cycle_count has another meaning in device code"),
    "a statement": (cube(calls=("ipu.check",)), "cubed_f32: ipu.check has another meaning in device code"),
    "a call twice": (cube(calls=("ipu.a", "ipu.a")), "cubed_f32: ipu.a is there twice"),
    "a function that math has not": (cube(calls=("math.sqr",)), "Python has no function math.sqr; did you mean 'sqrt'?"),
    "a constant of math": (cube(calls=("math.pi",)), "cubed_f32: Python has no function math.pi"),
    "a comparison that is another": (halved(calls=(">",)), "halved_i32: device code cannot be written with '>'"),
    "a function that Python has not": (cube(calls=("cubed",)), "cubed_f32: device code cannot be written with 'cubed'"),
    "too few operands": (cube(types=("bool",), prices=(slots("bool", 1, "I"),), lanes=(), calls=("+",)), "+ takes 'T T'"),
    "operands of fixed types": (scaled(calls=("%",)), "scaled: % takes 'T T', got 'f32 i32 -> f32'"),
    "a comparison that gives no bool": (
        cube(signature="T T -> f32", meaning=max, llvm=lambda emitter, a, b: a, calls=("<",), types=("bool",), lanes=(),
               prices=(slots("bool", 1, "I"),)),
        "cubed_bool: < gives a bool, got 'T T -> f32'",
    ),
    "users' arguments of T and another": (
        cube(signature="T i32 -> T", meaning=max, llvm=lambda emitter, a, n: a),
        "cubed_f32: users call operations whose arguments are all T, or have types of their own; got 'T i32 -> T'",
    ),
    "a call of another's, with more arguments": (
        cube(signature="T T -> T", types=("i32",), lanes=(), prices=(slots("i32", 1, "I"),), meaning=max,
               llvm=lambda emitter, a, b: a, calls=("math.exp",)),
        "cubed_i32: math.exp is exp_f32, which takes 'T -> T'; got 'T T -> T'",
    ),
    "a call of another's, without T": (scaled(calls=("math.atan2",)), "scaled: math.atan2 is atan2_f32, which takes"),
    "words that are none": (cube(words=["no"]), "cubed: `words` are texts by type, got ['no']"),
    "words for its own type": (cube(words={"f32": "no"}), "cubed: `words` are for types that it is not for, got 'f32'"),
    "words for no type": (cube(words={"q9": "no"}), "cubed: `words` are for types that it is not for, got 'q9'"),
    "words that name a stranger": (cube(words={"i32": "{kind}"}), "words` are texts in which {type} may stand, got '{kind}'"),
    "a number as fault": (halved(fault=3), "halved: `fault` is a function, got 3"),
    "a fault of no type": (halved(fault=lambda: None), "halved: `fault` by type is a function of a register type"),
    "a fault that is none": (halved(fault=lambda type: 3), "halved_i32: its fault is an OperandFault, got 3"),
    "a fault's code that is none": (halved(fault=fault_of(code=99)), "is a FaultCode that operands can have, got 99"),
    "a fault's code with a text": (halved(fault=fault_of(code=FaultCode.CHECK)), "is a FaultCode that operands can have"),
    "a fault's bound that is none": (halved(fault=fault_of(bound=1.5)), "the bound of its fault is a whole number from 0"),
    "a fault's test of nothing": (halved(fault=fault_of(test=lambda: True)), "the condition of its fault is a function of"),
    "a fault without a recipe": (halved(fault=fault_of(llvm=None)), "the recipe for LLVM of its fault is a function of the"),
    "a fault of floats": (cube(fault=fault_of()), "cubed_f32: its fault is one of its last argument, which must be an integer"),
    "a pole of no argument": (cube(pole=(7, 0.0)), "cubed_f32: its pole is the place of an argument and the value that it has"),
    "a pole of integers": (halved(pole=(0, 0.0)), "halved_i32: its pole is the place of an argument"),
    "a pole that is a number": (cube(pole=0.0), "cubed_f32: its pole is the place of an argument"),
    "a pole at NaN": (cube(pole=(0, math.nan)), "cubed_f32: its pole is the place of an argument"),
}  # fmt: skip


def max_of(a, b):
    return max(a, b)


@pytest.mark.parametrize(("row", "message"), WRONG.values(), ids=WRONG)
def test_a_row_that_gets_something_wrong_is_refused_by_name_before_anything_of_it_is_kept(row, message):
    before = dict(OPERATIONS), {call: dict(table.called(call)) for call in table._called}
    with pytest.raises(ValueError, match=re.escape(message)):
        register(row)
    assert (dict(OPERATIONS), {call: dict(table.called(call)) for call in table._called}) == before


def test_only_what_was_registered_from_outside_is_taken_away():
    before = dict(OPERATIONS)
    with pytest.raises(ValueError, match="add: it was not registered from outside, so it stays"):
        remove(OPERATIONS["add_f32"].row)
    with pytest.raises(ValueError, match="cubed: its row is not registered"):
        remove(CUBE)
    assert dict(OPERATIONS) == before


def test_the_condition_of_a_fault_stands_in_the_row_alone_and_holds_in_both_engines(registered):
    registered(HALVED)
    cls = vertex("self.x = ipu.halved(self.x)", fields="x: INT")
    assert [run(cls, x=x).fault for x in (0, -3)] == [None, None]
    code, _, value, bound = run(cls, x=2).fault
    assert (code, value, bound) == (FaultCode.ZERO_DIVISION, 2, 0)
    assert run(cls, x=-4)["x"] == [-2]
    wide = vertex("self.x = ipu.halved(self.x)", fields="x: UNSIGNED_LONGLONG")
    assert run(wide, x=2**64 - 2)["x"] == [2**63 - 1]
    assert run(wide, x=2).fault is not None


def test_an_operation_may_have_the_name_of_anything_in_the_interpreters_functions(registered):
    fixed = {"signature": "f32 -> f32", "types": (), "lanes": (), "prices": (slots("", 1, "I"),)}
    ours = "rounds operands float check fields scalars context result views random_u32 copy_on"
    for name in ours.split():
        registered(evolve(CUBE, name=name, calls=(f"ipu.{name}_of",), meaning=lambda a: a * 3.0, llvm=tripled, **fixed))
        body = f"ipu.check(self.k > 0)\nfor i in range(self.k):\n    self.x = ipu.{name}_of(self.x)\n"
        body += "self.k = 7 // self.k\n" * 2 + "self.u = ipu.random_uint()"
        ran = run(vertex(body, fields="x: FLOAT\nk: INT\nu: UNSIGNED_INT"), x=1.0, k=2, u=0)
        assert (ran["x"], ran["k"]) == ([9.0], [2])


def tripled(emitter, a):
    return emitter.builder.fmul(a, emitter.constant(a, 3.0))


def declared(emitter, a, name):
    return ir.Function(emitter.builder.module, ir.FunctionType(a.type, [a.type]), name)


RECIPES = {
    "a function that the row does not name": (
        lambda emitter, a: emitter.narrowed(emitter.library("exp", emitter.widened(a))),
        "cubed_f32: its recipe calls 'exp' of the C library; the functions that its row names in `library` are: cbrt",
    ),
    "a function with too many numbers": (
        lambda emitter, a: emitter.narrowed(emitter.library("cbrt", *[emitter.widened(a)] * 2)),
        "cubed_f32: its recipe calls 'cbrt' of the C library with (double, double), which takes 1 of type double",
    ),
    "a function with a single": (
        lambda emitter, a: emitter.library("cbrt", a),
        "cubed_f32: its recipe calls 'cbrt' of the C library with (float), which takes 1 of type double",
    ),
    "no intrinsic": (
        lambda emitter, a: emitter.intrinsic("cbrtf", a),
        "cubed_f32: its recipe calls 'cbrtf', which is no intrinsic of LLVM",
    ),
    "another type": (lambda emitter, a: emitter.widened(a), "cubed_f32: its recipe gives a value of type double, expected float"),
    "nothing": (lambda emitter, a: None, "cubed_f32: its recipe gives None, expected float"),
    "a function of its own": (
        lambda emitter, a: emitter.builder.call(declared(emitter, a, "stranger"), [a]),
        "the code of codelet Test calls 'stranger', which no row of its operations names",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("recipe", "message"), RECIPES.values(), ids=RECIPES)
def test_a_recipe_that_does_what_its_row_does_not_say_is_refused_by_name(registered, recipe, message):
    registered(evolve(CUBE, llvm=recipe, library=("cbrt",), lanes=()))
    with pytest.raises(ValueError, match=re.escape(message)):
        run(vertex("self.x = ipu.cubed(self.x) + 1.5", fields="x: FLOAT"), x=1.0)


def test_a_row_on_vectors_can_be_registered_and_its_use_is_refused(registered):
    registered(DOT)
    assert OPERATIONS["dot"].arguments == ("f32[]", "f32[]")
    with pytest.raises(CodeletError, match=r"ipu.dot: its row takes 'f32\[\]', and the translator has operations on scalars only"):
        codelet_of(vertex("self.x[0] = ipu.dot(self.x, self.x)", fields="x: InOut[Vector[FLOAT]]"))


def test_a_reading_of_the_tile_is_one_row(monkeypatch):
    """Its meaning, how it is written for LLVM, and its price."""
    row = TileReading(
        name="half_clock", result="u32", call="ipu.half_clock", prices=slots("", 9, "I"), meaning=lambda vertex: vertex.clock // 2,
        llvm=lambda emitter: emitter.builder.trunc(
            emitter.builder.lshr(emitter.clock, emitter.constant(emitter.clock, 1)), emitter.register("u32")
        ),
    )  # fmt: skip
    monkeypatch.setitem(READINGS, row.name, row)
    monkeypatch.setattr(ipu, "half_clock", device_function("half_clock"), raising=False)
    ran = run(vertex("self.x = ipu.half_clock()", fields="x: UNSIGNED_INT"), x=0, clock=2**32 + 14)
    assert (ran["x"], ran.slots) == ([2**31 + 7], 12 + 9 + 1)


def test_a_function_of_python_is_called_by_what_the_row_says(registered):
    cls = vertex("self.x = pow(self.x, 2.0)", fields="x: FLOAT")
    with pytest.raises(CodeletError, match=r"device code cannot use pow: write a \*\* b"):
        codelet_of(cls)
    power = OPERATIONS["power_f32"].row
    registered(evolve(power, name="pow_of", calls=("pow",), words={}))
    codelet = codelet_of(cls)
    assert run(codelet, x=3.0)["x"] == [9.0]
    source = CodeletSource.from_json(codelet.source.to_json())
    remove(OPERATIONS["pow_of_f32"].row)
    with pytest.raises(CodeletError, match=r"device code cannot use pow: write a \*\* b"):
        translate(source)


def test_the_forms_of_calls_are_those_that_the_translator_knows():
    written = {call for call, _ in expressions._SYMBOLS.values()}
    assert written - set(expressions._SWAPPED) == {call for call, operands in OPERATORS.items() if operands == 2}
    assert set(expressions._SWAPPED.values()) <= set(COMPARISONS)
    calls = {call for operation in OPERATIONS.values() for call in operation.row.calls}
    assert set(OPERANDS) <= calls


def test_every_chip_of_the_presets_has_prices():
    assert {preset.architecture for preset in PRESETS.values()} <= set(ARCHITECTURES)


def test_what_users_call_in_ipu_has_its_signature_there_and_nothing_else_stands_there():
    calls = {call.removeprefix("ipu.") for operation in OPERATIONS.values() for call in operation.row.calls if call[:4] == "ipu."}
    calls |= {row.call.removeprefix("ipu.") for row in (*READINGS.values(), *VECTOR_OPERATIONS.values())}
    own = {name for name, value in vars(ipu).items() if isinstance(value, FunctionType) and value.__module__ == "pypoplar.ipu"}
    assert (
        calls | {"array", "bit_cast", "debug_print", "check", "view", "worker_range", "float2", "float4", "half2", "half4"} == own
    )


def test_the_row_that_contributors_are_shown_can_be_registered_and_passes_its_test(registered):
    text = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## Add a device operation\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^   ```python\n(.*?)^   ```$", section, re.M | re.S)
    row, test = (textwrap.dedent(block).replace("cube", "shown") for block in blocks)  # who tries the guide has a `cube`
    names = {"DeviceOperation": DeviceOperation, "FLOATS": FLOATS, "Flops": Flops, "slots": slots, "_in_double": _in_double}
    registered(eval(row.strip(), names))
    functions = {}
    exec(test, functions)
    functions["test_shown_is_the_third_power_rounded_once"]()
