"""The memory of a device that has just been loaded."""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.dtypes import Bytes, Int64s


@frozen(eq=False)
class Image:
    """What `Engine.load` writes over the uninitialised memory."""

    tile: Int64s  # of each piece
    offset: Int64s  # bytes in the tile's memory
    bytes: Int64s
    data: Bytes  # the pieces end to end
