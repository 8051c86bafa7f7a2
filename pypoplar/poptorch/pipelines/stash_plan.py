"""What is put aside for later cycles, and when it is brought back.

A variable is written by one part of a cycle and found by others, some of them in later cycles, when it holds another micro-batch's
values already. So its writer saves it, and whoever finds something else in it than its own micro-batch's values restores it.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from attrs import define, field, frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.poptorch.pipelines.pipeline_units import CycleParts, CycleUnit, UnitKind
from pypoplar.poptorch.pipelines.stage_segments import NotPipelined


@frozen
class Stashed:
    """A variable as one unit leaves it, by number: which units restore it, each by the number of the unit."""

    variable: int
    maker: int
    restored_by: tuple[int, ...]


@frozen(eq=False)
class _Needs:
    """What a variable has to hold, as which unit left it, before which units, and which units write it."""

    makers: dict[int, int]  # by unit
    writers: frozenset[int]


def stashes(parts: CycleParts) -> list[Stashed]:
    """All that is put aside. `NotPipelined` where a micro-batch reads what an earlier one leaves in another segment."""
    units = parts.units
    rank = sorted(range(len(units)), key=lambda number: (units[number].offset, number))  # of a micro-batch
    states = _states(parts, rank)
    found = []
    for variable, needs in _needs(parts, rank).items():
        restoring: dict[int, list[int]] = defaultdict(list)
        for unit in _restoring(needs, units):
            restoring[needs.makers[unit]].append(unit)
        if restoring and variable in states:
            raise NotPipelined(
                f"{parts.effects.frozen.variables.names[variable]} has both values of a micro-batch and others that stay"
            )
        found += [Stashed(variable, maker, tuple(sorted(by))) for maker, by in restoring.items()]
    return found


def _before(writes: Bools) -> Int64s:
    """[units, columns]: the place of the last unit before each that writes; -1 for none."""
    place = np.where(writes, np.arange(len(writes))[:, None], -1)
    last = np.maximum.accumulate(place, 0)
    return np.concatenate([np.full((1, writes.shape[1]), -1), last[:-1]])


def _states(parts: CycleParts, rank: list[int]) -> set[int]:
    """The variables with values that stay from one micro-batch to the next, which may be of one segment only.

    What has no value to begin with is none of them: nobody reads of it what nobody has written, such as the rows of a sequence that
    a loop fills.
    """
    atoms = parts.effects.probably
    finds, writes = atoms.finds[rank], atoms.writes[rank]
    kept = (finds & (_before(writes) < 0)).any(0) & writes.any(0) & np.isin(atoms.variable, list(parts.initial))
    several = kept & ((finds | writes).sum(0) > 1)
    if several.any():
        atom = int(np.flatnonzero(several)[0])
        touching = [parts.units[rank[row]].name for row in np.flatnonzero(finds[:, atom] | writes[:, atom])]
        name = parts.effects.frozen.variables.names[int(atoms.variable[atom])]
        raise NotPipelined(f"{name}, which changes from micro-batch to micro-batch, is used by {' and '.join(touching[:3])}")
    return set(atoms.variable[kept].tolist())


def _needs(parts: CycleParts, rank: list[int]) -> dict[int, _Needs]:
    """By variable what units need that others have made."""
    atoms = parts.effects.surely
    finds, writes, defines = atoms.finds[rank], atoms.writes[rank], atoms.defines[rank]
    before = _before(writes)
    found = finds & (before >= 0)
    needs: dict[int, _Needs] = {}
    exchanged = np.unique(atoms.variable[found.any(0)])
    by_variable = np.argsort(atoms.variable, kind="stable")
    low = np.searchsorted(atoms.variable[by_variable], exchanged)
    high = np.searchsorted(atoms.variable[by_variable], exchanged, "right")
    for variable, first, end in zip(exchanged.tolist(), low.tolist(), high.tolist(), strict=True):
        own = by_variable[first:end]
        writers = np.flatnonzero(writes[:, own].any(1)).tolist()
        finding = set(np.flatnonzero(found[:, own].any(1)).tolist())
        last = {place: max((one for one in writers if one < place), default=-1) for place in (*finding, *writers)}
        for place in writers:  # what it leaves alone has to be there for those behind it
            left = own[~writes[place, own]]
            later = found[place + 1 :, left] & (before[place + 1 :, left] < place)
            if later.any() or (~defines[place, own] & writes[place, own] & found[place, own]).any():
                finding.add(place)
        makers = {rank[place]: rank[last[place]] for place in finding if last[place] >= 0}
        needs[variable] = _Needs(makers, frozenset(rank[place] for place in writers))
    return needs


@define(eq=False)
class _Held:
    """What a variable holds: as which unit left it, so many cycles after its micro-batch began."""

    maker: int
    age: int
    restored: int | None = None  # by the unit of this offset, in this cycle
    lasts: bool = field(default=True)  # whether its maker wrote it, so that it is there in every cycle in which it is needed


def _restoring(needs: _Needs, units: tuple[CycleUnit, ...]) -> list[int]:
    """The units before which a variable is restored: cycles are gone through until there are no more."""
    marks: set[int] = set()
    while True:
        fresh = _unmet(needs, units, marks)
        if not fresh:
            return sorted(marks)
        marks |= fresh


def _unmet(needs: _Needs, units: tuple[CycleUnit, ...], marks: set[int]) -> set[int]:
    """The units that would find something else than they need."""
    held: _Held | None = None
    unmet: set[int] = set()
    for _ in range(2):
        if held is not None:
            held = _Held(held.maker, held.age + 1, None, held.lasts)
        for number in sorted({*needs.makers, *needs.writers}):
            unit = units[number]
            if number in needs.makers:
                maker = needs.makers[number]
                if number in marks:
                    held = _Held(maker, unit.offset, unit.offset, lasts=False)
                elif held is not None:
                    met = held.maker == maker and held.age == unit.offset and (held.lasts or held.restored == unit.offset)
                    if not met:
                        unmet.add(number)
            if number in needs.writers:
                held = _Held(number, unit.offset)
    return unmet


def lag(stashed: Stashed, unit: int, units: tuple[CycleUnit, ...]) -> int:
    """For how many cycles a stash keeps what a unit restores."""
    return units[unit].offset - units[stashed.maker].offset


def is_of_head(unit: CycleUnit) -> bool:
    """Whether a unit comes before the segments of a cycle."""
    return unit.kind in (UnitKind.ARRIVAL, UnitKind.HOST)
