"""Arguments that a model changes in place have their new values after the call, as in PyTorch."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from pypoplar import poptorch
from pypoplar.errors import PoplarError
from pypoplar.poptorch.executor import building


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    monkeypatch.setattr(building, "TILES", 4)


class Changing(nn.Module):
    """Changes arguments as a function says."""

    def __init__(self, change):
        super().__init__()
        self.change, self.layer = change, nn.Linear(3, 3)

    def forward(self, *arguments):
        return self.change(self.layer, *arguments)


def by_row(layer, x):
    x[0] = 5
    return x * 2


def by_view(layer, x):
    x[:, 1].mul_(3)
    return x.sum()


def returned(layer, x):
    return x.add_(1)


def out_of_another(layer, x, y):
    return torch.add(x, 1, out=y)


def in_a_list(layer, given):
    given[1].copy_(given[0])
    return layer(given[0])


def by_statistics(layer, x, means):
    return nn.functional.batch_norm(x, means, torch.ones(3), training=True)


def by_integers(layer, x, count):
    count += 1
    return layer(x) * count


def twice(layer, x):
    x += layer(x).detach()
    x *= 2
    return layer(x)


GIVEN = {
    by_row: ([torch.arange(6.0).reshape(2, 3)],),
    by_view: ([torch.arange(6.0).reshape(2, 3)],),
    returned: ([torch.ones(2, 3)],),
    out_of_another: ([torch.ones(2, 3), torch.zeros(2, 3)],),
    in_a_list: ([[torch.ones(2, 3), torch.zeros(2, 3)]],),
    by_statistics: ([torch.arange(12.0).reshape(4, 3), torch.zeros(3)],),
    by_integers: ([torch.ones(2, 3), torch.tensor(3)],),
    twice: ([torch.ones(2, 3)],),
}


@pytest.mark.parametrize("change", GIVEN)
def test_the_caller_has_what_the_model_made_of_an_argument(change):
    (given,) = GIVEN[change]
    mine, theirs = copy.deepcopy(given), copy.deepcopy(given)
    module = Changing(change)
    model = poptorch.inferenceModel(module)
    for _ in range(2):
        with torch.no_grad():
            wanted = module(*theirs)
        torch.testing.assert_close(model(*mine), wanted)
        torch.testing.assert_close(mine, theirs)


class Accumulating(nn.Module):
    """Adds what goes in to what is given, and trains a layer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x, total):
        total += x
        return poptorch.identity_loss(self.layer(x).square(), "mean")


@pytest.mark.parametrize("mode", [poptorch.OutputMode.Final, poptorch.OutputMode.All, poptorch.OutputMode.Sum])
def test_every_batch_of_a_call_changes_its_rows(mode):
    options = poptorch.Options().deviceIterations(2).outputMode(mode)
    options.Training.gradientAccumulation(2)
    module = Accumulating()
    model = poptorch.trainingModel(module, options, torch.optim.SGD(module.parameters(), lr=0.1))
    x, total = torch.arange(24.0).reshape(8, 3), torch.ones(8, 3)
    model(x, total)
    assert torch.equal(total, x + 1)


def test_replicas_change_their_own_rows():
    options = poptorch.Options().replicationFactor(2)
    x, total = torch.arange(12.0).reshape(4, 3), torch.ones(4, 3)
    module = Accumulating()
    poptorch.trainingModel(module, options, torch.optim.SGD(module.parameters(), lr=0.1))(x, total)
    assert torch.equal(total, x + 1)


def test_a_model_from_the_cache_changes_arguments_too(tmp_path):
    options = poptorch.Options().enableExecutableCaching(str(tmp_path))
    for _ in range(2):
        x = torch.ones(2, 3)
        poptorch.inferenceModel(Changing(returned), options)(x)
        assert torch.equal(x, torch.full((2, 3), 2.0))
    assert len(list(tmp_path.iterdir())) == 1


def test_stages_of_a_pipeline_change_the_rows_of_their_batches():
    class Stages(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x, seen):
            with poptorch.Block("first", ipu_id=0):
                seen += x
                x = self.first(x)
            with poptorch.Block("second", ipu_id=1):
                return self.second(x)

    x, seen = torch.arange(36.0).reshape(12, 3), torch.ones(12, 3)
    module = Stages()
    out = poptorch.inferenceModel(module, poptorch.Options().deviceIterations(4))(x, seen)
    assert torch.equal(seen, x + 1)
    torch.testing.assert_close(out, module(x, torch.zeros(12, 3)).detach())


def test_arguments_of_a_call_that_fails_are_as_they_were():
    class Failing(nn.Module):
        def forward(self, x, table, row):
            x += 1
            return table[row] + x

    x = torch.ones(3)
    model = poptorch.inferenceModel(Failing())
    model(x, torch.ones(4, 3), torch.tensor([1]))
    assert x.tolist() == [2, 2, 2]
    with pytest.raises((PoplarError, IndexError)):
        model(x, torch.ones(4, 3), torch.tensor([4]))
    assert x.tolist() == [2, 2, 2]


def test_synthetic_data_change_nothing_of_the_callers():
    options = poptorch.Options().enableSyntheticData(True)
    x = torch.ones(2, 3)
    poptorch.inferenceModel(Changing(returned), options)(x)
    assert torch.equal(x, torch.ones(2, 3))


def after_a_loss(x):
    loss = torch.nn.functional.l1_loss(x, x.relu(), reduction="sum")
    x.add_(1)
    return loss * 2


def broadcast(x):
    one, _ = torch.broadcast_tensors(x, x.relu())
    one.mul_(2)
    return x * 3


def of_one_type(x):
    x.type_as(torch.ones(1)).add_(1)
    return x * 3


def in_two_dimensions(x):
    y = x * 3
    wide = torch.atleast_2d(y)
    y.add_(1)
    wide.mul_(2)
    return y, wide


def not_dropped(x):
    F.dropout(x, 0.5, training=False).add_(1)
    F.alpha_dropout(x, 0.5, False).mul_(2)
    F.dropout1d(x[None], 0.0)[0].sub_(3)
    nn.Dropout(0.3).eval()(x)[0] = 7
    return x * 3


@pytest.mark.parametrize("change", [after_a_loss, broadcast, of_one_type, in_two_dimensions, not_dropped])
def test_what_an_operation_gives_as_it_got_it_is_changed_with_it(change):
    class Changing(torch.nn.Module):
        def forward(self, x):
            return change(x)

    given = torch.randn(6)
    host = given.clone()
    wanted = change(host)
    got = poptorch.inferenceModel(Changing())(given)
    torch.testing.assert_close(got, wanted)
    torch.testing.assert_close(given, host)


PARTED = {
    "unsafe_chunk": lambda x: torch.unsafe_chunk(x, 2),
    "unsafe_chunk of columns": lambda x: x.unsafe_chunk(3, dim=-1),
    "unsafe_split": lambda x: torch.unsafe_split(x, split_size=3),
    "unsafe_split_with_sizes": lambda x: x.unsafe_split_with_sizes([1, 3], 1),
}


@pytest.mark.parametrize("parts", PARTED)
def test_unsafe_parts_lie_in_the_memory_of_the_whole(parts):
    class Parted(nn.Module):
        def forward(self, x):
            y = x * 2
            for whole in (x, y):
                first, *_, last = PARTED[parts](whole)
                first[first > 0.5] = 0
                last.mul_(3)
                whole += 1
            return first, last, y

    given = torch.randn(4, 4)
    host = given.clone()
    wanted = Parted()(host)
    torch.testing.assert_close(poptorch.inferenceModel(Parted())(given), wanted)
    torch.testing.assert_close(given, host)


def test_unsafe_parts_that_are_changed_have_the_gradients_of_pytorch():
    class Parted(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            first, last = torch.unsafe_chunk(self.layer(x), 2, 1)
            first.mul_(3)
            return poptorch.identity_loss((first * last + first.square()).sum(), "none")

    x, module = torch.randn(2, 4), Parted()
    trained = copy.deepcopy(module)
    module(x).backward()
    model = poptorch.trainingModel(trained, optimizer=torch.optim.SGD(trained.parameters(), lr=1.0))
    model(x)
    model.copyWeightsToHost()
    torch.testing.assert_close(trained.layer.weight, module.layer.weight - module.layer.weight.grad)


REPEATING = {
    "expand": lambda x: x.expand(3, 4).masked_fill_(x > 0, 2.0),
    "broadcast_to": lambda x: torch.broadcast_to(x, (3, 4))[1].fill_(2.0),
    "meshgrid": lambda x: torch.meshgrid(x, x, indexing="ij")[0].masked_fill_(x > 0, 2.0),
    "as_strided": lambda x: x.as_strided((2, 2), (1, 1)).mul_(2.0),
}


@pytest.mark.parametrize("operation", REPEATING)
def test_a_view_that_shows_elements_more_than_once_is_not_changed_silently(operation):
    class Repeating(nn.Module):
        def forward(self, x):
            REPEATING[operation](x)
            return x * 3

    with pytest.raises(PoplarError, match=f"a view by {operation}, which does not show each element once, .*x: "):
        poptorch.inferenceModel(Repeating())(torch.randn(4))


def test_a_view_that_repeats_elements_shows_what_has_changed():
    class Shown(nn.Module):
        def forward(self, x):
            y = x * 2
            wide, same = y.expand(3, 4), y.expand(4)
            same.add_(1)
            return wide * 2

    x = torch.randn(4)
    torch.testing.assert_close(poptorch.inferenceModel(Shown())(x), Shown()(x))


def test_a_view_of_nothing_repeats_nothing():
    class OfNothing(nn.Module):
        def forward(self, x, none):
            several = none.expand(2, *none.shape)
            several[0].mul_(2)
            grown = nn.functional.interpolate(x[None, None][:0], size=(3, 4), mode="bilinear")
            grown.sub_(grown.sum(dim=()), alpha=2)
            return several, grown, x * 3

    given = torch.randn(2, 3), torch.randn(2, 0)
    for found, expected in zip(poptorch.inferenceModel(OfNothing())(*given), OfNothing()(*given), strict=True):
        torch.testing.assert_close(found, expected)


def changed_part(x):
    torch.ops.aten.unsafe_split(x, 2)[1].add_(1)


def changed_whole(x):
    first, _ = torch.ops.aten.unsafe_split_with_sizes(x, [1, 3])
    x.mul_(2)
    return first


@pytest.mark.parametrize("change", [changed_part, changed_whole])
def test_unsafe_parts_of_the_operation_itself_are_not_changed_silently(change):
    class Changed(nn.Module):
        def forward(self, x):
            y = x * 2
            return change(y), y

    with pytest.raises(PoplarError, match=r"parts by torch\.ops\.aten\.unsafe_split(_with_sizes)?, or their whole, are changed"):
        poptorch.inferenceModel(Changed())(torch.randn(4))
