"""How often blocks run: both engines count the same, and executions times prices are a codelet's slots, to the slot."""

import numpy as np
import pytest
from block_rig import BODIES, FIELDS, blocks_of
from codelet_rig import BOW, codelet_of, vertex
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from native_rig import compile_codelet, run_interpreted, run_native
from typed_strategies import alike, codelets, sums, vertices

from pypoplar.codelet.cost.pricing import COMPILED, SCALAR, priced
from pypoplar.codelet.ir.block_numbers import TOGETHER, counted_codelet, most_blocks, numbered
from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.typed import For, Price
from pypoplar.codelet.ir.walk import walk
from pypoplar.codelet.llvm.codelet_code import assembly_text


@pytest.fixture(autouse=True, scope="module")
def directory(tmp_path_factory):
    """Random codelets are not worth keeping."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def form(body, cost, base="Vertex"):
    """A codelet with this body, priced."""
    head = "self, worker" if base == "MultiVertex" else "self"
    return priced(codelet_of(vertex(body, fields=FIELDS, base=base, head=head)).typed, BOW, cost)


def check_law(codelet, group, **settings):
    """Counts of both engines, and their sum; those of vertices that fault say nothing."""
    native = run_native(codelet, group, count_blocks=True, **settings)
    python = run_interpreted(codelet, group, blocks=True, **settings)
    assert native.fault == python.fault
    if python.fault is not None:
        return None
    assert native.blocks == python.blocks
    prices = [slots for slots, _ in blocks_of(codelet)]
    assert len(prices) <= most_blocks(codelet)
    assert not any(python.blocks[len(prices) :])
    assert sum(price * times for price, times in zip(prices, python.blocks, strict=False)) == sum(python.slots)
    return python.blocks


@examples(60)
@given(st.data())
def test_executions_times_prices_are_the_slots_of_random_codelets(data):
    codelet = data.draw(codelets())
    for one in data.draw(vertices(codelet)):
        check_law(codelet, [one], cycle_limit=300, random=[1, 2, 3, 4])


@examples(40)
@given(st.data())
def test_executions_times_prices_are_the_slots_of_random_sums_side_by_side(data):
    codelet = data.draw(sums())
    check_law(codelet, data.draw(alike(codelet)), cycle_limit=10**6)


@pytest.mark.parametrize("cost", [COMPILED, SCALAR])
@pytest.mark.parametrize("base", ["Vertex", "SupervisorVertex", "MultiVertex"])
@pytest.mark.parametrize("name", BODIES)
def test_executions_times_prices_are_the_slots_of_written_codelets(name, base, cost):
    codelet = form(BODIES[name], cost, base)
    groups = [[{"x": np.linspace(-1, 1, length, dtype=np.float32), "n": n}] for length, n in ((9, 0), (9, 1), (12, 5), (33, 9))]
    for group in groups:
        assert check_law(codelet, group, workers=3) is not None
    together = [one for group in groups for one in group]
    whole = check_law(codelet, together)
    assert whole == np.sum([check_law(codelet, group) for group in groups], 0).tolist()


def test_of_a_multivertex_the_blocks_of_its_slowest_worker_count():
    body = "for i in range(worker * self.n):\n    self.x[i] *= 2.0"
    codelet = form(body, SCALAR, "MultiVertex")
    blocks = check_law(codelet, [{"x": np.ones(40, np.float32), "n": 7}], workers=6)
    assert max(blocks) == 5 * 7


def test_rounds_are_counted_as_a_loop_begins():
    """The body of a loop that is run to its end has nothing to count but what its branches hide."""
    straight, branches = (counted_codelet(form(BODIES[name], COMPILED)) for name in ("sum", "branches"))
    loop = next(statement for statement in walk(straight.codelet.body) if isinstance(statement, For))
    assert loop.rounds_of >= 0
    assert not any(isinstance(statement, Price) and statement.block >= 0 for statement in walk(loop.body))
    loop = next(statement for statement in walk(branches.codelet.body) if isinstance(statement, For))
    assert loop.rounds_of >= 0
    assert not any(isinstance(statement, Price) and statement.block >= 0 for statement in loop.body)


def test_rounds_that_are_paid_for_together_are_two_blocks():
    codelet = form(BODIES["repeat"], COMPILED)
    loop = next(statement for statement in walk(numbered(codelet).body) if isinstance(statement, For))
    assert loop.price is not None
    blocks = check_law(codelet, [{"x": np.ones(9, np.float32), "n": 0}, {"x": np.ones(4, np.float32), "n": 0}])
    assert blocks[loop.price.block : loop.price.block + TOGETHER] == [4 + 2, 1]


def test_code_that_counts_is_a_version_of_its_own_and_other_code_stays_as_it_was():
    codelet = form(BODIES["branches"], COMPILED)
    assert compile_codelet(codelet).address != compile_codelet(codelet, Checks(blocks=True)).address
    assert assembly_text(codelet) == assembly_text(numbered(codelet))
