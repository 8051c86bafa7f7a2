"""Hypothesis strategies for users' tests: views, tile mappings and small graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pypoplar.testing.random_graphs import Compute, Move, RepeatedSteps, Share, SmallGraph
from pypoplar.testing.view_chains import View

Draw = st.DrawFn
Step = tuple[str, tuple[Any, ...]]
LARGEST = 4096

floats = st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, -0.0, 1e30, -1e30, 1e-40, float("inf"), float("nan")])
"""Float32 values with the awkward ones among them."""


@st.composite
def shapes(draw: Draw, rank: int = 3, size: int = 5) -> tuple[int, ...]:
    """Shapes of up to `rank` dimensions of 1 to `size` elements."""
    return tuple(draw(st.lists(st.integers(1, size), max_size=rank)))


@st.composite
def views(draw: Draw, shape: Sequence[int], steps: int = 5, aliases: bool = True, empty: bool = False) -> View:
    """Chains of up to `steps` views of a tensor of this shape.

    With `aliases` a view may hold an element twice; without, it can be written. With `empty` it may have no elements.
    """
    array = np.zeros(tuple(shape), np.int8)
    chain: list[Step] = []
    for _ in range(draw(st.integers(0, steps))):
        step = draw(_view_step(array.shape, aliases, empty))
        taken = View((step,)).of_array(array)
        if taken.size <= LARGEST:
            chain.append(step)
            array = taken
    return View(tuple(chain))


def _view_step(shape: tuple[int, ...], aliases: bool, empty: bool) -> st.SearchStrategy[Step]:
    """A step that fits a tensor of this shape."""
    rank = len(shape)
    choices: list[st.SearchStrategy[Step]] = [
        st.just(("flatten", ())),
        _regrouped(prod(shape)).map(lambda new: ("reshape", (new,))),
        st.lists(st.integers(0, rank), max_size=2).map(lambda places: ("expand", (places,))),
    ]
    if rank:
        dimension = st.integers(0, rank - 1)
        choices += [
            dimension.flatmap(lambda d: _range(shape[d], empty).map(lambda part: ("slice", (*part, d)))),
            st.permutations(range(rank)).map(lambda order: ("dimShuffle", (list(order),))),
            st.tuples(dimension, dimension).map(lambda pair: ("dimRoll", pair)),
            dimension.map(lambda d: ("reverse", (d,))),
            st.tuples(st.integers(1, 3), dimension).map(lambda pair: ("subSample", pair)),
            _range(rank, False).flatmap(
                lambda part: _regrouped(prod(shape[part[0] : part[1]])).map(lambda new: ("reshapePartial", (*part, new)))
            ),
        ]
        if shape[0]:
            choices.append(_subscripts(shape[0]).map(lambda index: ("getitem", (index,))))
        if aliases:
            choices += [
                st.tuples(st.integers(1, 3), dimension).map(lambda pair: ("broadcast", pair)),
                st.tuples(st.integers(1, 3), dimension).map(lambda pair: ("upsample", pair)),
                dimension.flatmap(lambda d: _range(shape[d], True).map(lambda part: ("twice", (*part, d)))),
            ]
    if rank == 2:
        choices.append(st.just(("transpose", ())))
    if 1 in shape:
        single = [place for place, size in enumerate(shape) if size == 1]
        choices.append(st.lists(st.sampled_from(single), unique=True).map(lambda places: ("squeeze", (places,))))
    return st.one_of(choices)


def _range(size: int, empty: bool) -> st.SearchStrategy[tuple[int, int]]:
    """``begin, end`` of a part of `size` things, of at least one unless `empty`."""
    if empty or size == 0:
        return st.tuples(st.integers(0, size), st.integers(0, size)).map(lambda pair: (min(pair), max(pair)))
    return st.integers(0, size - 1).flatmap(lambda begin: st.tuples(st.just(begin), st.integers(begin + 1, size)))


def _subscripts(size: int) -> st.SearchStrategy[Any]:
    """Indices and slices as Python writes them, from either end."""
    part = _range(size, False).map(lambda pair: slice(*pair))
    from_end = st.integers(-size, -1).map(lambda begin: slice(begin, None))
    return st.integers(-size, size - 1) | part | from_end


@st.composite
def _regrouped(draw: Draw, count: int) -> list[int]:
    """A shape of `count` elements."""
    if count == 0:
        return [0]
    shape = []
    rest = count
    for _ in range(draw(st.integers(0, 2))):
        factor = draw(st.sampled_from([divisor for divisor in range(1, rest + 1) if rest % divisor == 0]))
        shape.append(factor)
        rest //= factor
    shape.append(rest)
    return draw(st.permutations(shape))


@st.composite
def cuts(draw: Draw, size: int, most: int = 6) -> tuple[int, ...]:
    """Where to divide `size` elements into at most `most` non-empty parts: ``0 < ... < size``."""
    inner = draw(st.lists(st.integers(1, max(size - 1, 1)), unique=True, max_size=most - 1)) if size > 1 else []
    return (0, *sorted(inner), size)


@st.composite
def mappings(draw: Draw, size: int, tiles: int, pieces: int = 6) -> list[list[tuple[int, int]]]:
    """Complete tile mappings of `size` elements: for each tile the intervals that it holds."""
    mapping: list[list[tuple[int, int]]] = [[] for _ in range(tiles)]
    if size:
        bounds = draw(cuts(size, pieces))
        for begin, end in pairwise(bounds):
            mapping[draw(st.integers(0, tiles - 1))].append((begin, end))
    return mapping


@st.composite
def small_graphs(draw: Draw, tiles: int = 16, size: int = 12, steps: int = 5) -> SmallGraph:
    """Programs of up to `steps` steps on a few variables of up to `size` elements, on a machine of `tiles` tiles."""
    length = draw(st.integers(1, size))
    singles = [f"f{number}" for number in range(draw(st.integers(2, 3)))]
    wholes = [f"i{number}" for number in range(2)]
    values: dict[str, Any] = {name: np.array(draw(_lists(floats, length)), np.float32) for name in singles}
    numbers = st.integers(-(2**31), 2**31 - 1)
    values.update({name: np.array(draw(_lists(numbers, length)), np.int32) for name in wholes})
    mapping = {name: draw(mappings(length, tiles)) for name in values}
    drawn = [draw(_step(singles, wholes, length, tiles, 2)) for _ in range(draw(st.integers(1, steps)))]
    return SmallGraph(values, mapping, tuple(drawn))


def _lists(values: st.SearchStrategy[Any], length: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, min_size=length, max_size=length)


@st.composite
def _step(draw: Draw, singles: list[str], wholes: list[str], length: int, tiles: int, depth: int) -> Compute | Move | RepeatedSteps:
    kinds: list[Callable[[], Compute | Move | RepeatedSteps]] = [
        lambda: draw(_compute(singles, wholes, length, tiles)),
        lambda: draw(_move(draw(st.sampled_from([singles, wholes])), length)),
    ]
    if depth:
        body = st.lists(_step(singles, wholes, length, tiles, depth - 1), min_size=1, max_size=2)
        kinds.append(lambda: RepeatedSteps(draw(st.integers(0, 3)), tuple(draw(body))))
    return draw(st.sampled_from(kinds))()


@st.composite
def _compute(draw: Draw, singles: list[str], wholes: list[str], length: int, tiles: int) -> Compute:
    kind = draw(st.sampled_from(["Scale", "Add", "Shift", "Reverse", "Rectify", "SumRows"]))
    bounds = draw(cuts(length))
    share = Share(bounds, tuple(draw(_lists(st.integers(0, tiles - 1), len(bounds) - 1))))
    source, target = draw(st.permutations(wholes if kind in ("Shift", "Reverse") else singles))[:2]
    if kind == "Scale":
        factor = draw(st.floats(-4, 4, width=32))
        return Compute(kind, (("source", source), ("target", target)), share, (("factor", factor),))
    if kind == "Add":
        right = draw(st.sampled_from([name for name in singles if name != target]))
        return Compute(kind, (("left", source), ("right", right), ("target", target)), share)
    if kind == "Shift":
        return Compute(kind, (("value", source),), share, (("by", draw(st.integers(-(2**31), 2**31 - 1))),))
    if kind == "SumRows":
        return Compute(kind, (("rows", source), ("target", target)), share, rows=draw(st.integers(1, 3)))
    return Compute(kind, (("source", source), ("target", target)), share)


@st.composite
def _move(draw: Draw, names: list[str], length: int) -> Move:
    source, target = draw(st.permutations(names))[:2]
    count = draw(st.integers(1, length))

    def part() -> View:
        begin = draw(st.integers(0, length - count))
        turned: tuple[Step, ...] = (("reverse", (0,)),) if draw(st.booleans()) else ()
        return View((("slice", (begin, begin + count, 0)), *turned))

    return Move(source, target, part(), part())
