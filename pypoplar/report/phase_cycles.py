"""All cycles of an execution by phase: name, label and cycles of each, which add up to the total."""

from __future__ import annotations

from pypoplar.report.execution import Execution
from pypoplar.report.phases import IDLE_THREADS, PHASES, WAITING, labels

Part = tuple[str, str, float]  # name, label, cycles


def machine_cycles(execution: Execution) -> list[Part]:
    """What the machine did; in each step the slowest tile decides. Of several IPUs it is what their mean did."""
    if execution.has_ipus:
        return _mean_ipu_cycles(execution)
    sums = {phase.name: sum(getattr(step, phase.cycles) for step in execution.steps) for phase in PHASES}
    return [(name, label, sums[name]) for name, label in labels(copies_known=execution.copies_known).items()]


def _mean_ipu_cycles(execution: Execution) -> list[Part]:
    ipus = execution.ipus
    means = {phase.name: sum(getattr(ipu, phase.cycles) for ipu in ipus) / len(ipus) for phase in PHASES}
    parts = [(name, label, means[name]) for name, label in labels(copies_known=execution.copies_known).items()]
    return [*parts, (WAITING[0], "Waiting for other IPUs", sum(ipu.waiting_cycles for ipu in ipus) / len(ipus))]


def mean_tile_cycles(execution: Execution) -> list[Part]:
    """What the mean tile did; what is left is waiting for slower tiles."""
    mean = execution.tile_average
    sums = {
        "sync": mean.sync - mean.waiting,
        "exchange": mean.exchange,
        "copies": mean.copies,
        "between": mean.global_exchange,
        "host": mean.host_exchange,
        "compute": mean.compute_excluding_idle,
    }
    parts = [(name, label, sums[name]) for name, label in labels(copies_known=execution.copies_known).items()]
    idle_threads = mean.compute_including_idle - mean.compute_excluding_idle
    return [*parts, (*IDLE_THREADS, idle_threads), (*WAITING, mean.waiting)]
