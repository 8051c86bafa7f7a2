"""Tiles that are set aside for collectives and for overlapped I/O."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.poputil.arguments import check_graph
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.target import check_count
from pypoplar.tracebacks import public

FEWEST = 32
"""Tiles of an IPU: what TensorFlow for the IPU asks for at least where I/O has tiles of its own."""


@public
def perIPUTiles(graph: Graph, offset: int, count: int, sorted: bool = True, tilePairs: bool = False) -> list[int]:
    """Numbers of so many tiles of each IPU, for `Graph.createVirtualGraph`; those of other offsets do not overlap them.

    Every tile of the simulated machine reaches the links alike, so that they are those that follow the offset.

    Parameters
    ----------
    offset:
        How many tiles of each IPU stand before them, in the order of this function.
    count:
        How many of each IPU.
    sorted:
        Whether their numbers rise; they always do here.
    tilePairs:
        Whether both tiles of a pair, which share an exchange bus, are taken together: offset and count are even then.

    Returns
    -------
    list of int
        Those of IPU 0, then those of IPU 1, and so on.

    Raises
    ------
    PoplibsError
        If an IPU has not so many, or pairs would be cut.
    InvalidOption
        If offset or count is no whole number of 0 at least.

    Examples
    --------
    >>> from pypoplar import Graph, IPUModel
    >>> from pypoplar.gcl import perIPUTiles
    >>> graph = Graph(IPUModel("tiny").createDevice())
    >>> io, compute = perIPUTiles(graph, 0, 4), perIPUTiles(graph, 4, 12)
    >>> io
    [0, 1, 2, 3]
    >>> graph.createVirtualGraph(compute).getTarget().getTilesPerIPU()
    12
    """
    check_graph("gcl.perIPUTiles", graph)
    begin, number = check_count("offset", offset, 0), check_count("count", count, 0)
    target = graph.getTarget()
    tiles = target.getTilesPerIPU()
    if begin + number > tiles:
        raise PoplibsError(f"gcl.perIPUTiles: an IPU has {tiles:,} tiles; {number:,} from {begin:,} on are more")
    if tilePairs and (begin % 2 or number % 2):
        raise PoplibsError(f"gcl.perIPUTiles: {number} tiles from {begin} on are no whole pairs")
    return [ipu * tiles + tile for ipu in range(target.getNumIPUs()) for tile in range(begin, begin + number)]


@public
def getMinIoTiles(graph: Graph) -> int:
    """The fewest tiles of an IPU that are worth setting aside for I/O: 32, as TensorFlow for the IPU has it, if it has so many.

    Returns
    -------
    int
        How many, of each IPU.

    Raises
    ------
    PoplarTypeError
        For what is no graph.
    """
    check_graph("gcl.getMinIoTiles", graph)
    return min(FEWEST, graph.getTarget().getTilesPerIPU())
