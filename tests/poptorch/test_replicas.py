"""Replicas of a model: they train as one with the batches of all, and batches, results and states are in PopTorch's order."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from pypoplar import poptorch
from pypoplar.errors import CodeletArithmeticError, FileLoadError, InvalidOption, MissingFeature, PoplarIndexError, TensorShapeError
from pypoplar.interface.header_slots import Slot
from pypoplar.poptorch import CommGroupType, MeanReductionStrategy, OutputMode, ReductionType

OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "SGD with momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.1),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, amsgrad=True),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01, momentum=0.5, centered=True),
    "LAMB": lambda parameters: poptorch.optim.LAMB(parameters, lr=0.01, weight_decay=0.1),
    "clipped": lambda parameters: poptorch.optim.AdamW(parameters, lr=0.01, max_grad_norm=0.1),
}


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    """A small machine, which is compiled for quickly."""
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 4)


class Classifier(nn.Module):
    """A small network whose forward pass has its loss beside its output."""

    def __init__(self, loss=nn.functional.cross_entropy):
        super().__init__()
        self.inner, self.outer, self.loss = nn.Linear(6, 4), nn.Linear(4, 3), loss

    def forward(self, x, labels=None):
        y = self.outer(torch.tanh(self.inner(x)))
        return y if labels is None else (y, self.loss(y, labels))


class Numbered(nn.Module):
    """Gives back what it is given, and a number for each batch."""

    def forward(self, x):
        return x * 2, x.sum()


def samples(count):
    generator = torch.Generator().manual_seed(count)
    return torch.randn(count, 6, generator=generator), torch.randint(0, 3, (count,), generator=generator)


def options(replicas=1, iterations=1, accumulated=1, mode=OutputMode.All):
    chosen = poptorch.Options().replicationFactor(replicas).deviceIterations(iterations).outputMode(mode)
    chosen.Training.gradientAccumulation(accumulated)
    return chosen


def trained(model, chosen, make, data, calls=2):
    """A training model, called with data, and what the last call gave."""
    optimizer = make(list(model.parameters()))
    training = poptorch.trainingModel(model, chosen, optimizer)
    for _ in range(calls):
        results = training(*data)
    return training, optimizer, results


def assert_alike(one, other, relative=2e-5):
    for (name, mine), theirs in zip(one.named_parameters(), other.parameters(), strict=True):
        wanted = theirs.detach().numpy()
        np.testing.assert_allclose(mine.detach().numpy(), wanted, rtol=relative, atol=2e-6, err_msg=name)


def of_each(training, handle):
    """What each replica has under a handle."""
    return training._built.compiled.engine.readTensor(handle)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_replicas_train_as_one_with_the_batches_of_all(name):
    torch.manual_seed(1)
    model = Classifier()
    other, data = copy.deepcopy(model), samples(2 * 2 * 4)
    training, mine, _ = trained(model, options(2, 2), OPTIMIZERS[name], data)
    _, theirs, _ = trained(other, options(1, 2), OPTIMIZERS[name], data)
    assert_alike(model, other)
    states, wanted = mine.state_dict()["state"], theirs.state_dict()["state"]
    assert states.keys() == wanted.keys()
    for number, state in states.items():
        for key, value in state.items():
            np.testing.assert_allclose(value, wanted[number][key], rtol=2e-4, atol=2e-6, err_msg=key)
    for parameter, _ in model.named_parameters():
        first, second = of_each(training, parameter)
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("strategy", MeanReductionStrategy)
def test_a_mean_is_divided_once_whatever_the_strategy(strategy):
    torch.manual_seed(2)
    model, other = Classifier(), None
    other, data = copy.deepcopy(model), samples(4 * 2 * 2)
    chosen = options(4, 1, 2)
    chosen.Training.setMeanAccumulationAndReplicationReductionStrategy(strategy)
    trained(model, chosen, OPTIMIZERS["SGD"], data)
    trained(other, options(), OPTIMIZERS["SGD"], data)
    assert_alike(model, other)


def test_a_sum_of_gradients_is_that_of_all_batches_of_all_replicas():
    torch.manual_seed(3)
    model = Classifier()
    other, data = copy.deepcopy(model), samples(2 * 3 * 2)
    chosen = options(2, 1, 3)
    chosen.Training.accumulationAndReplicationReductionType(ReductionType.Sum)
    trained(model, chosen, lambda parameters: torch.optim.SGD(parameters, lr=0.01), data)
    trained(other, options(), lambda parameters: torch.optim.SGD(parameters, lr=0.06), data)
    assert_alike(model, other)


def ignoring(y, labels):
    return nn.functional.cross_entropy(y, labels, ignore_index=0)


def weighing(y, labels):
    return nn.functional.cross_entropy(y, labels, weight=torch.tensor([0.2, 1.0, 5.0]))


@pytest.mark.parametrize("loss", [ignoring, weighing])
def test_a_mean_over_unequal_batches_is_that_of_the_batches_means_as_in_poptorch(loss):
    torch.manual_seed(4)
    model = Classifier(loss)
    alone, together = copy.deepcopy(model), copy.deepcopy(model)
    x, _ = samples(8)
    labels = torch.tensor([0, 0, 0, 1, 2, 1, 2, 2])
    trained(model, options(2), OPTIMIZERS["SGD"], (x, labels), calls=1)
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.1)
    for half in (slice(0, 4), slice(4, 8)):
        (alone(x[half], labels[half])[1] / 2).backward()
    optimizer.step()
    assert_alike(model, alone)
    trained(together, options(), OPTIMIZERS["SGD"], (x, labels), calls=1)
    assert not torch.allclose(model.outer.weight, together.outer.weight, rtol=1e-3)


@pytest.mark.parametrize(("accumulated", "collectives"), [(1, 2), (3, 1)])
def test_gradients_are_added_up_by_one_collective_for_each_type(accumulated, collectives):
    """Sums of accumulated gradients are floats, of halves, too."""

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.last = nn.Linear(6, 4).half(), nn.Linear(4, 4).half(), nn.Linear(4, 3)

        def forward(self, x, labels):
            y = self.last(self.second(torch.relu(self.first(x.half()))).float())
            return y, nn.functional.cross_entropy(y, labels)

    torch.manual_seed(5)
    model = Mixed()
    other, data = copy.deepcopy(model), samples(2 * accumulated * 4)
    training, _, _ = trained(model, options(2, 1, accumulated), OPTIMIZERS["SGD"], data)
    trained(other, options(1), OPTIMIZERS["SGD"], data)
    assert_alike(model.float(), other.float(), relative=2e-3)
    steps = [step.name for step in training.getReport().execution.steps]
    rings = [name for name in steps if name.endswith("/toNext")]
    assert len(rings) == 2 * collectives, steps  # a reduction and a gathering each


def test_running_means_of_halves_do_not_overflow_across_replicas():
    class Large(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(4, dtype=torch.half))

        def forward(self, x):
            return poptorch.identity_loss((self.weight * x).sum(), reduction="none")

    def make(parameters):
        return poptorch.optim.SGD(parameters, lr=1e-4, accum_type=torch.float16, use_combined_accum=False)

    for accumulated in (1, 2):
        model = Large()
        trained(model, options(4, 1, accumulated), make, (torch.full((4 * accumulated, 4), 40000.0, dtype=torch.half),), calls=1)
        np.testing.assert_allclose(model.weight.detach().float().numpy(), -4.0, rtol=2e-3)


def test_results_of_a_batch_come_one_replica_after_the_other():
    x = torch.arange(3 * 2 * 2).float().reshape(12, 1)
    doubled, sums = poptorch.inferenceModel(Numbered(), options(2, 3))(x)
    assert torch.equal(doubled, 2 * x)
    assert sums.tolist() == [1, 5, 9, 13, 17, 21]


@pytest.mark.parametrize(("mode", "period", "wanted"), [("Final", 1, [9, 11]), ("Sum", 1, [20, 26]), ("EveryN", 2, [3, 5, 9, 11])])
def test_each_replica_gives_what_the_output_mode_says(mode, period, wanted):
    """Batches of one sample: replica 0 takes 0, 2, 4, ..., of which each iteration has one."""
    values = torch.tensor([0.0, 1.0, 3.0, 5.0, 8.0, 9.0, 9.0, 11.0])
    chosen = options(2, 4).outputMode(OutputMode[mode], *([period] if mode == "EveryN" else []))
    _, sums = poptorch.inferenceModel(Numbered(), chosen)(values.reshape(8, 1))
    assert sums.tolist() == wanted


def test_accumulated_batches_come_before_replicas_and_anchors_are_in_the_same_order():
    torch.manual_seed(6)
    model = Classifier()
    other, (x, labels) = copy.deepcopy(model), samples(2 * 3 * 2)
    chosen = (
        options(2, 1, 3)
        .anchorTensor("weights", "Gradient___outer.bias")
        .anchorTensor("last", "Gradient___outer.bias", OutputMode.Final)
    )
    training, _, (outputs, losses) = trained(model, chosen, lambda them: torch.optim.SGD(them, lr=0.0), (x, labels), calls=1)
    wanted = [other(some, their) for some, their in zip(x.split(2), labels.split(2), strict=True)]
    np.testing.assert_allclose(outputs, torch.cat([y for y, _ in wanted]).detach(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(losses, torch.stack([loss for _, loss in wanted]).detach(), rtol=1e-5)
    gradients = torch.cat([torch.autograd.grad(loss, other.outer.bias)[0] for _, loss in wanted])
    np.testing.assert_allclose(training.getAnchoredTensor("weights"), gradients, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(training.getAnchoredTensor("last"), gradients[-6:], rtol=1e-5, atol=1e-6)


def test_an_anchored_gradient_is_that_of_each_replica_before_they_are_added_up():
    torch.manual_seed(7)
    model = Classifier()
    other, (x, labels) = copy.deepcopy(model), samples(4)
    chosen = options(2, mode=OutputMode.Final).anchorTensor("own", "Gradient___outer.bias")
    training, _, _ = trained(model, chosen, OPTIMIZERS["SGD"], (x, labels), calls=1)
    wanted = [torch.autograd.grad(other(x[half], labels[half])[1], other.outer.bias)[0] for half in (slice(0, 2), slice(2, 4))]
    np.testing.assert_allclose(training.getAnchoredTensor("own"), torch.cat(wanted), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "order"), [(CommGroupType.Consecutive, [0, 0, 1, 1, 2, 2, 3, 3]), (CommGroupType.Orthogonal, [0, 1, 0, 1, 2, 3, 2, 3])]
)
def test_replicas_of_a_group_are_given_the_same_batches(kind, order):
    chosen = options(4, 2).inputReplicaGrouping(2, kind)
    x = torch.arange(4).float().reshape(4, 1)
    doubled, _ = poptorch.inferenceModel(Numbered(), chosen)(x)
    assert doubled.flatten().tolist() == [2.0 * each for each in order]


def test_known_results_are_those_of_every_replica():
    class Constant(nn.Module):
        def forward(self, x):
            return x, torch.ones(2)

    _, known = poptorch.inferenceModel(Constant(), options(2, 3))(torch.zeros(6, 1))
    assert known.tolist() == [1.0] * 12
    _, known = poptorch.inferenceModel(Constant(), options(2, 3, mode=OutputMode.Sum))(torch.zeros(6, 1))
    assert known.tolist() == [3.0] * 4


def test_results_without_a_sum_are_refused_by_their_place_where_sums_are_wanted():
    class Flags(nn.Module):
        def forward(self, x):
            return x, x > 0

    with pytest.raises(InvalidOption, match=r"OutputMode\.Sum: output/1 is of type torch\.bool, which has no sum"):
        poptorch.inferenceModel(Flags(), options(2, 3, mode=OutputMode.Sum))(torch.zeros(6, 1))


def test_a_data_loader_has_batches_for_all_replicas_but_one_for_those_of_a_group():
    data = torch.utils.data.TensorDataset(torch.arange(96.0))
    chosen = options(4, 3, 2)
    assert poptorch.DataLoader(chosen, data, batch_size=2).combinedBatchSize == 48
    grouped = chosen.clone().inputReplicaGrouping(2, CommGroupType.Orthogonal)
    assert poptorch.DataLoader(grouped, data, batch_size=2).combinedBatchSize == 24


def test_dropouts_of_replicas_differ_and_a_state_of_random_numbers_gives_them_again():
    class Dropping(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(64))

        def forward(self, x):
            y = nn.functional.dropout(x * self.weight, 0.5)
            return y, poptorch.identity_loss(y.sum(), reduction="none")

    model = Dropping()
    training = poptorch.trainingModel(model, options(4), torch.optim.SGD(model.parameters(), lr=0.0))
    x = torch.ones(4, 64)
    first, state = training(x)[0], training.rng_state
    masks = {tuple(row.tolist()) for row in first}
    second = training(x)[0]
    assert len(masks | {tuple(row.tolist()) for row in second}) == 8
    training.rng_state = state
    assert torch.equal(training(x)[0], second)


class Counting(nn.Module):
    """Adds up what it is given, in a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(1))

    def forward(self, x):
        self.total += x.sum()
        return self.total.clone()


def test_buffers_that_change_are_refused_unless_replicas_may_have_their_own():
    with pytest.raises(InvalidOption, match=r"broadcastBuffers\(False\)\. The model changes total, .* 2 replicas"):
        poptorch.inferenceModel(Counting(), options(2))(torch.ones(2))
    model = Counting()
    inference = poptorch.inferenceModel(model, options(2).broadcastBuffers(False))
    x = torch.tensor([9.0, 2.0])
    for _ in range(3):
        totals = inference(x)
    assert totals.tolist() == [27.0, 6.0]
    assert model.total.item() == 27.0


def test_a_weight_that_changes_on_the_host_brings_the_hosts_buffers_to_all_replicas():
    model = Counting()
    model.weight = nn.Parameter(torch.ones(1))
    model.forward = lambda x: Counting.forward(model, x) * model.weight
    inference = poptorch.inferenceModel(model, options(2).broadcastBuffers(False))
    x = torch.tensor([9.0, 2.0])
    assert inference(x).tolist() == [9.0, 2.0]
    with torch.no_grad():
        model.weight += 1
    assert inference(x).tolist() == [2 * (9.0 + 9.0), 2 * (9.0 + 2.0)]


def test_a_call_that_fails_leaves_weights_states_and_buffers_of_all_replicas_as_they_were():
    class Failing(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))
            self.register_buffer("total", torch.zeros(1))

        def forward(self, x):
            self.total += x.sum()
            return self.total.clone(), poptorch.identity_loss((self.weight / x).sum(), reduction="none")

    results = []
    for fails in (False, True):
        model = Failing()
        chosen = options(2, 2).broadcastBuffers(False)
        chosen.Precision.enableFloatingPointExceptions(True)
        training = poptorch.trainingModel(model, chosen, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))
        x = torch.tensor([1.0, 2.0, 3.0, 4.0])
        training(x)
        if fails:
            with pytest.raises(CodeletArithmeticError):
                training(torch.tensor([1.0, 1.0, 2.0, 0.0]))
        results.append([training(x)[0].tolist(), model.weight.tolist(), of_each(training, "total").tolist()])
    assert results[0] == results[1]


def test_weights_that_change_on_the_host_go_to_all_replicas():
    model = Classifier()
    inference = poptorch.inferenceModel(model, options(2))
    x, _ = samples(2)
    inference(x)
    with torch.no_grad():
        model.outer.bias += 1.0
    np.testing.assert_allclose(inference(x), model(x).detach(), rtol=1e-5, atol=1e-6)


def test_an_executable_of_another_number_of_replicas_is_refused(tmp_path):
    model, (x, labels) = Classifier(), samples(4)
    training = poptorch.trainingModel(model, options(2), torch.optim.SGD(model.parameters(), lr=0.1))
    training.compileAndExport(tmp_path / "two", x, labels, export_model=False)
    for chosen in (options(4), options(8).autoRoundNumIPUs(), options(1), options(1, 2), options(2, 3)):
        other = Classifier()
        again = poptorch.trainingModel(other, chosen, torch.optim.SGD(other.parameters(), lr=0.1))
        with pytest.raises(FileLoadError, match="another model, batch, optimizer or options"):
            again.loadExecutable(tmp_path / "two")
    other = copy.deepcopy(model)
    again = poptorch.trainingModel(other, options(2), torch.optim.SGD(other.parameters(), lr=0.1))
    again.loadExecutable(tmp_path / "two")
    assert torch.equal(again(x, labels)[1], training(x, labels)[1])
    assert torch.equal(other.outer.weight, model.outer.weight)


def test_replicas_of_two_ipus_train_as_one():
    class Split(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Linear(6, 4), nn.Linear(4, 3)

        def forward(self, x, labels):
            with poptorch.Block(ipu_id=0):
                y = torch.tanh(self.inner(x))
            with poptorch.Block(ipu_id=1):
                y = self.outer(y)
                return y, nn.functional.cross_entropy(y, labels)

    torch.manual_seed(8)
    model = Split()
    other, data = copy.deepcopy(model), samples(2 * 3 * 2)
    trained(model, options(2, 1, 3), OPTIMIZERS["Adam"], data)
    trained(other, options(1, 1, 3), OPTIMIZERS["Adam"], data)
    assert_alike(model, other)


def test_parameters_and_buffers_of_no_dimension_train_on_replicas():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(2.0))
            self.register_buffer("total", torch.tensor(0.0))

        def forward(self, x):
            self.total += x.sum()
            return poptorch.identity_loss((self.scale * x).sum(), reduction="none")

    model = Scaled()
    data = (torch.tensor([1.0, 3.0]),)
    _, optimizer, _ = trained(model, options(2).broadcastBuffers(False), OPTIMIZERS["SGD with momentum"], data, calls=1)
    assert model.scale.item() == pytest.approx(2.0 - 0.1 * (2.0 + 0.1 * 2.0))
    assert model.total.item() == 1.0
    assert optimizer.state[model.scale]["momentum_buffer"].item() == pytest.approx(2.2)


def test_the_report_and_the_cycles_are_those_of_the_first_replica():
    training, _, _ = trained(Classifier(), options(2), OPTIMIZERS["SGD"], samples(4))
    engine = training._built.compiled.engine
    assert training.cycleCount() == engine.getReport(0).execution.totalCycles.total > 0


def test_an_index_out_of_range_is_told_with_its_batch_among_those_of_all_replicas():
    model, (x, labels) = Classifier(), samples(4)
    training = poptorch.trainingModel(model, options(2), torch.optim.SGD(model.parameters(), lr=0.1))
    labels[3] = 7
    with pytest.raises(PoplarIndexError, match=r"is 7 at \[1\] of batch 1"):
        training(x, labels)


def test_batches_that_do_not_divide_among_replicas_are_told():
    with pytest.raises(TensorShapeError, match=r"3 replicas, so its first dimension is a multiple of 6"):
        poptorch.inferenceModel(Numbered(), options(3, 2))(torch.zeros(8, 1))
    grouped = options(4).inputReplicaGrouping(2, CommGroupType.Consecutive)
    with pytest.raises(TensorShapeError, match=r"2 groups of replicas, so its first dimension is a multiple of 2"):
        poptorch.inferenceModel(Numbered(), grouped)(torch.zeros(3, 1))


def test_groups_divide_the_replicas():
    with pytest.raises(InvalidOption, match="groups of 3 do not divide the 4 replicas"):
        options(4).inputReplicaGrouping(3, CommGroupType.Consecutive)
    later = options(4).inputReplicaGrouping(4, CommGroupType.Consecutive).replicationFactor(2)
    with pytest.raises(InvalidOption, match="groups of 4 do not divide the 2 replicas"):
        poptorch.inferenceModel(Numbered(), later)
    with pytest.raises(InvalidOption, match="groups of 4 do not divide the 2 replicas"):
        poptorch.DataLoader(later, torch.utils.data.TensorDataset(torch.zeros(8)))


def test_ipus_of_all_replicas_are_a_power_of_two_or_rounded():
    x = torch.arange(3.0).reshape(3, 1)
    with pytest.raises(InvalidOption, match=r"3 replicas of a model of 1 IPU take 3 IPUs"):
        poptorch.inferenceModel(Numbered(), options(3))(x)
    doubled, _ = poptorch.inferenceModel(Numbered(), options(3).autoRoundNumIPUs())(x)
    assert torch.equal(doubled, 2 * x)


@pytest.mark.parametrize("accumulated", [1, 3])
def test_velocities_that_take_up_gradients_have_those_of_all_replicas_once(accumulated):
    def make(parameters):
        return poptorch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.1, use_combined_accum=True)

    torch.manual_seed(9)
    model = Classifier()
    other, data = copy.deepcopy(model), samples(2 * 2 * accumulated * 2)
    training, mine, _ = trained(model, options(2, 2, accumulated), make, data, calls=3)
    _, theirs, _ = trained(other, options(1, 2, accumulated), make, data, calls=3)
    assert_alike(model, other)
    for parameter, its in zip(model.parameters(), other.parameters(), strict=True):
        velocities = (optimizer.state[one]["momentum_buffer"] for optimizer, one in ((mine, parameter), (theirs, its)))
        np.testing.assert_allclose(*velocities, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(*of_each(training, "outer.weight"))


def test_weights_that_are_rounded_at_random_stay_the_same_on_all_replicas():
    class Halves(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Linear(6, 40).half(), nn.Linear(40, 3).half()

        def forward(self, x, labels):
            hidden = nn.functional.dropout(torch.relu(self.inner(x.half())), 0.5)
            y = self.outer(hidden)
            return y, nn.functional.cross_entropy(y.float(), labels)

    torch.manual_seed(10)
    data, weights = samples(4 * 3 * 2), []
    first = Halves()
    for rounds in (True, True, False):
        model, chosen = copy.deepcopy(first), options(4, 3).randomSeed(5)
        chosen.Precision.enableStochasticRounding(rounds)
        training, _, _ = trained(model, chosen, OPTIMIZERS["SGD with momentum"], data, calls=3)
        for name in ("inner.weight", "outer.bias"):
            values = of_each(training, name)
            np.testing.assert_array_equal(values, np.broadcast_to(values[0], values.shape))
        weights.append(model.inner.weight.detach().clone())
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    states = [replica.state.tables[Slot.RANDOM] for replica in training._built.compiled.engine._replicas]
    assert len({state.tobytes() for state in states}) == 1  # without rounding nobody seeds them


def test_random_numbers_of_rounding_differ_between_replicas_but_for_updates():
    model = Classifier().half()
    chosen = options(2)
    chosen.Precision.enableStochasticRounding(True)
    x, labels = samples(4)
    training, _, _ = trained(model, chosen, OPTIMIZERS["SGD"], (x.half(), labels), calls=1)
    first, second = (replica.state.tables[Slot.RANDOM].tobytes() for replica in training._built.compiled.engine._replicas)
    assert first != second


def test_weights_of_each_group_of_replicas_are_refused_and_all_else_of_a_parameter_is_its_own():
    model = Classifier().inner
    inference = poptorch.inferenceModel(model, options(2))
    with pytest.raises(MissingFeature, match=r"weight\.replicaGrouping: pypoplar does not have weights of each group"):
        inference.weight.replicaGrouping(CommGroupType.Orthogonal, 2, poptorch.VariableRetrievalMode.OnePerGroup)
    assert torch.equal(inference.weight, model.weight)
    assert inference.weight.shape == (4, 6)
    assert repr(inference.weight) == repr(model.weight)
    assert poptorch.inferenceModel(model).weight is model.weight
