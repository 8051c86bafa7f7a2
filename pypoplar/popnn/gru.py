"""Gated recurrent units, with attention or without. PopLibs' namespace of this name."""

from __future__ import annotations

from pypoplar.popnn.recurrent.gru_backward import (
    auGruBwd,
    auGruBwdWithWU,
    auGruWU,
    gruBwd,
    gruBwdWithWU,
    gruWU,
)
from pypoplar.popnn.recurrent.gru_costs import getBasicGruCellBwdFlops, getBasicGruCellFwdFlops, getBasicGruCellWuFlops
from pypoplar.popnn.recurrent.gru_forward import auGruFwd, gruFwd
from pypoplar.popnn.recurrent.gru_operands import (
    createAttention,
    createInitialState,
    createInput,
    createWeights,
    createWeightsBiases,
    createWeightsKernel,
)
from pypoplar.popnn.recurrent.gru_params import GruParams, GruWeights, getDefaultBasicGruCellOrder

__all__ = [
    "GruParams",
    "GruWeights",
    "auGruBwd",
    "auGruBwdWithWU",
    "auGruFwd",
    "auGruWU",
    "createAttention",
    "createInitialState",
    "createInput",
    "createWeights",
    "createWeightsBiases",
    "createWeightsKernel",
    "getBasicGruCellBwdFlops",
    "getBasicGruCellFwdFlops",
    "getBasicGruCellWuFlops",
    "getDefaultBasicGruCellOrder",
    "gruBwd",
    "gruBwdWithWU",
    "gruFwd",
    "gruWU",
]
