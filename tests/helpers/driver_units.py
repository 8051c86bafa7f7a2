"""Functions of the driver's language, compiled and callable."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from pypoplar.engine.native.unit_code import unit_text
from pypoplar.host_code import machine

WORD = ctypes.c_int64
_loaded: list[machine.LoadedCode] = []


def compiled(entry: Callable[..., int]) -> Any:
    """The machine code of an entry, called with integers."""
    code = machine.load(machine.compile_text(unit_text(entry, "tested")))
    _loaded.append(code)
    return ctypes.CFUNCTYPE(WORD, *[WORD] * entry.__code__.co_argcount)(code.address("tested"))
