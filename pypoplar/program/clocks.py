"""Programs that note cycles."""

from __future__ import annotations

import operator

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import InTurn, Nothing, Part, Program
from pypoplar.program.sequence import Sequence, check_sequence
from pypoplar.program.synchronisation import SyncType, sync_type
from pypoplar.tracebacks import public
from pypoplar.types import UNSIGNED_INT


@public
class CycleCount(Program):
    """Run `body` and put the cycles it took into `result`; see `cycleCount`."""

    def __init__(self, body: Program, result: Tensor, tile: int, type: SyncType, name: str = "") -> None:
        super().__init__(name)
        self.body, self.result, self.tile, self.type = body, result, tile, type

    def reads(self) -> tuple[Tensor, ...]:
        return ()

    def writes(self) -> tuple[Tensor, ...]:
        return (self.result,)

    def contains(self) -> InTurn:
        return InTurn((Part(self.body, "body"),))


@public
class CycleStamp(Program):
    """Put the cycles since the run began into `result`; see `cycleStamp`."""

    def __init__(self, result: Tensor, tile: int, type: SyncType, name: str = "") -> None:
        super().__init__(name)
        self.result, self.tile, self.type = result, tile, type

    def reads(self) -> tuple[Tensor, ...]:
        return ()

    def writes(self) -> tuple[Tensor, ...]:
        return (self.result,)

    def contains(self) -> Nothing:
        return Nothing()


@public
def cycleCount(graph: Graph, sequence: Sequence, tile: int, syncType: SyncType = SyncType.INTERNAL, name: str = "") -> Tensor:
    """Make a sequence, as it is now, count its cycles; steps added to it afterwards are not counted.

    Parameters
    ----------
    graph:
        The graph of its programs.
    sequence:
        What is counted; it then holds one step, which runs what it held.
    tile:
        The tile on which the count is put; the clock is that of all tiles.
    syncType:
        What Poplar syncs before and after; it changes nothing here.
    name:
        The debug name of the step and of the variable.

    Returns
    -------
    Tensor
        UNSIGNED_INT [2] on `tile`: low and high word of the cycles of the last time that the sequence ran.

    Raises
    ------
    PoplarTypeError
        If `sequence` is no Sequence or `syncType` no `SyncType`.
    InvalidTileMapping
        If the graph has no such tile.

    Examples
    --------
    >>> from pypoplar import UNSIGNED_INT, Engine, Graph, IPUModel
    >>> from pypoplar.program import Copy, Sequence, cycleCount
    >>> device = IPUModel("tiny").createDevice()
    >>> graph = Graph(device)
    >>> x, y = (graph.addVariable(UNSIGNED_INT, [100]) for _ in range(2))
    >>> graph.setTileMapping(x, 0)
    >>> graph.setTileMapping(y, 1)
    >>> copies = Sequence([Copy(x, y)])
    >>> graph.createHostRead("cycles", cycleCount(graph, copies, 0))
    >>> engine = Engine(graph, copies)
    >>> engine.loadAndRun(device)
    >>> low, high = engine.readTensor("cycles").tolist()
    >>> 100 < low + (high << 32) < 1000
    True
    """
    check_sequence(sequence, "cycleCount")
    result = _cycles_variable(graph, tile, name or "cycleCount")
    sequence.programs = [CycleCount(sequence.taken(), result, operator.index(tile), sync_type(syncType), name)]
    return result


@public
def cycleStamp(graph: Graph, sequence: Sequence, tile: int, syncType: SyncType = SyncType.INTERNAL, name: str = "") -> Tensor:
    """Append a step that notes the cycles since the run began.

    Parameters
    ----------
    graph:
        The graph of the sequence's programs.
    sequence:
        What the step is added to.
    tile:
        The tile on which the answer is put; the clock is that of all tiles.
    syncType:
        What Poplar syncs before; it changes nothing here.
    name:
        The debug name of the step and of the variable.

    Returns
    -------
    Tensor
        UNSIGNED_INT [2] on `tile`: low and high word.

    Raises
    ------
    PoplarTypeError
        If `sequence` is no Sequence or `syncType` no `SyncType`.
    InvalidTileMapping
        If the graph has no such tile.
    """
    check_sequence(sequence, "cycleStamp")
    result = _cycles_variable(graph, tile, name or "cycleStamp")
    sequence.add(CycleStamp(result, operator.index(tile), sync_type(syncType), name))
    return result


def _cycles_variable(graph: Graph, tile: int, name: str) -> Tensor:
    result = graph.addVariable(UNSIGNED_INT, [2], name)
    graph.setTileMapping(result, tile)
    return result
