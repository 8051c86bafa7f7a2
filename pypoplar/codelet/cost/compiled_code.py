"""A codelet as the vendor's compiler makes it: bundles for each straight run, loops, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field, frozen

from pypoplar.codelet.cost.bundles import Bundle
from pypoplar.codelet.cost.control_code import ControlCode, CountedLoop
from pypoplar.codelet.cost.instructions import LoopKind, MachineLoop, MachineRun
from pypoplar.codelet.cost.loop_steps import add_steps, settle_kind
from pypoplar.codelet.cost.needed_code import NeededCode
from pypoplar.codelet.cost.selection import Selection
from pypoplar.codelet.cost.spills import scheduled
from pypoplar.codelet.cost.vector_loops import LoopFacts, Scalar, VectorLoop, by_hand, vectorised
from pypoplar.codelet.ir.typed import InPlace, RoundsPrice, TypedCodelet
from pypoplar.target import Target


@frozen(eq=False)
class CompiledRun:
    """The bundles of a straight run, and of code at the same price that stands apart, see `MachineRun`."""

    straight: tuple[Bundle, ...]
    apart: tuple[Bundle, ...]
    depth: int
    bound: int  # slots that hand-written code could reach

    @property
    def bundles(self) -> tuple[Bundle, ...]:
        return self.straight + self.apart

    @property
    def slots(self) -> int:
        return sum(bundle.slots for bundle in self.bundles)


@define(eq=False)
class CompiledLoop:
    """How a counted loop goes round; on vectors, if it has a price and bundles for several rounds.

    `reason` says why not, and `curable` that the same arithmetic can be written so that it does.
    """

    code: MachineLoop
    rounds: int | None  # if known
    reason: str = ""
    curable: bool = False
    price: RoundsPrice | None = None
    bundles: Sequence[Bundle] = field(factory=tuple)


@frozen(eq=False)
class CompiledCode:
    """Runs and counted loops in the order of the text, as pricing goes through them, and the loops that count nothing."""

    runs: tuple[CompiledRun, ...]
    loops: tuple[CompiledLoop, ...]
    whiles: tuple[MachineLoop, ...]

    def prices(self) -> list[tuple[int, int]]:
        """Slots and bound of each run where it stands; the rounds of a loop on vectors are paid for together."""
        together = {loop.code.first for loop in self.loops if loop.price is not None}
        return [(0, 0) if number in together else (run.slots, run.bound) for number, run in enumerate(self.runs)]


def compiled(codelet: TypedCodelet, target: Target, in_place: InPlace = ()) -> CompiledCode:
    """The code of a codelet on a target. `in_place` are fields that are one tensor in some vertex."""
    architecture, limit = target.architecture, target.getRptCountMax()
    worker = codelet.kind != "supervisor"
    control = ControlCode(Selection(codelet, architecture, target.getNumWorkerContexts() if worker else 1))
    control.block(codelet.body)
    runs = control.selection.numbering.runs
    needed = NeededCode(runs, [bound for loop in control.loops for bound in loop.bounds])
    needed.keep(runs)
    bounds = {run: run.bound() for run in runs}  # without what loops do beside their bodies, and without spills
    for loop in control.loops:
        settle_kind(loop, limit, hardware_loops=worker)
        add_steps(loop, needed)
    roots, overlapping = control.selection.roots, frozenset(frozenset(pair) for pair in in_place)
    facts = {loop.body[0]: LoopFacts(loop, codelet, architecture, needed, roots, overlapping, limit) for loop in control.loops}
    around = {run: loop for loop in sorted(control.loops, key=lambda loop: loop.code.depth) for run in loop.body}
    of_run: dict[MachineRun, CompiledRun] = {}
    loops: dict[int, CompiledLoop] = {}
    for run in sorted(runs, key=lambda run: -run.depth):  # what a loop needs in front of it stands in a run outside
        vector = _on_vectors(facts[run]) if run in facts else ""
        hand = by_hand(facts[run]) if run in facts and isinstance(vector, str) else None
        if hand is not None:
            _lower_bounds(bounds, facts[run].loop.body, *hand)
        of_run[run] = _compiled_run(run, around.get(run), bounds[run], paired=worker)
        if run in facts:
            loops[facts[run].loop.code.first] = _compiled_loop(
                facts[run], vector, of_run[run], curable=hand is not None and not _calls(run)
            )
    in_turn = tuple(loop for _, loop in sorted(loops.items()))
    return CompiledCode(tuple(of_run[run] for run in runs), in_turn, tuple(control.whiles))


def _calls(run: MachineRun) -> bool:
    """Whether there is a function of software in a run, which another form of it makes needless."""
    return any(instruction.call for instruction in run.instructions)


def _lower_bounds(bounds: dict[MachineRun, int], body: Sequence[MachineRun], width: int, together: int) -> None:
    """Lower the bounds of a loop's runs to what they have of `width` rounds that run at once."""
    whole = width * sum(bounds[run] for run in body)
    bounds.update((run, min(bounds[run], bounds[run] * together // max(1, whole))) for run in body)


def _compiled_run(run: MachineRun, loop: CountedLoop | None, bound: int, *, paired: bool) -> CompiledRun:
    held = 0 if loop is None or loop.code.kind is LoopKind.REPEAT else 1
    bundles = scheduled(run, None if loop is None else loop.before, held, paired=paired)
    apart = scheduled(MachineRun(run.depth, run.apart), None, 0, paired=paired)
    return CompiledRun(tuple(bundles), tuple(apart), run.depth, bound)


def _on_vectors(facts: LoopFacts) -> VectorLoop | str:
    """The loop on vectors, or why there is none."""
    try:
        return vectorised(facts)
    except Scalar as reason:
        return str(reason)


def _compiled_loop(facts: LoopFacts, vector: VectorLoop | str, run: CompiledRun, *, curable: bool) -> CompiledLoop:
    """The loop, on vectors if that takes fewer slots than its rounds one by one."""
    if isinstance(vector, str):
        return CompiledLoop(facts.loop.code, facts.loop.rounds, vector, curable)
    bundles = scheduled(vector.body, facts.loop.before, 1, paired=True)
    slots, one_by_one = sum(bundle.slots for bundle in bundles), vector.width * run.slots
    if slots >= one_by_one:
        reason = f"{vector.width} rounds at once take {slots} slots, one by one {one_by_one}"
        return CompiledLoop(facts.loop.code, facts.loop.rounds, reason)
    facts.loop.before.instructions += vector.before
    price = RoundsPrice(vector.width, slots, run.slots, vector.bound, run.bound)
    return CompiledLoop(facts.loop.code, facts.loop.rounds, price=price, bundles=bundles)
