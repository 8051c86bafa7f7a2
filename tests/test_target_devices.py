"""IPUModel's fields, devices, and the machine of a device manager."""

import copy

import numpy as np
import pytest

from pypoplar.device import FIELDS, OTHER_FIELDS, Device, DeviceManager, IPUModel
from pypoplar.errors import InvalidOption, PoplarTypeError, UnknownHandle
from pypoplar.target import GlobalExchangeConstraint, GlobalExchangeFlow, RelativeSyncDelayType, Target, TargetType


def test_the_default_model_is_a_bow():
    target = IPUModel().createDevice().getTarget()
    assert target == Target.of_preset("bow")
    assert target.getTargetType() is TargetType.IPU_MODEL


def test_declared_fields_are_the_tables():
    assert set(IPUModel.__annotations__) == {*FIELDS, *OTHER_FIELDS}
    model = IPUModel()
    assert all(hasattr(model, name) for name in IPUModel.__annotations__)


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_every_field_reaches_the_target(name):
    model = IPUModel("ipu2")
    row = FIELDS[name]
    old = getattr(model, name)
    new = (not old) if isinstance(old, bool) else old * 2 + (32 if name == "dataPathWidth" else 1)
    setattr(model, name, new)
    target = model.createDevice().getTarget()
    assert getattr(target, row.name) == new
    assert target == Target.of_preset("ipu2").evolve(**{row.name: new})


def test_the_other_fields_reach_the_target():
    model = IPUModel("ipu2")
    model.numIPUs = 2
    model.relativeSyncDelay = IPUModel.RelativeSyncDelayType.NO_DELAY
    constraint = GlobalExchangeConstraint(1e9, [GlobalExchangeFlow(0, 1)])
    model.globalExchangeConstraints = [constraint]
    target = model.createDevice().getTarget()
    assert target.getNumIPUs() == 2
    assert target.relative_sync_delay is RelativeSyncDelayType.NO_DELAY
    assert target.getGlobalExchangeConstraints() == (constraint,)


@pytest.mark.parametrize("make", [lambda: IPUModel("ipu2", "hardware"), lambda: IPUModel("ipu2", timing="hardware")])
def test_a_models_timing_reaches_the_target(make):
    model = make()
    assert model.timing == "hardware"
    device = model.createDevice()
    assert device.getTarget() == Target.of_preset("ipu2", timing="hardware")
    assert device.createVirtualDevice(4).getTarget().timing == "hardware"
    assert device.getAttribute("timing") == "hardware"
    assert copy.copy(model).createDevice().getTarget() == device.getTarget()
    model.compute_set_start_cycles = 30
    assert model.createDevice().getTarget() == device.getTarget().evolve(compute_set_start_cycles=30)


def test_a_timing_is_seen_where_it_is_not_the_default():
    model = IPUModel("tiny", timing="hardware")
    assert repr(model) == "<IPUModel tiny with hardware timing: 1 x 16 tiles>"
    assert repr(model.createDevice()) == "<Device 0: IPU_MODEL tiny with hardware timing, 1 x 16 tiles>"
    assert IPUModel("tiny").createDevice().getAttribute("timing") == "model"


def test_an_unknown_timing_is_refused_with_the_nearest():
    for make in (lambda name: IPUModel("tiny", timing=name), lambda name: DeviceManager("pod16", timing=name)):
        with pytest.raises(
            InvalidOption, match=r"no timing is called 'modle': the timings are model, hardware; did you mean 'model'\?"
        ):
            make("modle")


def test_the_timing_of_a_model_that_is_made_is_not_changed():
    model = IPUModel("tiny")
    with pytest.raises(InvalidOption, match=r"given when an IPUModel is made: IPUModel\('tiny', timing='hardware'\)"):
        model.timing = "hardware"
    assert model.createDevice().getTarget() == Target.of_preset("tiny")


def test_a_managers_devices_have_its_timing():
    manager = DeviceManager("bow2000", timing="hardware")
    devices = [*manager.getDevices(TargetType.IPU), *manager.getDevices(TargetType.IPU_MODEL), manager.getDevice(0)]
    assert {device.getTarget().timing for device in devices} == {"hardware"}
    assert manager.acquireAvailableDevice(2, 8).getTarget().timing == "hardware"
    assert DeviceManager("bow2000").getDevice(0).getTarget().timing == "model"


def test_changes_after_create_device_do_not_reach_the_device():
    model = IPUModel()
    device = model.createDevice()
    model.tilesPerIPU = 4
    assert device.getTarget().getNumTiles() == 1472
    assert model.createDevice().getTarget().getNumTiles() == 4


def test_numpy_integers_are_integers():
    model = IPUModel()
    model.tilesPerIPU = np.int64(4)
    assert model.createDevice().getTarget() == Target.of_preset("bow", tiles_per_ipu=4)


def test_an_unknown_field_is_refused_with_the_nearest():
    model = IPUModel()
    with pytest.raises(InvalidOption, match=r"'tilesPerIpu'; did you mean 'tilesPerIPU'\?"):
        model.tilesPerIpu = 4
    with pytest.raises(InvalidOption, match="it has"):
        model.zzz = 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tilesPerIPU", 0),
        ("tilesPerIPU", -1),
        ("tilesPerIPU", 4.0),
        ("tilesPerIPU", "4"),
        ("tilesPerIPU", True),
        ("numIPUs", 0),
        ("tileClockFrequency", 0.0),
        ("tileClockFrequency", float("nan")),
        ("tileClockFrequency", float("inf")),
        ("tileClockFrequency", "fast"),
        ("compileIPUCode", 1),
        ("dataPathWidth", 48),
        ("minIPUSyncDelay", -1),
        ("syncs_without_exchange", 1),
        ("compute_set_start_cycles", 10**7),
        ("supervisor_instruction_cycles", 0),
        ("host_sync_seconds", float("inf")),
        ("relativeSyncDelay", "NO_DELAY"),
        ("globalExchangeConstraints", [1]),
        ("globalExchangeConstraints", 1),
    ],
)
def test_values_out_of_range_are_refused_and_change_nothing(name, value):
    model = IPUModel()
    with pytest.raises(InvalidOption, match=name):
        setattr(model, name, value)
    assert model.createDevice().getTarget() == Target.of_preset("bow")


def test_an_unknown_version_is_refused_with_the_nearest():
    with pytest.raises(InvalidOption, match=r"did you mean 'ipu2'\?"):
        IPUModel("ipu22")
    with pytest.raises(InvalidOption, match="the versions are"):
        IPUModel(7)


def test_models_copy_and_show_themselves():
    model = IPUModel("tiny")
    model.numIPUs = 2
    assert copy.copy(model).createDevice().getTarget() == model.createDevice().getTarget()
    assert repr(model) == "<IPUModel tiny: 2 x 16 tiles>"
    assert repr(model.createDevice()) == "<Device 0: IPU_MODEL tiny, 2 x 16 tiles>"


def test_half_is_half_whatever_accurate_half_says():
    assert IPUModel().createDevice(accurateHalf=False).getTarget() == IPUModel().createDevice(accurateHalf=True).getTarget()


def test_a_models_device_is_always_free():
    device = IPUModel("tiny").createDevice(deviceId=3)
    assert device.getId() == 3
    assert not device.isAttached()
    assert device.attach()
    assert device.attach()
    assert device.isAttached()
    device.detach()
    assert not device.isAttached()
    assert IPUModel("tiny").createDevice().attach()


def test_devices_say_what_they_are():
    device = IPUModel("tiny").createDevice()
    assert device.getAttribute("numIPUs") == "1"
    assert device.getAttributes()["tilesPerIPU"] == "16"
    with pytest.raises(UnknownHandle, match=r"did you mean 'numIPUs'\?"):
        device.getAttribute("numIpus")
    assert device.supportsRemoteBuffers()
    assert not Device.createCPUDevice().supportsRemoteBuffers()
    assert device.hasGateway()
    assert device.getDriverIDs() == [0]
    device.reset()


def test_cpu_simulator_and_virtual_devices():
    assert Device.createCPUDevice().getTarget() == Target.createCPUTarget()
    target = Target.createIPUTarget("bow")
    assert Device.createSimulatorDevice(target).getTarget() == target
    with pytest.raises(PoplarTypeError):
        Device.createSimulatorDevice("bow")
    device = IPUModel("bow2000").createDevice()
    assert device.createVirtualDevice(10).getTarget().getNumTiles() == 40


def test_a_manager_finds_devices_by_their_number_of_ipus():
    manager = DeviceManager.createDeviceManager()
    assert manager.getNumDevices() == 64 + 32 + 16 + 8 + 4 + 2 + 1
    assert len(manager.getDevices()) == manager.getNumDevices()
    assert len(manager.getDevices(TargetType.IPU, 1)) == 64
    assert [one.getTarget().getNumIPUs() for one in manager.getDevices(TargetType.IPU, 16)] == [16] * 4
    assert manager.getDevices(TargetType.IPU, 3) == []
    assert manager.getDevices(TargetType.IPU, 128) == []
    device = manager.getDevice(64)
    assert device.getDriverIDs() == [0, 1]
    assert device.getTarget().getTargetType() is TargetType.IPU
    (model,) = manager.getDevices(TargetType.IPU_MODEL, 3)
    assert model.getTarget().getNumIPUs() == 3
    (cpu,) = manager.getDevices(TargetType.CPU)
    assert cpu.getTarget().getTargetType() is TargetType.CPU


def test_a_manager_refuses_what_is_not_there():
    manager = DeviceManager("bow2000")
    with pytest.raises(UnknownHandle, match="devices 0 to 6"):
        manager.getDevice(7)
    with pytest.raises(PoplarTypeError):
        manager.getDevices("IPU", 1)
    with pytest.raises(InvalidOption, match="requiredNumIPUs"):
        manager.getDevices(TargetType.IPU, 0)


def test_attached_ipus_are_taken_until_they_are_given_back():
    manager = DeviceManager("bow2000")
    one = manager.getDevice(0)
    pair = manager.getDevice(4)
    assert pair.getDriverIDs() == [0, 1]
    assert one.attach()
    assert not pair.attach()
    assert not pair.isAttached()
    assert not manager.getDevice(0).attach()
    assert manager.getDevice(5).attach()
    one.detach()
    assert pair.attach()
    assert not one.attach()
    del pair
    assert one.attach()


def test_a_with_block_attaches_and_detaches():
    manager = DeviceManager("bow2000")
    with manager.getDevice(0) as device:
        assert device.isAttached()
        with pytest.raises(InvalidOption, match="cannot be attached"), manager.getDevice(0):
            pass
    assert not device.isAttached()


def test_acquire_gives_the_first_free_device():
    manager = DeviceManager("bow2000")
    first = manager.acquireAvailableDevice(2)
    second = manager.acquireAvailableDevice(2, 8)
    assert first.getDriverIDs() + second.getDriverIDs() == [0, 1, 2, 3]
    assert second.getTarget().getNumTiles() == 16
    with pytest.raises(InvalidOption, match="no device with 1 IPUs is free"):
        manager.acquireAvailableDevice(1)
    second.detach()
    assert manager.acquireAvailableDevice(1).getDriverIDs() == [2]
    with pytest.raises(InvalidOption, match=r"devices of \[1, 2, 4\]"):
        manager.acquireAvailableDevice(3)


def test_managers_have_machines_of_their_own():
    held = DeviceManager().getDevice(0)
    assert held.attach()
    assert DeviceManager().getDevice(0).attach()
