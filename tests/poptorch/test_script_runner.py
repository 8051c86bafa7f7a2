"""``python -m pypoplar.poptorch``: programs that import poptorch run as they are, as Python itself would run them."""

import importlib
import os
import signal
import subprocess
import sys
import zipfile

import pytest

import pypoplar.poptorch
from pypoplar.poptorch import poptorch_name, script_runner


@pytest.fixture(autouse=True)
def python_as_it_was(monkeypatch):
    """What a program changes in this process is taken back."""
    modules = dict(sys.modules)
    for name in ("argv", "path", "meta_path"):
        monkeypatch.setattr(sys, name, list(getattr(sys, name)))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    yield
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]
    sys.modules.update(modules)


@pytest.fixture
def write(tmp_path):
    def place(text, name="script.py"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return file

    return place


NAMES = """
import poptorch
import poptorch.optim as optim
from poptorch.enums import OutputMode
import poptorch.options.execution_strategies
import pypoplar.poptorch, pypoplar.poptorch.optim
assert poptorch is pypoplar.poptorch
assert optim is pypoplar.poptorch.optim
assert poptorch.options.execution_strategies.Stage is pypoplar.poptorch.Stage
assert OutputMode is pypoplar.poptorch.OutputMode
assert poptorch.optim.__spec__.name == "pypoplar.poptorch.optim"
try:
    import poptorch.nothing
except ModuleNotFoundError as error:
    print(error)
"""


def test_the_name_is_this_module_with_its_parts(write, capsys):
    script_runner.main([str(write(NAMES))])
    assert capsys.readouterr().out == "No module named 'poptorch.nothing'\n"


def test_another_module_of_the_name_is_not_taken(write, tmp_path, capsys):
    write("print('another')", "poptorch.py")
    script_runner.main([str(write("import poptorch; print(poptorch.Options.__module__)"))])
    assert capsys.readouterr().out == "pypoplar.poptorch.options.model_options\n"


SAYS = """
import sys
print(__name__, __file__, sys.argv, sys.path[0], __spec__, __package__, sys.modules["__main__"].__dict__ is globals())
import beside
"""


def pythons_own(folder, *arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=folder, check=True).stdout


def test_a_script_has_what_python_gives_it(write, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write("print('beside')", "folder/beside.py")
    (tmp_path / "link.py").symlink_to(write(SAYS, "folder/script.py"))
    for name in ("folder/script.py", "link.py"):
        script_runner.main([name, "-m", "x"])
        printed = capsys.readouterr().out
        assert printed == pythons_own(tmp_path, name, "-m", "x")
        assert printed.endswith("beside\n")
        del sys.modules["beside"]


def test_a_module_has_what_python_gives_it(write, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    write("", "folder/__init__.py")
    write("print('beside')", "beside.py")
    write(SAYS.replace("__spec__", "__spec__.name"), "folder/script.py")
    script_runner.main(["-m", "folder.script", "--more"])
    assert capsys.readouterr().out == pythons_own(tmp_path, "-m", "folder.script", "--more")


@pytest.mark.parametrize("kind", ["directory", "archive"])
def test_directories_and_archives_run(kind, write, tmp_path, capsys):
    text = "import sys, poptorch, inner; print(sys.argv[1:], sys.path[0])"
    place = write(text, "program/__main__.py").parent
    write("", "program/inner.py")
    if kind == "archive":
        place = tmp_path / "program.pyz"
        with zipfile.ZipFile(place, "w") as archive:
            archive.writestr("__main__.py", text)
            archive.writestr("inner.py", "")
    script_runner.main([str(place), "x"])
    assert capsys.readouterr().out == f"['x'] {place}\n"


def test_what_a_script_defines_lives_on_after_it(write, capsys):
    script_runner.main([str(write("import sys\nclass Kept: pass\nsys.kept = lambda: Kept()"))])
    assert type(sys.kept()) is sys.modules["__main__"].Kept
    del sys.kept


FAILS = """import poptorch
def inner():
    poptorch.Options().deviceIterations(0)
inner()
"""


def shown_error(arguments, capsys):
    """What Python prints of the error that ends a program."""
    with pytest.raises(BaseException) as failure:  # noqa: PT011 (of many kinds)
        script_runner.main(arguments)
    sys.excepthook(failure.type, failure.value, failure.tb)
    return capsys.readouterr()


def test_the_traceback_of_an_error_begins_at_the_script(write, capsys):
    script = write(FAILS)
    shown = shown_error([str(script)], capsys).err
    frames = [line.strip() for line in shown.splitlines() if line.startswith("  File")]
    assert [frame.rpartition(", in ")[2] for frame in frames] == ["<module>", "inner", "deviceIterations"]
    assert frames[0].startswith(f'File "{script}", line 4')
    assert shown.endswith("Options.deviceIterations takes a whole number of at least 1, got 0\n")


@pytest.mark.parametrize(
    ("text", "frames", "last"),
    [
        ("x = (", 0, "SyntaxError: '(' was never closed"),
        ("import missing_module", 1, "ModuleNotFoundError: No module named 'missing_module'"),
        ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    [][1]", 1, "IndexError: list index out of range"),
    ],
)
def test_errors_are_shown_by_the_scripts_own_frames(text, frames, last, write, capsys):
    script = write(text)
    shown = shown_error([str(script)], capsys).err
    assert shown.rstrip().endswith(last)
    assert "script_runner" not in shown
    assert shown.rpartition("Traceback (most recent call last)")[2].count(f'File "{script}"') == max(frames, 1)


def test_the_scripts_own_hook_shows_its_error(write, capsys):
    text = "import sys\nsys.excepthook = lambda kind, value, trace: print('mine', value, trace.tb_lineno)\nraise ValueError('x')"
    assert shown_error([str(write(text))], capsys).out == "mine x 3\n"


def test_an_exit_is_the_scripts(write):
    with pytest.raises(SystemExit) as exit_:
        script_runner.main([str(write("import sys; sys.exit(7)"))])
    assert exit_.value.code == 7


def test_an_interrupt_ends_by_its_signal_after_what_is_to_be_done_at_the_end(write):
    script = write("import atexit\natexit.register(print, 'end')\nraise KeyboardInterrupt")
    done = subprocess.run([sys.executable, "-m", "pypoplar.poptorch", script], capture_output=True, text=True, timeout=100)
    assert done.returncode == -signal.SIGINT
    assert done.stdout == "end\n"
    assert done.stderr.endswith("KeyboardInterrupt\n")
    assert done.stderr.count("File ") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "usage: python -m pypoplar.poptorch SCRIPT [ARGUMENTS]"),
        (["missing.py"], 2, "python -m pypoplar.poptorch: there is no script 'missing.py'\n"),
        (["-x"], 2, "python -m pypoplar.poptorch: no option is called '-x'\nusage: "),
        (["-m"], 2, "python -m pypoplar.poptorch: -m takes the name of a module\n"),
        (["-m", "missing_module"], 1, "python -m pypoplar.poptorch: No module named missing_module\n"),
        (["."], 2, "python -m pypoplar.poptorch: the directory '.' has no __main__.py\n"),
    ],
)
def test_a_command_line_that_names_no_program(arguments, code, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        script_runner.main(arguments)
    assert exit_.value.code == code
    printed = capsys.readouterr()
    assert printed.err.startswith(message)
    assert printed.out == ""


def test_help_is_the_usage(capsys):
    script_runner.main(["--help"])
    assert capsys.readouterr().out == script_runner.USAGE


def test_processes_that_a_script_starts_find_the_name():
    poptorch_name.install()
    assert poptorch_name.FOR_PROCESSES in sys.path  # which multiprocessing gives to those that it does not fork
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; import poptorch.optim; print(poptorch.__name__)"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "pypoplar.poptorch\n"


def test_the_name_is_given_once():
    poptorch_name.install()
    before = list(sys.meta_path), list(sys.path)
    poptorch_name.install()
    assert (sys.meta_path, sys.path) == before
    assert importlib.import_module("poptorch") is pypoplar.poptorch
    assert importlib.import_module("poptorch.optim") is pypoplar.poptorch.optim
    assert os.path.isfile(os.path.join(poptorch_name.FOR_PROCESSES, "poptorch.py"))
