"""The static steps of the control program, as the report names them."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.interface.layout import NOTHING


def _nothing() -> Int64s:
    return np.zeros(0, np.int64)


@frozen(eq=False)
class StaticStep:
    """A static step of the program, as the report names it; loops run it many times.

    `kind` is ``"exchange"``, ``"compute"``, ``"copy"``, ``"stream"``, ``"sync"``, or ``"handle"`` for host reads and writes by
    handle, which belong to no program.
    """

    name: str
    kind: str
    sync_cycles: int  # of the machine, as all cycles here
    exchange_cycles: Int64s  # [tiles] or empty: known when the program is compiled
    compute: int = NOTHING  # index into Computes
    exchange: int = NOTHING  # index into Executable.exchanges
    host_bytes: int = 0  # that a stream moves
    host_cycles: int = 0  # that they take over the host's link
    depth: int = 0  # of Repeat, If, Switch and Call around it
    rearrange_cycles: Int64s = field(factory=_nothing)  # [tiles] or empty: copies on the tile before or after the exchange
    global_exchange_cycles: int = 0  # between IPUs, the same for all tiles
    exchange_pieces: Int64s = field(factory=_nothing)  # [tiles] or empty: contiguous pieces that each port handles in one direction
    made_at: str = ""  # the user's line that made the program: file:line
    waits: bool = True  # until all tiles have come to it; else each tile goes on with it when it is done with what was before
    host_ipus: tuple[int, ...] = ()  # of several IPUs, those from or to which a stream moves something
    joins_ipus: bool = False  # whether all IPUs wait for each other before it
    streams: tuple[str, ...] = ()  # that move something in it
    host_limit: str = ""  # what a transfer from or to the outside waits for, in words, where there are several links

    @property
    def moving_cycles(self) -> Int64s:
        """Cycles by tile of the exchange within the IPUs and of the copies on the tile; empty where nothing moves."""
        return self.exchange_cycles + self.rearrange_cycles if len(self.rearrange_cycles) else self.exchange_cycles

    @property
    def fixed_cycles(self) -> int:
        """Cycles of one execution but for its vertices."""
        moving = self.moving_cycles
        slowest = int(moving.max()) if len(moving) else 0
        return self.sync_cycles + slowest + self.global_exchange_cycles + self.host_cycles
