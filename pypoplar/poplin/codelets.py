"""The device code of poplin."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.poplin.cycle_estimators import ESTIMATORS
from pypoplar.poplin.flop_estimators import FLOPS
from pypoplar.poputil.arguments import check_graph
from pypoplar.poputil.codelet_modules import codelet_module
from pypoplar.poputil.flop_conventions import with_flops
from pypoplar.tracebacks import public


@public
def addCodelets(graph: Graph) -> None:
    """Make the device code of poplin known to the graph; once is enough, more does no harm."""
    check_graph("poplin.addCodelets", graph)
    graph.addCodelets(codelet_module("poplin_matmul.py"))
    graph.addCodelets(codelet_module("poplin_convolution.py"))
    for vertexType, estimator in with_flops(ESTIMATORS, FLOPS).items():
        graph.registerPerfEstimator(vertexType, estimator)
