"""What messages and reports say of the graph: how much there is, and where in the user's code it was made."""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.dtypes import Int64s

PRICED_BY = ("estimate", "estimator", "code")
"""Who decides a vertex's cycles: `Graph.setPerfEstimate`, an estimator of the codelet, or the code as it runs."""


@frozen(eq=False)
class Counts:
    """How much of the graph the programs use."""

    vertices: int
    edges: int  # of these vertices; a row of a list field is one
    variables: int  # all of the graph's, without constants
    compute_sets: int


@frozen(eq=False)
class VertexNames:
    """Where vertices of the graph come from, for messages: their tile and the user's line."""

    location: Int64s  # [vertices]: index into `locations`
    tile: Int64s  # [vertices], -1 for none
    locations: tuple[tuple[str, int, str], ...]  # file, line, function


@frozen(eq=False)
class MadeAt:
    """The user's lines that made what reports name, each ``file:line``. Programs have theirs in the tree and in steps."""

    variables: tuple[str, ...]
    compute_sets: tuple[str, ...]
