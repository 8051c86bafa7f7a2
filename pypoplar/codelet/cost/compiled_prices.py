"""What blocks cost as the vendor's compiler makes them: the `BlockPrices` of a codelet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pypoplar.codelet.cost.block_prices import BlockPrices, Shares
from pypoplar.codelet.cost.bundles import Bundle
from pypoplar.codelet.cost.compiled_code import CompiledLoop, compiled
from pypoplar.codelet.ir.typed import Block, InPlace, RoundsPrice, Statement, Straight, TypedCodelet
from pypoplar.target import Target


class CompiledPrices:
    """Prices of a codelet's runs, one after the other: branches and what loops do beside their bodies are in the runs."""

    branch = loop_start = loop_round = 0

    def __init__(self, codelet: TypedCodelet, target: Target, in_place: InPlace, scalar: BlockPrices) -> None:
        self._code = compiled(codelet, target, in_place)
        self._prices = iter(self._code.prices())
        self._runs = iter(self._code.runs)
        self._loops = iter(self._code.loops)
        self._loop: CompiledLoop | None = None  # whose price was asked for last
        self.entry_and_exit = self.bound_of_entry = scalar.entry_and_exit

    def run(self, statements: Sequence[Straight]) -> tuple[int, int]:
        next(self._runs)
        return next(self._prices)

    def shares(self, statements: Sequence[Straight]) -> tuple[Shares, int]:
        slots, bound = next(self._prices)
        shares = _shares(next(self._runs).bundles)
        return shares if slots else (), bound  # the rounds of a loop on vectors are paid for together

    def round(self, body: Block, bound: Statement | None) -> int:
        return 0

    def rounds(self) -> RoundsPrice | None:
        self._loop = next(self._loops)
        return self._loop.price

    def shares_of_rounds(self) -> tuple[Shares, Shares]:
        assert self._loop is not None
        return _shares(self._loop.bundles), _shares(self._code.runs[self._loop.code.first].bundles)


def _shares(bundles: Iterable[Bundle]) -> Shares:
    return [(bundle.where, bundle.slots) for bundle in bundles]
