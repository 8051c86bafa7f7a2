"""Debug names: readable, and unique within a graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pypoplar.errors import PoplarTypeError


class Names:
    """Gives out names that differ: a name asked for twice gets the suffix ``_1``, ``_2`` and so on."""

    __slots__ = ("_given", "_next")

    def __init__(self) -> None:
        self._given: set[str] = set()
        self._next: dict[str, int] = {}

    def give(self, wanted: str) -> str:
        """The wanted name, with a number behind it where it was given before."""
        name = wanted
        while name in self._given:
            number = self._next.get(wanted, 1)
            self._next[wanted] = number + 1
            name = f"{wanted}_{number}"
        self._given.add(name)
        return name

    def take_back(self, name: str) -> None:
        """Forget a name that was given."""
        self._given.discard(name)


class Scope:
    """The names of the enclosing ``with graph.trace(...)`` blocks, joined by ``/``."""

    __slots__ = ("_prefix",)

    def __init__(self) -> None:
        self._prefix = ""

    def named(self, name: str, default: str = "") -> str:
        """`name` as a debug name inside the open blocks; `default` where it is empty."""
        if not isinstance(name, str):
            raise PoplarTypeError(f"a debug name is a string, got {name!r}")
        return self._prefix + (name or default)

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """While it lasts, names begin with this one and a slash."""
        before = self._prefix
        self._prefix = f"{self.named(name)}/"
        try:
            yield
        finally:
            self._prefix = before
