"""The verifier with its checks counted, and any one of them moved by one or switched off."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from attrs import define, field

from pypoplar import Executable, FileLoadError
from pypoplar.executable import verify
from pypoplar.executable.verify import named_checks
from pypoplar.executable.verify.executable_claims import verify as verify_executable

MODULES = [importlib.import_module(module.name) for module in pkgutil.iter_modules(verify.__path__, f"{verify.__name__}.")]
CHECKS = ("check", "check_number", "check_limit", "check_range", "check_least", "check_most", "check_each", "check_shape")
FURTHEST = 1 << 63
MOVED, OFF = "moved", "off"

Site = tuple[str, int]


@define(eq=False)
class Watch:
    """What the checks of one verification did."""

    loosened: str = ""  # the check whose bound is moved by one, or which is switched off
    how: str = MOVED
    notes: bool = False  # whether places and bounds are written down
    sites: dict[str, set[Site]] = field(factory=dict)  # where in the verifier each check was made
    bounds: dict[str, tuple[int, int]] = field(factory=dict)  # -1 and the least number that passes, or 1 and the largest
    refused: str = ""  # the check that was not passed

    def note(self, name: str, side: int = 0, bound: Any = ()) -> None:
        if not self.notes:
            return
        frame = sys._getframe(2)
        while frame.f_code.co_filename in (__file__, named_checks.__file__):
            assert frame.f_back is not None
            frame = frame.f_back
        self.sites.setdefault(name, set()).add((frame.f_code.co_filename, frame.f_lineno))
        if np.ndim(bound) == 0:
            self.bounds[name] = side, int(bound)

    def distance(self, name: str) -> int | None:
        """By how much the bound of a check is moved; None if it is switched off."""
        return 0 if name != self.loosened else 1 if self.how == MOVED else None

    def attempt(self, name: str, holds: Callable[[int], None]) -> None:
        """Make a check, given by how much its bound is moved."""
        distance = self.distance(name)
        if distance is None:
            return
        try:
            holds(distance)
        except FileLoadError:
            self.refused = name
            raise

    # What stands in the place of the checks

    def check_range(self, original: Any, name: str, values: Any, low: int, high: int, *rest: Any, **named: Any) -> None:
        self.note(f"{name} low", -1, low)
        self.note(f"{name} high", 1, high - 1)
        self.attempt(f"{name} low", lambda by: original(name, values, low - by, FURTHEST, *rest, **named))
        self.attempt(f"{name} high", lambda by: original(name, values, -FURTHEST, high + by, *rest, **named))

    check_number = check_range

    def check_limit(self, original: Any, name: str, value: int, most: int, text: str) -> None:
        self.note(name, 1, most)
        self.attempt(name, lambda by: original(name, value, most + by, text))

    def check_most(self, original: Any, name: str, values: Any, most: Any, *rest: Any, **named: Any) -> None:
        self.note(name, 1, most)
        self.attempt(name, lambda by: original(name, values, most + by, *rest, **named))

    def check_least(self, original: Any, name: str, values: Any, least: Any, *rest: Any, **named: Any) -> None:
        self.note(name, -1, least)
        self.attempt(name, lambda by: original(name, values, least - by, *rest, **named))

    def check(self, original: Any, name: str, *rest: Any) -> None:
        self.note(name)
        if name != self.loosened:
            self.attempt(name, lambda by: original(name, *rest))

    check_each = check

    def check_shape(self, original: Any, name: str, *rest: Any, **named: Any) -> None:
        self.note(f"{name} shape")
        if f"{name} shape" != self.loosened:
            self.attempt(f"{name} shape", lambda by: original(name, *rest, **named))


ORIGINALS = {name: getattr(named_checks, name) for name in CHECKS}
PLACES = [(module, name) for name in CHECKS for module in MODULES if hasattr(module, name)]


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """All checks go through `watch`."""
    for module, name in PLACES:
        setattr(module, name, functools.partial(getattr(watch, name), ORIGINALS[name]))
    try:
        yield
    finally:
        for module, name in PLACES:
            setattr(module, name, ORIGINALS[name])


def verified(executable: Executable, loosened: str = "", how: str = MOVED, *, notes: bool = False) -> Watch:
    """What became of the checks of an executable, with one of them loosened."""
    watch = Watch(loosened, how, notes)
    with watched(watch):
        try:
            verify_executable(executable)
        except FileLoadError:
            assert watch.refused, "a refusal that is not a check's"
    return watch
