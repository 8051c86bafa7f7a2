"""The page's scripts without a browser: their arithmetic and types by node and TypeScript, where these are there."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pypoplar.report.page.document import ASSETS

HERE = Path(__file__).parent / "scripts"
SCRIPTS = {path.name: path.read_text(encoding="utf-8") for path in Path(str(ASSETS)).glob("*.js")}


def command(name):
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: the page's scripts are tried where it is")
    return found


def ran(*arguments):
    done = subprocess.run([*map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_arithmetic_of_the_page_is_right():
    tests = sorted(HERE.glob("*.test.mjs"))
    assert tests
    told = ran(command("node"), "--test", "--test-reporter=tap", *tests)
    counts = {name: int(count) for name, count in re.findall(r"^# (pass|fail|skipped) (\d+)$", told, re.MULTILINE)}
    assert counts == {"pass": sum(path.read_text(encoding="utf-8").count("\ntest(") for path in tests), "fail": 0, "skipped": 0}


def test_the_types_of_the_page_agree():
    ran(command("tsc"), "-p", HERE / "jsconfig.json")


def test_what_scripts_take_of_the_page_is_there():
    """TypeScript takes unknown names of an object that is added to as anything."""
    text = "\n".join(SCRIPTS.values())
    made = set(re.findall(r"^page\.(\w+) =\s", text, re.MULTILINE)) | {"views", "data"}
    assert set(re.findall(r"(?<![\w.])page\.(\w+)", re.sub(r"^ *//.*", "", text, flags=re.MULTILINE))) == made


def test_scripts_of_one_page_have_different_names():
    """They are one program: a function of the same name would take the place of another's."""
    for views in ("view_[!c]", "view_compare_"):
        chosen = [text for name, text in SCRIPTS.items() if not name.startswith("view_") or re.match(views, name)]
        names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", "\n".join(chosen), re.MULTILINE)
        assert sorted(set(names)) == sorted(names)
