"""A backend of code generation: what its code depends on, and what it refuses."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import frozen
from written_codelets import DOT, codelet

from pypoplar.codelet.backend.native_codelet import SOURCES, host_backend
from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.typed import IfElse, Literal
from pypoplar.codelet.llvm.eight_lanes import Lanes


def imported_by(module):
    """The modules of pypoplar that a module imports, at its top or within functions."""
    spec = importlib.util.find_spec(module)
    for node in ast.walk(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        base = [f"{node.module}.{name}" for name in names] + [node.module] if isinstance(node, ast.ImportFrom) else names
        for name in base:
            if name.startswith("pypoplar.") and is_module(name):
                yield name


def is_module(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def imports_of(*modules):
    """The modules of pypoplar without which some modules cannot run."""
    reached, waiting = set(), list(modules)
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting.extend(imported_by(module))
    return reached


def test_a_change_of_any_module_that_decides_what_code_is_makes_code_anew():
    sources = SOURCES + host_backend().sources
    knows_no_code = {
        "pypoplar.errors",
        "pypoplar.spelling",
        "pypoplar.codelet.backend.contract",
        "pypoplar.host_code.once",
        "pypoplar.host_code",
        "pypoplar.codelet.backend",
        "pypoplar.codelet",
    }
    reached = imports_of("pypoplar.codelet.llvm.host_backend")
    assert "pypoplar.codelet.llvm.vertex_code" in reached
    for module in sorted(reached - knows_no_code):
        assert any(module == source or module.startswith(f"{source}.") for source in sources), module


@frozen
class Prefetch:
    """A kind of statement that no backend knows."""

    where: int = 0


@pytest.mark.parametrize("body", [Prefetch(), IfElse(Literal(True, "bool"), (Prefetch(),), (), 0)])
def test_an_unknown_statement_is_refused_by_name(body):
    with pytest.raises((AssertionError, NotImplementedError), match="Prefetch"):
        host_backend().object_code(codelet(["out output scalar f32"], body), Checks())


def test_an_unknown_statement_has_no_lanes():
    with pytest.raises(NotImplementedError, match="Prefetch"):
        Lanes(None, ()).emit(None, Prefetch())


def test_a_backend_makes_what_it_loads():
    backend = host_backend()
    assert backend.load(backend.object_code(DOT, Checks())).address != 0
    assert backend.identity() == backend.identity()


def test_nothing_is_imported_that_makes_code_before_code_is_asked_for():
    script = """
import sys
import pypoplar, pypoplar.program, pypoplar.testing, pypoplar.pva
import pypoplar.cli
makers = {"llvmlite", "numba", "pypoplar.codelet.llvm"} & sys.modules.keys()
assert not makers, makers
"""
    subprocess.run([sys.executable, "-c", script], check=True)
