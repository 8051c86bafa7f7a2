"""The executable's room knows neither compiler nor engine: loading a file imports none of them, and translates nothing."""

import subprocess
import sys
from pathlib import Path

import pytest
from executable_programs import PROGRAMS

import pypoplar

FOREIGN = ("pypoplar.compiler", "pypoplar.engine", "pypoplar.codelet.frontend", "pypoplar.codelet.llvm",
           "pypoplar.codelet.python", "llvmlite", "numba")  # fmt: skip

LOAD = """
import sys
from types import ModuleType

package = ModuleType("pypoplar")  # without the public names, behind which everything lies
package.__path__ = [sys.argv[1]]
sys.modules["pypoplar"] = package

from pypoplar.executable.executable import Executable

Executable.load(sys.argv[2])
print(*sorted(sys.modules))
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_loading_imports_neither_compiler_nor_engine_nor_translator(name, tmp_path):
    path = tmp_path / "executable.npz"
    PROGRAMS[name]().save(path)
    command = [sys.executable, "-c", LOAD, str(Path(pypoplar.__file__).parent), str(path)]
    modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "pypoplar.executable.verify.executable_claims" in modules
    assert [one for one in modules if one.startswith(FOREIGN)] == []
