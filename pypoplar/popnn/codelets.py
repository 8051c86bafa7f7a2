"""The device code of popnn."""

from __future__ import annotations

from pypoplar import resources
from pypoplar.graph.graph import Graph
from pypoplar.popnn.cycle_estimators import ESTIMATORS


def addCodelets(graph: Graph) -> None:
    """Make the device code of popnn known to the graph; once is enough, more does no harm."""
    graph.addCodelets(resources.codelets("popnn_nonlinearity.py"), resources.codelets("popnn_loss.py"))
    for vertexType, estimator in ESTIMATORS.items():
        graph.registerPerfEstimator(vertexType, estimator)
