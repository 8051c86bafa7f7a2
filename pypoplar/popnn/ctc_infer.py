"""The likeliest labels of sequences by connectionist temporal classification. PopLibs' namespace of this name."""

from __future__ import annotations

from pypoplar.popnn.ctc.beam_search import beamSearchDecoderLogits, beamSearchDecoderLogProbabilities, createDataInput, plan

__all__ = ["beamSearchDecoderLogProbabilities", "beamSearchDecoderLogits", "createDataInput", "plan"]
