"""The README's programs run and its commands are what they are said to be."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from unmeasured import unmeasured

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    *(f"docs/{one.relative_to(ROOT / 'docs')}" for one in sorted((ROOT / "docs").rglob("*.md")) if one.parent.name != "api"),
]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.S | re.M)


def printed(page):
    """The outputs that a page shows behind its programs, one below the other."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```python\n(?:(?!^```).)*^```\n\n```text\n(.*?)^```", text, re.S | re.M))


PROGRAMS = {page: blocks(page, "python") for page in PAGES if blocks(page, "python")}
if importlib.util.find_spec("torch") is None:
    del PROGRAMS["docs/pytorch.md"]  # .ci/pytorch runs it


@pytest.mark.parametrize("page", PROGRAMS)
def test_programs_in_the_documents_run(page, tmp_path):
    """The blocks of a page, each a file of tests; or all of them together as one program, which a page goes on with.

    Where a block has its output behind it, that is what the program prints.
    """
    tests = any("def test_" in block for block in PROGRAMS[page])
    files = []
    for number, text in enumerate(PROGRAMS[page] if tests else ["\n".join(PROGRAMS[page])]):
        files.append(tmp_path / f"test_program_{number}.py")
        files[-1].write_text(text, encoding="utf-8")
    pytest_command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pypoplar.testing.plugin"] if tests else []
    command = [sys.executable, *(pytest_command or ["-W", "error"]), *map(str, files)]
    environment = {**unmeasured(), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    if printed(page):
        assert [line for line in done.stdout.splitlines() if line] == [line for line in printed(page).splitlines() if line]


def test_the_first_program_is_short_and_prints_squares(tmp_path):
    first = blocks("README.md", "python")[0]
    assert len(first.splitlines()) <= 20
    program = tmp_path / "first.py"
    program.write_text(first, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True, check=True)
    assert "x: [1.0000000 2.2500000 4.0000000 6.2500000]" in done.stderr


def test_the_readme_has_the_newcomers_two_commands():
    regression, tests = [line for block in blocks("README.md", "sh") for line in block.splitlines() if "venv" in line]
    assert regression.endswith("pypoplar tutorial regression")
    assert "pytest" in tests
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert 'grep -m 1 "^python3 -m venv .venv && .*pytest" README.md' in script
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_between_documents_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if "://" not in link:
            assert ((ROOT / page).parent / link).exists(), link


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md"])
def test_places_in_the_code_that_documents_name_are_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    places = [place for place in re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", text) if "NAME" not in place]
    assert [place for place in places if not (ROOT / place).exists() and not (ROOT / "pypoplar" / place).exists()] == []


def test_the_version_is_the_same_everywhere():
    import tomllib

    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_tutorial_stands_on_the_page_of_tutorials():
    from pypoplar import resources

    page = (ROOT / "docs" / "tutorials.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", page.partition("| --- |")[2]))
    assert named == {name for name in resources.tutorials() if not name.startswith("gallery/")}
