"""Marks on the operations that are captured from now on: PyTorch keeps them with each node of the graph, in meta["custom"].

`torch.fx.traceback.annotate` does the same for a `with` statement. What blocks mark ends where the next one begins, or with the
capture, in an order that may differ from that of scopes; so each mark is set and taken back by its name alone.
"""

from __future__ import annotations

from typing import Any

from torch.fx import traceback


def mark_nodes(name: str, value: Any) -> None:
    """Mark operations with a value under a name; with None no more."""
    marks = {other: mark for other, mark in traceback.current_meta.get("custom", {}).items() if other != name}
    if value is not None:
        marks[name] = value
    if marks:
        traceback.current_meta["custom"] = marks  # a new one: PyTorch keeps the old one to come back to
    else:
        traceback.current_meta.pop("custom", None)


def mark_of(meta: dict[str, Any], name: str) -> Any:
    """What a node is marked with under a name, None if it is not."""
    return (meta.get("custom") or {}).get(name)
