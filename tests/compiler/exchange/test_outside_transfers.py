"""What goes between IPUs and their host, or their machine's memory: over links of their own, and over what a machine shares."""

import numpy as np
import pytest
from engine_builder import Bench, tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import (
    FLOAT,
    INT,
    ApplicationRuntimeError,
    ControlProgramError,
    Device,
    Engine,
    Graph,
    InvalidOption,
    StreamMemoryAllocationError,
    Target,
    pva,
)
from pypoplar.compiler.exchange.outside_transfers import OutsideLinks, outside_transfer
from pypoplar.presets import PARAMETERS
from pypoplar.program import Copy, Repeat, Sequence
from pypoplar.report.insights.ranking import insights
from pypoplar.report.page.step_data import steps_table

TILES = 2


def device_of(ipus, **changes):
    return Device.createSimulatorDevice(tiny(TILES, "model", ipus).getTarget().evolve(**changes))


def links_of(ipus, replicas=1, *, to_device=True, remote=False, **changes):
    return OutsideLinks(device_of(ipus, **changes).getTarget(), replicas, to_device, remote)


def seconds(links, bytes):
    """What a transfer takes beside its sync."""
    target = links.target
    return outside_transfer(links, np.array([bytes])).cycles / target.getTileClockFrequency() - target.host_sync_seconds


def test_one_ipu_has_the_link_of_a_chip_and_those_of_a_machine_share_one():
    million = 1_000_000
    assert seconds(links_of(1), [million]) == pytest.approx(million / 32e9, rel=1e-4)
    assert seconds(links_of(2), [million, 0]) == pytest.approx(million / 12.5e9, rel=1e-4)
    assert seconds(links_of(4), [million] * 4) == pytest.approx(4 * million / 12.5e9, rel=1e-4)
    assert seconds(links_of(8), [million] * 8) == pytest.approx(4 * million / 12.5e9, rel=1e-4), "of two machines"
    assert seconds(links_of(1, 4), [million]) == pytest.approx(4 * million / 12.5e9, rel=1e-4), "as four replicas do"
    assert seconds(links_of(4, host_write_bytes_per_second=2e9), [million] * 4) == pytest.approx(million / 2e9, rel=1e-4)


def test_a_remote_buffer_takes_the_ipus_link_to_its_gateway_and_the_memory_of_its_machine():
    million = 1_000_000
    assert seconds(links_of(1, remote=True), [million]) == pytest.approx(million / 16e9, rel=1e-4)
    assert seconds(links_of(1, 2, remote=True), [million]) == pytest.approx(2 * million / 20e9, rel=1e-4)
    assert seconds(links_of(1, 16, remote=True), [million]) == pytest.approx(4 * million / 20e9, rel=1e-4), "of four machines"
    assert links_of(1, remote=True).limit(np.array([1])) == "the link between IPU 0 and its gateway"
    assert links_of(2, 2, remote=True).limit(np.array([1, 1])) == "the streaming memory of machine 0"
    assert links_of(2).limit(np.array([1, 1])) == "the host link of machine 0"
    assert links_of(2, host_write_bytes_per_second=2e9).limit(np.array([1, 2])) == "the link between IPU 1 and the host"
    assert links_of(8).limit(np.array([0] * 5 + [1] * 3)) == "the host link of machine 1"
    assert links_of(1).limit(np.array([1])) == "", "there is one link"


@examples(40)
@given(st.integers(1, 12), st.integers(1, 8), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1), st.data())
def test_a_transfer_takes_as_long_as_the_slowest_of_its_links_one_by_one(ipus, replicas, to_device, remote, seed, data):
    rates = {
        "host_write_bytes_per_second": 3e9,
        "host_read_bytes_per_second": 5e9,
        "machine_host_bytes_per_second": data.draw(st.sampled_from([1e9, 4e9, 100e9])),
        "gateway_bytes_per_second": 14e9,
        "streaming_memory_bytes_per_second": data.draw(st.sampled_from([2e9, 9e9, 100e9])),
    }
    links = links_of(ipus, replicas, to_device=to_device, remote=remote, **rates)
    bytes = np.random.default_rng(seed).integers(0, 1000, (3, ipus))
    of_ipu = 7e9 if remote else 3e9 if to_device else 5e9
    of_machine = rates["streaming_memory_bytes_per_second" if remote else "machine_host_bytes_per_second"]
    if ipus * replicas == 1 and not remote:
        of_machine = of_ipu

    def brute(row):
        machines = {}
        for number in range(ipus * replicas):
            machines[number // 4] = machines.get(number // 4, 0) + int(row[number % ipus])
        longest = max(max(row) / of_ipu, max(machines.values()) / of_machine)
        return round((longest + links.target.host_sync_seconds) * links.target.getTileClockFrequency()) if any(row) else 0

    expected = min(brute(bytes.sum(0)), sum(map(brute, bytes)))
    assert outside_transfer(links, bytes).cycles == expected


def bench_of(ipus, **changes):
    bench = Bench(device_of(ipus, **changes))
    bench.rows = [bench.graph.addRemoteBuffer(f"rows {ipu}", INT, 1000, 4) for ipu in range(ipus)]
    bench.on = [bench.variable(f"on {ipu}", np.zeros(1000, np.int64), ipu * TILES) for ipu in range(ipus)]
    return bench


def test_the_report_the_page_and_a_file_name_what_limits(mode, tmp_path):
    bench = bench_of(2, gateway_bytes_per_second=1e9)
    stream = bench.graph.addHostToDeviceFIFO("in", INT, 1000)
    engine = bench.engine(Sequence([Copy(bench.rows[1], bench.on[1]), Copy(stream, bench.on[0])]), mode)
    engine.connectStream("in", np.arange(1000, dtype=np.int32))
    engine.run()
    report = engine.getReport()
    limits = {step.name: step.host_limit for step in report.execution.steps}
    assert limits == {"rows 1": "the link between IPU 1 and its gateway", "in": "the host link of machine 0"}
    pva.save_report(report, tmp_path / "profile.pop")
    back = pva.openReport(tmp_path / "profile.pop")
    assert {step.name: step.host_limit for step in back.execution.steps} == limits
    table = steps_table(back.execution.steps, Rows())
    assert table["host_limit"] == [step.host_limit for step in back.execution.steps]
    (told,) = [one.text for one in insights(report) if one.rule == "host_bound"]
    assert "'rows 1', is limited by the link between IPU 1 and its gateway" in told
    by_ipu = {step.name: [one.host_exchange_cycles for one in step.ipus] for step in report.execution.steps}
    clock = report.compilation.target.clockFrequency
    assert by_ipu["rows 1"] == [0, round((4000 / 0.5e9 + 0.36e-6) * clock)]
    assert by_ipu["in"] == [round((4000 / 12.5e9 + 0.36e-6) * clock), 0]


class Rows:
    def add(self, values):
        return -1


def test_a_remote_buffer_is_of_one_ipu():
    bench = bench_of(2)
    wide = bench.graph.addVariable(INT, [2, 500], "wide")
    for ipu in range(2):
        bench.graph.setTileMapping(wide[ipu], ipu * TILES)
    with pytest.raises(ControlProgramError, match=r"'rows 0', made at .*, and a tensor on IPUs 0 and 1: a remote buffer is of one"):
        bench.engine(Copy(bench.rows[0], wide.flatten()))
    both = [Copy(bench.rows[0], bench.on[0]), Copy(bench.on[1], bench.rows[0])]
    with pytest.raises(ControlProgramError, match=r"a tensor on IPU 1: it is of IPU 0 by the Copy made at .*; make a rem"):
        bench.engine(Sequence(both))
    bench.engine(Repeat(2, Sequence([Copy(bench.rows[0], bench.on[0]), Copy(bench.on[1], bench.rows[1])])))


@pytest.mark.parametrize("cost", [False, True])
def test_remote_buffers_over_the_memory_of_their_machine_are_told(cost):
    bench = bench_of(2, streaming_memory_bytes=31_999)
    told = r"take 32,000 bytes of machine 0, whose streaming memory has 31,999; the largest are 'rows 0', 16,000 bytes, made at"
    with pytest.raises(StreamMemoryAllocationError, match=told):
        Engine(bench.graph, Copy(bench.rows[0], bench.on[0]), mode="cost" if cost else "native")
    bench_of(2, streaming_memory_bytes=32_000).engine(Sequence([]))


def test_replicas_have_a_remote_buffer_each():
    for memory, fits in ((63_999, False), (64_000, True)):
        graph = Graph(device_of(8, streaming_memory_bytes=memory).getTarget(), 8)
        buffer = graph.addRemoteBuffer("rows", FLOAT, 1000, 4)
        x = graph.addVariable(FLOAT, [1000], "x")
        graph.setTileMapping(x, 0)
        if fits:
            Engine(graph, Copy(x, buffer))
        else:
            with pytest.raises(StreamMemoryAllocationError, match=r"take 64,000 bytes of machine 0.* in each of 4 replicas"):
                Engine(graph, Copy(x, buffer))


RATES = [row.name for row in PARAMETERS if row.unit == "B/s"]


@pytest.mark.parametrize("name", RATES)
def test_a_link_that_carries_nothing_is_refused(name):
    for rate in (0, -1.0, float("inf"), float("nan"), "fast"):
        with pytest.raises(InvalidOption, match=f"{name} must be a number of B/s, at least 1, got"):
            Target.createIPUTarget(2, "bow").evolve(**{name: rate})


@pytest.mark.parametrize(
    ("opts", "told"),
    [
        ({"ipuLinkConfiguration": "BarleyTwist"}, "ipuLinkConfiguration is 'default' or 'slidingWindow', got 'BarleyTwist'"),
        ({"ipuLinkConfiguration": "slidingwindow"}, "got 'slidingwindow'; did you mean 'slidingWindow'"),
        ({"instanceSize": "8"}, "a process has 8 IPUs by instanceSize, got a target of 16"),
        ({"instanceSize": "0"}, "instanceSize is the number of IPUs of a process, at least 1, got '0'"),
        ({"instanceSize": "some"}, "instanceSize is the number of IPUs of a process, at least 1, got 'some'"),
    ],
)
def test_an_instance_or_addresses_that_cannot_be_are_told(opts, told):
    with pytest.raises(InvalidOption, match=told):
        Target.createIPUTarget(16, "bow", opts=opts)


def test_a_program_runs_only_where_ipus_address_each_other_as_it_was_compiled_for():
    opts = {"ipuLinkConfiguration": "slidingWindow", "instanceSize": "4"}
    target = Target.createIPUTarget(2, TILES, "bow", opts=opts)
    assert (target.getIpuLinkConfiguration(), target.getInstanceSize()) == ("slidingWindow", 4)
    assert Target.createIPUTarget(2, "bow").getInstanceSize() == 2
    graph = Graph(target)
    engine = Engine(graph, Sequence([]))
    engine.load(Device.createSimulatorDevice(target))
    with pytest.raises(ApplicationRuntimeError, match=r"has ipuLinkConfiguration 'default', but the program .* 'slidingW"):
        engine.load(Device.createSimulatorDevice(Target.createIPUTarget(2, TILES, "bow")))
