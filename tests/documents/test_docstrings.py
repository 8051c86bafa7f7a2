"""The examples in docstrings and documents, all of them, do what they say."""

import doctest
import importlib
import importlib.util
from pathlib import Path
from types import FunctionType

import pytest

from pypoplar import INT, Engine, Graph, IPUModel
from pypoplar.program import PrintTensor

ROOT = Path(__file__).parents[2]
OF_PYTORCH = ROOT / "pypoplar" / "poptorch"  # which nothing imports where PyTorch is not installed
SOURCES = [
    path
    for path in sorted((ROOT / "pypoplar").rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
    and (OF_PYTORCH not in path.parents or importlib.util.find_spec("torch") is not None)
]
MADE = ROOT / "docs" / "library-calls.md"  # of the docstrings, whose examples run there; test_tables.py holds it equal to them
DOCUMENTS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")} - {MADE})
PAGES = [path for path in DOCUMENTS if ">>> " in path.read_text(encoding="utf-8")]
LIBRARIES = ("poputil", "popops", "poprand", "poplin", "popnn", "gcl")


@pytest.fixture
def folder_with_a_profile(tmp_path, monkeypatch, capsys):
    """The working directory of an example: as after a run with the option ``autoReport.all``."""
    monkeypatch.chdir(tmp_path)
    device = IPUModel("tiny").createDevice()
    graph = Graph(device)
    variable = graph.addConstant(INT, [1], 7)
    graph.setTileMapping(variable, 0)
    Engine(graph, PrintTensor(variable), {"autoReport.all": "true"}).loadAndRun(device)
    assert (tmp_path / "profile.pop").exists()
    return tmp_path


def docstrings(module):
    """What a module defines and documents, by name: also functions behind `public`, which the finder of doctest leaves out."""
    own = {name: member for name, member in vars(module).items() if getattr(member, "__module__", None) == module.__name__}
    inner = {
        f"{name}.{key}": value for name, member in own.items() if isinstance(member, type) for key, value in vars(member).items()
    }
    kinds = (type, FunctionType, property, staticmethod, classmethod)  # others have the docstring of their class
    members = {name: member for name, member in {**own, **inner}.items() if isinstance(member, kinds)}
    return {name: member.__doc__ for name, member in {"module": module, **members}.items() if member.__doc__}


def examples(path):
    """The examples of a module, a test for each docstring, or of a page. Those of libraries, which a page shows, stand alone."""
    parser = doctest.DocTestParser()
    if path.suffix == ".md":
        return [parser.get_doctest(path.read_text(encoding="utf-8"), {}, path.name, str(path), 0)]
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    known = {} if path.relative_to(ROOT).parts[1] in LIBRARIES else vars(module)
    tests = [parser.get_doctest(text, dict(known), name, str(path), 0) for name, text in docstrings(module).items()]
    return [test for test in tests if test.examples]


@pytest.mark.parametrize("path", [*SOURCES, *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_do_what_they_say(path, folder_with_a_profile):
    runner = doctest.DocTestRunner(optionflags=doctest.FAIL_FAST)
    tests = examples(path)
    assert tests
    for test in tests:
        report = []
        assert runner.run(test, out=report.append).failed == 0, "".join(report)


@pytest.mark.parametrize("path", [*SOURCES, *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_example_is_skipped(path):
    assert "+SKIP" not in path.read_text(encoding="utf-8")


def test_there_are_examples():
    assert {"pva.py", "printing.py"} <= {path.name for path in SOURCES}


def test_every_example_of_a_source_is_found():
    for path in SOURCES:
        written = sum(">>> " in line for line in path.read_text(encoding="utf-8").splitlines())
        assert sum(len(test.examples) for test in examples(path)) == written, path
