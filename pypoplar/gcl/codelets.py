"""The device code of collectives, which is that of popops."""

from __future__ import annotations

from pypoplar import popops
from pypoplar.graph.graph import Graph
from pypoplar.poputil.arguments import check_graph
from pypoplar.tracebacks import public


@public
def addCodelets(graph: Graph) -> None:
    """Make the device code of collectives known to the graph, which is that of popops; once is enough, more does no harm.

    Raises
    ------
    PoplarTypeError
        For what is no graph.
    """
    check_graph("gcl.addCodelets", graph)
    popops.addCodelets(graph)
