"""A profile of a PyTorch model names the model's file and line, of gradients too."""

from pathlib import Path

import pytest
import torch
from torch import nn

from pypoplar import poptorch, pva

LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x, labels):
        out = self.first(x)  # first
        return out, self.loss(out, labels)  # loss


def line(mark):
    (number,) = [number for number, text in enumerate(LINES, 1) if text.endswith(f"# {mark}")]
    return f"{__file__}:{number}"


@pytest.fixture(scope="module")
def report():
    torch.manual_seed(0)
    model = Net()
    training = poptorch.trainingModel(model, optimizer=poptorch.optim.SGD(model.parameters(), lr=0.1))
    training(torch.rand(4, 8), torch.tensor([0, 1, 2, 3]))
    return training.getReport()


def test_steps_and_compute_sets_of_a_profile_have_the_line_of_the_model(report, tmp_path):
    pva.save_report(report, tmp_path / "profile.pop")
    steps = {step.name: step.program for step in pva.openReport(tmp_path / "profile.pop").execution.steps}
    of_first = [program for name, program in steps.items() if name.startswith("first/")]
    assert {program.made_at for program in of_first} == {line("first")}
    assert {program.computeset.made_at for program in of_first if program.computeset} == {line("first")}
    assert any("/backward/" in program.name for program in of_first)
    assert {program.made_at for name, program in steps.items() if name.startswith("loss/")} == {line("loss")}


def test_variables_of_a_profile_have_the_line_of_the_model(report):
    made_at = {variable.made_at for variable in report.compilation.loweredVariables}
    assert {line("first"), line("loss")} <= made_at
