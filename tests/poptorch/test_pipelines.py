"""Stages of a pipeline work on different micro-batches at once, and give to the bit what they give in turn."""

import functools
import random
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from torch import fx, nn

from pypoplar import FLOAT, Graph, GraphMemoryAllocationError, InvalidOption, poptorch
from pypoplar.poptorch.executor.building import make_device
from pypoplar.poptorch.lowering.ipu_placement import handed_out
from pypoplar.poptorch.pipelines.checkpoints import intervals
from pypoplar.poptorch.pipelines.pipeline_units import IpusOfElements
from pypoplar.poptorch.pipelines.stage_segments import NotPipelined
from pypoplar.poptorch.pipelines.stash_rings import HeldByTiles
from pypoplar.poptorch.user_log import logger

WIDTH, ROWS = 4, 2
SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    """Small machines, which are compiled for quickly."""
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 2)


class Never(Exception):
    """What is not raised."""


@pytest.fixture(autouse=True)
def all_in_pipelines(monkeypatch):
    """That a model cannot be pipelined is an error here, but in tests of just that."""
    monkeypatch.setattr("pypoplar.poptorch.executor.building.NotPipelined", Never)


class Drawn(nn.Module):
    """A random network of some stages: layers with states, skip connections, dropouts, inputs that several stages read."""

    def __init__(self, seed, stages, training):
        super().__init__()
        drawing = random.Random(seed)
        torch.manual_seed(seed)
        kinds = [lambda: nn.Linear(WIDTH, WIDTH), nn.ReLU, lambda: nn.Dropout(0.5), lambda: nn.BatchNorm1d(WIDTH), nn.Tanh]
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, WIDTH), *(drawing.choice(kinds)() for _ in range(drawing.randrange(3))))
            for _ in range(stages)
        )
        self.skips = [drawing.randrange(-1, stage) if stage else None for stage in range(stages)]
        self.reads_input = [drawing.random() < 0.3 for _ in range(stages)]
        self.early = drawing.random() < 0.3
        self.marked = [drawing.random() < 0.5 for _ in range(stages)]
        self.training_model = training

    def forward(self, x, labels):
        given, before = x, []
        for number, stage in enumerate(self.stages):
            with poptorch.Block(f"stage{number}", ipu_id=number):
                skip = self.skips[number]
                x = stage[0](x)
                x = stage[1:](poptorch.recomputationCheckpoint(x) if self.marked[number] else x)
                x = x if skip in (None, -1) else x + before[skip]
                if self.reads_input[number] and number:
                    x = x * given
                before.append(x)
                if number == len(self.stages) - 1:
                    loss = nn.functional.cross_entropy(x, labels)
        results = (x, before[0]) if self.early else (x,)
        return (*results, loss)


def descent(parameters):
    return poptorch.optim.SGD(parameters, lr=0.2, momentum=0.9, use_combined_accum=False)


def run(strategy, module, batches, *, training, **more):
    """What calls give and leave, as one list of tensors, and the compiled model.

    `more` may have a `mode` of outputs, how many `calls` of so many `times`, the `stages`, what sets further options,
    `set_options`, and what makes an `optimizer` for parameters.
    """
    mode, stages, set_options = more.get("mode", poptorch.OutputMode.All), more.get("stages"), more.get("set_options")
    options = poptorch.Options().setExecutionStrategy(strategy(*(stages or ())))
    options.outputMode(*(mode if isinstance(mode, tuple) else (mode,)))
    options.autoRoundNumIPUs(True).randomSeed(7)
    if set_options is not None:
        set_options(options)
    if training:
        options.Training.gradientAccumulation(batches)
        model = poptorch.trainingModel(module, options, more.get("optimizer", descent)(module.parameters()))
    else:
        model = poptorch.inferenceModel(module, options.deviceIterations(batches))
    generator = torch.Generator().manual_seed(3)
    got = []
    for _ in range(more.get("calls", 2)):
        rows = batches * more.get("times", 1) * ROWS
        x = torch.randn(rows, WIDTH, generator=generator)
        got += model(x, torch.randint(WIDTH, (rows,), generator=generator))
    if training:
        model.copyWeightsToHost()
    return [*got, *(value.clone() for value in module.state_dict().values())], model


def assert_alike(make, batches, **given):
    """In a pipeline and in turn the same results; gives both models."""
    (piped, pipeline), (turned, turns) = (
        run(strategy, make(), batches, **given) for strategy in (poptorch.PipelinedExecution, poptorch.ShardedExecution)
    )
    assert len(piped) == len(turned)
    for one, other in zip(piped, turned, strict=True):
        assert torch.equal(one, other)
    return pipeline, turns


@pytest.mark.parametrize(
    ("seed", "stages", "training"), [(0, 2, False), (1, 2, True), pytest.param(3, 3, True, marks=pytest.mark.slow)]
)
def test_drawn_networks_give_in_a_pipeline_what_they_give_in_turn(seed, stages, training):
    assert_alike(lambda: Drawn(seed, stages, training), 2 * stages, training=training)


@pytest.mark.slow
@examples(20)
@given(SEEDS, st.integers(2, 4), st.integers(0, 3), st.booleans(), st.integers(0, 4))
def test_results_and_weights_of_random_networks_are_those_of_stages_in_turn(seed, stages, more, training, kind):
    batches = (2 * stages - 1 if training else stages) + more
    set_options = functools.partial(recomputed, kind=kind)
    assert_alike(lambda: Drawn(seed, stages, training), batches, training=training, set_options=set_options)


class Staged(nn.Module):
    """Three blocks, the first and the last of which share a layer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, labels):
        with poptorch.Block("A"):
            x = torch.relu(self.a(x))
        with poptorch.Block("B"):
            x = torch.relu(self.b(x))
        with poptorch.Block("C"):
            x = self.a(x)
            return x, nn.functional.cross_entropy(x, labels)


def on_two_ipus():
    return [poptorch.Stage("A").ipu(0), poptorch.Stage("B").ipu(1), poptorch.Stage("C").ipu(0)]


def anchored(options):
    options.anchorTensor("gradient", "Gradient___b.weight")
    options.anchorTensor("first", "a/linear:0")


def test_stages_of_one_ipu_share_weights_and_inner_tensors_come_back():
    assert_alike(Staged, 6, training=True, stages=on_two_ipus(), set_options=anchored, calls=1)


class Recurrent(nn.Module):
    """A loop that fills a sequence row by row, and a loss in each stage, whose gradients begin with one scaling."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.steps, self.last = nn.LSTM(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, labels):
        with poptorch.Block("A", ipu_id=0):
            y = self.steps(x.unsqueeze(1))[0].squeeze(1)
            first = nn.functional.mse_loss(y, x)
        with poptorch.Block("B", ipu_id=1):
            y = self.last(y)
            return y, poptorch.identity_loss(first + nn.functional.cross_entropy(y, labels), "none")


def test_loops_and_losses_of_stages_before_the_last_overlap():
    def scaled(parameters):
        return poptorch.optim.SGD(parameters, lr=0.2, momentum=0.9, use_combined_accum=True, loss_scaling=4.0)

    assert_alike(Recurrent, 4, training=True, calls=1, optimizer=scaled)


def recomputed(options, kind=3):
    options._Popart.set("autoRecomputation", kind)


class Deep(nn.Module):
    """Stages with much that gradients take, running statistics, chance, and a function of the host."""

    def __init__(self, stages=2):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(self.stage() for _ in range(stages))
        self.host = poptorch.CPU(lambda x: x * 2, "twice")

    def stage(self):
        deep = [layer for _ in range(3) for layer in (nn.Linear(WIDTH, WIDTH), nn.Tanh())]
        return nn.Sequential(*deep, nn.BatchNorm1d(WIDTH), nn.Dropout())

    def forward(self, x, labels):
        for number, layers in enumerate(self.layers):
            with poptorch.Block(f"stage{number}", ipu_id=number):
                y = layers(x)
                x = y * self.host(y.detach()) if number == 0 else y
                if number == len(self.layers) - 1:
                    return x, nn.functional.cross_entropy(x, labels)


def stashed_bytes(model):
    """What all stashes together take."""
    variables = model.getReport().compilation.loweredVariables
    return sum(one.size for one in variables if "/stash, " in one.name)


@pytest.mark.parametrize("stages", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_stages_that_are_computed_again_give_the_same_from_smaller_stashes(stages):
    kept, keeping = run(poptorch.PipelinedExecution, Deep(stages), 2 * stages, training=True)
    again, recomputing = run(poptorch.PipelinedExecution, Deep(stages), 2 * stages, training=True, set_options=recomputed)
    assert all(torch.equal(one, other) for one, other in zip(kept, again, strict=True))
    assert stashed_bytes(recomputing) <= stashed_bytes(keeping) / 2


class Sections(nn.Module):
    """Equal layers, of which each second one's result is kept where the others are computed again, and one on another IPU."""

    def __init__(self, marked):
        super().__init__()
        torch.manual_seed(0)
        self.marked = marked
        self.stages = nn.ModuleList(nn.ModuleList(self.layer() for _ in range(count)) for count in (4, 1))

    def layer(self):
        return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.Tanh())

    def forward(self, x, labels):
        for number, layers in enumerate(self.stages):
            with poptorch.Block(f"stage{number}", ipu_id=number):
                for place, layer in enumerate(layers):
                    x = layer(x)
                    if place % 2 and self.marked:
                        x = poptorch.recomputationCheckpoint(x)
                if number == 1:
                    return x, nn.functional.cross_entropy(x, labels)


def test_what_a_model_marks_is_kept_and_what_lies_between_is_computed_again_when_it_is_needed():
    kept, keeping = run(poptorch.PipelinedExecution, Sections(True), 3, training=True, calls=1)
    again, recomputing = run(poptorch.PipelinedExecution, Sections(True), 3, training=True, calls=1, set_options=recomputed)
    assert all(torch.equal(one, other) for one, other in zip(kept, again, strict=True))
    stash = 3 * ROWS * WIDTH * 4  # of a tensor in FLOAT
    assert stashed_bytes(recomputing) == 3 * stash < stashed_bytes(keeping)  # the input and the results of two layers
    names = [step.name for step in recomputing.getReport().execution.steps]
    again = [place for place, name in enumerate(names) if name.startswith("stages/0/0/0/forward") and "matMul" in name][-1]
    assert any(name.startswith("stages/0/3/") and "/backward" in name for name in names[:again])


class Normed(nn.Module):
    """A stage of layers with norms, two of them with the same shapes, and another stage."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        deep = [layer for _ in range(3) for layer in (nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.Tanh())]
        self.stages = nn.ModuleList((nn.Sequential(*deep), nn.Linear(WIDTH, WIDTH)))

    def forward(self, x, labels):
        for number, layers in enumerate(self.stages):
            with poptorch.Block(f"stage{number}", ipu_id=number):
                x = layers(x)
                if number == 1:
                    return x, nn.functional.cross_entropy(x, labels)


class Averaging(nn.Module):
    """A layer that sets a buffer to a new tensor."""

    def __init__(self):
        super().__init__()
        self.register_buffer("average", torch.zeros(WIDTH))

    def forward(self, x):
        x = torch.sigmoid(x + self.average)
        self.average = 0.5 * self.average + x.sum(0)
        return x


class Averaged(Normed):
    """The same stages, of which both have such a layer."""

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, WIDTH), Averaging()) for _ in range(2))


@pytest.mark.parametrize("training", [False, True])
def test_stages_that_set_a_buffer_to_a_new_tensor_overlap(training):
    assert_alike(Averaged, 3, training=training)


def test_a_detach_is_handed_out_if_nothing_but_the_capture_takes_it():
    graph = fx.Graph()
    x = graph.placeholder("x")

    def detached(node, origin):
        found = graph.call_function(torch.ops.aten.detach.default, (node,))
        found.meta["origin"] = origin
        return found

    set_to, unused = detached(x, "a layer"), detached(x, "a layer")
    taken = detached(set_to, None)
    assert handed_out(taken)
    assert handed_out(set_to)
    assert not handed_out(unused)
    graph.call_function(torch.ops.aten.relu.default, (set_to,)).meta["origin"] = "a layer"
    assert not handed_out(set_to)


def steps_of_first_stage(model):
    """The names of what is done forward on the first IPU, as often as it stands in the program."""
    return [
        step.name for step in model.getReport().execution.steps if step.name.startswith("stages/0/") and "/forward" in step.name
    ]


def test_norms_alone_are_computed_again_where_options_say_so():
    kept, keeping = run(poptorch.PipelinedExecution, Normed(), 3, training=True)
    again, recomputing = run(
        poptorch.PipelinedExecution, Normed(), 3, training=True, set_options=functools.partial(recomputed, kind=2)
    )
    assert all(torch.equal(one, other) for one, other in zip(kept, again, strict=True))
    assert stashed_bytes(recomputing) < stashed_bytes(keeping)
    before, now = (Counter(steps_of_first_stage(model)) for model in (keeping, recomputing))
    more = [name for name, times in now.items() if times > before[name]]
    assert more
    assert not any("linear" in name for name in more)
    assert any("tanh" in name for name in more)


def test_what_lies_between_cheap_places_is_computed_again_where_options_say_so():
    kept, keeping = run(poptorch.PipelinedExecution, Normed(), 3, training=True)
    again, recomputing = run(
        poptorch.PipelinedExecution, Normed(), 3, training=True, set_options=functools.partial(recomputed, kind=1)
    )
    whole, all_again = run(poptorch.PipelinedExecution, Normed(), 3, training=True, set_options=recomputed)
    assert all(torch.equal(one, other) for one, other in zip(kept, again, strict=True))
    assert all(torch.equal(one, other) for one, other in zip(kept, whole, strict=True))
    assert stashed_bytes(all_again) < stashed_bytes(recomputing) < stashed_bytes(keeping)


class Halved(Normed):
    """A stage whose first results take the least as halves, which only a function of each element reads; and a long one."""

    def __init__(self):
        super().__init__()
        self.wide, self.other = (nn.Parameter(torch.rand(WIDTH)) for _ in range(2))
        self.narrow = nn.Linear(WIDTH, 1)

    def forward(self, x, labels):
        with poptorch.Block("stage0", ipu_id=0):
            x = self.narrow((self.stages[0][0](x).half().float() + self.wide).tanh())
        with poptorch.Block("stage1", ipu_id=1):
            x = x + self.other
            for _ in range(22):
                x = x.tanh()
            return x, nn.functional.cross_entropy(x, labels)


def test_what_is_put_aside_of_a_loop_over_elements_is_not_computed_again():
    kept, keeping = run(poptorch.PipelinedExecution, Halved(), 3, training=True, calls=1)
    again, recomputing = run(
        poptorch.PipelinedExecution, Halved(), 3, training=True, calls=1, set_options=functools.partial(recomputed, kind=1)
    )
    assert all(torch.equal(one, other) for one, other in zip(kept, again, strict=True))
    assert stashed_bytes(recomputing) < stashed_bytes(keeping)
    assert [name for name in steps_of_first_stage(recomputing) if "matMul" in name] == ["stages/0/0/forward/linear/matMul"]


@pytest.mark.parametrize(
    ("count", "ends"),
    [
        (1, [1]),
        (8, [2, 3, 4, 5, 6, 7, 8]),
        (25, [4, 7, 9, 10, *range(11, 26)]),
    ],
)
def test_intervals_of_places_become_shorter(count, ends):
    found = intervals(count)
    assert [end for _, end in found] == ends
    assert [begin for begin, _ in found] == [0, *ends[:-1]]


@pytest.mark.slow
def test_without_marks_a_stage_keeps_its_inputs_alone_and_gives_the_same():
    (marked, marking), (plain, without) = (
        run(poptorch.PipelinedExecution, Sections(one), 3, training=True, set_options=recomputed) for one in (True, False)
    )
    assert all(torch.equal(one, other) for one, other in zip(marked, plain, strict=True))
    assert stashed_bytes(marking) == 3 * stashed_bytes(without)
    assert_alike(lambda: Sections(True), 3, training=True, set_options=recomputed)


TOKENS, WORDS = 3, 6


class Bert(nn.Module):
    """A small BERT: embeddings, two layers with dropout on an IPU each, and a head with the weight of the embeddings."""

    def __init__(self, ipus, head, dropout):
        super().__init__()
        torch.manual_seed(0)
        self.ipus, self.head = ipus, head
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.first = nn.LayerNorm(WIDTH)
        make = nn.TransformerEncoderLayer
        self.layers = nn.ModuleList(make(WIDTH, 2, 2 * WIDTH, dropout, "gelu", batch_first=True) for _ in range(2))

    def forward(self, words, labels):
        with poptorch.Block("embeddings", ipu_id=0):
            x = self.first(self.words(words) + self.places(torch.arange(TOKENS)))
            x = self.layers[0](x)
        with poptorch.Block("layer", ipu_id=1 % self.ipus):
            x = self.layers[1](x)
        with poptorch.Block("head", ipu_id=self.head % self.ipus):
            scores = x @ self.words.weight.T
            return scores, nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "set_options", "dropout"), [(0, None, 0.0), (1, recomputed, 0.0), (0, recomputed, 0.1)], ids=["kept", "again", "drawn"]
)
def test_a_small_bert_in_a_pipeline_is_that_of_one_ipu_or_with_random_numbers_that_of_stages_in_turn(head, set_options, dropout):
    """What is drawn depends on where tensors lie, which is elsewhere on one IPU."""
    results = []
    for ipus, strategy in ((2 if dropout else 1, poptorch.ShardedExecution), (2, poptorch.PipelinedExecution)):
        options, module = poptorch.Options().setExecutionStrategy(strategy()), Bert(ipus, head, dropout)
        options.Training.gradientAccumulation(6)
        options.outputMode(poptorch.OutputMode.All).randomSeed(7)
        if set_options is not None:
            set_options(options)
        model = poptorch.trainingModel(module, options, poptorch.optim.AdamW(module.parameters(), lr=0.01))
        generator = torch.Generator().manual_seed(3)
        got = []
        for _ in range(2):
            words, labels = (torch.randint(WORDS, (6 * ROWS, TOKENS), generator=generator) for _ in range(2))
            got += model(words, labels)
        model.copyWeightsToHost()
        results.append([*got, *module.state_dict().values()])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def test_a_tile_has_a_stash_in_one_piece():
    graph = Graph(make_device(1).getTarget())
    whole = graph.addVariable(FLOAT, [2, 3], "whole")
    for element in range(6):
        graph.setTileMapping(whole.flatten()[element], element % 2)
    held = HeldByTiles.of(graph.freeze(), [whole])
    assert held.tiles.tolist() == [0, 1]
    places = held.places(graph, "stash", 2).places
    assert [[tuple(one) for one in tile] for tile in graph.getTileMapping(places)] == [[(0, 6)], [(6, 12)]]
    assert held.elements.slice(0, 3) == whole.flatten().subSample(2)


@examples(100)
@given(st.integers(0, 2**32 - 1))
def test_the_ipus_of_stretches_of_elements_are_those_of_their_elements(seed):
    random = np.random.default_rng(seed)
    begin = np.append(0, np.sort(random.choice(np.arange(1, 40), random.integers(0, 12), replace=False)))
    ipu = random.integers(0, 3, len(begin))
    first = random.integers(0, 40, random.integers(0, 5))
    last = first + random.integers(0, 15, len(first))
    wanted = {int(ipu[begin <= one][-1]) for low, high in zip(first, last, strict=True) for one in range(low, high + 1)}
    assert IpusOfElements(begin, ipu, np.flatnonzero(np.diff(ipu)) + 1).between(first, last) == wanted


class Watched(nn.Module):
    """Two stages, the second one of which calls a function of the host, which may fail."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.calls, self.fails = 0, 0
        self.host = poptorch.CPU(self.watch, "watch")

    def watch(self, x):
        self.calls += 1
        if self.calls == self.fails:
            raise ValueError("the host has had enough")
        return x * 2

    def forward(self, x, labels):
        with poptorch.Block("A", ipu_id=0):
            x = torch.relu(self.a(x))
        with poptorch.Block("B", ipu_id=1):
            x = self.b(x)
            return self.host(x.detach()), nn.functional.cross_entropy(x, labels)


def test_a_call_that_fails_in_a_pipeline_tells_batch_and_stage_and_changes_nothing():
    def twice(options):
        options.deviceIterations(2)

    results = []
    for fails in (False, True):
        module = Watched()
        _, model = run(poptorch.PipelinedExecution, module, 3, training=True, times=2, calls=1, set_options=twice)
        arguments = torch.ones(6 * ROWS, WIDTH), torch.zeros(6 * ROWS, dtype=torch.int64)
        if fails:
            module.calls, module.fails = 0, 5
            with pytest.raises(ValueError, match="had enough") as caught:
                model(*arguments)
            assert "failed in batch 5 of 6, device iteration 2 of 2, in stage 1 forward. " in caught.value.__notes__[0]
        results.append([*model(*arguments), *(value.clone() for value in module.state_dict().values())])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


@pytest.mark.parametrize(
    "mode",
    [
        (poptorch.OutputMode.EveryN, 3),
        pytest.param((poptorch.OutputMode.Sum,), marks=pytest.mark.slow),
        pytest.param((poptorch.OutputMode.Final,), marks=pytest.mark.slow),
    ],
    ids=lambda mode: mode[0].name,
)
def test_every_output_mode_gives_the_results_that_it_gives_in_turn(mode):
    assert_alike(lambda: Drawn(2, 2, False), 7 if len(mode) == 1 else 6, training=False, mode=mode)


def running_mean(options):
    options.Training.setMeanAccumulationAndReplicationReductionStrategy(poptorch.MeanReductionStrategy.Running)
    options.deviceIterations(2)


def replicated(options):
    options.replicationFactor(2).broadcastBuffers(False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("set_options", "combined", "times"),
    [(running_mean, False, 2), (None, True, 1), (replicated, False, 2)],
    ids=["running mean", "combined accumulation", "replicas"],
)
def test_gradients_add_up_in_every_way_as_in_turn(set_options, combined, times):
    def run_with(strategy):
        module = Drawn(2, 2, True)
        options = poptorch.Options().setExecutionStrategy(strategy()).outputMode(poptorch.OutputMode.All).randomSeed(1)
        options.Training.gradientAccumulation(4)
        if set_options is not None:
            set_options(options)
        optimizer = poptorch.optim.SGD(module.parameters(), lr=0.2, momentum=0.9, use_combined_accum=combined, loss_scaling=8.0)
        model = poptorch.trainingModel(module, options, optimizer)
        generator = torch.Generator().manual_seed(3)
        x = torch.randn(4 * times * ROWS, WIDTH, generator=generator)
        got = model(x, torch.randint(WIDTH, (4 * times * ROWS,), generator=generator))
        return [*got, *(value.clone() for value in module.state_dict().values())]

    piped, turned = (run_with(strategy) for strategy in (poptorch.PipelinedExecution, poptorch.ShardedExecution))
    assert len(piped) == len(turned)
    assert all(torch.equal(one, other) for one, other in zip(piped, turned, strict=True))


# Time


class Equal(nn.Module):
    """So many layers on each IPU, the last one's the same as the first one's."""

    def __init__(self, layers):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(count)) for count in layers)

    def forward(self, x, labels):
        for number, layers in enumerate(self.layers):
            with poptorch.Block(f"stage{number}", ipu_id=number):
                for layer in layers:
                    x = torch.tanh(layer(x))
        return x


def cycles_without_crossing(model):
    """Of a call: all steps, the latest clock, and those of each IPU; without steps in which something crosses."""
    execution = model.getReport().execution
    crossing = [step for step in execution.steps if step.global_exchange_cycles]
    between = sum(step.cycles for step in crossing)
    own = [sum(step.cycles_by_ipu[:-1, ipu].sum() for step in execution.steps if step not in crossing) for ipu in range(2)]
    return sum(step.cycles for step in execution.steps) - between, execution.totalCycles.total - between, own


def synthetic(options):
    options.enableSyntheticData(True)


@pytest.mark.parametrize(("stages", "batches"), [(2, 6), pytest.param(4, 8, marks=pytest.mark.slow)])
def test_equal_stages_take_as_many_turns_as_a_pipeline_has(stages, batches):
    models = assert_alike(lambda: Equal([1] * stages), batches, training=False, calls=1, set_options=synthetic)
    (_, piped, _), (turned, _, _) = map(cycles_without_crossing, models)
    assert piped == pytest.approx(turned * (batches + stages - 1) / (stages * batches), rel=0.01)


def test_a_pipeline_takes_as_long_as_its_slowest_stage():
    batches = 5
    models = assert_alike(lambda: Equal([1, 4]), batches, training=False, calls=1, set_options=synthetic)
    (_, piped, own), _ = map(cycles_without_crossing, models)
    assert piped == pytest.approx(own[1] + own[0] / batches, rel=0.01)


class EqualTraining(nn.Module):
    """As many layers on each IPU, whose gradients are equal, too: each stage begins with a parameter."""

    def __init__(self, stages, width, layers):
        super().__init__()
        torch.manual_seed(0)
        self.shifts = nn.ParameterList(nn.Parameter(torch.zeros(width)) for _ in range(stages))
        self.layers = nn.ModuleList(nn.ModuleList(nn.Linear(width, width) for _ in range(layers)) for _ in range(stages))

    def forward(self, x):
        for number, (shift, layers) in enumerate(zip(self.shifts, self.layers, strict=True)):
            with poptorch.Block(f"stage{number}", ipu_id=number):
                x = x + shift
                for layer in layers:
                    x = torch.tanh(layer(x))
                if number == len(self.shifts) - 1:
                    return poptorch.identity_loss(x, "sum")


def own_cycles(model, stages, leave_out):
    """What each IPU does by itself in a call, beside steps that a part of a name leaves out, and in which something crosses."""
    steps = [step for step in model.getReport().execution.steps if not step.global_exchange_cycles]
    return [
        sum(s.cycles_by_ipu[:-1, ipu].sum() for s in steps if not any(one in s.name for one in leave_out)) for ipu in range(stages)
    ]


@pytest.mark.slow
def test_equal_stages_that_train_take_as_many_turns_and_stashes_are_all_that_a_stage_does_more(monkeypatch):
    stages, batches, width = 4, 8, 64
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 16)
    models = []
    for strategy in (poptorch.PipelinedExecution, poptorch.ShardedExecution):
        options, module = poptorch.Options().setExecutionStrategy(strategy()), EqualTraining(stages, width, 4)
        options.enableSyntheticData(True).outputMode(poptorch.OutputMode.Final).Training.gradientAccumulation(batches)
        model = poptorch.trainingModel(module, options, torch.optim.SGD(module.parameters(), lr=0.1))
        model(torch.randn(batches * 16, width))
        models.append(model)
    once = ["/update/AddTo", "accumulate/zero"]  # an update is there once, whatever the number of micro-batches
    piped, turned = (own_cycles(model, stages, [*once, "stash"]) for model in models)
    assert piped == pytest.approx(turned, rel=0.01)
    bare, own = max(piped), max(own_cycles(models[0], stages, once))
    _, total, _ = cycles_without_crossing(models[0])
    update = own_cycles(models[0], stages, [])[0] - own_cycles(models[0], stages, once)[0]
    turns = (batches + stages - 1) / batches
    assert 0.99 * bare * turns <= total - update <= 1.01 * own * turns


# What cannot be


def test_a_stage_that_reads_from_a_later_one_is_refused_with_both_lines():
    stages = [poptorch.Stage("B").ipu(0), poptorch.Stage("A").ipu(1), poptorch.Stage("C").ipu(0)]
    with pytest.raises(
        InvalidOption, match=r"linear of b at .* is of stage 0 \(block 'B'\) and reads from stage 1 \(block 'A'\), relu"
    ):
        run(poptorch.PipelinedExecution, Staged(), 6, training=True, stages=stages)


def test_fewer_micro_batches_than_stages_are_refused():
    with pytest.raises(InvalidOption, match=r"deviceIterations must be .* stages \(3\) .* It is 2"):
        run(poptorch.PipelinedExecution, Staged(), 2, training=False, stages=on_two_ipus())
    with pytest.raises(InvalidOption, match=r"Training.gradientAccumulation must be .* stages \(5\) .* It is 4"):
        run(poptorch.PipelinedExecution, Staged(), 4, training=True, stages=on_two_ipus())


class Wide(nn.Module):
    """Stages that do little to many elements."""

    def __init__(self):
        super().__init__()
        self.factors = nn.ParameterList(nn.Parameter(torch.ones(())) for _ in range(2))

    def forward(self, x):
        for number, factor in enumerate(self.factors):
            with poptorch.Block(f"stage{number}", ipu_id=number):
                x = torch.tanh(x) * factor
                if number == 1:
                    return poptorch.identity_loss(x, "mean")


def test_a_stash_that_does_not_fit_is_named_with_its_stage_its_depth_and_the_tensor():
    options, module = poptorch.Options(), Wide()
    options.Training.gradientAccumulation(3)
    model = poptorch.trainingModel(module, options, torch.optim.SGD(module.parameters(), lr=0.1))
    with pytest.raises(GraphMemoryAllocationError, match=r"'stage 0 forward/stash, 3 deep, of forward/tanh/map' \d+"):
        model(torch.randn(3, 100_000))


class Remembers(nn.Module):
    """A buffer that changes forward, and that the gradient needs as it was."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.register_buffer("seen", torch.ones(WIDTH))
        self.a, self.b = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, labels):
        with poptorch.Block("A", ipu_id=0):
            y = self.a(x) * self.seen
            self.seen += y.detach().mean(0)
        with poptorch.Block("B", ipu_id=1):
            y = self.b(y)
            return y, nn.functional.cross_entropy(y, labels)


def test_what_cannot_overlap_runs_in_turn_and_a_warning_says_why(monkeypatch):
    told = []
    monkeypatch.setattr("pypoplar.poptorch.executor.building.NotPipelined", NotPipelined)
    monkeypatch.setattr(logger, "warning", lambda text, *arguments: told.append(text % arguments))
    pipeline, turns = assert_alike(Remembers, 4, training=True, calls=1)
    assert any("in turn" in text and "seen, which changes from micro-batch to micro-batch" in text for text in told)
    assert pipeline.cycleCount() == turns.cycleCount()
