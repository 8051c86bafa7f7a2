"""Sweeps over what is sent: transfers to messages."""

from __future__ import annotations

from pypoplar.arrays.dtypes import Int64s
from pypoplar.host_code.sweep import sweep


@sweep
def join_messages(  # noqa: PLR0913
    begin: Int64s,
    bytes: Int64s,
    variable: Int64s,
    span: int,
    sources: int,
    out_destination: Int64s,
    out_source: Int64s,
    out_offset: Int64s,
    out_bytes: Int64s,
    out_variable: Int64s,
) -> int:
    """Transfers that touch in the source's memory, and are of one variable, as one message.

    `begin` rises from 0 on: it is the key ``(destination * sources + source) * span + offset``. There is room for as many messages.
    """
    rows, first, reach = 0, 0, 0
    for i in range(len(begin)):
        if rows == 0 or begin[i] > reach or variable[i] != variable[i - 1]:
            first = begin[i]
            group = first // span
            out_destination[rows], out_source[rows] = group // sources, group % sources
            out_offset[rows], out_variable[rows] = first - group * span, variable[i]
            rows += 1
        reach = max(reach, begin[i] + bytes[i])
        out_bytes[rows - 1] = reach - first
    return rows
