"""Vertices that combine activations with vectors that have an element for each channel: one for each piece on a tile."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat_slices
from pypoplar.poplin.norms.channel_layout import ChannelLayout, channel_pieces
from pypoplar.program import Execute, Sequence


@frozen(eq=False)
class ChannelOperation:
    """A call's operation on activations: a codelet whose `out` is written, element by element."""

    graph: Graph
    vertex: str
    debug: str

    def new_result(self, prog: Sequence, whole: Mapping[str, Tensor], vectors: Mapping[str, Tensor]) -> Tensor:
        """The result as a new tensor that lies as the first of the `whole` tensors, which have its shape."""
        acts = next(iter(whole.values()))
        out = self.graph.clone(acts, self.debug)
        if acts.numElements():
            self._add(prog, out, whole, vectors)
        return out

    def _add(self, prog: Sequence, out: Tensor, whole: Mapping[str, Tensor], vectors: Mapping[str, Tensor]) -> None:
        layout = ChannelLayout.of(self.graph, out)
        views = {name: layout.ordered(tensor).flatten() for name, tensor in {"out": out, **whole}.items()}
        pieces = channel_pieces(self.graph, layout, views["out"])
        flat = {name: vector.flatten() for name, vector in vectors.items()}
        cs = self.graph.addComputeSet(self.debug)
        sizes = np.stack((pieces.end - pieces.begin, pieces.period), 1)
        for length, period in np.unique(sizes, axis=0).tolist():
            own = np.flatnonzero((sizes == (length, period)).all(1))
            begin, end = pieces.begin[own], pieces.end[own]
            fields: dict[str, object] = {
                name: concat_slices(view, begin, end).reshape([len(own), length]) for name, view in views.items()
            }
            fields |= {name: pieces.of_vector(vector, own) for name, vector in flat.items()}
            fields |= {"offset": pieces.offset[own], "inner": pieces.inner}
            self.graph.add_vertices(cs, self.vertex, fields, pieces.tile[own])
        prog.add(Execute(cs))
