"""What the rounds of a loop cost at most, and which locals are as short as vectors are."""

import pytest
from codelet_rig import priced_codelet, vertex
from hypothesis import given
from hypothesis import strategies as st

from pypoplar.codelet.ir.loop_limits import is_even, most_of_round, most_slots, round_slots, rounds_of, short_locals, stretch
from pypoplar.codelet.ir.typed import For
from pypoplar.codelet.ir.walk import walk

FIELDS = "x: InOut[Vector[INT]]\ny: InOut[INT]\nn: INT"
whole = st.integers(-(2**63), 2**64)


def loops(body, **options):
    codelet = priced_codelet(vertex(body, fields=FIELDS, **options))
    return [statement for statement in walk(codelet.body) if isinstance(statement, For)], short_locals(codelet)


@given(whole, whole, whole.filter(bool))
def test_rounds_are_those_of_pythons_range(start, stop, step):
    rounds = rounds_of(start, stop, step)
    some = range(start, stop, step)
    assert (rounds == 0) == (not some)
    if rounds:
        assert some[rounds - 1] == some[-1]


@pytest.mark.parametrize(
    ("body", "even"),
    [
        ("self.y += i", True),
        ("self.x[i] = 1 // self.x[i + 1]", True),
        ("self.y = INT(ipu.cycle_count())", True),
        ("ipu.check(i < 3)", True),
        ("pass", True),
        ("if i > 3:\n        self.y += 1", False),
        ("for j in range(3):\n        self.y += 1", False),
        ("self.y += 1 if i > 3 and i < 7 else 0", False),
        ("break", False),
    ],
)
def test_a_loop_is_even_if_its_body_branches_nowhere(body, even):
    (loop, *_), _ = loops(f"for i in range(self.n):\n    {body}")
    assert is_even(loop) is even


def test_a_round_that_costs_nothing_counts_as_a_slot():
    (loop,), _ = loops("for i in range(self.n):\n    pass")
    assert most_slots(loop.body) == 0
    assert round_slots(loop) == 1


def test_of_branches_the_most_expensive_counts_and_of_known_loops_every_round():
    body = "for j in range(0, 7, 2):\n        self.y += j\n    if i > 3:\n        self.y *= 3\n        self.y += 1"
    (loop, inner), _ = loops(f"for i in range(self.n):\n    {body}")
    body = [most_slots((statement,)) for statement in loop.body]
    assert body[1] == 4 * round_slots(inner)
    assert most_of_round(loop) == sum(body)
    assert most_of_round(loops("for i in range(self.n):\n    for j in range(self.n):\n        self.y += j")[0][0]) is None


@pytest.mark.parametrize(
    ("bounds", "short"),
    [
        ("len(self.x)", True),
        ("1, len(self.x) - 1", True),
        ("len(self.x) // 2, -1, -1", True),
        ("min(len(self.x), 7)", True),
        ("100", True),
        ("10**8", False),
        ("self.n", False),
        ("self.n, len(self.x)", False),
        ("len(self.x) * 100000", False),
        ("len(self.x) // self.n", False),
    ],
)
def test_a_loop_is_short_if_its_bounds_are_lengths_or_little_else(bounds, short):
    (loop,), names = loops(f"for i in range({bounds}):\n    self.y += i")
    assert (stretch(loop, 1, names) is None) is short


def test_what_grows_in_a_loop_is_not_short():
    (first, second), names = loops("k = len(self.x)\nfor i in range(k):\n    k = k + k\nfor j in range(k):\n    self.y += j")
    assert "k" not in {name for name in names if name.startswith("k")}
    assert stretch(first, 1, names) is not None
    assert stretch(second, 1, names) is not None


def test_the_worker_and_variables_of_short_loops_are_short():
    (outer, inner), names = loops(
        "for i in range(worker, len(self.x), 6):\n    for j in range(i, len(self.x)):\n        self.x[j] = 1",
        base="MultiVertex",
        head="self, worker",
    )
    assert stretch(outer, 1, names) is None
    assert stretch(inner, 1, names) is None
