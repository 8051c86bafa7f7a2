"""The beam search of connectionist temporal classification."""

from __future__ import annotations

import torch
from torch import fx

from pypoplar import popnn, popops
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch import operators  # noqa: F401 (makes them known to PyTorch)
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.types import INT, UNSIGNED_INT


@lowers(torch.ops.poptorch.ctc_beam_search_decoder.default)
def search(at: GraphLowering, probs: fx.Node, lengths: fx.Node, blank: int, width: int, paths: int) -> list[Tensor]:
    graph, type = at.graph, at.type_of(probs)
    time, batch, classes = at.shape_of(probs)
    plan = popnn.ctc_infer.plan(graph, type, batch, time, classes, width)
    data = at.tensor(probs, lambda: popnn.ctc_infer.createDataInput(graph, type, batch, time, classes, plan, at.name))
    counts = at.tensor(lengths)
    if counts.elementType() is not UNSIGNED_INT:
        whole = counts if counts.elementType() is INT else popops.cast(graph, counts, INT, at.program, at.name)
        counts = whole.reinterpret(UNSIGNED_INT)
    found = popnn.ctc_infer.beamSearchDecoderLogProbabilities(graph, data, counts, at.program, blank, width, paths, plan, at.name)
    return [found[0], *(one.reinterpret(INT) for one in found[1:])]
