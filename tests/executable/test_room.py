"""The executable's room knows neither compiler nor engine: loading a file imports none of them, and translates nothing."""

import subprocess
import sys

import pytest
from executable_programs import PROGRAMS

FOREIGN = ("pypoplar.compiler", "pypoplar.engine", "pypoplar.graph", "pypoplar.program", "pypoplar.codelet.frontend",
           "pypoplar.codelet.llvm", "pypoplar.codelet.python", "pypoplar.codelet.ir.typed", "llvmlite", "numba")  # fmt: skip

LOAD = """
import sys
from pypoplar import Executable

Executable.load(sys.argv[1])
print(*sorted(sys.modules))
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_loading_imports_neither_compiler_nor_engine_nor_translator(name, tmp_path):
    path = tmp_path / "executable.npz"
    PROGRAMS[name]().save(path)
    done = subprocess.run([sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    assert "pypoplar.executable.verify.executable_claims" in modules
    assert [module for module in modules if module.startswith(FOREIGN)] == []
