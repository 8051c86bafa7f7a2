"""The report's picture of tile memory: by tile, by category, by variable and by step of the program. Sizes are bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import distinct, sums_between
from pypoplar.arrays.number_ranges import counted
from pypoplar.report.libpva_hints import missing
from pypoplar.report.tile_vertices import VertexMemory, VerticesByTile

if TYPE_CHECKING:
    from pypoplar.report.program_nodes import Program


def nothing() -> Int64s:
    """An array with no entries: what is not known, or of no tile."""
    return np.zeros(0, np.int64)


@frozen
class Total:
    """A sum as libpva writes it, given by `Execution.totalCycles` and its like.

    Attributes
    ----------
    total:
        The sum.
    """

    total: int


@frozen
class Bytes:
    """A size as libpva writes it, given by `LivenessProgramStep.notAlwaysLiveMemory` and its like.

    Attributes
    ----------
    bytes:
        The size.
    """

    bytes: int


@frozen
class TotalMemory:
    """Bytes of a tile, given by ``tile.memory.total``.

    Attributes
    ----------
    includingGaps:
        From the first in use to the last.
    excludingGaps:
        In use, without what alignment leaves empty.
    """

    includingGaps: int
    excludingGaps: int


# libpva's names of categories where they are not ours in camelCase.
LIBPVA_CATEGORIES = {
    "variable": "variables",
    "constant": "constants",
    "messageBuffer": "exchange_buffers",
    "vertexInstanceState": "vertex_state",
    "vertexCode": "code",
    "edgePointer": "edge_pointers",
}


class Categories(Mapping[str, int]):
    """Bytes by category, as ``category["variables"]``, or as libpva has it ``category.vertexCode.total``."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = dict(sizes)

    def __getitem__(self, name: str) -> int:
        return self._sizes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes)

    def __repr__(self) -> str:
        return repr(self._sizes)

    def __getattr__(self, name: str) -> Total:
        if name.startswith("_"):
            raise AttributeError(name)
        ours = LIBPVA_CATEGORIES.get(name) or "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        if ours not in self._sizes:
            raise AttributeError(f"there is no memory category {name!r}: the categories are {', '.join(self._sizes)}")
        return Total(self._sizes[ours])


@frozen
class TileMemoryReport:
    """One tile's memory, given by `Tile.memory`: ``report.compilation.tiles[3].memory.category["variables"]``.

    Attributes
    ----------
    total:
        Bytes in all.
    category:
        Bytes by category.
    alwaysLiveBytes:
        Bytes of variables whose memory is never used for anything else.
    notAlwaysLiveBytes:
        Bytes of the others, at most, over the steps of the program.
    of_types:
        Its vertices by type; None where the profile does not have them by tile.
    """

    total: TotalMemory
    category: Categories
    alwaysLiveBytes: int = 0
    notAlwaysLiveBytes: int = 0
    of_types: tuple[VertexMemory, ...] | None = None

    @property
    def vertices(self) -> tuple[VertexMemory, ...]:
        """The tile's vertices by type. `AttributeError` where the profile does not have them by tile."""
        if self.of_types is None:
            raise AttributeError("vertices")  # `missing` says why
        return self.of_types

    if not TYPE_CHECKING:
        __getattr__ = missing


@frozen
class Tile:
    """A tile and its memory, given by `Compilation.tiles`.

    Attributes
    ----------
    number:
        Its number among those of all IPUs.
    memory:
        Bytes in all, by category, and by vertex type.
    """

    number: int
    memory: TileMemoryReport


@frozen(eq=False)
class MemoryByTile:
    """The memory of all tiles. A category is a name in snake_case, such as ``"exchange_buffers"``, with one number per tile."""

    categories: Mapping[str, Int64s]  # int64 [tiles] each
    gaps: Int64s  # [tiles]: bytes that alignment leaves empty
    vertex_data: Mapping[str, int] = field(factory=dict)  # by category over all tiles: "internal_vertex_state", "edge_pointers"...
    vertex_data_by_type: Mapping[str, int] = field(factory=dict)  # by vertex type over all tiles
    always_live: Int64s = field(factory=nothing)  # [tiles]
    not_always_live: Int64s = field(factory=nothing)  # [tiles]: at most, over the steps of the program
    vertices: VerticesByTile = field(factory=VerticesByTile)

    def excluding_gaps(self) -> Int64s:
        """Bytes in use on each tile."""
        total: Int64s = np.zeros(len(self.gaps), np.int64)
        for sizes in self.categories.values():
            total = total + sizes
        return total

    def including_gaps(self) -> Int64s:
        """Bytes on each tile from the first in use to the last."""
        total: Int64s = self.excluding_gaps() + self.gaps
        return total


def _place(number: int, count: int, noun: str) -> int:
    """A place in a sequence of so many, counted from its end if it is negative. `IndexError` where there is none."""
    if not -count <= number < count:
        known = f"they go from 0 to {count - 1:,}" if count else "there are none"
        raise IndexError(f"there is no {noun} {number:,}: {known}")
    return int(number) % count


@frozen(eq=False)
class TileMemories(Sequence[Tile]):
    """The tiles of the target, made when asked for."""

    memory: MemoryByTile

    def __len__(self) -> int:
        return len(self.memory.gaps)

    @overload
    def __getitem__(self, number: int) -> Tile: ...
    @overload
    def __getitem__(self, number: slice) -> list[Tile]: ...
    def __getitem__(self, number: int | slice) -> Tile | list[Tile]:
        if isinstance(number, slice):
            return [self[number] for number in range(*number.indices(len(self)))]
        memory, tile = self.memory, _place(number, len(self), "tile")
        category = {name: int(sizes[tile]) for name, sizes in memory.categories.items()}
        used = sum(category.values())
        always, rest = (int(live[tile]) if len(live) else 0 for live in (memory.always_live, memory.not_always_live))
        total = TotalMemory(used + int(memory.gaps[tile]), used)
        known = len(memory.vertices.tile) or not any(memory.vertex_data_by_type.values())
        vertices = memory.vertices.of_tile(tile) if known else None
        return Tile(tile, TileMemoryReport(total, Categories(category), always, rest, vertices))

    def __iter__(self) -> Iterator[Tile]:
        return (self[number] for number in range(len(self)))


@frozen
class Variable:
    """A variable of the graph, on one tile or on all of them, given by `LoweredVariables`.

    Attributes
    ----------
    name:
        Its debug name.
    size:
        Its bytes, on the one tile or on all.
    always_live:
        Whether its memory is never used for anything else.
    begin:
        The first static step at which it lives; -1 where it is always live, or no step uses it.
    end:
        The step after the last at which it lives; -1 likewise.
    made_at:
        The line of the user's code that made it, ``file:line``; empty where none did, or it is not known.
    """

    name: str
    size: int
    always_live: bool
    begin: int = -1
    end: int = -1
    made_at: str = ""


@frozen
class PlacedVariable:
    """A variable in the memory of a tile, given by `LoweredVariables.byAddress`.

    Attributes
    ----------
    variable:
        The variable, with its bytes on the tile.
    begin:
        The address of its first byte.
    end:
        The address behind its last byte: further than its bytes where elements of less than a word lie there in several pieces, as
        each of these begins with a word. What lies between the end of one and the beginning of the next is alignment, or the plain
        fields of vertices, which lie behind the variables and before the exchange buffers.
    shares:
        How many others lie on some of these addresses, at other times.
    """

    variable: Variable
    begin: int
    end: int
    shares: int


@frozen(eq=False, repr=False)
class LoweredVariables(Sequence[Variable]):
    """The variables, when they live and where they lie, given by `Compilation.loweredVariables`: a sequence of `Variable`.

    A variable that is not always live has lives: ranges of static steps, one for each program or function that uses it. Those
    of variable v are rows `first_life[v]` to `first_life[v + 1]` of `life_begin` and `life_end`. Rows `first[v]` to `first[v +
    1]` of `tile` and `bytes` are what it takes on its tiles.

    Attributes
    ----------
    names:
        Debug names.
    always:
        [variables] Whether each is always live.
    first_life:
        [variables + 1] The first row of each variable's lives.
    life_begin:
        [lives] The first static step.
    life_end:
        [lives] The step after the last.
    first:
        [variables + 1] The first row of each variable's tiles.
    tile:
        [rows] The number of a tile.
    bytes:
        [rows] What the variable takes there.
    made_at:
        Lines of the user's code that made them, ``file:line`` or empty; no entries where they are not known.
    offset:
        [rows] The address in the tile's memory at which the variable begins there; no entries where they are not known.
    span:
        [rows] How many bytes it is from there to its end, with what alignment leaves empty between its pieces; no entries where
        they are not known.
    """

    names: tuple[str, ...] = ()
    always: Bools = field(factory=lambda: np.zeros(0, bool))
    first_life: Int64s = field(factory=lambda: np.zeros(1, np.int64))
    life_begin: Int64s = field(factory=nothing)
    life_end: Int64s = field(factory=nothing)
    first: Int64s = field(factory=lambda: np.zeros(1, np.int64))
    tile: Int64s = field(factory=nothing)
    bytes: Int64s = field(factory=nothing)
    made_at: tuple[str, ...] = ()
    offset: Int64s = field(factory=nothing)
    span: Int64s = field(factory=nothing)

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, number: int) -> Variable: ...
    @overload
    def __getitem__(self, number: slice) -> list[Variable]: ...
    def __getitem__(self, number: int | slice) -> Variable | list[Variable]:
        if isinstance(number, slice):
            return [self[number] for number in range(*number.indices(len(self)))]
        return self._variable(_place(number, len(self), "variable"), None)

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'variable')}>"

    def _variable(self, number: int, size: int | None) -> Variable:
        if size is None:
            size = int(self.bytes[self.first[number] : self.first[number + 1]].sum())
        lives = slice(int(self.first_life[number]), int(self.first_life[number + 1]))
        begin, end = (int(self.life_begin[lives].min()), int(self.life_end[lives].max())) if lives.start < lives.stop else (-1, -1)
        made_at = self.made_at[number] if self.made_at else ""
        return Variable(self.names[number], size, bool(self.always[number]), begin, end, made_at)

    @property
    def allBriefVars(self) -> tuple[Variable, ...]:
        """All variables with their bytes on all tiles together."""
        return tuple(self)

    def total_bytes(self) -> Int64s:
        """The bytes of each variable on all tiles together, int64 [variables]."""
        return sums_between(self.first, self.bytes)

    def owner(self) -> Int64s:
        """The variable of each row of `tile` and `bytes`, int64 [rows]."""
        owners: Int64s = np.repeat(np.arange(len(self.names)), np.diff(self.first))
        return owners

    def life_owner(self) -> Int64s:
        """The variable of each life, int64 [lives], as an index of `names`."""
        owners: Int64s = np.repeat(np.arange(len(self.names)), np.diff(self.first_life))
        return owners

    def living(self, step: int) -> Int64s:
        """The variables that live at a static step and not always.

        Parameters
        ----------
        step:
            The number of the step.

        Returns
        -------
        Int64s
            Their indices, ascending.
        """
        living_rows = (self.life_begin <= step) & (step < self.life_end)
        living: Int64s = distinct(self.life_owner()[living_rows])
        return living

    def forTile(self, tile: int) -> tuple[Variable, ...]:
        """The variables that have elements on a tile.

        Parameters
        ----------
        tile:
            Its number among those of all IPUs.

        Returns
        -------
        tuple[Variable, ...]
            With their bytes there.
        """
        rows = np.flatnonzero(self.tile == tile)
        owner = self.owner()[rows]
        return tuple(self._variable(int(variable), int(size)) for variable, size in zip(owner, self.bytes[rows], strict=True))

    def byAddress(self, tile: int) -> tuple[PlacedVariable, ...]:
        """What lies where in a tile's memory, as far as the report says.

        Parameters
        ----------
        tile:
            Its number among those of all IPUs.

        Returns
        -------
        tuple[PlacedVariable, ...]
            In the order of their addresses; none where addresses are not known, as in older profiles.
        """
        if not len(self.offset):
            return ()
        rows = np.flatnonzero((self.tile == tile) & (self.bytes > 0))
        rows = rows[np.argsort(self.offset[rows], kind="stable")]
        begin, end, owner = self.offset[rows], self.offset[rows] + self.span[rows], self.owner()[rows]
        ended = np.searchsorted(np.sort(end), begin, "right")  # others that end before it begins
        shares = np.searchsorted(begin, end) - ended - 1  # of those that begin before its end
        columns = (values.tolist() for values in (owner, self.bytes[rows], begin, end, shares))
        return tuple(
            PlacedVariable(self._variable(variable, size), first, last, shared)
            for variable, size, first, last, shared in zip(*columns, strict=True)
        )


@frozen(eq=False)
class LivenessProgramStep:
    """A static step with what lives at it besides what is always live, given by `Compilation.livenessProgramSteps`.

    Attributes
    ----------
    program:
        Its node of the program tree.
    notAlwaysLiveMemory:
        Bytes of the variables that live then and not always, on all tiles together.
    variables:
        All variables.
    number:
        That of the static step.
    """

    program: Program
    notAlwaysLiveMemory: Bytes
    variables: LoweredVariables = field(repr=False)
    number: int

    @property
    def notAlwaysLiveVariables(self) -> tuple[Variable, ...]:
        """The variables that live at this step and not always, with their bytes on all tiles."""
        return tuple(self.variables[int(number)] for number in self.variables.living(self.number))

    def notAlwaysLiveMemoryForTile(self, tile: int) -> Bytes:
        """What lives on one tile at this step besides what is always live.

        Parameters
        ----------
        tile:
            Its number among those of all IPUs.

        Returns
        -------
        Bytes
            ``.bytes`` of the variables there.
        """
        variables = self.variables
        living = np.zeros(len(variables), bool)
        living[variables.living(self.number)] = True
        rows = (variables.tile == tile) & living[variables.owner()]
        return Bytes(int(variables.bytes[rows].sum()))


def live_bytes(variables: LoweredVariables, steps: int) -> Int64s:
    """int64 [steps]: bytes, on all tiles together, of the variables that live at each static step and not always."""
    sizes = variables.total_bytes()[variables.life_owner()]
    change = np.zeros(steps + 1, np.int64)
    np.add.at(change, variables.life_begin, sizes)
    np.subtract.at(change, variables.life_end, sizes)
    summed: Int64s = np.cumsum(change)[:steps]
    return summed


def category_label(name: str) -> str:
    """A category's name in words: "exchange_buffers" is "Exchange buffers"."""
    return name.replace("_", " ").capitalize()
