"""Compute sets as the steps of the program see them: what is exchanged before and after the vertices, and what that costs."""

from __future__ import annotations

from attrs import define, evolve, field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.compiler.exchange.exchange_costs import ExchangeCost, price_exchange, rearrange_cycles, vertex_side_pieces
from pypoplar.compiler.exchange.pieces import appended, turned, without_pieces
from pypoplar.compiler.exchange_plan import ComputePlan
from pypoplar.compiler.lowering.compute_tables import ComputeTables
from pypoplar.compiler.lowering.move_tables import MoveLists
from pypoplar.compiler.lowering.places import TilePlaces
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


@define(eq=False)
class PhaseTable:
    """The phases of the compute sets that are executed, with their entries in the driver's tables."""

    graph: FrozenGraph
    target: Target
    places: TilePlaces
    plans: dict[int, ComputePlan]
    tables: ComputeTables
    moves: MoveLists
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
        tiles = self.graph.tiles
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
        arriving = vertex_side_pieces(tiles, plan.exchange_before, plan.gather)
        departing = vertex_side_pieces(tiles, turned(plan.exchange_after), turned(plan.scatter))
        phases = Phases(
            NOTHING,
            without_pieces(plan),
            price_exchange(self.target, plan.before, plan.before_offset, arriving, plan.before_stretches),
            price_exchange(self.target, plan.after, plan.after_offset, departing, plan.after_stretches),
            rearrange_cycles(self.target, plan.copied_before, tiles),
            rearrange_cycles(self.target, plan.copied_after, tiles),
        )
        return phases, moves

    def _write_back(self, plan: ComputePlan) -> tuple[int, int]:
        """What is moved after a compute set; where touches are judged, the judge writes back what was written."""
        if self.tables.touches is not None:
            return NOTHING, NOTHING
        scatter = self.moves.add_pieces(plan.scatter, self.places)
        return scatter, self.moves.add_pieces(plan.exchange_after, self.places, by_source=True)
