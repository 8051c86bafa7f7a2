"""Loops stop at the cycle limit, native code where the Python form does, however rarely it looks."""

import numpy as np
import pytest
from both_forms import compare_forms
from codelet_rig import run, vertex
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from typed_strategies import alike, codelets, sums, vertices

from pypoplar.codelet.backend import native_codelet
from pypoplar.codelet.ir import loop_limits
from pypoplar.interface.fault_codes import FaultCode


@pytest.fixture(autouse=True, scope="module", params=(1, 30))
def stretch(request, tmp_path_factory):
    """How long code runs without a look; it is no part of what machine code is kept by."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(native_codelet, "_compiled", {})
        patch.setattr(loop_limits, "STRETCH", request.param)
        patch.setattr(loop_limits, "_LONGEST", 1)
        yield


limits = st.integers(0, 400) | st.integers(0, 4000)


@examples(40)
@given(st.data())
def test_random_codelets_come_to_the_limit_in_the_same_place(data):
    codelet = data.draw(codelets())
    options = data.draw(st.fixed_dictionaries({"touches": st.booleans(), "mask": st.integers(0, 7), "flops": st.booleans()}))
    if data.draw(st.booleans()):
        options |= {"touches": False, "mask": 0}
    compare_forms(codelet, data.draw(vertices(codelet)), cycle_limit=data.draw(limits), **options)


@examples(40)
@given(st.data())
def test_random_sums_come_to_the_limit_in_the_same_place(data):
    codelet = data.draw(sums())
    compare_forms(codelet, data.draw(alike(codelet)), cycle_limit=data.draw(limits), flops=data.draw(st.booleans()))


# Each body, as a user writes it; at every limit both engines stop at the same line with the same memory.

BODIES = {
    "even": "for i in range(len(self.x)):\n    self.x[i] += 1",
    "even, unbounded": "for i in range(self.n):\n    self.y += 3",
    "even, may fault": "for i in range(self.n):\n    self.x[self.x[i % 5] & 3] = i",
    "uneven": "for i in range(len(self.x)):\n    if self.x[i] > 2:\n        self.x[i] = i\n    self.y += 1",
    "uneven, unbounded": "for i in range(self.n):\n    if i % 3 == 1:\n        self.y += i\n    else:\n        self.x[i % 5] += 1",
    "left early": "for i in range(self.n):\n    self.y = i\n    if i == 9:\n        break",
    "continued": "for i in range(self.n):\n    if i == 2:\n        continue\n    self.x[0] += i",
    "returned from": "for i in range(self.n):\n    self.y = i\n    if i == 9:\n        return",
    "nested": "for i in range(self.n):\n    for j in range(self.n):\n        self.y += j",
    "nested, known": "for i in range(self.n):\n    for j in range(3):\n        self.x[j] += i",
    "nested, behind a store": "for i in range(self.n):\n    self.y += 1\n    for j in range(self.x[0]):\n        self.y += j",
    "nested, behind an index": "for i in range(self.n):\n    k = self.x[i] & 3\n    for j in range(k, 3):\n        self.y += j",
    "nested, often empty": "for i in range(self.n):\n    for j in range(i, 6):\n        self.y += j",
    "three deep": "for i in range(3):\n    for j in range(i):\n        for k in range(2):\n            self.y += i if k else j",
    "while within": "for i in range(self.n):\n    k = i\n    while k > 0:\n        k //= 2\n        self.y += 1",
    "within while": "k = self.n\nwhile k > 0:\n    for i in range(k):\n        self.y += i\n    k -= 1",
    "a helper": "for i in range(self.n):\n    self.y += collatz(i)",
    "downwards": "for i in range(self.n, -1, -2):\n    if i > 3:\n        self.y += i",
    "wide": "for i in range(LONGLONG(self.n)):\n    self.y += 1",
    "counter": "for i in range(self.n):\n    self.y = INT(ipu.cycle_count())",
    "costs nothing": "for i in range(self.n):\n    pass",
    "prints": "for i in range(self.n):\n    ipu.debug_print('i', i)",
    "random": "for i in range(self.n):\n    for j in range(3):\n        self.y = INT(ipu.random_uint() & 7)",
    "random first": "for i in range(self.n):\n    r = ipu.random_uint()\n    for j in range(3):\n        self.y += INT(r & 7)",
}
PRELUDE = """
def collatz(n):
    if n < 2:
        return 0
    return n // 2 if n % 2 == 0 else 3 * n + 1
"""


@pytest.mark.parametrize("body", BODIES)
def test_every_kind_of_loop_comes_to_the_limit_in_the_same_place(body):
    cls = vertex(BODIES[body], fields="x: InOut[Vector[INT]]\ny: InOut[INT]\nn: INT", prelude=PRELUDE)
    codes = set()
    for limit in [*range(0, 120, 7), 200, 300, 500, 1000, 10**9]:
        ran = run(cls, x=[2, 4, 1, 0, 3], y=0, n=11, cycle_limit=limit)
        codes.add(ran.fault[0] if ran.fault else 0)
    assert FaultCode.CYCLE_LIMIT in codes


def far(n, count="INT"):
    return {"x": np.zeros(3, np.int32), "n": np.array(n, np.int32 if count == "INT" else np.int64)}


@pytest.mark.parametrize("count", ["INT", "LONGLONG"])
def test_rounds_that_nobody_could_run_are_judged_before_the_first(count):
    n = 2**31 - 1 if count == "INT" else 2**63 - 1
    cls = vertex("for i in range(self.n):\n    self.x[i % 3] += 1", fields=f"x: InOut[Vector[INT]]\nn: {count}")
    ran = run(cls, **far(n, count), cycle_limit=10**9)
    assert ran.fault is not None
    assert ran.fault[0] == FaultCode.CYCLE_LIMIT
    assert ran["x"] == [0, 0, 0]


@pytest.mark.parametrize("first", [-(2**63), -1, 0])
def test_judging_does_not_overflow(first):
    body = f"for i in range(LONGLONG({first}) + self.n * 0, self.n, 1):\n    self.x[0] = 1"
    ran = run(vertex(body, fields="x: InOut[Vector[INT]]\nn: LONGLONG"), **far(2**63 - 1, "LONGLONG"), cycle_limit=2**62)
    assert ran.fault is not None
    assert ran.fault[0] == FaultCode.CYCLE_LIMIT
    assert ran["x"] == [0, 0, 0]


def test_no_round_is_not_judged():
    cls = vertex("for i in range(self.n):\n    self.x[0] = 1\nself.x[1] = 5", fields="x: InOut[Vector[INT]]\nn: INT")
    ran = run(cls, **far(0), cycle_limit=1)
    assert ran.fault is None
    assert ran["x"] == [0, 5, 0]
