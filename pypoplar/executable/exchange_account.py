"""The account of an exchange: which tile sends how much of what to which other tile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s, StructuredArray
from pypoplar.errors import ApplicationRuntimeError, UnknownHandle
from pypoplar.spelling import nearest_or_all

MESSAGE = np.dtype([("source", np.int32), ("destination", np.int32), ("bytes", np.int64), ("variable", np.int32)])
"""A row of an exchange: one contiguous piece of one variable in the source tile's memory, to one receiver."""


def joined_by_pairs(messages: StructuredArray) -> StructuredArray:
    """Messages with those that follow each other from one tile to another as one, whose variable says nothing."""
    if len(messages) == 0:
        return messages
    opens = np.ones(len(messages), bool)
    opens[1:] = (messages["source"][1:] != messages["source"][:-1]) | (messages["destination"][1:] != messages["destination"][:-1])
    first = np.flatnonzero(opens)
    joined: StructuredArray = messages[first]
    joined["bytes"] = np.add.reduceat(messages["bytes"], first)
    joined["variable"] = 0
    return joined


@frozen(eq=False)
class Exchange:
    """The account of one exchange phase."""

    messages: StructuredArray  # of MESSAGE
    bytes_sent: Int64s  # [tiles]; a multicast counts once
    bytes_received: Int64s  # [tiles]


@frozen(eq=False)
class ExchangeShare:
    """What copies of one name have in an exchange of several, as if they were alone."""

    name: str
    messages: StructuredArray  # of MESSAGE
    bytes_sent: int  # by all tiles; a multicast counts once


MOST_NAMES = 3


def name_together(names: Sequence[str]) -> str:
    """What copies that are one step are called together: ``a, b, c``; a long list is cut, a name that comes again is there once."""
    different = list(dict.fromkeys(names))
    more = f" and {len(different) - MOST_NAMES:,} more" if len(different) > MOST_NAMES else ""
    return ", ".join(different[:MOST_NAMES]) + more


@frozen(eq=False, repr=False)
class NamedExchange:
    """One exchange of the program, open to inspection in `Executable.exchanges`.

    Successive copies that do not depend on each other are one exchange: `name` is what they are called together, `names` has all.
    """

    name: str
    phase: str  # "before" or "after" a compute set, "copy", or "stream" where the order of a stream is not that of the tiles
    account: Exchange
    variables: tuple[str, ...]
    shares: tuple[ExchangeShare, ...] = ()  # of copies with different names, by name
    by_pairs: bool = False  # whether its messages are those of pairs of tiles, of any variables

    def __repr__(self) -> str:
        rows = self.account.messages
        return f"<exchange {self.phase} {self.name!r}: {len(rows)} messages, {int(rows['bytes'].sum()):,} bytes>"

    @property
    def names(self) -> tuple[str, ...]:
        """The name of its compute set or copy; of several copies all names, each once."""
        return tuple(share.name for share in self.shares) or (self.name,)

    @property
    def messages(self) -> StructuredArray:
        """A structured array of source, destination, bytes, variable (its name); a multicast has one row per receiver.

        Of several copies these are the messages of the exchange as a whole: `messages_of` has those of each.
        """
        return self._shown(self.account.messages)

    def messages_of(self, name: str) -> StructuredArray:
        """The messages of the copies called `name`, each as if it were alone; `UnknownHandle` if none is called so."""
        return self._shown(self.share_of(name).messages)

    def share_of(self, name: str) -> ExchangeShare:
        """What the copies called `name`, or the compute set, have in the exchange; `UnknownHandle` if none is called so."""
        if not self.shares and name == self.name:
            return ExchangeShare(name, self.account.messages, int(self.bytes_sent.sum()))
        for share in self.shares:
            if share.name == name:
                return share
        raise UnknownHandle(f"{self!r} has no part called {name!r}{nearest_or_all(name, self.names)}")

    def _shown(self, rows: StructuredArray) -> StructuredArray:
        if self.by_pairs:
            raise ApplicationRuntimeError(
                f"an executable of mode 'cost' does not keep the messages of {self.phase} {self.name!r}: "
                "their bytes by tile are in bytes_sent and bytes_received; compile without mode='cost' for messages"
            )
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
