"""Plans of searches for the likeliest labels: how the beams of a sample are shared by workers."""

from __future__ import annotations

from attrs import frozen

from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.target import Target
from pypoplar.types import ElementType

WORD = 4
FIELDS = 5  # of a beam: last symbol, length, node, and two hashes
COMPARED, BECOMES = 5, 60  # slots of a comparison in a loop, and of a candidate that becomes a beam


@frozen
class SearchPlan:
    """What a search is planned for, and how many lists of candidates a sample has, each of a worker."""

    inType: ElementType
    partialsType: ElementType
    batchSize: int
    maxTime: int
    numClasses: int
    beamwidth: int
    lists: int

    @property
    def limits(self) -> tuple[int, int, int]:
        """Most steps, samples and classes."""
        return self.maxTime, self.batchSize, self.numClasses

    @property
    def own(self) -> int:
        """Beams of a list."""
        return ceiling(self.beamwidth, self.lists)

    @property
    def ranks(self) -> int:
        """How many classes of a step can matter, beside the blank.

        A beam's symbol is worse than those before it. Of these one may be the beam's last symbol, and others may give labels
        that are beams already: these, as they stay, are no worse.
        """
        return min(self.numClasses - 1, self.beamwidth + 1)

    def __str__(self) -> str:
        sizes = f"{self.batchSize} samples of {self.maxTime} steps and {self.numClasses} classes with {self.beamwidth} beams"
        return f"{sizes}, {self.inType!r} in {self.partialsType!r}: {self.lists} lists of {self.own}"


def cheapest_lists(target: Target, batch: int, beamwidth: int) -> int:
    """How many lists of candidates: as take the fewest cycles by a rough count of what a step compares."""
    workers, samples = target.getNumWorkerContexts(), ceiling(batch, target.getNumTiles())

    def cycles(lists: int) -> int:
        own = ceiling(beamwidth, lists)
        candidates = beamwidth * (3 * own * COMPARED + BECOMES)
        selected = beamwidth * (lists * COMPARED + BECOMES)
        return ceiling(samples * lists, workers) * candidates + ceiling(samples, workers) * selected

    return min((ceiling(beamwidth, ceiling(beamwidth, lists)) for lists in range(1, workers + 1)), key=cycles)


def check_memory(call: str, target: Target, plan: SearchPlan, memory: float) -> None:
    """`PoplibsError` where a tile has not the memory for its samples."""
    rows = plan.maxTime * (plan.numClasses * plan.inType.size + plan.ranks * WORD)
    tree = 2 * WORD * (plan.maxTime * plan.beamwidth + 1)
    beams = plan.beamwidth * (3 * plan.partialsType.size + (2 * FIELDS + 7 * plan.lists + 7) * WORD)
    needed = (rows + tree + beams) * ceiling(plan.batchSize, target.getNumTiles())
    allowed = memory * target.getBytesPerTile()
    if needed > allowed:
        raise PoplibsError(
            f"{call}: no plan of {plan.batchSize} samples of {plan.maxTime} steps and {plan.numClasses} classes with "
            f"{plan.beamwidth} beams fits into {allowed:,.0f} bytes of each of {target.getNumTiles()} tiles; it takes {needed:,}, "
            "see the option availableMemoryProportion"
        )
