"""What is imported when: what a program does not use is not loaded."""

import ast
import importlib.util
import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

import pypoplar

LIBRARIES = {"numba", "llvmlite", "networkx", "sqlite3", "plotly", "tqdm", "click", "perfetto", "platformdirs"}
MACHINERY = {"compiler", "engine", "executable", "report", "profile", "pva", "cli", "testing"}


def loaded(code):
    """The modules that are loaded when a fresh process has run the code."""
    script = f"{code}\nimport sys\nprint(*sys.modules, sep='\\n')"
    # what measures the coverage of processes would be loaded with it
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment)
    return set(done.stdout.split())


def rooms(modules):
    return {name.split(".")[1] for name in modules if name.startswith("pypoplar.")}


def test_importing_pypoplar_loads_its_errors_only():
    modules = loaded("import pypoplar")
    assert {name for name in modules if name.split(".")[0] == "pypoplar"} == {"pypoplar", "pypoplar.errors"}
    assert not modules & (LIBRARIES | {"numpy", "attr", "email", "importlib.metadata"})


def test_poprun_starts_without_numpy_and_without_what_instances_need():
    modules = loaded("import pypoplar.poprun.command")
    assert not modules & (LIBRARIES | {"numpy", "mpi4py", "secrets", "importlib.metadata"})
    assert not rooms(modules) & (MACHINERY - {"engine"})  # of which it has what says how replicas are shared


def test_a_graph_is_made_without_compiler_engine_and_reports():
    modules = loaded(
        "from pypoplar import FLOAT, Graph, InOut, Input, IPUModel, Output, Vector, Vertex\n"
        "from pypoplar.program import Copy, Execute, Sequence\n"
        "graph = Graph(IPUModel().createDevice())\n"
        "graph.setTileMapping(graph.addVariable(FLOAT, [4], 'x'), 0)"
    )
    assert not rooms(modules) & MACHINERY
    assert not modules & LIBRARIES


def test_the_engine_is_loaded_without_the_compiler():
    modules = loaded("from pypoplar import Engine, Executable")
    assert "compiler" not in rooms(modules)
    assert not modules & LIBRARIES


RUN = """
from pypoplar import FLOAT, Engine, Graph, InOut, IPUModel, Vertex
from pypoplar.program import Execute

class Increase(Vertex):
    x: InOut[FLOAT]

    def compute(self):
        self.x = self.x + NUMBER

device = IPUModel("tiny").createDevice()
graph = Graph(device)
x, step = graph.addVariable(FLOAT, [], "x"), graph.addComputeSet("increase")
vertex = graph.addVertex(step, Increase, {"x": x})
for what in (x, vertex):
    graph.setTileMapping(what, 0)
graph.createHostWrite("x", x)
engine = Engine(graph, Execute(step))
engine.load(device)
engine.writeTensor("x", [1.0])
engine.run(0)
"""


def test_a_run_whose_code_is_kept_loads_neither_what_writes_code_nor_reports(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(RUN.replace("NUMBER", f"{time.time_ns() % 1_000_000}.0"))  # a codelet that no cache has
    run = f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"
    assert {"pypoplar.engine.native.runner", "pypoplar.codelet.llvm.codelet_code"} <= loaded(run)
    modules = loaded(run)
    assert "pypoplar.engine.native.runner" in modules
    assert not modules & {
        "numba",
        "pypoplar.codelet.llvm.codelet_code",
        "pypoplar.report.making.make_report",
        "pypoplar.report.report",
    }


def test_every_public_name_is_there_and_comes_from_where_type_checkers_see_it():
    tree = ast.parse(Path(pypoplar.__file__).read_text(encoding="utf-8"))
    homes = {
        alias.name: statement.module
        for statement in ast.walk(tree)
        if isinstance(statement, ast.ImportFrom) and statement.module.startswith("pypoplar.")
        for alias in statement.names
    }
    assert homes.keys() == set(pypoplar.__all__) - {"ipu", "program"}
    for name, home in homes.items():
        assert getattr(pypoplar, name) is getattr(import_module(home), name)
    lazily = {name: home for home, names in pypoplar._HOMES.items() for name in names.split()}
    assert lazily.items() <= homes.items()
    assert {homes[name] for name in homes.keys() - lazily.keys()} == {"pypoplar.errors"}


def test_a_star_brings_what_codelets_and_programs_are_written_with():
    names = {}
    exec("from pypoplar import *", names)
    assert names["ipu"] is import_module("pypoplar.ipu")
    assert names["program"] is import_module("pypoplar.program")


def test_reports_are_read_by_a_program_that_imports_pypoplar_alone():
    script = "import pypoplar; print(pypoplar.pva.openReport.__name__)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "openReport\n"


def test_public_names_are_listed_and_others_are_refused():
    assert {*pypoplar.__all__, *pypoplar._MODULES, "__version__"} <= set(dir(pypoplar))
    assert {getattr(pypoplar, name) for name in pypoplar._MODULES} == {
        import_module(f"pypoplar.{name}") for name in pypoplar._MODULES
    }
    assert pypoplar.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="module 'pypoplar' has no attribute 'nope'"):
        pypoplar.nope
    with pytest.raises(ImportError, match="cannot import name 'nope'"):
        from pypoplar import nope  # noqa: F401


IN_TURN = """
import importlib, sys

for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        print(name, error.name)
"""


def test_every_module_is_imported_whatever_has_been_before():
    """Here the other way round than elsewhere.

    It is also what coverage has of the lines that modules run when they are imported. Many are imported late, by the first item
    that needs them, and that may be one of those that coverage is not measured of.
    """
    package = Path(pypoplar.__file__).parent
    files = [path.relative_to(package.parent).with_suffix("") for path in package.rglob("*.py") if path.name != "__main__.py"]
    modules = sorted((".".join(file.parts).removesuffix(".__init__") for file in files), reverse=True)
    done = subprocess.run([sys.executable, "-W", "error", "-c", IN_TURN, *modules], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    missing = {line.split()[1].partition(".")[0] for line in done.stdout.splitlines()}
    assert [name for name in missing if importlib.util.find_spec(name) is not None] == []  # all are of extras that are not here


def test_without_pytorch_its_front_end_says_how_to_get_it():
    missing = "import sys\nsys.modules['torch'] = None\n"
    with pytest.raises(subprocess.CalledProcessError) as failure:
        loaded(f"{missing}import pypoplar.poptorch")
    assert failure.value.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: pypoplar.poptorch needs PyTorch, which is not installed: "
        "pip install -e '.[pytorch]' in a checkout of pypoplar"
    )
