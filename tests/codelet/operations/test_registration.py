"""A device operation is one row: registered from outside it runs in both engines and is priced; a row with gaps is refused."""

import math
import textwrap
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from codelet_rig import BOW, codelet_of, lines, run, vertex
from native_rig import run_native

from pypoplar import ipu
from pypoplar.codelet.backend import cache
from pypoplar.codelet.ir.pricing import priced
from pypoplar.codelet.ir.typed import Price
from pypoplar.codelet.ir.walk import walk
from pypoplar.codelet.operations.device_operation import ARCHITECTURES, DeviceOperation, Flops, IssueSlots, slots
from pypoplar.codelet.operations.float_functions import _in_double
from pypoplar.codelet.operations.registers import FLOATS
from pypoplar.codelet.operations.table import OPERATIONS, called, operation, register, remove
from pypoplar.codelet.operations.tile_readings import READINGS
from pypoplar.errors import CodeletError
from pypoplar.presets import PRESETS


def cube_recipe(emitter, a):
    builder = emitter.builder
    return emitter.rounded(builder.fmul(emitter.rounded(builder.fmul(a, a)), a))


def cube_root_recipe(emitter, a):
    return emitter.narrowed(emitter.library("cbrt", emitter.widened(a)))


CUBE = DeviceOperation(
    name="cube", signature="T -> T", types=("f32",), calls=("ipu.cube",), meaning=lambda a: float(np.float32(a * a)) * a,
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
DOT = evolve(CUBE, name="dot", signature="f32[] f32[] -> f32", types=(), calls=("ipu.dot",), prices=(slots("", 3, "I"),))


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
        remove(row)


def test_a_registered_operation_runs_in_both_engines_and_costs_what_its_row_says(registered):
    registered(CUBE)
    cls = vertex("self.x[0] = ipu.cube(self.x[0])", fields="x: InOut[Vector[FLOAT]]")
    ran = run(cls, x=[1.1])
    x = np.float32(1.1)
    assert ran.fields["x"][0] == x * x * x
    assert "_2:f32 = cube_f32 _1" in lines(cls)
    (price,) = [statement for statement in walk(priced(codelet_of(cls).typed, BOW).body) if isinstance(statement, Price)]
    assert (price.slots, price.flops) == (12 + 1 + 7 + 1, 2)
    assert {OPERATIONS["cube_f32"].price(architecture).slots for architecture in ARCHITECTURES} == {7}


def test_a_registered_operation_runs_side_by_side(registered):
    registered(CUBE)
    body = "t = 0.0\nfor i in range(len(self.x)):\n    t += ipu.cube(self.x[i])\nself.out = t"
    codelet = priced(codelet_of(vertex(body, fields="x: Input[Vector[FLOAT]]\nout: Output[FLOAT]")).typed, BOW)
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
    cls = vertex("self.x = ipu.cube(self.x)", fields="x: FLOAT")
    registered(CUBE)
    codelet = codelet_of(cls)
    assert run(codelet, x=2.0)["x"] == [8.0]
    remove(CUBE)
    with pytest.raises(LookupError, match=r"no device operation 'cube_f32'"):
        operation("cube_f32")
    assert not called("ipu.cube")
    with pytest.raises(LookupError, match=r"no device operation 'cube_f32'"):
        priced(codelet.typed, BOW)
    with pytest.raises(CodeletError, match=r"pypoplar.ipu has no device function 'cube'"):
        codelet_of(cls)
    other = evolve(CUBE, meaning=lambda a: a + a, llvm=lambda emitter, a: emitter.builder.fadd(a, a))
    registered(other)
    assert run(codelet, x=3.0)["x"] == [6.0]


def test_code_with_an_operation_from_outside_is_not_kept_on_disk(registered, monkeypatch):
    stored = []
    monkeypatch.setattr(cache, "store", lambda key, content: stored.append(key))
    monkeypatch.setattr(cache, "load", lambda key: None)
    registered(CUBE)
    run(vertex("self.x = ipu.cube(self.x) + 3.25", fields="x: FLOAT"), x=2.0)
    assert not stored
    run(vertex("self.x = self.x * 3.1875", fields="x: FLOAT"), x=2.0)
    assert len(stored) == 1


INCOMPLETE = {
    "no price": (evolve(CUBE, prices=()), "cube_f32 has no price for architecture 'ipu1'"),
    "no price for one type": (evolve(CUBE_ROOT, prices=(slots("f32", 1, "I"),)), "cbrt_f16 has no price for architecture 'ipu1'"),
    "no price for one architecture": (
        evolve(CUBE, prices=(IssueSlots(("f32",), 1, "I", architectures=("ipu1", "cpu")),)),
        "cube_f32 has no price for architecture 'ipu2'",
    ),
    "two prices": (evolve(CUBE, prices=CUBE.prices * 2), "cube_f32 has 2 prices for architecture 'ipu1'"),
    "a negative price": (evolve(CUBE, prices=(slots("f32", -1, "I"),)), "cube_f32: a price of -1 slots"),
    "no meaning": (evolve(CUBE, meaning=None), "cube_f32 has no meaning in Python"),
    "no emission": (evolve(CUBE, llvm=None), "cube_f32 has no recipe for LLVM"),
    "no flops": (evolve(CUBE, flops=None), "cube_f32 does not say how many floating-point operations it is"),
    "an unknown type": (evolve(CUBE, signature="T -> f64"), "cube_f32: there is no type 'f64' in its signature"),
    "no result": (evolve(CUBE, signature="T"), "cube_f32: its signature is 'T'; write it as"),
    "a name that there is": (evolve(CUBE, name="add"), "add_f32: there is one of this name"),
    "a call that there is": (evolve(CUBE, calls=("math.exp",)), "cube_f32: math.exp is exp_f32"),
}


@pytest.mark.parametrize(("row", "message"), INCOMPLETE.values(), ids=INCOMPLETE)
def test_a_row_that_leaves_something_out_is_refused_by_name(row, message):
    before = dict(OPERATIONS)
    with pytest.raises(ValueError, match=f"device operation {message}"):
        register(row)
    assert dict(OPERATIONS) == before


def test_a_row_on_vectors_can_be_registered_and_its_use_is_refused(registered):
    registered(DOT)
    assert OPERATIONS["dot"].arguments == ("f32[]", "f32[]")
    with pytest.raises(CodeletError, match=r"ipu.dot: its row takes 'f32\[\]', and the translator has operations on scalars only"):
        codelet_of(vertex("self.x[0] = ipu.dot(self.x, self.x)", fields="x: InOut[Vector[FLOAT]]"))


def test_every_chip_of_the_presets_has_prices():
    assert {preset.architecture for preset in PRESETS.values()} <= set(ARCHITECTURES)


def test_what_users_call_in_ipu_has_its_signature_there_and_nothing_else_stands_there():
    calls = {call.removeprefix("ipu.") for operation in OPERATIONS.values() for call in operation.row.calls if call[:4] == "ipu."}
    calls |= {reading.call.removeprefix("ipu.") for reading in READINGS.values()}
    own = {name for name, value in vars(ipu).items() if getattr(value, "__module__", None) == "pypoplar.ipu"}
    assert calls | {"debug_print", "check"} == own


def test_the_row_that_contributors_are_shown_can_be_registered(registered):
    text = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text()
    section = text[text.index("## Add a device operation") :]
    row = textwrap.dedent(section[section.index("```python") + len("```python") : section.index("   ```\n\n")])
    names = {"DeviceOperation": DeviceOperation, "FLOATS": FLOATS, "Flops": Flops, "slots": slots, "_in_double": _in_double}
    registered(eval(row.strip(), names))
    for element, scalar in (("FLOAT", np.float32), ("HALF", np.float16)):
        x = scalar(1.3)
        assert run(vertex("self.x = ipu.cube(self.x)", fields=f"x: {element}"), x=x).fields["x"][0] == scalar(float(x) ** 3)
