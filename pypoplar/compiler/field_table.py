"""The codelets' fields as flat tables, so that passes can look them up for millions of edges at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from pypoplar.codelet.language.codelet import Codelet
from pypoplar.compiler.exchange.plan import Array
from pypoplar.types import SUPPORTED

INPUT, OUTPUT, INOUT, STATE = 0, 1, 2, 3
SCALAR, VECTOR, LIST = 0, 1, 2
_ACCESS = {"input": INPUT, "output": OUTPUT, "inout": INOUT, "state": STATE}
_FORM = {"scalar": SCALAR, "vector": VECTOR, "list": LIST}


@frozen(eq=False)
class FieldTable:
    """Entry ``first[codelet] + field`` of each table is about that field."""

    first: Array  # int64 [codelets + 1]
    access: Array  # int8
    form: Array  # int8
    type: Array  # int16, index into pypoplar.types.SUPPORTED
    shared_worker: Array  # bool [codelets]: Vertex, whose vertices run beside each other on a tile's workers

    def entries(self, codelet: Array, field: Array) -> Array:
        if len(self.first) == 2:
            return field
        found: Array = self.first[codelet] + field
        return found


def tabulate_fields(codelets: Sequence[Codelet]) -> FieldTable:
    fields = [field for codelet in codelets for field in codelet.fields]
    return FieldTable(
        first=np.cumsum([0] + [len(codelet.fields) for codelet in codelets], dtype=np.int64),
        access=np.array([_ACCESS[field.access] for field in fields], np.int8),
        form=np.array([_FORM[field.form] for field in fields], np.int8),
        type=np.array([SUPPORTED.index(field.type) for field in fields], np.int16),
        shared_worker=np.array([codelet.kind == "vertex" for codelet in codelets], bool),
    )


TYPE_SIZES: Array = np.array([one.size for one in SUPPORTED], np.int64)
