"""poplin: plans of convolutions, and what their vertices compute."""

import json

import numpy as np
import pytest
from convolution_rig import axis, convolved, numbers, run_plan
from hypothesis import example, given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES

from pypoplar import FLOAT, HALF, InvalidOption, Target
from pypoplar.poplin.convolution.calls.written_constraints import constraints_of
from pypoplar.poplin.convolution.conv_plan import plans_by_form
from pypoplar.poplin.convolution.conv_request import ConvRequest
from pypoplar.poplin.convolution.conv_shape import ConvTypes
from pypoplar.poplin.convolution.plan_choice import all_plans, choose_plan
from pypoplar.poplin.convolution.plan_constraints import PlanConstraints
from pypoplar.poplin.convolution.plan_costs import COPY_SLOTS
from pypoplar.poplin.convolution.serial_steps import SteppedPlan, stepped_plan
from pypoplar.poputil import PoplibsError

FLOATS = ConvTypes(FLOAT, FLOAT, FLOAT)
TYPES = (FLOATS, ConvTypes(HALF, FLOAT, HALF), ConvTypes(HALF, HALF, HALF), ConvTypes(HALF, FLOAT, FLOAT))


def machine(tiles, version="bow"):
    return Target.createIPUTarget(1, tiles, version)


@st.composite
def drawn_axes(draw, most=3):
    axes = []
    for _ in range(draw(st.integers(0, most))):
        size, kernel, dilation = draw(st.integers(1, 7)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
        lower, upper = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        short = (kernel - 1) * dilation + 1 - size - lower - upper
        axes.append(axis(size, kernel, lower, upper + max(short, 0), dilation, draw(st.integers(1, 3))))
    return axes


def cycles_of(plan, tiles, sizes, axes):
    """What a run takes by the report."""
    _, engine = run_plan(plan, tiles, *numbers(sizes, axes, plan.types.operands.dtype))
    return sum(step.cycles for step in engine.getReport().execution.steps if step.program.name.startswith("conv"))


def check(plan, tiles, sizes, axes, mode="native"):
    input, weights = numbers(sizes, axes, plan.types.operands.dtype, sum(sizes))
    result, engine = run_plan(plan, tiles, input, weights, mode)
    expected = convolved(input, weights, axes)
    if plan.types.partials is HALF:  # rounded after each product of the unit
        np.testing.assert_allclose(result, expected, rtol=5e-3, atol=0.05)
    else:
        assert (result == expected.astype(plan.types.result.dtype)).all()
    return result, engine


@examples(6)
@given(st.tuples(*map(st.integers, (1,) * 4, (3, 3, 20, 20))), drawn_axes(), st.sampled_from(TYPES), st.sampled_from((1, 4, 16)))
def test_every_form_of_a_convolution_of_any_shape_is_exact_where_floats_are(sizes, axes, types, tiles):
    for plan in all_plans(ConvRequest(machine(tiles), sizes, tuple(axes), types, 0.6)):
        check(plan, tiles, sizes, axes)


@pytest.mark.parametrize("types", TYPES)
def test_groups_of_one_channel_are_lanes_in_halves_and_exact(types):
    sizes, axes = (7, 2, 1, 1), [axis(6, 3, 1), axis(7, 3, 1, stride=2)]
    plans = plans_by_form(ConvRequest(machine(6), sizes, tuple(axes), types, 0.6))
    assert any(plan.form.lanes for plan in plans)
    for plan in plans:
        (native, engine), (interpreted, other) = (check(plan, 6, sizes, axes, mode) for mode in MODES)
        assert native.tobytes() == interpreted.tobytes()
        assert engine.getReport().execution.totalCycles == other.getReport().execution.totalCycles
    if types.operands is HALF:
        assert min(plans, key=lambda plan: plan.cycles).form.lanes


@pytest.mark.parametrize("types", TYPES)
def test_both_engines_agree_to_the_bit_and_the_cycle(types):
    sizes, axes = (2, 2, 17, 5), [axis(6, 3, 1), axis(7, 3, 2, stride=2)]
    plan = choose_plan(ConvRequest(machine(6), sizes, tuple(axes), types, 0.6))
    (native, engine), (interpreted, other) = (check(plan, 6, sizes, axes, mode) for mode in MODES)
    assert native.tobytes() == interpreted.tobytes()
    assert engine.getReport().execution.totalCycles == other.getReport().execution.totalCycles


@pytest.mark.parametrize(
    ("sizes", "axes"), [((1, 2, 0, 3), [axis(4, 2)]), ((1, 0, 2, 3), [axis(4, 2)]), ((1, 2, 2, 2), [axis(1, 1, 5, -1)])]
)
def test_without_products_the_result_is_empty_or_zeros(sizes, axes):
    plan = choose_plan(ConvRequest(machine(4), sizes, tuple(axes), FLOATS, 0.6))
    assert plan.empty
    input, weights = numbers(sizes, axes, np.float32)
    result, _ = run_plan(plan, 4, input, weights)
    assert result.shape == plan.result
    assert not result.any()


def test_a_kernel_that_is_larger_than_the_field_is_cut_to_what_meets_it():
    plan = all_plans(ConvRequest(machine(4), (1, 1, 16, 16), (axis(1, 3, 1),), FLOATS, 0.6))[0]
    assert plan.shape.is_product
    check(plan, 4, (1, 1, 16, 16), [axis(1, 3, 1)])


LAYERS = {  # of networks for images, in halves: sizes and axes
    "3x3": ((1, 16, 64, 64), (axis(56, 3, 1), axis(56, 3, 1))),
    "3x3 with a stride": ((1, 16, 64, 128), (axis(56, 3, 1, stride=2), axis(56, 3, 1, stride=2))),
    "1x1": ((1, 16, 256, 64), (axis(56, 1), axis(56, 1))),
    "first": ((1, 8, 1, 32), (axis(28, 3), axis(28, 3))),
    "depthwise": ((64, 1, 1, 1), (axis(28, 3, 1), axis(28, 3, 1))),
    "fully connected": ((1, 16, 1024, 1024), ()),
}


def test_a_3x3_convolution_uses_90_percent_of_the_tiles_and_30_percent_of_the_peak_of_a_bow():
    sizes, axes = LAYERS["3x3"]
    plan = choose_plan(ConvRequest(machine(1472), sizes, axes, TYPES[1], 0.6))
    assert plan.tiles >= 0.9 * 1472
    assert plan.shape.products / 64 / 1472 / plan.cycles >= 0.3


@pytest.mark.parametrize("layer", LAYERS)
def test_the_estimate_of_a_layer_on_64_tiles_is_within_5_percent_of_a_run(layer):
    (groups, batch, depth, columns), axes = LAYERS[layer]
    sizes = (groups, 1 if axes else batch, depth, columns)
    plan = choose_plan(ConvRequest(machine(64), sizes, axes, TYPES[1], 0.6))
    assert plan.cycles == pytest.approx(cycles_of(plan, 64, sizes, axes), rel=0.05)


GRADIENTS = {  # of weights: the input channels are the batch, the batch is the channels, the kernel is as large as the field
    "1x1": ((1, 64, 4, 32), [axis(14, 14), axis(14, 14)]),
    "1x1 with a stride": ((1, 64, 4, 32), [axis(14, 7, upper=-1, dilation=2), axis(13, 7, dilation=2)]),
    "3x3": ((1, 32, 4, 32), [axis(14, 14, 1, 1), axis(14, 14, 1, 1)]),
    "3x3 with a stride": ((1, 32, 4, 32), [axis(15, 7, 1, 1, dilation=2), axis(14, 7, 1, 0, dilation=2)]),
    "a row, of which positions are left": ((2, 32, 2, 16), [axis(6, 1), axis(12, 5, upper=-1, dilation=2)]),
}


@pytest.mark.parametrize("layer", GRADIENTS)
def test_every_plan_of_a_gradient_of_weights_is_exact_and_the_one_that_is_chosen_is_estimated_within_12_percent(layer):
    sizes, axes = GRADIENTS[layer]
    request = ConvRequest(machine(64), sizes, tuple(axes), TYPES[1], 0.6)
    for plan in all_plans(request):
        check(plan, 64, sizes, axes)
    chosen = choose_plan(request)
    assert chosen.cycles == pytest.approx(cycles_of(chosen, 64, sizes, axes), rel=0.12)


def test_the_gradient_of_weights_of_a_1x1_layer_computes_for_no_longer_than_the_layer():
    layer = ConvRequest(machine(1472), (1, 4, 256, 128), (axis(56, 1), axis(56, 1)), TYPES[1], 0.6)
    gradient = ConvRequest(machine(1472), (1, 256, 4, 128), (axis(56, 56), axis(56, 56)), TYPES[1], 0.6)
    assert choose_plan(gradient).cost.compute <= choose_plan(layer).cost.compute


@examples(8)
@given(
    st.tuples(*map(st.sampled_from, ((1, 2), (1, 2, 8), (4, 16, 32, 64), (8, 16, 64)))),
    st.lists(st.tuples(st.integers(7, 20), st.sampled_from((1, 3, 5)), st.integers(0, 2), st.integers(1, 2)), max_size=2),
    st.sampled_from(TYPES),
    st.sampled_from((16, 50)),
)
def test_the_estimate_of_a_layer_of_any_sizes_is_within_15_percent_of_a_run_or_the_start_of_a_copy(sizes, drawn, types, tiles):
    axes = [axis(size, kernel, min(padding, kernel // 2), stride=stride) for size, kernel, padding, stride in drawn]
    plan = choose_plan(ConvRequest(machine(tiles), sizes, tuple(axes), types, 0.6))
    assert plan.cycles == pytest.approx(cycles_of(plan, tiles, sizes, axes), rel=0.15, abs=6 * COPY_SLOTS)


def test_a_plan_keeps_its_constraints_and_computes_the_same():
    text = (
        '{"0": {"transform": {"expandDims": []}, "partition": {"fieldSplit": {"1": 3}, "kernelSplit": {"0": 2}, "batchSplit": 1}}}'
    )
    sizes, axes = (1, 2, 16, 16), [axis(6, 3, 1), axis(7, 3, 1)]
    plan = choose_plan(ConvRequest(machine(16), sizes, tuple(axes), FLOATS, 0.6, PlanConstraints.read(text)))
    assert not plan.form.is_folded
    assert (plan.partition.parts[1], plan.partition.parts[4], plan.partition.parts[6]) == (1, 3, 2)
    check(plan, 16, sizes, axes)
    folded = PlanConstraints.read('{"0": {"transform": {"expandDims": [0]}, "partition": {"inChanSplit": {"parallel": 2}}}}')
    plan = choose_plan(ConvRequest(machine(16), sizes, tuple(axes), FLOATS, 0.6, folded))
    assert (plan.form.folded, plan.partition.parts[8]) == ((True, False), 2)
    check(plan, 16, sizes, axes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is JSON"),
        ('{"1": {}}', "no key '1'"),
        ('{"0": {"partition": {"batchsplit": 2}}}', "did you mean 'batchSplit'"),
        ('{"0": {"partition": {"batchSplit": 0}}}', "1 at least"),
        ('{"0": {"partition": {"fieldSplit": 2}}}', "is an object"),
        ('{"0": {"transform": {"expandDims": [true]}}}', "list of whole numbers"),
        ('{"0": {"transform": {"swapOperands": 1}}}', "true or false"),
        ('{"method": {"type": "SLIC"}}', "one of AMP, VMAC, OUTER_PRODUCT, got 'SLIC'"),
    ],
)
def test_constraints_that_mean_nothing_are_refused(text, words):
    with pytest.raises(InvalidOption, match=words):
        PlanConstraints.read(text)


def test_constraints_that_no_plan_keeps_are_refused():
    parts = ({"batchSplit": 3}, {"fieldSplit": {"2": 2}}, {"inChanSplit": {"serial": 17}})
    for text in (json.dumps({"0": {"partition": part}}) for part in parts):
        with pytest.raises(PoplibsError, match="keeps planConstraints"):
            choose_plan(ConvRequest(machine(16), (1, 2, 16, 16), (axis(6, 3, 1),), FLOATS, 0.6, PlanConstraints.read(text)))


def test_a_plan_keeps_to_its_part_of_the_memory_or_says_that_none_does():
    sizes, axes = (1, 2, 16, 16), (axis(20, 3, 1), axis(20, 3, 1))
    plans = [choose_plan(ConvRequest(machine(16), sizes, axes, FLOATS, memory)) for memory in (0.6, 0.04, 0.0)]
    assert plans[0].bytes >= plans[1].bytes >= plans[2].bytes
    assert plans[1].bytes <= plans[1].limit
    assert ["no plan keeps to" in plan.describe() for plan in plans] == [False, False, True]


def test_what_fits_no_memory_at_once_is_computed_in_steps_that_do_and_take_the_cycles_that_are_told():
    sizes, axes = (1, 4, 16, 16), (axis(20, 3, 1), axis(20, 3, 1))
    request = ConvRequest(machine(4), sizes, axes, TYPES[1], 0.075)
    assert min(plan.bytes for plan in all_plans(request)) > request.limit
    plan = choose_plan(request)
    assert isinstance(plan, SteppedPlan)
    assert plan.bytes <= plan.limit == int(0.075 * machine(4).getBytesPerTile())
    _, engine = check(plan, 4, sizes, axes)
    assert plan.cycles == pytest.approx(sum(step.cycles for step in engine.getReport().execution.steps), rel=0.05)
    assert max(tile.memory.total.excludingGaps for tile in engine.getReport().compilation.tiles) < 1.2 * plan.limit


@examples(5)
@given(
    st.tuples(*map(st.integers, (1,) * 4, (4, 3, 14, 14))), drawn_axes(2), st.sampled_from(TYPES), st.sampled_from((1, 4, 16)),
    st.lists(st.tuples(st.integers(0, 5), st.integers(2, 4)), min_size=1, max_size=2),
)  # fmt: skip
@example((4, 1, 2, 1), [], TYPES[0], 1, [(2, 2)])  # sums of steps of several groups at once
def test_a_convolution_in_steps_over_any_of_its_dimensions_is_exact(sizes, axes, types, tiles, steps):
    request = ConvRequest(machine(tiles), sizes, tuple(axes), types, 0.6)
    most = [*sizes, *(axis.out for axis in axes)]
    counts = {place: min(count, most[place]) for place, count in steps if place < len(most)}
    if not request.empty:
        check(stepped_plan(request, counts, all_plans), tiles, sizes, axes)


def test_constraints_say_how_many_steps_there_are_and_both_engines_agree():
    text = '{"0": {"partition": {"inChanSplit": {"serial": 2, "parallel": 2}, "outChanSplit": {"serial": 3}}}}'
    sizes, axes = (1, 2, 34, 17), (axis(6, 3, 1),)
    plan = choose_plan(ConvRequest(machine(6), sizes, axes, TYPES[1], 0.6, PlanConstraints.read(text)))
    assert (len(plan.steps), plan.steps[0][1].partition.parts[8]) == (6, 2)
    assert "steps, one after the other: in_channels 2, out_channels 3; 6 in all" in plan.describe()
    (native, engine), (interpreted, other) = (check(plan, 6, sizes, axes, mode) for mode in MODES)
    assert native.tobytes() == interpreted.tobytes()
    assert engine.getReport().execution.totalCycles == other.getReport().execution.totalCycles


FIELD = (axis(10, 3, 1), axis(10, 3, 1))
FOLDED = {"transform": {"expandDims": [0, 1]}}
ALTERNATIVES = {  # sizes, axes, tiles, types, what the plan says, constraints that say otherwise, how many times as many cycles
    "a batch of 1": ((1, 1, 128, 256), (), 4, 1, "operands swapped", {"transform": {"swapOperands": False}}, 2.0),
    "a batch of 4": ((1, 4, 128, 256), (), 4, 1, "operands swapped", {"transform": {"swapOperands": False}}, 1.6),
    "small groups": (
        (16, 4, 2, 2),
        (axis(10, 3, 1), axis(10, 3, 1)),
        8,
        1,
        "groups joined: 4",
        {"transform": {"expandDims": [0, 1]}},
        1.5,
    ),
    "an update": ((1, 128, 1, 64), (), 16, 1, "products of one channel", {"method": {"type": "AMP"}}, 2.0),
    "a FLOAT update": ((1, 128, 1, 64), (), 16, 0, "products of one channel", {"method": {"type": "AMP"}}, 1.3),
}


@pytest.mark.parametrize("case", ALTERNATIVES)
def test_a_plan_of_another_kind_is_taken_where_it_takes_fewer_cycles_and_reported(case):
    sizes, axes, tiles, types, words, given, factor = ALTERNATIVES[case]
    text = json.dumps(given if "method" in given else {"0": given})
    plain, chosen = (
        choose_plan(ConvRequest(machine(tiles), sizes, axes, TYPES[types], 0.6, PlanConstraints.read(constraints)))
        for constraints in (text, "")
    )
    assert words in chosen.describe()
    assert words not in plain.describe()
    cycles = []
    for plan in (plain, chosen):
        _, engine = check(plan, tiles, sizes, axes)
        cycles.append(sum(step.cycles for step in engine.getReport().execution.steps))
        assert plan.cycles == pytest.approx(cycles[-1], rel=0.1)
    assert cycles[0] > factor * cycles[1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"0": {"transform": {"swapOperands": True}}}, "operands swapped"),
        ({"0": {"transform": {"combineConvGroupsFactor": [2, 8]}}}, "groups joined: 2"),
        ({"method": {"type": "OUTER_PRODUCT"}}, "products of one channel"),
    ],
)
def test_constraints_say_the_kind_of_a_plan_and_both_engines_agree(given, words):
    sizes, axes = (6, 2, 1, 5), (axis(5, 1),)
    wanted = PlanConstraints.read(json.dumps(given))
    plan = choose_plan(ConvRequest(machine(6), sizes, axes, TYPES[1], 0.6, wanted))
    assert words in plan.describe()
    (native, engine), (interpreted, other) = (check(plan, 6, sizes, axes, mode) for mode in MODES)
    assert native.tobytes() == interpreted.tobytes()
    assert engine.getReport().execution.totalCycles == other.getReport().execution.totalCycles
    with pytest.raises(PoplibsError, match="keeps planConstraints"):
        choose_plan(
            ConvRequest(
                machine(6), (1, 2, 3, 5), (axis(5, 3, 1, dilation=2),), TYPES[1], 0.6, PlanConstraints.read(json.dumps(given))
            )
        )


def test_the_zeros_of_joined_groups_stay_from_run_to_run():
    sizes, axes = (4, 2, 2, 2), (axis(5, 3, 1),)
    given = PlanConstraints.read('{"0": {"transform": {"combineConvGroupsFactor": [4]}}}')
    plan = choose_plan(ConvRequest(machine(2), sizes, axes, FLOATS, 0.6, given))
    _, engine = check(plan, 2, sizes, axes)
    input, weights = numbers(sizes, axes, np.float32, 5)
    for _ in range(2):
        engine.writeTensor("x", input)
        engine.writeTensor("w", weights)
        engine.run()
        np.testing.assert_array_equal(engine.readTensor("result y"), convolved(input, weights, axes))


@pytest.mark.parametrize("case", [*ALTERNATIVES, "3x3"])
def test_the_constraints_of_a_plan_find_it_again(case):
    sizes, axes, tiles, types = ALTERNATIVES[case][:4] if case in ALTERNATIVES else ((1, 2, 16, 24), FIELD, 16, 2)
    plan = choose_plan(ConvRequest(machine(tiles), sizes, axes, TYPES[types], 0.6))
    given = PlanConstraints.read(json.dumps(constraints_of(plan)))
    assert choose_plan(ConvRequest(machine(tiles), sizes, axes, TYPES[types], 0.6, given)) == plan
