"""The command that tries mutants: where they stand, which are drawn, which tests run, and that the user's files stay."""

import os
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from mutation.copied_tree import CopiedTree
from mutation.covering import Covering, lines_of_statement
from mutation.drawing import drawn_places
from mutation.equal import equal_mutants
from mutation.rooms import UnknownRoom, folders_of_tests, modules_of

ROOT = Path(__file__).parents[1]
needs_cosmic_ray = pytest.mark.skipif(find_spec("cosmic_ray") is None, reason="Cosmic Ray is of the extra `mutants`")


def test_each_mutant_known_as_equal_is_one_of_a_line_that_is_there_and_has_a_reason():
    known = equal_mutants(ROOT / ".ci" / "equal_mutants.toml")
    assert len({(each.module, each.before, each.after) for each in known}) == len(known)
    for each in known:
        lines = "\n".join(line.strip() for line in (ROOT / each.module).read_text().splitlines())
        assert each.before in lines, each
        assert each.before != each.after
        assert len(each.reason) > 20


def test_a_room_has_its_modules_and_the_tests_of_its_folder():
    liveness = "pypoplar/compiler/liveness/liveness.py"
    assert liveness in modules_of(ROOT, "compiler/liveness")
    assert modules_of(ROOT, "compiler.liveness.liveness") == modules_of(ROOT, liveness) == [liveness]
    assert folders_of_tests(ROOT, liveness) == ["tests/compiler"]
    assert folders_of_tests(ROOT, "pypoplar/codelet/cost/bundles.py") == ["tests/codelet", "tests/model"]
    assert folders_of_tests(ROOT, "pypoplar/popops/reduction/reduce_plan.py") == ["tests/libraries"]
    assert folders_of_tests(ROOT, "pypoplar/braces.py") == ["tests/test_sets.py"]
    assert folders_of_tests(ROOT, "pypoplar/tracebacks.py") == ["tests/test_tracebacks.py"]
    for unknown in ("compiler/lifetime", "pypoplar", ""):
        with pytest.raises(UnknownRoom, match="is no room and no module"):
            modules_of(ROOT, unknown)
    with pytest.raises(UnknownRoom, match="name them with --tests"):
        folders_of_tests(ROOT, "pypoplar/lattices.py")


def test_drawn_places_are_spread_evenly_and_the_same_for_a_seed():
    lines = [line for line in range(1000) for _ in range(line % 7 + 1)]
    order = drawn_places(lines, 100, 5)
    assert sorted(order) == list(range(len(lines)))
    assert [lines[place] // 10 for place in order[:100]] == list(range(100))
    assert order == drawn_places(lines, 100, 5)
    assert order != drawn_places(lines, 100, 6)


def test_each_line_has_a_mutant_before_one_has_its_second():
    lines = [1, 1, 1, 1, 2, 3, 3]
    drawn = Counter(lines[place] for place in drawn_places(lines, 5, 0)[:5])
    assert drawn == {1: 2, 2: 1, 3: 2}
    assert len(set(drawn_places(lines, 100, 0))) == len(lines)
    assert drawn_places([], 10, 0) == []


CODE = """\
@dataclass
def f(x):
    y = g(
        x,
        2,
    )
    if (
        y
    ):
        return y
    return [
        x
    ]
"""


@pytest.mark.parametrize(("line", "statement"), [(1, (1, 2)), (5, (3, 6)), (8, (7, 9)), (10, (10, 10)), (12, (11, 13))])
def test_the_lines_of_a_statement_are_those_before_its_body(line, statement):
    assert lines_of_statement(CODE, line) == statement


def test_the_tests_of_a_line_are_those_that_run_it_the_fastest_first():
    lines = {1: [""], 2: ["", "slow", "fast"], 3: ["slow"], 4: ["other"]}
    covering = Covering({"module.py": lines}, {"slow": 2.0, "fast": 1.0, "other": 1.5})
    assert covering.of("module.py", 2, 2) == ["fast", "slow"]
    assert covering.of("module.py", 3, 4) == ["other", "slow"]
    assert covering.of("module.py", 1, 1) == ["fast", "other", "slow"]  # what runs at import decides about all
    assert covering.of("module.py", 5, 5) == covering.of("other.py", 2, 2) == []


def changes(source):
    """The lines that mutants make of a source."""
    from mutation.places import mutant_at, places_of

    mutants = [mutant_at(place, source) for place in places_of("module.py", source)]
    return {mutant.after for mutant in mutants if mutant is not None}


@needs_cosmic_ray
@pytest.mark.parametrize(
    ("source", "some"),
    [
        ("x = a + b\n", {"x = a - b", "x = a", "x = b"}),
        ("x = a - b\n", {"x = a + b", "x = a"}),
        ("x = a and not b\n", {"x = a or not b", "x = a", "x = not b", "x = a and  b"}),
        ("x = max(a - b, 0.0)\n", {"x = (a - b)", "x = max(a, 0.0)"}),
        ("x[0] = 1\nf(x)\nx += y\n", {"pass"}),
        ("while a < b: c()\n", {"while a <= b: c()", "while a >= b: c()", "while not a < b: c()", "while a < b: pass"}),
        ("for i in x:\n    continue\n", {"for i in []:", "break"}),
    ],
)
def test_what_is_changed(source, some):
    assert some <= changes(source)


@needs_cosmic_ray
@pytest.mark.parametrize(
    "source",
    [
        "def f(x: int | None) -> int | None: ...\n",
        "x: int | None\n",
        "Number: TypeAlias = int | float\n",
        "assert x > 3 and y\n",
        "y = zip(a, b, strict=True)\n",
        "@lru_cache(maxsize=4)\ndef f(): ...\n",
        "@kept\ndef f(): ...\n",
        "@functools.cache\ndef f(): ...\n",
        "T = TypeVar('T', bound=int | str)\n",
        '"""One + two."""\n',
    ],
)
def test_what_programs_do_not_depend_on_is_left_alone(source):
    assert changes(source) == set()


@needs_cosmic_ray
def test_own_operators_do_what_their_examples_say():
    from cosmic_ray.mutating import mutate_code

    from mutation.operators import operators

    for name in ("RemoveOperand", "RemoveBound", "RemoveStatement"):
        operator = operators()[name]
        for example in operator.examples():
            assert mutate_code(example.pre_mutation_code, operator, example.occurrence) == example.post_mutation_code


SOURCE = '''\
"""Some sums."""


def total(values):
    result = 0
    for value in values:
        result += value
    return result


def unused(x):
    return x + 1


def rounds(count):
    while count > 0:
        count -= 1
    return count


def at_least(x):
    return x if x > 5 else 5
'''
TESTS = """\
from pypoplar.room.sums import at_least, rounds, total


def test_total():
    assert total([1, 2]) == 3


def test_rounds():
    assert rounds(3) == 0


def test_at_least():
    assert at_least(4) == 5
    assert at_least(7) == 7
"""
EQUAL = """\
[[equal]]
module = "pypoplar/room/sums.py"
before = "return x if x > 5 else 5"
after = "return x if x >= 5 else 5"
reason = "it is 5 either way"
"""


@pytest.fixture
def small_tree(tmp_path):
    """A package with a room of one module, its tests, and a mutant that is known as equal."""
    files = {"pypoplar/room/sums.py": SOURCE, "tests/room/test_sums.py": TESTS, ".ci/equal_mutants.toml": EQUAL}
    files |= {"pypoplar/__init__.py": "", "pypoplar/room/__init__.py": "", ".gitignore": "build/\n__pycache__/\n"}
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def tree_state(tree):
    files = subprocess.run(["git", "-C", tree, "ls-files", "-o", "--exclude-standard"], capture_output=True, text=True, check=True)
    return {name: ((tree / name).read_text(), (tree / name).stat().st_mtime_ns) for name in files.stdout.splitlines()}


def tried(tree, *arguments):
    paths = os.pathsep.join((str(ROOT / ".ci"), *sys.path))
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": paths}
    command = [sys.executable, "-m", "mutation", "--root", str(tree), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tree)


@pytest.mark.slow  # each mutant is a run of its own
@needs_cosmic_ray
def test_mutants_that_no_test_finds_are_told_and_the_files_stay_as_they_are(small_tree):
    before = tree_state(small_tree)
    run = tried(small_tree, "room", "--count", "6", "--seed", "3")
    assert run.returncode == 1, run.stderr
    assert run.stdout.startswith("seed 3; tests: tests/room\n")
    assert run.stdout.splitlines()[-1].startswith("6 mutants with seed 3: ")
    assert "no test runs its line:\n--- pypoplar/room/sums.py\n" in run.stdout
    assert "-    return x + 1\n" in run.stdout
    assert "x >= 5" not in run.stdout
    assert tree_state(small_tree) == before


@needs_cosmic_ray
def test_tests_that_fail_without_a_mutant_end_the_command(small_tree):
    (small_tree / "tests/room/test_sums.py").write_text("def test_total():\n    assert 1 == 2\n")
    run = tried(small_tree, "room")
    assert run.returncode == 2
    assert "the tests fail without a mutant" in run.stderr
    assert "assert 1 == 2" in run.stderr


@needs_cosmic_ray
def test_a_mutant_is_killed_survives_or_takes_too_long(small_tree, tmp_path_factory, monkeypatch):
    from mutation.places import Mutant, Place
    from mutation.trial import Outcome, try_mutant

    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    copy = CopiedTree.of(small_tree, tmp_path_factory.mktemp("copy"), small_tree / "cache")
    rounds = "tests/room/test_sums.py::test_rounds"
    covering = Covering({"pypoplar/room/sums.py": {line: [rounds] for line in range(30)}}, {})

    def outcome(old, new, most):
        mutant = Mutant(Place("pypoplar/room/sums.py", 1, "", 0), SOURCE.replace(old, new), old, new, "")
        return try_mutant(copy, mutant, covering, most).outcome

    state = tree_state(small_tree)
    assert outcome("count > 0", "count > 1", 600) is Outcome.KILLED
    assert outcome("x + 1", "x + 2", 600) is Outcome.SURVIVED
    assert outcome("x > 5 else 5", "x > 5 else 6", 600) is Outcome.KILLED  # by another test of the file
    assert outcome("count -= 1", "count -= 0", 4) is Outcome.TIMED_OUT
    assert outcome("", "", 600) is Outcome.SURVIVED
    assert (copy.root / "pypoplar/room/sums.py").read_text() == SOURCE
    assert tree_state(small_tree) == state
