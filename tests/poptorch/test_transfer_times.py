"""PopTorch's performance counters, by the simulated clock."""

import pytest
import torch
from torch import nn

from pypoplar import poptorch
from pypoplar.errors import PoplarRuntimeError

CLOCK = 1.85e9


class Product(nn.Module):
    def forward(self, x, y, z):
        return x @ y, z + 1


class Line(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(8, 8)

    def forward(self, x, wanted):
        y = self.line(x)
        return y, nn.functional.mse_loss(y, wanted)


def spans(counters, kind):
    """Of each tensor and batch, cycles at which a transfer begins and ends."""
    return [
        [(round(begin * CLOCK), round(end * CLOCK)) for begin, end in zip(begins, ends, strict=True)]
        for begins, ends in zip(counters[kind], counters[f"{kind}_complete"], strict=True)
    ]


def test_transfers_of_a_call_are_those_of_its_trace():
    model = poptorch.inferenceModel(Product(), poptorch.Options().deviceIterations(3))
    assert model.getPerfCounters() == {"input": [[]], "input_complete": [[]], "output": [[]], "output_complete": [[]]}
    assert model.getLatency() == (0, 0, 0)
    model(torch.randn(12, 4), torch.randn(12, 5), torch.randn(3))
    report = model.getReport()
    counters, trace = model.getPerfCounters(), report.execution.trace
    step_of = [report.compilation.step_programs[number].name for number in trace.step]
    moved = {
        kind: [
            (int(begin), int(begin + cycles))
            for name, begin, cycles in zip(step_of, trace.begin, trace.cycles, strict=True)
            if name.startswith(kind)
        ]
        for kind in ("x/forward", "output")
    }
    assert [len(times) for times in spans(counters, "input")] == [3, 3, 3]
    assert spans(counters, "input")[0] == moved["x/forward"]
    assert [len(times) for times in spans(counters, "output")] == [3, 3]
    assert spans(counters, "output")[0] == moved["output"]
    total = model.cycleCount() / CLOCK
    to_device, compute, to_host, whole = (
        model.getHostIpuLatency()[2], model.getComputeLatency()[2], model.getIpuHostLatency()[2], model.getLatency()[2]
    )  # fmt: skip
    assert to_device + compute + to_host == pytest.approx(whole)
    assert 3 * whole == pytest.approx(total, rel=0.01)


def test_more_arguments_than_a_step_names_have_their_times_each():
    class Sum(nn.Module):
        def forward(self, *given):
            return sum(given)

    model = poptorch.inferenceModel(Sum())
    model(*(torch.randn(2) for _ in range(40)))
    assert [len(times) for times in model.getPerfCounters()["input"]] == [1] * 40


@pytest.mark.parametrize(
    ("mode", "period", "results"),
    [("All", 1, 8), ("Final", 1, 1), ("Sum", 1, 1), ("EveryN", 2, 2)],
)
@pytest.mark.parametrize("replicas", [1, 2])
def test_each_batch_of_each_replica_has_its_times(mode, period, results, replicas):
    options = poptorch.Options().deviceIterations(4).replicationFactor(replicas)
    options.outputMode(getattr(poptorch.OutputMode, mode), period)
    options.Training.gradientAccumulation(2)
    module = Line()
    model = poptorch.trainingModel(module, options, torch.optim.SGD(module.parameters(), lr=0.1))
    for _ in range(2):
        model(torch.randn(16, 8), torch.randn(16, 8))
    counters = model.getPerfCounters()
    assert [len(times) for times in counters["input"]] == [8 * replicas] * 2
    assert [len(times) for times in counters["output"]] == [results * replicas] * 2
    for named in (model.getLatency, model.getHostIpuLatency, model.getComputeLatency, model.getIpuHostLatency):
        least, most, mean = named()
        assert 0 < least <= mean <= most
    assert max(map(max, counters["output_complete"])) - min(map(min, counters["input"])) <= model.cycleCount() / CLOCK


def test_stages_of_a_pipeline_have_the_times_of_their_own_transfers():
    class Staged(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x, y):
            with poptorch.Block("first", ipu_id=0):
                x = torch.relu(self.first(x))
            with poptorch.Block("second", ipu_id=1):
                return self.second(x) + y

    options = poptorch.Options().deviceIterations(6)
    options.setExecutionStrategy(poptorch.PipelinedExecution("first", "second"))
    model = poptorch.inferenceModel(Staged(), options)
    model(torch.randn(24, 8), torch.randn(24, 8))
    x, y = spans(model.getPerfCounters(), "input")
    (results,) = spans(model.getPerfCounters(), "output")
    assert len(x) == len(y) == len(results) == 6
    for batch in range(6):
        assert x[batch][1] <= y[batch][1] <= results[batch][0]
    assert x[1][0] < results[0][0], "the first stage takes the next batch while the second is at work"
    assert x == sorted(x)


def test_a_call_of_more_steps_than_are_recorded_is_told():
    class Add(nn.Module):
        def forward(self, x):
            return x + 1

    model = poptorch.inferenceModel(Add(), poptorch.Options().deviceIterations(30_000))
    model(torch.zeros(30_000))
    with pytest.raises(PoplarRuntimeError, match=r"the call took 90,000 steps, and the times of 65,536 are recorded"):
        model.getPerfCounters()
