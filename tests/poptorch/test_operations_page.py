"""The page of operations is that which the table gives."""

import ast
import inspect
import re
import runpy
import sys
import textwrap
from pathlib import Path

from pypoplar.poptorch.lowering import (
    element_losses,
    whole_table,  # noqa: F401 (the table's entries)
)
from pypoplar.poptorch.lowering.lowering_table import TABLE

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_the_page_of_operations_is_up_to_date():
    written = runpy.run_path(str(DOCS / "torch_operations.py"))
    assert written["PAGE"].read_text(encoding="utf-8") == written["page"](), "run python docs/torch_operations.py"


def test_the_entries_that_contributing_shows_are_those_of_the_table():
    shown = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    family = Path(element_losses.__file__).read_text(encoding="utf-8")
    (entries,) = re.findall(r"   ```python\n(   @lowers\(.*?)\n   ```", shown, re.DOTALL)
    assert textwrap.dedent(entries) in family


def test_entries_know_no_nodes_of_pytorchs_graph():
    """They ask their operands and their context; nodes are the walks'."""
    modules = {sys.modules[entry.__module__] for entry in TABLE.values()}
    known = {}
    for module in modules:
        nodes = list(ast.walk(ast.parse(inspect.getsource(module))))
        names = {one.id for one in nodes if isinstance(one, ast.Name)} | {
            one.attr for one in nodes if isinstance(one, ast.Attribute)
        }
        names |= {alias.name for one in nodes if isinstance(one, ast.Import | ast.ImportFrom) for alias in one.names}
        known[module.__name__] = names & {
            "fx",
            "Node",
            "node",
            "_node",
            "meta",
            "all_input_nodes",
            "GraphWalk",
            "WalkValues",
            "_walk",
        }
    assert {name: found for name, found in known.items() if found} == {}


def test_nothing_is_told_which_node_is_lowered():
    """A walk hands it on; nobody sets it, to ask an entry for another one's value."""
    package = Path(sys.modules["pypoplar.poptorch"].__file__).parent
    trees = {path: ast.walk(ast.parse(path.read_text(encoding="utf-8"))) for path in package.rglob("*.py")}
    assert [
        (path, one.lineno)
        for path, nodes in trees.items()
        for one in nodes
        if isinstance(one, ast.Attribute) and one.attr == "node" and isinstance(one.ctx, ast.Store)
    ] == []
