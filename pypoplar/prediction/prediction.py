"""A prediction: what a step of a program would cost, in short, from the report of its price."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
from attrs import asdict, evolve, field, frozen

from pypoplar.arrays.number_ranges import counted
from pypoplar.errors import ApplicationRuntimeError
from pypoplar.prediction.dearest_modules import PredictedModule, dearest_modules, spent
from pypoplar.report.escaping import escaped
from pypoplar.report.execution import Execution, Run
from pypoplar.report.insights.compute_insights import reachable_peak
from pypoplar.report.phases import PHASES
from pypoplar.report.report import Report
from pypoplar.target import check_count

SHOWN = 10  # modules in texts and tables
SYNTHETIC = "synthetic data: streams are left out"
COLOURS = {"links": "between"}  # of what cycles are spent on, where its name in the palette is another


@frozen
class FullestTile:
    """The tile that holds the most, given by `Prediction.fullest_tile`.

    Attributes
    ----------
    tile:
        Its number among those of all IPUs.
    bytes:
        What it holds, with gaps.
    limit:
        What it has.
    tiles_beyond:
        How many tiles hold more than they have.
    """

    tile: int
    bytes: int
    limit: int
    tiles_beyond: int

    @property
    def fits(self) -> bool:
        """Whether every tile holds no more than it has."""
        return not self.tiles_beyond

    def __str__(self) -> str:
        text = f"tile {self.tile:,}: {self.bytes:,} of {self.limit:,} B, {self.bytes / self.limit:.1%}"
        return text if self.fits else f"{text}; {counted(self.tiles_beyond, 'tile')} out of memory"


@frozen(eq=False, repr=False)
class Prediction:
    """What a step of a program would cost; made by `predict`, and of a PyTorch model by its own `predict`.

    Attributes
    ----------
    items:
        How many items a step treats.
    items_per_second:
        Of all replicas together.
    step_seconds:
        What one step takes.
    step_cycles:
        The same in cycles of the tiles' clock.
    shares:
        Of the step, by what its cycles are spent on: ``"compute"``, ``"exchange"`` within IPUs with copies on tiles,
        ``"links"`` between IPUs, ``"host"`` and ``"sync"``. They add up to 1.
    share_of_peak:
        Floating-point operations in a second, of what the units that they run on could do on all tiles; None where operations
        are not counted.
    peak:
        What `share_of_peak` is of: the unit's name.
    fullest_tile:
        The fullest tile, and how many hold more than they have.
    does_not_fit:
        What does not fit, in sentences: the prediction is that of a machine on which it would.
    modules:
        All modules, the dearest first, each with what binds it.
    validity:
        In one line: what was sampled, assumed, and is not modelled.
    report:
        The whole report; None in the results of a `sweep`.
    """

    items: int
    items_per_second: float
    step_seconds: float
    step_cycles: int
    shares: Mapping[str, float]
    share_of_peak: float | None
    peak: str
    fullest_tile: FullestTile | None
    does_not_fit: tuple[str, ...]
    modules: tuple[PredictedModule, ...]
    validity: str
    report: Report | None = field(default=None)

    def __repr__(self) -> str:
        return f"<Prediction: {rate_text(self.items_per_second)} items/s, {seconds_text(self.step_seconds)} a step>"

    def __str__(self) -> str:
        rows = [f"{rate_text(self.items_per_second)} items/s"]
        rows += [f"  {label:<13} {text}" for label, text in self._rows()]
        rows += [f"  does not fit: {sentence}" for sentence in self.does_not_fit]
        rows.append("  the dearest modules:")
        rows += [
            f"    {module.share:6.1%}  {module.bound_by:<12}  {' '.join(module.name.split())}" for module in self.modules[:SHOWN]
        ]
        if len(self.modules) > SHOWN:
            rest = sum(module.share for module in self.modules[SHOWN:])
            rows.append(f"    {rest:6.1%}  in {counted(len(self.modules) - SHOWN, 'other')}")
        return escaped("\n".join([*rows, f"  {self.validity}"]))

    def _rows(self) -> list[tuple[str, str]]:
        """Labels and texts, in the order in which they are shown."""
        step = f"{seconds_text(self.step_seconds)}, {counted(self.step_cycles, 'cycle')}, for {counted(self.items, 'item')}"
        rows = [("step", step), ("spent on", ", ".join(f"{what} {share:.1%}" for what, share in self.shares.items()))]
        if self.share_of_peak is not None:
            rows.append(("of the peak", f"{self.share_of_peak:.2%} of {self.peak}"))
        if self.fullest_tile is not None:
            rows.append(("fullest tile", str(self.fullest_tile)))
        return rows

    def _repr_html_(self) -> str:
        """A small table for notebooks."""
        from pypoplar.report import notebook_tables as shown  # only notebooks need it

        labels = {phase.name: phase.label for phase in PHASES}
        names = {what: COLOURS.get(what, what) for what in self.shares}
        bar = shown.shares([(names[what], labels[names[what]], share) for what, share in self.shares.items()])
        rows = [(label, escape(text)) for label, text in self._rows() if label != "spent on"]
        rows += [("does not fit", escape(sentence)) for sentence in self.does_not_fit]
        cells = [(f"{module.share:.1%}", module.bound_by, module.name) for module in self.modules[:SHOWN]]
        rest = f"<div>{shown.more(len(self.modules) - SHOWN)}</div>" if len(self.modules) > SHOWN else ""
        title = f"<b>{rate_text(self.items_per_second)} items/s</b>"
        table = shown.grid(("of all cycles", "bound by", "module"), cells)
        return shown.block(title, shown.table(rows), bar, table, rest, f"<div>{escape(self.validity)}</div>")

    def to_json(self) -> dict[str, object]:
        """The prediction as plain values, which JSON holds.

        Returns
        -------
        dict[str, object]
            By name of the attribute; without the report.
        """
        fullest = self.fullest_tile
        return {
            "items": self.items,
            "items_per_second": self.items_per_second,
            "step_seconds": self.step_seconds,
            "step_cycles": self.step_cycles,
            "shares": dict(self.shares),
            "share_of_peak": self.share_of_peak,
            "peak": self.peak,
            "fullest_tile": None if fullest is None else {**asdict(fullest), "fits": fullest.fits},
            "does_not_fit": list(self.does_not_fit),
            "modules": [asdict(module) for module in self.modules],
            "validity": self.validity,
        }


def prediction_of(report: Report, items: int = 1, *, peak: float | None = None, synthetic_data: bool = False) -> Prediction:
    """The prediction that a report of one step gives.

    `items` is how many items all runs of the report treat together. `peak` are the operations per second that `share_of_peak` is
    of, if not those of the units that the program's operations run on. With `synthetic_data` steps that stream from and to the
    host are left out.
    """
    count = check_count("items", items)
    execution = report.execution
    if execution is None:
        raise ApplicationRuntimeError("a prediction needs the report of a run: no program has run")
    execution = _without_streams(execution) if synthetic_data else execution
    cycles, seconds = execution.totalCycles.total, execution.seconds
    if not cycles or not seconds:
        raise ApplicationRuntimeError(
            "the program takes no cycles, so nothing can be predicted" + (" without its streams" if synthetic_data else "")
        )
    reached, unit = _of_peak(report, execution, peak)
    fullest = _fullest(report)
    basis = report.cost.validity if report.cost is not None else "from a run"
    return Prediction(
        items=count,
        items_per_second=count / seconds,
        step_seconds=seconds,
        step_cycles=cycles,
        shares=_shares(execution),
        share_of_peak=reached,
        peak=unit,
        fullest_tile=fullest,
        does_not_fit=_what_does_not_fit(fullest),
        modules=dearest_modules(execution, report.compilation),
        validity="; ".join([basis, *((SYNTHETIC,) if synthetic_data else ())]),
        report=report,
    )


def _shares(execution: Execution) -> dict[str, float]:
    """By what cycles are spent on, their share of all; of several IPUs the mean one's, whose waiting counts as sync."""
    cycles = execution.totalCycles.total
    if not execution.has_ipus:
        return {what: part / cycles for what, part in spent(execution.steps).items()}
    mean = {what: part / cycles / len(execution.ipus) for what, part in spent(execution.ipus).items()}
    waiting = sum(ipu.waiting_cycles for ipu in execution.ipus) / cycles / len(execution.ipus)
    return {**mean, "sync": mean["sync"] + waiting}


def _without_streams(execution: Execution) -> Execution:
    steps = [step for step in execution.steps if step.type != "StreamCopy"]
    return evolve(execution, steps=steps, runs=tuple(map(_run_without_streams, execution.runs)))


def _run_without_streams(run: Run) -> Run:
    """Of several IPUs all come to the end as much sooner as the one for which most is streamed."""
    steps = tuple(step for step in run.steps if step.type != "StreamCopy")
    if not len(run.waiting_by_ipu):
        return evolve(run, steps=steps)
    streamed, busy = (sum(step.cycles_by_ipu[:-1].sum(0) for step in some) for some in (set(run.steps) - set(steps), steps))
    total = np.maximum(run.cycles - np.max(streamed), np.max(busy))
    waited = sum(step.cycles_by_ipu[-1] for step in steps)
    return evolve(run, steps=steps, waiting_by_ipu=total - busy - waited)


def _of_peak(report: Report, execution: Execution, peak: float | None) -> tuple[float | None, str]:
    """Operations in a second as a share of a peak, and the name of what has it; None where operations are not counted."""
    target = report.compilation.target
    if not execution.flops or not any(target.peak_flops_per_cycle.values()):
        return None, ""
    if peak is not None:
        return execution.flops / execution.seconds / peak, f"{peak:,.4g} FLOP/s"
    name, per_cycle = reachable_peak(report.compilation, execution)
    return execution.flops / (per_cycle * target.numTiles * execution.totalCycles.total), name


def _fullest(report: Report) -> FullestTile | None:
    """The fullest tile; None where the report knows no tiles."""
    whole, limit = report.compilation.memory.including_gaps(), report.compilation.target.bytesPerTile
    if not len(whole) or not limit:
        return None
    tile = int(whole.argmax())
    return FullestTile(tile, int(whole[tile]), limit, int(np.count_nonzero(whole > limit)))


def _what_does_not_fit(fullest: FullestTile | None) -> tuple[str, ...]:
    if fullest is None or fullest.fits:
        return ()
    beyond, over = fullest.tiles_beyond, fullest.bytes - fullest.limit
    verb = "holds" if beyond == 1 else "hold"
    return (
        f"{counted(beyond, 'tile')} {verb} more than {fullest.limit:,} B; tile {fullest.tile:,} is {over:,} B over;"
        " predicted as if they had the memory",
    )


def rate_text(rate: float) -> str:
    """A number of items in a second, with three or more digits."""
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:,.3g}"


def seconds_text(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:,.4g} {unit}"
    return f"{seconds * 1e6:,.4g} \N{MICRO SIGN}s"
