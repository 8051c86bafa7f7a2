"""Executables that are kept answer for the model, code and options that they were made for, and for no other."""

import json

import numpy as np
import pytest
import torch
from attrs import evolve
from shifted_interface import run_python, shifted_project
from torch import nn

from pypoplar import FLOAT, FileLoadError, Graph, InOut, Input, Output, Vector, Vertex, popops, poptorch
from pypoplar.executable import executable_file
from pypoplar.poptorch.executor import building, kept_model, model_key
from pypoplar.poptorch.executor.code_texts import code_texts
from pypoplar.poptorch.lowering.lowering_table import TABLE
from pypoplar.poptorch.options.model_options import CACHE_VARIABLE
from pypoplar.program import Execute

X = torch.tensor([[-1.0, 0.5, 2.0], [3.0, -0.25, 0.0]])


@pytest.fixture(autouse=True)
def made(monkeypatch):
    """What was made, lowered and compiled since: on few tiles."""
    done = []
    for name in ("new_graph", "lower_graph", "compileGraph"):
        kept = getattr(building, name)

        def called(*args, _name=name, _kept=kept, **kwargs):
            done.append(_name)
            return _kept(*args, **kwargs)

        monkeypatch.setattr(building, name, called)
    monkeypatch.setattr(building, "TILES", 8)
    return done


ALL = ["new_graph", "lower_graph", "compileGraph"]


class Net(nn.Module):
    """A module with a constant, a buffer, and a number."""

    def __init__(self, constant=(1.0, 2.0, 3.0), number=2.0, features=3, dtype=torch.float32):
        super().__init__()
        self.linear = nn.Linear(features, 2, dtype=dtype)
        self.dropout = nn.Dropout(0.5)
        self.constant, self.number = torch.tensor(constant, dtype=dtype), number
        self.register_buffer("seen", torch.zeros((), dtype=torch.int32))

    def forward(self, x, labels=None):
        y = self.linear(torch.relu(x * self.constant) * self.number)
        if labels is None:
            return y
        self.seen.add_(1)
        return y, nn.functional.cross_entropy(self.dropout(y), labels)


def options(folder, **others):
    chosen = poptorch.Options().enableExecutableCaching(folder)
    for name, arguments in others.items():
        getattr(chosen, name)(*arguments if isinstance(arguments, tuple) else (arguments,))
    return chosen


@pytest.fixture
def folder(tmp_path):
    """A cache that has `Net` for `X`."""
    torch.manual_seed(1)
    poptorch.inferenceModel(Net(), options(tmp_path)).compile(X)
    return tmp_path


def test_a_hit_is_neither_lowered_nor_compiled_and_gives_the_same(folder, made):
    torch.manual_seed(1)
    net = Net()
    made.clear()
    again = poptorch.inferenceModel(net, options(folder))
    torch.testing.assert_close(again(X), net(X))
    torch.testing.assert_close(again(2 * X), net(2 * X))
    assert made == []
    assert len(list(folder.iterdir())) == 1


def trained(folder, optimizer, steps=3, **chosen):
    """Losses and parameters of a model that trains, and the optimiser's state."""
    torch.manual_seed(1)
    net = Net()
    given = optimizer(net.parameters())
    model = poptorch.trainingModel(net, options(folder, randomSeed=3, **chosen), given)
    labels = torch.tensor([0, 1])
    count = model.options.Training.gradient_accumulation * model.options.device_iterations
    losses = [model(X.repeat(count, 1), labels.repeat(count))[1].tolist() for _ in range(steps)]
    for group in given.param_groups:
        group["lr"] = 0.5
    model.setOptimizer(given)
    losses.append(model(X.repeat(count, 1), labels.repeat(count))[1].tolist())
    state = given.state_dict()["state"]
    return losses, [one.tolist() for one in net.parameters()], {key: str(value) for key, value in state.items()}, model.rng_state


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.1, amsgrad=True),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.1, centered=True, momentum=0.5),
    "poptorch_sgd": lambda parameters: poptorch.optim.SGD(
        parameters, lr=0.1, momentum=0.9, use_combined_accum=True, loss_scaling=8.0
    ),
    "lamb": lambda parameters: poptorch.optim.LAMB(parameters, lr=0.1),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_hit_trains_as_the_model_that_was_compiled(kind, tmp_path, made):
    """Also its optimiser's states, which its host reads and writes, and another learning rate."""
    first = trained(tmp_path, OPTIMIZERS[kind])
    assert made == ALL
    made.clear()
    assert trained(tmp_path, OPTIMIZERS[kind]) == first
    assert made == []


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_what_the_host_keeps_of_an_optimiser_is_what_lowering_told_it(kind, tmp_path):
    """Numbers by their formulas, states and counts, for other numbers than those that it was compiled for, too."""

    def built():
        torch.manual_seed(1)
        net = Net()
        given = OPTIMIZERS[kind](net.parameters())
        chosen = options(tmp_path)
        chosen.Training.gradientAccumulation(2)
        model = poptorch.trainingModel(net, chosen, given)
        model.compile(X.repeat(2, 1), torch.tensor([0, 1]).repeat(2))
        update = model._built.update
        for group in given.param_groups:
            group["lr"] = 0.3
        return update.to_json(), update.numbers(given), update.described()

    assert built() == built()


@pytest.mark.parametrize("kind", ["momentum", "adamw"])
def test_a_hit_and_a_loaded_executable_build_no_graph(kind, tmp_path, monkeypatch):
    labels = torch.tensor([0, 1])

    def made():
        net = Net()
        return poptorch.trainingModel(net, options(tmp_path), OPTIMIZERS[kind](net.parameters()))

    model = made()
    model.compile(X, labels)
    model.save(tmp_path / "file", export_model=False)
    monkeypatch.setattr(Graph, "__init__", lambda *_, **__: pytest.fail("a graph was built"))
    made()(X, labels)
    loaded = made()
    loaded.loadExecutable(tmp_path / "file")
    loaded(X, labels)


@pytest.fixture
def verified(tmp_path_factory, monkeypatch):
    """The executables of files that are verified; marks of those before are in a folder of the test's own."""
    done = []
    verify = executable_file.verify
    monkeypatch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path_factory.mktemp("marks")))
    monkeypatch.setattr(executable_file, "verify", lambda executable: (done.append(executable), verify(executable)))
    return done


def exchanged(kept):
    """What reports tell of exchanges."""
    told = [(one.names, one.phase, one.variables, one.messages.tolist()) for one in kept.executable.exchanges]
    return told, [one.account.bytes_sent.tolist() for one in kept.executable.exchanges]


def test_what_was_compiled_here_or_verified_once_is_not_verified_again(tmp_path, verified):
    folder = tmp_path / "models"
    poptorch.inferenceModel(Net(), options(folder)).compile(X)
    (path,) = folder.iterdir()
    poptorch.inferenceModel(Net(), options(folder))(X)
    assert verified == []
    kept = kept_model.KeptModel.deserialize(path.read_bytes())
    other = evolve(kept, made_for="another model").serialize()
    for _ in range(2):
        assert exchanged(kept_model.KeptModel.deserialize(other)) == exchanged(kept)
        assert len(verified) == 1


def test_another_pypoplar_or_cache_verifies_again(tmp_path, verified, monkeypatch):
    folder = tmp_path / "models"
    poptorch.inferenceModel(Net(), options(folder)).compile(X)
    content = next(folder.iterdir()).read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(kept_model.cache, "fingerprint", lambda *_: "other sources")
        kept_model.KeptModel.deserialize(content)
    assert len(verified) == 1
    monkeypatch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path / "other"))
    kept_model.KeptModel.deserialize(content)
    assert len(verified) == 2


def test_a_file_that_others_may_write_to_is_always_verified(tmp_path, verified):
    """It might change between its digest and its reading."""
    folder = tmp_path / "models"
    poptorch.inferenceModel(Net(), options(folder)).compile(X)
    (path,) = folder.iterdir()
    path.chmod(0o666)
    for count in (1, 2):
        poptorch.inferenceModel(Net(), options(folder)).compile(X)
        assert len(verified) == count


def test_a_mark_does_not_let_a_changed_executable_pass(tmp_path, verified, caplog, made):
    """Neither one whose digest is wrong, nor one whose digest is right and whose numbers are not."""
    folder = tmp_path / "models"
    poptorch.inferenceModel(Net(), options(folder)).compile(X)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    poptorch.inferenceModel(Net(), options(folder))(X)
    assert "damaged, or no executable of a model" in caplog.text
    kept = kept_model.KeptModel.deserialize(whole)
    kept.executable.program[0, 0] = 10_000
    path.write_bytes(kept.serialize())
    made.clear()
    poptorch.inferenceModel(Net(), options(folder))(X)
    assert made == ALL
    assert len(verified) == 1
    assert "row[0] is 10000: expected 0 to" in caplog.text


def test_what_reports_ask_for_is_read_when_the_file_is_gone(folder, verified):
    (path,) = folder.iterdir()
    content = path.read_bytes()
    kept_model.KeptModel.deserialize(content)
    with path.open("rb") as file:
        kept = kept_model.KeptModel.read(file)
    path.unlink()
    assert len(verified) == 1
    assert len(kept.executable.exchanges) > 0
    assert kept.serialize() == content


def told_otherwise(change):
    def keep(path, kept, _keep=kept_model.keep):
        told = json.loads(kept.optimizer)
        change(told)
        _keep(path, evolve(kept, optimizer=json.dumps(told)))

    return keep


DAMAGES = {
    "no such formula": lambda told: told["written"][0].update(lr=["other"]),
    "no such number": lambda told: told["written"][0].update(lr=["itself", "momenta"]),
    "a formula of other parameters": lambda told: told["written"][0].update(lr=["rest"]),
    "no such parameter": lambda told: told["states"][0].__setitem__(4, [["other", [2, 3]]]),
    "a parameter of another shape": lambda told: told["states"][0][4][0].__setitem__(1, [3, 2]),
    "a parameter that is left out": lambda told: told["states"][0][4].pop(),
    "another handle": lambda told: told["states"][0].__setitem__(1, "linear.weight"),
    "another type": lambda told: told["states"][0].__setitem__(2, True),
    "no states": lambda told: told.pop("states"),
    "a state is left out": lambda told: told["states"].pop(),
    "a number is left out": lambda told: told["written"][0].pop("lr"),
    "a count is left out": lambda told: told["counts"].pop(),
    "another number of groups": lambda told: told["written"].append({}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_does_not_say_how_a_model_trains_is_refused(damage, tmp_path, monkeypatch):
    monkeypatch.setattr(kept_model, "keep", told_otherwise(DAMAGES[damage]))

    def made():
        net = Net()
        return poptorch.trainingModel(net, options(tmp_path), OPTIMIZERS["adamw"](net.parameters()))

    made().compile(X, torch.tensor([0, 1]))
    with pytest.raises(FileLoadError, match="damaged: how the model trains is not there"):
        made().compile(X, torch.tensor([0, 1]))


def test_a_hit_has_the_anchors_and_known_results_of_the_model(tmp_path, made):
    class Model(nn.Module):
        def forward(self, x):
            return {"sum": torch.relu(x).sum(), "plain": 3, "known": torch.ones(2), "none": None, "two": (x + 1, [x.shape[0]])}

    def call():
        chosen = options(tmp_path, anchorTensor=("inner", "relu:0"), deviceIterations=2)
        model = poptorch.inferenceModel(Model(), chosen)
        return str(model(X)), model.getAnchoredTensor("inner").tolist()

    first = call()
    made.clear()
    assert call() == first
    assert made == []


def test_models_that_call_the_host_are_lowered_and_not_compiled(tmp_path, made):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.on_host = poptorch.CPU(lambda x: x * 3, "triple")

        def forward(self, x):
            return self.on_host(x) + 1

    module = Model()
    for _ in range(2):
        made.clear()
        assert poptorch.inferenceModel(module, options(tmp_path))(X).tolist() == (X * 3 + 1).tolist()
    assert made == ["new_graph", "lower_graph"]


def other_entry(monkeypatch):
    """The attack: relu becomes tanh."""
    monkeypatch.setitem(TABLE, torch.ops.aten.relu.default, lambda ctx, x: popops.tanh(ctx.graph, x.placed(), ctx.program))


def other_defaults(monkeypatch):
    monkeypatch.setattr(torch, "get_default_dtype", lambda: torch.float64)


def precision(monkeypatch):
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "medium")


CHANGES = {
    "constant": ({"net": {"constant": (1.0, 2.0, 4.0)}}, None),
    "constant of the other zero": ({"net": {"constant": (1.0, 2.0, -0.0)}}, None),
    "number": ({"net": {"number": 2.5}}, None),
    "number in its last bit": ({"net": {"number": 2.0000000000000004}}, None),
    "shape": ({"x": X[:1]}, None),
    "dtype": ({"net": {"dtype": torch.float16}, "x": X.half()}, None),
    "labels": ({"labels": torch.tensor([0, 1])}, None),
    "deviceIterations": ({"deviceIterations": 2}, None),
    "outputMode": ({"outputMode": poptorch.OutputMode.Sum}, None),
    "partials": ({"x": X, "set": ("partialsTypeMatMuls", "half")}, None),
    "memory": ({"setAvailableMemoryProportion": ({"IPU0": 0.1},)}, None),
    "stochastic rounding": ({"rounding": True}, None),
    "exceptions": ({"exceptions": True}, None),
    "stable norms": ({"enableStableNorm": True}, None),
    "synthetic": ({"enableSyntheticData": True}, None),
    "anchor": ({"anchorTensor": ("inner", "relu:0")}, None),
    "chip": ({"useOfflineIpuTarget": 1}, None),
    "engine options": ({"engine": {"pypoplar.races": "elements"}}, None),
    "environment": ({}, lambda patch: patch.setenv("POPLAR_ENGINE_OPTIONS", '{"pypoplar.races": "elements"}')),
    "tiles": ({}, lambda patch: patch.setattr(building, "TILES", 4)),
    "sources": ({}, lambda patch: patch.setattr(model_key, "CODE", ("other", model_key.CODE[1]))),
    "codelets": ({}, lambda patch: patch.setattr(model_key, "CODE", (model_key.CODE[0], "other"))),
    "interface": ({}, lambda patch: patch.setattr(model_key, "saved_layout", lambda: "other")),
    "version of PyTorch": ({}, lambda patch: patch.setattr(torch, "__version__", "2.13.1")),
    "version of NumPy": ({}, lambda patch: patch.setattr(np, "__version__", "3.0")),
    "default type": ({}, other_defaults),
    "precision": ({}, precision),
    "deterministic": ({}, lambda patch: patch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True)),
    "entry": ({}, other_entry),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_a_program_makes_another_one(change, folder, made, monkeypatch):
    given, patch = CHANGES[change]
    given = dict(given)
    net, x = Net(**given.pop("net", {})), given.pop("x", X)
    labels = given.pop("labels", None)
    rounding, exceptions, engine, popart = (given.pop(name, None) for name in ("rounding", "exceptions", "engine", "set"))
    chosen = options(folder, **given)
    if rounding:
        chosen.Precision.enableStochasticRounding(True)
    if exceptions:
        chosen.Precision.enableFloatingPointExceptions(True)
    if engine:
        chosen._Popart.setEngineOptions(engine)
    if popart:
        chosen._Popart.set(*popart)
    if patch is not None:
        patch(monkeypatch)
    made.clear()
    poptorch.inferenceModel(net, chosen).compile(x, *([] if labels is None else [labels]))
    assert made == ALL
    assert len(list(folder.iterdir())) == 2


TRAINING = {
    "kind": {"optimizer": OPTIMIZERS["momentum"]},
    "settings": {"optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.1, nesterov=True, momentum=0.5, dampening=0)},
    "parameters": {"optimizer": lambda parameters: torch.optim.SGD(list(parameters)[:1], lr=0.1)},
    "gradientAccumulation": {"optimizer": OPTIMIZERS["sgd"], "accumulated": 2},
}


@pytest.mark.parametrize("change", TRAINING)
def test_whatever_changes_training_makes_another_program(change, tmp_path, made):
    def compiled(optimizer, accumulated=1):
        net = Net()
        chosen = options(tmp_path)
        chosen.Training.gradientAccumulation(accumulated)
        model = poptorch.trainingModel(net, chosen, optimizer(net.parameters()))
        model.compile(X.repeat(accumulated, 1), torch.tensor([0, 1]).repeat(accumulated))

    compiled(OPTIMIZERS["sgd"])
    compiled(lambda parameters: torch.optim.SGD(parameters, lr=0.2))
    assert made == ALL, "the learning rate is given to the device"
    made.clear()
    compiled(**TRAINING[change])
    assert made == ALL


def test_weights_seeds_and_names_are_not_compiled(folder, made):
    """They are given to the device, or are the host's."""
    torch.manual_seed(2)
    made.clear()
    net = Net()
    again = poptorch.inferenceModel(net, options(folder, randomSeed=9, modelName="other", logDir="x"))
    torch.testing.assert_close(again(X), net(X))
    assert made == []


class Scale(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]
    factor: FLOAT

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = self.x[i] * self.factor


FACTOR = [2.0]


def _register(factor):
    @poptorch.registerCustomOp("KeptScale", reference=lambda x: x * factor)
    def scale(graph, inputs, attributes, prog, name):
        y = graph.clone(inputs[0])
        scales = graph.addComputeSet(name)
        fields = {"x": inputs[0].flatten(), "y": y.flatten(), "factor": factor + FACTOR[0]}
        graph.setTileMapping(graph.addVertex(scales, Scale, fields), 0)
        prog.add(Execute(scales))
        return [y]


class Scaled(nn.Module):
    def forward(self, x):
        return poptorch.custom_op([x], "KeptScale", "custom.ops", 1, example_outputs=[x])[0]


def test_operators_of_a_program_are_part_of_the_key(tmp_path, monkeypatch):
    """With what they take from around them: closures, and values of their module."""

    def call():
        return poptorch.inferenceModel(Scaled(), options(tmp_path))(X).tolist()

    _register(1.0)
    assert call() == (X * 3).tolist()
    assert call() == (X * 3).tolist()
    assert len(list(tmp_path.iterdir())) == 1
    _register(2.0)
    assert call() == (X * 4).tolist()
    monkeypatch.setitem(globals(), "FACTOR", [4.0])
    assert call() == (X * 6).tolist()
    assert len(list(tmp_path.iterdir())) == 3


def test_code_is_told_apart_by_all_that_it_uses():
    def made(value):
        def function(x, more=value):
            return [one * value for one in (x, more, FACTOR)]

        return function

    class First(Vertex):
        y: InOut[Vector[FLOAT]]

    class Second(Vertex):
        y: InOut[Vector[FLOAT]]

    values = [1, 1.0, "1", None, True, (1,), [1], {1: 2}, {1}, torch.ones(1), torch.ones(1).half(), np.ones(1), FLOAT, torch.half]
    functions = [made(value) for value in [*values, First, Second, made(1), made(2), torch.relu, popops.add, nn.Linear(1, 1)]]
    texts = [code_texts([function]) for function in functions]
    assert len(set(texts)) == len(texts)
    assert texts == [code_texts([function]) for function in functions]
    assert code_texts([made(1)]) == code_texts([made(1)])


def test_a_saved_model_is_refused_where_an_entry_is_another(tmp_path, monkeypatch):
    model = poptorch.inferenceModel(Net())
    model.compile(X)
    model.save(tmp_path / "file", export_model=False)
    poptorch.inferenceModel(Net()).loadExecutable(tmp_path / "file")
    other_entry(monkeypatch)
    with pytest.raises(FileLoadError, match="was saved for another model"):
        poptorch.inferenceModel(Net()).loadExecutable(tmp_path / "file")


def test_damaged_files_of_the_cache_are_made_again(folder, made, caplog):
    (file,) = folder.iterdir()

    def made_again(content):
        file.write_bytes(content)
        made.clear()
        poptorch.inferenceModel(Net(), options(folder)).compile(X)
        assert made == ALL
        assert "cannot be used and is made again" in caplog.text
        return file.read_bytes()

    whole = made_again(file.read_bytes()[:100])  # it names the line that compiled it
    for content in (b"", whole[:-1], whole[:60] + b"x" + whole[61:], b"PK\3\4"):
        assert made_again(content) == whole


SCRIPT = """
import sys, torch
from pypoplar import poptorch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
print(poptorch.inferenceModel(Model())(torch.tensor([-1.0, 1.0])).tolist())
"""


def test_an_executable_of_other_sources_does_not_answer(tmp_path):
    """The lowering of relu becomes that of tanh: in another process, with the same cache."""
    shifted_project(tmp_path)
    command = ["-c", f"import os; os.environ[{CACHE_VARIABLE!r}] = {str(tmp_path / 'kept')!r}\n{SCRIPT}"]
    first = run_python(tmp_path, *command)
    assert (first.returncode, first.stdout) == (0, "[0.0, 1.0]\n"), first.stderr
    entry = tmp_path / "pypoplar" / "poptorch" / "lowering" / "nonlinearities.py"
    text = entry.read_text()
    assert text.count("_applied(ctx, Type.RELU, input)") == 1
    entry.write_text(text.replace("_applied(ctx, Type.RELU, input)", "_applied(ctx, Type.TANH, input)"))
    second = run_python(tmp_path, *command)
    assert second.returncode == 0, second.stderr
    assert second.stdout == f"{torch.tensor([-1.0, 1.0]).tanh().tolist()}\n"
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_large_files_may_unpack_to_more_than_small_ones(folder, monkeypatch):
    monkeypatch.setattr("pypoplar.poptorch.executor.kept_model.UNPACKED_LIMIT", 1)
    (path,) = folder.iterdir()
    assert kept_model.KeptModel.deserialize(path.read_bytes()).made_for
    monkeypatch.setattr("pypoplar.poptorch.executor.kept_model.MOST_UNPACKED", 0)
    with pytest.raises(FileLoadError, match="unpacks to"):
        kept_model.KeptModel.deserialize(path.read_bytes())
