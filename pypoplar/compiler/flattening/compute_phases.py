"""Compute sets as the steps of the program see them: what is exchanged before and after the vertices, and what that costs."""

from __future__ import annotations

from attrs import define, evolve, field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.compiler.exchange.exchange_costs import ExchangeCost, price_exchange, rearrange_cycles, vertex_side_pieces
from pypoplar.compiler.exchange.pieces import appended, counted_pieces, turned, without_pieces
from pypoplar.compiler.exchange_plan import ComputePlan
from pypoplar.compiler.flattening.compute_tables import ComputeTables
from pypoplar.compiler.flattening.move_tables import MoveLists
from pypoplar.compiler.flattening.places import TilePlaces
from pypoplar.executable.exchange_account import Exchange, joined_by_pairs
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.interface.driver_records import Phase
from pypoplar.interface.layout import NOTHING
from pypoplar.target import Target


@frozen(eq=False)
class Phases:
    """A compute set as the steps of the program see it."""

    compute: int
    plan: ComputePlan
    before: ExchangeCost
    after: ExchangeCost
    copied_before: Int64s  # [tiles], cycles of copies on the tile
    copied_after: Int64s


@frozen(eq=False)
class PhaseCosts:
    """What moves before and after a compute set, in cycles."""

    before: ExchangeCost
    after: ExchangeCost
    copied_before: Int64s  # [tiles], of copies on the tile
    copied_after: Int64s

    @staticmethod
    def of(target: Target, plan: ComputePlan) -> PhaseCosts:
        """Those of a plan that has its pieces."""
        tiles = len(plan.buffer_bytes)
        arriving = vertex_side_pieces(tiles, plan.exchange_before, plan.gather)
        departing = vertex_side_pieces(tiles, turned(plan.exchange_after), turned(plan.scatter))
        return PhaseCosts(
            price_exchange(target, plan.before, plan.before_offset, arriving, plan.before_stretches),
            price_exchange(target, plan.after, plan.after_offset, departing, plan.after_stretches),
            rearrange_cycles(target, plan.copied_before, tiles),
            rearrange_cycles(target, plan.copied_after, tiles),
        )


def priced(target: Target, plan: ComputePlan, nothing: Int64s) -> tuple[ComputePlan, PhaseCosts]:
    """A plan whose program is never run, and its costs: it tells whether anything moves, and messages by pair of tiles.

    `nothing` is zeros [tiles], which all that has nothing on any tile shares.
    """

    def small(column: Int64s) -> Int64s:
        return column if bool(column.any()) else nothing

    def account(exchange: Exchange) -> Exchange:
        return Exchange(joined_by_pairs(exchange.messages), small(exchange.bytes_sent), small(exchange.bytes_received))

    def cost(of: ExchangeCost) -> ExchangeCost:
        return evolve(of, cycles=small(of.cycles), pieces=small(of.pieces))

    costs, none = PhaseCosts.of(target, plan), nothing[:0]
    kept = evolve(
        counted_pieces(plan),
        before=account(plan.before),
        after=account(plan.after),
        before_offset=none,
        after_offset=none,
        before_stretches=none,
        after_stretches=none,
        buffer_bytes=small(plan.buffer_bytes),
    )
    return kept, PhaseCosts(cost(costs.before), cost(costs.after), small(costs.copied_before), small(costs.copied_after))


@define(eq=False)
class PhaseTable:
    """The phases of the compute sets that are executed, with their entries in the driver's tables."""

    graph: FrozenGraph
    target: Target
    places: TilePlaces
    plans: dict[int, ComputePlan]
    tables: ComputeTables
    moves: MoveLists
    costs: dict[int, PhaseCosts]  # by compute set, of plans that are priced already
    _known: dict[tuple[int, tuple[int, int] | None], Phases] = field(factory=dict)  # by compute set and place of its result
    _moved: dict[int, tuple[Phases, dict[Phase, int]]] = field(factory=dict)  # by compute set, without its compute

    def of(self, number: int, result: tuple[int, int] | None) -> Phases:
        """The compute set's entry in the driver's tables, made when it is first executed; `result` is a tile and an offset."""
        if (number, result) not in self._known:
            if number not in self._moved:
                self._moved[number] = self._move(self.plans[number])
                self.plans[number] = self._moved[number][0].plan
            phases, moves = self._moved[number]
            self._known[number, result] = evolve(phases, compute=self.tables.add(phases.plan, moves, result))
        return self._known[number, result]

    def _move(self, plan: ComputePlan) -> tuple[Phases, dict[Phase, int]]:
        """The moves of a compute set and what they cost. Its pieces are not needed any more: they are most of what a plan takes."""
        fetched, fanned_out = self.moves.add_exchange(plan.exchange_before, self.places)
        gathered = self.moves.add_pieces(appended(appended(plan.gather, plan.parted), plan.preload), self.places)
        scattered, sent = self._write_back(plan)
        moves = {
            Phase.EXCHANGE_BEFORE: fetched,
            Phase.FAN_OUT: fanned_out,
            Phase.GATHER: gathered,
            Phase.SCATTER: scattered,
            Phase.EXCHANGE_AFTER: sent,
        }
        costs = self.costs.pop(plan.compute_set, None) or PhaseCosts.of(self.target, plan)
        phases = Phases(NOTHING, without_pieces(plan), costs.before, costs.after, costs.copied_before, costs.copied_after)
        return phases, moves

    def _write_back(self, plan: ComputePlan) -> tuple[int, int]:
        """What is moved after a compute set; where touches are judged, the judge writes back what was written."""
        if self.tables.touches is not None:
            return NOTHING, NOTHING
        scatter = self.moves.add_pieces(plan.scatter, self.places)
        return scatter, self.moves.add_pieces(plan.exchange_after, self.places, by_source=True)
