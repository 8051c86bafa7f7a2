"""What lines have of a block's price: all of it, each bundle at the line of its main-pipe instruction, as the listing shows it."""

import re
from collections import Counter

import pytest
from block_rig import BODIES, FIELDS, bare_form, blocks_of
from codelet_rig import BOW, codelet_of, vertex
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from typed_strategies import codelets, sums

from pypoplar import listing
from pypoplar.codelet.cost.pricing import COMPILED, SCALAR, Pricing, line_prices, priced
from pypoplar.codelet.ir.block_numbers import most_blocks
from pypoplar.interface.layout import NOTHING


def check_lines(typed, cost):
    lines = line_prices(typed, Pricing(BOW, cost))
    blocks = blocks_of(priced(typed, BOW, cost))
    assert [(sum(line.slots for line in block), sum(line.bound for line in block)) for block in lines] == blocks
    for block in lines:
        assert len({line.where for line in block}) == len(block)
        assert all(0 <= line.bound <= line.slots for line in block)
        assert all(NOTHING <= line.where < len(typed.locations) for line in block)
    assert len(lines) <= most_blocks(typed)
    return lines


@pytest.mark.parametrize("cost", [COMPILED, SCALAR])
@examples(40)
@given(st.data())
def test_lines_have_all_of_a_blocks_price(cost, data):
    check_lines(bare_form(data.draw(codelets() | sums())), cost)


@pytest.mark.parametrize("cost", [COMPILED, SCALAR])
@pytest.mark.parametrize("base", ["Vertex", "SupervisorVertex"])
@pytest.mark.parametrize("name", BODIES)
def test_lines_of_written_codelets_have_all_of_a_blocks_price(name, base, cost):
    lines = check_lines(codelet_of(vertex(BODIES[name], fields=FIELDS, base=base)).typed, cost)
    entry = [line.slots for block in lines for line in block if line.where == NOTHING]
    assert entry == ([] if base == "SupervisorVertex" else [12])


@pytest.mark.parametrize("name", BODIES)
def test_the_listing_attributes_bundles_as_reports_do(name):
    cls = vertex(BODIES[name], fields=FIELDS)
    typed = codelet_of(cls).typed
    listed: Counter[int] = Counter()
    line = 0
    for text in listing(cls).splitlines()[2:]:
        if match := re.fullmatch(r" {6} *(\d+)  .*", text):
            listed[line] += int(match[1])
        elif match := re.fullmatch(r" *(\d+) .*", text):
            line = int(match[1])
    counted: Counter[int] = Counter()
    for block in line_prices(typed, Pricing(BOW, COMPILED)):
        for price in block:
            if price.where != NOTHING:
                counted[typed.locations[price.where].line] += price.slots
    assert counted == listed


def test_a_loop_pays_at_its_line_and_its_body_at_theirs_with_scalar_prices():
    typed = codelet_of(vertex("for i in range(self.n):\n    if self.x[i] > 0.0:\n        self.x[i] *= 2.0", fields=FIELDS)).typed
    first = min(location.line for location in typed.locations)
    at: Counter[int] = Counter()
    for block in line_prices(typed, Pricing(BOW, SCALAR)):
        for price in block:
            at[typed.locations[price.where].line - first if price.where != NOTHING else -1] += price.slots
    # entry and exit; load of n, start and round of the loop; load, compare, branch; load, multiply, store
    assert at == {-1: 12, 0: 1 + 2 + 3, 1: 3, 2: 3}
