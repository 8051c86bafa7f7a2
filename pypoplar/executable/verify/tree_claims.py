"""Claims about the program tree: its nodes form trees whose leaves are the steps, each once, and no node is below itself."""

from __future__ import annotations

import numpy as np

from pypoplar.executable.executable import Executable
from pypoplar.executable.verify.named_checks import (
    check,
    check_each,
    check_least,
    check_most,
    check_range,
    check_running,
    check_shape,
)
from pypoplar.interface.layout import NOTHING


def verify_tree(executable: Executable) -> None:
    """Check the program tree of an executable."""
    tree = executable.tree
    nodes = len(tree.type)
    for name in ("name", "detail", "made_at"):
        entries = len(getattr(tree, name))
        check(f"tree.{name}", entries == nodes, f"tree.{name} has {entries} entries: expected {nodes}")
    check_shape("tree.step", tree.step, nodes)
    check_shape("tree.child", tree.child, len(tree.child))
    check_range("tree.step", tree.step, NOTHING, len(executable.steps))
    check_running("tree.first_child", tree.first_child, nodes, len(tree.child))
    counts = np.diff(tree.first_child)
    check_least("tree.child", tree.child, 0)
    parent = np.repeat(np.arange(nodes), counts)
    check_most("tree.child order", tree.child, parent - 1, "does not come before its parent", "tree.child")
    check_each("tree.step leaves", (tree.step == NOTHING) | (counts == 0), "is a step that consists of other programs", "tree.step")
    steps = np.sort(tree.step[tree.step != NOTHING])
    check("tree.step once", bool((steps[1:] > steps[:-1]).all()), "tree.step has a step twice")
    check_shape("tree.root", tree.root, len(executable.entries))
    check_range("tree.root", tree.root, 0, nodes)
