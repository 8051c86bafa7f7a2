"""The codelets' fields as flat tables, so that passes can look them up for millions of edges at once."""

from __future__ import annotations

import numpy as np
from attrs import astuple, frozen

from pypoplar.arrays.dtypes import Bools, Int8s, Int16s, Int64s, Integers
from pypoplar.arrays.groups import offsets
from pypoplar.codelet.ir.kept_analyses import kept
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.types import SUPPORTED

INPUT, OUTPUT, INOUT, STATE = 0, 1, 2, 3
SCALAR, VECTOR, LIST = 0, 1, 2
_ACCESS = {"input": INPUT, "output": OUTPUT, "inout": INOUT, "state": STATE}
_FORM = {"scalar": SCALAR, "vector": VECTOR, "list": LIST}


@frozen(eq=False)
class FieldTable:
    """Entry ``first[codelet] + field`` of each table is about that field."""

    first: Int64s  # [codelets + 1]
    access: Int8s
    form: Int8s
    type: Int16s  # index into pypoplar.types.SUPPORTED
    alignment: Int64s  # bytes; what the place is a multiple of, of bytes that are records and where more is demanded; else 1
    demanded: Int64s  # bytes; what the user demands that the place is a multiple of, 1 where nothing is
    distinct: Int64s  # [pairs, 3]: codelet, and the positions of two fields that it demands not to overlap
    shared_worker: Bools  # [codelets]: Vertex, whose vertices run beside each other on a tile's workers
    several_workers: Bools  # [codelets]: MultiVertex

    def entries(self, codelet: Integers, field: Integers) -> Integers:
        if len(self.first) == 2:
            return field
        numbers: Integers = self.first[codelet] + field
        return numbers


@kept
def field_table(graph: FrozenGraph) -> FieldTable:
    """The fields of the codelets of a graph."""
    codelets = graph.codelets
    fields = [field for codelet in codelets for field in codelet.fields]
    sizes = np.array([field.type.size for field in fields], np.int64)
    demanded = np.array([max(field.aligned, 1) for field in fields], np.int64)
    distinct = [(number, *pair) for number, codelet in enumerate(codelets) for pair in codelet.distinct]
    as_bytes = [alignment for codelet in codelets for alignment in codelet.alignments]
    table = FieldTable(
        first=offsets([len(codelet.fields) for codelet in codelets]),
        access=np.array([_ACCESS[field.access] for field in fields], np.int8),
        form=np.array([_FORM[field.form] for field in fields], np.int8),
        type=np.array([SUPPORTED.index(field.type) for field in fields], np.int16),
        alignment=np.where(sizes > 1, demanded, as_bytes).astype(np.int64),
        demanded=demanded,
        distinct=np.array(distinct, np.int64).reshape(-1, 3),
        shared_worker=np.array([codelet.kind == "vertex" for codelet in codelets], bool),
        several_workers=np.array([codelet.kind == "multi" for codelet in codelets], bool),
    )
    for column in astuple(table, recurse=False):
        column.flags.writeable = False
    return table


TYPE_SIZES: Int64s = np.array([kind.size for kind in SUPPORTED], np.int64)
