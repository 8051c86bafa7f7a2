"""Sweeps over runs of element ids: run k holds ``start[k] + i * step[k]`` for ``i < count[k]``.

Outputs have room for what is most, or as many rows as the sweep tells that there are.
"""

from __future__ import annotations

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.interval_sweeps import place_behind
from pypoplar.host_code.sweep import sweep


@sweep
def step_through(start: Int64s, count: Int64s, step: Int64s, out: Int64s) -> int:
    """The elements of runs, one after the other. There is room for all."""
    rows = 0
    for run in range(len(start)):
        element = start[run]
        for _ in range(count[run]):
            out[rows] = element
            element += step[run]
            rows += 1
    return rows


@sweep
def cut_runs(  # noqa: PLR0913
    first: Int64s,
    start: Int64s,
    step: Int64s,
    begin: Int64s,
    end: Int64s,
    out_start: Int64s,
    out_count: Int64s,
    out_step: Int64s,
    out_owner: Int64s,
) -> int:
    """The pieces of ranges of a view's positions, range by range, and the range of each.

    Run k has the positions from ``first[k]`` up to ``first[k + 1]``, which rise. The ranges lie within them, in any order.
    """
    rows, near, most = 0, 0, len(out_start)
    for owner in range(len(begin)):
        low, high = begin[owner], end[owner]
        if low >= high:
            continue
        near = place_behind(first, low, near)
        run = near - 1
        while first[run] < high:
            if rows < most:
                at, count = max(first[run], low), min(first[run + 1], high) - max(first[run], low)
                out_start[rows] = start[run] + (at - first[run]) * step[run]
                out_count[rows] = count
                out_step[rows] = step[run] if count > 1 else 1
                out_owner[rows] = owner
            rows += 1
            run += 1
    return rows


@sweep
def place_runs(
    first: Int64s,
    length: Int64s,
    start: Int64s,
    count: Int64s,
    step: Int64s,
    out_start: Int64s,
    out_count: Int64s,
    out_step: Int64s,
) -> int:
    """The runs of groups, ``length[k]`` of group k one after the other, to where each group begins among others: ``first[k]``.

    Runs of one element have the step 1.
    """
    run = 0
    for group in range(len(first)):
        for place in range(first[group], first[group] + length[group]):
            out_start[place], out_count[place] = start[run], count[run]
            out_step[place] = step[run] if count[run] > 1 else 1
            run += 1
    return run


@sweep
def find_runs(ids: Int64s, start: Int64s, count: Int64s, step: Int64s) -> int:
    """The runs of element ids: of step 1 first; then, of the elements left alone, three and more at an equal distance.

    An element that two such could have is the earlier one's. There is room for as many runs as ids.
    """
    runs = 0
    for i in range(len(ids)):
        if i > 0 and ids[i] == ids[i - 1] + 1:
            count[runs - 1] += 1
        else:
            start[runs], count[runs] = ids[i], 1
            runs += 1
    if runs > 0:
        step[0] = 1
    rows, run, claimed = min(runs, 1), 0, False  # what is written lies before what is read
    while run + 1 < runs:
        distance, last = start[run + 1] - start[run], run + 1
        alone = count[run] == 1 and count[last] == 1
        while alone and last + 1 < runs and count[last + 1] == 1 and start[last + 1] - start[last] == distance:
            last += 1
        claims = alone and last >= run + 2
        if claims and not claimed:
            count[rows - 1], step[rows - 1] = last - run + 1, distance
        else:
            following = start[run + 1]
            size = last - run if claims else count[run + 1]
            start[rows], count[rows], step[rows] = following, size, distance if claims else 1
            rows += 1
        run, claimed = last, claims
    return rows


@sweep
def count_crossing(start: Int64s, count: Int64s, step: Int64s, variable_first: Int64s) -> int:
    """How many runs are of more than one variable; `variable_first` has the first element of each, rising."""
    crossing, near = 0, 0
    for run in range(len(start)):
        near = place_behind(variable_first, start[run], near)
        crossing += place_behind(variable_first, start[run] + (count[run] - 1) * step[run], near) != near
    return crossing


@sweep
def cut_crossing(
    start: Int64s, count: Int64s, step: Int64s, variable_first: Int64s, out_start: Int64s, out_count: Int64s, out_step: Int64s
) -> int:
    """The runs, those of several variables cut where one begins; a piece of one element has the step 1."""
    rows, near, most = 0, 0, len(out_start)
    for run in range(len(start)):
        at, left, by = start[run], count[run], step[run]
        while left > 0:
            near = place_behind(variable_first, at, near)
            taken = left
            if by > 0 and near < len(variable_first):
                taken = min(left, (variable_first[near] - 1 - at) // by + 1)
            elif by < 0 and near > 0:
                taken = min(left, (at - variable_first[near - 1]) // -by + 1)
            if rows < most:
                out_start[rows], out_count[rows] = at, taken
                out_step[rows] = by if taken > 1 else 1
            rows += 1
            at += taken * by
            left -= taken
    return rows


@sweep
def _add_strand(owner: int, begin: int, length: int, rows: int, owners: Int64s, begins: Int64s, lengths: Int64s) -> int:
    """A stretch behind `rows` others, or part of the last where it continues that; how many there are then."""
    last = rows - 1
    if rows > 0 and owners[last] == owner and begins[last] + lengths[last] == begin:
        lengths[last] += length
        return rows
    owners[rows], begins[rows], lengths[rows] = owner, begin, length
    return rows + 1


@sweep
def lay_strands(owner: Int64s, start: Int64s, count: Int64s, step: Int64s, owners: Int64s, begins: Int64s, lengths: Int64s) -> int:
    """The elements of runs in their order, as stretches of consecutive ones.

    There is room for a stretch of each element, or of each run of step 1.
    """
    rows = 0
    for run in range(len(owner)):
        if count[run] <= 0:
            continue
        if step[run] == 1:
            rows = _add_strand(owner[run], start[run], count[run], rows, owners, begins, lengths)
            continue
        for i in range(count[run]):
            rows = _add_strand(owner[run], start[run] + i * step[run], 1, rows, owners, begins, lengths)
    return rows


@sweep
def _lowest(start: int, count: int, step: int) -> int:
    """The least element of a run that has some."""
    return start + (count - 1) * step if step < 0 else start


@sweep
def touch_strands(
    owner: Int64s, start: Int64s, count: Int64s, step: Int64s, owners: Int64s, begins: Int64s, lengths: Int64s
) -> int:
    """The same elements as a set: a broadcast run is one element, a falling one rises.

    Runs that are alike and begin side by side, as a matrix's columns do, are laid row by row: of as many as their step all is one
    stretch, of those left over each row is one.
    """
    rows, run = 0, 0
    while run < len(owner):
        mine, many, wide = owner[run], count[run], abs(step[run])
        first = _lowest(start[run], many, step[run])
        run += 1
        if many <= 0:
            continue
        if wide == 0 or many == 1:
            many, wide = 1, 1
        if wide == 1:
            rows = _add_strand(mine, first, many, rows, owners, begins, lengths)
            continue
        beside = 1
        while run < len(owner) and (
            count[run] <= 0
            or (
                owner[run] == mine
                and count[run] == many
                and abs(step[run]) == wide
                and _lowest(start[run], many, step[run]) == first + beside
            )
        ):
            beside += count[run] > 0
            run += 1
        whole, rest = beside // wide, beside % wide
        for block in range(whole):
            rows = _add_strand(mine, first + block * wide, wide * many, rows, owners, begins, lengths)
        if rest > 0:
            for row in range(many):
                rows = _add_strand(mine, first + (whole + row) * wide, rest, rows, owners, begins, lengths)
    return rows


@sweep
def name_parts(group: Int64s, first: Int64s, start: Int64s, count: Int64s, step: Int64s, part_first: Int64s, out: Int64s) -> int:
    """Of views, each of a group, the parts that their elements are of, as ``group * parts + part``.

    View k has the runs from ``first[k]`` up to ``first[k + 1]``, none empty; `part_first` has the first element of each part,
    rising from 0. A part is named again where others come between.
    """
    rows, near, parts, most = 0, 0, len(part_first), len(out)
    last, before = -1, -1
    for view in range(len(group)):
        for run in range(first[view], first[view + 1]):
            near = place_behind(part_first, start[run], near)
            behind = place_behind(part_first, start[run] + (count[run] - 1) * step[run], near)
            low, pieces = near, 1
            if behind != near:
                low = min(near, behind)
                pieces = abs(behind - near) + 1 if abs(step[run]) == 1 else count[run]
            for piece in range(pieces):
                place = low + piece
                if behind != near and abs(step[run]) != 1:
                    place = place_behind(part_first, start[run] + piece * step[run], near)
                one = group[view] * parts + place - 1
                if one not in (last, before):
                    if rows < most:
                        out[rows] = one
                    rows += 1
                    last, before = one, last
    return rows
