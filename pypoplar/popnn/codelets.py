"""The device code of popnn."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.popops.codelets import addCodelets as add_codelets_of_popops
from pypoplar.poputil.arguments import check_graph
from pypoplar.poputil.codelet_modules import add_codelets_of
from pypoplar.tracebacks import public

FILES = ("popnn_ctc.py", "popnn_ctc_search.py", "popnn_loss.py", "popnn_nonlinearity.py", "popnn_pooling.py", "popnn_roi_align.py")


@public
def addCodelets(graph: Graph) -> None:
    """Make the device code of popnn and of popops, which it uses, known to the graph; once is enough, more does no harm."""
    check_graph("popnn.addCodelets", graph)
    add_codelets_of_popops(graph)
    add_codelets_of(graph, FILES)
