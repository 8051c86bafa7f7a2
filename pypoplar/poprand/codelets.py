"""The device code of poprand."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.popops.codelets import addCodelets as add_codelets_of_popops
from pypoplar.poputil.arguments import check_graph
from pypoplar.poputil.codelet_modules import add_codelets_of
from pypoplar.tracebacks import public

FILES = ("poprand_distributions.py",)


@public
def addCodelets(graph: Graph) -> None:
    """Make the device code of poprand and of popops, which it uses, known to the graph; once is enough, more does no harm."""
    check_graph("poprand.addCodelets", graph)
    add_codelets_of_popops(graph)
    add_codelets_of(graph, FILES)
