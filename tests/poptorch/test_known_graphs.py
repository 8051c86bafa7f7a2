"""What is known of a graph answers for the exported program that it was made of, and for no other."""

import pytest
import torch
from attrs import evolve
from torch import nn

from pypoplar import poptorch
from pypoplar.poptorch.capture import CaptureError, capturing
from pypoplar.poptorch.executor import building
from pypoplar.poptorch.executor.known_graphs import exported_key, facts_text
from pypoplar.poptorch.executor.known_graphs.captured_facts import GraphFacts, PlainResult
from pypoplar.poptorch.executor.known_graphs.graph_memory import GraphMemory
from pypoplar.poptorch.lowering.lowering_table import TABLE

WORDS, LABELS = torch.tensor([[1, 2, 3], [4, 0, 2]]), torch.tensor([1, 0])


@pytest.fixture(autouse=True)
def traced(tmp_path, monkeypatch):
    """Which graphs have been traced since, with what is known of graphs in a directory of the test's."""
    done = []
    kept = capturing.trace_joint

    def called(*args):
        done.append(type(args[0]).__name__)
        return kept(*args)

    monkeypatch.setattr(capturing, "trace_joint", called)
    monkeypatch.setattr(building, "TILES", 4)
    monkeypatch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path / "code"))
    return done


class Words(nn.Module):
    """Indices that the host checks, some of them computed; a constant, a buffer, results that are no tensors, and two layers."""

    def __init__(self, constant=(0, 1, 0), tied=False, scale=1.0):
        super().__init__()
        self.table, self.first, self.second = nn.Embedding(6, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        if tied:
            self.second.weight = self.first.weight
        self.constant, self.scale = torch.tensor(constant), scale
        self.register_buffer("seen", torch.zeros((), dtype=torch.int32))

    def forward(self, words, labels):
        self.seen.add_(1)
        moved = words[:, :] + self.constant
        rows = self.table(moved) + self.table(words.flip(1).view(-1)).view(2, 3, 4)
        logits = self.second(torch.tanh(self.first(rows.mean(1) * self.scale)))
        return {"loss": nn.functional.cross_entropy(logits, labels), "count": 3, "logits": logits, "none": None}


def trained(folder, change=lambda module: None, options=lambda chosen: None, **given):
    """Three steps of a model: results, weights, names, and how it refuses an index."""
    torch.manual_seed(1)
    module = Words(**given)
    change(module)
    chosen = poptorch.Options().enableExecutableCaching(folder).randomSeed(3)
    options(chosen)
    trains = [one for one in module.parameters() if one.requires_grad]
    model = poptorch.trainingModel(module, chosen, torch.optim.SGD(trains, lr=0.1, momentum=0.5))
    results = [model(WORDS, LABELS) for _ in range(3)]
    refusals = []
    for words, labels in ((WORDS + 2, LABELS), (WORDS - 1, LABELS), (WORDS, LABELS + 3)):
        with pytest.raises(IndexError) as refused:
            model(words, labels)
        refusals.append(str(refused.value))
    numbers = [(one["loss"].tolist(), one["count"], one["logits"].tolist(), one["none"]) for one in results]
    return numbers, [one.tolist() for one in module.state_dict().values()], model.getTensorNames(), refusals


def test_a_second_start_traces_nothing_and_is_the_same_in_all_that_a_user_sees(tmp_path, traced):
    first = trained(tmp_path / "models")
    assert len(traced) == 1
    traced.clear()
    assert trained(tmp_path / "models") == first
    assert traced == []


def freeze(module):
    module.first.weight.requires_grad_(False)


CHANGES = {
    "constant": {"constant": (1, 1, 0)},
    "number": {"scale": 1.0000000000000002},
    "tied weights": {"tied": True},
    "frozen weights": {"change": freeze},
    "type of a buffer": {"change": lambda module: module.register_buffer("seen", torch.zeros((), dtype=torch.int64))},
    "options": {"options": lambda chosen: chosen.Precision.enableStochasticRounding(True)},
    "outputs": {"options": lambda chosen: chosen.outputMode(poptorch.OutputMode.Sum)},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_model_that_is_another_is_traced_and_gives_what_it_gives_without_memory(change, tmp_path, traced):
    trained(tmp_path / "models")
    traced.clear()
    changed = trained(tmp_path / "models", **CHANGES[change])
    assert len(traced) == 1
    assert changed == trained(tmp_path / "others", **CHANGES[change])


def test_hooks_of_gradients_are_refused_though_the_graph_is_known(tmp_path):
    trained(tmp_path / "models")
    with pytest.raises(CaptureError, match="hook of its gradient"):
        trained(tmp_path / "models", lambda module: module.first.weight.register_hook(lambda gradient: gradient * 2))


def test_a_known_graph_without_an_executable_is_compiled_again(tmp_path, traced):
    first = trained(tmp_path / "models")
    for file in (tmp_path / "models").iterdir():
        file.unlink()
    traced.clear()
    assert trained(tmp_path / "models") == first
    assert len(traced) == 1


def test_a_damaged_memory_is_made_again(tmp_path, traced):
    first = trained(tmp_path / "models")
    for file in (tmp_path / "code").rglob("*.code"):
        content = bytearray(file.read_bytes())
        content[-2] ^= 1
        file.write_bytes(content)
    traced.clear()
    assert trained(tmp_path / "models") == first
    assert len(traced) == 1


class Traced(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def key_of(module, x):
    settings = poptorch.inferenceModel(module)._settings
    return exported_key.exported_key(torch.export.export(module, (x,), strict=False), module, False, settings)


def test_graphs_that_functions_of_the_program_decide_are_not_remembered(monkeypatch):
    """Operators of its own, entries of its own, and modes that it is in."""
    x = torch.ones(2)
    assert key_of(nn.ReLU(), x) is not None
    program = torch.export.export(nn.ReLU(), (x,), strict=False)
    call = next(node for node in program.graph.nodes if node.op == "call_function")
    call.target = torch.ops.poptorch.custom_operation.default
    settings = poptorch.inferenceModel(nn.ReLU())._settings
    assert exported_key.exported_key(program, nn.ReLU(), False, settings) is None
    with Traced():
        assert exported_key._decided_elsewhere(torch.export.export(nn.ReLU(), (x,), strict=False))
    monkeypatch.setitem(TABLE, torch.ops.aten.relu.default, lambda ctx, x: x)
    assert key_of(nn.ReLU(), x) is None


def test_the_key_has_lines_and_their_text_versions_and_gradients(monkeypatch):
    x, module = torch.ones(2, 3), nn.Linear(3, 3)
    key = key_of(module, x)
    assert key == key_of(nn.Linear(3, 3), x), "weights are given to the device"
    with torch.no_grad():
        assert key_of(module, x) != key
    frozen = nn.Linear(3, 3).requires_grad_(False)
    assert key_of(frozen, x) != key
    origin = exported_key.origin_of
    monkeypatch.setattr(exported_key, "origin_of", lambda node: evolve(origin(node), scope="elsewhere"))
    assert key_of(module, x) != key
    monkeypatch.setattr(exported_key, "origin_of", origin)
    monkeypatch.setattr(torch, "__version__", "0.0")
    assert key_of(module, x) != key


def test_facts_that_have_no_text_are_not_kept(tmp_path, monkeypatch):
    """A result that is no tensor, number or text."""
    kept = []
    monkeypatch.setattr(GraphMemory, "keep", lambda _, facts: kept.append(facts))
    trained(tmp_path / "models")
    (facts,) = kept
    assert isinstance(facts, GraphFacts)
    assert facts_text.to_text(facts) is not None
    assert facts_text.to_text(evolve(facts, results=(PlainResult(object()),))) is None
