"""Laws draw what their profile says, and the same examples in every process."""

import os
import subprocess
import sys
from pathlib import Path

from git_commands import git
from law_examples import commit_seed

TESTS = Path(__file__).parent
LAW = """
import importlib
import os

from hypothesis import given, strategies as st
from law_examples import examples

for module in os.environ["IMPORTED"].split():
    importlib.import_module(module)


@given(st.integers(), st.floats(), st.lists(st.sampled_from(range(1000))))
def test_usual(integer, number, row):
    print("usual", integer, number, row)


@examples(40)
@given(st.integers())
def test_of_forty(integer):
    print("of forty", integer)


@examples(5)
@given(st.integers())
def test_of_five(integer):
    print("of five", integer)
"""


def drawn(folder, profile, imported=(), hash_seed="0", **variables):
    """What laws print that are run under a profile by pytest with this project's conftest."""
    (folder / "conftest.py").write_bytes((TESTS / "conftest.py").read_bytes())
    (folder / "test_law.py").write_text(LAW, encoding="utf-8")
    path = os.pathsep.join(map(str, (TESTS / "helpers", TESTS.parent)))
    hidden = ("COVERAGE", "COV_", "HYPOTHESIS", "PYTEST", "PYPOPLAR_SEED")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    environment |= {"PYTHONPATH": path, "PYTHONHASHSEED": hash_seed, "HYPOTHESIS_PROFILE": profile, "IMPORTED": " ".join(imported)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        f"--rootdir={folder}",
        str(folder / "test_law.py"),
    ]
    done = subprocess.run(command, env=environment | variables, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def numbers(lines):
    return tuple(sum(line.lstrip(".").startswith(law) for line in lines) for law in ("usual", "of forty", "of five"))


def laws(lines):
    return [line for line in lines if line.lstrip(".").startswith(("usual", "of "))]


def test_a_law_draws_the_same_examples_whatever_else_its_process_has_imported(tmp_path):
    imported = ("pypoplar.compiler.compile", "pypoplar.engine.engine", "pypoplar.report.making.make_report")
    for profile, count in (("project", (20, 8, 5)), ("ci", (100, 40, 5))):
        lines = laws(drawn(tmp_path, profile, PYPOPLAR_SEED="a"))
        assert numbers(lines) == count
        assert laws(drawn(tmp_path, profile, imported, "1", PYPOPLAR_SEED="a")) == lines


def test_the_fewest_examples_are_drawn_where_little_is_asked_for(tmp_path):
    assert numbers(drawn(tmp_path, "few")) == (3, 3, 3)


def test_every_seed_draws_examples_of_its_own_and_is_printed(tmp_path):
    first, second = (drawn(tmp_path, "ci", PYPOPLAR_SEED=seed) for seed in ("471340e", "12"))
    assert laws(first) != laws(second)
    assert "Laws were drawn with HYPOTHESIS_PROFILE=ci PYPOPLAR_SEED=471340e" in first


def test_a_commit_is_a_seed_and_where_there_is_none_a_word_is(tmp_path, monkeypatch):
    monkeypatch.delenv("PYPOPLAR_SEED", raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commit_seed(tmp_path) == "no-commit"
    git(tmp_path, "init", "-q")
    assert commit_seed(tmp_path) == "no-commit"
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "change")
    first = commit_seed(tmp_path)
    assert git(tmp_path, "rev-parse", "HEAD").startswith(first)
    assert f"Laws were drawn with HYPOTHESIS_PROFILE=ci PYPOPLAR_SEED={first}" in drawn(tmp_path, "ci")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "another change")
    assert commit_seed(tmp_path) != first
    monkeypatch.setenv("PYPOPLAR_SEED", first)
    assert commit_seed(tmp_path) == first
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("PYPOPLAR_SEED")
    assert commit_seed(tmp_path) == "no-commit"


def test_how_many_examples_a_law_has_stands_in_one_module():
    sources = [path for path in TESTS.rglob("*.py") if path != Path(__file__)]
    assert [path.name for path in sources if "max_examples" in path.read_text(encoding="utf-8")] == ["law_examples.py"]
