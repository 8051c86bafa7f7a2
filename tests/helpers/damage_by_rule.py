"""Damage by rule: the name of a check is that of an array or a number, and one of it is put just beyond the bound."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from damage import Damage, less, opened, specifications
from executable_damage import Change, Opened, more, put_leaf, put_row

from pypoplar.interface.opcodes import OPERANDS, Opcode, ProgramRow

ENDS = (0, -1, 1, -2, 2, -3, 3, -4, 4, 5, 6, 8, 12, 20)  # the places in an array where damage is tried
ARRAYS = {
    "exchanges.bytes_sent": "exchanges.account.bytes_sent",
    "exchanges.bytes_received": "exchanges.account.bytes_received",
    "exchanges.messages": "exchanges.account.messages",
    "field": "computes.words",
    "list": "computes.words",
    "row": "computes.row_table",
}


SIDES = ("low", "least", "high", "most")


def by_rule(check: str, program: str, bound: tuple[int, int] | None) -> Iterator[Damage]:
    """What may be refused by a check of the program, whose bound, if it is a number, is on a side, -1 or 1."""
    name, _, what = check.rpartition(" ")
    array = ARRAYS.get((name or check).split(" ")[0], name or check)
    if what == "shape":
        yield from (Damage(program, change) for change in other_shapes(program, array))
    elif bound is not None:
        side, last = bound
        yield from (Damage(program, place(last + side)) for place in _places(name if what in SIDES else check, program))
    elif array in opened(program).arrays or check in opened(program).arrays:
        array = array if array in opened(program).arrays else check
        yield from (Damage(program, put_flat(array, place, value)) for place in ENDS for value in (more, less, 0, -1))


def put_flat(array: str, place: Any, value: Any, column: str | None = None) -> Change:
    """A change of all arrays of a path, which lie end to end; a function gets the old value."""

    def change(damaged: Opened) -> None:
        values = damaged.arrays[array] if column is None else damaged.arrays[array][column]
        values[place] = value(values[place]) if callable(value) else value

    return change


def _places(name: str, program: str) -> Iterator[Callable[[Any], Change]]:
    """What puts a value into one of the numbers that a name means."""
    base, *rest = name.split(" ")
    array = ARRAYS.get(base, base)
    if base == "program" and len(rest) == 2 and rest[0] in Opcode.__members__:
        (operand,) = (operand for operand in OPERANDS[Opcode[rest[0]]] if operand.name == rest[1])
        rows = int((opened(program).array("program")[:, ProgramRow.OPERATION] == Opcode[rest[0]]).sum())
        yield from (lambda value, row=row: put_row(Opcode[rest[0]], operand, value, row) for row in range(rows))
    elif ".messages." in base:
        messages, _, column = base.rpartition(".")
        yield lambda value: put_flat(ARRAYS.get(messages, messages), 0, value, column)
    elif array in opened(program).arrays:
        yield from (lambda value, place=place: put_flat(array, place, value) for place in ENDS)
    else:
        for path in _leaves(opened(program).tree, base.replace("handles", "reads").split("."), ()):
            yield functools.partial(put_leaf, *path)


def _leaves(tree: Any, names: list[str], path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The paths to whole numbers that the names lead to, whatever the numbers or names of entries between them."""
    if type(tree) is int and not names:
        yield path
    elif isinstance(tree, dict) and names and names[0] in tree:
        yield from _leaves(tree[names[0]], names[1:], (*path, names[0]))
    elif isinstance(tree, list) or (isinstance(tree, dict) and path):
        for key, entry in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from _leaves(entry, names, (*path, key))


def other_shapes(program: str, array: str) -> Iterator[Change]:
    """Changes of the shape of one array of a path: another rank, one entry more or less, another width."""
    for number in range(len(specifications(opened(program), array))):

        def rank(damaged: Opened, number: int = number) -> None:
            specifications(damaged, array)[number].append(1)

        def surplus(damaged: Opened, number: int = number) -> None:
            shape = specifications(damaged, array)[number]
            shape[2] += 1
            damaged.arrays[array] = np.resize(damaged.arrays[array], len(damaged.arrays[array]) + int(np.prod(shape[3:])))

        def missing(damaged: Opened, number: int = number) -> None:
            specifications(damaged, array)[number][2] -= 1

        def wider(damaged: Opened, number: int = number) -> None:
            shape = specifications(damaged, array)[number]
            shape[-1] += 1
            damaged.arrays[array] = np.resize(damaged.arrays[array], len(damaged.arrays[array]) + int(np.prod(shape[2:-1])))

        yield from (rank, surplus, missing, wider)
