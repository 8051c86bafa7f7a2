"""What of a module cannot become a graph is told at its first call, with its layer and line, and what there is instead."""

import copy
import logging
import random
import traceback

import numpy as np
import pytest
import torch
from torch import nn

from pypoplar import poptorch
from pypoplar.poptorch import CaptureError
from pypoplar.poptorch.capture.training_loss import LossError
from pypoplar.poptorch.operators import REPLACEMENTS


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    """A small machine, which is compiled for quickly."""
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 4)


class Layer(nn.Module):
    """A layer, in the model `deep`, that does something to its input."""

    def __init__(self, act):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.calls = 0
        self.act = act

    def forward(self, x):
        return self.act(self, x * self.weight)


class Deep(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.deep = Layer(act)

    def forward(self, x):
        return self.deep(x)


def branches(layer, x):
    if x.sum() > 0:
        x = x + 1
    return x * float(x.max())


def counts(layer, x):
    for _ in range(x.argmax()):
        x = x + 1
    return x


def ends(layer, x):
    y = x + 1
    y[x.argmax() :] = 0.5
    return y


def decides(layer, x):
    x = x.sum()
    x[x > 1] = 0.5
    return x


DEPENDENT = {
    "item": (lambda layer, x: x * x.sum().item(), r"item\(\) takes a number out of a tensor.*keep it a tensor"),
    "number": (lambda layer, x: x * int(x.sum()), r"int\(tensor\) takes a number out of a tensor"),
    "while": (counts, "a tensor as an index takes a number"),
    "mask": (lambda layer, x: x[x > 0], r"index has a shape that depends on values: take torch.where\(mask, x, 0.0\)"),
    "nonzero": (lambda layer, x: torch.nonzero(x), "nonzero.* has a shape that depends on values"),
    "where": (lambda layer, x: torch.where(x > 0), r"where\(condition\) has a shape.*torch.where\(condition, a, b\)"),
    "selected": (lambda layer, x: torch.masked_select(x, x > 0), "masked_select.*x [*] mask"),
    "unique": (lambda layer, x: torch.unique(x), "unique.* compute it on the host"),
    "list": (lambda layer, x: x * x.tolist()[0], r"takes a number out of a tensor"),
    "numpy": (
        lambda layer, x: torch.as_tensor(np.sin(x.detach())),
        "a NumPy function of a tensor.*function of torch",
    ),
    "classes": (lambda layer, x: nn.functional.one_hot((x > 0).long()), "one_hot.* give the number of classes"),
    "data": (lambda layer, x: x * x.data, r"Tensor.data is not seen by a graph: take x.detach\(\)"),
    "end": (ends, r"x\[...\] = value has a shape that depends on values: take index_select, or torch.where with a mask"),
    "truth": (decides, r"x\[...\] = value asks for the value of a mask without dimensions: take torch.where\(mask, value, x\)"),
    "argument": (lambda layer, x: layer.weight.add_(1), "the parameter deep.weight is changed in place"),
    "generator": (lambda layer, x: x + torch.rand(3, generator=torch.Generator()), "a torch.Generator"),
}


@pytest.mark.parametrize("case", DEPENDENT)
def test_what_depends_on_data_is_told_with_what_there_is_instead(case):
    act, told = DEPENDENT[case]
    with pytest.raises(CaptureError, match=told) as caught:
        poptorch.inferenceModel(Deep(act).requires_grad_(False))(torch.ones(3))
    if case != "generator":
        assert "deep at " in str(caught.value)
        assert "test_capture.py:" in str(caught.value)


def test_all_that_depends_on_data_is_told_at_once():
    with pytest.raises(CaptureError, match=r"(?s)if, while or bool.*`if x.sum\(\) > 0:`.*float\(tensor\).*`return x \* float"):
        poptorch.inferenceModel(Deep(branches))(torch.ones(3))


def test_what_follows_from_a_mistake_in_the_export_is_not_told_beside_it():
    class Narrow(nn.Module):
        def forward(self, x, z):
            out = z.view(3, -1)
            torch.stack([x, x], out=out)
            return out.chunk(2, -1)[0]

    with pytest.raises(CaptureError) as refused:
        poptorch.inferenceModel(Narrow())(torch.ones(2, 3), torch.ones(2, 3))
    (problem,) = refused.value.problems
    assert str(problem).startswith("out has the shape (3, 2), and the result (2, 2, 3): give one of its shape (stack")


def test_the_parameter_that_an_operation_writes_into_is_the_one_that_is_told():
    class Writing(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = (nn.Parameter(torch.ones(3)) for _ in range(2))

        def forward(self, x):
            with torch.no_grad():
                return torch.add(self.first, x, out=self.second)

    with pytest.raises(CaptureError, match=r"the parameter second is changed in place"):
        poptorch.inferenceModel(Writing())(torch.ones(3))


def test_a_copy_of_an_argument_may_be_changed_in_place():
    class Copying(nn.Module):
        def forward(self, x):
            flat = x.t().reshape(6)
            flat += 1
            whole = x.to(torch.int32)
            whole *= 2
            return flat, whole

    x = torch.arange(6.0).reshape(2, 3)
    for got, wanted in zip(poptorch.inferenceModel(Copying())(x), Copying()(x), strict=True):
        assert torch.equal(got, wanted)


def test_what_the_module_raises_itself_is_raised():
    def raising(layer, x):
        raise LookupError("words of the user")

    with pytest.raises(LookupError, match="words of the user"):
        poptorch.inferenceModel(Deep(raising))(torch.ones(3))
    with pytest.raises(RuntimeError, match="size of tensor"):
        poptorch.inferenceModel(Deep(lambda layer, x: x + torch.ones(4)))(torch.ones(3))


class Attention(nn.Module):
    def forward(self, x):
        return x.softmax(0)


def asks_and_is_wrong(layer, x):
    if x.sum() > 0:
        x = x + 1
    return Attention()(x, mask=None)


def is_caught_and_is_wrong(layer, x):
    try:
        count = int(x.sum())
    except RuntimeError:
        count = 2
    return x.reshape(count, 7)


def refuses_the_ipu(layer, x):
    numbers = x.tolist()
    if poptorch.isRunningOnIpu():
        raise LookupError(f"not on the IPU with {len(numbers)} numbers")
    return x


def is_wrong_at_an_operator_of_its_own(layer, x):
    (x,) = poptorch.custom_op([x], "OfTheErrors", "tests", 1, example_outputs=[x])
    return x.reshape(7) * x.sum().item()


OWN = {
    "behind a question": (asks_and_is_wrong, TypeError, "unexpected keyword argument 'mask'", "return Attention()(x, mask=None)"),
    "caught": (is_caught_and_is_wrong, RuntimeError, "shape .* is invalid for input of size 3", "return x.reshape(count, 7)"),
    "of the capture": (refuses_the_ipu, LookupError, "not on the IPU with 3 numbers", "raise LookupError("),
    "behind an operator": (is_wrong_at_an_operator_of_its_own, RuntimeError, r"shape '\[7\]' is invalid", "return x.reshape(7)"),
}


@pytest.mark.parametrize("name", OWN)
def test_what_the_module_raises_is_not_hidden_by_what_depends_on_data(name):
    act, kind, told, line = OWN[name]
    if name == "behind an operator":
        poptorch.registerCustomOp("OfTheErrors", "tests", 1)(lambda *_: [])
    with pytest.raises(kind, match=told) as caught:
        poptorch.inferenceModel(Deep(act))(torch.ones(3))
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename == __file__]
    assert lines[-1].startswith(line)
    if name != "behind an operator":
        assert any("takes a number out of a tensor" in note or "asks for the value" in note for note in caught.value.__notes__)


def test_pytorchs_words_stand_beside_what_depends_on_data():
    """Where export fails for a reason that is not known to depend on data, both are told."""

    def points(layer, x):
        most = x.max().item()
        return x * most + x.data_ptr()

    with pytest.raises(CaptureError, match=r"(?s)RuntimeError: .*`return x \* most.*item\(\) takes a number.*`most = x.max"):
        poptorch.inferenceModel(Deep(points))(torch.ones(3))


def test_what_fails_in_the_second_trace_has_its_line(monkeypatch):
    def form(input):
        raise TypeError("form() does not know this argument")

    monkeypatch.setitem(REPLACEMENTS, torch.ops.aten.sigmoid.default, form)
    told = r"(?s)form\(\) does not know this argument.*sigmoid of deep at .*test_capture\.py:\d+"
    with pytest.raises(CaptureError, match=told):
        poptorch.inferenceModel(Deep(lambda layer, x: x.sigmoid() + 1))(torch.ones(3))


def test_an_error_of_constants_has_its_line():
    def picks(layer, x):
        return x * torch.arange(3)[torch.tensor([7])]

    with pytest.raises(IndexError, match="out of") as caught:
        poptorch.inferenceModel(Deep(picks))(torch.ones(3))
    assert "test_capture.py:" in "".join(traceback.format_exception(caught.value))


def test_types_that_the_ipu_does_not_have_are_told():
    with pytest.raises(poptorch.UnsupportedOperation, match=r"is no type of the IPU.*call half\(\).*parameter deep.weight and"):
        poptorch.inferenceModel(Deep(lambda layer, x: x).to(torch.bfloat16))(torch.ones(3, dtype=torch.bfloat16))


def test_a_constant_that_is_too_wide_is_told_with_its_line():
    with pytest.raises(poptorch.Error, match=r"8589934592 is no INT.*deep at .*test_capture.py:\d+: `poptorch.inferenceModel"):
        poptorch.inferenceModel(Deep(lambda layer, x: (x > 0).long() * 2**33))(torch.ones(3))


def test_side_effects_are_told_once(caplog):
    def acting(layer, x):
        layer.calls += 1
        layer.last = x
        assert f"{x}"
        return x * random.random() * np.random.rand()  # noqa: NPY002

    deep = Deep(acting)
    with caplog.at_level(logging.WARNING, "poptorch"):
        poptorch.inferenceModel(deep)(torch.ones(3))
    said = "\n".join(caplog.messages)
    for told in ("sets calls to 1", "sets the tensor last", "ipu_print_tensor (deep at", "Python's random", "numpy.random"):
        assert said.count(told) == 1, told
    assert deep.deep.calls == 0
    assert not hasattr(deep.deep, "last")


class TwoLines(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.other = nn.Linear(3, 1), nn.Linear(3, 1)

    def forward(self, x):
        return self.other(x), poptorch.identity_loss(self.used(x), "sum")


def test_a_training_model_of_which_nothing_is_trained_runs_and_says_so(caplog):
    model, x = TwoLines().requires_grad_(False), torch.ones(3)
    before = copy.deepcopy(model.state_dict())
    with caplog.at_level(logging.WARNING, "poptorch"):
        training = poptorch.trainingModel(model, None, torch.optim.Adam(model.parameters()))
        for _ in range(2):
            torch.testing.assert_close(training(x), model(x))
    assert [told.partition(":")[0] for told in caplog.messages] == ["no parameter of the model is trained"]
    assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())


def test_a_parameter_that_the_forward_pass_does_not_use_is_none_that_is_trained(caplog):
    class Unused(TwoLines):
        def forward(self, x):
            return poptorch.identity_loss(x * x, "sum")

    model = Unused()
    before = copy.deepcopy(model.state_dict())
    with caplog.at_level(logging.WARNING, "poptorch"):
        assert poptorch.trainingModel(model)(torch.ones(3)) == 3
    assert [told.partition(":")[0] for told in caplog.messages] == ["no parameter of the model is trained"]
    assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())


def test_a_loss_of_nothing_that_is_trained_is_told():
    frozen = TwoLines()
    frozen.used.requires_grad_(False)
    with pytest.raises(LossError, match="the loss depends on no parameter"):
        poptorch.trainingModel(frozen)(torch.ones(3))


@pytest.mark.parametrize("reduction", ["sum", "mean", "none"])
def test_the_last_of_nested_losses_is_minimised(reduction):
    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.line = nn.Linear(3, 2)

        def forward(self, x):
            part = poptorch.identity_loss(self.line(x), reduction)
            return part, poptorch.identity_loss(part * part * 5, "mean")

    model, x = Nested(), torch.randn(4, 3)
    wanted = copy.deepcopy(model)
    part, loss = poptorch.trainingModel(model, None, torch.optim.SGD(model.parameters(), lr=0.1))(x)
    there, of_it = wanted(x)
    of_it.backward()
    torch.testing.assert_close((part, loss), (there.detach(), of_it.detach()))
    for one, other in zip(model.parameters(), wanted.parameters(), strict=True):
        torch.testing.assert_close(one, other - 0.1 * other.grad)


def test_losses_of_which_neither_is_computed_from_the_other_are_told_in_poptorchs_words():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.line = nn.Linear(3, 2)

        def forward(self, x):
            y = self.line(x)
            return poptorch.identity_loss(y, "sum"), poptorch.identity_loss(y * y, "sum")

    told = r"Multiple independent losses found in graph\. Graph must have one final loss\. .*There are 2.*test_capture.py:\d+"
    with pytest.raises(LossError, match=told):
        poptorch.trainingModel(Two())(torch.ones(3))
    with pytest.raises(LossError, match="Couldn't find a loss in graph"):
        poptorch.trainingModel(nn.Linear(3, 2))(torch.ones(3))


def test_unsupported_operations_are_told_beside_what_depends_on_data():
    def several(layer, x):
        if x.sum() > 0:
            x = torch.special.bessel_j0(x)
        x = x * x.tolist()[1] + x[x > 0].sum()
        return torch.special.bessel_y1(x).bfloat16()

    with pytest.raises(CaptureError) as caught:
        poptorch.inferenceModel(Deep(several))(torch.ones(3))
    for told in ("if, while or bool", "tolist()", "x[...] with a mask", "special_bessel_j0", "special_bessel_y1", "bfloat16"):
        assert told in str(caught.value), told


class NormTwice(nn.Module):
    """A layer with statistics that has two names, which it is used by."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.layers = nn.Sequential(nn.Linear(3, 3), self.norm)

    def forward(self, x):
        y = self.layers(self.norm(x))
        return y, poptorch.identity_loss((y**3).sum(), "none")


def test_a_layer_of_two_names_has_its_statistics_once():
    torch.manual_seed(1)
    mine = NormTwice()
    theirs = copy.deepcopy(mine)
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    model = poptorch.trainingModel(mine, optimizer=torch.optim.SGD(mine.parameters(), lr=0.1))
    for _ in range(2):
        x = torch.rand(5, 3)
        optimizer.zero_grad()
        y, loss = theirs(x)
        loss.backward()
        optimizer.step()
        torch.testing.assert_close(model(x)[0], y, atol=1e-4, rtol=1e-4)
    for (name, got), expected in zip(mine.state_dict().items(), theirs.state_dict().values(), strict=True):
        torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4, check_dtype=False, msg=name)
    assert mine.norm.num_batches_tracked == 4


class Tied(nn.Module):
    """Two buffers of one memory, of which the forward pass changes one."""

    def __init__(self):
        super().__init__()
        self.register_buffer("first", torch.zeros(4))
        self.register_buffer("second", self.first[1:])

    def forward(self, x):
        self.first.add_(1)
        return x * self.second


def test_tensors_that_share_memory_are_named_where_one_is_changed():
    with pytest.raises(CaptureError, match=r"the buffer first and the buffer second share memory.*clone"):
        poptorch.inferenceModel(Tied())(torch.rand(3))

    class Changing(nn.Module):
        def forward(self, x, y):
            x.add_(1)
            return x.sum() + y["also"].sum()

    x = torch.rand(4)
    with pytest.raises(CaptureError, match=r"the argument 0 and the argument 1.* share memory.*clone"):
        poptorch.inferenceModel(Changing())(x, {"also": x[1:]})
