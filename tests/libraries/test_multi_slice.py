"""popops.multiSlice, multiUpdate and its kin, with plans of popops.embedding and without, against NumPy."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, new_graph, run, variable

from pypoplar import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    ApplicationRuntimeError,
    Engine,
    Graph,
    InvalidOption,
    IPUModel,
    PoplarIndexError,
    PoplarTypeError,
    popops,
)
from pypoplar.popops import SlicePlan, embedding
from pypoplar.popops.slicing.slice_cycles import multi_slice_cycles, update_op_cycles
from pypoplar.popops.slicing.slice_options import SLICE_OPTIONS, SliceOptions
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

UPDATES = {"none": "multiUpdate", "add": "multiUpdateAdd", "max": "multiUpdateMax", "mul": "multiUpdateMul"}


def numbers(type, shape, limit, first=0):
    """Small whole numbers, different from element to element."""
    return ((np.arange(int(np.prod(shape))) * 7 + first) % limit).reshape(shape).astype(type.dtype)


def combined(operation, old, new, scale=2):
    with np.errstate(over="ignore"):
        results = {"none": new, "add": old + scale * new, "max": np.maximum(old, new), "mul": old * new}
    return results[operation]


def expected(table, rows, offsets, operation):
    """Lookups in a table ``[groups, entries, width]``, and the table after updates one after the other."""
    after, found = table.copy(), np.zeros_like(rows)
    for group, lookup in np.ndindex(*offsets.shape):
        entry = offsets[group, lookup]
        if entry < table.shape[1]:
            found[group, lookup, 0] = table[group, entry]
            after[group, entry] = combined(operation, after[group, entry], rows[group, lookup, 0])
    return found, after


class Table:
    """A table with what looks it up and updates it, planned or not."""

    def __init__(self, tiles, type, shape, lookups, operation="add", planned=True, grouped=False, options=None):
        self.graph, self.device = new_graph(tiles)
        graph, (groups, entries, width) = self.graph, shape
        chosen = {"operationForUpdate": operation, **(options or {})}
        plan = embedding.plan(graph, type, groups, entries, width, [lookups], chosen) if planned else SlicePlan()
        place = ([entries, width], [0], [1])
        if grouped:
            self.t = popops.createGroupedSliceableTensor(graph, type, groups, *place, plan, chosen)
            self.s = popops.createGroupedSliceTensor(graph, type, groups, *place, lookups, plan, chosen)
            self.offsets = popops.createGroupedIndicesTensor(graph, groups, [0], lookups, plan, chosen)
        else:
            self.t = popops.createSliceableTensor(graph, type, *place, plan, chosen)
            self.s = popops.createSliceTensor(graph, type, *place, lookups, plan, chosen)
            self.offsets = popops.createIndicesTensor(graph, [0], lookups, plan, chosen)
        self.plan, self.prog = plan, Sequence()
        names = {operation: f"grouped{name[0].upper()}{name[1:]}" if grouped else name for operation, name in UPDATES.items()}
        look_up = popops.groupedMultiSlice if grouped else popops.multiSlice
        self.found = look_up(graph, self.t, self.offsets, [0], [1], self.prog, plan, chosen)
        if str(chosen.get("usedForUpdate", "true")) == "true":
            scale = []
            if operation == "add":
                scale = [graph.addConstant(type, [], 2)]
                graph.setTileMapping(scale[0], tiles - 1)
            update = getattr(popops, names[operation])
            update(graph, self.t, self.s, self.offsets, *scale, [0], [1], self.prog, plan, chosen)
        for name in ("t", "s", "offsets"):
            graph.createHostWrite(name, getattr(self, name))
        self.values = {
            "t": numbers(type, self.t.shape(), 7),
            "s": numbers(type, self.s.shape(), 3, 1),
            "offsets": numbers(UNSIGNED_INT, self.offsets.shape(), entries + 2, 5),
        }

    def check(self, operation, mode, updates=True):
        """Run in an engine, compare with NumPy, and return the cycles of all steps."""
        groups = self.t.dim(0) if self.t.rank() == 3 else 1
        table = self.values["t"].reshape(groups, *self.t.shape()[-2:])
        rows = self.values["s"].reshape(groups, -1, 1, table.shape[2])
        found, after = expected(table, rows, self.values["offsets"].reshape(groups, -1), operation)
        read, engine = run(self.graph, self.device, self.prog, self.values, {"found": self.found, "after": self.t}, mode)
        np.testing.assert_array_equal(read["found"].reshape(found.shape), found)
        np.testing.assert_array_equal(read["after"].reshape(after.shape), after if updates else table)
        return [step.cycles for step in engine.getReport().execution.steps]


@pytest.mark.parametrize("operation", UPDATES)
@pytest.mark.parametrize("planned", [True, False])
def test_lookups_and_updates_are_those_of_numpy(operation, planned, mode):
    for tiles, type, shape, lookups in [(1, FLOAT, (1, 5, 3), 9), (4, HALF, (1, 30, 7), 20), (7, INT, (1, 9, 16), 1)]:
        Table(tiles, type, shape, lookups, operation, planned).check(operation, mode)


@pytest.mark.parametrize("operation", UPDATES)
def test_groups_are_looked_up_and_updated_apart(operation, mode):
    Table(16, HALF, (3, 11, 6), 10, operation, grouped=True).check(operation, mode)
    Table(4, UNSIGNED_INT, (7, 5, 2), 8, operation, grouped=True).check(operation, mode)


@st.composite
def tables(draw):
    """The arguments of a table."""
    operation = draw(st.sampled_from(sorted(UPDATES)))
    kinds = (FLOAT, HALF, INT, UNSIGNED_INT) if operation != "none" else (FLOAT, HALF, BOOL, UNSIGNED_CHAR)
    planned = draw(st.booleans())
    groups = draw(st.sampled_from([1, 1, 2, 5])) if planned else 1
    shape = groups, draw(st.integers(1, 40)), draw(st.integers(1, 20))
    options = draw(
        st.sampled_from([{}, {"usedForUpdate": "false"}, {"availableMemoryProportion": "0"}, {"indicesDistribution": "onePoint"}])
    )
    tiles, lookups = draw(st.sampled_from([1, 4, 7, 16])), draw(st.integers(0, 30))
    return (tiles, draw(st.sampled_from(kinds)), shape, lookups, operation, planned, groups > 1, options)


@examples(12)
@given(tables())
def test_both_engines_look_up_and_update_alike(arguments):
    operation, updates = arguments[4], "usedForUpdate" not in arguments[-1]
    cycles = [Table(*arguments).check(operation, mode, updates) for mode in MODES]
    assert cycles[0] == cycles[1]


TARGETS = [(4, HALF), (61, FLOAT), (1472, HALF)]
SIZES = [(10, 1, 1), (100, 16, 8), (1000, 64, 100), (50, 256, 300), (3000, 8, 50), (20, 7, 500)]


def cycles_of(tiles, type, size, planned, options):
    """Cycles of a lookup, and of an update, on a Bow of so many tiles."""
    entries, width, lookups = size
    model = IPUModel()
    model.tilesPerIPU = tiles
    graph = Graph(model.createDevice())
    popops.addCodelets(graph)
    plan = embedding.plan(graph, type, entries, width, [lookups], options) if planned else SlicePlan()
    t = popops.createSliceableTensor(graph, type, [entries, width], [0], [1], plan, options)
    s = popops.createSliceTensor(graph, type, [entries, width], [0], [1], lookups, plan, options)
    offsets, scale = popops.createIndicesTensor(graph, [0], lookups, plan, options), graph.addConstant(type, [], 1.0)
    graph.setTileMapping(scale, 0)
    prog = Sequence()
    popops.multiSlice(graph, t, offsets, [0], [1], prog, plan, options, "lookup")
    if "usedForUpdate" not in options:
        popops.multiUpdateAdd(graph, t, s, offsets, scale, [0], [1], prog, plan, options, "update")
    engine = Engine(graph, prog)
    engine.load(model.createDevice())
    engine.run()
    steps = engine.getReport().execution.steps
    return [sum(step.cycles for step in steps if step.name.startswith(name)) for name in ("lookup", "update")]


@pytest.mark.parametrize(("tiles", "type"), TARGETS)
def test_planned_lookups_and_updates_are_never_dearer_than_unplanned_ones(tiles, type):
    for size in SIZES:
        for options in ({}, {"usedForUpdate": "false"}, {"indicesDistribution": "onePoint"})[:: 1 if tiles == 61 else 3]:
            planned, unplanned = (cycles_of(tiles, type, size, chosen, options) for chosen in (True, False))
            assert planned[0] <= unplanned[0], (size, options)
            assert planned[1] <= unplanned[1], (size, options)


@pytest.mark.no_cover
def test_an_embedding_of_30_000_words_is_spread_over_the_machine():
    """7.7 million halves: a tile has its 10 KB of them, and no more than a tenth of its memory is needed beside."""
    device = IPUModel().createDevice()
    graph = Graph(device)
    popops.addCodelets(graph)
    plan = embedding.plan(graph, HALF, 30_000, 256, [1000], {"usedForUpdate": "false"})
    t = popops.createSliceableTensor(graph, HALF, [30_000, 256], [0], [1], plan, {})
    offsets = popops.createIndicesTensor(graph, [0], 1000, plan, {})
    prog = Sequence()
    found = popops.multiSlice(graph, t, offsets, [0], [1], prog, plan, {})
    held = [sum(region.size() for region in regions) for regions in graph.getTileMapping(t)]
    assert sum(count > 0 for count in held) > 1400
    assert max(held) < 1.1 * 30_000 * 256 / 1472
    for name, tensor in (("t", t), ("offsets", offsets)):
        graph.createHostWrite(name, tensor)
    graph.createHostRead("found", found)
    engine = Engine(graph, prog)
    engine.load(device)
    rng = np.random.default_rng(1)
    table, indices = rng.integers(0, 100, [30_000, 256]).astype(np.float16), rng.integers(0, 30_000, [1000, 1])
    engine.writeTensor("t", table)
    engine.writeTensor("offsets", indices.astype(np.uint32))
    engine.run()
    np.testing.assert_array_equal(engine.readTensor("found")[:, 0], table[indices[:, 0]])
    assert sum(step.cycles for step in engine.getReport().execution.steps) < 14_000


def test_offsets_that_are_known_now_are_copied_and_added(mode):
    graph, device = new_graph(4)
    t = variable(graph, FLOAT, [4, 5, 3], "t")
    s = variable(graph, FLOAT, [5, 4, 1, 3], "s")
    prog = Sequence()
    found = popops.multiSlice(graph, t, [4, 0, 4], 1, prog)
    padded = popops.multiSlice(graph, t, [5, 1], 1, prog, optionFlags={"paddingIndexUsed": "true"})
    nothing = popops.multiSlice(graph, t, [], 1, prog)
    assert nothing.shape() == [0, 4, 1, 3]
    scale = graph.addConstant(FLOAT, [], 0.5)
    graph.setTileMapping(scale, 0)
    popops.multiUpdateAdd(graph, t, s, [1, 4, 1, 9, 0], scale, 1, prog, "add", {"remapOutOfBoundIndices": "true"})
    values = {"t": numbers(FLOAT, [4, 5, 3], 7), "s": numbers(FLOAT, [5, 4, 1, 3], 5)}
    read, _ = run(graph, device, prog, values, {"found": found, "padded": padded, "t": t}, mode)
    np.testing.assert_array_equal(read["found"], np.stack([values["t"][:, [place]] for place in (4, 0, 4)]))
    np.testing.assert_array_equal(read["padded"], np.stack([0 * values["t"][:, [0]], values["t"][:, [1]]]))
    wanted = values["t"].copy()
    for place, row in zip((1, 4, 1, 0, 0), values["s"], strict=True):
        wanted[:, [place]] += 0.5 * row
    np.testing.assert_array_equal(read["t"], wanted)


def test_slices_of_several_dimensions_and_sizes_are_taken_one_by_one(mode):
    for lookups in (2, 5):
        graph, device = new_graph(4)
        t, offsets = variable(graph, INT, [5, 6, 2], "t"), variable(graph, UNSIGNED_INT, [lookups, 2], "offsets")
        s = variable(graph, INT, [lookups, 2, 3, 2], "s")
        prog = Sequence()
        found = popops.multiSlice(graph, t, offsets, [0, 1], [2, 3], prog, SlicePlan(), {})
        popops.multiUpdate(graph, t, s, offsets, [0, 1], [2, 3], prog, SlicePlan(), {})
        places = np.array([[4, 5], [0, 2], [3, 1], [4, 5], [1, 0]])[:lookups]
        values = {"t": numbers(INT, [5, 6, 2], 60), "s": numbers(INT, s.shape(), 99, 3), "offsets": places.astype(np.uint32)}
        read, _ = run(graph, device, prog, values, {"found": found, "t": t}, mode)
        wanted = values["t"].copy()
        for number, (row, column) in enumerate(places):
            where = np.ix_((row + np.arange(2)) % 5, (column + np.arange(3)) % 6)
            np.testing.assert_array_equal(read["found"][number], values["t"][where])
            wanted[where] = values["s"][number]
        np.testing.assert_array_equal(read["t"], wanted)


def test_any_mapping_and_any_dimension_will_do(mode):
    """Without a plan, of a tensor of three dimensions that is spread in order of its elements."""
    graph, device = new_graph(5)
    t, offsets = variable(graph, HALF, [3, 8, 5], "t"), variable(graph, UNSIGNED_INT, [9, 1], "offsets")
    prog = Sequence()
    found = popops.multiSlice(graph, t, offsets, [1], [1], prog, SlicePlan(), {})
    again = popops.multiSlice(graph, t, offsets, [1], [1], prog, SlicePlan(), {"availableMemoryProportion": "0"})
    values = {"t": numbers(HALF, [3, 8, 5], 99), "offsets": numbers(UNSIGNED_INT, [9, 1], 9)}
    read, _ = run(graph, device, prog, values, {"found": found, "again": again}, mode)
    padded = np.concatenate([values["t"], np.zeros([3, 1, 5], np.float16)], 1)
    wanted = np.stack([padded[:, [place]] for place in values["offsets"][:, 0]])
    np.testing.assert_array_equal(read["found"], wanted)
    np.testing.assert_array_equal(read["again"], wanted)


@pytest.mark.parametrize("planned", [True, False])
def test_options_say_what_becomes_of_indices_out_of_range(planned, mode):
    def look_up(options, indices):
        graph, device = new_graph(4)
        plan = embedding.plan(graph, FLOAT, 6, 4, [5], options) if planned else SlicePlan()
        t = popops.createSliceableTensor(graph, FLOAT, [6, 4], [0], [1], plan, options)
        offsets = variable(graph, UNSIGNED_INT, [5, 1], "offsets")
        graph.createHostWrite("t", t)
        prog = Sequence()
        found = popops.multiSlice(graph, t, offsets, [0], [1], prog, plan, options)
        values = {"t": numbers(FLOAT, [6, 4], 99), "offsets": np.array(indices, np.uint32)[:, None]}
        return values["t"], run(graph, device, prog, values, {"found": found}, mode)[0]["found"][:, 0]

    table, found = look_up({"remapOutOfBoundIndices": "true", "validateIndices": "true"}, [5, 6, 2**32 - 1, 1, 0])
    np.testing.assert_array_equal(found, table[[5, 0, 0, 1, 0]])
    table, found = look_up({"paddingIndexUsed": "true", "validateIndices": "true"}, [6, 5, 6, 1, 0])
    np.testing.assert_array_equal(found, np.concatenate([table, 0 * table])[[6, 5, 6, 1, 0]])
    look_up({"validateIndices": "true"}, [5, 5, 5, 1, 0])
    with pytest.raises(ApplicationRuntimeError, match="an index is out of range"):
        look_up({"validateIndices": "true"}, [5, 5, 5, 6, 0])


def test_sums_of_halves_are_rounded_once_each_time_or_once_at_the_end():
    def add(options):
        graph, device = new_graph(4)
        t, s = variable(graph, HALF, [3, 2], "t"), variable(graph, HALF, [4, 1, 2], "s")
        offsets, scale = variable(graph, UNSIGNED_INT, [4, 1], "offsets"), variable(graph, FLOAT, [], "scale")
        prog = Sequence()
        popops.multiUpdateAdd(graph, t, s, offsets, scale, [0], [1], prog, SlicePlan(), options)
        values = {
            "t": np.full([3, 2], 2048, np.float16),
            "s": np.ones([4, 1, 2], np.float16),
            "offsets": np.full([4, 1], 1, np.uint32),
        }
        return run(graph, device, prog, {**values, "scale": np.float32(1)}, {"t": t})[0]["t"][1, 0]

    assert add({}) == 2048  # 2049 is no half
    assert add({"partialType": "float"}) == 2052


def test_lookups_cost_what_poplibs_says():
    target = IPUModel("ipu2").createDevice().getTarget()
    assert multi_slice_cycles(target, FLOAT, 64, 10, 10) == 30 + 10 * (19 + 64)
    assert multi_slice_cycles(target, HALF, 4, 10, 3) == 30 + 3 * (19 + 4) + 7 * 8
    assert multi_slice_cycles(target, BOOL, 9, 2, 2, update=True) == 29 + 2 * (19 + 9)
    assert multi_slice_cycles(target, FLOAT, 64, 1, 1, divided=True) == 30 + 19 + 12
    assert update_op_cycles(FLOAT, 64, 10, 4, scaled=True) == 3 + 29 + 6 + 4 * (11 + 63 * 3) + 6 * 5
    assert update_op_cycles(HALF, 4, 10, 4, scaled=True) == 3 + 29 + 4 + 4 * 9 + 6 * 5
    assert update_op_cycles(HALF, 3, 1, 1) == 3 + 30 + 12 + 60


def test_plans_say_the_same_where_they_are_made_of_the_same():
    graph, _ = new_graph(16)
    arguments = (graph, FLOAT, 100, 8, [4, 20], {"planConstraints": '{"slicedDimSplit": 4}'})
    plans = embedding.planMultiple([embedding.SlicePlanningParameters(*arguments), embedding.SlicePlanningParameters(*arguments)])
    assert plans[0] == plans[1] == embedding.plan(*arguments) != SlicePlan()
    assert SlicePlan() == SlicePlan() < plans[0]
    assert "100 entries of 8" in repr(plans[0])
    assert "slicedDimSplit=4" in repr(plans[0])
    assert not plans[0] < plans[1]
    assert len({plans[0], plans[1], SlicePlan()}) == 2


def test_no_plan_is_taken_for_other_options():
    """Plans are kept by the options that they are made for."""
    others = {
        "usedForSlice": "false",
        "usedForUpdate": "false",
        "operationForUpdate": "max",
        "availableMemoryProportion": "0.5",
        "indicesDistribution": "onePoint",
        "indicesAreSorted": "true",
        "validateIndices": "true",
        "remapOutOfBoundIndices": "true",
        "paddingIndexUsed": "true",
        "partialType": "float",
        "planConstraints": '{"slicedDimSplit": 4}',
    }
    assert others.keys() == SLICE_OPTIONS.keys()
    read = [SliceOptions.read("plan", chosen) for chosen in ({}, *({name: value} for name, value in others.items()))]
    assert all(one != other for one, other in combinations(read, 2))
    assert SliceOptions.read("plan", others) == SliceOptions.read("plan", dict(others))


def test_what_does_not_fit_is_refused():
    graph, _ = new_graph(4)
    t, s, offsets = (
        variable(graph, type, shape, name)
        for type, shape, name in ((FLOAT, [9, 4], "t"), (FLOAT, [5, 1, 4], "s"), (UNSIGNED_INT, [5, 1], "offsets"))
    )
    scale, halves = variable(graph, FLOAT, [], "scale"), variable(graph, HALF, [9, 4], "halves")
    bytes, rows = variable(graph, UNSIGNED_CHAR, [9, 4], "bytes"), variable(graph, UNSIGNED_CHAR, [5, 1, 4], "rows")
    plan = embedding.plan(graph, FLOAT, 9, 4, [5], {})
    lookups = embedding.plan(graph, FLOAT, 9, 4, [5], {"usedForUpdate": "false", "planConstraints": '{"lookupParallelSplit": 2}'})
    in_order = embedding.plan(graph, FLOAT, 9, 4, [5], {"indicesAreSorted": "true"})
    prog = Sequence()

    def look_up(t=t, offsets=offsets, dims=(0,), sizes=(1,), plan=plan, options=None):
        popops.multiSlice(graph, t, offsets, dims, sizes, prog, plan, options or {})

    def add(t=t, s=s, offsets=offsets, scale=scale, plan=plan, options=None):
        popops.multiUpdateAdd(graph, t, s, offsets, scale, [0], [1], prog, plan, options or {})

    before = graph.numVertices(), graph.numComputeSets()
    refusals = [
        (PoplibsError, r"the plan is for the shape \[9, 4\], got \[8, 4\]", lambda: look_up(t=t.slice(0, 8))),
        (PoplibsError, "a plan is for slices of size 1 of dimension 0", lambda: look_up(dims=[1])),
        (
            PoplibsError,
            "the plan is for 1 groups, got 9",
            lambda: popops.groupedMultiSlice(
                graph, t.expand([2]), offsets.broadcast(9).reshape([9, 5, 1]), [0], [1], prog, plan, {}
            ),
        ),
        (
            PoplibsError,
            "groupedMultiSlice needs a plan",
            lambda: popops.groupedMultiSlice(graph, t.expand([0]), offsets.expand([0]), [0], [1], prog, SlicePlan(), {}),
        ),
        (
            PoplibsError,
            r"the offsets have the shape \[0, 1\], \[lookups, len\(dims\)\], got",
            lambda: look_up(offsets=offsets.flatten()),
        ),
        (PoplibsError, "offsets are UNSIGNED_INT", lambda: look_up(offsets=s.flatten(1).slice(0, 1, 1))),
        (PoplibsError, "the plan is for sorted indices", lambda: look_up(plan=in_order)),
        (PoplarTypeError, "plan is a SlicePlan, got None", lambda: look_up(plan=None)),
        (InvalidOption, "did you mean 'usedForUpdate'", lambda: look_up(options={"usedForUpdates": "true"})),
        (
            InvalidOption,
            "availableMemoryProportion' is from 0 to 1, got 2",
            lambda: look_up(options={"availableMemoryProportion": 2}),
        ),
        (
            InvalidOption,
            "availableMemoryProportion' is from 0 to 1, got nan",
            lambda: look_up(options={"availableMemoryProportion": "nan"}),
        ),
        (PoplibsError, r"multiUpdateAdd: the slices have the shape \[5, 1, 4\], got", lambda: add(s=s.slice(0, 4))),
        (PoplibsError, "t and s have one type", lambda: add(t=halves)),
        (PoplibsError, "the scale of FLOAT is FLOAT, got", lambda: add(scale=offsets[0][0])),
        (PoplibsError, r"the scale is a scalar, of shape \[\], got", lambda: add(scale=scale.expand([0]))),
        (PoplibsError, "multiUpdateAdd: the plan is not for updates", lambda: add(plan=lookups)),
        (PoplibsError, "cannot write .*twice, or a constant", lambda: add(t=t.slice(0, 1).broadcast(9))),
        (PoplibsError, "partialType half holds less than the data", lambda: add(options={"partialType": "half"})),
        (
            PoplibsError,
            "multiUpdateMax has no UNSIGNED_CHAR",
            lambda: popops.multiUpdateMax(graph, bytes, rows, offsets, [0], [1], prog, SlicePlan(), {}),
        ),
        (PoplarIndexError, "offset 9 is out of range for dimension 0", lambda: popops.multiSlice(graph, t, [1, 9], 0, prog)),
        (PoplarIndexError, "dimension 2 is out of range", lambda: popops.multiSlice(graph, t, [1], 2, prog)),
        (PoplibsError, "each of offsets is a whole number of at least 0", lambda: popops.multiSlice(graph, t, [-1], 0, prog)),
        (
            PoplibsError,
            "usedForSlice and usedForUpdate false",
            lambda: embedding.plan(graph, FLOAT, 9, 4, [5], {"usedForSlice": "false", "usedForUpdate": "false"}),
        ),
        (
            InvalidOption,
            "planConstraints have no 'slicedDimSplits'; did you mean 'slicedDimSplit'",
            lambda: embedding.plan(graph, FLOAT, 9, 4, [5], {"planConstraints": '{"slicedDimSplits": 4}'}),
        ),
        (
            InvalidOption,
            "'planConstraints' is a JSON object",
            lambda: embedding.plan(graph, FLOAT, 9, 4, [5], {"planConstraints": "slicedDimSplit=4"}),
        ),
        (
            PoplibsError,
            "no plan for .* meets the constraints",
            lambda: embedding.plan(graph, FLOAT, 9, 4, [5], {"planConstraints": '{"slicedDimSplit": 9}'}),
        ),
        (PoplibsError, "numEntries is a whole number of at least 1, got 0", lambda: embedding.plan(graph, FLOAT, 0, 4, [5], {})),
        (PoplarTypeError, "takes a list of SlicePlanningParameters, got 3", lambda: embedding.planMultiple([3])),
    ]
    for error, text, call in refusals:
        with pytest.raises(error, match=text):
            call()
    assert (graph.numVertices(), graph.numComputeSets()) == before
