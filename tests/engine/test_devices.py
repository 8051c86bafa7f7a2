"""Which devices programs are loaded and run on: those of a manager have to be attached, and none runs after it was detached."""

import pytest

from pypoplar import (
    FLOAT,
    ApplicationRuntimeError,
    Device,
    DeviceManager,
    Engine,
    Graph,
    IPUModel,
    Target,
    TargetType,
    Tensor,
)
from pypoplar.program import Copy, Program

FREE = {
    "a model": lambda: IPUModel("tiny").createDevice(),
    "a model of a manager": lambda: DeviceManager("tiny").getDevices(TargetType.IPU_MODEL)[0],
    "a CPU": lambda: Device.createCPUDevice(),
    "a CPU of a manager": lambda: DeviceManager("tiny").getDevices(TargetType.CPU)[0],
    "a simulator": lambda: Device.createSimulatorDevice(Target.createIPUTarget(1, 16, "tiny")),
    "a virtual device of a model": lambda: IPUModel("tiny").createDevice().createVirtualDevice(4),
}
MANAGED = {
    "a device": lambda manager: manager.getDevice(0),
    "one of several devices": lambda manager: manager.getDevices(TargetType.IPU, 1)[0],
    "a virtual device": lambda manager: manager.getDevice(0).createVirtualDevice(4),
}


def program(device: Device) -> tuple[Graph, Program, Tensor]:
    graph = Graph(device)
    x, y = (graph.addVariable(FLOAT, [2], name) for name in ("x", "y"))
    graph.setInitialValue(x, [1.0, 2.0])
    for tensor in (x, y):
        graph.setTileMapping(tensor, 0)
    graph.createHostRead("y", y)
    return graph, Copy(x, y), y


def engine_for(device, mode="native"):
    graph, copy, _ = program(device)
    return Engine(graph, copy, mode=mode)


def assert_refused(work, what):
    text = rf"^{what}: <Device 0: .*tiles> is not attached; call device\.attach\(\) first$"
    with pytest.raises(ApplicationRuntimeError, match=text):
        work()


@pytest.mark.parametrize("make", FREE.values(), ids=FREE)
def test_other_devices_need_no_attach_but_are_refused_once_detached(make, mode):
    device = make()
    engine = engine_for(device, mode)
    engine.loadAndRun(device)
    assert engine.readTensor("y").tolist() == [1, 2]
    device.detach()
    assert_refused(lambda: engine.run(), "run")
    assert_refused(lambda: engine.load(device), "load")
    assert device.attach()
    engine.run()
    engine.loadAndRun(device)


@pytest.mark.parametrize("make", MANAGED.values(), ids=MANAGED)
def test_a_managers_device_is_refused_until_it_is_attached(make, mode):
    device = make(DeviceManager("tiny"))
    engine = engine_for(device, mode)
    for work, what in (
        (lambda: engine.load(device), "load"),
        (lambda: engine.loadAndRun(device), "load"),
        (lambda: engine.prepare(device), "prepare"),
    ):
        assert_refused(work, what)
    with pytest.raises(ApplicationRuntimeError, match="has not been loaded"):
        engine.run()
    with device:
        engine.load(device)
        engine.run()
        assert engine.readTensor("y").tolist() == [1, 2]
    assert_refused(lambda: engine.run(), "run")
    assert_refused(lambda: engine.load(), "load")


def test_a_device_that_another_holds_says_so():
    manager = DeviceManager("bow2000")
    holder, pair = manager.getDevice(0), manager.getDevice(4)
    engine = engine_for(pair)
    assert holder.attach()
    assert not pair.attach()
    with pytest.raises(
        ApplicationRuntimeError, match=r"attach\(\) gives False while another device holds one of its IPUs \[0, 1\]"
    ):
        engine.load(pair)
    holder.detach()
    assert pair.attach()
    engine.loadAndRun(pair)


def test_an_engine_runs_on_the_device_that_it_was_loaded_on_last():
    first, second = (DeviceManager("tiny").acquireAvailableDevice() for _ in range(2))
    engine = engine_for(first)
    engine.load(first)
    engine.load(second)
    first.detach()
    engine.run()
    second.detach()
    assert_refused(lambda: engine.run(), "run")
    assert first.attach()
    engine.prepare(first)
    engine.deploy()
    engine.run()


def test_a_device_that_is_refused_changes_nothing():
    attached = DeviceManager("tiny").acquireAvailableDevice()
    engine = engine_for(attached)
    engine.load(attached)
    assert_refused(lambda: engine.load(DeviceManager("tiny").getDevice(0)), "load")
    engine.run()
    assert engine.readTensor("y").tolist() == [1, 2]


def test_an_engine_that_was_never_given_a_device_needs_none():
    engine = engine_for(IPUModel("tiny").createDevice())
    engine.load()
    engine.run()


def test_virtual_devices_are_attached_and_detached_with_the_device_they_are_of():
    device = DeviceManager("tiny").acquireAvailableDevice()
    virtual = device.createVirtualDevice(4)
    assert virtual.isAttached()
    engine = engine_for(virtual)
    engine.load(virtual)
    device.detach()
    assert not virtual.isAttached()
    assert_refused(lambda: engine.run(), "run")


def test_ipus_are_given_back_with_the_last_device_that_has_them():
    manager = DeviceManager("tiny")
    device = manager.acquireAvailableDevice()
    virtual = device.createVirtualDevice(4)
    del device
    assert not manager.getDevice(0).attach()
    del virtual
    assert manager.getDevice(0).attach()
