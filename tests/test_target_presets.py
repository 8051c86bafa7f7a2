"""The figures of the machines: the table, the targets made from it, their getters."""

import json
import math

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypoplar import IPUModel, types
from pypoplar.errors import InvalidOption, PoplarError, PoplarTypeError, TypeNotSupportedError
from pypoplar.presets import CHIPS, PARAMETERS, PRESETS, TIMINGS
from pypoplar.target import GlobalExchangeConstraint, GlobalExchangeFlow, RelativeSyncDelayType, Target, TargetType, what_if


def test_every_parameter_is_an_attribute_of_target_and_every_figure_has_a_mark():
    attributes = {one.name for one in attrs.fields(Target)}
    for one in PARAMETERS:
        assert one.name in attributes
        assert set(one.mark.split()) <= {"D", "S", "M", "I"}
        assert one.mark
        assert all(one.least <= one.value(chip, timing) <= one.most for chip in CHIPS for timing in TIMINGS)
    rest = {
        "type",
        "system",
        "architecture",
        "timing",
        "num_ipus",
        "sync_configuration",
        "ipu_link_topology",
        "ipu_link_domain_size",
        "gateway_mode",
        "ipu_link_configuration",
        "instance_size",
        "relative_sync_delay",
        "global_exchange_constraints",
    }
    assert attributes == rest | {one.name for one in PARAMETERS}


@pytest.mark.parametrize(
    ("name", "ipus", "tiles", "memory", "clock"),
    [
        ("ipu1", 1, 1216, 262144, 1.6e9),
        ("ipu2", 1, 1472, 638976, 1.33e9),
        ("bow", 1, 1472, 638976, 1.85e9),
        ("tiny", 1, 16, 638976, 1.85e9),
        ("bow2000", 4, 5888, 638976, 1.85e9),
        ("pod16", 16, 23552, 638976, 1.85e9),
        ("pod64", 64, 94208, 638976, 1.85e9),
    ],
)
def test_presets_have_the_published_size(name, ipus, tiles, memory, clock):
    target = Target.of_preset(name)
    assert target.getNumIPUs() == ipus
    assert target.getNumTiles() == tiles
    assert target.getTilesPerIPU() == tiles // ipus
    assert target.getBytesPerTile() == memory
    assert target.getMemoryBytes() == memory * tiles
    assert target.getTileClockFrequency() == clock
    assert target.getTargetSystemString() == name


def test_getters_give_the_figures_of_a_bow():
    target = Target.of_preset("bow")
    assert target.getTargetType() is TargetType.IPU_MODEL
    assert target.getTargetArchString() == "ipu2"
    assert target.getNumWorkerContexts() == 6
    assert target.getDataPathWidth() == 64
    assert target.getExchangeBytesPerCycle() == 4
    assert target.getMemcpyBytesPerCycle() == 8
    assert target.getTilesPerSharedExchangeBus() == 2
    assert target.supportsExchangeBusSharing()
    assert target.getAtomicStoreGranularity() == 4
    assert target.getRptCountMax() == 65536
    assert target.getMinIPUSyncDelay() == 90
    assert target.getMaxIPUSyncDelay() == 126
    assert target.getGlobalSyncCycles() == 600
    assert target.getGlobalExchangeConstraints() == ()
    assert target.getInterleavedMemoryElementIndex() >= 0


@pytest.mark.parametrize(("chip", "rounds"), [("ipu1", 4095), ("ipu2", 65536), ("bow", 65536)])
@pytest.mark.parametrize("timing", TIMINGS)
def test_a_repeat_counts_as_far_as_the_chips_register(chip, rounds, timing):
    assert Target.of_preset(chip, timing=timing).getRptCountMax() == rounds


@pytest.mark.parametrize("chip", CHIPS)
def test_a_timing_is_that_of_the_vendors_model_or_of_measurements(chip):
    model, hardware = (Target.of_preset(chip, timing=timing) for timing in TIMINGS)
    assert Target.of_preset(chip) == model
    assert (model.timing, model.syncs_without_exchange, model.compute_set_start_cycles) == ("model", True, 0)
    assert (hardware.timing, hardware.syncs_without_exchange, hardware.compute_set_start_cycles) == ("hardware", False, 20)
    assert (model.host_sync_seconds, hardware.host_sync_seconds) == (0.36e-6, 1.13e-6)
    assert model.supervisor_instruction_cycles == hardware.supervisor_instruction_cycles == 6
    measured = {parameter.name for parameter in PARAMETERS if parameter.hardware is not None}
    same = {field.name for field in attrs.fields(Target)} - measured - {"timing"}
    assert all(getattr(model, name) == getattr(hardware, name) for name in same)


def test_what_is_measured_says_where():
    for parameter in PARAMETERS:
        if parameter.hardware is not None:
            assert set(parameter.hardware.mark.split()) <= {"D", "M", "I"}
            assert len(parameter.hardware.mark.split()) == len(CHIPS)
            assert "/" in parameter.hardware.source


def test_targets_of_two_timings_differ_even_where_all_figures_are_the_same():
    model = Target.of_preset("tiny")
    assert model != model.evolve(timing="hardware")
    assert "timing='hardware'" in repr(model.evolve(timing="hardware"))


def test_a_timing_goes_with_a_target_wherever_it_comes_from():
    hardware = Target.createIPUTarget(2, "bow", timing="hardware")
    assert hardware == Target.of_preset("bow", TargetType.IPU, "hardware", num_ipus=2)
    assert hardware.createVirtualTarget(1, 4).timing == "hardware"
    assert Target.createIPUTarget("bow").timing == Target.createCPUTarget().timing == "model"


@pytest.mark.parametrize(
    "make", [lambda timing: Target.of_preset("tiny", timing=timing), lambda timing: Target.createIPUTarget("tiny", timing=timing)]
)
def test_an_unknown_timing_is_refused_with_the_nearest(make):
    with pytest.raises(
        InvalidOption, match=r"^no timing is called 'hardwear': the timings are model, hardware; did you mean 'hardware'\?$"
    ):
        make("hardwear")
    for wrong in (None, 7, [1]):
        with pytest.raises(InvalidOption, match=r"the timings are model, hardware$"):
            make(wrong)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("rpt_count_max", 0, "an integer of at least 1, got 0"),
        ("supervisor_instruction_cycles", 0, "an integer of at least 1, got 0"),
        ("supervisor_instruction_cycles", 1001, "at most 1,000 cycles, got 1001"),
        ("syncs_without_exchange", 0, "True or False, got 0"),
        ("compute_set_start_cycles", -1, "an integer of at least 0, got -1"),
        ("compute_set_start_cycles", 2**70, "at most 1,000,000 cycles, got"),
        ("compute_set_start_cycles", 20.0, "an integer of at least 0, got 20.0"),
        ("host_sync_seconds", -1e-6, "a number of s, at least 0, got -1e-06"),
        ("host_sync_seconds", 1e4, "at most 1,000 s, got 10000.0"),
        ("host_sync_seconds", float("nan"), "a number of s, at least 0, got nan"),
        ("num_ipus", 0, "an integer of at least 1, got 0"),
    ],
)
def test_a_figure_out_of_its_range_is_refused(name, value, said):
    target = Target.of_preset("tiny", timing="hardware")
    for change in (lambda: target.evolve(**{name: value}), lambda: Target.of_preset("tiny", **{name: value})):
        with pytest.raises(InvalidOption, match=f"^{name} must be {said}"):
            change()
    with pytest.raises(InvalidOption, match=f"not a saved target: {name}"):
        Target.from_json({**target.to_json(), name: value})


def test_no_relative_delay_makes_all_tiles_sync_alike():
    target = Target.of_preset("bow", relative_sync_delay=RelativeSyncDelayType.NO_DELAY, min_ipu_sync_delay=0)
    assert target.getMaxIPUSyncDelay() == target.getMinIPUSyncDelay() == 0


@pytest.mark.parametrize(("chip", "half", "single"), [("ipu1", 32, 8), ("ipu2", 64, 16), ("bow", 64, 16)])
def test_convolution_units_multiply_as_often_as_published(chip, half, single):
    target = Target.of_preset(chip)
    for type, rate in ((types.HALF, half), (types.FLOAT, single)):
        assert target.getNumConvUnits(type, type) * target.getConvUnitInputLoadElemsPerCycle(type) == rate
    assert target.getNumConvUnits(types.HALF, types.FLOAT) == target.getFp16InFp32OutConvUnitsPerTile()
    assert target.getNumConvUnits(types.HALF, types.HALF) == target.getFp16InFp16OutConvUnitsPerTile()
    assert target.getNumConvUnits(types.FLOAT, types.FLOAT) == target.getFp32InFp32OutConvUnitsPerTile()
    assert target.getNumConvUnits(types.INT, types.INT) == 0
    assert target.getWeightsPerConvUnit(types.HALF) == 16
    assert target.getWeightsPerConvUnit(types.FLOAT) == 8
    assert target.getWeightsPerConvUnit(types.INT) == 0
    assert target.getConvUnitMaxPipelineDepth(types.FLOAT) == 4
    assert target.getConvUnitCoeffLoadBytesPerCycle() > 0


def test_sizes_and_vector_widths_are_the_devices():
    target = Target.of_preset("bow")
    assert [target.getTypeSize(one) for one in types.SUPPORTED] == [4, 2, 4, 4, 2, 2, 1, 1, 1, 1, 8, 8]
    assert (target.getFloatVectorWidth(), target.getHalfVectorWidth()) == (2, 4)
    assert target.getVectorWidth(types.LONGLONG) == 1
    wide = target.evolve(data_path_width=128)
    assert (wide.getFloatVectorWidth(), wide.getHalfVectorWidth()) == (4, 8)
    with pytest.raises(TypeNotSupportedError, match="FLOAT"):
        target.getTypeSize(types.DOUBLE)


def test_limits_of_types_are_those_of_their_numbers():
    target = Target.of_preset("bow")
    assert target.getTypeLimitsMax(types.HALF) == 65504.0
    assert target.getTypeLimitsLowest(types.HALF) == -65504.0
    assert target.getTypeLimitsMax(types.UNSIGNED_INT) == 2**32 - 1
    assert target.getTypeLimitsLowest(types.INT) == -(2**31)
    assert (target.getTypeLimitsLowest(types.BOOL), target.getTypeLimitsMax(types.BOOL)) == (0, 1)


def test_targets_are_values():
    assert Target.of_preset("bow") == Target.of_preset("bow")
    assert hash(Target.of_preset("bow")) == hash(Target.of_preset("bow"))
    assert Target.of_preset("bow") != Target.of_preset("ipu2")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Target.of_preset("bow").num_ipus = 2


@given(
    st.sampled_from(sorted(PRESETS)),
    st.sampled_from(TargetType),
    st.integers(1, 64),
    st.sampled_from(RelativeSyncDelayType),
    st.lists(st.tuples(st.floats(1, 1e12), st.lists(st.tuples(st.integers(0, 63), st.integers(0, 63)), min_size=1))),
    st.sampled_from(sorted(TIMINGS)),
)
def test_json_brings_a_target_back(name, type, ipus, delay, limits, timing):
    constraints = tuple(GlobalExchangeConstraint(b, [GlobalExchangeFlow(*one) for one in flows]) for b, flows in limits)
    target = Target.of_preset(name, type, timing, num_ipus=ipus, relative_sync_delay=delay, global_exchange_constraints=constraints)
    assert Target.from_json(json.loads(json.dumps(target.to_json()))) == target


@pytest.mark.parametrize(
    "damage",
    [
        lambda values: values.pop("num_ipus"),
        lambda values: values.update(colour="red"),
        lambda values: values.update(num_ipus="two"),
        lambda values: values.update(num_ipus=0),
        lambda values: values.update(tiles_per_ipu=-1),
        lambda values: values.update(type="GPU"),
        lambda values: values.update(timing="hardwear"),
        lambda values: values.pop("timing"),
        lambda values: values.update(tile_clock_frequency=None),
        lambda values: values.update(global_exchange_constraints=7),
    ],
)
def test_damaged_json_is_refused(damage):
    values = Target.of_preset("tiny").to_json()
    damage(values)
    with pytest.raises(InvalidOption, match="not a saved target"):
        Target.from_json(values)


def test_ipu_targets_are_made_without_a_device():
    assert Target.createIPUTarget("bow").getNumTiles() == 1472
    assert Target.createIPUTarget(2, "ipu1").getNumTiles() == 2432
    assert Target.createIPUTarget(2, 8, "bow").getNumTiles() == 16
    assert Target.createIPUTarget("bow").getTargetType() is TargetType.IPU
    assert not Target.createIPUTarget(2, "bow", opts={"syncConfiguration": "ipuAndAll"}).host_sync_joins_ipus
    assert Target.createIPUTarget(2, "bow", opts={"ipuLinkTopology": "torus"}).host_sync_joins_ipus
    with pytest.raises(InvalidOption, match=r"a target has no option 'syncConfig'.*did you mean 'syncConfiguration'"):
        Target.createIPUTarget(2, "bow", opts={"syncConfig": "ipuAndAll"})
    with pytest.raises(InvalidOption, match="syncConfiguration is 'intraReplicaAndAll' or 'ipuAndAll', got 'all'"):
        Target.createIPUTarget(2, "bow", opts={"syncConfiguration": "all"})
    with pytest.raises(InvalidOption, match="numIPUs"):
        Target.createIPUTarget(0, "bow")
    with pytest.raises(PoplarTypeError, match="createIPUTarget"):
        Target.createIPUTarget(2)
    with pytest.raises(InvalidOption, match=r"did you mean 'bow2000'\?"):
        Target.createIPUTarget("bow200")


def test_a_cpu_target_has_one_tile_with_one_worker():
    target = Target.createCPUTarget()
    assert (target.getNumTiles(), target.getNumWorkerContexts()) == (1, 1)
    assert target.getTargetType() is TargetType.CPU
    assert target.getTargetArchString() == "cpu"
    assert Target.createCPUTarget(True, 3).getNumTiles() == 3


def test_virtual_targets_are_smaller_not_larger():
    target = Target.of_preset("pod16")
    assert target.createVirtualTarget(2, 100).getNumTiles() == 200
    with pytest.raises(InvalidOption, match="does not fit"):
        target.createVirtualTarget(17, 1)
    with pytest.raises(InvalidOption, match="does not fit"):
        target.createVirtualTarget(1, 1473)
    with pytest.raises(InvalidOption, match="tilesPerIPU"):
        target.createVirtualTarget(1, 0)


@pytest.mark.parametrize(
    ("bandwidth", "flows", "message"),
    [
        ("a", [GlobalExchangeFlow(0, 1)], "a number of bits per second above 0, got 'a'"),
        (0, [GlobalExchangeFlow(0, 1)], "above 0, got 0"),
        (math.nan, [GlobalExchangeFlow(0, 1)], "above 0, got nan"),
        (1e9, [], "limits one flow at least, got none"),
        (1e9, [(0, 1)], r"are GlobalExchangeFlow\(src, dst\), got \(0, 1\)"),
    ],
)
def test_a_limit_that_limits_nothing_is_refused(bandwidth, flows, message):
    with pytest.raises(PoplarError, match=message):
        GlobalExchangeConstraint(bandwidth, flows)


def test_a_flow_of_no_ipu_is_refused():
    with pytest.raises(InvalidOption, match="an IPU of a GlobalExchangeFlow must be an integer of at least 0, got -1"):
        GlobalExchangeFlow(0, -1)
    model = IPUModel()
    model.numIPUs = 2
    model.globalExchangeConstraints = [GlobalExchangeConstraint(1e9, [GlobalExchangeFlow(0, 2)])]
    with pytest.raises(InvalidOption, match=r"a flow from IPU 0 to IPU 2, the model has 2 \(from 0 on\)"):
        model.createDevice()


def test_an_attribute_that_a_target_does_not_have_is_named():
    with pytest.raises(PoplarTypeError, match="a Target has no attribute 'tile_per_ipu'; did you mean 'tiles_per_ipu'"):
        IPUModel().createDevice().getTarget().evolve(tile_per_ipu=4)


def test_a_target_is_changed_by_short_names_too():
    target = Target.of_preset("bow")
    short = target.evolve(ipus=2, tiles=4, memory=1000, clock=1e9, workers=3, exchange=8, links=1e9, sync=10)
    assert short == target.evolve(
        num_ipus=2,
        tiles_per_ipu=4,
        bytes_per_tile=1000,
        tile_clock_frequency=1e9,
        num_worker_contexts=3,
        exchange_bytes_per_cycle=8,
        ipu_link_bytes_per_second=1e9,
        min_ipu_sync_delay=10,
    )
    for name, message in (("clok", "did you mean 'clock'"), ("bytes_per_til", "did you mean 'bytes_per_tile'")):
        with pytest.raises(PoplarTypeError, match=f"a Target has no attribute {name!r}; {message}"):
            target.evolve(**{name: 1})
    with pytest.raises(PoplarTypeError, match="'clock' and 'tile_clock_frequency' are one attribute of a Target"):
        target.evolve(clock=1e9, tile_clock_frequency=1e9)


def test_targets_made_within_a_what_if_have_its_changes():
    with what_if({"clock": 1e9, "tiles": 7}):
        made = [IPUModel("bow").createDevice().getTarget(), Target.createIPUTarget("pod16")]
        assert [(target.getTileClockFrequency(), target.getTilesPerIPU()) for target in made] == [(1e9, 7)] * 2
        assert Target.createCPUTarget().getTilesPerIPU() == 1
    assert IPUModel("bow").createDevice().getTarget() == Target.of_preset("bow")
    with pytest.raises(PoplarTypeError, match="did you mean 'clock'"), what_if({"clocks": 1e9}):
        pass
