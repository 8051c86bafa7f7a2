"""Floating point operations of LSTM layers, and the products that they plan."""

from __future__ import annotations

from pypoplar.errors import PoplarTypeError
from pypoplar.poplin.fc import FullyConnectedParams
from pypoplar.poplin.fc import getMatMulPrePlanParameters as layer_products
from pypoplar.poplin.matmul.matmul_params import MatMulParams
from pypoplar.popnn.recurrent.lstm_params import UNITS, LstmParams
from pypoplar.popnn.recurrent.recurrent_options import Options, RecurrentOptions
from pypoplar.tracebacks import public


@public
def getMatMulPrePlanParameters(params: LstmParams, opts: Options) -> list[tuple[MatMulParams, dict[str, object]]]:
    """The products of a step, for `poplin.preplan`.

    They are those of the forward pass and, unless ``inferenceOnly``, of the backward pass and of the weight update, of input
    and output together (PopLibs: twice the input).

    Parameters
    ----------
    params:
        The layer's parameters.
    opts:
        Options as for `createInput`.

    Returns
    -------
    list[tuple[MatMulParams, dict[str, object]]]
        Parameters and options of each product.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    call = "popnn.lstm.getMatMulPrePlanParameters"
    _check(call, params)
    chosen, (size, out) = RecurrentOptions.lstm(call, opts), params.rnn.layerSizes
    layer = FullyConnectedParams(1, params.rnn.batchSize, size + out, UNITS * out)
    return layer_products(layer, chosen.products, params.rnn.dataType, chosen.inference_only)


@public
def getBasicLstmCellFwdFlops(params: LstmParams) -> int:
    """The operations of a forward pass; non-linearities do not count.

    Parameters
    ----------
    params:
        The layer's parameters.

    Returns
    -------
    int
        Those of the products, and 4 for each element of an output.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    _check("popnn.lstm.getBasicLstmCellFwdFlops", params)
    size, out = params.rnn.layerSizes
    read = out + (size if params.doInputWeightCalc else 0)
    return _outputs(params) * (2 * UNITS * read + 4)


@public
def getBasicLstmCellBwdFlops(params: LstmParams) -> int:
    """The operations of a backward pass; non-linearities do not count.

    Parameters
    ----------
    params:
        The layer's parameters.

    Returns
    -------
    int
        Those of the products, and 6 for each element of an output.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    _check("popnn.lstm.getBasicLstmCellBwdFlops", params)
    size, out = params.rnn.layerSizes
    read = out + (size if params.calcInputGradients else 0)
    return _outputs(params) * (2 * UNITS * read + 6)


@public
def getBasicLstmCellWuFlops(params: LstmParams) -> int:
    """The operations of the gradients of weights and biases.

    Parameters
    ----------
    params:
        The layer's parameters.

    Returns
    -------
    int
        Floating point operations.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    _check("popnn.lstm.getBasicLstmCellWuFlops", params)
    return _outputs(params) * 2 * UNITS * (sum(params.rnn.layerSizes) + 1)


def _outputs(params: LstmParams) -> int:
    """Elements of the outputs of all steps."""
    return params.rnn.maxTimeSteps * params.rnn.batchSize * params.rnn.layerSizes[1]


def _check(call: str, params: object) -> None:
    if not isinstance(params, LstmParams):
        raise PoplarTypeError(f"{call}: params is a popnn.lstm.LstmParams, got {params!r}")
    params.rnn.check(call)
