"""Tensors of LSTM layers: inputs, states, weights."""

from __future__ import annotations

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.matmul.matmul_operands import createMatMulInputLHS, createMatMulInputRHS
from pypoplar.poplin.planning_cache import PlanningCache, check_cache
from pypoplar.popnn.recurrent.lstm_params import UNITS, LstmParams, LstmState, LstmWeights, check_params
from pypoplar.popnn.recurrent.recurrent_operands import check_shaped, one_by_one
from pypoplar.popnn.recurrent.recurrent_options import Options, RecurrentOptions
from pypoplar.popnn.recurrent.step_layout import StepLayout
from pypoplar.popops.elements.fill import zero
from pypoplar.poputil.arguments import check_call, check_debug
from pypoplar.poputil.naming import below
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.program import Sequence
from pypoplar.tracebacks import public


@public
def createInput(
    graph: Graph,
    params: LstmParams,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor for the input of a layer, all steps of an element on one tile.

    With the option ``preCalcWeights`` it lies as the left operand of the product of all steps.

    Parameters
    ----------
    params:
        The layer's parameters.
    options:
        Of all calls of `popnn.lstm`:

        - ``availableMemoryProportion`` and ``partialsType`` ("float", or "half"): of the products, as in `poplin.matMul`.
        - ``inferenceOnly`` (false): nothing is kept for a backward pass.
        - ``preCalcWeights`` (false): the input of all steps is multiplied by its weights at once, before the loop.
        - ``recomputationMode`` ("none"): "cellAndTanh" keeps four matrices of a step instead of six and computes the others
          again in the backward pass; "full" is `MissingFeature`.
        - ``weightAccumulatorsType``, ``rnnStepsPerWU``, ``disableWUPartialInterleaving``, ``numShards`` and ``rnnCodeReuse``:
          they change nothing. The weights' gradients are one product of all steps, whose sums ``partialsType`` rules, and
          sequences are spread over all tiles.
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
    call = "popnn.lstm.createInput"
    chosen = _read(call, graph, params, debugContext, options, planningCache)
    steps, batch, size = params.rnn.maxTimeSteps, params.rnn.batchSize, params.rnn.layerSizes[0]
    debug = below(debugContext, "input")
    if chosen.weighs_first:
        left, right = [steps * batch, size], [size, UNITS * params.rnn.layerSizes[1]]
        matrix = createMatMulInputLHS(graph, params.rnn.dataType, left, right, debug, chosen.forward, planningCache)
        return matrix.reshape([steps, batch, size])
    layout = StepLayout.of(graph, 1, batch, size)
    return layout.shaped(layout.create(graph, params.rnn.dataType, steps, debug)).squeeze([1])


@public
def createInitialOutput(
    graph: Graph,
    params: LstmParams,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor for the output before the first step; it holds nothing yet.

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
        [batch, layerSizes[1]], with tiles.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    _read("popnn.lstm.createInitialOutput", graph, params, debugContext, options, planningCache)
    return _state(graph, params, below(debugContext, "initialOutput"))


@public
def createInitialCellState(
    graph: Graph,
    params: LstmParams,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor for the cell state before the first step; it holds nothing yet.

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
        [batch, layerSizes[1]], with tiles.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    _read("popnn.lstm.createInitialCellState", graph, params, debugContext, options, planningCache)
    return _state(graph, params, below(debugContext, "initialCellState"))


@public
def createInitialState(
    graph: Graph,
    params: LstmParams,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> LstmState:
    """The new tensors of `createInitialOutput` and `createInitialCellState`; `zeroInitialState` fills both.

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
    LstmState
        Output and cell state, which hold nothing yet.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    _read("popnn.lstm.createInitialState", graph, params, debugContext, options, planningCache)
    output, cell = (_state(graph, params, below(debugContext, name)) for name in ("initialOutput", "initialCellState"))
    return LstmState(output, cell)


@public
def zeroInitialState(graph: Graph, initialState: LstmState, prog: Sequence, debugContext: str | None = None) -> None:
    """Extend `prog` by what fills both tensors of a state with zeros.

    Parameters
    ----------
    initialState:
        What is written.

    Raises
    ------
    PoplarTypeError
        For what is no `LstmState`.
    PoplibsError
        If one of its parts is None.
    """
    call = "popnn.lstm.zeroInitialState"
    check_call(call, graph, prog, debugContext)
    given: object = initialState
    if not isinstance(given, LstmState):
        raise PoplarTypeError(f"{call}: initialState is a popnn.lstm.LstmState, got {given!r}")
    zero(graph, initialState.getAsTensor(), prog, below(debugContext, "zeroInitialState"))


@public
def createWeightsKernel(
    graph: Graph,
    params: LstmParams,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor | None, Tensor]:
    """New weights of the input and of the output before, which lie as the products of a step need them.

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
    tuple[Tensor | None, Tensor]
        [4, layerSizes[0], layerSizes[1]] and [4, layerSizes[1], layerSizes[1]], with tiles. The first is None with
        ``preCalcWeights`` and without ``params.doInputWeightCalc``.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    chosen = _read("popnn.lstm.createWeightsKernel", graph, params, debugContext, options, planningCache)
    type, steps, batch = params.rnn.dataType, params.rnn.maxTimeSteps, params.rnn.batchSize
    size, out = params.rnn.layerSizes

    def weights(rows: int, inner: int, name: str) -> Tensor:
        shapes = [rows, inner], [inner, UNITS * out]
        return createMatMulInputRHS(graph, type, *shapes, below(debugContext, name), chosen.forward, planningCache)

    if chosen.weighs_first:
        of_input = one_by_one(weights(steps * batch, size, "weightsIn"), UNITS) if params.doInputWeightCalc else None
        return of_input, one_by_one(weights(batch, out, "weightsOut"), UNITS)
    both = weights(batch, size + out, "weights")
    return one_by_one(both.slice(0, size), UNITS), one_by_one(both.slice(size, size + out), UNITS)


@public
def createWeightsBiases(
    graph: Graph,
    params: LstmParams,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """New biases of the four units of a layer; they hold nothing yet.

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
        [4, layerSizes[1]], with tiles.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    _read("popnn.lstm.createWeightsBiases", graph, params, debugContext, options, planningCache)
    biases = graph.addVariable(params.rnn.dataType, [UNITS, params.rnn.layerSizes[1]], below(debugContext, "biases"))
    mapTensorLinearly(graph, biases)
    return biases


@public
def createWeights(
    graph: Graph,
    params: LstmParams,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> LstmWeights:
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
    LstmWeights
        Weights and biases, which hold nothing yet.

    Raises
    ------
    PoplibsError
        For parameters that make no layer.
    """
    of_input, of_output = createWeightsKernel(graph, params, debugContext, options, planningCache)
    return LstmWeights(of_input, of_output, createWeightsBiases(graph, params, debugContext, options, planningCache))


def check_state(call: str, graph: Graph, params: LstmParams, name: str, state: object) -> tuple[Tensor, Tensor]:
    """Output and cell state of an argument."""
    shape, type = [params.rnn.batchSize, params.rnn.layerSizes[1]], params.rnn.dataType
    parts = (getattr(state, "output", None), getattr(state, "cellState", None))
    output, cell = (
        check_shaped(call, graph, f"{name}.{part}", tensor, type, shape, "[batch, out]")
        for part, tensor in zip(("output", "cellState"), parts, strict=True)
    )
    return output, cell


def check_weights(call: str, graph: Graph, params: LstmParams, weights: object) -> None:
    """`PoplibsError` unless weights and biases are those of the layer."""
    if not isinstance(weights, LstmWeights):
        raise PoplarTypeError(f"{call}: weights is a popnn.lstm.LstmWeights, got {weights!r}")
    (size, out), type = params.rnn.layerSizes, params.rnn.dataType
    if params.doInputWeightCalc:
        check_shaped(call, graph, "weights.inputWeights", weights.inputWeights, type, [UNITS, size, out], "[units, in, out]")
    check_shaped(call, graph, "weights.outputWeights", weights.outputWeights, type, [UNITS, out, out], "[units, out, out]")
    check_shaped(call, graph, "weights.biases", weights.biases, type, [UNITS, out], "[units, out]")


def kernel(weights: LstmWeights) -> Tensor:
    """Both kinds of weights as one tensor [units, in + out, out]."""
    assert weights.inputWeights is not None
    assert weights.outputWeights is not None
    return concat(weights.inputWeights, weights.outputWeights, 1)


def _state(graph: Graph, params: LstmParams, debug: str) -> Tensor:
    layout = StepLayout.of(graph, 1, params.rnn.batchSize, params.rnn.layerSizes[1])
    return layout.shaped(layout.create(graph, params.rnn.dataType, 1, debug))[0][0]


def _read(
    call: str, graph: Graph, params: LstmParams, debugContext: str | None, options: Options, cache: PlanningCache | None
) -> RecurrentOptions:
    check_params(call, graph, params)
    check_debug(call, debugContext)
    check_cache(call, cache)
    return RecurrentOptions.lstm(call, options)
