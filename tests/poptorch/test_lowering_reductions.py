"""Reductions and scans give PyTorch's results and gradients."""

import numpy as np
import pytest
import torch
from poptorch_functions import of_all, random, total_of
from poptorch_rig import Plain, check, compiled

from pypoplar import CodeletRuntimeError, poptorch, resources, testing
from pypoplar.codelet.language.codelet_file import module_of_file
from pypoplar.poptorch.capture import CaptureError
from pypoplar.poptorch.executor import building

TYPES = [torch.float32, torch.float16]


ALONG = [
    lambda a: a.sum(1),
    lambda a: a.mean((0, 2), keepdim=True),
    lambda a: a.prod(1),
    lambda a: a.amax((0, -1)),
    lambda a: a.amin(1),
    lambda a: a.max(1).values,
    lambda a: a.min(2, keepdim=True).values,
    lambda a: a.std(1),
    lambda a: a.var((0, 1), correction=0),
    lambda a: a.norm(dim=1),
    lambda a: a.norm(1, dim=0),
    lambda a: a.norm(float("inf"), dim=2),
    lambda a: a.logsumexp((0, 1)),
    lambda a: a.cumsum(1),
    lambda a: a.cumprod(2),
    lambda a: torch.std_mean(a, 1)[1],
    lambda a: a.norm(3),
    lambda a: a.nansum(1),
]
OF_ALL = [torch.sum, torch.mean, torch.prod, torch.amax, torch.max, torch.min, torch.std, torch.var, torch.norm]


@pytest.mark.parametrize("type", TYPES)
def test_reductions_and_their_gradients(type):
    check(total_of(*ALONG, *OF_ALL), (random(3, 4, 5) + 0.1).to(type))


@pytest.mark.parametrize("type", TYPES)
def test_scans(type):
    check(
        total_of(*(lambda a, f=f: f(a, 1)[0] for f in (torch.cummax, torch.cummin)), lambda a: a.logcumsumexp(1)),
        random(3, 5, type=type),
    )


@pytest.mark.parametrize("type", [*TYPES, torch.int64, torch.bool, torch.uint8])
def test_places_and_truths(type):
    x = torch.tensor([[3, 1, 3, 0], [0, 0, 0, 0], [2, 5, 5, 1]]).to(type)
    places = [lambda a: a.argmax(1), lambda a: a.argmin(0, keepdim=True), torch.argmax, torch.argmin]
    truths = [lambda a: a.any(1), lambda a: a.all(0), torch.any, torch.all, lambda a: a.count_nonzero(1), torch.count_nonzero]
    others = [lambda a: a.amax(1), lambda a: a.min(), torch.sum, lambda a: a.cumsum(0), torch.aminmax]
    if type is not torch.bool:
        others += [lambda a: a.max(1), lambda a: a.prod(1)]
    else:
        places = []
    check(of_all(*places, *truths, *others), x, gradients=False)


def test_not_a_number_is_the_extreme():
    x = torch.tensor([[1.0, float("nan"), 3.0], [float("inf"), 2.0, -float("inf")], [0.0, -0.0, float("nan")]])
    extremes = [
        lambda a: a.amax(1),
        lambda a: a.max(1),
        lambda a: a.min(1),
        torch.amin,
        lambda a: a.argmax(1),
        lambda a: a.cummax(1),
    ]
    check(
        of_all(*extremes, lambda a: a.logsumexp(1), lambda a: a.sum(1), lambda a: a.nansum(1), lambda a: a.any(1)),
        x,
        gradients=False,
    )


def test_reductions_of_nothing_and_of_one_number():
    check(
        of_all(torch.sum, torch.mean, torch.prod, lambda a: a.sum(0), lambda a: a.any(1), lambda a: a.all()),
        torch.zeros(0, 3),
        gradients=False,
    )
    several = [
        torch.sum,
        torch.mean,
        lambda a: a.sum(0),
        lambda a: a.amax(),
        lambda a: a.max(0),
        torch.argmax,
        lambda a: a.cumsum(0),
    ]
    check(of_all(*several, lambda a: a.logsumexp(0), torch.norm, lambda a: a.prod(0)), torch.tensor(2.5), gradients=False)


def test_halves_are_added_in_float():
    check(lambda a: torch.stack([a.sum(), a.mean()]).float(), torch.full((4000,), 1.0, dtype=torch.float16))
    check(lambda a: a.cumsum(0), torch.full((300,), 0.1, dtype=torch.float16))


WIDE = {
    "sum": lambda x: x.sum(),
    "sums": lambda x: x.sum(0, keepdim=True),
    "nansum": lambda x: x.nansum(1),
    "product": lambda x: x.prod(),
    "products": lambda x: x.prod(1),
    "sums up to": lambda x: x.cumsum(1),
    "products up to": lambda x: x.cumprod(0),
}


@pytest.mark.parametrize("type", [torch.int64, torch.int32])
@pytest.mark.parametrize("name", WIDE)
def test_sums_and_products_of_integers_are_right_or_an_error_with_its_line(name, type):
    """What PyTorch computes with 64 bits fits into 32, also where sums on the way do not, or the run ends with an error."""
    function = WIDE[name]
    large, small = torch.full((2, 4), 2**30, dtype=type), torch.tensor([[3, -5, 1, 2], [-1, 4, 7, 9]], dtype=type)
    balanced, medium = large * torch.tensor([1, 1, -1, -1], dtype=type), torch.full((2, 4), 70_000, dtype=type)
    machine = compiled(Plain(function), (small,), training=False, tiles=4)
    ran = 0
    for given in (small, medium, large, balanced):
        wanted = function(given)
        if wanted.min() >= -(2**31) and wanted.max() < 2**31:
            (got,) = machine.run((given,))
            assert torch.equal(got.to(wanted.dtype), wanted)
            ran += 1
        else:
            with pytest.raises(CodeletRuntimeError, match=r"(?s)an int64 result does not fit.*added at .*_reductions.py:\d+"):
                machine.run((given,))
    assert 0 < ran < 4


def narrows(machine):
    return any("NarrowChecked" in one.name for one in machine.engine.executable.codelets)


KNOWN = {
    "bool": lambda x: (x > 3).sum(),
    "narrow": lambda x: x.to(torch.uint8).cumsum(0),
    "asked for": lambda x: x.sum(dtype=torch.int32),
    "held": lambda x: (x.clamp(0, 1000) * 2 + 1).sum(1),
    "rest": lambda x: torch.stack([x % 7, x & 31]).sum(),
    "ones": lambda x: (x > 0).long().prod(1),
    "constant": lambda x: torch.where(x > 0, torch.arange(4), -1).cumsum(1),
    "one": lambda x: x[:1].sum(0),
}


@pytest.mark.parametrize("name", KNOWN)
def test_integers_whose_ranges_are_known_are_summed_with_32_bits(name):
    x = torch.tensor([[3, -5, 1, 2], [-1, 4, 7, 9]])
    machine = compiled(Plain(KNOWN[name]), (x,), training=False, tiles=4)
    assert not narrows(machine)
    assert torch.equal(machine.run((x,))[0].to(torch.int64), KNOWN[name](x).to(torch.int64))


def test_indices_that_are_checked_before_the_run_are_summed_with_32_bits(monkeypatch):
    monkeypatch.setattr(building, "TILES", 4)
    table, index = torch.arange(6.0), torch.tensor([1, 5, 2])
    for function, known in ((lambda t, i: (t[i], i.sum()), True), (lambda t, i: (t + 1, i.sum()), False)):
        model = poptorch.inferenceModel(Plain(function))
        assert model(table, index)[1] == 8
        assert narrows(model._built.compiled) is not known


def test_sums_of_integers_are_checked_on_each_ipu(monkeypatch):
    monkeypatch.setattr(building, "TILES", 4)

    def function(x):
        with poptorch.Block("first", ipu_id=0):
            first = x.sum(0)
        with poptorch.Block("second", ipu_id=1):
            return first.cumsum(0) * 1

    options = poptorch.Options()
    options.setExecutionStrategy(poptorch.ShardedExecution(poptorch.AutoStage.SameAsIpu))
    model, x = poptorch.inferenceModel(Plain(function), options), torch.arange(6).reshape(2, 3)
    assert model(x).tolist() == function(x).tolist()
    with pytest.raises(CodeletRuntimeError, match="cumsum/narrowed"):
        model(x + 2**29)


@pytest.mark.parametrize("values", [[0, -1, 2**31 - 1, -(2**31), 5, 6, 7], [1, 2**31], [-(2**31) - 1, 3], [2**40]])
def test_64_bits_are_cut_to_32_where_these_are_enough(values):
    codelet = module_of_file(resources.codelets("poptorch_integers.py")).NarrowChecked
    given = np.array(values, np.int64)
    if (given == given.astype(np.int32)).all():
        result = testing.run_vertex(codelet, {"in": given, "out": np.zeros(len(given), np.int32)})
        assert np.array_equal(result["out"], given)
    else:
        with pytest.raises(CodeletRuntimeError, match="does not fit into the 32 bits"):
            testing.run_vertex(codelet, {"in": given, "out": np.zeros(len(given), np.int32)})


@pytest.mark.parametrize("type", [torch.float32, torch.int64])
@pytest.mark.parametrize("function", [torch.max, torch.min, lambda e: e.max(0).values, lambda e: e.view(0, 3).min(0).indices])
def test_of_no_elements_there_is_no_extreme(function, type):
    empty = torch.empty(0, dtype=type)
    with pytest.raises((RuntimeError, IndexError)):
        function(empty)
    with pytest.raises(poptorch.UnsupportedOperation, match=r"(max|min): of no elements there is none; the shape is .*\.py:\d+"):
        compiled(Plain(function), (empty,), training=False)


def test_what_is_empty_can_be_sorted_and_have_extremes_of_others():
    functions = (lambda e: e.sort().values, lambda e: e.view(0, 3).amax(1), lambda e: e.view(0, 3).max(1).values)
    check(of_all(*functions), torch.empty(0), gradients=False)


def test_counts_have_the_length_that_is_asked_for():
    x, weights = torch.tensor([3, 0, 1, 3, 5]), torch.tensor([0.5, 1.0, 2.0, 4.0, 0.25])
    several = [
        lambda a, w: torch.bincount(a, minlength=6),
        lambda a, w: a.bincount(minlength=6),
        lambda a, w: torch.bincount(a, w, minlength=6),
        lambda a, w: torch.bincount(a, a, 6),
    ]
    check(of_all(*several), x, weights, gradients=False)
    with pytest.raises(CaptureError, match="Bincount `minlength` must be specified and must be a constant"):
        check(lambda a: torch.bincount(a), x, gradients=False)


def test_a_number_beyond_the_length_of_counts_is_refused():
    class Counts(torch.nn.Module):
        def forward(self, x):
            return torch.bincount(x, minlength=3)

    model = poptorch.inferenceModel(Counts())
    assert model(torch.tensor([0, 2, 2])).tolist() == [1, 0, 2]
    with pytest.raises(IndexError, match="3"):
        model(torch.tensor([0, 2, 3]))
