"""Files of codelets: the running program and imported modules stand for themselves, other files are run, none reaches itself."""

import os
import subprocess
import sys
import textwrap
import threading

import pytest

from pypoplar import FLOAT, CodeletError, FileLoadError, Graph, InOut, IPUModel, Vertex
from pypoplar.cli import run_script

CODELET = """
class {name}(Vertex):
    x: InOut[FLOAT]

    def compute(self):
        self.x += 1.0
"""
HEAD = """
from pypoplar import FLOAT, Graph, InOut, IPUModel, Vertex

graph = Graph(IPUModel("tiny").createDevice())
print("running", __name__.partition("_")[0] or __name__)
"""


class Here(Vertex):
    x: InOut[FLOAT]

    def compute(self):
        self.x += 2.0


@pytest.fixture
def graph():
    return Graph(IPUModel("tiny").createDevice())


def write(folder, name, *parts):
    file = folder / name
    file.write_text(HEAD + "".join(textwrap.dedent(part) for part in parts))
    return file


def run(*command, folder):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, *map(str, command)], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


ASKS = """
graph.addCodelets(__file__)
print(graph.getVertexTypes())
"""


@pytest.mark.parametrize("way", ["file", "relative", "module", "link"])
def test_a_script_adds_the_classes_that_it_has_by_now_and_runs_once(tmp_path, way):
    script = write(tmp_path, "program.py", CODELET.format(name="First"), ASKS, CODELET.format(name="Second"), ASKS)
    if way == "link":
        (tmp_path / "other.py").symlink_to(script)
    command = {"file": [script], "relative": ["program.py"], "module": ["-m", "program"], "link": ["other.py"]}[way]
    finished = run(*command, folder=tmp_path)
    assert (finished.stdout.splitlines(), finished.stderr) == (["running __main__", "['First']", "['First', 'Second']"], "")


def test_a_script_of_the_command_adds_its_own_classes(tmp_path, capsys):
    run_script(write(tmp_path, "program.py", CODELET.format(name="First"), ASKS), [])
    assert capsys.readouterr().out.splitlines() == ["running __main__", "['First']"]


def test_a_script_without_codelets_so_far_is_told_where_to_add_them(tmp_path):
    finished = run(write(tmp_path, "program.py", ASKS, CODELET.format(name="First")), folder=tmp_path)
    assert "CodeletError: __main__ has no codelets: no subclass of Vertex with a compute method, by now; add them below the" in (
        finished.stderr
    )


def test_another_file_may_ask_for_the_running_program(tmp_path):
    write(tmp_path, "device.py", CODELET.format(name="Device"), "graph.addCodelets('program.py')\nprint(graph.getVertexTypes())\n")
    asks = "graph.addCodelets('device.py')\nprint(graph.getVertexTypes())\n"
    finished = run(write(tmp_path, "program.py", CODELET.format(name="First"), asks), folder=tmp_path)
    assert finished.stdout.splitlines() == ["running __main__", "running device", "['First']", "['Device']"]


def test_the_file_of_an_imported_module_is_the_module(graph, tmp_path, monkeypatch):
    graph.addCodelets(__file__)
    assert graph.addVertex(graph.addComputeSet(), "Here")._kind.codelet is graph._registry.find(Here)[1]
    monkeypatch.syspath_prepend(tmp_path)
    file = write(tmp_path, "imported_codelets.py", CODELET.format(name="First"), ASKS, "First.marked = True\n")
    monkeypatch.setitem(sys.modules, "imported_codelets", None)
    del sys.modules["imported_codelets"]
    import imported_codelets

    assert imported_codelets.graph.getVertexTypes() == ["First"]
    graph.addCodelets(str(file))
    assert graph.getVertexTypes() == ["Here", "First"]


def test_other_files_run_each_time_as_a_module_of_their_own(graph, tmp_path, capsys):
    file = write(tmp_path, "device.py", CODELET.format(name="First"))
    for _ in range(2):
        graph.addCodelets(file)
    assert capsys.readouterr().out == "running device\n" * 2
    file.write_text(file.read_text() + CODELET.format(name="Second"))
    graph.addCodelets(file)
    assert graph.getVertexTypes() == ["First", "Second"]


def test_a_file_that_reaches_itself_is_refused_by_its_line(graph, tmp_path):
    file = write(tmp_path, "device.py", CODELET.format(name="First"), ASKS)
    text = r"device\.py' is being run for its codelets, and asks for them itself \(device.py -> device.py\); move addCodelets into"
    for _ in range(2):  # and may be asked for again
        with pytest.raises(CodeletError, match=text) as refusal:
            graph.addCodelets(file)
        assert [frame.path for frame in refusal.traceback].count(file) == 1


def test_files_that_reach_each_other_are_refused(graph, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "a.py", CODELET.format(name="A"), "graph.addCodelets('b.py')\n")
    write(tmp_path, "b.py", CODELET.format(name="B"), "graph.addCodelets('./a.py')\n")
    with pytest.raises(CodeletError, match=r"'a\.py' is being run .* \(a.py -> b.py -> a.py\)"):
        graph.addCodelets("a.py")


def test_a_file_that_fails_may_be_mended_and_added(graph, tmp_path):
    file = write(tmp_path, "device.py", "1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        graph.addCodelets(file)
    write(tmp_path, "device.py", CODELET.format(name="First"))
    graph.addCodelets(file)
    file.unlink()
    with pytest.raises(FileLoadError, match="no file of codelets at"):
        graph.addCodelets(file)


def test_threads_run_a_file_for_its_codelets_beside_each_other(tmp_path):
    wait = "import time\ntime.sleep(0.05)\n"
    file, errors = write(tmp_path, "device.py", CODELET.format(name="First"), wait), []

    def add():
        try:
            Graph(IPUModel("tiny").createDevice()).addCodelets(file)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
