"""Graphs without anything, for a small machine."""

from pypoplar import Graph, IPUModel


def new_graph() -> Graph:
    """An empty graph for one IPU of 16 tiles."""
    return Graph(IPUModel("tiny").createDevice().getTarget())
