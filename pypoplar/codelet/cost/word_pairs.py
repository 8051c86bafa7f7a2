"""64-bit integers as pairs of words: how many instructions an operation on them is.

M: loops ``o[i] = a[i] op b[i]`` measured on ipu2 and published (epfl-vlsc/parendi, its cost model of a BSP machine), less the two
words of each load and store: 8.17 slots for ``and``, ``or`` and ``xor``, 10.17 for ``add`` and ``sub``, 27.17 for ``mul``, 6.0 for
``not``, 14.0 for ``equal``, 12.67 for less, 11.17 for a shift.
"""

from __future__ import annotations

from collections.abc import Mapping

from pypoplar.codelet.operations.device_operation import TypedOperation

_SLOTS: Mapping[str, int] = {
    "and": 2, "or": 2, "xor": 2, "add": 4, "sub": 4, "mul": 21, "invert": 2, "equal": 8, "not_equal": 8, "less": 7, "less_equal": 7,
    "shift_left": 5, "shift_right": 5,
}  # fmt: skip


def pair_slots(row: TypedOperation) -> int | None:
    """The instructions of an operation on pairs of words; None for one that nobody has measured, or on anything else."""
    return _SLOTS.get(row.row.name) if row.type in ("i64", "u64") else None
