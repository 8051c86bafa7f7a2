"""How the driver is compiled: in units, each once, that call each other by address.

numba optimises everything that a function calls along with it, at every level of calls again; units keep that short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

PART: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
Function = TypeVar("Function", bound=Callable[..., Any])


def part(function: Function) -> Function:
    """A part of a unit: compiled when the unit is."""
    return cast(Function, njit(**PART)(function))


def entry(signature: str) -> Callable[[Function], Function]:
    """The function by which a unit is called: it takes 64-bit integers and returns one."""

    def compiled(function: Function) -> Function:
        return cast(Function, njit(signature, **PART)(function))

    return compiled


def assembly_of(function: Any, name: str) -> str:
    """LLVM's text of a unit in which its entry has the given name; it refers to nothing of this process."""
    (result,) = function.overloads.values()
    text: str = result.library.get_llvm_str()
    return text.replace(result.fndesc.llvm_func_name, name)
