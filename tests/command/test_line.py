"""The `pypoplar` command: what it prints, how it runs scripts, what it says of errors."""

import os
import subprocess
import sys
import traceback
from importlib import metadata

import pytest
from click.testing import CliRunner
from profile_reports import full_report

from pypoplar import resources
from pypoplar.cli import main
from pypoplar.presets import PRESETS, TIMINGS
from pypoplar.report.file.sqlite_file import save_report
from pypoplar.tracebacks import ENVIRONMENT


@pytest.fixture
def run():
    def call(*arguments, **environment):
        return CliRunner().invoke(main, [str(one) for one in arguments], env=environment)

    return call


@pytest.fixture
def script(tmp_path):
    def write(text, name="program.py"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_script_runs_as_the_main_program_with_its_arguments(run, script):
    path = script("import sys\nif __name__ == '__main__':\n    print(sys.argv[1:], __file__)\n")
    before = sys.argv[:], sys.path[:]
    result = run("run", path, "10", "--rate", "0.5", "-x")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"['10', '--rate', '0.5', '-x'] {path}\n"
    assert (sys.argv, sys.path) == before


def test_a_script_imports_what_stands_beside_it(run, script):
    script("VALUE = 7\n", "beside_the_program.py")
    assert run("run", script("import beside_the_program as b\nprint(b.VALUE)\n")).stdout == "7\n"


def test_a_poplar_error_is_its_message_and_the_users_line(run, script):
    path = script("from pypoplar.device import IPUModel\n\nmodel = IPUModel()\nmodel.tilesPerIpu = 4\n")
    result = run("run", path)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "InvalidOption: IPUModel has no field 'tilesPerIpu'; did you mean 'tilesPerIPU'?" in result.stderr
    assert f"{path}:4  model.tilesPerIpu = 4" in result.stderr
    assert "Traceback" not in result.stderr


BY_WAY_OF_A_LIBRARY = """
from contextlib import ExitStack
from pypoplar import FLOAT, Graph, IPUModel

graph = Graph(IPUModel("tiny").createDevice())
x = graph.addVariable(FLOAT, [4], "x")
with ExitStack() as later:
    later.callback(graph.setTileMapping, x, 99)
"""


def test_the_users_line_is_named_and_not_that_of_a_library_between(run, script):
    path = script(BY_WAY_OF_A_LIBRARY)
    result = run("run", path)
    assert "InvalidTileMapping: tile 99 for 'x'" in result.stderr
    assert f"at {path}:7  with ExitStack() as later:" in result.stderr
    assert "contextlib" not in result.stderr


ENGINE = """
from pypoplar import INT, Engine, Graph, IPUModel
from pypoplar.program import Copy

device = IPUModel("tiny").createDevice()
graph = Graph(device.getTarget())
x = graph.addVariable(INT, [4], "x")
graph.setTileMapping(x, 0)
"""


@pytest.mark.parametrize(
    ("last", "text"),
    [
        (
            "Engine(graph, [], {'autoReport.all': True, 'autoReport.directory': '/dev/null/here'})",
            "InvalidOption: autoReport.directory is '/dev/null/here': the profile cannot be written there: [Errno 20] Not a dir",
        ),
        (
            "Engine(graph, Copy(graph.addHostToDeviceFIFO('in', INT, 4), x)).connectStreamToCallback('in', lambda: 1)",
            "stream 'in': expected a function of one array, an iterator or a StreamCallback, got <lambda>(), ",
        ),
        (
            "Engine(graph, [], progress=lambda done: print(done))",
            "PoplarTypeError: progress: expected a function of two numbers, done and total, got <lambda>(done), ",
        ),
    ],
)
def test_what_a_program_hands_over_is_refused_with_its_line(run, script, last, text):
    path = script(ENGINE + last)
    result = run("run", path)
    assert result.exit_code == 1
    assert text in result.stderr
    assert f"at {path}:9  {last}" in result.stderr
    assert "Traceback" not in result.stderr


def test_traceback_shows_the_whole_way(run, script):
    path = script("from pypoplar.device import IPUModel\nIPUModel('bov')\n")
    result = run("--traceback", "run", path)
    assert result.exit_code == 1
    assert type(result.exception).__name__ == "InvalidOption"
    names = [frame.name for frame in traceback.extract_tb(result.exception.__traceback__)]
    assert len(names) - names.index("<module>", names.index("run_script")) > 2
    assert ENVIRONMENT not in os.environ


@pytest.mark.parametrize("last", ["IPUModel('bov')", "1 / 0", "raise KeyboardInterrupt"])
def test_what_a_script_prints_stands_before_its_error_where_both_go_to_one_file(script, last):
    path = script(f"from pypoplar.device import IPUModel\nprint('so far')\n{last}\n")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "pypoplar", "run", path]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode != 0
    first, *rest = done.stdout.splitlines()
    assert first == "so far"
    assert rest


def test_another_error_is_shown_from_the_scripts_frame_on(run, script):
    path = script("def divide(a):\n    return 1 / a\n\ndivide(0)\n")
    result = run("run", path)
    assert result.exit_code == 1
    assert "ZeroDivisionError" in result.stderr
    assert f'File "{path}", line 4' in result.stderr
    assert "runpy" not in result.stderr
    assert "click" not in result.stderr


def test_a_script_that_does_not_compile_says_where(run, script):
    result = run("run", script("x = = 1\n"))
    assert result.exit_code == 1
    assert "SyntaxError" in result.stderr


def test_the_exit_code_is_the_scripts(run, script):
    assert run("run", script("import sys\nsys.exit(3)\n")).exit_code == 3


def test_an_interrupted_script_stops_quietly(run, script):
    result = run("run", script("raise KeyboardInterrupt\n"))
    assert result.exit_code == 130
    assert result.stderr == "stopped\n"


def test_a_missing_file_is_an_error_of_usage(run, tmp_path):
    result = run("run", tmp_path / "none.py")
    assert result.exit_code == 2
    assert "does not exist" in result.stderr


def test_a_named_pipe_is_not_run(run, tmp_path, stopwatch):
    os.mkfifo(tmp_path / "pipe.py")
    result = run("run", tmp_path / "pipe.py")
    assert result.exit_code == 1
    assert "Is a named pipe, not a regular file" in result.stderr


@pytest.mark.parametrize(
    "arguments", [("summary", "{pipe}"), ("report", "{pipe}"), ("trace", "{pipe}"), ("report", "{file}", "-o", "{pipe}")]
)
def test_a_named_pipe_is_neither_read_nor_replaced(run, tmp_path, stopwatch, arguments):
    places = {"pipe": tmp_path / "pipe", "file": tmp_path / "profile.pop"}
    os.mkfifo(places["pipe"])
    save_report(full_report(), places["file"])
    result = run(*[argument.format(**places) for argument in arguments])
    assert result.exit_code == 1
    assert "Is a named pipe, not a regular file" in result.stderr
    assert places["pipe"].is_fifo()


def test_tutorials_are_listed_with_what_they_are_about(run):
    result = run("tutorial")
    assert result.exit_code == 0
    names = [line.split()[0] for line in result.stdout.splitlines()]
    assert names == sorted(resources.tutorials())
    assert all(len(line.split()) > 1 for line in result.stdout.splitlines())


def test_a_tutorial_runs_by_a_beginning_of_its_name(run, script, monkeypatch):
    folder = script("'''First steps.'''\nimport sys\nprint('one', sys.argv[1:])\n", "tut1_first.py").parent
    script("'''More.'''\nprint('two')\n", "tut2_second.py")
    script("raise ImportError\n", "_helper.py")
    monkeypatch.setattr(resources, "directory", lambda name: folder)
    assert run("tutorial", "tut1", "--fast").stdout == "one ['--fast']\n"
    assert run("tutorial", "tut2_second").stdout == "two\n"
    assert run("tutorial", "second").stdout == "two\n"
    assert run("tutorial").stdout == "tut1_first   First steps\ntut2_second  More\n"


def test_the_text_of_a_tutorial_is_shown(run):
    result = run("tutorial", "tut3", "--show")
    assert result.stdout.startswith("Tutorial 3: writing vertices.\n")
    assert "Exercises" in result.stdout
    assert "import" not in result.stdout
    result = run("tutorial", "tut3", "--show", "more")
    assert result.exit_code == 2
    assert "behind --show nothing else is expected, got 'more'" in result.stderr


@pytest.mark.parametrize("name", ["digits_lstm", "transformer", "tut3_vertices", "gallery/game_of_life"])
def test_a_copied_tutorial_has_all_that_it_needs(run, tmp_path, name):
    place = tmp_path / "new" / "place"
    result = run("tutorial", name, "--copy", place)
    assert result.exit_code == 0, result.output
    script = place / f"{name.rpartition('/')[2]}.py"
    assert result.stdout.endswith(f"run it with: python {script}\n")
    listed = result.stdout.partition("\n\n")[0].splitlines()
    assert sorted(listed) == sorted(str(one) for one in place.rglob("*") if one.is_file())
    assert subprocess.run([sys.executable, script, "--help" if "tut3" not in name else "-"], check=False).returncode == 0
    again = run("tutorial", name, "--copy", place)
    assert again.exit_code == 1
    assert f"nothing is overwritten: {script}" in again.stderr
    assert "takes the directory" in run("tutorial", name, "--copy").stderr


@pytest.mark.parametrize(
    ("name", "hint"), [("tut", "did you mean tut1_first or tut2_second"), ("frist", "there are tut1_first, tut2_second")]
)
def test_an_unknown_tutorial_is_refused_with_the_known(run, script, monkeypatch, name, hint):
    folder = script("", "tut1_first.py").parent
    script("", "tut2_second.py")
    monkeypatch.setattr(resources, "directory", lambda name: folder)
    result = run("tutorial", name)
    assert result.exit_code == 1
    assert hint in result.stderr


def test_info_shows_versions_targets_and_the_cache(run, tmp_path):
    result = run("info", PYPOPLAR_CACHE_DIR=str(tmp_path))
    assert result.exit_code == 0, result.output
    assert f"pypoplar {metadata.version('pypoplar')}" in result.stdout
    assert f"llvmlite  {metadata.version('llvmlite')}" in result.stdout
    assert all(f"  {name} " in result.stdout for name in PRESETS)
    assert all(f"  {name:8} {meaning}" in result.stdout for name, meaning in TIMINGS.items())
    assert str(tmp_path) in result.stdout


def test_cache_clear_empties_the_cache(run, tmp_path):
    from pypoplar.host_code import cache

    result = run("cache", "clear", PYPOPLAR_CACHE_DIR=str(tmp_path))
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("cleared ")
    assert str(tmp_path) in result.stdout
    assert cache.size() >= 0


def test_help_says_what_there_is(run):
    result = run("-h")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in ("tutorial", "run", "info", "cache"))


def test_the_package_is_the_command(script):
    def answer(*arguments):
        done = subprocess.run([sys.executable, "-m", "pypoplar", *map(str, arguments)], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    assert answer("run", script("import sys; print(sys.argv[1:])"), "7") == (0, "['7']\n", "")
    code, _, problem = answer("sumary")
    assert code == 2
    assert problem.startswith("Usage: python -m pypoplar ")
