"""Claims about the program tree: its nodes form trees whose leaves are the steps, each once, and no node is below itself."""

from __future__ import annotations

import numpy as np

from pypoplar.executable.claims import claim, claim_each, claim_range, claim_running, claim_shape
from pypoplar.executable.executable import Executable


def verify_tree(executable: Executable) -> None:
    """Check the program tree of an executable."""
    tree = executable.tree
    nodes = len(tree.type)
    for name in ("name", "detail"):
        claim(len(getattr(tree, name)) == nodes, f"tree.{name} has {len(getattr(tree, name))} entries: expected {nodes}")
    claim_shape("tree.step", tree.step, nodes)
    claim_shape("tree.child", tree.child, len(tree.child))
    claim_range("tree.step", tree.step, -1, len(executable.steps))
    claim_running("tree.first_child", tree.first_child, nodes, len(tree.child))
    counts = np.diff(tree.first_child)
    claim_range("tree.child", tree.child, 0, nodes)
    claim_each("tree.child", tree.child < np.repeat(np.arange(nodes), counts), "does not come before its parent")
    claim_each("tree.step", (tree.step < 0) | (counts == 0), "is a step that consists of other programs")
    steps = np.sort(tree.step[tree.step >= 0])
    claim(bool((steps[1:] > steps[:-1]).all()), "tree.step has a step twice")
    claim_shape("tree.root", tree.root, len(executable.entries))
    claim_range("tree.root", tree.root, 0, nodes)
