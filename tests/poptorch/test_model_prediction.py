"""What a PyTorch model would cost, without running it, is what a run of it costs; tensors without elements do."""

import pytest
import torch
from priced_programs import profile
from torch import nn

from pypoplar import poptorch
from pypoplar.poptorch import CaptureError

REPORTED = {"pypoplar.run_out_of_memory": True}


class Losing(nn.Module):
    def __init__(self, network, loss):
        super().__init__()
        self.network, self.loss = network, loss

    def forward(self, x, labels):
        y = self.network(x)
        return y, self.loss(y, labels)


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)

    def forward(self, x):
        return self.layer(x).mean(1)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.last = nn.LSTM(8, 12, batch_first=True), nn.Linear(12, 5)

    def forward(self, x):
        return self.last(self.lstm(x)[0][:, -1])


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.scale = nn.Linear(8, 5), torch.full([5], 2.0)

    def forward(self, x):
        return self.linear(x) * (self.scale + 1)


MODELS = {
    "linear": (lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5)), (4, 8)),
    "convolution": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5)),
        (4, 3, 8, 8),
    ),
    "attention": (lambda: nn.Sequential(Attending(), nn.Linear(16, 5)), (4, 6, 16)),
    "lstm": (Recurrent, (4, 6, 8)),
    "layers": (lambda: nn.Sequential(*(nn.Linear(8, 8) for _ in range(4)), nn.Linear(8, 5)), (4, 8)),
}
OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.1),
}


def options(outlining=True, iterations=1, accumulated=1, flops=False):
    made = poptorch.Options()
    made._Popart.set("engineOptions", {**REPORTED, "profiler.includeFlopEstimates": flops})
    made._Popart.set("enableOutlining", outlining)
    made.deviceIterations(iterations)
    made.Training.gradientAccumulation(accumulated)
    return made


def trained(name, optimizer="SGD", device="cpu", **named):
    network, shape = MODELS[name]
    torch.manual_seed(0)
    with torch.device(device):
        module, x = Losing(network(), nn.MSELoss()), torch.zeros(shape)
        labels = torch.zeros(4, 5)
    model = poptorch.trainingModel(module, options(**named), OPTIMIZERS[optimizer](module.parameters()))
    return model, (x, labels)


@pytest.mark.parametrize(
    ("name", "optimizer", "outlining"),
    [
        *(("linear", "SGD", True), ("linear", "Adam", False), ("convolution", "SGD", True)),
        *(("attention", "Adam", True), ("lstm", "SGD", True), ("layers", "SGD", True), ("layers", "SGD", False)),
    ],
)
def test_a_prediction_has_the_report_of_a_run(name, optimizer, outlining, tmp_path):
    model, inputs = trained(name, optimizer, outlining=outlining)
    results = []
    for call in (model.predict, model):
        assert not model.isCompiled()
        results.append(call(*inputs))
    predicted, run = results[0].report, model.getReport()
    assert profile(predicted, tmp_path / "predicted.pop") == profile(run, tmp_path / "run.pop")


@pytest.mark.parametrize("name", ["linear", "convolution", "attention"])
def test_tensors_without_elements_give_the_report_of_real_ones(name, tmp_path):
    reports = []
    for device in ("cpu", "meta"):
        model, inputs = trained(name, "Adam", device)
        reports.append(profile(model.predict(*inputs).report, tmp_path / f"{device}.pop"))
        assert {one.device.type for one in model.parameters()} == {device}
    assert reports[0] == reports[1]


def test_the_default_device_changes_nothing(tmp_path):
    model, inputs = trained("linear")
    reports = []
    for device in ("cpu", "meta"):
        with torch.device(device):
            reports.append(profile(model.predict(*inputs).report, tmp_path / f"{device}.pop"))
    assert reports[0] == reports[1]


def test_a_constant_without_elements_is_refused_by_its_name():
    with torch.device("meta"):
        module, x = Scaled(), torch.zeros(4, 8)
    with pytest.raises(CaptureError, match=r'scale is a tensor on "meta".*test_model_prediction.py:'):
        poptorch.inferenceModel(module, options()).predict(x)
    assert module.linear.weight.device.type == "meta"


class Asking(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.full([5], 2.0))

    def forward(self, x):
        return x * 2 if self.scale[0] > 1 else x


class Listing(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = [torch.full([8], 2.0)]

    def forward(self, x):
        return x * self.scales[0]


@pytest.mark.parametrize(("made", "message"), [(Asking, "if, while or bool asks for the value"), (Listing, "cpu and meta")])
def test_what_needs_values_is_refused_with_the_users_line(made, message):
    with torch.device("meta"):
        module, x = made(), torch.zeros(4, 8)
    with pytest.raises(CaptureError, match=rf"{message}.*test_model_prediction.py:\d+"):
        poptorch.inferenceModel(module, options()).predict(x)


def test_items_are_those_of_all_batches():
    model, (x, labels) = trained("linear", iterations=2, accumulated=3)
    assert model.predict(x.repeat(6, 1), labels.repeat(6, 1)).items == 24


def test_the_module_and_random_numbers_stay_as_they_are():
    model, inputs = trained("convolution", "Adam", "meta")
    modes = [one.training for one in model.model.modules()]
    tensors, state = [id(one) for one in model.model.state_dict(keep_vars=True).values()], torch.get_rng_state()
    model.predict(*inputs)
    assert [one.training for one in model.model.modules()] == modes
    assert [id(one) for one in model.model.state_dict(keep_vars=True).values()] == tensors
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", ["linear", "convolution"])
def test_operations_are_those_of_a_run(name):
    model, inputs = trained(name, flops=True)
    predicted = model.predict(*inputs)
    model(*inputs)
    counts = [[(step.name, step.flops) for step in report.execution.steps] for report in (predicted.report, model.getReport())]
    assert counts[0] == counts[1]
    assert predicted.share_of_peak > 0
    assert "counted on ones, as data decide their branches" in predicted.validity


def test_calls_and_predictions_do_not_touch_each_other():
    results = []
    for predicts in (False, True):
        model, inputs = trained("convolution")
        steps = []
        for _ in range(3):
            if predicts:
                before = {name: value.clone() for name, value in model.state_dict().items()}
                model.predict(*inputs)
                assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
            steps.append(model(*inputs)[1].item())
        results.append(steps)
    assert results[0] == results[1]


def test_a_destroyed_model_predicts_as_before():
    model, inputs = trained("linear")
    before = model.predict(*inputs)
    model.destroy()
    assert model.predict(*inputs).step_seconds == before.step_seconds
