"""popops.histogram against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, InvalidOption, PoplarTypeError, Target, popops
from pypoplar.popops.statistics.histogram_cycles import by_data_cycles, by_limit_cycles
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

OPTIONS = ({}, {"useFloatArithmetic": "true"}, {"useFloatArithmeticWithUnsignedIntOutput": "true"})


def counts(values, levels, absolute=False):
    place = np.searchsorted(levels, np.abs(values) if absolute else values, side="right")
    return np.bincount(place.reshape(-1), minlength=len(levels) + 1)


@examples(20)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=2),
    st.integers(1, 9),
    st.sampled_from((FLOAT, HALF)),
    st.booleans(),
    st.sampled_from(OPTIONS),
    st.sampled_from((1, 4, 7)),
)
def test_elements_are_counted_between_levels(shape, size, type, absolute, options, tiles):
    random = np.random.default_rng(size)
    values, levels = random.integers(-9, 9, shape).astype(type.dtype), np.sort(random.integers(-9, 9, size)).astype(type.dtype)
    reads = []
    for mode in MODES:
        graph, device = new_graph(tiles)
        t, limits, prog = variable(graph, type, shape, "t"), variable(graph, type, [size], "levels"), Sequence()
        result = popops.histogram(graph, t.transpose() if len(shape) == 2 else t, limits, absolute, prog, "counts", options)
        assert result.elementType() is (FLOAT if "useFloatArithmetic" in options else UNSIGNED_INT)
        read, engine = run(graph, device, prog, {"t": values, "levels": levels}, {"counts": result}, mode)
        np.testing.assert_array_equal(read["counts"], counts(values, levels, absolute))
        reads.append([step.cycles for step in engine.getReport().execution.steps])
    assert reads[0] == reads[1]


@pytest.mark.parametrize("type", [FLOAT, UNSIGNED_INT])
@pytest.mark.parametrize("update", [False, True])
def test_counts_go_into_a_given_tensor_or_are_added_to_it(type, update):
    graph, device = new_graph(4)
    t, limits, output = (
        variable(graph, kind, [size], name) for kind, size, name in ((FLOAT, 50, "t"), (FLOAT, 3, "levels"), (type, 4, "output"))
    )
    prog = Sequence()
    options = {"useFloatArithmeticWithUnsignedIntOutput": True} if type is UNSIGNED_INT else {}
    for chosen in ({}, options):
        assert popops.histogram(graph, t, output, update, limits, False, prog, "counts", chosen) is None
    values, levels = np.random.default_rng(0).standard_normal(50).astype(np.float32), np.array([-1, 0, 1], np.float32)
    start = np.array([5, 6, 7, 8], type.dtype)
    read, _ = run(graph, device, prog, {"t": values, "levels": levels, "output": start}, {"output": output})
    np.testing.assert_array_equal(read["output"], 2 * counts(values, levels) + start if update else counts(values, levels))


def test_nans_are_beyond_all_levels_and_nothing_has_no_counts():
    graph, device = new_graph(4)
    t, limits, prog = variable(graph, FLOAT, [4], "t"), variable(graph, FLOAT, [2], "levels"), Sequence()
    empty = graph.addVariable(FLOAT, [0], "empty")
    results = {"t": popops.histogram(graph, t, limits, True, prog), "empty": popops.histogram(graph, empty, limits, False, prog)}
    values = np.array([np.nan, -np.inf, -0.5, 1], np.float32)
    read, _ = run(graph, device, prog, {"t": values, "levels": np.array([0.5, 1], np.float32)}, results)
    np.testing.assert_array_equal(read["t"], [0, 1, 3])
    np.testing.assert_array_equal(read["empty"], [0, 0, 0])


def test_the_whole_machine_counts():
    graph, device = new_graph(1472)
    t, limits, prog = variable(graph, HALF, [200_000], "t"), variable(graph, HALF, [15], "levels"), Sequence()
    result = popops.histogram(graph, t, limits, False, prog)
    values = np.random.default_rng(2).standard_normal(200_000).astype(np.float16)
    levels = np.linspace(-2, 2, 15).astype(np.float16)
    read, _ = run(graph, device, prog, {"t": values, "levels": levels}, {"counts": result})
    np.testing.assert_array_equal(read["counts"], counts(values, levels))


def test_counting_costs_what_poplibs_says():
    target = Target.createIPUTarget(1, 4, "bow")
    assert by_limit_cycles(target, 9, 7, FLOAT, False) == 19 + 3 + (11 + 2 + 3 * 4) * 2 + 8 + 14
    assert by_data_cycles(target, 9, 7, FLOAT, True) == 23 + 4 + (17 + 3 + 4 * 1) * 7 + 10
    assert by_limit_cycles(target, 11, 6, HALF, True) == 19 + 3 + (17 + 4 + 4 + 4 * 2) + 8 + 12
    assert by_data_cycles(target, 24, 2, HALF, False) == 23 + 5 + (19 + 3) * 2 + 10


def test_what_cannot_be_counted_is_refused_before_the_graph_changes():
    graph, _ = new_graph(4)
    t, limits, prog = variable(graph, FLOAT, [4], "t"), variable(graph, FLOAT, [2], "levels"), Sequence()
    output, whole = variable(graph, FLOAT, [3], "output"), variable(graph, INT, [3], "whole")
    before = len(graph.freeze().variables.names), graph.numComputeSets()
    option = "useFloatArithmeticWithUnsignedIntOutput"
    refused = [
        (PoplibsError, lambda: popops.histogram(graph, whole, limits, False, prog), "input is FLOAT or HALF, got .*'whole'"),
        (PoplibsError, lambda: popops.histogram(graph, t, whole, False, prog), "levels is a vector of FLOAT .* got .*'whole'"),
        (PoplibsError, lambda: popops.histogram(graph, t, t, False, limits, False, prog), "output has 3 elements .* got .*'t'"),
        (
            PoplibsError,
            lambda: popops.histogram(graph, t, output, False, limits, False, prog, None, {option: True}),
            "of UNSIGNED_INT, got",
        ),
        (
            InvalidOption,
            lambda: popops.histogram(graph, t, limits, False, prog, None, {option: True, "useFloatArithmetic": True}),
            "exclude",
        ),
        (
            InvalidOption,
            lambda: popops.histogram(graph, t, output, False, limits, False, prog, None, {"useFloatArithmetic": True}),
            "decides",
        ),
        (
            InvalidOption,
            lambda: popops.histogram(graph, t, limits, False, prog, None, {"useFloat": True}),
            "did you mean 'useFloatArithmetic'",
        ),
        (PoplarTypeError, lambda: popops.histogram(graph, t, limits, prog), "popops.histogram: "),
    ]
    for error, call, message in refused:
        with pytest.raises(error, match=message):
            call()
    assert (len(graph.freeze().variables.names), graph.numComputeSets()) == before
    assert len(prog) == 0
