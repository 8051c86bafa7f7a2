"""Damage to what an executable says of its replicas."""

from __future__ import annotations

from typing import Any

import numpy as np
from damage import Damages, both, on
from damage_of_host import last_stream, stream
from executable_damage import Change, Opened, put, put_leaf


def replicas(**values: Any) -> Change:
    """An executable of one replica says that it has several; a function gets the tree."""

    def change(damaged: Opened) -> None:
        damaged.arrays["replication.index"] = np.zeros(0, np.int64)
        damaged.head["texts"].append([])
        parted = len(damaged.head["texts"]) - 1
        told = {"factor": 2, "index": ["replication.index", 0, 0, 2], "broadcast": [], "parted": parted, "branches": []}
        damaged.tree["replication"] = told | {
            name: value(damaged.tree) if callable(value) else value for name, value in values.items()
        }

    return change


def parted_name(damaged: Opened) -> None:
    """A host write that nobody has made has values for each replica."""
    damaged.head["texts"].append(["nobody's"])
    damaged.tree["replication"]["parted"] = len(damaged.head["texts"]) - 1


OF_REPLICAS: Damages = {
    "replication.factor low": on("transfers", replicas(factor=1)),
    "replication.factor high": on("transfers", replicas(factor=(1 << 16) + 1)),
    "replication.index reach": on("replicated", put("replication.index", (0, 1), 61)),
    "replication.broadcast low": on("transfers", both(stream(kind="to device"), replicas(broadcast=[-1]))),
    "replication.broadcast high": on("transfers", replicas(broadcast=lambda tree: [last_stream(tree) + 1])),
    "replication.broadcast kind": on("replicated", put_leaf("replication", "broadcast", 0, 1)),
    "replication.parted": on("replicated", parted_name),
}
