"""`pytest --changed` runs what a change needs: the tests of the rooms that it touches and of those that import them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from changed_files import NothingToCompare, changed_files
from changed_option import named
from changed_tests import EVERYTHING, ON_THE_WHOLE, READ, READ_BY, READ_BY_NOBODY, TESTED_IN, ChangedTests
from floors import FLOOR
from git_commands import git, need_git, own_settings

ROOT = Path(__file__).parents[1]
PROJECT = ChangedTests(ROOT)
WITHOUT_A_ROOM = {
    *("tests/site", "tests/tutorials"),
    *(f"tests/test_{name}.py" for name in ("changed_tests", "collecting_order", "law_examples", "measured_items")),
    *(f"tests/test_{name}.py" for name in ("mutants", "slow_items")),
}

SMALL = {  # a house of five rooms, with tests of all that there is
    "pyproject.toml": """
        [tool.pytest.ini_options]
        testpaths = ["tests"]
        pythonpath = [".", "tests/helpers"]
        addopts = ["--import-mode=importlib"]
        """,
    "README.md": "",
    "LICENSE": "",
    ".gitignore": "__pycache__/\n.pytest_cache/\n",
    "docs/page.md": "",
    "benchmarks/__init__.py": "",
    "benchmarks/speed.py": "",
    "codelets/popops_add.py": "",
    "pypoplar/__init__.py": "",
    "pypoplar/interface/words.py": "",
    "pypoplar/graph/tensor.py": "from pypoplar.interface import words",
    "pypoplar/popops/add.py": "from pypoplar.graph import tensor",
    "pypoplar/compiler/flattening/rows.py": "import pypoplar.graph.tensor",
    "pypoplar/compiler/compile.py": "from pypoplar.compiler.flattening import rows",
    "pypoplar/engine/engine.py": "def run():\n    from pypoplar.compiler import compile",
    "tests/conftest.py": "pytest_plugins = ['changed_option']",
    "tests/helpers/rig.py": "import words_of_tests",
    "tests/helpers/words_of_tests.py": "from benchmarks import speed",
    "tests/interface/test_words.py": "",
    "tests/graph/test_tensor.py": "from rig import words_of_tests",
    "tests/graph/data/shapes.txt": "",
    "tests/compiler/flattening/test_rows.py": "",
    "tests/engine/conftest.py": "",
    "tests/engine/test_engine.py": "",
    "tests/engine/native/test_driver.py": "import pypoplar.interface.words",
    "tests/libraries/test_add.py": "",
    "tests/documents/test_pages.py": "PAGES = 'docs/page.md', 'README.md'",
    "tests/test_rooms.py": "",
}
TESTS = sorted(path for path in SMALL if Path(path).name.startswith("test_"))


@pytest.fixture(autouse=True)
def own_git(monkeypatch):
    own_settings(monkeypatch)


def write(folder, files):
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        lines = [line.removeprefix(" " * 8) for line in text.splitlines()]
        (folder / path).write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def house(tmp_path):
    """The small house, its files without history; each test says when it is run."""
    folder = tmp_path / "house"
    write(folder, SMALL)
    for path in TESTS:
        with (folder / path).open("a") as file:
            file.write("def test_it(): pass\n")
    return folder


@pytest.fixture
def repository(house):
    """The small house, all of it committed."""
    need_git()
    git(house, "init", "-q")
    git(house, "add", "-A")
    git(house, "commit", "-q", "-m", "first")
    return house


def run(folder, *arguments, path=None):
    """What pytest says in a process of its own: its code, the lines on what is chosen, and the tests that passed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "helpers"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    if path is not None:
        environment["PATH"] = path
    command = [sys.executable, "-m", "pytest", "-p", "xdist.plugin", "-p", "no:cacheprovider", "-v", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    passed = re.findall(r"^(?:\[gw\d\].* PASSED )?(tests/\S+\.py)::test_it(?: PASSED.*| *)$", done.stdout, re.M)
    return done.returncode, done.stdout.partition("=====")[0].splitlines(), sorted(set(passed)), done.stderr


def needed(folder, *changed):
    return sorted(ChangedTests(folder).selection(changed).files)


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("pypoplar/interface/words.py", ["engine/native/test_driver", "graph/test_tensor", "interface/test_words", "test_rooms"]),
        (
            "pypoplar/graph/tensor.py",
            ["compiler/flattening/test_rows", "graph/test_tensor", "libraries/test_add", "test_rooms"],
        ),
        ("pypoplar/compiler/flattening/rows.py", ["compiler/flattening/test_rows", "engine/test_engine", "test_rooms"]),
        ("pypoplar/compiler/compile.py", ["compiler/flattening/test_rows", "engine/test_engine", "test_rooms"]),
        ("pypoplar/engine/engine.py", ["engine/test_engine", "test_rooms"]),
        ("pypoplar/engine/assets/removed.js", ["engine/test_engine", "test_rooms"]),
        ("pypoplar/popops/add.py", ["libraries/test_add", "test_rooms"]),
        ("codelets/popops_add.py", ["libraries/test_add", "test_rooms"]),
        ("tests/helpers/rig.py", ["graph/test_tensor"]),
        ("tests/helpers/words_of_tests.py", ["graph/test_tensor"]),
        ("benchmarks/speed.py", ["graph/test_tensor"]),
        ("benchmarks/other.py", []),
        ("tests/interface/test_words.py", ["interface/test_words"]),
        ("tests/interface/test_removed.py", []),
        ("tests/graph/data/shapes.txt", []),
        ("tests/graph/shapes.txt", ["graph/test_tensor"]),
        ("tests/engine/conftest.py", ["engine/native/test_driver", "engine/test_engine"]),
        ("docs/page.md", ["documents/test_pages"]),
        ("tutorials/first.py", ["documents/test_pages"]),
        ("README.md", ["documents/test_pages"]),
        ("LICENSE", []),
    ],
)
def test_a_change_needs_the_tests_of_its_rooms_and_of_those_that_import_them(house, changed, tests):
    assert needed(house, changed) == [f"tests/{test}.py" for test in tests]


@pytest.mark.parametrize(
    "changed", ["pyproject.toml", "tests/conftest.py", "Makefile", "pypoplar/unheard/of.py", "codelets/new_add.py"]
)
def test_what_concerns_all_or_is_not_known_needs_all_tests_and_says_so(house, changed):
    selection = ChangedTests(house).selection(["LICENSE", changed])
    assert sorted(selection.files) == TESTS
    assert selection.all_because.startswith(f"{changed} {'concerns all tests' if changed in EVERYTHING else 'is in no room'}")


def test_imports_for_type_checkers_and_late_ones_need_no_tests(house):
    write(house, {"pypoplar/engine/engine.py": "if TYPE_CHECKING:\n    from pypoplar.compiler import compile"})
    assert "tests/engine/test_engine.py" not in needed(house, "pypoplar/compiler/flattening/rows.py")
    write(house, {"pypoplar/report/report.py": "from pypoplar.report import page", "pypoplar/report/page/__init__.py": "A = B = 1"})
    write(house, {"pypoplar/engine/engine.py": "from pypoplar.report import report"})
    assert "tests/engine/test_engine.py" in needed(house, "pypoplar/report/report.py")
    assert "tests/engine/test_engine.py" not in needed(house, "pypoplar/report/page/__init__.py")


def test_several_changes_need_what_each_of_them_does(house):
    changed = ["tests/interface/test_words.py", "docs/page.md", "pypoplar/engine/engine.py", "codelets/popops_add.py"]
    assert needed(house, *changed) == sorted(set().union(*(needed(house, one) for one in changed)))


@pytest.mark.parametrize("arguments", [[], ["-n", "2"]], ids=["alone", "workers"])
def test_the_option_runs_what_is_not_committed_and_new_files(repository, arguments):
    write(repository, {"pypoplar/compiler/compile.py": "", "tests/graph/test_new.py": "def test_it(): pass", "docs/new.md": ""})
    code, said, passed, _ = run(repository, "--changed", *arguments)
    assert said[0] == (
        "3 files changed since HEAD: room compiler; imported by engine.engine; "
        "files outside of rooms: docs/new.md, tests/graph/test_new.py"
    )
    chosen = ["compiler/flattening/test_rows", "documents/test_pages", "engine/test_engine", "graph/test_new", "test_rooms"]
    folders = ["tests", "tests/compiler/flattening", "tests/documents", "tests/engine", "tests/graph"]
    assert said[1] == "test files that need to run: 5, in " + ", ".join(f"{folder} (1)" for folder in folders)
    assert (code, passed) == (0, [f"tests/{test}.py" for test in chosen])


def test_what_is_not_chosen_is_not_imported(repository):
    write(repository, {"tests/graph/test_tensor.py": "raise SystemExit('it was imported')"})
    git(repository, "commit", "-qam", "second")
    write(repository, {"tests/test_rooms.py": "def test_it(): pass"})
    code, _, passed, _ = run(repository, "--changed")
    assert (code, passed) == (0, ["tests/test_rooms.py"])


def test_the_option_goes_back_to_a_revision_and_keeps_to_the_paths_that_are_given(repository):
    write(repository, {"pypoplar/engine/engine.py": "A = 1"})
    git(repository, "mv", "tests/libraries/test_add.py", "tests/libraries/test_added.py")
    git(repository, "commit", "-qam", "second")
    assert run(repository, "--changed=HEAD")[:2] == (0, ["nothing has changed since HEAD: no test needs to run"])
    code, said, passed, _ = run(repository, "--changed=HEAD~1")
    assert said[0].startswith(
        "3 files changed since HEAD~1: room engine.engine; files outside of rooms: tests/libraries/test_add.py, "
    )
    assert (code, passed) == (0, ["tests/engine/test_engine.py", "tests/libraries/test_added.py", "tests/test_rooms.py"])
    assert run(repository, "--changed=HEAD~1", "tests/engine")[2] == ["tests/engine/test_engine.py"]
    assert run(repository, "tests/graph", "--changed", "HEAD~1")[2] == []


def test_a_change_that_no_test_looks_at_is_a_success_without_tests(repository):
    write(repository, {"LICENSE": "free"})
    code, said, passed, _ = run(repository, "--changed", "-q")
    assert (code, said, passed) == (0, ["1 file changed since HEAD: LICENSE; no test looks at that"], [])


def test_what_is_not_known_is_said_and_runs_all(repository):
    write(repository, {"Makefile": ""})
    code, said, passed, _ = run(repository, "--changed", "-n", "2")
    assert said[0] == "1 file changed since HEAD: all tests run, since Makefile is in no room and in no folder that is known"
    assert (code, passed) == (0, TESTS)


def test_a_revision_that_does_not_exist_is_refused(repository):
    for revision in ("nope", "--output=x", "HEAD^{tree}"):
        code, said, passed, error = run(repository, f"--changed={revision}")
        assert f"ERROR: --changed: git knows no revision {revision!r}; write --changed=REVISION, and a path before" in error
        assert (code, said, passed) == (4, [], [])
    assert not (repository / "x").exists()


def test_without_a_repository_or_a_commit_it_is_said_that_there_is_nothing_to_compare_with(house):
    need_git()
    code, _, passed, error = run(house, "--changed")
    assert f"ERROR: --changed: {house} is not in a repository of git" in error
    assert (code, passed) == (4, [])
    git(house, "init", "-q")
    with pytest.raises(NothingToCompare, match="knows no revision 'HEAD'"):
        changed_files(house, "HEAD")


def test_without_git_it_is_said_that_it_is_missing(house, tmp_path):
    code, _, passed, error = run(house, "--changed", path=str(tmp_path))
    assert "ERROR: --changed: git is not installed" in error
    assert (code, passed) == (4, [])
    assert run(house, path=str(tmp_path))[2] == TESTS


def test_files_are_those_below_the_project_of_whatever_name(repository):
    inner = repository / "tests"
    write(repository, {"tests/a b\u00e9\n.txt": "", "README.md": "more"})
    (repository / "tests" / "test_rooms.py").unlink()
    assert changed_files(repository, "HEAD") == ["README.md", "tests/a b\u00e9\n.txt", "tests/test_rooms.py"]
    assert changed_files(inner, "HEAD") == ["a b\u00e9\n.txt", "test_rooms.py"]


def test_of_many_names_the_first_are_said():
    assert named(["a"]) == "a"
    assert named(["a", "b", "c"], most=2) == "a, b and 1 more"


def test_every_room_of_this_house_has_tests_and_every_test_is_of_a_room():
    reached = {name: PROJECT.tests_of(name) or PROJECT.at([PROJECT.folder(name)]) for name in FLOOR}
    assert [name for name, tests in reached.items() if not tests] == []
    without = PROJECT.at(WITHOUT_A_ROOM)
    assert set(PROJECT.tests) - set().union(*reached.values()) - set(ON_THE_WHOLE) == without


def test_what_the_table_names_is_there():
    places = [f"tests/{place}" for places in TESTED_IN.values() for place in places]
    places += [*ON_THE_WHOLE, *EVERYTHING, *READ, *READ_BY_NOBODY, *(place for places in READ_BY.values() for place in places)]
    assert [place for place in places if not (ROOT / place).exists()] == []
    assert TESTED_IN.keys() <= FLOOR.keys()


def test_every_file_of_this_project_is_known():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no checkout")
    paths = {path for path in listed.stdout.split("\0") if path}
    unknown = {path for path in paths if PROJECT.room_of(path) is None and PROJECT.files_of(path) is None}
    folders = {path for path in unknown if path.startswith("pypoplar/") and path.endswith("/__init__.py")}
    assert unknown - folders == {*EVERYTHING, "pypoplar/py.typed"}
    assert folders & {path.relative_to(ROOT).as_posix() for path in PROJECT.house.modules.values()} == set()


@pytest.mark.parametrize(
    ("changed", "some", "others"),
    [
        (
            "pypoplar/compiler/flattening/lowering.py",
            ["compiler/flattening/test_rules", "engine/test_programs"],
            ["libraries/test_reduce"],
        ),
        ("codelets/popops_reduce.py", ["libraries/test_reduce", "poptorch/test_losses"], ["engine/test_programs"]),
        (
            "pypoplar/report/page/assets/view_memory.js",
            ["report/page/test_views"],
            ["engine/test_programs", "libraries/test_reduce"],
        ),
        ("pypoplar/interface/opcodes.py", ["interface/test_names", "engine/test_programs", "compiler/flattening/test_rules"], []),
        ("tests/helpers/engine_builder.py", ["engine/test_programs"], ["documents/test_readme"]),
        ("tutorials/data/digits.npz", ["tutorials/test_scripts"], ["engine/test_programs"]),
        ("examples/races.py", ["documents/test_examples"], ["engine/test_programs"]),
        ("CONTRIBUTING.md", ["documents/test_readme", "report/page/test_views"], ["engine/test_programs"]),
        ("docs/model.md", ["documents/test_readme", "model/test_published"], ["engine/test_programs"]),
        ("benchmarks/made_report.py", ["report/page/test_views"], ["engine/test_programs"]),
        (".ci/run", ["documents/test_readme"], ["engine/test_programs"]),
    ],
)
def test_in_this_project_a_change_needs_some_tests_and_not_others(changed, some, others):
    files = PROJECT.selection([changed]).files
    assert {f"tests/{test}.py" for test in some} - files == set()
    assert {f"tests/{test}.py" for test in others} & files == set()
