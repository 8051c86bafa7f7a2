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
    """Make `sequence`, as it is now, count its cycles; the answer is UNSIGNED_INT [2] on `tile`, low and high word.

    Steps added to the sequence afterwards are not counted.
    """
    check_sequence(sequence, "cycleCount")
    result = _cycles_variable(graph, tile, name or "cycleCount")
    sequence.programs = [CycleCount(sequence.taken(), result, operator.index(tile), sync_type(syncType), name)]
    return result


@public
def cycleStamp(graph: Graph, sequence: Sequence, tile: int, syncType: SyncType = SyncType.INTERNAL, name: str = "") -> Tensor:
    """Append a step that notes the cycles since the run began; the answer is UNSIGNED_INT [2] on `tile`, low and high word."""
    check_sequence(sequence, "cycleStamp")
    result = _cycles_variable(graph, tile, name or "cycleStamp")
    sequence.add(CycleStamp(result, operator.index(tile), sync_type(syncType), name))
    return result


def _cycles_variable(graph: Graph, tile: int, name: str) -> Tensor:
    result = graph.addVariable(UNSIGNED_INT, [2], name)
    graph.setTileMapping(result, tile)
    return result
