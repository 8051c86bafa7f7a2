"""Damaged executables: changes of saved ones, and what has to be done to a check so that it passes them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from attrs import frozen
from executable_checks import MOVED
from executable_damage import Change, Opened, put, saved
from executable_programs import PROGRAMS

from pypoplar.executable.claims import LARGEST
from pypoplar.executable.verify.executable_claims import CATEGORIES

FIRST, LAST = -(1 << 63), (1 << 63) - 1


@frozen
class Damage:
    """A change of a program, and what has to be done to the check so that the executable passes then."""

    program: str
    change: Change
    how: str = MOVED


Damages = dict[str, list[Damage]]
"""By check, of which each is refused by the check alone, or one of them is."""


def on(program: str, change: Change, how: str = MOVED) -> list[Damage]:
    return [Damage(program, change, how)]


def tried(program: str, changes: Iterable[Change], how: str = MOVED) -> list[Damage]:
    return [Damage(program, change, how) for change in changes]


@functools.cache
def opened(program: str) -> Opened:
    """A program of the tests, saved and taken apart."""
    return Opened(saved(PROGRAMS[program]()))


def both(*changes: Change) -> Change:
    """Several changes, one after the other."""

    def change(damaged: Opened) -> None:
        for each in changes:
            each(damaged)

    return change


def given(make: Callable[[Opened], Change]) -> Change:
    """A change that is made of what is damaged."""
    return lambda damaged: make(damaged)(damaged)


def less(old: Any) -> Any:
    return int(old) - 1


def specifications(damaged: Opened, array: str) -> list[Any]:
    """The places of the tree that name an array: its path, where it begins, and its shape."""
    found: list[Any] = []

    def visit(tree: Any) -> None:
        if isinstance(tree, list) and tree[:1] == [array]:
            found.append(tree)
        elif isinstance(tree, dict | list):
            for entry in tree.values() if isinstance(tree, dict) else tree:
                visit(entry)

    visit(damaged.tree)
    return found


def insert(damaged: Opened, array: str, place: int, value: int) -> None:
    """One entry more in an array that stands alone in its path; at -1, behind the last."""
    (shape,) = specifications(damaged, array)
    shape[2] += 1
    values = damaged.arrays[array]
    damaged.arrays[array] = np.insert(values, len(values) if place < 0 else place, value)


def beyond_the_end(path: str) -> Change:
    """The last part begins one entry behind the end."""

    def change(damaged: Opened) -> None:
        values = damaged.array(*path.split("."))
        values[-2] = values[-1] + 1

    return change


def holding(tile: int = 0, **sizes: int) -> Change:
    """A tile holds so many bytes of some categories, all of them always live; however many they are, it may."""

    def change(damaged: Opened) -> None:
        damaged.tree["options"]["pypoplar.run_out_of_memory"] = True
        for name, size in sizes.items():
            damaged.array("memory", name)[tile] = size
        parts = sum(int(damaged.array("memory", name)[tile]) for name in CATEGORIES if name != "gaps")
        always = sizes.get("always_live", min(parts, LARGEST - 1))
        damaged.array("memory", "always_live")[tile] = always
        damaged.array("memory", "not_always_live")[tile] = sizes.get("not_always_live", parts - always)

    return change


def room_on(tile: int) -> Change:
    """A tile has a megabyte."""
    return both(holding(tile, code=1 << 20), put("tile_bytes", tile, 1 << 20))
