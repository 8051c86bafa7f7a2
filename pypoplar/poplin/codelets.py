"""The device code of poplin."""

from __future__ import annotations

from pypoplar import resources
from pypoplar.graph.graph import Graph
from pypoplar.poplin.cycle_estimators import ESTIMATORS


def addCodelets(graph: Graph) -> None:
    """Make the device code of poplin known to the graph; once is enough, more does no harm."""
    graph.addCodelets(resources.codelets("poplin_matmul.py"))
    for vertexType, estimator in ESTIMATORS.items():
        graph.registerPerfEstimator(vertexType, estimator)
