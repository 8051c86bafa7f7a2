"""What replicas do together where they meet. Runners, drivers and move lists know nothing of who takes part.

Here all replicas are of one process; others can stand behind the same calls, which each process makes for its own replicas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import AnyArray, Int64s


class Meeting(Protocol):
    """All replicas of a program; those of this process are `ours`."""

    @property
    def ours(self) -> range:
        """The numbers of the replicas that this process runs."""

    def agree(self, numbers: Int64s) -> Int64s:
        """What all replicas say, in order, of what `ours` say."""

    def exchange(self, sent: Sequence[AnyArray], received: Sequence[AnyArray], receivers: Sequence[int]) -> None:
        """Bring what each replica has sent to the one to which it sends; `sent` and `received` are the arrays of `ours`."""

    def first_failure(self, failures: Mapping[int, int]) -> int | None:
        """The replica that has failed first, if one has; `failures` has those of `ours` with the time of each."""


@frozen
class OneProcess:
    """A meeting of so many replicas, which are all of this process."""

    replicas: int

    @property
    def ours(self) -> range:
        """All of them."""
        return range(self.replicas)

    def agree(self, numbers: Int64s) -> Int64s:
        """The numbers themselves."""
        return numbers

    def exchange(self, sent: Sequence[AnyArray], received: Sequence[AnyArray], receivers: Sequence[int]) -> None:
        """Copy each array to its receiver's."""
        for array, receiver in zip(sent, receivers, strict=True):
            np.copyto(received[receiver], array)

    def first_failure(self, failures: Mapping[int, int]) -> int | None:
        """The one with the least time; of several the lowest."""
        return min(failures, key=lambda replica: (failures[replica], replica), default=None)
