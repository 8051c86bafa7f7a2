"""The beam search of connectionist temporal classification."""

from __future__ import annotations

import torch

from pypoplar import popnn, popops
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch import operators  # noqa: F401 (makes them known to PyTorch)
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.types import INT, UNSIGNED_INT


@lowers(torch.ops.poptorch.ctc_beam_search_decoder.default)
def search(ctx: EntryContext, probs: Operand, lengths: Operand, blank: int, width: int, paths: int) -> list[Tensor]:
    graph, type = ctx.graph, probs.type
    time, batch, classes = probs.shape
    plan = popnn.ctc_infer.plan(graph, type, batch, time, classes, width)
    data = probs.placed(lambda: popnn.ctc_infer.createDataInput(graph, type, batch, time, classes, plan, ctx.name))
    counts = lengths.placed()
    if counts.elementType() is not UNSIGNED_INT:
        whole = counts if counts.elementType() is INT else popops.cast(graph, counts, INT, ctx.program, ctx.name)
        counts = whole.reinterpret(UNSIGNED_INT)
    found = popnn.ctc_infer.beamSearchDecoderLogProbabilities(graph, data, counts, ctx.program, blank, width, paths, plan, ctx.name)
    return [found[0], *(one.reinterpret(INT) for one in found[1:])]
