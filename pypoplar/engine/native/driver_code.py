"""The driver as native code: compiled once, kept in the cache, called with its three integers.

Where the cache has it, what compiles it is not even imported.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable

from attrs import frozen

from pypoplar.host_code import cache, machine
from pypoplar.host_code.once import once, one_at_a_time
from pypoplar.progress import Announcement

# The driver's units: module, and the function by which the unit is called.
MOVING = ("pypoplar.engine.native.moves", "move_share")
SUPERSTEP = ("pypoplar.engine.native.superstep", "superstep")
GENERAL = ("pypoplar.engine.native.general_tiles", "general_tile")
DRIVER = ("pypoplar.engine.native.driver", "drive")
# What decides what their code is: code of other versions of it is not used.
SOURCES = ("pypoplar.engine.native", "pypoplar.interface", "pypoplar.host_code.machine")

COMPILING = Announcement("compiling the driver, once")

Drive = Callable[[int, int, int], int]


@frozen(eq=False)
class Unit:
    """A unit of the driver in this process."""

    address: int
    _code: machine.LoadedCode


_units: dict[tuple[str, str], Unit] = {}


def load_unit(unit: tuple[str, str], progress: str = "auto") -> Unit:
    """A unit, from the cache or newly compiled, which is said if it takes long and `progress`, the option, allows it."""
    with one_at_a_time():
        if unit not in _units:
            module, function = unit
            code = machine.load(_object_code(_identity(), module, function, progress))
            _units[unit] = Unit(code.address(_symbol(function)), code)
        return _units[unit]


def driver_function(progress: str = "auto") -> Drive:
    """The driver: takes header, thread, threads; lets go of the interpreter's lock while it runs."""
    return _callable(load_unit(DRIVER, progress).address)


def _symbol(function: str) -> str:
    return f"pypoplar_unit_{function}"


@once
def _identity() -> str:
    """All that the object code depends on."""
    return f"driver {cache.fingerprint(*SOURCES)} {machine.host().identity}"


def _object_code(identity: str, module: str, function: str, progress: str) -> bytes:
    key = f"{identity} {module}"
    code = cache.load(key)
    if code is None:
        with COMPILING.during(progress):
            code = _compile(module, function)
        cache.store(key, code)
    return code


def _compile(module: str, function: str) -> bytes:
    from pypoplar.engine.native.unit_code import unit_text

    return machine.compile_text(unit_text(getattr(importlib.import_module(module), function), _symbol(function)))


@functools.cache
def _callable(address: int) -> Drive:
    word = ctypes.c_int64
    return ctypes.CFUNCTYPE(word, word, word, word)(address)
