"""What memory the plans of single operations may take."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.poptorch import operators  # noqa: F401 (makes them known to PyTorch)
from pypoplar.poptorch.capture import JointGraph


def own_proportions(joint: JointGraph) -> dict[int, float]:
    """The parts of memory that `set_available_memory` gives operations of the module, by the identity of their origins."""
    found: dict[int, float] = {}
    for node in joint.graph.nodes:
        if node.target is torch.ops.poptorch.set_available_memory.default:
            source: Any = node.args[0]
            found[id(source.meta.get("origin"))] = node.args[1]
    return found
