"""What neural networks are made of: non-linearities and losses."""

from typing import TYPE_CHECKING, NoReturn

from pypoplar.popnn import bn, ctc, ctc_infer, experimental, gn, gru, in_, ln, lstm, pooling, rnn
from pypoplar.popnn.codelets import addCodelets
from pypoplar.popnn.losses.accuracy import calcAccuracy
from pypoplar.popnn.losses.best_classes import argMax, argMin, maxAndArgMax, minAndArgMin, topK
from pypoplar.popnn.losses.loss_call import LossType, calcLoss
from pypoplar.popnn.nonlinearities.log_softmax import logSoftmax, logSoftmaxInPlace
from pypoplar.popnn.nonlinearities.nonlinearity_calls import nonLinearity, nonLinearityInPlace
from pypoplar.popnn.nonlinearities.nonlinearity_gradient import nonLinearityInputGradient
from pypoplar.popnn.nonlinearities.nonlinearity_type import NonLinearityType
from pypoplar.popnn.nonlinearities.short_names import (
    gelu,
    geluErf,
    geluErfInPlace,
    geluInPlace,
    relu,
    reluInPlace,
    scaledSoftmaxStable,
    scaledSoftmaxStableInPlace,
    sigmoid,
    sigmoidInPlace,
    softmax,
    softmaxInPlace,
    softmaxStable,
    softmaxStableInPlace,
    swish,
    swishInPlace,
    tanh,
    tanhInPlace,
)
from pypoplar.popnn.nonlinearities.spatial_softmax import spatialSoftMax2D
from pypoplar.popnn.norms.layer_parameters import createNormBeta, createNormGamma, createNormParams
from pypoplar.popnn.norms.norm_flops import getNormBwdFlops, getNormFwdFlops, getNormWuFlops
from pypoplar.popnn.pooling.pool_params import PoolingType
from pypoplar.popnn.recurrent.gru_params import BasicGruCellUnit
from pypoplar.popnn.recurrent.lstm_params import BasicLstmCellUnit
from pypoplar.poputil.absent_members import absent_member

__all__ = [
    "addCodelets",
    # non-linearities
    "NonLinearityType",
    "nonLinearity",
    "nonLinearityInPlace",
    "nonLinearityInputGradient",
    "logSoftmax",
    "logSoftmaxInPlace",
    "sigmoid",
    "sigmoidInPlace",
    "relu",
    "reluInPlace",
    "tanh",
    "tanhInPlace",
    "gelu",
    "geluInPlace",
    "geluErf",
    "geluErfInPlace",
    "swish",
    "swishInPlace",
    "softmax",
    "softmaxInPlace",
    "softmaxStable",
    "softmaxStableInPlace",
    "scaledSoftmaxStable",
    "scaledSoftmaxStableInPlace",
    "spatialSoftMax2D",
    # pooling
    "PoolingType",
    "pooling",
    # losses
    "LossType",
    "argMax",
    "argMin",
    "calcAccuracy",
    "calcLoss",
    "maxAndArgMax",
    "minAndArgMin",
    "topK",
    "ctc",
    "ctc_infer",
    # norms
    "bn",
    "createNormBeta",
    "createNormGamma",
    "createNormParams",
    "getNormBwdFlops",
    "getNormFwdFlops",
    "getNormWuFlops",
    "gn",
    "in_",
    "ln",
    # recurrent layers
    "BasicGruCellUnit",
    "BasicLstmCellUnit",
    "gru",
    "lstm",
    "rnn",
    # regions of images
    "experimental",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise absent_member(__name__, name, __all__)
