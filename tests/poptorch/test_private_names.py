"""What pypoplar uses of PyTorch's private names stands in one list, which holds for the PyTorch that is installed."""

import ast
import importlib
from pathlib import Path

import pytest
import torch
from private_uses import PRIVATE, defined_names, longest, private_uses

from pypoplar.poptorch.private_names import NAMES, OPERATIONS

ROOT = Path(__file__).parents[2]
LISTED = {*NAMES, *(f"torch.ops.aten.{name}" for name in OPERATIONS)}
OF_OBJECTS = (
    torch.nn.Linear(1, 1),
    torch.ops.aten.relu.default,
    torch.zeros(1),
    torch.zeros(1).untyped_storage(),
    torch.utils.data.DataLoader([0]),
    torch.optim.SGD([torch.zeros(1)]),
)
OWN = {  # attributes and parts of names that are pypoplar's
    *("_device_states", "_gradient", "_order_momentum_accum_type"),
    *("_checkpoint", "_return_to"),  # of the engine
}

SOURCES = {
    path: ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "pypoplar" / "poptorch").rglob("*.py"))
    if path.name != "private_names.py"
}
OTHERS = [
    path
    for folder in ("pypoplar", "tests", "benchmarks", "docs", "tutorials", "examples", "codelets")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path not in SOURCES and path.name not in ("private_names.py", Path(__file__).name)
]
DEFINED = {name for tree in SOURCES.values() for name in defined_names(tree)}


def found(path):
    """What PyTorch has by a path: a module, what lies in one, or an attribute of its classes or of their objects."""
    owner, _, name = path.rpartition(".")
    if not owner:
        return importlib.import_module(path)
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        holder = found(owner)
    if isinstance(holder, type):
        holder = next((one for one in OF_OBJECTS if isinstance(one, holder)), holder)
    return getattr(holder, name)


def paths(tree):
    return private_uses(tree, "torch").paths


def names(tree):
    """Names of what the source does not show the place of, without those that pypoplar has itself."""
    return private_uses(tree, "torch").names - DEFINED - OWN


def inherited(tree, module):
    """Private names of PyTorch's classes that a class derived from them uses, or hides, as its own."""
    for node in ast.walk(tree):
        there = getattr(module, node.name, None) if isinstance(node, ast.ClassDef) else None
        if isinstance(there, type):
            bases = [base for base in there.__mro__ if base.__module__.partition(".")[0] == "torch"]
            known = {name for base in bases for name in (*vars(base), *vars(base).get("__annotations__", {}))}
            own = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)} | set(defined_names(node))
            yield from (name for name in own & known if PRIVATE.fullmatch(name))


def inherited_names():
    return {
        name
        for path, tree in SOURCES.items()
        if path.stem not in ("__init__", "__main__")
        for name in inherited(tree, importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts)))
    }


@pytest.mark.parametrize("path", sorted(LISTED))
def test_a_listed_name_is_there_in_this_pytorch(path):
    found(path)


def test_what_is_not_there_is_found_missing():
    for path in ("torch._no_such_module", "torch.nn.Module._no_such_attribute", "torch.ops.aten._no_such_operation"):
        with pytest.raises(AttributeError, match="_no_such"):
            found(path)


def test_every_private_name_in_use_is_listed():
    shown = longest(path for tree in SOURCES.values() for path in paths(tree))
    asked = {name for tree in SOURCES.values() for name in names(tree)} | inherited_names()
    assert shown - LISTED == set()
    assert asked - {path.rpartition(".")[2] for path in LISTED} == set()


def test_other_rooms_and_the_tests_use_nothing_that_is_not_listed():
    shown = {path for other in OTHERS for path in paths(ast.parse(other.read_text(encoding="utf-8")))}
    operations = {f"torch.{name}" for name in OPERATIONS}  # as functions of PyTorch's
    assert {path for path in shown - operations if not any(f"{one}.".startswith(f"{path}.") for one in LISTED)} == set()


def test_every_listed_name_is_in_use():
    shown = {path for tree in SOURCES.values() for path in paths(tree)}
    asked = {name for tree in SOURCES.values() for name in names(tree)} | inherited_names()
    assert {path for path in LISTED - shown if path.rpartition(".")[2] not in asked} == set()


@pytest.mark.parametrize(
    ("source", "shown", "asked"),
    [
        ("import torch._a.b", {"torch._a.b"}, set()),
        ("import torch.a._b as c\nc.d(1)", {"torch.a._b", "torch.a._b.d"}, set()),
        ("from torch.a import _b as c\nc._d.e", {"torch.a._b", "torch.a._b._d.e"}, set()),
        ("def f():\n    import torch as t\n    return t.a(t._b.c)", {"torch._b.c"}, set()),
        ("import torch\nops = torch.ops.aten\nops._a.default", {"torch.ops.aten._a"}, set()),
        ("from torch import a\na._b.c = a.d = 1\ndel a._e.f", {"torch.a._b", "torch.a._e"}, set()),
        ("import torch\ntorch.a(1)._b.c", set(), {"_b"}),
        ("getattr(x, '_a') or '_b' in x or x['torch._c.d']", {"torch._c.d"}, {"_a", "_b"}),
        ("import sys, torch\nsys._getframe(1), torch.__file__, x.__dict__, 'a _b'", set(), set()),
    ],
)
def test_private_names_are_found_in_a_source(source, shown, asked):
    uses = private_uses(ast.parse(source), "torch")
    assert (uses.paths, uses.names) == (shown, asked)
