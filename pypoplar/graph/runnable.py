"""What a graph knows of programs, whose kinds are a room of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from pypoplar.graph.vertices import ComputeSet


class Runnable(ABC):
    """Something that runs compute sets: the base of all programs."""

    @abstractmethod
    def taken(self) -> Runnable:
        """It as others keep it: unchanged by what is added to it later."""

    @abstractmethod
    def runs(self) -> Iterable[Runnable | ComputeSet]:
        """What it runs itself; what is below that is said by that."""


Programs = Runnable | Iterable[Runnable]
