"""A copy of the project in which the binary interface has other numbers: every slot, column, code and bit is another.

What takes a number from anywhere but `pypoplar.interface` reads the wrong word there, or a word that nobody writes.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from unmeasured import unmeasured

import pypoplar
from pypoplar.resources import directory

PROJECT = Path(__file__).parent.parent.parent
SHIFTS = (
    ("Layout", "return count", "return 2 * count + 1"),  # a word before every word
    ("Code", "return count", "return count + 40"),
    ("Bit", "return 1 << count", "return 2 << count"),
)


def shifted_project(folder: Path) -> None:
    """Copy package and tests to a folder, with other numbers."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(pypoplar.__file__).parent, folder / "pypoplar", ignore=ignored)
    shutil.copytree(PROJECT / "tests", folder / "tests", ignore=ignored)
    shutil.copytree(directory("codelets"), folder / "codelets", ignore=ignored)
    shutil.copy(PROJECT / "pyproject.toml", folder)
    source = folder / "pypoplar" / "interface" / "layout.py"
    text = source.read_text()
    for name, old, new in SHIFTS:
        head, start, rest = text.partition(f"class {name}(IntEnum):")
        assert start
        assert old in rest
        text = head + start + rest.replace(old, new, 1)
    source.write_text(text)


def run_python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python where the copy is the only pypoplar, with a cache of its own and few examples of laws."""
    environment = {name: value for name, value in unmeasured().items() if not name.startswith("PYTEST_")}
    environment |= {"PYTHONPATH": str(folder), "PYPOPLAR_CACHE_DIR": str(folder / "cache"), "HYPOTHESIS_PROFILE": "few"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
