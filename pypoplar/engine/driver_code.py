"""The driver as native code: compiled by numba once, kept in the cache, called with its three integers.

Where the cache has it, numba is not even imported.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from attrs import frozen

from pypoplar.codelet import cache, machine

# module, entry function, name in the object code
UNITS = (
    ("pypoplar.engine.moving", "move_share"),
    ("pypoplar.engine.superstep", "superstep"),
    ("pypoplar.engine.driver", "drive"),
)
SOURCES = (
    *("engine/" + one for one in ("moving.py", "superstep.py", "driver.py", "barrier.py", "header.py", "layout.py", "unit.py")),
    *("compiler/opcodes.py", "codelet/intrinsics.py"),
)


@frozen(eq=False)
class DriverCode:
    """The driver in this process."""

    drive: Callable[[int, int, int], int]  # header, thread, threads; lets go of the interpreter's lock while it runs
    move_unit: int  # addresses
    superstep_unit: int
    _units: tuple[machine.LoadedCode, ...]


@functools.cache
def driver_code() -> DriverCode:
    """The driver, from the cache or newly compiled."""
    identity = _identity()
    units = tuple(machine.load(_object_code(identity, module, function)) for module, function in UNITS)
    move, superstep, drive = (unit.address(_symbol(function)) for unit, (_, function) in zip(units, UNITS, strict=True))
    return DriverCode(_callable(drive), move, superstep, units)


def _symbol(function: str) -> str:
    return f"pypoplar_unit_{function}"


def _identity() -> str:
    """All that the object code depends on."""
    package = Path(__file__).parent.parent
    sources = "".join((package / one).read_text() for one in SOURCES)
    return f"driver {sources} numba {version('numba')} {machine.host().identity}"


def _object_code(identity: str, module: str, function: str) -> bytes:
    key = f"{identity} {module}"
    code = cache.load(key)
    if code is None:
        code = _compile(module, function)
        cache.store(key, code)
    return code


def _compile(module: str, function: str) -> bytes:
    from pypoplar.engine.unit import assembly_of

    return machine.compile_text(assembly_of(getattr(importlib.import_module(module), function), _symbol(function)))


def _callable(address: int) -> Callable[[int, int, int], int]:
    """numba's calling convention: result and exception by reference; the driver raises none."""
    word = ctypes.c_int64
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(word), ctypes.POINTER(ctypes.c_void_p), word, word, word)
    function = prototype(address)

    def drive(header: int, thread: int, threads: int) -> int:
        result, exception = word(), ctypes.c_void_p()
        function(ctypes.byref(result), ctypes.byref(exception), header, thread, threads)
        return int(result.value)

    return drive
