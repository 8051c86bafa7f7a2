"""Calls of a compiled model: arguments however they are given, and a module that has changed since."""

import copy
import logging
import pickle
from collections import OrderedDict

import numpy as np
import pytest
import torch
from torch import nn

from pypoplar import poptorch
from pypoplar.errors import InvalidOption, PoplarRuntimeError, PoplarTypeError, TensorShapeError


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    """A small machine, which is compiled for quickly."""
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 4)


class Difference(nn.Module):
    def forward(self, a, b, c=None, *, scale=1):
        of = a["more"] - 2 * a["less"] if isinstance(a, dict) else a - 2 * b
        return (of if c is None else of - 3 * c) * scale


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm, self.outer = nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2)

    def forward(self, x):
        y = self.outer(self.norm(self.inner(x)))
        return y, nn.functional.mse_loss(y, torch.ones(5, 2))


def vectors():
    return torch.ones(3), torch.full((3,), 5.0), torch.full((3,), 7.0)


def test_arguments_by_name_may_come_in_any_order():
    a, b, c = vectors()
    inference = poptorch.inferenceModel(Difference())
    wanted = (a - 2 * b - 3 * c).tolist()
    for got in (
        inference(a, b, c),
        inference(a, c=c, b=b),
        inference(c=c, b=b, a=a),
    ):
        assert got.tolist() == wanted


class Entries(OrderedDict):
    """Dictionaries of a program's own, which PyTorch does not know."""

    def total(self):
        return sum(self.values())


class Batch(dict):
    """The same, with attributes."""

    def __init__(self, source, **entries):
        super().__init__(**entries)
        self.source = source


class Totals(nn.Module):
    def forward(self, given, batch=None):
        assert type(given) is Entries
        results = Entries(total=given.total(), twice=2 * given["a"])
        return results if batch is None else Batch("here", inner=results, more=batch["c"] + 1)


def test_dictionaries_of_a_programs_own_classes_are_arguments_and_results():
    a, b, c = vectors()
    inference = poptorch.inferenceModel(Totals())
    for given in (Entries(a=a, b=b), Entries(b=b, a=a)):
        got = inference(given)
        assert type(got) is Entries
        assert list(got) == ["total", "twice"]
        assert got.total().tolist() == (3 * a + b).tolist()
    got = poptorch.inferenceModel(Totals())(Entries(a=a, b=b), Batch("there", c=c))
    assert (type(got), type(got["inner"]), list(got)) == (Batch, Entries, ["inner", "more"])
    assert got["more"].tolist() == (c + 1).tolist()


def test_an_attribute_beside_the_entries_of_a_dictionary_is_missed_where_it_is_used():
    class Named(nn.Module):
        def forward(self, batch):
            return batch["c"] * len(batch.source)

    with pytest.raises(AttributeError, match="source"):
        poptorch.inferenceModel(Named())(Batch("there", c=torch.ones(3)))


def test_entries_of_a_dict_may_come_in_any_order():
    a, b, _ = vectors()
    inference = poptorch.inferenceModel(Difference())
    wanted = (a - 2 * b).tolist()
    assert inference({"more": a, "less": b}, None).tolist() == wanted
    assert inference({"less": b, "more": a}, None).tolist() == wanted


def test_other_arguments_are_told_by_name():
    a, b, c = vectors()
    inference = poptorch.inferenceModel(Difference())
    inference(a, b, scale=2)
    with pytest.raises(TensorShapeError, match=r"Shape mismatch for b: expected torch.Size\(\[3\]\) but got torch.Size\(\[4\]\)\."):
        inference(a, torch.ones(4), scale=2)
    with pytest.raises(TensorShapeError, match=r"Data type mismatch for b: expected torch.float32 but got torch.float16\. Make"):
        inference(a, b.half(), scale=2)
    with pytest.raises(TensorShapeError, match=r"Value mismatch for scale: expected 2 but got 3\."):
        inference(a, b, scale=3)
    with pytest.raises(TensorShapeError, match=r"Type mismatch for scale: expected int 2 but got torch.Tensor of .*3"):
        inference(a, b, scale=c)
    with pytest.raises(PoplarTypeError, match="array of NumPy"):
        inference(a, b.numpy(), scale=2)
    with pytest.raises(PoplarTypeError, match="dense tensors"):
        inference(a, b.to_sparse(), scale=2)


class Quotient(nn.Module):
    def forward(self, given):
        return given["x"] / given["y"]


def test_entries_of_dicts_that_are_missing_and_that_are_not_expected_are_told():
    one = torch.ones(1)
    inference = poptorch.inferenceModel(Quotient())
    inference({"x": one, "y": one})
    inference({"y": one, "x": one})
    with pytest.raises(TensorShapeError, match=r"Missing arguments: x\. Make"):
        inference({"y": one})
    with pytest.raises(TensorShapeError, match=r"Unexpected arguments: z\. Make"):
        inference({"y": one, "x": one, "z": one})
    with pytest.raises(TensorShapeError, match=r"Missing arguments: x\. Unexpected arguments: z\."):
        inference({"y": one, "z": one})


class Nested(nn.Module):
    def forward(self, given):
        (a, b), c = given if isinstance(given[0], list | tuple) else ((given[0], given[1][0]), given[1][1])
        return a - 2 * b + c


def test_as_many_arguments_in_another_nesting_are_other_arguments():
    one, two, three = (torch.full((1,), float(number)) for number in (1, 2, 3))
    inference = poptorch.inferenceModel(Nested())
    assert inference(((one, two), three)) == 0
    assert inference([[one, two], three]) == 0
    with pytest.raises(TensorShapeError, match="Missing arguments"):
        inference((one, (two, three)))


def replaced_layer(model):
    model.outer = nn.Linear(3, 2)


def filled(model):
    model.outer.weight.data.fill_(0.5)


def through_numpy(model):
    model.outer.weight.detach().numpy()[:] = 3


def replaced_data(model):
    model.outer.weight.data = torch.randn(2, 3)


def test_weights_that_change_in_any_way_are_those_of_the_next_call():
    model, x = Network().eval(), torch.randn(5, 4)
    inference = poptorch.inferenceModel(model)
    inference(x)
    for change in (replaced_layer, filled, through_numpy, replaced_data):
        change(model)
        np.testing.assert_allclose(inference(x)[0].numpy(), model(x)[0].detach().numpy(), rtol=1e-4, atol=1e-5)


def test_running_statistics_of_inference_come_back():
    model, x = Network().train(), torch.randn(5, 4)
    other = copy.deepcopy(model)
    poptorch.inferenceModel(model)(x)
    other(x)
    np.testing.assert_allclose(model.norm.running_mean.numpy(), other.norm.running_mean.numpy(), rtol=1e-4, atol=1e-6)


def test_what_a_compiled_model_cannot_follow_is_refused():
    model, x = Network(), torch.randn(5, 4)
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    training(x)
    model.inner.requires_grad_(False)
    with pytest.raises(PoplarRuntimeError, match=r"requires_grad of inner.weight has changed to False"):
        training(x)
    model.inner.requires_grad_(True)
    training(x)
    model.half()
    with pytest.raises(PoplarRuntimeError, match=r"inner.weight has changed from \(3, 4\) of float32 to \(3, 4\) of float16"):
        training(x)
    model.float()
    kept, model.outer = model.outer, nn.Linear(3, 2)
    with pytest.raises(PoplarRuntimeError, match=r"outer.weight has become another parameter, which the optimizer does not have"):
        training(x)
    model.outer = kept
    training(x)
    model.outer = nn.Identity()
    with pytest.raises(PoplarRuntimeError, match=r"the module has lost outer.weight"):
        training(x)


def test_a_compiled_model_says_what_can_be_copied_and_saved():
    model, x = Network().eval(), torch.randn(5, 4)
    inference = poptorch.inferenceModel(model)
    inference(x)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(PoplarTypeError, match=r"a compiled model cannot be copied or pickled: take its module"):
            copied(inference)
    assert torch.equal(pickle.loads(pickle.dumps(inference.model)).inner.weight, model.inner.weight)
    inference.destroy()
    assert torch.equal(copy.deepcopy(inference)(x)[0], inference(x)[0])


class Follower(Network):
    """Has the memory of a weight by another name, or a part of it."""

    def __init__(self, part):
        super().__init__()
        self.register_buffer("other", part(self.inner.weight.data))

    def forward(self, x):
        y, loss = super().forward(x)
        return y + self.other.flatten()[0], loss


@pytest.mark.parametrize("part", [lambda whole: whole, lambda whole: whole[1:, ::2], lambda whole: whole.view(torch.int32)])
def test_memory_of_two_tensors_of_which_a_call_changes_one_is_refused(part):
    """The device has each of them by itself, so that the one would keep what it was, or be written over the other."""
    model, x = Follower(part), torch.randn(5, 4)
    poptorch.inferenceModel(model.eval())(x)  # which changes none of them
    training = poptorch.trainingModel(model.train(), optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    before = model.inner.weight.clone()
    with pytest.raises(PoplarRuntimeError, match=r"inner.weight and other share memory, and a call changes inner.weight"):
        training(x)
    assert torch.equal(model.inner.weight, before)
    model.other = model.other.clone()
    training(x)
    assert not torch.equal(model.inner.weight, before)


def test_weights_that_come_to_share_memory_are_refused_and_those_within_one_memory_are_not():
    model, x = Network(), torch.randn(5, 4)
    whole = torch.randn(8, 4)
    model.inner.weight.data, model.outer.weight.data = whole[::2][:3], whole[1::2][:2, :3]  # rows in turn
    other = copy.deepcopy(model)
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    training(x)
    other(x)[1].backward()
    optimizer.step()
    np.testing.assert_allclose(model.outer.weight.detach().numpy(), other.outer.weight.detach().numpy(), rtol=1e-4, atol=1e-5)
    model.outer.weight.data = model.inner.weight.data[:2, :3]
    with pytest.raises(PoplarRuntimeError, match=r"inner.weight and outer.weight share memory"):
        training(x)


def test_another_mode_of_layers_is_told_once(caplog):
    model, x = Network(), torch.randn(5, 4)
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    training(x)
    model.eval()
    with caplog.at_level(logging.WARNING, "poptorch"):
        training(x)
        training(x)
    assert len([said for said in caplog.messages if "stays as compiled, after train()" in said]) == 1


class Noise(nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


def test_all_bits_of_a_seed_count():
    drawn = [
        tuple(poptorch.inferenceModel(Noise(), poptorch.Options().randomSeed(seed))(torch.zeros(3)).tolist())
        for seed in (3, 3 + 2**40, 3 - 2**32, 3)
    ]
    assert drawn[0] == drawn[3]
    assert len(set(drawn)) == 3


def test_a_random_state_is_checked():
    noise, plain = poptorch.inferenceModel(Noise()), poptorch.inferenceModel(Difference())
    noise(torch.zeros(3))
    plain(*vectors())
    for wrong in ([1], [1, 2.5], None, "ab"):
        with pytest.raises(PoplarTypeError, match="rng_state takes"):
            noise.rng_state = wrong
    with pytest.raises(InvalidOption, match="the model has no random numbers"):
        plain.rng_state = [1, 2]
    plain.rng_state = plain.rng_state


def test_options_of_ipus_and_blocks_that_are_not_there_are_told(caplog):
    strategy = poptorch.ShardedExecution(poptorch.Stage("a"), poptorch.Stage("b"))
    options = poptorch.Options().setAvailableMemoryProportion({"IPU3": 0.2}).setExecutionStrategy(strategy)

    class Blocks(nn.Module):
        def forward(self, x):
            with poptorch.Block("a"):
                return x * 2

    with caplog.at_level(logging.WARNING, "poptorch"):
        poptorch.inferenceModel(Blocks(), options)(torch.ones(3))
    assert "no block 'b'" in "".join(caplog.messages)
    assert "IPU3 changes nothing" in "".join(caplog.messages)


def test_a_block_is_on_one_ipu():
    class Blocks(nn.Module):
        def forward(self, x):
            with poptorch.Block("a", ipu_id=0):
                x = x * 2
            with poptorch.Block("a", ipu_id=1):
                return x + 1

    with pytest.raises(InvalidOption, match="'a' begins on IPU 1, and began on IPU 0"):
        poptorch.inferenceModel(Blocks())(torch.ones(3))


def test_a_function_of_the_cpu_may_have_side_effects(caplog):
    class Host(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.host = poptorch.CPU(self.count, "count")

        def count(self, x):
            self.calls += 1
            return x * 2 + poptorch.isRunningOnIpu()

        def forward(self, x):
            return self.host(x)

    with caplog.at_level(logging.WARNING, "poptorch"):
        assert poptorch.inferenceModel(Host())(torch.ones(3)).tolist() == [2, 2, 2]
    assert not caplog.messages


class OneBuffer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.ones(1))

    def forward(self, x):
        return x + self.mean


def test_buffers_that_a_program_writes_are_the_models_and_are_named_first():
    model = poptorch.inferenceModel(OneBuffer(), poptorch.Options().updatableNamedBuffers(["mean"]))
    assert model(torch.ones(1)) == 2
    model.mean += 1
    model.copyNamedBuffersToDevice()
    assert model(torch.ones(1)) == 3
    with pytest.raises(poptorch.Error, match=r"OneBuffer has no buffer 'means'; .*'mean'"):
        poptorch.inferenceModel(OneBuffer(), poptorch.Options().updatableNamedBuffers(["means"]))(torch.ones(1))
    unnamed = poptorch.inferenceModel(OneBuffer())
    unnamed.compile(torch.ones(1))
    with pytest.raises(poptorch.Error, match="updatableNamedBuffers names no buffer"):
        unnamed.copyNamedBuffersToDevice()


ONE = torch.ones(1)


class Scaled(torch.nn.Module):
    def forward(self, x, factor=ONE, added=None):
        y = x * factor
        return y if added is None else y + added


def test_optional_tensors_that_a_later_call_gives_are_compiled_for(caplog):
    model, x, two = poptorch.inferenceModel(Scaled()), torch.tensor([3.0]), torch.tensor([2.0])
    assert model(x) == 3
    assert model(x, two) == 6
    assert model(x, factor=two + 1) == 9
    assert "compiled anew" in caplog.text
    assert caplog.text.count("compiled anew") == 1
    assert model(added=two, x=x) == 5
    assert model(x) == 3
    assert caplog.text.count("compiled anew") == 3
    with pytest.raises(poptorch.Error, match="compiled for other arguments"):
        model(torch.ones(2))


def test_a_training_model_that_is_compiled_anew_keeps_states_and_weights():
    class Regression(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def forward(self, x, weight=None):
            y = self.layer(x)
            return poptorch.identity_loss(y * y if weight is None else y * y * weight, "mean")

    results = []
    for anew in (False, True):
        torch.manual_seed(0)
        module = Regression()
        model = poptorch.trainingModel(module, None, torch.optim.Adam(module.parameters(), lr=0.1))
        x, one = torch.ones(4, 2), torch.ones(1)
        results.append([model(x, *((one,) if anew and step % 2 else ())) for step in range(4)])
        results[-1] += [value.detach().clone() for value in module.parameters()]
    for value, other in zip(*results, strict=True):
        torch.testing.assert_close(value, other)


@pytest.mark.parametrize("made", ["before", "within"])
def test_a_model_is_compiled_and_called_in_inference_mode(made):
    model, x = poptorch.inferenceModel(torch.nn.Linear(3, 2)), torch.ones(4, 3)
    with torch.inference_mode():
        given = x if made == "before" else x.clone()
        torch.testing.assert_close(model(given), model.model(given))
    torch.testing.assert_close(model(x), model.model(x))


@pytest.mark.parametrize("new", [torch.ones(1), torch.ones(2, dtype=torch.int32)])
def test_a_buffer_in_whose_place_comes_another_kind_of_tensor_is_told(new):
    class Replacing(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.ones(1, dtype=torch.int32))

        def forward(self, x):
            self.kept = new * x.sum().to(new.dtype)
            return x

    with pytest.raises(
        poptorch.Error, match=r"Buffer kept is reassigned within the model .* self\.kept\.copy_\(src\) .*test_calls"
    ):
        poptorch.inferenceModel(Replacing())(torch.ones(2))


def test_a_buffer_that_the_forward_pass_removes_is_told():
    class Removes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("y", torch.ones(1))

        def forward(self, x):
            x = x + self.y
            del self._buffers["y"]
            return x

    with pytest.raises(poptorch.Error):
        poptorch.inferenceModel(Removes())(torch.ones(1))


def test_constants_that_are_returned_have_their_types():
    types = torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.float16, torch.float32

    class Constants(nn.Module):
        def forward(self, x):
            return [x, *(torch.ones_like(x, dtype=dtype) for dtype in types), torch.zeros_like(x > 0)]

    _, *given = poptorch.inferenceModel(Constants())(torch.ones(2))
    assert [one.dtype for one in given] == [*types, torch.bool]


def test_backward_of_what_a_model_gave_says_that_it_has_been_done(tmp_path):
    class Losing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def forward(self, x):
            out = self.layer(x)
            return {"out": out, "loss": poptorch.identity_loss(out, "mean")}

    module = Losing()
    trained = poptorch.trainingModel(module, optimizer=torch.optim.SGD(module.parameters(), lr=0.1))
    results = trained(torch.ones(2, 3))
    for one in results.values():
        with pytest.raises(poptorch.Error, match=r"^backward\(\) cannot be called explicitly on outputs of a PopTorch model\."):
            one.backward()
    torch.save(results, tmp_path / "results")
    torch.testing.assert_close(torch.load(tmp_path / "results"), results)
    module(torch.ones(2, 3))["loss"].backward()  # on the host
    assert module.layer.weight.grad is not None
    results["loss"].requires_grad_().backward()
    assert results["loss"].grad == 1


def test_another_number_of_arguments_by_position_is_told():
    class Adding(torch.nn.Module):
        def forward(self, *parts):
            return sum(parts)

    model = poptorch.inferenceModel(Adding())
    one = torch.ones(2)
    model(one, one, one)
    with pytest.raises(TensorShapeError, match="Number of positional arguments mismatch: expected 3 arguments but got 2"):
        model(one, one)


class Several(nn.Module):
    """Each argument counts differently, and so do weight and buffer."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(2, 3))
        self.register_buffer("shift", torch.rand(2, 3))

    def forward(self, x, y, more):
        result = x - 2 * y + 3 * more["z"] + 5 * self.weight + 7 * self.shift
        return result, torch.nn.functional.mse_loss(result, y)


@pytest.mark.parametrize("training", [False, True])
def test_a_tensor_that_is_given_twice_is_two_arguments_of_later_calls(training):
    module, one = Several(), torch.rand(2, 3)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.0)
    for first in ((one, one, one), (module.weight, module.shift, module.shift), (module.shift, one, module.weight)):
        if training:
            model = poptorch.trainingModel(module, optimizer=optimizer)
        else:
            model = poptorch.inferenceModel(module)
        for x, y, z in (first, torch.rand(3, 2, 3)):
            for got, want in zip(model(x, y, {"z": z}), module(x, y, {"z": z}), strict=True):
                torch.testing.assert_close(got, want)


def test_that_no_gradient_goes_through_an_argument_is_told_where_it_would_have_one(caplog):
    module = Several()
    model = poptorch.trainingModel(module, optimizer=torch.optim.SGD(module.parameters(), lr=0.1))
    y, z = torch.rand(2, 2, 3)
    told = []
    for x in (torch.rand(2, 3), module.weight, torch.rand(2, 3, requires_grad=True)):
        before = module.weight.detach().clone()
        grad = torch.autograd.grad(module(x.detach(), y, {"z": z})[1], module.weight)[0]
        with caplog.at_level(logging.WARNING, "poptorch"):
            model(x, y, {"z": z})
        torch.testing.assert_close(module.weight.detach(), before - 0.1 * grad)
        told.append(sum("an argument has requires_grad=True: it is taken as detach() gives it" in said for said in caplog.messages))
    assert told == [0, 1, 1]
    with caplog.at_level(logging.WARNING, "poptorch"):
        caplog.clear()
        poptorch.inferenceModel(module)(module.weight, y, {"z": z})
    assert not caplog.messages
