"""The account of an exchange: which tile sends how much of what to which other tile."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s, StructuredArray

MESSAGE = np.dtype([("source", np.int32), ("destination", np.int32), ("bytes", np.int64), ("variable", np.int32)])
"""A row of an exchange: one contiguous piece of one variable in the source tile's memory, to one receiver."""


@frozen(eq=False)
class Exchange:
    """The account of one exchange phase."""

    messages: StructuredArray  # of MESSAGE
    bytes_sent: Int64s  # [tiles]; a multicast counts once
    bytes_received: Int64s  # [tiles]


@frozen(eq=False, repr=False)
class NamedExchange:
    """One exchange of the program, open to inspection in `Executable.exchanges`."""

    name: str
    phase: str  # "before" or "after" a compute set, "copy", or "stream" where the order of a stream is not that of the tiles
    account: Exchange
    variables: tuple[str, ...]

    def __repr__(self) -> str:
        rows = self.account.messages
        return f"<exchange {self.phase} {self.name!r}: {len(rows)} messages, {int(rows['bytes'].sum()):,} bytes>"

    @property
    def messages(self) -> StructuredArray:
        """Structured array: source, destination, bytes, variable (its name); a multicast has one row per receiver."""
        rows = self.account.messages
        width = max([len(name) for name in self.variables], default=1)
        named = np.empty(
            len(rows), [("source", np.int32), ("destination", np.int32), ("bytes", np.int64), ("variable", f"<U{max(width, 1)}")]
        )
        for column in ("source", "destination", "bytes"):
            named[column] = rows[column]
        named["variable"] = np.array(self.variables or ("",), dtype=f"<U{max(width, 1)}")[rows["variable"]] if len(rows) else ""
        return named

    @property
    def bytes_sent(self) -> Int64s:
        """Bytes that each tile sends; a multicast counts once."""
        return self.account.bytes_sent

    @property
    def bytes_received(self) -> Int64s:
        """Bytes that each tile receives."""
        return self.account.bytes_received
