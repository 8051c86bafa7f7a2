"""The figures of the machines: the table, the targets made from it, their getters."""

import json

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypoplar import types
from pypoplar.errors import InvalidOption, PoplarTypeError, TypeNotSupportedError
from pypoplar.presets import CHIPS, PARAMETERS, PRESETS
from pypoplar.target import GlobalExchangeConstraint, GlobalExchangeFlow, RelativeSyncDelayType, Target, TargetType


def test_every_parameter_is_an_attribute_of_target_and_every_figure_has_a_mark():
    attributes = {one.name for one in attrs.fields(Target)}
    for one in PARAMETERS:
        assert one.name in attributes
        assert set(one.mark.split()) <= {"D", "S", "M", "I"}
        assert one.mark
        assert all(one.value(chip) >= one.least for chip in CHIPS)
    rest = {
        "type",
        "system",
        "architecture",
        "num_ipus",
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
    assert target.getRptCountMax() == 4095
    assert target.getMinIPUSyncDelay() == 90
    assert target.getMaxIPUSyncDelay() == 126
    assert target.getGlobalSyncCycles() == 600
    assert target.getGlobalExchangeConstraints() == ()
    assert target.getInterleavedMemoryElementIndex() >= 0


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
    st.lists(st.tuples(st.floats(1, 1e12), st.lists(st.tuples(st.integers(0, 63), st.integers(0, 63))))),
)
def test_json_brings_a_target_back(name, type, ipus, delay, limits):
    constraints = tuple(GlobalExchangeConstraint(b, [GlobalExchangeFlow(*one) for one in flows]) for b, flows in limits)
    target = Target.of_preset(name, type, num_ipus=ipus, relative_sync_delay=delay, global_exchange_constraints=constraints)
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
