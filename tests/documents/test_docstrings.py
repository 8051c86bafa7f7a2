"""The examples in docstrings and documents, all of them, do what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

from pypoplar import INT, Engine, Graph, IPUModel
from pypoplar.program import PrintTensor

ROOT = Path(__file__).parents[2]
SOURCES = [path for path in sorted((ROOT / "pypoplar").rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
PAGES = [path for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")] if ">>> " in path.read_text(encoding="utf-8")]


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


def examples(path):
    """The examples of a module, a test for each docstring, or of a page."""
    if path.suffix == ".md":
        return [doctest.DocTestParser().get_doctest(path.read_text(encoding="utf-8"), {}, path.name, str(path), 0)]
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


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
