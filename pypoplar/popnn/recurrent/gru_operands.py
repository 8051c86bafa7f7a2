"""Tensors of GRU layers: inputs, states, weights, attention scores."""

from __future__ import annotations

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.matmul.matmul_operands import createMatMulInputLHS, createMatMulInputRHS
from pypoplar.poplin.planning_cache import PlanningCache, check_cache
from pypoplar.popnn.recurrent.gru_params import GRU_UNITS, GruParams, GruWeights, check_gru
from pypoplar.popnn.recurrent.recurrent_operands import check_shaped, one_by_one
from pypoplar.popnn.recurrent.recurrent_options import Options, RecurrentOptions
from pypoplar.popnn.recurrent.step_layout import StepLayout
from pypoplar.poputil.arguments import check_debug
from pypoplar.poputil.naming import below
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.tracebacks import public


@public
def createInput(
    graph: Graph,
    params: GruParams,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor for the input of a layer, which lies as the left operand of the product of all steps.

    Parameters
    ----------
    params:
        The layer's parameters.
    options:
        Of all calls of `popnn.gru`:

        - ``availableMemoryProportion`` and ``partialsType`` ("float", or "half"): of the products, as in `poplin.matMul`.
        - ``inferenceOnly`` (true): nothing is kept for a backward pass.
        - ``numShards`` and ``rnnCodeReuse``: they change nothing, sequences are spread over all tiles.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    Tensor
        [steps, batch, layerSizes[0]], with tiles.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    chosen = _read("popnn.gru.createInput", graph, params, debugContext, options, planningCache)
    steps, batch, (size, out) = params.rnn.maxTimeSteps, params.rnn.batchSize, params.rnn.layerSizes
    left, right = [steps * batch, size], [size, GRU_UNITS * out]
    debug = below(debugContext, "input")
    matrix = createMatMulInputLHS(graph, params.rnn.dataType, left, right, debug, chosen.forward, planningCache)
    return matrix.reshape([steps, batch, size])


@public
def createInitialState(
    graph: Graph,
    params: GruParams,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor for the output before the first step; it holds nothing yet.

    Parameters
    ----------
    params:
        The layer's parameters.
    options:
        As for `createInput`.
    cache:
        It is checked, and not used.

    Returns
    -------
    Tensor
        [batch, layerSizes[1]], with tiles.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    _read("popnn.gru.createInitialState", graph, params, debugContext, options, cache)
    layout = StepLayout.of(graph, 1, params.rnn.batchSize, params.rnn.layerSizes[1])
    return layout.shaped(layout.create(graph, params.rnn.dataType, 1, below(debugContext, "initialOutput")))[0][0]


@public
def createWeightsKernel(
    graph: Graph,
    params: GruParams,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor]:
    """New weights of the input and of the output before, which lie as the products need them.

    Parameters
    ----------
    params:
        The layer's parameters.
    options:
        As for `createInput`.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    tuple[Tensor, Tensor]
        [3, layerSizes[0], layerSizes[1]] and [3, layerSizes[1], layerSizes[1]], with tiles.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    chosen = _read("popnn.gru.createWeightsKernel", graph, params, debugContext, options, planningCache)
    type, steps, batch = params.rnn.dataType, params.rnn.maxTimeSteps, params.rnn.batchSize
    size, out = params.rnn.layerSizes

    def weights(rows: int, inner: int, units: int, name: str) -> Tensor:
        shapes = [rows, inner], [inner, units * out]
        matrix = createMatMulInputRHS(graph, type, *shapes, below(debugContext, name), chosen.forward, planningCache)
        return one_by_one(matrix, units)

    of_input = weights(steps * batch, size, GRU_UNITS, "weightsIn")
    if params.resetAfter:
        return of_input, weights(batch, out, GRU_UNITS, "weightsOut")
    both = concat(weights(batch, out, 2, "weightsOfGates"), weights(batch, out, 1, "weightsOfCandidate"))
    return of_input, concat([both[int(unit)].expand([0]) for unit in params.cellOrder])


@public
def createWeightsBiases(
    graph: Graph,
    params: GruParams,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """New biases of the three units of a layer; they hold nothing yet.

    Parameters
    ----------
    params:
        The layer's parameters.
    options:
        As for `createInput`.
    planningCache:
        It is checked, and not used.

    Returns
    -------
    Tensor
        [3, layerSizes[1]], or with ``params.resetAfter`` [3, 2, layerSizes[1]], with tiles.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    _read("popnn.gru.createWeightsBiases", graph, params, debugContext, options, planningCache)
    biases = graph.addVariable(params.rnn.dataType, _biases_shape(params), below(debugContext, "biases"))
    mapTensorLinearly(graph, biases)
    return biases


@public
def createWeights(
    graph: Graph,
    params: GruParams,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> GruWeights:
    """The new tensors of `createWeightsKernel` and `createWeightsBiases`.

    Parameters
    ----------
    params:
        The layer's parameters.
    options:
        As for `createInput`.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    GruWeights
        Weights and biases, which hold nothing yet.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    of_input, of_output = createWeightsKernel(graph, params, debugContext, options, planningCache)
    return GruWeights(of_input, of_output, createWeightsBiases(graph, params, debugContext, options, planningCache))


@public
def createAttention(graph: Graph, params: GruParams, debugContext: str | None = None, options: Options = None) -> Tensor:
    """A new tensor for attention scores of `auGruFwd`, all steps of a sample on one tile.

    Parameters
    ----------
    params:
        The layer's parameters.
    options:
        As for `createInput`.

    Returns
    -------
    Tensor
        [batch, steps], with tiles.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    _read("popnn.gru.createAttention", graph, params, debugContext, options, None)
    layout = StepLayout.of(graph, 1, params.rnn.batchSize, 1)
    rows = layout.create(graph, params.rnn.dataType, params.rnn.maxTimeSteps, below(debugContext, "attention"))
    return layout.shaped(rows).reshape([params.rnn.maxTimeSteps, params.rnn.batchSize]).transpose()


def _biases_shape(params: GruParams) -> list[int]:
    out = params.rnn.layerSizes[1]
    return [GRU_UNITS, 2, out] if params.resetAfter else [GRU_UNITS, out]


@frozen
class GruMatrices:
    """The weights and biases of a layer, checked, units in the order reset gate, update gate, candidate."""

    of_input: Tensor
    of_output: Tensor
    biases: Tensor  # [units, 1 or 2, out]

    @staticmethod
    def of(call: str, graph: Graph, params: GruParams, weights: GruWeights) -> GruMatrices:
        """`PoplibsError` unless weights and biases are those of the layer."""
        (size, out), type = params.rnn.layerSizes, params.rnn.dataType
        shapes = {
            "inputWeights": ([GRU_UNITS, size, out], "[units, in, out]"),
            "outputWeights": ([GRU_UNITS, out, out], "[units, out, out]"),
            "biases": (_biases_shape(params), "[units, 2, out]" if params.resetAfter else "[units, out]"),
        }
        given = [
            check_shaped(call, graph, f"weights.{name}", getattr(weights, name, None), type, shape, what)
            for name, (shape, what) in shapes.items()
        ]
        ordered = [concat([tensor[place].expand([0]) for place in params.places]) for tensor in given]
        return GruMatrices(ordered[0], ordered[1], ordered[2].reshape([GRU_UNITS, -1, out]))


def _read(
    call: str, graph: Graph, params: GruParams, debugContext: str | None, options: Options, cache: PlanningCache | None
) -> RecurrentOptions:
    check_gru(call, graph, params)
    check_debug(call, debugContext)
    check_cache(call, cache)
    return RecurrentOptions.gru(call, options)
