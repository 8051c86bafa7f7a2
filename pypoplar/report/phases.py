"""The phases of supersteps: what cycles are spent on. All that shows, sums or draws them goes through this table.

Their colours are those of the same names in `pypoplar.report.palette`.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class StepPhase:
    """A phase. Its `cycles` are an attribute of a step, and so is what tiles spend in it, `by_tile`, where they differ in that."""

    name: str
    label: str
    cycles: str
    by_tile: str = ""

    @property
    def term(self) -> str:
        """What texts call it: "global exchange"."""
        return self.cycles.removesuffix("_cycles").replace("_", " ")


PHASES = (  # in the order in which a step goes through them
    StepPhase("sync", "Sync", "sync_cycles"),
    StepPhase("exchange", "Exchange", "exchange_cycles", "exchange_cycles_by_tile"),
    StepPhase("copies", "Copies on the tile", "copy_cycles", "copy_cycles_by_tile"),
    StepPhase("between", "Exchange between IPUs", "global_exchange_cycles"),
    StepPhase("host", "Host exchange", "host_exchange_cycles"),
    StepPhase("compute", "Compute", "compute_cycles", "cyclesByTile"),
)
MERGED = "Exchange and copies on the tile"
"""What an exchange is called in profiles that do not tell copies on the tile apart."""
WAITING = ("waiting", "Waiting for other tiles")
"""Name and label of what is left of a tile's time."""
IDLE_THREADS = ("threads", "Compute, idle threads")
"""Name and label of worker threads without work while their tile computes."""


def labels(*, copies_known: bool = True) -> dict[str, str]:
    """Labels of the phases by name. Where copies are not told apart, they are counted with the exchange."""
    names = {phase.name: phase.label for phase in PHASES}
    if not copies_known:
        del names["copies"]
        names["exchange"] = MERGED
    return names
