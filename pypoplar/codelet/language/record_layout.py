"""Where the fields of a record lie in its bytes: as C lays out a struct, and NumPy a structured dtype with ``align=True``."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from attrs import frozen

from pypoplar.types import BY_NAME, ElementType

LARGEST_RECORD = 1 << 20  # bytes: no tile has as much
DEEPEST = 16  # records in each other


@frozen
class RecordField:
    """A field of a record: a number or a record, or `count` of them one after the other."""

    name: str
    type: ElementType | RecordLayout
    count: int | None = None  # None for one alone

    @property
    def size(self) -> int:
        """Bytes of the field."""
        return self.type.size * (1 if self.count is None else self.count)

    @property
    def alignment(self) -> int:
        return self.type.size if isinstance(self.type, ElementType) else self.type.alignment


@frozen
class RecordLayout:
    """The fields of a record in their order. `ValueError` for what is no record."""

    name: str
    fields: tuple[RecordField, ...]

    def __attrs_post_init__(self) -> None:
        if not self.fields or len({field.name for field in self.fields}) != len(self.fields):
            raise ValueError(f"record {self.name} without fields, or with two of one name")
        if any(field.count is not None and field.count < 1 for field in self.fields):
            raise ValueError(f"record {self.name} with an array without elements")
        if self.depth > DEEPEST:
            raise ValueError(f"record {self.name}: more than {DEEPEST} records in each other")
        if self.size > LARGEST_RECORD:
            raise ValueError(f"record {self.name} has {self.size:,} bytes; no tile has as much memory")

    @functools.cached_property
    def depth(self) -> int:
        """How many records are in each other, with this one."""
        return 1 + max(field.type.depth if isinstance(field.type, RecordLayout) else 0 for field in self.fields)

    @functools.cached_property
    def offsets(self) -> dict[str, int]:
        """Where each field begins, in bytes: at the first multiple of its alignment behind the field before."""
        offsets, end = {}, 0
        for field in self.fields:
            offsets[field.name] = -(-end // field.alignment) * field.alignment
            end = offsets[field.name] + field.size
        return offsets

    @functools.cached_property
    def alignment(self) -> int:
        """What the place of a record is a multiple of: the largest alignment of its fields."""
        return max(field.alignment for field in self.fields)

    @functools.cached_property
    def size(self) -> int:
        """Bytes of a record, a multiple of its alignment."""
        last = self.fields[-1]
        return -(-(self.offsets[last.name] + last.size) // self.alignment) * self.alignment

    @functools.cached_property
    def dtype(self) -> np.dtype[Any]:
        """The structured dtype of NumPy that has the same fields in the same places."""
        return np.dtype(
            [
                (field.name, field.type.dtype) if field.count is None else (field.name, field.type.dtype, (field.count,))
                for field in self.fields
            ],
            align=True,
        )

    def to_json(self) -> list[Any]:
        """Lists, strings and numbers, as the json module writes them."""
        fields = [
            [field.name, field.type.__name__ if isinstance(field.type, ElementType) else field.type.to_json(), field.count]
            for field in self.fields
        ]
        return [self.name, fields]

    @staticmethod
    def from_json(tree: Any, deepest: int = DEEPEST) -> RecordLayout:
        """What `to_json` wrote; KeyError, TypeError or ValueError for anything else."""
        name, rows = tree
        if deepest == 0 or not isinstance(name, str):
            raise ValueError(f"a record {name!r}")
        fields = []
        for field, type, count in rows:
            if not isinstance(field, str) or not (count is None or (isinstance(count, int) and not isinstance(count, bool))):
                raise ValueError(f"field {field!r} of record {name}, {count!r} elements")
            held = BY_NAME[type] if isinstance(type, str) else RecordLayout.from_json(type, deepest - 1)
            fields.append(RecordField(field, held, count))
        return RecordLayout(name, tuple(fields))
