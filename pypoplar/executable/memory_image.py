"""The memory of a device that has just been loaded."""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.dtypes import Bytes, Int64s


@frozen(eq=False)
class Image:
    """What `Engine.load` writes over the uninitialised memory, piece after piece: of what overlaps, the last holds."""

    tile: Int64s  # [pieces]
    offset: Int64s  # [pieces]: bytes in the tile's memory
    bytes: Int64s  # [pieces]
    data: Bytes  # [bytes of all pieces]: the pieces end to end
