"""What a model on the simulated IPU can be asked beside calls: files, anchors, cycles, devices, synthetic data."""

import copy
from datetime import timedelta

import numpy as np
import pytest
import torch
import torch.utils._pytree as pytree
from torch import nn

from pypoplar import poptorch
from pypoplar.errors import (
    FileLoadError,
    InvalidOption,
    PoplarAttributeError,
    PoplarRuntimeError,
    PoplarTypeError,
    TensorShapeError,
    UnknownHandle,
)


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    """A small machine, which is compiled for quickly."""
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 8)


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(6, 4), nn.ReLU())
        self.outer = nn.Linear(4, 3)

    def forward(self, x, labels=None):
        y = self.outer(self.inner(x))
        return y if labels is None else (y, nn.functional.cross_entropy(y, labels))


def samples(count=4):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(count, 6, generator=generator), torch.arange(count) % 3


def test_anchors_are_gradients_and_activations():
    model = Regression()
    other = copy.deepcopy(model)
    options = poptorch.Options().anchorTensor("g", "Gradient___outer.weight").anchorTensor("h", "inner/1/relu:0")
    training = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.1))
    x, labels = samples()
    training(x, labels)
    other(x, labels)[1].backward()
    np.testing.assert_allclose(training.getAnchoredTensor("g").numpy(), other.outer.weight.grad.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(training.getAnchoredTensor("h").numpy(), other.inner(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert {"outer.weight", "Gradient___inner.0.bias", "outer/linear:0"} <= set(training.getTensorNames())
    with pytest.raises(UnknownHandle, match=r"did you mean|there are"):
        training.getAnchoredTensor("G2")


def test_an_anchor_that_is_no_tensor_is_told():
    with pytest.raises(UnknownHandle, match=r"no tensor 'outer.weigth'; did you mean 'outer.weight'"):
        poptorch.inferenceModel(Regression(), poptorch.Options().anchorTensor("w", "outer.weigth"))(samples()[0])


def test_cycles_and_lines_are_those_of_the_last_call():
    inference = poptorch.inferenceModel(Regression())
    with pytest.raises(PoplarRuntimeError, match="run the model at least once"):
        inference.cycleCount()
    inference(samples()[0])
    once = inference.cycleCount()
    inference(samples()[0])
    assert inference.cycleCount() == once > 0
    names = {step.name.split("/")[0] for step in inference.getReport().execution.steps}
    assert {"inner", "outer"} <= names
    assert inference.compilationTime() > timedelta(0)


def test_a_saved_model_goes_on_where_it_was(tmp_path):
    model = Regression()
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    x, labels = samples()
    training(x, labels)
    training.save(tmp_path / "deep" / "model.poptorch")
    again = poptorch.load(tmp_path / "deep" / "model.poptorch", run_code_of_file=True)
    first, second = training(x, labels), again(x, labels)
    assert torch.equal(first[0], second[0])
    assert torch.equal(first[1], second[1])
    with pytest.raises(FileLoadError, match="no file"):
        poptorch.load(tmp_path / "none")


def test_an_executable_of_another_model_is_refused(tmp_path):
    class Scaled(nn.Module):
        def __init__(self, factors):
            super().__init__()
            self.factors = torch.tensor(factors)

        def forward(self, x):
            return x * self.factors

    options = poptorch.Options().enableExecutableCaching(tmp_path / "cache")
    first = poptorch.inferenceModel(Scaled([1.0, 2.0]), options)
    first.compileAndExport(tmp_path / "first", torch.ones(2), export_model=False)
    second = poptorch.inferenceModel(Scaled([3.0, 2.0]), options)
    with pytest.raises(FileLoadError, match="another model"):
        second.loadExecutable(tmp_path / "first")
    assert second(torch.ones(2)).tolist() == [3.0, 2.0]
    again = poptorch.inferenceModel(Scaled([1.0, 2.0]), poptorch.Options())
    again.loadExecutable(tmp_path / "first")
    assert again(torch.ones(2)).tolist() == [1.0, 2.0]


def test_executables_are_kept_for_the_same_model_alone(tmp_path):
    options = poptorch.Options().enableExecutableCaching(tmp_path)
    model, x = Regression(), samples()[0]
    wanted = poptorch.inferenceModel(model, options)(x)
    assert len(list(tmp_path.iterdir())) == 1
    assert torch.equal(poptorch.inferenceModel(model, options)(x), wanted)
    assert len(list(tmp_path.iterdir())) == 1
    poptorch.inferenceModel(model, options)(x[:2])
    assert len(list(tmp_path.iterdir())) == 2


def test_a_detached_model_attaches_with_the_next_call():
    inference = poptorch.inferenceModel(Regression())
    x = samples()[0]
    inference.compile(x)
    assert inference.isAttachedToDevice()
    inference.detachFromDevice()
    assert not inference.isAttachedToDevice()
    with pytest.raises(PoplarRuntimeError, match="not attached"):
        inference.detachFromDevice()
    inference(x)
    assert inference.isAttachedToDevice()


def test_a_destroyed_model_is_compiled_anew_by_its_next_call():
    inference = poptorch.inferenceModel(Regression())
    x = samples()[0]
    wanted = inference(x)
    with pytest.raises(poptorch.Error):
        inference(x[:2])
    inference.destroy()
    assert not inference.isCompiled()
    with pytest.raises(PoplarRuntimeError, match="destroyed"):
        inference.getReport()
    assert torch.equal(inference(x[:2]), wanted[:2])
    inference.destroy()
    inference.destroy()
    assert torch.equal(inference(x), wanted)


def test_a_destroyed_model_trains_on_as_one_that_stays():
    results = []
    for destroys in (False, True):
        torch.manual_seed(3)
        model = Regression()
        training = poptorch.trainingModel(model, None, torch.optim.Adam(model.parameters(), lr=0.1))
        for _ in range(3):
            loss = training(*samples())
            if destroys:
                training.destroy()
        results.append([loss, *(one.detach().clone() for one in model.parameters())])
    for one, other in zip(*(pytree.tree_leaves(result) for result in results), strict=True):
        assert torch.equal(one, other)


def test_weights_that_change_on_the_host_are_those_of_the_next_call():
    model = Regression()
    inference = poptorch.inferenceModel(model)
    x = samples()[0]
    inference(x)
    inference.load_state_dict({name: torch.zeros_like(value) for name, value in inference.state_dict().items()})
    assert torch.equal(inference(x), torch.zeros(4, 3))


class Scaled(torch.nn.Module):
    """A product with a weight."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.zeros(2))

    def forward(self, x):
        return x * self.scale


@pytest.mark.parametrize("type", [torch.float32, torch.float16])
def test_a_weight_that_becomes_a_zero_of_the_other_sign_is_that_of_the_next_call(type):
    model = Scaled().to(type)
    inference = poptorch.inferenceModel(model)
    x = torch.ones(2, dtype=type)
    for weights in ([0.0, 0.0], [-0.0, 0.0], [-0.0, -0.0]):
        model.scale.data = torch.tensor(weights, dtype=type)
        assert torch.equal(torch.signbit(inference(x)), torch.signbit(model.scale))


def test_synthetic_data_needs_no_host():
    inference = poptorch.inferenceModel(Regression(), poptorch.Options().enableSyntheticData(True))
    assert inference(samples()[0]).shape == (4, 3)
    assert not [step for step in inference.getReport().execution.steps if step.host_exchange_cycles]


def test_other_shapes_and_uneven_batches_are_refused():
    inference = poptorch.inferenceModel(Regression(), poptorch.Options().deviceIterations(2))
    with pytest.raises(TensorShapeError, match="multiple of 2"):
        inference(samples(3)[0])
    inference(samples(4)[0])
    with pytest.raises(TensorShapeError, match="compiled for"):
        inference(samples(6)[0])


def test_options_that_a_model_was_made_with_cannot_change_and_a_clone_of_them_can():
    options = poptorch.Options()
    for made in (poptorch.inferenceModel, poptorch.trainingModel):
        made(Regression(), options)
        with pytest.raises(PoplarAttributeError):
            options.deviceIterations(2)
        with pytest.raises(PoplarAttributeError):
            options.Training.gradientAccumulation(2)
    assert options.clone().deviceIterations(2).device_iterations == 2


def test_a_model_for_no_device_compiles_alone():
    inference = poptorch.inferenceModel(Regression(), poptorch.Options().connectionType(poptorch.ConnectionType.Never))
    inference.compile(samples()[0])
    with pytest.raises(PoplarRuntimeError, match="Trying to run a model on an offline device"):
        inference(samples()[0])


def test_mistakes_in_what_a_model_is_made_of_are_told():
    with pytest.raises(PoplarTypeError, match="options"):
        poptorch.inferenceModel(Regression(), {})
    with pytest.raises(PoplarTypeError, match=r"torch\.nn\.Module"):
        poptorch.inferenceModel(print)
    with pytest.raises(PoplarTypeError, match="optimizer"):
        poptorch.trainingModel(Regression(), optimizer=0.1)
    options = poptorch.Options()
    options.Training.gradientAccumulation(2)
    with pytest.raises(InvalidOption, match="gradientAccumulation"):
        poptorch.inferenceModel(Regression(), options)
    with pytest.raises(InvalidOption, match="no optimizer"):
        poptorch.inferenceModel(Regression()).setOptimizer(torch.optim.SGD([torch.ones(1)], lr=1.0))


@pytest.mark.parametrize("act", ["call", "copyWeightsToHost", "copyWeightsToDevice"])
def test_a_buffer_that_was_removed_is_told(act):
    class Shifted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("shift", torch.ones(3))

        def forward(self, x):
            return x + self.shift

    module, x = Shifted(), torch.ones(3)
    model = poptorch.inferenceModel(module)
    model(x)
    del module.shift
    with pytest.raises(PoplarRuntimeError, match="the module has lost shift since the model was compiled"):
        model(x) if act == "call" else getattr(model, act)()


def test_constants_are_returned_as_often_as_the_module_does():
    class Constants(torch.nn.Module):
        def forward(self):
            one = torch.arange(3)
            return one, {"again": one, "other": torch.ones(2)}, torch.ones(2), 1

    for _ in range(2):
        first, named, last, number = poptorch.inferenceModel(Constants())()
        assert first.tolist() == named["again"].tolist() == [0, 1, 2]
        assert named["other"].tolist() == last.tolist() == [1, 1]
        assert number == 1
