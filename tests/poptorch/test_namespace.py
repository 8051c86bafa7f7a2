"""Names of PopTorch beside models: parsers of arguments, hooks, marks; and the versions of PyTorch that they go with."""

import importlib
import operator
import re
import tomllib
import warnings
from collections import OrderedDict
from pathlib import Path

import pytest
import torch

from pypoplar import poptorch, resources
from pypoplar.errors import InvalidOption, MissingFeature, PoplarTypeError


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 8)


class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second


class PairParser(poptorch.ICustomArgParser):
    def yieldTensors(self, struct):
        yield struct.first
        yield struct.second

    def reconstruct(self, original_structure, tensor_iterator):
        return type(original_structure)(next(tensor_iterator), next(tensor_iterator))


class Swap(torch.nn.Module):
    def forward(self, pair):
        return Pair(pair.second.relu(), pair.first)


def test_models_take_and_return_objects_of_a_class_that_is_registered():
    pair = Pair(torch.ones(2), torch.tensor([-1.0, 2.0, 3.0]))
    poptorch.registerCustomArgParser(Pair, PairParser())
    try:
        result = poptorch.inferenceModel(Swap())(pair)
        poptorch.registerCustomArgParser(Pair, PairParser())
    finally:
        poptorch.registerCustomArgParser(Pair, None)
    assert isinstance(result, Pair)
    assert torch.equal(result.first, torch.tensor([0.0, 2.0, 3.0]))
    assert torch.equal(result.second, pair.first)
    with pytest.raises(PoplarTypeError, match="ICustomArgParser"):
        poptorch.registerCustomArgParser(Pair, print)
    with pytest.raises(ValueError, match="already registered"):  # by PyTorch itself, which would lose it with the parser
        poptorch.registerCustomArgParser(OrderedDict, PairParser())


class Named:
    def __init__(self, **tensors):
        vars(self).update(tensors)


class NamedParser(poptorch.ICustomArgParser):
    def yieldTensors(self, struct):
        return [vars(struct)[name] for name in sorted(vars(struct))]

    def reconstruct(self, original_structure, tensor_iterator):
        return Named(**{name: next(tensor_iterator) for name in sorted(vars(original_structure))})


class AddsResult(torch.nn.Module):
    def forward(self, given):
        given.result = given.tensor + given.tensor
        return given


def test_a_forward_pass_may_give_attributes_to_an_object_that_it_is_given():
    poptorch.registerCustomArgParser(Named, NamedParser())
    try:
        model = poptorch.inferenceModel(AddsResult())
        for number in range(3):
            given = Named(tensor=torch.full((2,), float(number)))
            returned = model(given)
            assert torch.equal(returned.tensor, torch.full((2,), float(number)))
            assert torch.equal(returned.result, torch.full((2,), 2.0 * number))
            assert sorted(vars(given)) == ["tensor"]
    finally:
        poptorch.registerCustomArgParser(Named, None)


def test_hooks_are_called_around_compilation_until_they_are_removed():
    called = []
    handles = [
        poptorch.registerPreCompileHook(lambda: called.append("before")),
        poptorch.registerPostCompileHook(lambda: called.append("after")),
    ]
    model = poptorch.inferenceModel(torch.nn.ReLU())
    model(torch.ones(2))
    model(torch.ones(2))
    assert called == ["before", "after"]
    for handle in handles:
        handle.remove()
    poptorch.inferenceModel(torch.nn.ReLU()).compile(torch.ones(2))
    assert called == ["before", "after"]
    with pytest.raises(PoplarTypeError, match="without arguments"):
        poptorch.registerPreCompileHook(3)
    with pytest.raises(RuntimeError, match="must be callable"):  # as PopTorch's
        poptorch.registerPostCompileHook(False)


def test_marks_of_a_time_line_change_nothing():
    channel = poptorch.profiling.Channel("mine")
    with channel.tracepoint("part"):
        assert channel.instrument(torch.nn.ReLU(), "forward")(torch.ones(1)) == 1
    with pytest.raises(PoplarTypeError, match="no method 'backwards'"):
        channel.instrument(torch.nn.ReLU(), "backwards")


def test_convolutions_that_may_run_together_are_told_to_follow_each_other(caplog):
    settings = poptorch.MultiConv().availableMemoryProportions([0.2, 0.3]).partialsTypes(torch.half).perConvReservedTiles(4)
    settings.planType(poptorch.MultiConvPlanType.Parallel).cycleBackOff(0.2).enableConvDithering(True)

    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Conv1d(2, 3, 2), torch.nn.Conv1d(2, 3, 2)

        def forward(self, x):
            with settings:
                return self.first(x) + self.second(x)

    model, x = Two(), torch.randn(1, 2, 5)
    for _ in range(2):
        torch.testing.assert_close(poptorch.inferenceModel(model)(x), model(x).detach())
    assert caplog.text.count("MultiConv changes nothing") == 1
    with pytest.raises(InvalidOption, match="less than 1"):
        poptorch.MultiConv().availableMemoryProportions(1.5)
    with pytest.raises(PoplarTypeError, match="planType takes MultiConvPlanType"):
        poptorch.MultiConv().planType(1)


class Nothing(torch.nn.Module):
    def __init__(self, nested):
        super().__init__()
        self.conv, self.nested = torch.nn.Conv1d(1, 1, 1), nested

    def forward(self, x):
        with poptorch.MultiConv():
            if not self.nested:
                return x * x
            with poptorch.MultiConv():
                return self.conv(x)


@pytest.mark.parametrize(
    ("nested", "told"),
    [(True, "Nested poptorch.MultiConv is not supported"), (False, "Unexpected end_multi_conv: there is no conv")],
)
def test_convolutions_that_may_run_together_are_some_and_not_within_others(nested, told):
    model, x = Nothing(nested), torch.ones(1, 1, 3)
    for _ in range(2):  # the first is over when it has failed
        with pytest.raises(poptorch.Error, match=told):
            poptorch.inferenceModel(model)(x)
        with pytest.raises(poptorch.Error, match=told):
            model(x)


def test_an_error_within_a_multi_conv_is_told_itself():
    with pytest.raises(KeyError, match="mine"), poptorch.MultiConv():
        raise KeyError("mine")


def test_faults_of_hardware_are_errors_of_poptorch():
    assert issubclass(poptorch.RecoverableError, poptorch.Error)
    assert issubclass(poptorch.UnrecoverableError, poptorch.Error)


def test_names_of_what_is_within_poptorch_say_what_there_is_instead(capsys):
    for name in ("accessAttributes", "getIpuTensorId", "importPoptorchMetadataFromFile", "registerGeometricCustomArgParsers"):
        with pytest.raises(MissingFeature, match=rf"poptorch\.{name} .*missing; "):
            getattr(poptorch, name)("x")
    assert isinstance(poptorch.createPoptorchError("no"), poptorch.Error)
    layers = torch.nn.Sequential(poptorch.BeginBlock(torch.nn.Linear(2, 3), "first"), torch.nn.ReLU())
    poptorch.print(layers)
    text = capsys.readouterr().out
    assert "Linear(in_features=2, out_features=3, bias=True)" in text
    assert "(0): BeginBlock(user_id=first, ipu_id=None) Linear(" in text
    assert text.endswith(": ReLU()\n)\n")


ROOT = Path(__file__).parents[2]


@pytest.fixture
def imported_with(monkeypatch):
    """Imports poptorch anew where PyTorch says that it is of a version."""

    def imported(version):
        monkeypatch.setattr(torch, "__version__", version)
        return importlib.reload(poptorch)

    return imported


@pytest.mark.parametrize("version", ["2.13.0", "2.13.7+cpu", "2.13.0a0+git12345"])
def test_a_pytorch_that_was_tried_is_taken_without_a_word(imported_with, version):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        imported_with(version)
    assert said == []


@pytest.mark.parametrize("version", ["2.14.0", "2.14.1+cu130", "3.0.0.dev20270101"])
def test_a_newer_pytorch_is_taken_with_a_warning_at_the_users_line(imported_with, version):
    text = f"the newest PyTorch that pypoplar.poptorch was tried with is 2.13, this is {version}: "
    with pytest.warns(RuntimeWarning, match=re.escape(text)) as said:
        assert imported_with(version).inferenceModel(torch.nn.ReLU())(-torch.ones(2)).tolist() == [0, 0]
    assert "pip install -e '.[pytorch]'" in str(said[0].message)
    assert "poptorch/__init__" not in said[0].filename


@pytest.mark.parametrize("version", ["2.12.1", "1.13.0"])
def test_an_older_pytorch_is_refused(imported_with, version):
    with pytest.raises(ImportError, match=re.escape(f"needs PyTorch 2.13 or newer, this is {version}")):
        imported_with(version)


def test_the_extra_takes_the_versions_that_were_tried():
    first, second = map(int, poptorch.NEWEST_TORCH.split("."))
    bounds = f"torch>={poptorch.OLDEST_TORCH},<{first}.{second + 1}"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["optional-dependencies"]["pytorch"] == [bounds]
    (tried,) = re.findall(r"^torch=\$\{TORCH:-torch==(\d+\.\d+)", (ROOT / ".ci" / "steps.sh").read_text(encoding="utf-8"), re.M)
    assert tried == poptorch.NEWEST_TORCH
    assert f"It needs PyTorch, which is an extra; {poptorch.NEWEST_TORCH} is" in (ROOT / "docs" / "pytorch.md").read_text(
        encoding="utf-8"
    )


def test_the_documents_table_of_names_is_true():
    page = resources.directory("docs").joinpath("pytorch.md").read_text(encoding="utf-8")
    section = page.partition("## PopTorch's names")[2].partition("## How it differs")[0]
    rows = [line.split("|") for line in section.splitlines() if "|" in line][2:]
    named = [name for row in rows for name in re.findall("`([^`]+)`", row[2])]
    assert len(named) > 70
    for name in named:
        operator.attrgetter(name)(poptorch)
    own = {"CaptureError", "UnsupportedOperation", "registerCustomOp", "enums", "options"}  # pypoplar's own, and modules
    assert set(poptorch.__all__) - {name.partition(".")[0] for name in named} == own
