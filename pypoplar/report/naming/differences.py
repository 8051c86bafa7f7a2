"""What differs between two reports, in words: pages and `pypoplar compare` say the same.

Names are paths, and what several steps of a name cost counts together: programs whose steps have moved still match. Names that
differ in numbers only fold as in the tree of names: a loop matches the same one unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from pypoplar.arrays.number_ranges import counted
from pypoplar.report.execution import Run, Step, no_tiles
from pypoplar.report.naming.called_steps import steps_of
from pypoplar.report.naming.name_tree import NameTree, path_of
from pypoplar.report.phases import PHASES, labels
from pypoplar.report.report import Report, ReportTarget

TARGET_FACTS: dict[str, Callable[[Any], str]] = {  # of a target, what cycles and memory depend on -> how it is written
    "system": str,
    "architecture": str,
    "timing": str,
    "numIPUs": lambda count: counted(count, "IPU"),
    "tilesPerIpu": lambda count: f"{counted(count, 'tile')} an IPU",
    "bytesPerTile": lambda size: f"{size:,} B a tile",
    "clockFrequency": lambda clock: f"{clock / 1e9:,.2f} GHz",
}
PLACES_OF_FILES = ("autoReport.directory",)  # options that only say where profiles go

ALL_CYCLES = "all cycles"
ALL_MEMORY = "memory of all tiles"


@frozen
class Difference:
    """A number that is another one in the second report; None where there is no such thing in one of them.

    `part` is "total", a phase's name, "memory", or "name" for all phases of what stands under a path. `most` says which of several
    names that fold has changed the most.
    """

    subject: str
    part: str
    path: str
    unit: str
    before: int | None
    after: int | None
    most: str = field(default="", kw_only=True)

    @property
    def change(self) -> int:
        """After less before; what is absent is zero."""
        return (self.after or 0) - (self.before or 0)

    @property
    def share(self) -> float | None:
        """The change as a share of what was before, None where that is nothing."""
        return self.change / self.before if self.before else None

    @property
    def words(self) -> str:
        """``exchange of 'halo' fell from 33,360 to 7,400 cycles (-77.8 %)``, ``all cycles: unchanged at 18,080``."""
        if not self.change:
            return f"{self.subject}: unchanged at {self.after or 0:,}"
        if self.before is None:
            return f"{self.subject} is new: {self.after or 0:,} {self._unit(self.after or 0)}"
        if self.after is None:
            return f"{self.subject} is gone: it was {self.before:,} {self._unit(self.before)}"
        verb = "rose" if self.change > 0 else "fell"
        percent = "" if self.share is None else f" ({self.share:+.1%})".replace("%", " %")
        return f"{self.subject} {verb} from {self.before:,} to {self.after:,} {self._unit(self.after)}{percent}{self.most}"

    def _unit(self, number: int) -> str:
        return "cycle" if number == 1 and self.unit == "cycles" else self.unit


def comparable(first: Report, second: Report) -> tuple[Report, Report]:
    """Both reports with the same phases: where one does not tell copies apart from exchanges, the other does not either."""
    executions = [report.execution for report in (first, second) if report.execution is not None]
    if all(execution.copies_known for execution in executions):
        return first, second
    return _copies_merged(first), _copies_merged(second)


def _copies_merged(report: Report) -> Report:
    execution = report.execution
    if execution is None or not execution.copies_known:
        return report
    steps = tuple(map(_step_merged, execution.steps))
    runs = tuple(Run(run.name, tuple(map(_step_merged, run.steps)), run.count) for run in execution.runs)
    return evolve(report, execution=evolve(execution, steps=steps, runs=runs, copies_known=False))


def _step_merged(step: Step) -> Step:
    by_tile, copies = step.exchange_cycles_by_tile, step.copy_cycles_by_tile
    return evolve(
        step,
        exchange_cycles=step.exchange_cycles + step.copy_cycles,
        copy_cycles=0,
        exchange_cycles_by_tile=by_tile + copies if len(by_tile) and len(copies) else copies if len(copies) else by_tile,
        copy_cycles_by_tile=no_tiles(),
    )


def obstacles(first: Report, second: Report) -> list[str]:
    """Why the figures of the two say little of each other, in sentences: other targets, not run, other numbers of runs."""
    told = []
    one, other = first.compilation.target, second.compilation.target
    differing = [name for name in TARGET_FACTS if getattr(one, name) != getattr(other, name)]
    if differing:
        told.append(f"the targets differ: {_target(one, differing)} in A, {_target(other, differing)} in B")
    for letter, report in (("A", first), ("B", second)):
        if report.execution is None:
            why = "no run of {} has come to its end" if report.failed_runs else "{} has not run"
            told.append(f"{why.format(letter)}: it has no cycles to compare")
    counts = [sum(run.count for run in report.execution.runs) if report.execution is not None else 0 for report in (first, second)]
    if all(counts) and counts[0] != counts[1]:
        told.append(f"A has {counted(counts[0], 'run')} and B {counts[1]:,}: cycles are of all runs together")
    return told


def _target(target: ReportTarget, names: Iterable[str]) -> str:
    return ", ".join(TARGET_FACTS[name](getattr(target, name)) or "not named" for name in names)


def option_changes(first: Report, second: Report) -> list[str]:
    """Engine options that were set to something else, in sentences; not where the profiles went, which always differs."""
    one, other = first.compilation.options, second.compilation.options
    return [
        f"the option {name} is {other.get(name, 'not set')} in B and was {one.get(name, 'not set')} in A"
        for name in dict.fromkeys((*one, *other))
        if one.get(name) != other.get(name) and name not in PLACES_OF_FILES
    ]


def totals(first: Report, second: Report) -> list[Difference]:
    """Cycles, the fullest tile, and memory of all tiles, the same ones too; cycles only where both have run."""
    cycles = [report.execution.totalCycles.total if report.execution is not None else None for report in (first, second)]
    memory = [report.compilation.memory.including_gaps() for report in (first, second)]
    fullest, whole = ([int(value(sizes)) if len(sizes) else 0 for sizes in memory] for value in (np.max, np.sum))
    listed = [
        Difference("memory of the fullest tile", "total", "", "B", *fullest),
        Difference(ALL_MEMORY, "total", "", "B", *whole),
    ]
    return listed if None in cycles else [Difference(ALL_CYCLES, "total", "", "cycles", *cycles), *listed]


def unchanged_total(first: Report, second: Report) -> list[str]:
    """That all cycles are the same, where both have run, or what the one that has run took; nothing where they differ."""
    for total in totals(first, second):
        if total.subject == ALL_CYCLES:
            return [] if total.change else [total.words]
    return [
        f"{ALL_CYCLES} of {letter}: {report.execution.totalCycles.total:,}"
        for letter, report in (("A", first), ("B", second))
        if report.execution is not None
    ]


def differences(first: Report, second: Report) -> list[Difference]:
    """All that differs: first the totals, then cycles by phase and name path, then memory of variables, each the largest first."""
    first, second = comparable(first, second)
    whole = [difference for difference in totals(first, second) if difference.change]
    folds = Folds.of(first, second)
    cycles: list[Difference] = []
    if first.execution is not None and second.execution is not None:
        sides = [steps_of(report) for report in (first, second)]
        names = labels(copies_known=first.execution.copies_known and second.execution.copies_known)
        for phase, label in names.items():
            attribute = next(known.cycles for known in PHASES if known.name == phase)
            before, after = (_cycles_by_path(side, attribute) for side in sides)
            cycles += folds.changes(before, after, phase, label[0].lower() + label[1:], "cycles")
        cycles += _subtrees(sides[0], sides[1], folds, cycles)
    held, held_after = _bytes_by_path(first), _bytes_by_path(second)
    memory = folds.changes(held, held_after, "memory", "memory", "B") if held and held_after else []
    return [*whole, *sorted(cycles, key=_largest), *sorted(memory, key=_largest)]


def _largest(difference: Difference) -> tuple[int, str, str]:
    return (-abs(difference.change), difference.path, difference.part)


def _cycles_by_path(steps: Sequence[Step], attribute: str) -> dict[str, int]:
    sums: dict[str, int] = {}
    for step in steps:
        path = "/".join(path_of(step.name))
        sums[path] = sums.get(path, 0) + int(getattr(step, attribute))
    return sums


def _bytes_by_path(report: Report) -> dict[str, int]:
    variables = report.compilation.loweredVariables
    sums: dict[str, int] = {}
    for name, size in zip(variables.names, variables.total_bytes().tolist() if len(variables) else [], strict=True):
        path = "/".join(path_of(name))
        sums[path] = sums.get(path, 0) + size
    return sums


@frozen
class Folds:
    """The paths of both reports' names, and those that they fold to, as the tree of both has them."""

    folded: Mapping[str, tuple[str, ...]]

    @staticmethod
    def of(*reports: Report) -> Folds:
        """How names fold in all of these reports together, so that each folds alike in every one."""
        tree = NameTree()
        steps = [step.name for report in reports for step in steps_of(report)]
        variables = [name for report in reports for name in report.compilation.loweredVariables.names]
        nodes = {"/".join(path_of(name)): tree.node(name) for name in dict.fromkeys((*steps, *variables))}
        paths = tree.folded_paths()
        return Folds({path: paths[node] for path, node in nodes.items()})

    def changes(self, before: Mapping[str, int], after: Mapping[str, int], part: str, label: str, unit: str) -> list[Difference]:
        """By path what is another number, new or gone; what is 0 on one side where the path is there too is a number."""
        groups: dict[str, list[str]] = {}
        for path in dict.fromkeys((*before, *after)):
            groups.setdefault("/".join(self.folded[path]), []).append(path)
        changed = []
        for folded, paths in groups.items():
            same = all(path in before and path in after for path in paths)
            if same and _sum(before, paths) == _sum(after, paths):  # what one has more another may have less
                rows = [(path, [path]) for path in paths]
            else:
                rows = [(folded, paths)]
            for path, of in rows:
                sums, most = (_sum(before, of), _sum(after, of)), _most(before, after, of)
                if (sums[0] or 0) != (sums[1] or 0):
                    changed.append(Difference(f"{label} of {_quoted(path)}", part, path, unit, *sums, most=most))
        return changed

    def first_part(self, name: str) -> str:
        """What a name stands under."""
        return self.folded["/".join(path_of(name))][0]


def _sum(side: Mapping[str, int], paths: Iterable[str]) -> int | None:
    """What is under some paths, None where none of them is there."""
    numbers = [side[path] for path in paths if path in side]
    return sum(numbers) if numbers else None


def _most(before: Mapping[str, int], after: Mapping[str, int], paths: Sequence[str]) -> str:
    """Of paths that fold and that both have, the one that changed the most; nothing where all changed alike, or some are new."""
    if len(paths) < 2 or not all(path in before and path in after for path in paths):
        return ""
    changes = {path: after[path] - before[path] for path in paths}
    if len(set(changes.values())) == 1:
        return ""
    most = max(changes, key=lambda path: abs(changes[path]))
    return f", the most in {_quoted(most)}: {changes[most]:+,}"


def _quoted(path: str) -> str:
    return f"'{' '.join(path.split())}'" if path else "what has no name"


def _subtrees(first: Sequence[Step], second: Sequence[Step], folds: Folds, changes: Iterable[Difference]) -> list[Difference]:
    """All cycles under the first part of a path, where several names below it have changed."""
    changed: dict[str, set[str]] = {}
    for change in changes:
        if "/" in change.path:
            changed.setdefault(change.path.partition("/")[0], set()).add(change.path)
    sums = [_cycles_below(steps, folds) for steps in (first, second)]
    found = []
    for part, paths in changed.items():
        before, after = (side.get(part) for side in sums)
        if len(paths) > 1 and before != after:
            found.append(Difference(f"all of {_quoted(part)}", "name", part, "cycles", before, after))
    return found


def _cycles_below(steps: Sequence[Step], folds: Folds) -> dict[str, int]:
    sums: dict[str, int] = {}
    for step in steps:
        part = folds.first_part(step.name)
        sums[part] = sums.get(part, 0) + step.cycles
    return sums


def exceeded(first: Report, second: Report, limit: Fraction) -> list[Difference]:
    """What rose by more than the share `limit` of what it was: all cycles, and the memory of the fullest tile."""
    cycles_and_fullest = [total for total in totals(first, second) if total.subject != ALL_MEMORY]
    return [total for total in cycles_and_fullest if total.change > limit * (total.before or 0)]


def comparison_text(first: Report, second: Report, most: int) -> str:
    """Obstacles and differences as lines; beyond the `most` largest of each kind, how many there are."""
    lines = [f"note: {sentence}" for sentence in (*obstacles(first, second), *option_changes(first, second))]
    lines += unchanged_total(first, second)
    found = differences(first, second)
    if not found:
        return "\n".join([*lines, nothing_differs(first, second)]) + "\n"
    whole = [difference.words for difference in found if difference.part == "total"]
    cycles = [difference.words for difference in found if difference.part != "total" and difference.unit == "cycles"]
    memory = [difference.words for difference in found if difference.part == "memory"]
    lines += whole
    for kind, words in (("cycles", cycles), ("memory", memory)):
        lines += words[:most]
        if len(words) > most:
            lines.append(f"and {counted(len(words) - most, 'smaller difference')} of {kind}")
    return "\n".join(lines) + "\n"


def nothing_differs(first: Report, second: Report) -> str:
    """That nothing differs, of what both have."""
    ran = all(report.execution is not None for report in (first, second))
    return "no difference in cycles or memory" if ran else "no difference in memory"
