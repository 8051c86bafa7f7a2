"""Plans and costs of copies between tensors, made for many at a time: programs may have thousands, most of them small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from attrs import define, field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.compiler.exchange.copy_plan import plan_copies
from pypoplar.compiler.exchange.exchange_costs import ExchangeCost, price_exchanges, rearrange_cycles
from pypoplar.compiler.exchange.pieces import columns
from pypoplar.compiler.exchange_plan import Homes, Pieces
from pypoplar.executable.exchange_account import Exchange
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.tensor import Tensor
from pypoplar.program.copying import Copy
from pypoplar.target import Target

MOST_TILES = 1 << 17  # of all machines that are planned side by side, one for each copy
MOST_ELEMENTS = 1 << 20  # of the copies that are planned together, but for a single one


@frozen(eq=False)
class PlannedCopy:
    """What a copy moves, and what it costs."""

    pieces: Pieces
    account: Exchange
    exchange: ExchangeCost
    rearrange_cycles: Int64s  # [tiles]: of what moves on its tile


@define(eq=False)
class PlannedCopies:
    """Copies are announced in the order of lowering; the first that is asked for is planned with its neighbours."""

    graph: FrozenGraph
    target: Target
    homes: Homes
    _rows: dict[int, tuple[Sequence[Copy], int]] = field(factory=dict)  # by identity: the copies announced together, and its place
    _plans: dict[int, PlannedCopy] = field(factory=dict)  # by identity
    _uses: Counter[int] = field(factory=Counter)  # how often each is still to be lowered

    def announce(self, copies: Sequence[Copy]) -> None:
        """Say which copies between tensors are lowered next."""
        row = list({id(copy): copy for copy in copies}.values())
        self._rows |= {id(copy): (row, place) for place, copy in enumerate(row)}
        self._uses.update(map(id, copies))

    def plan_of(self, copy: Copy) -> PlannedCopy:
        """The plan of a copy between tensors that is lowered now."""
        if id(copy) not in self._plans:
            self._plan(self._neighbours(copy))
        self._uses[id(copy)] -= 1
        return self._plans[id(copy)] if self._uses[id(copy)] > 0 else self._plans.pop(id(copy))

    def _neighbours(self, copy: Copy) -> list[Copy]:
        """A copy and those announced behind it, as many as are planned together."""
        row, place = self._rows.get(id(copy), ([copy], 0))
        together: list[Copy] = []
        elements = 0
        for neighbour in row[place : place + max(1, MOST_TILES // self.graph.tiles)]:
            elements += _ends(neighbour)[0].numElements()
            if together and elements > MOST_ELEMENTS:
                break
            if id(neighbour) not in self._plans:
                together.append(neighbour)
        return together

    def _plan(self, copies: Sequence[Copy]) -> None:
        tiles, machines = self.graph.tiles, len(copies)
        plan = plan_copies(
            self.graph, self.homes, *([end.runs() for end in side] for side in zip(*map(_ends, copies), strict=True))
        )
        pieces, messages = plan.pieces, plan.account.messages
        arrives = pieces.source_tile != pieces.target_tile
        placed = np.bincount(pieces.target_tile[arrives], minlength=machines * tiles)
        exchanges = price_exchanges(self.target, plan.account, plan.offset, placed, machines)
        rearranged = rearrange_cycles(self.target, pieces, machines * tiles).reshape(machines, tiles)
        sent, received = (bytes.reshape(machines, tiles) for bytes in (plan.account.bytes_sent, plan.account.bytes_received))
        first_tiles = np.arange(machines + 1) * tiles
        first_piece = np.searchsorted(pieces.target_tile, first_tiles).tolist()
        first_message = np.searchsorted(messages["destination"], first_tiles).tolist()
        pieces.source_tile[:], pieces.target_tile[:] = pieces.source_tile % tiles, pieces.target_tile % tiles
        for end in ("source", "destination"):
            messages[end] %= tiles
        for number, copy in enumerate(copies):
            moved = slice(first_piece[number], first_piece[number + 1])
            told = slice(first_message[number], first_message[number + 1])
            self._plans[id(copy)] = PlannedCopy(
                Pieces(*(column[moved] for column in columns(pieces))),
                Exchange(messages[told], sent[number], received[number]),
                exchanges[number],
                rearranged[number],
            )


def _ends(copy: Copy) -> tuple[Tensor, Tensor]:
    assert isinstance(copy.source, Tensor)
    assert isinstance(copy.destination, Tensor)
    return copy.source, copy.destination
