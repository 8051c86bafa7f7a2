"""Codelets in C++ and their twins in Python: equal bits, equal cycles, in both engines and under both prices; so is what is ported."""

import textwrap

import numpy as np
import pytest

pytest.importorskip("clang")

from codelet_rig import BOW, module_from, run, vertex
from cpp_programs import codelet

from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.cost.pricing import COMPILED, priced
from pypoplar.codelet.cpp.porting import _Module
from pypoplar.codelet.ir.typed import Price
from pypoplar.codelet.ir.walk import walk

# ruff: noqa: E501 - a line of C++ each
ONE = ("InOut<Vector<float>> x;", "x: InOut[Vector[FLOAT]]", {"x": np.linspace(-2, 3, 9, dtype=np.float32)})
TWO = (
    "Input<Vector<float>> x; Output<Vector<float>> y; int n;",
    "x: Input[Vector[FLOAT]]\ny: Output[Vector[FLOAT]]\nn: INT",
    {"x": np.linspace(-2, 3, 9, dtype=np.float32), "y": np.zeros(9, np.float32), "n": np.int32(4)},
)
HALVES = (
    "Input<Vector<half>> x; InOut<Vector<half>> y; float k;",
    "x: Input[Vector[HALF]]\ny: InOut[Vector[HALF]]\nk: FLOAT",
    {"x": np.linspace(-2, 3, 9, dtype=np.float16), "y": np.ones(9, np.float16), "k": np.float32(0.3)},
)
WHOLE = (
    "Input<Vector<int>> x; Output<Vector<unsigned>> y; unsigned n;",
    "x: Input[Vector[INT]]\ny: Output[Vector[UNSIGNED_INT]]\nn: UNSIGNED_INT",
    {"x": np.arange(-4, 5, dtype=np.int32), "y": np.zeros(9, np.uint32), "n": np.uint32(7)},
)
ROWS = (
    "Input<VectorList<float, VectorListLayout::DELTANELEMENTS>> x; Output<Vector<float>> y;",
    "x: Input[VectorList[FLOAT]]\ny: Output[Vector[FLOAT]]",
    {"x": [np.arange(3, dtype=np.float32), np.ones(4, np.float32)], "y": np.zeros(2, np.float32)},
)

TWINS = {
    "scale": (
        TWO,
        "for (unsigned i = 0; i < x.size(); ++i) y[i] = 2.5f * x[i];",
        "for i in range(len(self.x)):\n self.y[i] = 2.5 * self.x[i]",
    ),
    "in place": (ONE, "for (float &v : x) v *= 2;", "for i in range(len(self.x)):\n self.x[i] *= 2.0"),
    "sum": (
        TWO,
        "float sum = 0; for (auto v : x) sum += v; y[0] = sum;",
        "sum = 0.0\nfor v in self.x:\n sum += v\nself.y[0] = sum",
    ),
    "largest": (
        TWO,
        "float most = x[0]; for (unsigned i = 1; i < x.size(); ++i) most = most < x[i] ? x[i] : most; y[n] = most;",
        "most = self.x[0]\nfor i in range(1, len(self.x)):\n most = self.x[i] if most < self.x[i] else most\nself.y[self.n] = most",
    ),
    "branch": (
        TWO,
        "for (int i = 0; i < n; ++i) { if (x[i] < 0) { y[i] = -x[i]; } else if (x[i] > 1.5f) { y[i] = 1.5f; } else { y[i] = x[i]; } }",
        "for i in range(self.n):\n if self.x[i] < 0.0:\n  self.y[i] = -self.x[i]\n elif self.x[i] > 1.5:\n  self.y[i] = 1.5\n else:\n  self.y[i] = self.x[i]",
    ),
    "strides": (TWO, "for (int i = 1; i < 9; i += 3) y[i] = x[i - 1];", "for i in range(1, 9, 3):\n self.y[i] = self.x[i - 1]"),
    "down": (
        TWO,
        "for (int i = n - 1; i >= 0; --i) y[i] = x[n - i];",
        "for i in range(self.n - 1, -1, -1):\n self.y[i] = self.x[self.n - i]",
    ),
    "leaving": (
        TWO,
        "for (unsigned i = 0; i < x.size(); ++i) { if (x[i] > 0) break; if (x[i] == -2) continue; y[i] = 1; }",
        "for i in range(len(self.x)):\n if self.x[i] > 0.0:\n  break\n if self.x[i] == -2.0:\n  continue\n self.y[i] = 1.0",
    ),
    "while": (
        TWO,
        "int left = n; while (left > 0) { y[left] = x[left]; left -= 2; }",
        "left = self.n\nwhile left > 0:\n self.y[left] = self.x[left]\n left -= 2",
    ),
    "roots": (
        TWO,
        "for (unsigned i = 0; i < x.size(); ++i) y[i] = std::sqrt(std::fabs(x[i]));",
        "for i in range(len(self.x)):\n self.y[i] = math.sqrt(abs(self.x[i]))",
    ),
    "functions": (
        TWO,
        "for (unsigned i = 0; i < x.size(); ++i) y[i] = std::exp(x[i]) + std::tanh(x[i]) * std::max(x[i], 0.5f);",
        "for i in range(len(self.x)):\n self.y[i] = math.exp(self.x[i]) + math.tanh(self.x[i]) * max(self.x[i], 0.5)",
    ),
    "halves": (
        HALVES,
        "for (unsigned i = 0; i < x.size(); ++i) y[i] = y[i] + x[i];",
        "for i in range(len(self.x)):\n self.y[i] = self.y[i] + self.x[i]",
    ),
    "axpy in float": (
        HALVES,
        "for (unsigned i = 0; i < x.size(); ++i) y[i] = static_cast<float>(y[i]) + k * static_cast<float>(x[i]);",
        "for i in range(len(self.x)):\n self.y[i] = self.y[i] + self.k * self.x[i]",
    ),
    "bits": (
        WHOLE,
        "for (unsigned i = 0; i < x.size(); ++i) y[i] = (n << 3) ^ (unsigned(x[i]) >> 2);",
        "for i in range(len(self.x)):\n self.y[i] = self.n << 3 ^ UNSIGNED_INT(self.x[i]) >> 2",
    ),
    "division": (
        WHOLE,
        "for (unsigned i = 0; i < x.size(); ++i) y[i] = x[i] / 3 + x[i] % 4;",
        "for i in range(len(self.x)):\n self.y[i] = ipu.quotient(self.x[i], 3) + ipu.remainder(self.x[i], 4)",
    ),
    "unsigned division": (
        WHOLE,
        "for (unsigned i = 0; i < x.size(); ++i) y[i] = n / 3 + n % 4;",
        "for i in range(len(self.x)):\n self.y[i] = self.n // 3 + self.n % 4",
    ),
    "rows": (
        ROWS,
        "for (unsigned r = 0; r < x.size(); ++r) { float sum = 0; for (unsigned c = 0; c < x[r].size(); ++c) sum += x[r][c]; y[r] = sum; }",
        "for r in range(len(self.x)):\n sum = 0.0\n for c in range(len(self.x[r])):\n  sum += self.x[r][c]\n self.y[r] = sum",
    ),
    "a row by its name": (
        ROWS,
        "unsigned r = 0; for (auto &row : x) { y[r] = row[row.size() - 1]; ++r; }",
        "r: UNSIGNED_INT = 0\nfor row in self.x:\n self.y[r] = row[len(row) - 1]\n r += 1",
    ),
    "work": (
        TWO,
        "float work[4] = {0}; for (int i = 0; i < 4; ++i) work[i] = x[i]; for (int i = 0; i < 4; ++i) y[i] = work[3 - i];",
        "work = ipu.array(FLOAT, 4)\nwork[0] = 0.0\nfor i in range(1, 4):\n work[i] = 0.0\nfor i in range(4):\n work[i] = self.x[i]\n"
        "for i in range(4):\n self.y[i] = work[3 - i]",
    ),
    "pointer": (
        TWO,
        "const float *p = &x[1]; for (int i = 0; i < n; ++i) y[i] = *p++;",
        "p = 1\nfor i in range(self.n):\n self.y[i] = self.x[p]\n p += 1",
    ),
    "choice": (
        WHOLE,
        "switch (n) { case 6: y[0] = 1; break; case 7: case 8: y[0] = 2; break; default: y[0] = 3; }",
        "choice = self.n\nif choice == 6:\n self.y[0] = 1\nelif choice == 7 or choice == 8:\n self.y[0] = 2\nelse:\n self.y[0] = 3",
    ),
    "defaults": (
        TWO,
        "y[0] = scaled(x[0]); y[1] = scaled(x[1], 3);",
        "y0 = self.x[0] * 2.0\nself.y[0] = y0\nself.y[1] = self.x[1] * 3.0",
    ),
    "pairs of floats": (
        TWO,
        "const float2 *p = (const float2 *)&x[0]; float2 *q = reinterpret_cast<float2 *>(&y[0]); const float k = n;\n"
        "for (int i = 0; i < 4; ++i) q[i] = p[i] * k + 1.0f;",
        "k = float(self.n)\nfor i in range(4):\n"
        " to = i * 2\n at = i * 2\n self.y[to], self.y[to + 1] = ipu.float2(self.x[at] * k + 1.0, self.x[at + 1] * k + 1.0)",
    ),
    "four halves": (
        HALVES,
        "half4 sum = {0, 0, 0, 0}; auto *p = (const half4 *)&x[0]; for (int i = 0; i < 2; ++i) sum += p[i] * p[i];\n"
        "*(half4 *)&y[0] = sum; y[8] = sum[0] + sum[3];",
        "a, b, c, d = ipu.half4(0.0, 0.0, 0.0, 0.0)\nfor i in range(2):\n"
        " at = i * 4\n to = i * 4\n a, b, c, d = ipu.half4(a + self.x[at] * self.x[to], b + self.x[at + 1] * self.x[to + 1], c + self.x[at + 2] * self.x[to + 2], d + self.x[at + 3] * self.x[to + 3])\n"
        "self.y[0], self.y[1], self.y[2], self.y[3] = ipu.half4(a, b, c, d)\nself.y[8] = a + d",
    ),
    "double that is float": (
        TWO,
        "for (unsigned i = 0; i < x.size(); ++i) y[i] = x[i] * 0.5;",
        "for i in range(len(self.x)):\n self.y[i] = self.x[i] * 0.5",
    ),
}


def _prices(codelet):
    return [statement for statement in walk(priced(codelet.typed, BOW, COMPILED).body) if isinstance(statement, Price)]


@pytest.mark.parametrize("name", TWINS)
def test_a_codelet_and_its_twin_compute_and_cost_the_same(name):
    (in_cpp, in_python, values), body, twin = TWINS[name]
    ours = codelet(
        body, in_cpp, "#include <cmath>\n#include <algorithm>\nstatic float scaled(float v, float k = 2) { return v * k; }"
    )
    twin = textwrap.dedent(twin).replace("\n ", "\n    ").replace("\n     ", "\n        ")
    theirs = vertex(twin + "\nreturn True", fields=in_python)
    first, second = run(ours, **values), run(theirs, **values)
    assert first.fault is second.fault is None
    changed = [field.name for field in ours.fields if field.access != "input"]
    assert [first[field] for field in changed] == [second[field] for field in changed]
    assert first.slots == second.slots
    module = _Module()
    module.add([ours])
    ported = run(module_from(module.text(["test.cpp"]))["Test"], **values)
    assert [ported[field] for field in changed] == [first[field] for field in changed]
    assert ported.slots == first.slots
    assert _prices(ours) == _prices(Codelet.of_class(theirs))
