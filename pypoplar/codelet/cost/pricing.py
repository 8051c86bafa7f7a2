"""The pricing pass: each straight run of a codelet's statements begins with what it costs on a target, and with its work.

A codelet is translated once and priced for each target that it runs on. What blocks cost is asked of `BlockPrices`; this pass finds
the blocks, and where branches and loops add to them. There are two kinds of prices (`PRICES`): those of the code that the vendor's
compiler would make, and the sum of the statements' own.
"""

from __future__ import annotations

from typing import assert_never

from attrs import asdict, evolve, frozen

from pypoplar.codelet.cost.block_prices import BlockPrices, SupervisorPrices, Unpriced
from pypoplar.codelet.cost.scalar_prices import prices_of
from pypoplar.codelet.ir.flops import bytes_of, flops_of
from pypoplar.codelet.ir.typed import (
    Block,
    Break,
    Continue,
    For,
    IfElse,
    InPlace,
    Leave,
    Once,
    Price,
    PricedCodelet,
    Return,
    Special,
    Statement,
    Straight,
    TypedCodelet,
    While,
)
from pypoplar.codelet.ir.walk import sets
from pypoplar.codelet.operations.tile_readings import reading
from pypoplar.errors import InvalidOption
from pypoplar.target import Target

COMPILED, SCALAR = "compiled", "scalar"


class UnpricedCodelet(InvalidOption, LookupError):
    """Something in a codelet has no price on the target's architecture; the message names the codelet and the user's line."""


@frozen
class Pricing:
    """What decides the prices of a codelet beside itself; `cost` is what the option `pypoplar.codelet_cost` says."""

    target: Target
    cost: str
    in_place: InPlace = ()

    def __call__(self, codelet: TypedCodelet) -> PricedCodelet:
        return priced(codelet, self.target, self.cost, self.in_place)

    @property
    def key(self) -> str:
        """Equal for what gives any codelet the same prices, by one version of the room of prices."""
        target = self.target
        return repr((prices_of(target), self.cost, self.in_place, target.getRptCountMax(), target.supervisor_instruction_cycles))


def priced(codelet: TypedCodelet, target: Target, cost: str, in_place: InPlace = ()) -> PricedCodelet:
    """The codelet with the prices of a target. Entry and exit are paid at its start.

    `UnpricedCodelet` if nobody has said what something in it costs.
    """
    try:
        prices = _prices(codelet, target, cost, in_place)
        body = _block(codelet.body, prices, prices.entry_and_exit, prices.bound_of_entry)
    except Unpriced as problem:
        place = codelet.locations[problem.where]
        raise UnpricedCodelet(f"{place.file}:{place.line}: {codelet.name}.{place.function}: {problem}") from problem
    return PricedCodelet(**asdict(codelet, recurse=False) | {"body": body, "in_place": in_place})


def _prices(codelet: TypedCodelet, target: Target, cost: str, in_place: InPlace) -> BlockPrices:
    prices: BlockPrices = prices_of(target)
    if cost == COMPILED:
        from pypoplar.codelet.cost.compiled_prices import CompiledPrices  # late: what is in the cache is not priced

        prices = CompiledPrices(codelet, target, in_place, prices)
    return SupervisorPrices(prices, target.supervisor_instruction_cycles) if codelet.kind == "supervisor" else prices


def _block(block: Block, prices: BlockPrices, slots: int = 0, bound: int = 0) -> Block:
    """`block` with a price before each straight run; the first has `slots` and `bound` on top."""
    pieces = _Pieces(prices, slots, bound)
    for statement in block:
        if isinstance(statement, Straight):
            pieces.run.append(statement)
            if isinstance(statement, Special) and reading(statement.name).ends_run:
                pieces.close()
            continue
        match statement:
            case IfElse(then=then, orelse=orelse):
                pieces.close(prices.branch)
                pieces.priced.append(evolve(statement, then=_block(then, prices), orelse=_block(orelse, prices)))
            case While(head=head, body=body):
                pieces.close()
                pieces.priced.append(evolve(statement, head=_block(head, prices, prices.branch), body=_block(body, prices)))
            case For(body=body):
                setting = pieces.last_setting(statement.stop)
                pieces.close(prices.loop_start)
                together = prices.rounds()
                pieces.priced.append(evolve(statement, body=_block(body, prices, prices.round(body, setting)), price=together))
            case Once(body=body):
                pieces.close()
                pieces.priced.append(evolve(statement, body=_block(body, prices)))
            case Leave() | Break() | Continue() | Return():
                pieces.close()
                pieces.priced.append(statement)
            case Price():
                raise ValueError(f"a codelet is priced once, and this one has a price already: {statement}")
            case _:
                assert_never(statement)
    pieces.close()
    return tuple(pieces.priced)


class _Pieces:
    """A block while it is priced: what is priced already, and the straight run since then."""

    def __init__(self, prices: BlockPrices, slots: int, bound: int) -> None:
        self.prices = prices
        self.slots, self.bound = slots, bound  # to be paid with the next run
        self.priced: list[Statement] = []
        self.run: list[Straight] = []

    def close(self, ending: int = 0) -> None:
        """End the run, whose end costs some slots more."""
        slots, bound = self.prices.run(self.run)
        slots, bound = slots + self.slots + ending, bound + self.bound
        flops, size = sum(map(flops_of, self.run)), sum(map(bytes_of, self.run))
        if slots or flops or size:
            self.priced.append(Price(slots, flops, size, bound))
        self.priced.extend(self.run)
        self.run.clear()
        self.slots = self.bound = 0

    def last_setting(self, operand: object) -> Straight | None:
        """The last statement of the run, if it is that which sets an operand."""
        return self.run[-1] if self.run and sets(self.run[-1]) == operand else None
