"""`popops.CircBuf`: the last few tensors of a sequence of them."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from pypoplar.arrays.intervals import Interval
from pypoplar.graph.graph import Graph
from pypoplar.graph.mapping import TileToTensorMapping
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.padding.pad_call import pad
from pypoplar.popops.slicing.dynamic_slice import dynamicSlice, dynamicUpdate, getSliceMapping
from pypoplar.poputil.arguments import (
    check_call,
    check_codelet,
    check_debug,
    check_graph,
    check_operands,
    element_type,
    shape_of,
    whole_number,
)
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.region_splitting import splitRegions
from pypoplar.program import Execute, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import UNSIGNED_INT, ElementType

GRAIN = 4  # elements of an entry that lie side by side: 64 bits of halves
INCREMENT_CYCLES, OFFSET_CYCLES = 8, 10  # CircBufIncrIndex and CircOffset, by popopsCycleEstimators of PopLibs


@public
class CircBuf:
    """A buffer of the last `size` tensors of a type and shape that were added; each new one takes the place of the oldest.

    The index of the newest one is kept on the device. What has not been added yet is undefined.

    Parameters
    ----------
    dataType:
        The type of the tensors.
    size:
        How many of them the buffer holds, 1 at least.
    shape:
        The shape of each; it has elements.

    Raises
    ------
    PoplibsError
        For a size below 1, and a shape without elements.

    Notes
    -----
    Entries are spread over all tiles in grains of 4 elements; a call of `add` or `prev` costs a superstep for the index and one
    of a dynamic update or slice.
    """

    def __init__(
        self, graph: Graph, dataType: ElementType, size: int, shape: Iterable[int], debugContext: str | None = None
    ) -> None:
        check_graph("popops.CircBuf", graph)
        check_debug("popops.CircBuf", debugContext)
        self._size = whole_number("popops.CircBuf", "size", size, 1)
        self._shape = list(shape_of("popops.CircBuf", shape))
        self._graph, self._type = graph, element_type("popops.CircBuf", dataType)
        elements = prod(self._shape)
        if elements == 0:
            raise PoplibsError(f"popops.CircBuf: the tensors have elements, got the shape {self._shape}")
        grains = -(-elements // GRAIN)
        self._padding = grains * GRAIN - elements
        self._entries = graph.addVariable(self._type, [grains, self._size, GRAIN], below(debugContext, "CircBuf"))
        for tile, regions in enumerate(splitRegions([Interval(0, grains)], 1, graph.getTarget().getNumTiles())):
            for region in regions:
                graph.setTileMapping(self._entries.slice(region), tile)
        self._index = graph.addVariable(UNSIGNED_INT, [1], below(debugContext, "CircBufIndex"))
        graph.setInitialValue(self._index, 0)
        graph.setTileMapping(self._index, 0)

    def prev(self, i: int, seq: Sequence, debugContext: str | None = None) -> Tensor:
        """The tensor added `i` before the newest one, as a new tensor; `seq` is extended.

        Parameters
        ----------
        i:
            0 for the newest, below the size.
        seq:
            The Sequence that is extended.

        Returns
        -------
        Tensor
            Of the shape and type of an entry; undefined if less have been added.

        Raises
        ------
        PoplibsError
            If the buffer does not hold so many.
        """
        call = "CircBuf.prev"
        check_call(call, self._graph, seq, debugContext)
        if whole_number(call, "i", i) >= self._size:
            raise PoplibsError(
                f"{call}: the buffer has the last {self._size} tensors, 0 to {self._size - 1} before the newest, got {i}"
            )
        check_codelet(call, self._graph, "popops::CircOffset")
        place = self._graph.addVariable(UNSIGNED_INT, [1], below(debugContext, "Offset"))
        self._graph.setTileMapping(place, 0)
        cs = self._graph.addComputeSet(below(debugContext, "CircBufPrev"))
        edges = {"indexIn": self._index[0], "indexOut": place[0]}
        vertex = self._graph.addVertex(cs, "popops::CircOffset", {**edges, "hSize": self._size, "offset": self._size - i})
        self._graph.setTileMapping(vertex, 0)
        seq.add(Execute(cs))
        entry = dynamicSlice(self._graph, self._entries, place, [1], [1], seq, below(debugContext, "CircBuf"))
        return pad(self._graph, entry.flatten(), 0, -self._padding, 0).reshape(self._shape)

    def add(self, t: Tensor, seq: Sequence, debugContext: str | None = None) -> None:
        """Make a copy of `t` the newest entry, in the place of the oldest; `seq` is extended.

        Parameters
        ----------
        t:
            A tensor of the buffer's shape and type.
        seq:
            The Sequence that is extended.

        Raises
        ------
        PoplibsError
            For another shape or type.
        """
        call = "CircBuf.add"
        check_call(call, self._graph, seq, debugContext)
        check_operands(call, self._graph, t)
        check_codelet(call, self._graph, "popops::CircBufIncrIndex")
        if t.shape() != self._shape or t.elementType() is not self._type:
            raise PoplibsError(f"{call}: the buffer has tensors of {self._type!r} {self._shape}, got {t!r}")
        cs = self._graph.addComputeSet(below(debugContext, "CircBufSet"))
        vertex = self._graph.addVertex(cs, "popops::CircBufIncrIndex", {"index": self._index[0], "hSize": self._size})
        self._graph.setTileMapping(vertex, 0)
        seq.add(Execute(cs))
        entry = pad(self._graph, t.flatten(), 0, self._padding, 0).reshape([self._entries.dim(0), 1, GRAIN])
        dynamicUpdate(self._graph, self._entries, entry, self._index, [1], [1], seq, below(debugContext, "CircBuf"))

    def getIndex(self) -> Tensor:
        """The place of the newest entry in the buffer, on tile 0.

        Returns
        -------
        Tensor
            An UNSIGNED_INT [1], which changes when the program runs.
        """
        return self._index

    def size(self) -> int:
        """How many tensors the buffer holds, those that are undefined yet included."""
        return self._size

    def getTileMapping(self) -> TileToTensorMapping:
        """For each tile the intervals of an entry, padded to whole grains of 4 elements, that it holds."""
        return getSliceMapping(self._graph, self._entries, [1], [1])
