"""The pricing pass: each straight run of a codelet's statements begins with what it costs on a target, and with its work.

A codelet is translated once and priced for each target that it runs on. What blocks cost is asked of `BlockPrices`; this pass finds
the blocks, and where branches and loops add to them. There are two kinds of prices (`PRICES`): those of the code that the vendor's
compiler would make, and the sum of the statements' own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import assert_never

from attrs import asdict, evolve, field, frozen

from pypoplar.codelet.cost.block_prices import BlockPrices, Shares, SupervisorPrices, Unpriced
from pypoplar.codelet.cost.scalar_prices import prices_of
from pypoplar.codelet.ir.flops import bytes_of, flops_of
from pypoplar.codelet.ir.typed import (
    ApplyToVectors,
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
    RoundsPrice,
    Special,
    Statement,
    Straight,
    TypedCodelet,
    While,
)
from pypoplar.codelet.ir.walk import sets
from pypoplar.codelet.operations.matrix_unit import vector_operation
from pypoplar.codelet.operations.tile_readings import reading
from pypoplar.errors import InvalidOption
from pypoplar.interface.layout import NOTHING
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
        counts = target.getRptCountMax(), target.supervisor_instruction_cycles, target.getNumWorkerContexts()
        return repr((prices_of(target), self.cost, self.in_place, counts))


def priced(codelet: TypedCodelet, target: Target, cost: str, in_place: InPlace = ()) -> PricedCodelet:
    """The codelet with the prices of a target. Entry and exit are paid at its start.

    `UnpricedCodelet` if nobody has said what something in it costs.
    """
    body = _priced_body(codelet, target, cost, in_place, None)
    return PricedCodelet(**asdict(codelet, recurse=False) | {"body": body, "in_place": in_place})


@frozen
class LinePrice:
    """What a location has of a block's price; `where` is `NOTHING` for the entry and exit of the vertex."""

    where: int
    slots: int
    bound: int


def line_prices(codelet: TypedCodelet, pricing: Pricing) -> list[list[LinePrice]]:
    """By number of a block (`pypoplar.codelet.ir.block_numbers`), the locations that its price belongs to.

    A bundle belongs to the location of its instruction for the main pipe. A block's bound is shared out as its slots are.
    """
    blocks: list[list[LinePrice]] = []
    _priced_body(codelet, pricing.target, pricing.cost, pricing.in_place, blocks)
    return blocks


def loop_blocks(codelet: TypedCodelet, pricing: Pricing) -> list[range]:
    """The numbers of the blocks of each counted loop, in the order of the text."""
    loops: list[range] = []
    _priced_body(codelet, pricing.target, pricing.cost, pricing.in_place, [], loops)
    return loops


def _priced_body(
    codelet: TypedCodelet,
    target: Target,
    cost: str,
    in_place: InPlace,
    lines: list[list[LinePrice]] | None,
    loops: list[range] | None = None,
) -> Block:
    try:
        prices = _prices(codelet, target, cost, in_place)
        pricer = _Pricer(prices, target.architecture, lines, [] if loops is None else loops)
        return pricer.block(codelet.body, _Extra(prices.entry_and_exit, prices.bound_of_entry))
    except Unpriced as problem:
        raise unpriced(codelet, problem) from problem


def unpriced(codelet: TypedCodelet, problem: Unpriced) -> UnpricedCodelet:
    """The error for a statement without a price, at the user's line."""
    place = codelet.locations[problem.where]
    return UnpricedCodelet(f"{place.file}:{place.line}: {codelet.name}.{place.function}: {problem}")


def _prices(codelet: TypedCodelet, target: Target, cost: str, in_place: InPlace) -> BlockPrices:
    prices: BlockPrices = prices_of(target)
    if cost == COMPILED:
        from pypoplar.codelet.cost.compiled_prices import CompiledPrices  # late: what is in the cache is not priced

        prices = CompiledPrices(codelet, target, in_place, prices)
    return SupervisorPrices(prices, target.supervisor_instruction_cycles) if codelet.kind == "supervisor" else prices


@frozen
class _Extra:
    """Slots that are paid beside those of a run, and the location that they belong to."""

    slots: int = 0
    bound: int = 0
    where: int = NOTHING


NO_EXTRA = _Extra()


@frozen(eq=False)
class _Pricer:
    """Puts prices before straight runs.

    `lines` gets for each block, in the order of their numbers, what its price belongs to, and `loops` the blocks of each counted
    loop, in the order of the text.
    """

    prices: BlockPrices
    architecture: str
    lines: list[list[LinePrice]] | None
    loops: list[range] = field(factory=list)

    def block(self, block: Block, extra: _Extra = NO_EXTRA) -> Block:
        """`block` with a price before each straight run; the first has the `extra` on top."""
        prices, pieces = self.prices, _Pieces(self, extra)
        for statement in block:
            if isinstance(statement, Straight):
                pieces.run.append(statement)
                if isinstance(statement, Special) and reading(statement.name).ends_run:
                    pieces.close()
                continue
            match statement:
                case IfElse(then=then, orelse=orelse, where=where):
                    pieces.close(_Extra(prices.branch, where=where))
                    then = self.block(then)
                    pieces.priced.append(evolve(statement, then=then, orelse=self.block(orelse)))
                case While(head=head, body=body, where=where):
                    pieces.close()
                    head = self.block(head, _Extra(prices.branch, where=where))
                    pieces.priced.append(evolve(statement, head=head, body=self.block(body)))
                case For(body=body, where=where):
                    setting = None if statement.end_kept else pieces.last_setting(statement.stop)
                    pieces.close(_Extra(prices.loop_start, where=where))
                    loop, together = self.begin_loop(), self.rounds()
                    round = _Extra(prices.round(body, setting), where=where)
                    pieces.priced.append(evolve(statement, body=self.block(body, round), price=together))
                    self.end_loop(loop)
                case Once(body=body):
                    pieces.close()
                    pieces.priced.append(evolve(statement, body=self.block(body)))
                case ApplyToVectors():
                    pieces.close(_Extra(prices.branch, where=statement.where))
                    pieces.priced.append(self.of_vectors(statement))
                case Leave() | Break() | Continue() | Return():
                    pieces.close()
                    pieces.priced.append(statement)
                case Price():
                    raise ValueError(f"a codelet is priced once, and this one has a price already: {statement}")
                case _:
                    assert_never(statement)
        pieces.close()
        return tuple(pieces.priced)

    def of_vectors(self, statement: ApplyToVectors) -> ApplyToVectors:
        """An operation on vectors with its price."""
        try:
            price = vector_operation(statement.operation).price(self.architecture, statement.vectors[-1].element)
        except LookupError as problem:
            raise Unpriced(str(problem), statement.where) from problem
        if self.lines is not None:
            self.lines.append([LinePrice(statement.where, 1, 1)])
        return evolve(statement, price=price)

    def begin_loop(self) -> int:
        """The number of the counted loop that begins here."""
        self.loops.append(range(len(self.lines or ()), 0))
        return len(self.loops) - 1

    def end_loop(self, number: int) -> None:
        """Note the blocks of a loop."""
        self.loops[number] = range(self.loops[number].start, len(self.lines or ()))

    def rounds(self) -> RoundsPrice | None:
        """The price of a loop's rounds together, if they have one."""
        together = self.prices.rounds()
        if together is not None and self.lines is not None:
            several, one = self.prices.shares_of_rounds()
            self.lines.extend((_shared_out(several, together.bound), _shared_out(one, together.bound_of_rest)))
        return together

    def price(self, run: Sequence[Straight], *extras: _Extra) -> Price | None:
        """The price of a straight run with what is paid beside it; None if that is nothing."""
        shares: Shares = ()
        if self.lines is None:
            slots, bound = self.prices.run(run)
        else:
            shares, bound = self.prices.shares(run)
            slots = sum(slots for _, slots in shares)
        slots, bound = slots + sum(extra.slots for extra in extras), bound + sum(extra.bound for extra in extras)
        flops, size = sum(map(flops_of, run)), sum(map(bytes_of, run))
        if not (slots or flops or size):
            return None
        if self.lines is not None:
            self.lines.append(_shared_out([*shares, *((extra.where, extra.slots) for extra in extras)], bound))
        return Price(slots, flops, size, bound)


def _shared_out(shares: Shares, bound: int) -> list[LinePrice]:
    """The lines of a block, each with its part of the bound: none has more than its slots."""
    by_location: Counter[int] = Counter()
    for where, slots in shares:
        by_location[where] += slots
    ends = [0, *accumulate(by_location.values())]
    bounds = [end * bound // max(ends[-1], 1) for end in ends]
    lines = zip(by_location.items(), pairwise(bounds), strict=True)
    return [LinePrice(where, slots, after - before) for (where, slots), (before, after) in lines if slots]


class _Pieces:
    """A block while it is priced: what is priced already, and the straight run since then."""

    def __init__(self, pricer: _Pricer, extra: _Extra) -> None:
        self.pricer = pricer
        self.extra = extra  # to be paid with the next run
        self.priced: list[Statement] = []
        self.run: list[Straight] = []

    def close(self, ending: _Extra = NO_EXTRA) -> None:
        """End the run, whose end costs something more."""
        price = self.pricer.price(self.run, self.extra, ending)
        if price is not None:
            self.priced.append(price)
        self.priced.extend(self.run)
        self.run.clear()
        self.extra = NO_EXTRA

    def last_setting(self, operand: object) -> Straight | None:
        """The last statement of the run, if it is that which sets an operand."""
        return self.run[-1] if self.run and sets(self.run[-1]) == operand else None
