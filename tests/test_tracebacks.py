"""Below a line of the user's a traceback shows at most one frame of pypoplar; an environment variable shows all."""

import importlib.util
import inspect
import os
import subprocess
import sys
import textwrap
import traceback
from pathlib import Path

import attr
import numpy as np
import pytest
from engine_builder import Bench

import pypoplar
import pypoplar.tracebacks as tracebacks
from pypoplar import (
    FLOAT,
    ApplicationRuntimeError,
    CodeletError,
    Engine,
    Graph,
    InOut,
    PoplarError,
    Tensor,
    Vector,
    Vertex,
    popops,
    testing,
)
from pypoplar.graph.tiles import Tiles
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import ENVIRONMENT, OPERATORS, is_ours

TESTS = Path(__file__).parent
PACKAGE = str(Path(pypoplar.__file__).parent)
ATTRS = ("<attrs generated", str(Path(attr.__file__).parent))


def module_of(path):
    """A module of tests, for its table of mistakes."""
    specification = importlib.util.spec_from_file_location(f"mistakes_of_{path.stem}", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def mistakes():
    sets, habits = module_of(TESTS / "test_sets.py"), module_of(TESTS / "graph" / "test_mistakes.py")
    refusals = module_of(TESTS / "engine" / "test_refusals.py")
    for name, make in sets.REFUSED.items():
        yield f"set: {name}", make, sets.Case
    for name, (make, *_) in habits.MISTAKES.items():
        yield f"habit: {name}", make, habits.Case
    for name, (make, *_) in refusals.REFUSED.items():
        yield f"refusal: {name}", make, refusals.Case


MISTAKES = {name: (make, case) for name, make, case in mistakes()}


def files_of(error):
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


def longest_run_of_ours(error):
    """The most frames of pypoplar that stand below each other."""
    longest = run = 0
    for file in files_of(error):
        run = run + 1 if is_ours(file) else 0
        longest = max(longest, run)
    return longest


def reasons_of(error):
    while (error := error.__cause__ or (None if error.__suppress_context__ else error.__context__)) is not None:
        yield error


@pytest.mark.parametrize("name", MISTAKES)
def test_below_the_users_line_of_a_mistake_stands_one_frame_at_most(name):
    make, case = MISTAKES[name]
    with pytest.raises(PoplarError) as caught:
        make(case())
    assert longest_run_of_ours(caught.value) <= 1, files_of(caught.value)
    assert not is_ours(files_of(caught.value)[0])
    assert all(longest_run_of_ours(reason) <= 1 for reason in reasons_of(caught.value))


class Add(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i + 1] += 1.0


class Wrong(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        self.x[0] = sum(self.x)


@pytest.fixture
def bench():
    return Bench()


FEWEST = {"": 120, ".program": 20, ".poputil": 50, ".popops": 250, ".poplin": 80, ".popnn": 35, ".testing": 8, ".pva": 4}
"""The rooms, and how many functions of each a walk finds at least."""
LEFT_ALONE = {  # which nothing can be wrong with, or which users write
    "default",
    "StreamCallback.fetch",
    "StreamCallback.prefetch",
}


def public_functions(room):
    """Every function of a room that users call, and every method with arguments of the classes that they use."""
    module = importlib.import_module(f"pypoplar{room}")
    for name in module.__all__:
        what = getattr(module, name)
        if inspect.isfunction(what):
            yield name, what
        elif inspect.isclass(what) and room != ".pva" and not issubclass(what, BaseException):
            yield from methods_of(what)


class Unmarked:
    __module__ = "pypoplar.unmarked"

    def method(self, argument): ...

    @staticmethod
    def function(argument): ...


def methods_of(cls):
    for base in cls.__mro__:
        for name, member in vars(base).items() if base.__module__.startswith("pypoplar") else ():
            function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
            if not inspect.isfunction(function) or (name.startswith("_") and name not in OPERATORS):
                continue
            by_attrs = inspect.unwrap(function).__code__.co_filename.startswith(ATTRS)
            if by_attrs or (name == "__init__" and inspect.isabstract(base)):
                continue
            if len(inspect.signature(function).parameters) > (not isinstance(member, staticmethod)):
                yield f"{base.__name__}.{name}", function


@pytest.mark.parametrize("room", FEWEST)
def test_every_public_function_shortens_tracebacks(room):
    """If not, it is to be marked `public`, or `swift` if it is called for every vertex."""
    functions = {name: function for name, function in public_functions(room) if name not in LEFT_ALONE}
    assert len(functions) >= FEWEST[room]
    assert [name for name, function in functions.items() if not is_shortened(function)] == []


def is_shortened(function):
    return function.__code__.co_filename == tracebacks.__file__ or vars(function).get("swift", False)


def test_the_walk_over_public_functions_finds_those_that_are_not_marked():
    assert [(name, is_shortened(function)) for name, function in methods_of(Unmarked)] == [
        ("Unmarked.method", False),
        ("Unmarked.function", False),
    ]


def caught(work, error=Exception):
    with pytest.raises(error) as refusal:
        work()
    return refusal.value


def test_the_environment_variable_shows_all(bench, monkeypatch):
    x = bench.variable("x", [1.0])
    short = caught(lambda: bench.graph.setTileMapping(x, [[(0, 9)]]))
    monkeypatch.setenv(ENVIRONMENT, "1")
    long = caught(lambda: bench.graph.setTileMapping(x, [[(0, 9)]]))
    assert longest_run_of_ours(short) == 1 < longest_run_of_ours(long)
    assert str(short) == str(long)


def test_an_error_of_the_users_in_a_callback_keeps_the_users_lines(bench, mode):
    x = bench.variable("x", np.zeros(2, np.float32))
    engine = bench.engine(Copy(bench.graph.addHostToDeviceFIFO("in", FLOAT, 2), x), mode)

    def inner(chunk):
        return {}["missing"]

    def callback(chunk):
        return inner(chunk)

    engine.connectStreamToCallback("in", callback)
    error = caught(lambda: engine.run(), KeyError)
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert names[-4:] == ["<lambda>", "run", "callback", "inner"]
    assert longest_run_of_ours(error) == 1


def test_a_mistake_in_a_callback_has_one_frame_below_each_line_of_the_users(bench, mode):
    x = bench.variable("x", np.zeros(2, np.float32))
    engine = bench.engine(Copy(bench.graph.addHostToDeviceFIFO("in", FLOAT, 2), x), mode)
    engine.connectStreamToCallback("in", lambda chunk: engine.load(bench.device))
    error = caught(lambda: engine.run(), ApplicationRuntimeError)
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert names[-4:] == ["<lambda>", "run", "<lambda>", "load"]


def test_lines_of_other_packages_are_the_users(bench, mode):
    x = bench.variable("x", np.zeros(2, np.float32))
    engine = bench.engine(Copy(bench.graph.addHostToDeviceFIFO("in", FLOAT, 2), x), mode)
    names = {"engine": engine}
    theirs = Path(os.__file__).parent / "site-packages" / "theirs" / "callbacks.py"
    exec(compile("def callback(chunk):\n    engine.load(None)", str(theirs), "exec"), names)
    engine.connectStreamToCallback("in", names["callback"])
    error = caught(lambda: engine.run(), ApplicationRuntimeError)
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)][-4:] == ["<lambda>", "run", "callback", "load"]


def test_an_error_keeps_its_cause_its_context_and_its_notes(bench, mode):
    x = bench.variable("x", np.zeros(2, np.float32))
    engine = bench.engine(Copy(bench.graph.addHostToDeviceFIFO("in", FLOAT, 2), x), mode)
    mistake = ValueError("theirs")
    mistake.add_note("a note")

    def callback(chunk):
        try:
            {}["missing"]
        except KeyError as reason:
            raise mistake from reason

    engine.connectStreamToCallback("in", callback)
    error = caught(lambda: engine.run(), ValueError)
    assert error is mistake
    assert error.__notes__ == ["a note"]
    assert isinstance(error.__cause__, KeyError)
    assert [frame.name for frame in traceback.extract_tb(error.__cause__.__traceback__)] == ["callback"]


def test_errors_of_runs_and_codelets_are_short(bench, mode):
    x = bench.variable("x", [1.0, 2.0])
    engine = bench.engine(bench.execute(Add, x=x), mode)
    assert longest_run_of_ours(caught(lambda: engine.run(), PoplarError)) == 1
    error = caught(lambda: bench.graph.addCodelets(Wrong), CodeletError)
    assert longest_run_of_ours(error) == 1
    assert all(longest_run_of_ours(reason) <= 1 for reason in reasons_of(error))


def test_what_a_library_calls_is_not_shown_below_it(bench):
    half = bench.variable("half", np.zeros(2, np.float16))
    error = caught(lambda: popops.add(bench.graph, half, 70000, Sequence()), PoplarError)
    lines = traceback.extract_tb(error.__traceback__)
    assert [is_ours(line.filename) for line in lines][-2:] == [False, True]
    assert lines[-1].filename.endswith("element_functions.py")


def test_a_fault_of_ours_keeps_its_traceback(bench, monkeypatch):
    monkeypatch.setattr(Tiles, "check", None)
    error = caught(lambda: bench.graph.createVirtualGraph([1]), TypeError)
    assert longest_run_of_ours(error) > 1


def test_failed_comparisons_of_tests_are_short():
    error = caught(lambda: testing.assert_no_exchange(Engine(*_exchanging()), "missing"), AssertionError)
    assert longest_run_of_ours(error) == 1
    error = caught(lambda: testing.assert_same_bits([1.0], [2.0], "x"), AssertionError)
    assert longest_run_of_ours(error) == 1


def _exchanging():
    bench = Bench()
    return bench.graph, Copy(bench.variable("x", [1.0], 0), bench.variable("y", [1.0], 1))


SCRIPT = """
    import sys
    from pypoplar import FLOAT, Graph, IPUModel
    from pypoplar.program import Repeat, Sequence

    assert sys.excepthook is sys.__excepthook__

    def main():
        graph = Graph(IPUModel("tiny").createDevice())
        x = graph.addVariable(FLOAT, [4], "x")
        {mistake}

    main()
"""


@pytest.mark.parametrize("mistake", [
    "graph.setTileMapping(x, {0: [(0, 5)]})",
    "Repeat(2, Sequence([x]))",
    "x.slices([(3, 1)])",
    "graph.addCodelets('nowhere.py')",
    "x.numElement()",
])  # fmt: skip
@pytest.mark.parametrize("full", ["", "1"])
def test_what_python_prints_of_a_script_is_short_without_a_hook(tmp_path, mistake, full):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(SCRIPT).replace("{mistake}", mistake))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), ENVIRONMENT: full}
    finished = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path
    )
    lines = [line for line in finished.stderr.splitlines() if line.startswith("  File ")]
    ours = [line for line in lines if PACKAGE in line]
    assert mistake in finished.stderr
    assert "pypoplar.errors." in finished.stderr.splitlines()[-1]
    assert len(ours) == 1 or (full and len(ours) > 1)
    assert len(lines) == 2 + len(ours)


def test_public_functions_keep_their_names_signatures_and_words():
    assert Graph.addConstant.__name__ == "addConstant"
    assert list(inspect.signature(Graph.addConstant).parameters) == ["self", "type", "shape", "value", "name"]
    assert Graph.addConstant.__doc__.startswith("A new tensor that nothing may write to")
    assert popops.add.__name__ == "add"
    assert inspect.signature(popops.add).parameters["options"].default is None


@pytest.mark.parametrize("function", [Graph.addVertex, Graph.connect, Graph.setTileMapping, Tensor.__getitem__, Tensor.slice])
def test_what_is_called_for_every_vertex_is_called_without_another_call_between(function):
    assert not hasattr(function, "__wrapped__")


@pytest.mark.parametrize(
    "call",
    [lambda: testing.run_vertex(1, x=3), lambda: popops.add(1), lambda: Graph(a=3), lambda: Bench().graph.addVariable(bad=1)],
    ids=["a function of testing", "a library's", "a constructor", "a method"],
)
def test_arguments_that_a_function_does_not_have_are_shown_at_the_users_line_alone(call):
    with pytest.raises(TypeError) as caught:
        call()
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert files
    assert [file for file in files if is_ours(file)] == []
