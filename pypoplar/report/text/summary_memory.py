"""The memory sections of the profile summary: by category, by tile, by IPU, by variable and by step of the program."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.number_ranges import counted, number_ranges
from pypoplar.report.memory_report import LoweredVariables, MemoryByTile, live_bytes
from pypoplar.report.program_nodes import Program, short_place
from pypoplar.report.report import Compilation, ReportTarget
from pypoplar.report.text.text_columns import Line, columns, heading_words, labelled, shown_name, size

BAR = 40  # characters of the longest bar of the histogram
RANGES = 10  # most ranges of the histogram
FULLEST = 5  # groups of equal tiles whose memory is shown when some are out of memory
VARIABLES = 100  # most variables of a list; the rest is summed


def memory_section(compilation: Compilation, *, per_ipu: bool, variables: bool) -> list[str]:
    """The memory of all tiles: totals, by category, and how evenly it is spread; on request by IPU and by variable."""
    memory, target = compilation.memory, compilation.target
    used, whole = memory.excluding_gaps(), memory.including_gaps()
    lines = ["Memory Usage:", *shortage(whole, target), "  Total:"]
    lines += columns([("Including Gaps:", size(int(whole.sum()))), ("Excluding Gaps:", size(int(used.sum())))], 4)
    # The regions of a tile's memory are not modelled apart: what fits counts as non-interleaved, what does not as overflowed.
    over = min(int(np.maximum(whole - target.bytesPerTile, 0).sum()), int(used.sum()))
    regions = [("Non-interleaved:", int(used.sum()) - over), ("Overflowed:", over)]
    lines += ["      By Memory Region:", *columns([(name, size(count)) for name, count in regions], 8), "      By Data Type:"]
    lines += columns([(f"{heading_words(name)}:", size(int(sizes.sum()))) for name, sizes in memory.categories.items()], 8)
    lines += vertex_data(compilation)
    lines += ["  By Tile (Excluding Gaps):", *histogram(used), *fullest(memory, target)]
    if per_ipu:
        lines += by_ipu(compilation)
    if variables and len(compilation.loweredVariables):  # a graph whose memory does not suffice has only sums
        lines += ["", *variable_storage(compilation)]
    return lines


def shortage(whole: Int64s, target: ReportTarget) -> list[str]:
    """How many tiles do not fit, before all else; nothing where all do."""
    over = int(np.count_nonzero(whole > target.bytesPerTile))
    if not over:
        return []
    text = f"{over:,} of {counted(len(whole), 'tile')} {'holds' if over == 1 else 'hold'} more than their {target.bytesPerTile:,} B"
    return [f"  Out of memory: {text}. The option pypoplar.run_out_of_memory runs the program all the same."]


def vertex_data(compilation: Compilation) -> list[str]:
    """The memory of vertices by category and by type, the largest first."""
    memory = compilation.memory
    lines = [f"  Vertex Data ({counted(compilation.graph.numVertices, 'vertex', 'vertices')}):"]
    for title, table in (("By Category:", memory.vertex_data), ("By Type:", memory.vertex_data_by_type)):
        if not table:
            continue
        by_type = table is memory.vertex_data_by_type
        used = [entry for entry in table.items() if entry[1] or not by_type]
        entries = sorted(used, key=lambda entry: (-entry[1], entry[0])) if by_type else used
        lines.append(f"    {title}")
        lines += columns([(f"{name if by_type else heading_words(name).capitalize()}:", size(count)) for name, count in entries], 6)
    return lines


def histogram(used: Int64s) -> list[str]:
    """How many tiles use how many KB."""
    if not len(used):
        return []
    low, high = int(used.min()) // 1024, int(used.max()) // 1024 + 1
    step = -(-(high - low) // RANGES)
    edges = [low + step * number for number in range(-(-(high - low) // step) + 1)]
    counts = np.histogram(used / 1024, edges)[0]
    number = len(f"{edges[-1]:,}")
    most = int(counts.max())
    lines = [f"    {'Range (KB)':<{2 * number + 3}}  {'Histogram':<{BAR}}  Count (tiles)"]
    for begin, end, count in zip(edges[:-1], edges[1:], counts, strict=True):
        bar = "*" * (max(1, BAR * int(count) // most) if count else 0)
        lines.append(f"    {f'{begin:>{number},} - {end:>{number},}':<{max(2 * number + 3, 10)}}  {bar:<{BAR}}  {int(count):,}")
    return lines


def maxima(used: Int64s, whole: Int64s, limit: int, first_tile: int = 0) -> list[str]:
    """The fullest tile with and without gaps, and how many tiles are over their memory."""
    lines = []
    for title, values in (("Including", whole), ("Excluding", used)):
        tile = int(values.argmax())
        most = int(values[tile])
        lines.append(f"    Maximum ({title} Gaps): {most:,} B ({most / 1024:,.1f} K) on tile {first_tile + tile:,}")
    return [*lines, f"    {int(np.count_nonzero(whole > limit)):,} tile(s) out of memory"]


def fullest(memory: MemoryByTile, target: ReportTarget) -> list[str]:
    """The fullest tile, and where memory does not suffice what fills the fullest ones."""
    used, whole = memory.excluding_gaps(), memory.including_gaps()
    if not len(used):
        return []
    lines = maxima(used, whole, target.bytesPerTile)
    for tiles in equal_tiles(memory, tiles_beyond(whole, target.bytesPerTile))[:FULLEST]:
        rows = [(f"{heading_words(name)}:", size(int(sizes[tiles[0]]))) for name, sizes in memory.categories.items()]
        rows.append(("Over by:", size(int(whole[tiles[0]]) - target.bytesPerTile)))
        title = (
            f"Tile # {tiles[0]:,} memory usage:" if len(tiles) == 1 else f"Memory usage of each of tiles {number_ranges(tiles)}:"
        )
        lines += [f"  {title}", *columns(rows, 4)]
    return lines


def tiles_beyond(whole: Int64s, limit: int) -> Int64s:
    """The tiles that hold more than they have, the fullest first."""
    order: Int64s = np.argsort(-whole, kind="stable")[: np.count_nonzero(whole > limit)]
    return order


def equal_tiles(memory: MemoryByTile, tiles: Int64s) -> list[list[int]]:
    """These tiles, those that hold as much of each category together, in the order of the first ones."""
    held = np.stack([*memory.categories.values(), memory.gaps], 1)
    groups: dict[bytes, list[int]] = {}
    for tile in tiles.tolist():
        groups.setdefault(held[tile].tobytes(), []).append(tile)
    return list(groups.values())


def by_ipu(compilation: Compilation) -> list[str]:
    """The memory of each IPU and its fullest tile."""
    memory, target = compilation.memory, compilation.target
    lines = []
    rows = zip(compilation.by_ipu(memory.excluding_gaps()), compilation.by_ipu(memory.including_gaps()), strict=True)
    for ipu, (used, whole) in enumerate(rows):
        totals = [
            (f"{title} Gaps:", f"{size(int(values.sum()))} ({values.sum() / target.bytesPerIPU:.1%} of the IPU)")
            for title, values in (("Including", whole), ("Excluding", used))
        ]
        lines += [f"  IPU {ipu} (tiles {ipu * target.tilesPerIpu:,} to {(ipu + 1) * target.tilesPerIpu - 1:,}):"]
        lines += [*columns(totals, 4), *maxima(used, whole, target.bytesPerTile, ipu * target.tilesPerIpu)]
    return lines


def variable_storage(compilation: Compilation) -> list[str]:
    """What is always live, what lives at the step with the most live bytes, and how many bytes live at each step."""
    variables = compilation.loweredVariables
    sizes, always = variables.total_bytes(), always_live_bytes(compilation)
    live = live_bytes(variables, len(compilation.step_programs))
    lines = ["Variable Storage Liveness: All tiles", f"  Always-live bytes: {always:,}"]
    lines += ["  Always-live variables:", *variable_list(variables, sizes, np.flatnonzero(variables.always))]
    if not live.any():
        return [*lines, "  Nothing is live at some steps only"]
    peak = int(live.argmax())
    lines += [
        f"  Maximum live bytes (including always-live): {always + int(live[peak]):,}",
        f"  Maximum not-always-live bytes: {int(live[peak]):,} at {step_title(compilation.step_programs, peak)}",
        "  Not-always-live variables at that step:",
    ]
    lines += variable_list(variables, sizes, variables.living(peak))
    return [*lines, "  Not-always-live bytes by program step:", *liveness(compilation, live)]


def always_live_bytes(compilation: Compilation) -> int:
    """Bytes on all tiles whose memory is never used for anything else."""
    memory, variables = compilation.memory, compilation.loweredVariables
    return int(memory.always_live.sum()) if len(memory.always_live) else int(variables.total_bytes()[variables.always].sum())


def variable_list(variables: LoweredVariables, sizes: Int64s, numbers: Int64s) -> list[str]:
    """Variables with their bytes on all tiles, the largest first; those beyond `VARIABLES` in one line."""
    if not len(numbers):
        return ["    (none)"]
    order = numbers[np.argsort(-sizes[numbers], kind="stable")]
    shown, rest = order[:VARIABLES].tolist(), order[VARIABLES:]
    rows: list[Line] = [(shown_name(variables.names[number]), size(int(sizes[number]))) for number in shown]
    if len(rest):
        rows.append((f"({len(rest):,} smaller ones)", size(int(sizes[rest].sum()))))
    places = [short_place(variables.made_at[number]) if variables.made_at else "" for number in shown]
    return [f"{line}  {place}".rstrip() for line, place in zip_longest(columns(rows, 4), places, fillvalue="")]


def liveness(compilation: Compilation, live: Int64s) -> list[str]:
    """A line for each step of the programs, or for neighbours with as many live bytes."""
    numbers = np.array(compilation.program_steps, np.int64)
    if not len(numbers):
        return ["    (none)"]  # only the host's own reading and writing has steps
    sizes = live[numbers]
    parts = np.flatnonzero((sizes[1:] != sizes[:-1]) | (numbers[1:] != numbers[:-1] + 1)) + 1
    rows = []
    for part in np.split(numbers, parts):
        first, last = int(part[0]), int(part[-1])
        title = step_title(compilation.step_programs, first) if first == last else f"steps {first:,} to {last:,}"
        rows.append((f"{title}:", f"{int(live[first]):,}"))
    return labelled(rows, 4)


def step_title(steps: tuple[Program, ...], number: int) -> str:
    """What the summary calls a step: its number, type and name."""
    return f"step {number:,} ({steps[number].type} {shown_name(steps[number].name)})"
