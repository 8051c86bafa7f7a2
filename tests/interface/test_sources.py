"""What the driver is made from is in the key of its code; and the interface imports nothing of pypoplar but itself."""

import ast
import importlib.util
from pathlib import Path

import pytest

from pypoplar.engine.native import driver_code

UNITS = [driver_code.MOVING, driver_code.SUPERSTEP, driver_code.GENERAL, driver_code.DRIVER]
# What decides nothing about the code: where it is kept, errors and their texts.
ASIDE = ("pypoplar.host_code.cache", "pypoplar.host_code.once", "pypoplar.errors", "pypoplar.spelling")
# LLVM is told of the functions of the C library, which the driver does not call.
NOT_THE_DRIVERS = "pypoplar.codelet.operations"


def source_of(module):
    return Path(importlib.util.find_spec(module).origin)


def imports_of(module):
    """The modules of pypoplar that a module imports, anywhere in its text."""
    found = set()
    for node in ast.walk(ast.parse(source_of(module).read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                is_module = node.module.startswith("pypoplar") and is_there(inner)
                found.add(inner if is_module else node.module)
    return {name for name in found if name.partition(".")[0] == "pypoplar"}


def is_there(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def everything_imported(module, *aside):
    """A module, and all of pypoplar that it imports, directly or not, but for what stands aside."""
    waiting, seen = [module], set()
    while waiting:
        name = waiting.pop()
        if name not in seen and not name.startswith((*ASIDE, *aside)):
            seen.add(name)
            waiting += imports_of(name)
    return seen


@pytest.mark.parametrize("module", [module for module, _ in UNITS])
def test_the_drivers_key_has_all_sources_of_its_units(module):
    for name in everything_imported(module, NOT_THE_DRIVERS):
        assert name.startswith(driver_code.SOURCES), name


def test_the_interface_imports_nothing_of_pypoplar_but_itself():
    for path in source_of("pypoplar.interface").parent.glob("*.py"):
        module = "pypoplar.interface" if path.stem == "__init__" else f"pypoplar.interface.{path.stem}"
        for name in imports_of(module):
            assert name.startswith("pypoplar.interface."), (module, name)
