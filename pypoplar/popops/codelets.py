"""The device code of popops."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.poputil.arguments import check_graph
from pypoplar.poputil.codelet_modules import add_codelets_of
from pypoplar.tracebacks import public

FILES = (
    "popops_dynamic_slice.py",
    "popops_elementwise.py",
    "popops_encoding.py",
    "popops_fill.py",
    "popops_histogram.py",
    "popops_images.py",
    "popops_index_check.py",
    "popops_loops.py",
    "popops_multi_slice.py",
    "popops_nan.py",
    "popops_rearrange.py",
    "popops_reduce.py",
    "popops_rows.py",
    "popops_scaled_add.py",
    "popops_splines.py",
    "popops_topk.py",
)


@public
def addCodelets(graph: Graph) -> None:
    """Make the device code of popops known to the graph, which its calls need; once is enough, more does no harm.

    Raises
    ------
    PoplarTypeError
        For what is no graph.
    """
    check_graph("popops.addCodelets", graph)
    add_codelets_of(graph, FILES)
