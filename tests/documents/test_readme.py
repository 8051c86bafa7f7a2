"""The README's programs run and its commands are what they are said to be."""

import importlib.util
import os
import re
import subprocess
import sys

import document_pages
import pytest
from document_pages import PAGES, ROOT, programs
from unmeasured import unmeasured

from pypoplar.extras import install_command


def blocks(page, language):
    return [block.text for block in document_pages.blocks(page, language)]


PROGRAMS = {page: programs(page) for page in PAGES if programs(page)}  # files of pages are for test_commands
if importlib.util.find_spec("torch") is None:
    for page in ("docs/pytorch.md", "docs/how-to/several-ipus.md"):  # .ci/pytorch runs them
        del PROGRAMS[page]
if any(importlib.util.find_spec(name) is None for name in ("torch", "onnx")):
    del PROGRAMS["docs/onnx.md"]  # the same
if any(importlib.util.find_spec(name) is None for name in ("torch", "keras")):
    del PROGRAMS["docs/keras.md"]  # the same


OTHERS_WARNINGS = {"docs/keras.md": ["-W", "ignore:__array__ implementation:DeprecationWarning"]}  # Keras' of NumPy


@pytest.mark.parametrize("page", PROGRAMS)
def test_programs_in_the_documents_run(page, tmp_path):
    """The blocks of a page, each a file of tests; or all of them together as one program, which a page goes on with.

    Where a block has its output behind it, that is what the program prints.
    """
    texts = [block.text for block in PROGRAMS[page]]
    tests = any("def test_" in text for text in texts)
    files = []
    for number, text in enumerate(texts if tests else ["\n".join(texts)]):
        files.append(tmp_path / (f"test_program_{number}.py" if tests else "program.py"))
        files[-1].write_text(text, encoding="utf-8")
    pytest_command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pypoplar.testing.plugin"] if tests else []
    command = [sys.executable, *(pytest_command or ["-W", "error", *OTHERS_WARNINGS.get(page, [])]), *map(str, files)]
    environment = {**unmeasured(), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = "\n".join(block.output for block in PROGRAMS[page] if block.output is not None)
    if shown:
        printed = done.stdout.replace(f"{tmp_path}{os.sep}", "")  # files stand beside each other
        assert [line for line in printed.splitlines() if line] == [line for line in shown.splitlines() if line]


def test_the_first_program_is_short_and_prints_squares(tmp_path):
    first = blocks("README.md", "python")[0]
    assert len(first.splitlines()) <= 20
    program = tmp_path / "first.py"
    program.write_text(first, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True, check=True)
    assert "x: [1.0000000 2.2500000 4.0000000 6.2500000]" in done.stderr


def test_one_page_says_how_to_install_from_a_checkout_and_the_others_lead_there():
    for page in ("README.md", "docs/start.md", "docs/pytorch.md"):
        assert "install.md)" in (ROOT / page).read_text(encoding="utf-8"), page
    (commands,) = blocks("docs/install.md", "sh")
    assert "pip install -e ." in commands
    assert "no package registry yet" in (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    fetched = re.compile(r"^\s*(\S*/)?pip install '?pypoplar", re.MULTILINE)
    assert [page for page in PAGES if any(fetched.search(block) for block in blocks(page, "sh"))] == []


def test_what_installs_an_extra_is_said_in_one_place():
    says = [page for page in PAGES if "pypoplar[" in (ROOT / page).read_text(encoding="utf-8")]
    assert says in ([], ["CHANGELOG.md"])
    sources = [*(ROOT / "pypoplar").rglob("*.py"), *(ROOT / "tutorials").rglob("*.py")]
    assert [path.name for path in sources if "pip install" in path.read_text(encoding="utf-8")] == ["extras.py"]
    (commands,) = blocks("docs/install.md", "sh")
    for extra in ("report", "trace", "pytorch", "onnx", "keras", "docs"):
        command, _, where = install_command(extra).partition(" in ")
        assert command in commands
        assert where == "a checkout of pypoplar"


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
    prose = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.S | re.M)  # a call of what an index gives looks like a link
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
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
