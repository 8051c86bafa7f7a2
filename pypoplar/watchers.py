"""Who is told before a program's engines and models are made, and may stop it there: for commands that predict scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Watcher(Protocol):
    """What is told. Each method may raise, which stops what it was told of.

    What it is told of stands on floors above this one, and has no types here.
    """

    def compiles(self, graph: Any, programs: Any, options: Any) -> None:
        """A graph is about to be compiled to be run."""

    def takes(self, executable: Any) -> None:
        """An engine is about to be made of an executable that was compiled before."""

    def makes(self, model: Any) -> None:
        """A model of PyTorch was made for the device."""

    def calls(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A model of PyTorch is about to be compiled for arguments."""


_watchers: list[Watcher] = []


def watchers() -> tuple[Watcher, ...]:
    """Who is told now."""
    return tuple(_watchers)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Tell a watcher of all that happens within."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


@contextmanager
def unwatched() -> Iterator[None]:
    """Tell nobody of what happens within."""
    kept = _watchers[:]
    _watchers.clear()
    try:
        yield
    finally:
        _watchers[:] = kept
