"""Every public name stands on one page of the reference, from its docstring."""

import importlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import pytest

HERE = Path(__file__).parent
PAGES = HERE.parents[1] / "docs" / "api"
MODULES = [
    "pypoplar",
    *(
        f"pypoplar.{name}"
        for name in ("program", "ipu", "pva", "testing", "poputil", "popops", "poprand", "poplin", "popnn", "gcl")
    ),
]
if importlib.util.find_spec("torch") is not None:  # .ci/pytorch runs this file
    MODULES += ["pypoplar.poptorch", "pypoplar.poptorch.optim", "pypoplar.poptorch.profiling"]
    if importlib.util.find_spec("onnx") is not None:
        MODULES += ["pypoplar.onnx", "pypoplar.onnx.backend"]
    if importlib.util.find_spec("keras") is not None:
        MODULES += ["pypoplar.keras", "pypoplar.keras.ipu.config", "pypoplar.keras.ipu.ops.pipelining_ops"]
OF_EXTRAS = {  # and the module of MODULES that is there if what they need is installed
    "pypoplar.poptorch": "pypoplar.poptorch",
    "pypoplar.popdist.poptorch": "pypoplar.poptorch",
    "pypoplar.keras": "pypoplar.keras",
    "pypoplar.onnx": "pypoplar.onnx",
    "pypoplar.popart": "pypoplar.onnx",
}
ABSENT = tuple(f"{module}." for module, needed in OF_EXTRAS.items() if needed not in MODULES)
WITHOUT_A_PLACE = {"pypoplar.poptorch.Error"}  # another name for PoplarError
DIRECTIVE = re.compile(r"^\.\. (currentmodule|automodule|autoclass|autofunction|autodata|py:data):: ([\w.]+)$", re.M)


def public(module):
    """The public names of a module, but not the modules in it."""
    whole = importlib.import_module(module)
    own = [name for name, value in vars(whole).items() if not name.startswith("_") and getattr(value, "__module__", None) == module]
    return {
        f"{module}.{name}" for name in getattr(whole, "__all__", own) if not isinstance(getattr(whole, name), ModuleType | TypeVar)
    }


def named():
    """Every name that a page names, with its page."""
    found = []
    for page in sorted(PAGES.glob("*.md")):
        module = ""
        for directive, name in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            if directive == "currentmodule":
                module = name
            elif directive == "automodule":
                found += [(one, page.name) for one in public(name)]
            else:
                found.append((name if name.startswith("pypoplar.") else f"{module}.{name}", page.name))
    return found


def test_each_name_stands_once():
    names = [name for name, _ in named()]
    assert sorted({name for name in names if names.count(name) > 1}) == []


@pytest.mark.parametrize("module", MODULES)
def test_each_public_name_stands_on_a_page(module):
    assert sorted(public(module) - {name for name, _ in named()} - WITHOUT_A_PLACE) == []


def with_complete_docstrings():
    """The names that tests/documents/test_reference.py holds to it: also classes that calls give, wherever they are defined."""
    spec = importlib.util.spec_from_file_location("reference_of_names", HERE / "test_reference.py")
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    for entry in reference.COMPLETE:
        path, _, only = entry.partition(":")
        for name, value in reference.members(importlib.import_module(path)).items():
            if not only or name in only.split():
                yield f"{path}.{name}", value


def test_what_has_a_complete_docstring_stands_on_a_page():
    def defined(name):
        module, _, member = name.rpartition(".")
        return getattr(importlib.import_module(module), member)

    there = [defined(name) for name, _ in named() if not name.startswith(ABSENT)]
    assert [name for name, value in with_complete_docstrings() if not any(value is one for one in there)] == []
