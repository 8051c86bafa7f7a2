"""Files of models are read without running anything that they say, unless that is asked for; damaged ones are refused."""

import ast
import io
import pickle
import random
import zipfile
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.serialization import safe_globals

import pypoplar
from pypoplar import FileLoadError, PoplarTypeError, poptorch
from pypoplar.poptorch.executor.model_file import FORMAT

MARKS = []


def marks(text):
    """What a hostile file runs."""
    MARKS.append(text)
    return text


class Hostile:
    def __reduce__(self):
        return marks, ("run",)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x):
        return self.linear(x)


@pytest.fixture(autouse=True)
def no_marks():
    MARKS.clear()


X = torch.arange(12.0).reshape(4, 3)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model with its module in a file, and the executor that wrote it."""
    path = tmp_path_factory.mktemp("saved") / "model.poptorch"
    inference = poptorch.inferenceModel(Net())
    inference(X)
    inference.save(path)
    return path, inference


def changed(saved, path, **entries):
    """A copy of the file in which entries are others."""
    torch.save({**torch.load(saved[0], weights_only=True), **entries}, path)
    return path


def pickled(value):
    file = io.BytesIO()
    torch.save(value, file)
    return torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)


def test_a_module_is_restored_only_if_its_code_may_be_run(saved):
    path, inference = saved
    with pytest.raises(
        FileLoadError, match=r"has a module, which is restored by running code .*run_code_of_file=True.*loadExecutable"
    ):
        poptorch.load(path)
    again = poptorch.load(path, lambda options: options.modelName("again"), run_code_of_file=True)
    assert again.options.model_name == "again"
    assert torch.equal(again(X), inference(X))
    with pytest.raises(PoplarTypeError, match="run_code_of_file is True or False"):
        poptorch.load(path, run_code_of_file="yes")


def test_what_the_user_told_pytorch_to_be_safe_is_restored(saved, monkeypatch):
    path, inference = saved
    content = io.BytesIO(torch.load(path, weights_only=True)["exported"].numpy().tobytes())
    named = torch.serialization.get_unsafe_globals_in_checkpoint(content)
    with safe_globals([pickle.Unpickler(io.BytesIO()).find_class(*name.rsplit(".", 1)) for name in named]):
        assert torch.equal(poptorch.load(path)(X), inference(X))


@pytest.mark.parametrize("entry", ["kept", "arguments", "random_state", "format"])
def test_no_entry_of_a_file_is_run(saved, tmp_path, entry):
    path = changed(saved, tmp_path / "hostile", **{entry: Hostile()})
    for read in (
        poptorch.load,
        poptorch.inferenceModel(Net()).loadExecutable,
        lambda file: poptorch.load(file, run_code_of_file=True),
    ):
        with pytest.raises(FileLoadError, match=r"it needs .*marks"):
            read(path)
    assert MARKS == []


def test_a_hostile_module_runs_only_where_that_was_asked_for(saved, tmp_path):
    path = changed(saved, tmp_path / "hostile", exported=pickled((Hostile(), None, poptorch.Options())))
    inference = poptorch.inferenceModel(Net())
    inference.loadExecutable(path)
    with pytest.raises(FileLoadError, match="marks"):
        poptorch.load(path)
    assert MARKS == []
    with pytest.raises(FileLoadError, match="something else in the place of a module"):
        poptorch.load(path, run_code_of_file=True)
    assert MARKS == ["run"]


def test_files_of_other_forms_are_refused(saved, tmp_path):
    file = tmp_path / "file"
    contents = [
        b"",
        b"x",
        pickle.dumps(Hostile()),
        pickle.dumps({"format": FORMAT}),
        b"PK\3\4" + bytes(99),
        saved[0].read_bytes()[:-99],
    ]
    for content in contents:
        file.write_bytes(content)
        with pytest.raises(FileLoadError, match="is no file of a model"):
            poptorch.load(file)
    for value in (3, {"format": "pypoplar.poptorch model 2"}, nn.Linear(2, 2)):
        torch.save(value, file)
        with pytest.raises(FileLoadError, match="is no file of a model"):
            poptorch.load(file)
    for wrong in ({"more": 1}, {"kept": torch.zeros(3)}, {"arguments": ()}, {"arguments": (1, 2)}, {"random_state": ["a"]}):
        with pytest.raises(FileLoadError, match="is no whole file of a model"):
            poptorch.load(changed(saved, file, **wrong))
    with pytest.raises(FileLoadError):
        poptorch.load(tmp_path)
    assert MARKS == []


def test_damaged_files_are_refused_or_give_the_model(saved, tmp_path):
    """Bytes changed at random places, of the file and of its members."""
    whole, file, draw = saved[0].read_bytes(), tmp_path / "file", random.Random(1)
    inference = poptorch.inferenceModel(Net())
    for _ in range(25):
        content = bytearray(whole)
        for _ in range(draw.randrange(1, 4)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        file.write_bytes(content)
        if inference.isCompiled():
            inference = poptorch.inferenceModel(Net())
        try:
            inference.loadExecutable(file)
        except FileLoadError:
            continue


def test_a_file_has_no_values_of_the_callers_arguments(tmp_path):
    inference = poptorch.inferenceModel(Net())
    inference.compile(torch.full((4, 3), 7.25))
    inference.save(tmp_path / "file", export_model=False)
    ((x,), _) = torch.load(tmp_path / "file", weights_only=True)["arguments"]
    assert x.tolist() == torch.zeros(4, 3).tolist()
    assert zipfile.is_zipfile(tmp_path / "file")


EVALUATES = {  # modules of pypoplar that run text or restore objects, and what
    "cli.py": "runs a script that the user names",
    "poptorch/script_runner.py": "runs a script that the user names",
    "prediction/script_prediction.py": "runs a script that the user names",
    "prediction/sweeps.py": "tries whether a function and its cases can be pickled, and restores nothing",
    "codelet/python/python_form.py": "code made of the typed form of a codelet",
    "codelet/language/annotations.py": "annotations of the program's own classes",
    "poptorch/lowering/walks/user_lines.py": "a call at the user's line, of constant text",
    "onnx/model_command.py": "arrays of numbers that the user names, and no objects",
    "engine/processes/peers.py": "what processes of one program tell each other",
    "engine/processes/errors_told.py": "errors that processes of one program tell each other",
    "popdist/instance_runs.py": "the account of a run that processes of one program tell each other",
    "popops/elements/map_codelet.py": "code made of an expression of popops",
    "poptorch/capture/side_effects.py": "compares the state of NumPy's random numbers, and reads nothing",
    "poptorch/executor/model_file.py": "weights only, unless the user asks for more",
}
RUNS = {"eval", "exec", "pickle", "cPickle", "dill", "marshal", "shelve", "runpy", "yaml", "joblib", "cloudpickle"}
LOADS = {("torch", "load"), ("np", "load"), ("numpy", "load"), ("torch", "package"), ("torch", "jit")}


def runs(tree):
    """Whether a module calls what runs text, or names what restores objects."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="eval" | "exec")):
                return True
            case ast.Import(names=names) if any(alias.name.split(".")[0] in RUNS for alias in names):
                return True
            case ast.ImportFrom(module=str(name)) if name.split(".")[0] in RUNS:
                return True
            case ast.Attribute(value=ast.Name(id=module), attr=name) if (module, name) in LOADS:
                return True
            case ast.keyword(arg="allow_pickle", value=value) if not (isinstance(value, ast.Constant) and value.value is False):
                return True
    return False


def test_no_other_module_runs_text_or_restores_objects():
    """What reads a file must not do so by running it: whoever adds a module here says what it runs."""
    home = Path(pypoplar.__file__).parent
    found = {str(path.relative_to(home)) for path in home.rglob("*.py") if runs(ast.parse(path.read_text(encoding="utf-8")))}
    assert found == EVALUATES.keys()
