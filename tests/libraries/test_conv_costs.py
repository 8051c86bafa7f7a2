"""What candidates for a plan of a convolution are said to cost, of one each by arithmetic; and plans at their bounds."""

import numpy as np
import pytest
from attrs import evolve
from convolution_rig import axis

from pypoplar import FLOAT, HALF, Target
from pypoplar.poplin.convolution.conv_cycles import lanes_cycles, matrix_unit
from pypoplar.poplin.convolution.conv_partition import OUTPUTS_LAST
from pypoplar.poplin.convolution.conv_plan import LANES, empty_plan, plans_by_form
from pypoplar.poplin.convolution.conv_request import ConvRequest
from pypoplar.poplin.convolution.conv_shape import ConvForm, ConvTypes
from pypoplar.poplin.convolution.plan_choice import choose_plan
from pypoplar.poplin.convolution.plan_constraints import PlanConstraints
from pypoplar.poplin.convolution.plan_costs import COPY_SLOTS, WORKERS, Candidates, costs, start_cycles
from pypoplar.poplin.convolution.serial_steps import SteppedPlan
from pypoplar.poplin.convolution.sliding_axis import trimmed
from pypoplar.poputil.cost_conventions import MESSAGE

FLOATS, HALVES = ConvTypes(FLOAT, FLOAT, FLOAT), ConvTypes(HALF, HALF, HALF)
WHOLE = (1,) * 10


def machine(tiles):
    return Target.createIPUTarget(1, tiles, "bow")


def cost_of(axes, sizes, parts, grains, types=FLOATS, *, folded=None, lanes=False, order=OUTPUTS_LAST):
    """The form, the shape and the cost of one candidate."""
    groups, batch, inputs, outputs = sizes
    form = ConvForm(tuple(map(trimmed, axes)), folded or (False,) * len(axes), 1 if lanes else inputs, lanes=lanes)
    shape = form.shape(groups, batch, outputs)
    cost = costs(machine(16), form, shape, types, Candidates(np.array([parts]), grains, order))
    return shape, cost.at(0)


@pytest.mark.parametrize(("parts", "columns", "received"), [(1, 16, 0), (3, 12, 512), (4, 16, 512)])
def test_neighbours_that_need_the_same_weights_receive_what_neither_has_once(parts, columns, received):
    """Of 12 or 16 columns of 16 weights of 4 bytes each tile has its part; of four tiles two have half of them together."""
    target = machine(16)
    assert target.getTilesPerSharedExchangeBus() == 2
    _, cost = cost_of((), (1, 3 * parts, 16, columns), (1, parts, *(1,) * 8), (16, columns))
    pieces = MESSAGE * min(parts, 16)
    assert cost.exchange == start_cycles(target) + max(received // target.getExchangeBytesPerCycle(), pieces)


def test_channels_with_kernels_of_their_own_go_along_rows_of_the_last_axis():
    axes = (axis(6, 3), axis(10, 3))
    shape, cost = cost_of(axes, (8, 2, 1, 1), WHOLE, (1, LANES), lanes=True)
    assert shape.outputs == (1, 4, 8)
    assert cost.compute == lanes_cycles(machine(16), 2 * 4 * 8, 8, (1, 3, 3), 8, FLOAT, FLOAT)
    assert cost.compute != lanes_cycles(machine(16), 2 * 4 * 8, 4, (1, 3, 3), 8, FLOAT, FLOAT)


def test_a_tile_has_each_input_of_a_folded_convolution_once():
    batch, inputs, outputs = 3, 2, 8
    _, cost = cost_of((axis(10, 3),), (1, batch, inputs, outputs), WHOLE, (6, 8), folded=(True,))
    field, kernel, out = 10, 3, 8
    held, read = batch * field * inputs * 4, batch * out * kernel * inputs * 4
    weights, result = kernel * inputs * outputs * 4, batch * out * outputs * 4
    assert cost.bytes == held + read + 2 * weights + result


@pytest.mark.parametrize(("types", "inputs", "copied"), [(HALVES, 17, True), (HALVES, 18, False), (FLOATS, 17, False)])
def test_rows_of_an_odd_number_of_halves_are_copied_where_channels_are_cut(types, inputs, copied):
    parts = (*(1,) * 8, 2, 1)
    _, cost = cost_of((), (1, 5, inputs, 16), parts, (16, 16), types)
    assert cost.copies == (5 * (inputs - 16) + COPY_SLOTS * WORKERS if copied else 0)


def test_channels_are_cut_at_what_the_vertices_take_together_or_not_at_all():
    axes = (axis(6, 3),)
    for types in (FLOATS, HALVES):
        columns = matrix_unit(machine(16), types.operands).pass_columns
        assert columns > LANES
        for count, grain in ((2 * columns, columns), (3, 3)):
            (plan,) = plans_by_form(ConvRequest(machine(16), (1, 1, 64, count), axes, types, 0.6))
            assert plan.partition.out_grain == grain
        for count, grain in ((2 * columns, LANES), (3, 3)):
            plans = plans_by_form(ConvRequest(machine(16), (count, 1, 1, 1), axes, types, 0.6))
            assert {plan.partition.out_grain for plan in plans if plan.form.lanes} == {grain}
            plans = plans_by_form(ConvRequest(machine(16), (1, 64, 1, count), (), types, 0.6))
            assert {plan.partition.out_grain for plan in plans if plan.form.outer} == {grain}


def test_the_zeros_of_a_convolution_without_products_have_their_channels_last():
    request = ConvRequest(machine(4), (1, 2, 0, 3), (axis(6, 3), axis(6, 3)), FLOATS, 0.6)
    plan = empty_plan(request)
    assert plan.output_order() == [0, 1, 3, 4, 2]
    assert choose_plan(request) == plan


def test_a_plan_that_takes_all_of_its_memory_is_not_cut_into_steps():
    sizes, axes, target = (1, 4, 16, 16), (axis(20, 3, 1), axis(20, 3, 1)), machine(4)
    plans = plans_by_form(ConvRequest(target, sizes, axes, ConvTypes(HALF, FLOAT, HALF), 0.6))
    least = min(plan.bytes for plan in plans)
    fits, short = ((limit + 0.5) / target.getBytesPerTile() for limit in (least, least - 1))
    chosen = choose_plan(ConvRequest(target, sizes, axes, ConvTypes(HALF, FLOAT, HALF), fits))
    assert not isinstance(chosen, SteppedPlan)
    assert chosen.bytes == chosen.limit == least
    assert isinstance(choose_plan(ConvRequest(target, sizes, axes, ConvTypes(HALF, FLOAT, HALF), short)), SteppedPlan)


def test_steps_that_are_said_stay_so_many_where_memory_is_short():
    said = PlanConstraints.read('{"0": {"partition": {"inChanSplit": {"serial": 2}}}}')
    request = ConvRequest(machine(4), (1, 4, 16, 16), (axis(20, 3, 1), axis(20, 3, 1)), FLOATS, 0.0, said)
    least = choose_plan(request).bytes
    short = evolve(request, memory=(least - 0.5) / machine(4).getBytesPerTile())
    assert choose_plan(evolve(short, constraints=PlanConstraints())).bytes <= short.limit < least
    plan = choose_plan(short)
    assert len(plan.steps) == 2
    assert plan.bytes > plan.limit
