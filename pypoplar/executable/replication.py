"""What an executable says of its replicas: it has one program and one set of tables for all of them."""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.dtypes import Int64s

LEFT_OUT = "left out of files where it is None"
"""In the metadata of a field: executables of one replica have the files that they had before there were others."""


@frozen(eq=False)
class Replication:
    """An executable's replicas, which have all in common but these things."""

    factor: int  # how many there are, at least 2; the executable's target is that of one
    index: Int64s  # [places, 2]: tile and offset of each UNSIGNED_INT that holds the replica's number
    broadcast: tuple[int, ...]  # streams to the device that bring all replicas the same chunks
    parted: tuple[str, ...]  # host writes that have values for each replica
    branches: tuple[tuple[int, str], ...]  # rows that decide what runs next, and what messages call them
