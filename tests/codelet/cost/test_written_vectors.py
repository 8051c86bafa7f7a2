"""What vectors of the hardware cost that a codelet is written with: an instruction for all elements, in both engines."""

import numpy as np
import pytest
from codelet_rig import BOW, codelet_of, run, vertex

from pypoplar import CodeletError, ipu
from pypoplar.codelet.cost.compiled_code import compiled

VALUES = {"x": np.linspace(-1, 2, 16), "y": np.zeros(16), "k": np.float64(0.5)}
FIELDS = "x: Input[Vector[{0}]]\ny: InOut[Vector[{0}]]\nk: {0}"


def _vector(name, count, element):
    """A statement with an element of each place."""
    targets = ", ".join(f"self.y[i * {count} + {lane}]" for lane in range(count))
    return f"{targets} = ipu.{name}({', '.join(element.format(f'i * {count} + {lane}', lane) for lane in range(count))})"


def _loop(name, count, element, rounds):
    return f"k = self.k\nfor i in range({rounds}):\n    {_vector(name, count, element)}"


def _round(body, element):
    """The bundles of a round of a loop."""
    code = compiled(codelet_of(vertex(body, fields=FIELDS.format(element))).typed, BOW)
    (run,) = (run for run in code.runs if run.depth)
    return [[instruction.name for instruction in bundle.instructions] for bundle in run.bundles]


@pytest.mark.parametrize(
    ("name", "count", "element", "expected"),
    [
        ("float2", 2, "FLOAT", ["ld64", "mul_f32", "add_f32", "st64"]),
        ("half4", 4, "HALF", ["ld64", "mul_f16", "add_f16", "st64"]),
        ("half2", 2, "HALF", ["ld32", "mul_f16", "add_f16", "st32"]),
        ("float4", 4, "FLOAT", ["ld64", "ld64", "mul_f32", "mul_f32", "add_f32", "add_f32", "st64", "st64"]),
    ],
)
def test_a_round_is_an_instruction_for_each_operation(name, count, element, expected):
    names = [one for bundle in _round(_loop(name, count, "self.x[{0}] * k + 1.0", 3), element) for one in bundle]
    assert sorted(one for one in names if one not in ("or", "brnzdec")) == sorted(expected)
    dtype = {"FLOAT": np.float32, "HALF": np.float16}[element]
    values = {field: np.asarray(value, dtype) for field, value in VALUES.items()}
    cls = vertex(_loop(name, count, "self.x[{0}] * k + 1.0", 2), fields=FIELDS.format(element))
    ran = run(cls, **values | {"k": values["k"][()]})
    expected_values = (values["x"] * dtype(0.5)).astype(dtype) + dtype(1)
    assert ran["y"][: 2 * count] == expected_values[: 2 * count].tolist()
    alone = _loop(name, count, "self.x[{0}] * k + 1.0", 2).replace(f"ipu.{name}", "")
    assert ran.slots < run(vertex(alone, fields=FIELDS.format(element)), **values | {"k": values["k"][()]}).slots


def test_a_sum_of_pairs_keeps_its_pair():
    body = "a, b = ipu.float2(0.0, 0.0)\nfor i in range(8):\n"
    body += "    a, b = ipu.float2(a + self.x[i * 2], b + self.x[i * 2 + 1])\nself.y[0] = a + b"
    assert _round(body, "FLOAT") == [["ld64"], ["add_f32"]]
    ran = run(
        vertex(body, fields=FIELDS.format("FLOAT")), x=np.arange(16, dtype=np.float32), y=np.zeros(1, np.float32), k=np.float32(0)
    )
    assert ran["y"] == [120.0]


def test_elements_in_other_places_are_moved():
    swapped = "for i in range(8):\n    a, b = ipu.float2(self.x[i * 2], self.x[i * 2 + 1])\n"
    swapped += "    self.y[i * 2], self.y[i * 2 + 1] = ipu.float2(b, a)"
    assert [name for bundle in _round(swapped, "FLOAT") for name in bundle].count("mov") == 2
    ran = run(
        vertex(swapped, fields=FIELDS.format("FLOAT")),
        x=np.arange(16, dtype=np.float32),
        y=np.zeros(16, np.float32),
        k=np.float32(0),
    )
    assert ran["y"][:4] == [1.0, 0.0, 3.0, 2.0]


def test_values_are_taken_before_a_target_is_set():
    body = "a = self.x[0]\nb = self.x[1]\na, b = ipu.float2(b, a)\nself.y[0] = a\nself.y[1] = b"
    ran = run(vertex(body, fields=FIELDS.format("FLOAT")), x=np.float32([1, 2]), y=np.zeros(2, np.float32), k=np.float32(0))
    assert ran["y"] == [2.0, 1.0]


def test_what_is_not_beside_each_other_is_loaded_one_by_one():
    names = [name for bundle in _round(_loop("float2", 2, "self.x[({0}) * 3]", 2), "FLOAT") for name in bundle]
    assert names.count("ld32") == 2
    assert "ld64" not in names


def test_branches_and_readings_stay_in_the_order_of_the_text():
    body = "self.y[0], self.y[1] = ipu.float2(1.0 if self.x[0] > 0.0 else 2.0, 1.0 if self.x[1] > 0.0 else ipu.random_float())"
    ran = run(vertex(body, fields=FIELDS.format("FLOAT")), x=np.float32([-1, 1]), y=np.zeros(2, np.float32), k=np.float32(0))
    assert ran["y"] == [2.0, 1.0]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("a, b = ipu.float2(self.x[0])", "takes 2 numbers"),
        ("a, b, c = ipu.float2(1.0, 2.0)", "3 targets for the 2 elements"),
        ("a = ipu.float2(1.0, 2.0)", "write a, b = ipu.float2"),
        ("self.y[0] = ipu.float2(1.0, 2.0)[0]", "write a, b = ipu.float2"),
        ("a, b = ipu.half2(self.x[0], 1.0)", r"are HALFs, got FLOAT: write HALF\(...\)"),
    ],
)
def test_other_uses_say_what_to_write(body, message):
    with pytest.raises(CodeletError, match=message):
        codelet_of(vertex(body, fields=FIELDS.format("FLOAT")))


def test_on_the_host_they_round():
    assert ipu.float2(0.1, 2) == (float(np.float32(0.1)), 2.0)
    assert ipu.half4(0.1, 1, 2, 3) == (float(np.float16(0.1)), 1.0, 2.0, 3.0)
    assert len(ipu.float4(1, 2, 3, 4)) == len(ipu.half2(1, 2)) * 2 == 4
