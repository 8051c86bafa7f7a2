"""What products by blocks are said to cost: the rough costs of many cuts, and those of one, by arithmetic of a block alone."""

from itertools import product
from math import prod

import numpy as np
import pytest

from pypoplar import FLOAT, HALF, Target
from pypoplar.poplin.matmul.block_costs import StepCosts, _added_shares, product_cycles, rough_costs
from pypoplar.poplin.matmul.block_cuts import BlockCuts
from pypoplar.poplin.matmul.matmul_cycles import block_product_cycles
from pypoplar.poplin.matmul.product_params import ProductParams
from pypoplar.poplin.splitting import largest, share_bounds
from pypoplar.popops.reduction.reduce_plan import sync_cycles

BOW = Target.createIPUTarget(1, 16, "bow")


@pytest.mark.parametrize("type", [FLOAT, HALF])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 6, 7, 12, 30])
@pytest.mark.parametrize("columns", [1, 4, 8, 12, 24, 48, 50, 96, 112])
def test_six_workers_share_a_block_as_takes_fewest_cycles(columns, rows, type):
    params = ProductParams(1, rows, 8, columns, type, type, FLOAT, 0.6)
    found = []
    for row_sets in (6, 3, 2, 1):
        share = largest(columns, 6 // row_sets, 2 if type is FLOAT else 4)
        found.append((6 * 2 * int(block_product_cycles(BOW, -(-rows // row_sets), 8, share, type)), row_sets))
    sets, cycles = product_cycles(BOW, params, rows, 8, columns, 2)
    least = min(cycles for cycles, _ in found)
    assert (int(cycles), int(sets)) == next(each for each in found if each[0] == least)


@pytest.mark.parametrize("parts", [1, 2, 4])
@pytest.mark.parametrize(("result", "partials"), [(FLOAT, FLOAT), (HALF, FLOAT), (HALF, HALF)])
@pytest.mark.parametrize("columns", [8, 5])
def test_rough_costs_of_a_block_that_needs_no_exchange_of_operands_are_those_of_its_plan(columns, parts, result, partials):
    groups, rows, depth, grain = 3, 4, 64, 4
    padding = columns % 2 if partials is HALF else 0
    params = ProductParams(groups, rows, depth, columns, HALF, result, partials, 0.6)
    cuts = BlockCuts(groups, rows, depth, columns, 1, 1, parts, 1, 1, 1, padding, grain, True)
    costs = StepCosts.of(BOW, params, cuts)
    _, cycles = costs.with_exchange(BOW, params, cuts)
    needed = costs.bytes
    assert costs.row_groups == int(product_cycles(BOW, params, rows, depth // parts, columns, groups)[0])

    of_operands = groups * (depth // parts) * (rows + columns) * HALF.size
    outputs = groups * rows * (columns + padding)
    share = share_bounds(outputs, parts)[1]
    summed = parts > 1 or result is not partials
    of_sum = (parts - 1) * share * partials.size + share * result.size if summed else 0
    assert needed == of_operands + outputs * partials.size + of_sum

    if not padding:
        rough, bytes = rough_costs(BOW, params, np.array([[1, 1, parts, 1, 1, 1]]), grain)
        assert bytes.tolist() == [needed]
        assert rough.tolist() == [cycles]
        computed = sync_cycles(BOW) + int(product_cycles(BOW, params, rows, depth // parts, columns, groups)[1])
        assert (cycles > computed) == summed


def test_the_shares_that_are_added_are_those_of_each_size_of_block_with_its_padding():
    cuts = BlockCuts(5, 7, 24, 17, 2, 2, 3, 2, 1, 1, 1, 4, True)
    bounds = (cuts.group_bounds(), cuts.row_bounds(), cuts.depth_bounds(), cuts.column_bounds())
    sizes = tuple(np.diff(places) for places in bounds)
    assert [size.tolist() for size in sizes] == [[3, 2], [4, 3], [8, 8, 8], [12, 5]]
    blocks = {prod(block) for block in product((3, 2), (4, 3), (12, 6))}
    expected = {int(size) for block in blocks for size in np.diff(share_bounds(block, 3))}
    assert _added_shares(cuts, sizes) == expected
