"""The device code of popnn."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.popnn.cycle_estimators import ESTIMATORS
from pypoplar.popnn.flop_estimators import FLOPS
from pypoplar.poputil.arguments import check_graph
from pypoplar.poputil.codelet_modules import codelet_module
from pypoplar.poputil.flop_conventions import with_flops
from pypoplar.tracebacks import public


@public
def addCodelets(graph: Graph) -> None:
    """Make the device code of popnn known to the graph; once is enough, more does no harm."""
    check_graph("popnn.addCodelets", graph)
    graph.addCodelets(codelet_module("popnn_nonlinearity.py"), codelet_module("popnn_loss.py"))
    for vertexType, estimator in with_flops(ESTIMATORS, FLOPS).items():
        graph.registerPerfEstimator(vertexType, estimator)
