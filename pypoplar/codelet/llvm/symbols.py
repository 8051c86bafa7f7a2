"""The names in codelets' machine code: of the codelet itself, and of the functions of the C library that it calls."""

from __future__ import annotations

import llvmlite.binding as llvm

from pypoplar.codelet.operations import c_library
from pypoplar.codelet.operations.table import library_functions
from pypoplar.host_code.machine import SYMBOL_PREFIX

ENTRY = SYMBOL_PREFIX + "codelet"

_registered: set[str] = set()


def library_symbol(name: str) -> str:
    """Not the library's, so that LLVM neither folds such a call nor replaces it by a vector form with other roundings."""
    return SYMBOL_PREFIX + name


def register_library() -> None:
    """Give LLVM the addresses of the C library's functions under our names."""
    for name in library_functions():
        if name not in _registered:
            llvm.add_symbol(library_symbol(name), c_library.address(name))
            _registered.add(name)
