"""The shapes of codelets: what an edge row of theirs consists of, as it is needed for many vertices at once."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.codelet.codelet import Codelet
from pypoplar.interface.edge_rows import edge_row
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.vertex_kinds import VertexKind


@frozen(eq=False)
class CodeletShapes:
    """The codelets' shapes as arrays, indexed by codelet and field."""

    words: Int64s  # [codelets]: words of an edge row
    start_word: Int64s  # [codelets, most fields]: a field's address, or its first entry in the row table
    extent_word: Int64s  # [codelets, most fields]: its elements or rows; NOTHING of a scalar
    touch_word: Int64s  # [codelets, most fields]: where its touched elements are marked, or NOTHING
    is_list: Bools  # [codelets, most fields]
    state: Bools  # [codelets, most fields]
    kind: Int64s  # [codelets]

    @staticmethod
    def of(codelets: tuple[Codelet, ...], *, record_touches: bool) -> CodeletShapes:
        """`record_touches` adds a word to each scalar and vector edge: where its touched elements are marked."""
        most = max([len(codelet.fields) for codelet in codelets], default=0) or 1
        shape = (len(codelets), most)
        shapes = CodeletShapes(
            words=np.zeros(len(codelets), np.int64),
            start_word=np.full(shape, NOTHING, np.int64),
            extent_word=np.full(shape, NOTHING, np.int64),
            touch_word=np.full(shape, NOTHING, np.int64),
            is_list=np.zeros(shape, bool),
            state=np.zeros(shape, bool),
            kind=np.array([VertexKind.of(codelet.kind) for codelet in codelets], np.int64),
        )
        for number, codelet in enumerate(codelets):
            layout = edge_row(codelet.fields, record_touches=record_touches)
            shapes.words[number] = layout.words
            for position, (described, words) in enumerate(zip(codelet.fields, layout.fields, strict=True)):
                shapes.start_word[number, position] = words.start
                shapes.extent_word[number, position] = words.extent
                shapes.touch_word[number, position] = words.touch
                shapes.is_list[number, position] = described.form == "list"
                shapes.state[number, position] = described.access == "state"
        return shapes
