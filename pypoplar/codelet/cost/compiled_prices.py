"""What blocks cost as the vendor's compiler makes them: the `BlockPrices` of a codelet."""

from __future__ import annotations

from collections.abc import Sequence

from pypoplar.codelet.cost.block_prices import BlockPrices
from pypoplar.codelet.cost.compiled_code import compiled
from pypoplar.codelet.ir.typed import Block, InPlace, RoundsPrice, Statement, Straight, TypedCodelet
from pypoplar.target import Target


class CompiledPrices:
    """Prices of a codelet's runs, one after the other: branches and what loops do beside their bodies are in the runs."""

    branch = loop_start = loop_round = 0

    def __init__(self, codelet: TypedCodelet, target: Target, in_place: InPlace, scalar: BlockPrices) -> None:
        code = compiled(codelet, target, in_place)
        self._runs = iter(code.prices())
        self._loops = iter(code.loops)
        self.entry_and_exit = self.bound_of_entry = scalar.entry_and_exit

    def run(self, statements: Sequence[Straight]) -> tuple[int, int]:
        return next(self._runs)

    def round(self, body: Block, bound: Statement | None) -> int:
        return 0

    def rounds(self) -> RoundsPrice | None:
        return next(self._loops).price
