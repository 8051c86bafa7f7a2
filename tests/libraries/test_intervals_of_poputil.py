"""poputil: lists of intervals, sequences of them split, indices, even splits, values as HALF, options, FP8 metadata."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypoplar import (
    FLOAT,
    HALF,
    INT,
    Graph,
    Interval,
    InvalidOption,
    MissingFeature,
    PoplarIndexError,
    PoplarTypeError,
    Target,
    concat,
    poputil,
)

TARGET = Target.createIPUTarget(1, 4, "bow")
gaps = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=8)


def spread(pairs):
    """Disjoint intervals in order, from pairs of a gap and a length."""
    intervals, place = [], 0
    for gap, length in pairs:
        intervals.append(Interval(place + gap, place + gap + length))
        place += gap + length
    return intervals


def elements(intervals):
    return [element for interval in intervals for element in range(*interval)]


@given(gaps, st.randoms(use_true_random=False))
def test_merged_regions_are_the_same_elements_in_as_few_pieces_as_can_be(pairs, random):
    intervals = spread(pairs)
    random.shuffle(intervals)
    merged = poputil.mergeAdjacentRegions(intervals)
    assert elements(merged) == sorted(elements(intervals))
    assert all(low.end() < high.begin() for low, high in itertools.pairwise(merged))
    assert poputil.mergeAdjacentRegions([intervals, []]) == [merged, []]


def test_regions_that_overlap_are_not_merged():
    with pytest.raises(poputil.PoplibsError, match=r"do not overlap, got Interval\(0, 4\) and Interval\(3, 5\)"):
        poputil.mergeAdjacentRegions([(3, 5), (0, 4)])
    with pytest.raises(PoplarTypeError, match=r"regions is a list.*, got 3"):
        poputil.mergeAdjacentRegions(3)
    with pytest.raises(poputil.PoplibsError, match=r"0 <= begin <= end, got \[4:0\)"):
        poputil.mergeAdjacentRegions([(4, 0)])


@given(st.lists(gaps.map(spread), max_size=4))
def test_lists_of_intervals_are_flattened_and_counted(lists):
    assert poputil.flattenIntervals(lists) == [interval for several in lists for interval in several]
    assert poputil.intervalSequenceNumElements(lists) == sum(len(elements(several)) for several in lists)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_unshuffling_intervals_undo_a_shuffling(lengths, random):
    intervals = spread([(0, length) for length in lengths])
    random.shuffle(intervals)
    graph = Graph(TARGET)
    t = graph.addVariable(FLOAT, [sum(lengths)], "t")
    shuffled = concat(t.slices(intervals))
    assert concat(shuffled.slices(poputil.calculateUnshufflingIntervals(intervals))) == t


def test_intervals_with_gaps_cannot_be_unshuffled():
    for intervals in ([(0, 2), (3, 4)], [(0, 2), (1, 4)], [(1, 2)]):
        with pytest.raises(poputil.PoplibsError, match="without gaps or overlaps"):
            poputil.calculateUnshufflingIntervals(intervals)


@given(st.integers(0, 100), st.integers(1, 20))
def test_a_balanced_partition_sums_up_with_the_larger_parts_first(total, parts):
    sizes = poputil.balancedPartition(total, parts)
    assert sum(sizes) == total
    assert len(sizes) == parts
    assert sorted(sizes, reverse=True) == sizes
    assert max(sizes) - min(sizes) <= 1


def test_a_balanced_partition_has_parts():
    with pytest.raises(poputil.PoplibsError, match="splitCount is 1 at least, got 0"):
        poputil.balancedPartition(3, 0)


sequences = st.lists(gaps.map(spread), min_size=1, max_size=5)


@given(sequences, st.integers(1, 4), st.integers(1, 7), st.integers(0, 9), st.sampled_from([None, 2, 6]))
def test_sequences_are_split_into_even_parts_of_whole_grains_that_keep_their_order(lists, grain, parts, least, longest):
    split = poputil.splitRegions(lists, grain, parts, least, None, longest)
    flat = [piece for part in split for piece in part]
    assert elements(poputil.flattenIntervals(flat)) == elements(poputil.flattenIntervals(lists))
    sizes = [poputil.intervalSequenceNumElements(part) for part in split]
    assert len(split) <= parts
    assert all(size % grain == 0 for size in sizes[:-1])
    assert all(sizes)
    whole = [set(elements(several)) for several in lists]
    # no piece goes over the end of a sequence, and none is empty or too long
    numbers = [elements(piece) for piece in flat]
    assert all(numbers)
    assert longest is None or max(map(len, numbers), default=0) <= max(longest, grain)
    place = 0
    for piece in numbers:
        while not set(piece) <= whole[place]:
            place += 1


def test_workers_share_sequences_too():
    split = poputil.splitRegionsBetweenWorkers(TARGET, [[Interval(0, 6), Interval(10, 16)]], 2)
    assert split == [[[Interval(low, low + 2)]] for low in (0, 2, 4, 10, 12, 14)]


def test_a_hundred_thousand_regions_are_merged_and_split():
    regions = [Interval(3 * place, 3 * place + 2) for place in range(100_000)]
    assert len(poputil.mergeAdjacentRegions(regions)) == 100_000
    assert len(poputil.splitRegions(regions, 2, 1472)) == 1471
    split = poputil.splitRegions([regions], 2, 1472)
    assert poputil.intervalSequenceNumElements(poputil.flattenIntervals(part) for part in split) == 200_000


@given(st.lists(st.integers(1, 5), max_size=4), st.data())
def test_flattening_an_index_undoes_unflattening_it(shape, data):
    index = data.draw(st.integers(0, math.prod(shape) - 1))
    assert poputil.flattenIndex(shape, poputil.unflattenIndex(shape, index)) == index


def test_indices_out_of_range_are_refused():
    for indices in ([2, 0], [0], [0, -1]):
        with pytest.raises(PoplarIndexError, match=r"out of range for the shape \[2, 3\]"):
            poputil.flattenIndex([2, 3], indices)
    with pytest.raises(PoplarTypeError, match="indices are a list of whole numbers, got 3"):
        poputil.flattenIndex([2, 3], 3)


def test_halves_of_the_device_are_ieee_halves():
    assert poputil.castToDeviceHalfValue(TARGET, 0.1) == float(np.float16(0.1))
    assert poputil.castToDeviceHalfValue(TARGET, 1e6) == math.inf
    assert poputil.checkAccuracyWhenCast(TARGET, 0.1, HALF, FLOAT, 0.0)
    assert poputil.checkAccuracyWhenCast(TARGET, 0.5, FLOAT, HALF, 0.0)
    assert poputil.checkAccuracyWhenCast(TARGET, 0.1, FLOAT, HALF, 1e-3)
    assert not poputil.checkAccuracyWhenCast(TARGET, 0.1, FLOAT, HALF, 1e-6)
    assert not poputil.checkAccuracyWhenCast(TARGET, 1e6, FLOAT, HALF, 0.5)
    assert not poputil.checkAccuracyWhenCast(TARGET, math.nan, FLOAT, HALF, 0.5)
    with pytest.raises(poputil.PoplibsError, match="got INT to HALF"):
        poputil.checkAccuracyWhenCast(TARGET, 1, INT, HALF, 0.5)
    with pytest.raises(PoplarTypeError, match="the first argument is a Target"):
        poputil.castToDeviceHalfValue(1.0, 1.0)


def test_options_are_read_by_their_handlers():
    handler = poputil.OptionHandler
    spec = poputil.OptionSpec(
        {
            "depth": handler.createWithInteger(),
            "share": handler.createWithDouble(0, True, 1, False),
            "fast": handler.createWithBool(),
            "kind": handler.createWithEnum({"a": 1, "b": 2}),
            "name": handler.createWithString(),
            "sizes": handler.createWithList(),
        }
    )
    texts = {"depth": "0x10", "share": "0.5", "fast": "true", "kind": "b", "name": "x y", "sizes": "1,0x2,3"}
    values = {"depth": 16, "share": 0.5, "fast": True, "kind": 2, "name": "x y", "sizes": [1, 2, 3]}
    assert {name: spec.parse(name, text) for name, text in texts.items()} == values
    assert spec.parse("fast", False) is False
    assert spec.parse("sizes", "") == []
    assert spec.parse("other", "1", ignoreUnknown=True) is None


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("dept", "1", "Unrecognised option 'dept'; did you mean 'depth'?"),
        ("depth", "1.5", "Invalid value '1.5' for option 'depth': Not a valid integer"),
        ("share", "1", "Invalid value '1' for option 'share': Value must be less than 1"),
        ("share", "-0.1", "Invalid value '-0.1' for option 'share': Value must be greater than or equal to 0"),
        ("share", "nan", "Invalid value 'nan'"),
        ("share", "x", "Not a floating point number"),
        ("kind", "c", "Not one of the values: ['a', 'b']"),
        ("sizes", "1,,2", "Not a comma-separated list of integers"),
    ],
)
def test_options_that_are_not_allowed_are_refused(option, value, message):
    handler = poputil.OptionHandler
    spec = poputil.OptionSpec(
        {
            "depth": handler.createWithInteger(),
            "share": handler.createWithDouble(0, True, 1, False),
            "kind": handler.createWithEnum({"a": 1, "b": 2}),
            "sizes": handler.createWithList(),
        }
    )
    with pytest.raises(InvalidOption) as caught:
        spec.parse(option, value)
    assert message in str(caught.value)


def test_there_is_no_metadata_of_quarters():
    graph = Graph(TARGET)
    for function in (poputil.createConstantMetadataTensor, poputil.createVariableMetadataTensor):
        with pytest.raises(MissingFeature, match="has no QUARTER"):
            function(graph, "F143", 1)
