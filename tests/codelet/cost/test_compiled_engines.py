"""Prices of compiled code in both engines: the same slots, also where rounds are paid for together and where the limit is met."""

import numpy as np
import pytest
from attrs import evolve
from block_rig import bare_form
from both_forms import compare_forms
from codelet_rig import BOW, codelet_of, vertex
from hypothesis import assume, given
from hypothesis import strategies as st
from native_rig import compile_codelet
from typed_strategies import alike, codelets, sums, vertices

from pypoplar.codelet.cost.pricing import COMPILED, priced
from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.typed import For, Price
from pypoplar.codelet.ir.walk import walk


@pytest.fixture(autouse=True, scope="module")
def directory(tmp_path_factory):
    """Random codelets are not worth keeping."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def compiled_form(codelet):
    """A random codelet with the prices of its compiled code instead of its own."""
    return priced(bare_form(codelet), BOW, COMPILED)


def check_bounds(codelet):
    """No bound is above its price."""
    for statement in walk(codelet.body):
        if isinstance(statement, Price):
            assert 0 <= statement.bound <= statement.slots
        elif isinstance(statement, For) and statement.price is not None:
            assert 0 < statement.price.bound <= statement.price.slots
            assert 0 < statement.price.bound_of_rest <= statement.price.rest


def test_code_that_counts_is_cached_by_its_bounds_too():
    fields = "x: InOut[Vector[FLOAT]]\nn: INT"
    codelet = priced(codelet_of(vertex("for i in range(self.n):\n    self.x[i] *= 2.0", fields=fields)).typed, BOW, COMPILED)
    (loop,) = (statement for statement in codelet.body if isinstance(statement, For))
    first = codelet.body[0]
    assert isinstance(first, Price)
    assert loop.price is not None

    def with_statement(old, new):
        return evolve(codelet, body=tuple(new if statement is old else statement for statement in codelet.body))

    others = [
        with_statement(first, evolve(first, bound=first.bound - 1)),
        with_statement(loop, evolve(loop, price=evolve(loop.price, bound=1 + loop.price.bound))),
        with_statement(loop, evolve(loop, price=evolve(loop.price, bound_of_rest=1 + loop.price.bound_of_rest))),
    ]
    assert len({compile_codelet(each, Checks(flops=True)).address for each in (codelet, *others)}) == 4
    assert len({compile_codelet(each).address for each in (codelet, *others)}) == 1


limits = st.integers(0, 600) | st.integers(0, 10_000)


@given(st.data())
def test_random_codelets_cost_the_same_in_both_engines(data):
    codelet = compiled_form(data.draw(codelets()))
    check_bounds(codelet)
    compare_forms(codelet, data.draw(vertices(codelet)), cycle_limit=data.draw(limits), flops=data.draw(st.booleans()))


@given(st.data())
def test_random_sums_cost_the_same_in_both_engines(data):
    codelet = compiled_form(data.draw(sums()))
    check_bounds(codelet)
    compare_forms(codelet, data.draw(alike(codelet)), cycle_limit=data.draw(limits), flops=data.draw(st.booleans()))


terms = st.sampled_from(["self.x[{i}]", "self.a[{i}]", "self.a[{i} + 1]", "self.b[{i}]", "self.k", "2.0", "0.1", "self.x[{i} + 2]"])
operators = st.sampled_from([" + ", " - ", " * "])


@st.composite
def elementwise(draw):
    """A codelet whose loop may run on vectors, in a loop or not, on all of a vector or up to anything."""
    element = draw(st.sampled_from(["FLOAT", "FLOAT", "HALF"]))
    lines = []
    for _ in range(draw(st.integers(1, 2))):
        right = draw(terms) + "".join(draw(operators) + draw(terms) for _ in range(draw(st.integers(0, 3))))
        lines.append(f"{draw(st.sampled_from(['self.x', 'self.o']))}[{{i}}{draw(st.sampled_from(['', '', ' + 1']))}] = {right}")
    stop = draw(st.sampled_from(["self.n", "len(self.o)", "self.n & 0xFF", "7", "2", "len(self.o) - 2"]))
    loop = [f"for i in range({draw(st.sampled_from(['', '', '1, ']))}{stop}):", *("    " + line.format(i="i") for line in lines)]
    if draw(st.booleans()):
        loop = ["for j in range(self.m):", *("    " + line for line in loop)]
    fields = "\n".join(
        [f"x: InOut[Vector[{element}]]", f"a: Input[Vector[{element}]]", f"b: Input[Vector[{element}]]",
         f"o: Output[Vector[{element}]]", f"k: {element}", "n: INT", "m: INT"]
    )  # fmt: skip
    return vertex("\n".join(loop), fields=fields)


@given(st.data())
def test_loops_on_vectors_cost_the_same_in_both_engines(data):
    codelet = priced(codelet_of(data.draw(elementwise())).typed, BOW, COMPILED)
    assume(any(isinstance(statement, For) and statement.price is not None for statement in walk(codelet.body)))
    check_bounds(codelet)
    dtype = np.float16 if codelet.fields[0].element == "f16" else np.float32
    sizes = data.draw(st.fixed_dictionaries(dict.fromkeys("xabo", st.integers(0, 12))))
    group = [
        {name: np.arange(size, dtype=dtype) for name, size in sizes.items()}
        | {"k": 3.0, "n": data.draw(st.integers(-1, 11)), "m": data.draw(st.integers(0, 3))}
        for _ in range(data.draw(st.integers(1, 9)))
    ]
    compare_forms(codelet, group, cycle_limit=data.draw(limits), flops=data.draw(st.booleans()))


@pytest.mark.parametrize("body", ["while True:\n    pass", "while True:\n    continue", "k = 5\nwhile k > 3:\n    pass"])
def test_a_loop_without_end_comes_to_the_limit(body):
    codelet = priced(codelet_of(vertex(body, fields="n: INT")).typed, BOW, COMPILED)
    compare_forms(codelet, [{"n": 0}], cycle_limit=1000)
