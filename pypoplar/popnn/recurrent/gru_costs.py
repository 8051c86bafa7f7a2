"""Floating point operations of GRU layers."""

from __future__ import annotations

from pypoplar.errors import PoplarTypeError
from pypoplar.popnn.recurrent.gru_params import GRU_UNITS, GruParams
from pypoplar.tracebacks import public


@public
def getBasicGruCellFwdFlops(params: GruParams) -> int:
    """The operations of a forward pass; non-linearities do not count.

    Parameters
    ----------
    params:
        The layer's parameters.

    Returns
    -------
    int
        Those of the products, and 5 for each element of an output.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    _check("popnn.gru.getBasicGruCellFwdFlops", params)
    return _outputs(params) * (2 * GRU_UNITS * sum(params.rnn.layerSizes) + 5)


@public
def getBasicGruCellBwdFlops(params: GruParams) -> int:
    """The operations of a backward pass; non-linearities do not count.

    Parameters
    ----------
    params:
        The layer's parameters.

    Returns
    -------
    int
        Those of the products, and 8 for each element of an output.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    _check("popnn.gru.getBasicGruCellBwdFlops", params)
    size, out = params.rnn.layerSizes
    read = out + (size if params.calcInputGradients else 0)
    return _outputs(params) * (2 * GRU_UNITS * read + 8)


@public
def getBasicGruCellWuFlops(params: GruParams) -> int:
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
    _check("popnn.gru.getBasicGruCellWuFlops", params)
    return _outputs(params) * 2 * GRU_UNITS * (sum(params.rnn.layerSizes) + 1)


def _outputs(params: GruParams) -> int:
    """Elements of the outputs of all steps."""
    return params.rnn.maxTimeSteps * params.rnn.batchSize * params.rnn.layerSizes[1]


def _check(call: str, params: object) -> None:
    if not isinstance(params, GruParams):
        raise PoplarTypeError(f"{call}: params is a popnn.gru.GruParams, got {params!r}")
    params.rnn.check(call)
