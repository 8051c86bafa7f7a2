"""What the driver is written in: functions on 64-bit words in a small part of Python, which `unit_code` compiles.

The driver consists of units, each compiled by itself, that call each other by address. A unit is an `entry` with the parts that it
calls. At the bottom are operations, which write LLVM instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

PARTS: set[Callable[..., Any]] = set()
SELDOM: set[Callable[..., Any]] = set()
INLINED: set[Callable[..., Any]] = set()
OPERATIONS: set[Callable[..., Any]] = set()


def part(function: Function) -> Function:
    """A part of units: takes integers, returns an integer, a bool or nothing, as its annotations say."""
    PARTS.add(function)
    return function


def seldom(function: Function) -> Function:
    """A part that runs seldom: it stays out of the way of what calls it."""
    SELDOM.add(function)
    return part(function)


def inlined(function: Function) -> Function:
    """A part that is written anew wherever it is called: what is constant there is settled when it is compiled."""
    INLINED.add(function)
    return part(function)


def entry(function: Function) -> Function:
    """The function by which a unit is called: it takes integers and returns one."""
    return part(function)


def llvm_operation(function: Callable[..., Any]) -> Any:
    """An operation: called with an LLVM builder before its arguments, ``i64`` values, it returns such a value or None.

    In the driver it is called without the builder.
    """
    OPERATIONS.add(function)
    return function
