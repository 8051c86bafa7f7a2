"""Collects the moves of an executable, and folds regular rows of pieces into single records."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from attrs import define, evolve, field, fields_dict, frozen

from pypoplar.arrays.dtypes import Int64s, Integers, UInt32s
from pypoplar.arrays.freed_memory import give_back
from pypoplar.arrays.groups import offsets, ragged, sorting_order, whole_groups
from pypoplar.arrays.swept import shortened
from pypoplar.compiler.exchange_plan import Pieces
from pypoplar.compiler.flattening.move_sweeps import NO_LIST, OF_SOURCES, OF_TARGETS, SHORTEST_LIST, fold_rows, list_singles
from pypoplar.compiler.flattening.places import Places, TilePlaces
from pypoplar.executable.move_lists import LISTED_BYTES, Moves
from pypoplar.interface.header_slots import HOST
from pypoplar.interface.layout import NOTHING

IPU_SPAN = 1 << 48  # no IPU's memory is as large: places of different IPUs are different numbers
FOLDED_AT_ONCE = 1 << 16  # pieces
LOOKED_AT = 1 << 12  # pieces of a long move with the host: by them its order is chosen
MOST = np.iinfo(np.int32).max  # of a number in a column of 32 bits
FAN_OUT_PIECE = 64  # blocks whose mean piece is larger than this are as quickly fetched from where they live


@frozen(eq=False)
class Records:
    """Pieces to move, in columns; see `Moves`. `places` are the units that the lists of these records name."""

    source: Int64s
    target: Int64s
    bytes: Int64s
    count: Int64s
    source_step: Int64s
    target_step: Int64s
    source_list: Int64s
    target_list: Int64s
    tile: Int64s
    places: UInt32s

    def turned(self) -> Records:
        """Records that take the pieces back. They share the memory of these."""
        return evolve(
            self,
            source=self.target,
            target=self.source,
            source_step=self.target_step,
            target_step=self.source_step,
            source_list=self.target_list,
            target_list=self.source_list,
        )


def fold(source: Int64s, target: Int64s, bytes: Int64s, tile: Int64s) -> Records:
    """Records for pieces in the order given.

    Three or more pieces that follow each other in equal steps become one record; small pieces that are irregular on one side
    only become a record with a list of places.

    >>> fold(np.arange(0, 40, 8), np.arange(0, 20, 4), np.full(5, 4), np.zeros(5, int)).count
    array([5])
    """
    found = _swept_rows(source, target, bytes, tile)
    return fold_by_rows(source, target, bytes, tile) if found is None else _recorded(source, target, bytes, tile, *found)


def _swept_rows(source: Int64s, target: Int64s, bytes: Int64s, tile: Int64s) -> tuple[Int64s, Int64s, Int64s] | None:
    """First piece, number of pieces and kind of list of each record; None where this is done without sweeps."""
    fold, join = fold_rows.code(len(source)), list_singles.code(len(source))
    if fold is None or join is None:
        return None
    first, count = np.empty(len(source), np.int64), np.empty(len(source), np.int64)
    rows = fold(source, target, bytes, tile, first, count)
    kind = np.full(rows, NO_LIST)
    rows = join(source, target, bytes, tile, LISTED_BYTES, OF_SOURCES, rows, first, count, kind)
    rows = join(target, source, bytes, tile, LISTED_BYTES, OF_TARGETS, rows, first, count, kind)
    return shortened(first, rows), shortened(count, rows), shortened(kind, rows)


def _recorded(source: Int64s, target: Int64s, bytes: Int64s, tile: Int64s, first: Int64s, count: Int64s, kind: Int64s) -> Records:
    """The records that a sweep found: of `count` pieces each, from `first` on."""
    following = np.minimum(first + 1, len(source) - 1)
    stepped = (kind == NO_LIST) & (count > 1)
    size = bytes[first]
    places = [np.zeros(0, np.int64)]

    def side(ends: Int64s, own: int, other: int) -> tuple[Int64s, Int64s, Int64s]:
        """Where the records begin on a side, their steps, and their lists."""
        begin, listed = ends[first], np.full(len(first), NOTHING)
        step = np.where(stepped, ends[following] - begin, np.where(kind == other, size, 0))
        named = np.flatnonzero(kind == own)
        pieces = ragged(first[named], count[named])
        listed[named] = sum(map(len, places)) + offsets(count[named])[:-1]
        places.append(ends[pieces] // bytes[pieces])
        begin[named] = 0
        return begin, step, listed

    from_, source_step, source_list = side(source, OF_SOURCES, OF_TARGETS)
    to, target_step, target_list = side(target, OF_TARGETS, OF_SOURCES)
    return Records(
        source=from_,
        target=to,
        bytes=size,
        count=count,
        source_step=source_step,
        target_step=target_step,
        source_list=source_list,
        target_list=target_list,
        tile=tile[first],
        places=np.concatenate(places).astype(np.uint32),
    )


def _narrow(records: Records) -> Records:
    """The same in 32 bits where these are enough: of millions of records, nine columns wait for the end."""

    def narrow(column: Int64s) -> Int64s:
        fits = len(column) == 0 or (int(column.min()) >= -(1 << 31) and int(column.max()) < 1 << 31)
        return column.astype(np.int32) if fits else column

    narrowed: dict[str, Any] = {name: narrow(getattr(records, name)) for name in fields_dict(Records) if name != "places"}
    return evolve(records, **narrowed)


def fold_by_rows(source: Int64s, target: Int64s, bytes: Int64s, tile: Int64s) -> Records:
    """The same without a sweep."""
    first, count = _regular_rows(source, target, bytes, tile)
    many = count > 1
    following = np.minimum(first + 1, len(source) - 1)
    none = np.full(len(first), NOTHING)
    regular = Records(
        source=source[first],
        target=target[first],
        bytes=bytes[first],
        count=count,
        source_step=np.where(many, source[following] - source[first], 0),
        target_step=np.where(many, target[following] - target[first], 0),
        source_list=none,
        target_list=none,
        tile=tile[first],
        places=np.zeros(0, np.uint32),
    )
    return _listed(_listed(regular, sources=True), sources=False)


def _regular_rows(source: Int64s, target: Int64s, bytes: Int64s, tile: Int64s) -> tuple[Int64s, Int64s]:
    """First piece and number of pieces of each record: rows of equal steps, and what is left one by one."""
    size = len(source)
    if size < 3:
        return np.arange(size), np.ones(size, np.int64)
    source_step, target_step = np.diff(source), np.diff(target)
    alike = (bytes[1:] == bytes[:-1]) & (tile[1:] == tile[:-1])
    continues = alike[1:] & alike[:-1] & (source_step[1:] == source_step[:-1]) & (target_step[1:] == target_step[:-1])
    # A row is a maximal run of equal steps; neighbouring rows share a piece, which the earlier of two folded rows takes.
    start = np.flatnonzero(np.concatenate(([True], ~continues)))
    steps = np.diff(np.append(start, size - 1))
    folded = (steps >= 2) & alike[start]
    taken = np.zeros(len(start), np.int64)
    taken[1:] = folded[:-1]
    row_first = (start + taken)[folded]
    row_count = (steps + 1 - taken)[folded]
    change = np.zeros(size + 1, np.int64)
    np.add.at(change, row_first, 1)
    np.add.at(change, row_first + row_count, -1)
    leads = np.cumsum(change[:-1]) == 0
    leads[row_first] = True
    count = np.ones(size, np.int64)
    count[row_first] = row_count
    first = np.flatnonzero(leads)
    return first, count[first]


def _listed(records: Records, *, sources: bool) -> Records:
    """Join single small pieces that are contiguous on one side into records with a list of places for the other side."""
    irregular, dense = (records.source, records.target) if sources else (records.target, records.source)
    single = (records.count == 1) & (records.source_list == NOTHING) & (records.bytes <= LISTED_BYTES)
    unit = np.where(single, records.bytes, 1)
    single &= (irregular % unit == 0) & (irregular // unit < 1 << 32) & (unit != 3)
    if np.count_nonzero(single) < SHORTEST_LIST:
        return records
    joins = single[1:] & single[:-1] & (records.bytes[1:] == records.bytes[:-1]) & (records.tile[1:] == records.tile[:-1])
    joins &= dense[1:] - dense[:-1] == records.bytes[1:]
    first = np.flatnonzero(np.concatenate(([True], ~joins)))
    length = np.diff(np.append(first, len(single)))
    short = np.repeat(length < SHORTEST_LIST, length)
    keep = np.flatnonzero(np.concatenate(([True], ~joins)) | short)
    count = records.count.copy()
    long = length >= SHORTEST_LIST
    count[first[long]] = length[long]
    member = np.flatnonzero(~short)
    list_start = np.full(len(single), NOTHING)
    list_start[first[long]] = len(records.places) + offsets(length[long])[:-1]
    places = (irregular[member] // records.bytes[member]).astype(np.uint32)
    dense_step = np.where(list_start != NOTHING, records.bytes, 0)
    zero = np.zeros(len(single), np.int64)
    return Records(
        source=np.where((list_start != NOTHING) & sources, 0, records.source)[keep],
        target=np.where((list_start != NOTHING) & (not sources), 0, records.target)[keep],
        bytes=records.bytes[keep],
        count=count[keep],
        source_step=(records.source_step + (zero if sources else dense_step))[keep],
        target_step=(records.target_step + (dense_step if sources else zero))[keep],
        source_list=(list_start if sources else records.source_list)[keep],
        target_list=(records.target_list if sources else list_start)[keep],
        tile=records.tile[keep],
        places=np.concatenate((records.places, places)),
    )


@frozen(eq=False)
class FanOut:
    """Pieces of an exchange, split: what has to be fetched, and blocks that another tile has just received in the same form."""

    fetched: Int64s  # positions of pieces
    received: Int64s  # of each block, the position of the first piece of the equal one that is received first
    copied: Int64s  # of each block, the position of its own first piece
    bytes: Int64s  # of each block


def fan_out(source: Int64s, target: Int64s, bytes: Int64s, tile: Int64s) -> FanOut | None:
    """Find blocks of many small pieces that several tiles receive alike: the host copies them from the first receiver.

    A block is a maximal row of pieces whose targets are contiguous. `source` tells apart places of all IPUs. None if there is
    nothing to gain. What a tile receives, and the account of it, are the same either way.
    """
    if len(source) < SHORTEST_LIST:
        return None
    opens = np.concatenate(([True], (tile[1:] != tile[:-1]) | (target[1:] != target[:-1] + bytes[:-1])))
    start = np.flatnonzero(opens)
    length = np.diff(np.append(start, len(source)))
    block = _recurring(source[start], length)
    start, length = start[block], length[block]
    piece = ragged(start, length)
    equal = _equal_blocks(source[piece], bytes[piece], length)
    if equal is None:
        return None
    leader, whole = equal
    copied = leader != np.arange(len(start))
    left = np.ones(len(source), bool)
    left[piece[np.repeat(copied, length)]] = False
    return FanOut(np.flatnonzero(left), start[leader[copied]], start[copied], whole[copied])


def _recurring(source: Int64s, length: Int64s) -> Int64s:
    """The blocks that are long enough, of which another one as long begins at the same source: no others are alike."""
    long = np.flatnonzero(length >= SHORTEST_LIST)
    order = long[np.lexsort((length[long], source[long]))]
    again = (source[order][1:] == source[order][:-1]) & (length[order][1:] == length[order][:-1])
    twins = np.zeros(len(length), bool)
    twins[order[1:][again]] = twins[order[:-1][again]] = True
    return np.flatnonzero(twins)


def _equal_blocks(source: Int64s, bytes: Int64s, length: Int64s) -> tuple[Int64s, Int64s] | None:
    """For each block of pieces the first equal one, itself where it is too large to gain; and its bytes. None if none is equal."""
    if len(length) == 0:
        return None
    start = offsets(length)[:-1]
    block = np.repeat(np.arange(len(start)), length)
    inside = (np.arange(len(source)) - start[block]).astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = source.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ bytes.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * (inside * np.uint64(2) + np.uint64(0x165667B19E3779F9))
        key = np.add.reduceat(mixed, start) ^ length.astype(np.uint64)
    whole = np.add.reduceat(bytes, start)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    leader = first[group]
    # Equal keys are a good guess only: every piece is compared with the leader's.
    same_length = length[leader] == length
    twin = np.where(same_length[block], start[leader[block]] + inside.astype(np.int64), 0)
    equal = (source[twin] == source) & (bytes[twin] == bytes) & same_length[block]
    copied = np.logical_and.reduceat(equal, start) & (whole <= length * FAN_OUT_PIECE)
    copied &= leader != np.arange(len(start))
    return (np.where(copied, leader, np.arange(len(start))), whole) if copied.any() else None


@frozen(eq=False)
class _Listed:
    """What one move moves between a pair of IPUs, piece by piece."""

    source: Int64s
    target: Int64s
    bytes: Int64s
    tile: Int64s


@define(eq=False)
class MoveLists:
    """The moves of an executable while it is made. A move is named by its number.

    Lists are folded many at a time: a program of many small copies has as many small lists.
    """

    _pairs: list[tuple[int, int]] = field(factory=list)  # of each list: source and target IPU
    _first_list: list[int] = field(factory=lambda: [0])
    _lengths: list[int] = field(factory=list)  # of the folded lists: records
    _folded: list[Records] = field(factory=list)
    _waiting: list[_Listed] = field(factory=list)
    _waiting_pieces: int = 0
    _apart: dict[int, tuple[int, int]] = field(factory=dict)  # long moves with the host: their parts of `_folded`

    def add(self, source: Places, target: Places, bytes: Int64s, tile: Int64s) -> int:
        """Add a move: a list for each pair of IPUs, sorted by the tile whose thread moves the piece.

        Order within a tile is kept, as far as the pieces are of one pair.
        """
        order = sorting_order(tile)
        if len(bytes) > FOLDED_AT_ONCE:
            self._fold()  # a long list by itself, which is not copied behind short ones
        if order is not None and len(bytes) > FOLDED_AT_ONCE and (pair := _only_pair(source.ipu, target.ipu)) is not None:
            self._pairs.append(pair)
            self._fold_in_order(_Listed(source.offset, target.offset, bytes, tile), order)
        else:
            if order is not None:
                source, target, bytes, tile = source[order], target[order], bytes[order], tile[order]
            for pair, which in _by_pair(source.ipu, target.ipu):
                self._pairs.append(pair)
                self._waiting.append(_Listed(source.offset[which], target.offset[which], bytes[which], tile[which]))
            self._waiting_pieces += len(bytes)
            if self._waiting_pieces > FOLDED_AT_ONCE:
                self._fold()
        return self._ended()

    def add_host(self, host: Places, device: Places, bytes: Int64s, tile: Int64s, *, inward: bool) -> int:
        """Add a move between an array of the host and tiles: in the array's order, or a long one in that of the tiles' memories.

        That of the tiles is taken where fewer records say the same, as of weights, whose innermost dimension on the host is the
        outermost on tiles.
        """
        source, target = (host, device) if inward else (device, host)
        pair = _only_pair(source.ipu, target.ipu) if len(bytes) > FOLDED_AT_ONCE else None
        if pair is None:
            return self.add(source, target, bytes, tile)
        self._fold()
        listed, order = _Listed(source.offset, target.offset, bytes, tile), sorting_order(tile)
        first = len(self._folded)
        self._pairs.append(pair)
        self._fold_in_order(listed, order, device.offset if _shorter_by_place(listed, order, device.offset) else None)
        move = self._ended()
        self._apart[move] = first, len(self._folded)
        return move

    def add_back(self, move: int) -> int | None:
        """Add a move that takes back all that a long one with the host brings; None where that was a short one."""
        if move not in self._apart:
            return None
        self._fold()
        (first, last), (entry,) = self._apart[move], range(self._first_list[move], self._first_list[move + 1])
        source, target = self._pairs[entry]
        self._pairs.append((target, source))
        self._folded += [records.turned() for records in self._folded[first:last]]
        self._lengths.append(self._lengths[entry])
        return self._ended()

    def _ended(self) -> int:
        """The number of the move whose lists are all there now."""
        self._first_list.append(len(self._pairs))
        return len(self._first_list) - 2

    def _fold_in_order(self, listed: _Listed, order: Int64s | None, place: Int64s | None = None) -> None:
        """Fold a long list, which is put in order part by part: whole, it would be there twice. Within a tile `place` decides."""
        tile, length = listed.tile if order is None else listed.tile[order], 0
        for part in whole_groups(tile, FOLDED_AT_ONCE):
            some = np.arange(part.start, part.stop) if order is None else order[part]
            if place is not None:
                some = some[np.lexsort((place[some], tile[part]))]
            records = fold(listed.source[some], listed.target[some], listed.bytes[some], tile[part])
            length += len(records.tile)
            self._folded.append(_narrow(records))
        self._lengths.append(length)

    def _fold(self) -> None:
        """Fold the lists that wait, if any do."""
        if not self._waiting:
            return
        source, target, bytes, tile = (
            columns[0] if len(columns) == 1 else np.concatenate(columns)
            for columns in ([getattr(listed, name) for listed in self._waiting] for name in ("source", "target", "bytes", "tile"))
        )
        tiles, owner = int(tile.max()) + 1, tile
        if len(self._waiting) > 1:  # a record is of one tile, so it will be of one list
            owner = tiles * np.repeat(np.arange(len(self._waiting)), [len(listed.tile) for listed in self._waiting]) + tile
        lengths = np.zeros(len(self._waiting), np.int64)
        for part in whole_groups(owner, FOLDED_AT_ONCE):
            records = fold(source[part], target[part], bytes[part], owner[part])
            lengths += np.bincount(records.tile // tiles, minlength=len(lengths))
            self._folded.append(_narrow(evolve(records, tile=records.tile % tiles)))
        self._lengths += lengths.tolist()
        self._waiting.clear()
        self._waiting_pieces = 0

    def add_pieces(self, pieces: Pieces, places: TilePlaces, *, by_source: bool = False) -> int:
        """Add planned pieces, moved by the target tile's thread or by the source tile's; NOTHING if there are none."""
        if len(pieces.bytes) == 0:
            return NOTHING
        tile = pieces.source_tile if by_source else pieces.target_tile
        return self.add(places.sources(pieces), places.targets(pieces), pieces.bytes, tile)

    def add_exchange(self, pieces: Pieces, places: TilePlaces) -> tuple[int, int]:
        """Add what tiles receive before a compute set: what is fetched, and what is copied from a first receiver."""
        if len(pieces.bytes) == 0:
            return NOTHING, NOTHING
        source, target = places.sources(pieces), places.targets(pieces)
        fan = fan_out(source.ipu * IPU_SPAN + source.offset, target.offset, pieces.bytes, pieces.target_tile)
        if fan is None:
            return self.add(source, target, pieces.bytes, pieces.target_tile), NOTHING
        fetched = fan.fetched
        first = self.add(source[fetched], target[fetched], pieces.bytes[fetched], pieces.target_tile[fetched])
        return first, self.add(target[fan.received], target[fan.copied], fan.bytes, pieces.target_tile[fan.copied])

    def finish(self) -> Moves:
        """All tables."""
        self._fold()
        rows, places = sum(self._lengths), offsets([len(records.places) for records in self._folded])
        parts = {name: [getattr(records, name) for records in self._folded] for name in fields_dict(Records)}
        self._folded.clear()

        numbers = chain.from_iterable(listed for name, listed in parts.items() if name != "places")
        dtype: np.dtype[Any] = np.dtype(np.int32 if int(places[-1]) <= MOST and all(map(_is_small, numbers)) else np.int64)

        def column(name: str, shift: Int64s | None = None) -> Integers:
            whole, end = np.empty(rows, dtype), rows
            own = parts.pop(name)
            while own:  # no part is needed in two forms
                part = own.pop()
                begin = end - len(part)
                whole[begin:end] = part if shift is None else np.where(part == NOTHING, NOTHING, part + shift[len(own)])
                end = begin
            give_back(rows)
            return whole

        return Moves(
            first_list=np.array(self._first_list, np.int64),
            source_ipu=np.array([source for source, _ in self._pairs], np.int64),
            target_ipu=np.array([target for _, target in self._pairs], np.int64),
            first=offsets(self._lengths),
            source=column("source"),
            target=column("target"),
            bytes=column("bytes"),
            count=column("count"),
            source_step=column("source_step"),
            target_step=column("target_step"),
            source_list=column("source_list", places),
            target_list=column("target_list", places),
            tile=column("tile"),
            places=np.concatenate([np.zeros(0, np.uint32), *parts.pop("places")]),
        )


def _is_small(column: Int64s) -> bool:
    """Whether all numbers of a column are of 32 bits."""
    return len(column) == 0 or (int(column.min()) >= -MOST and int(column.max()) <= MOST)


@define(eq=False)
class CountedMoves(MoveLists):
    """Moves of which only the number is kept, of programs that are priced and never run."""

    def add(self, source: Places, target: Places, bytes: Int64s, tile: Int64s) -> int:
        """The number of a move of these pieces."""
        return self.add_unseen()

    def add_unseen(self) -> int:
        """The number of a move."""
        self._first_list.append(0)
        return len(self._first_list) - 2

    def add_pieces(self, pieces: Pieces, places: TilePlaces, *, by_source: bool = False) -> int:
        """The number of a move of planned pieces; NOTHING if there are none."""
        return self.add_unseen() if len(pieces.bytes) else NOTHING

    def add_exchange(self, pieces: Pieces, places: TilePlaces) -> tuple[int, int]:
        """The same for what tiles receive before a compute set."""
        return self.add_pieces(pieces, places), NOTHING


def _shorter_by_place(listed: _Listed, order: Int64s | None, place: Int64s) -> bool:
    """Whether pieces are in clearly fewer records if those of a tile are sorted by `place`: some from the middle tell."""
    tile = listed.tile if order is None else listed.tile[order]
    parts = whole_groups(tile, LOOKED_AT)
    part = parts[len(parts) // 2]
    given = np.arange(part.start, part.stop) if order is None else order[part]
    placed = given[np.lexsort((place[given], tile[part]))]
    by_given, by_place = (
        len(fold(listed.source[some], listed.target[some], listed.bytes[some], tile[part]).tile) for some in (given, placed)
    )
    return 2 * by_place < by_given


def _only_pair(source: Int64s, target: Int64s) -> tuple[int, int] | None:
    """Source and target IPU of pieces that all have the same."""
    alike = all(ipu.strides[0] == 0 or bool((ipu == ipu[0]).all()) for ipu in (source, target))
    return (int(source[0]), int(target[0])) if alike else None


def _by_pair(source: Int64s, target: Int64s) -> list[tuple[tuple[int, int], Int64s | slice]]:
    """The pieces in their order, apart by source and target IPU."""
    if len(source) == 0:
        return []
    if (only := _only_pair(source, target)) is not None:
        return [(only, slice(None))]
    key = source * (int(target.max()) - HOST + 1) + target  # HOST is the lowest of all
    order = np.argsort(key, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(key[order])) + 1)
    return [((int(source[group[0]]), int(target[group[0]])), group) for group in groups]
