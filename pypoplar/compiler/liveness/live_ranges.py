"""The lives of variables as an executable has them: in static steps, with what the variables take on each tile."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.compiler.exchange_plan import Homes
from pypoplar.compiler.liveness.liveness import Liveness
from pypoplar.executable.variable_lives import Lives


def make_lives(liveness: Liveness, marks: Int64s, homes: Homes) -> Lives:
    """`marks` has the first step of every position; see `FlattenedPrograms`."""
    first_step, last_step = marks[liveness.begin], marks[liveness.end]  # what ends at a position does so before its first step
    variable = np.repeat(np.arange(len(liveness.always)), np.diff(liveness.first))
    order = np.lexsort((first_step, variable))  # functions are not walked in the order in which they are flattened
    return Lives(liveness.always, liveness.first, first_step[order], last_step[order], *bytes_by_tile(homes, len(liveness.always)))


def bytes_by_tile(homes: Homes, variables: int) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s]:
    """Rows of each variable, int64 [variables + 1], their tiles, its bytes there, where it begins, and how far it goes."""
    tiles = len(homes.tile_bytes)
    pair, place = np.unique(homes.variable * tiles + homes.tile, return_inverse=True)
    bytes = (homes.end - homes.begin) * homes.width
    size = np.bincount(place, bytes, len(pair)).astype(np.int64)
    offset = np.full(len(pair), np.iinfo(np.int64).max)
    np.minimum.at(offset, place, homes.offset)
    reach = np.zeros(len(pair), np.int64)
    np.maximum.at(reach, place, homes.offset + bytes)
    first = np.searchsorted(pair, np.arange(variables + 1) * tiles)
    return first, pair % tiles, size, offset, reach - offset
