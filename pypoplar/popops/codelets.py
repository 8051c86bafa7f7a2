"""The device code of popops."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType

from pypoplar import resources
from pypoplar.codelet.language.codelet_file import module_of_file
from pypoplar.graph.graph import Graph
from pypoplar.poputil.arguments import check_graph
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
    """Make the device code of popops known to the graph; once is enough, more does no harm."""
    check_graph("popops.addCodelets", graph)
    for file in FILES:
        graph.addCodelets(_module(file))


@cache
def _module(file: str) -> ModuleType:
    """The module of a file of codelets, which Python runs once for all graphs."""
    return module_of_file(Path(resources.codelets(file)))
