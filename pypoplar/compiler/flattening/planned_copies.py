"""Plans and costs of copies between tensors, made for many at a time: programs may have thousands, most of them small."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import define, field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import offsets
from pypoplar.compiler.control.view_runs import ViewRuns
from pypoplar.compiler.exchange.copy_plan import plan_copies
from pypoplar.compiler.exchange.exchange_costs import (
    ExchangeCost,
    pieces_of_copies,
    pieces_within,
    price_exchanges,
    rearrange_cycles,
)
from pypoplar.compiler.exchange.merged_copies import MergedCopies
from pypoplar.compiler.exchange.message_account import behind_each_other
from pypoplar.compiler.exchange.pieces import columns
from pypoplar.compiler.exchange_plan import CopyShares, Homes, Pieces
from pypoplar.executable.exchange_account import Exchange, ExchangeShare
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.ordering import copied_in_order
from pypoplar.graph.tensor import Tensor
from pypoplar.program.copying import Copy
from pypoplar.target import Target

MOST_TILES = 1 << 17  # of all machines that are planned side by side, one for each step
MOST_ELEMENTS = 1 << 20  # of the steps that are planned together, but for a single one


@frozen(eq=False)
class PlannedCopy:
    """What a copy moves, or several that are one exchange, and what it costs."""

    pieces: Pieces
    account: Exchange
    exchange: ExchangeCost
    rearrange_cycles: Int64s  # [tiles]: of what moves on its tile
    shares: tuple[ExchangeShare, ...] = ()  # of copies with different names


@define(eq=False)
class PlannedCopies:
    """The steps of copies between tensors, about in the order of flattening; the first asked for is planned with its neighbours."""

    graph: FrozenGraph
    target: Target
    homes: Homes
    steps: Sequence[MergedCopies]
    _number: dict[MergedCopies, int] = field(init=False)  # of those that are not planned yet, the place in `steps`
    _plans: dict[MergedCopies, PlannedCopy] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._number = {step: number for number, step in enumerate(self.steps)}

    def plan_of(self, step: MergedCopies) -> PlannedCopy:
        """The plan of a step that is flattened now. Each of `steps` is flattened once; others are planned by themselves."""
        if step not in self._plans:
            together = self._neighbours(step) if step in self._number else [step]
            self._plans |= zip(together, self._planned([[placed.copy for placed in step.copies] for step in together]), strict=True)
        return self._plans.pop(step)

    def _neighbours(self, step: MergedCopies) -> list[MergedCopies]:
        """A step and those behind it that are not planned, as many as are planned together."""
        together: list[MergedCopies] = []
        elements = 0
        number = self._number[step]
        for neighbour in self.steps[number : number + max(1, MOST_TILES // self.graph.tiles)]:
            elements += neighbour.elements()
            if together and elements > MOST_ELEMENTS:
                break
            if self._number.pop(neighbour, None) is not None:
                together.append(neighbour)
        return together

    def _planned(self, steps: Sequence[Sequence[Copy]]) -> list[PlannedCopy]:
        """The plans of steps, each of so many copies."""
        tiles, machines = self.graph.tiles, len(steps)
        copies = [copy for step in steps for copy in step]
        machine = np.repeat(np.arange(machines), [len(step) for step in steps])
        ends = [_ends(copy) for copy in copies]
        sources, targets = (ViewRuns.of(pair[side] for pair in ends) for side in range(2))
        shared = machine if len(copies) > machines else None
        plan = plan_copies(self.graph, self.homes, sources, targets, shared, shares=self._needs_shares(steps))
        pieces, messages = plan.pieces, plan.account.messages
        arrives = pieces.source_tile != pieces.target_tile
        placed = np.bincount(pieces.target_tile[arrives], minlength=machines * tiles)
        if plan.shares is None:
            within = pieces_within(self.target, messages, placed)
        else:
            within = pieces_of_copies(self.target, plan.shares, machine, placed)
        exchanges = price_exchanges(self.target, plan.account, plan.offset, within, machines, plan.stretches)
        rearranged = rearrange_cycles(self.target, pieces, machines * tiles).reshape(machines, tiles)
        sent, received = (bytes.reshape(machines, tiles) for bytes in (plan.account.bytes_sent, plan.account.bytes_received))
        first_tiles = np.arange(machines + 1) * tiles
        first_piece = np.searchsorted(pieces.target_tile, first_tiles).tolist()
        first_message = np.searchsorted(messages["destination"], first_tiles).tolist()
        if machines > 1:
            pieces.source_tile[:], pieces.target_tile[:] = pieces.source_tile % tiles, pieces.target_tile % tiles
            for end in ("source", "destination"):
                messages[end] %= tiles
        first_copy = offsets([len(step) for step in steps]).tolist()
        return [
            PlannedCopy(
                Pieces(*(column[first_piece[number] : first_piece[number + 1]] for column in columns(pieces))),
                Exchange(messages[first_message[number] : first_message[number + 1]], sent[number], received[number]),
                exchanges[number],
                rearranged[number],
                () if plan.shares is None else shares_by_name([step_name(copy) for copy in step], first_copy[number], plan.shares),
            )
            for number, step in enumerate(steps)
        ]

    def _needs_shares(self, steps: Sequence[Sequence[Copy]]) -> bool:
        """Whether it matters what each copy has in the exchange of its step: for names, and for the price between IPUs."""
        return self.target.getNumIPUs() > 1 or any(len({step_name(copy) for copy in step}) > 1 for step in steps)


def _ends(copy: Copy) -> tuple[Tensor, Tensor]:
    assert isinstance(copy.source, Tensor)
    assert isinstance(copy.destination, Tensor)
    return copied_in_order(copy.source, copy.destination)


def step_name(copy: Copy) -> str:
    """What a copy between tensors is called in reports."""
    return copy.name or "Copy"


def shares_by_name(copy_names: Sequence[str], first: int, shares: CopyShares) -> tuple[ExchangeShare, ...]:
    """What the copies of each name have in their step, if they have several; `first` is the number of the first of them."""
    names: dict[str, list[int]] = {}
    for number, name in enumerate(copy_names, first):
        names.setdefault(name, []).append(number)
    if len(names) == 1:
        return ()
    begin = np.searchsorted(shares.copy, np.arange(first, first + len(copy_names) + 1)).tolist()

    def share(name: str, numbers: Sequence[int]) -> ExchangeShare:
        messages = [shares.messages[begin[number - first] : begin[number - first + 1]] for number in numbers]
        return ExchangeShare(name, behind_each_other(messages), int(shares.bytes_sent[numbers].sum()))

    return tuple(share(name, numbers) for name, numbers in names.items())
