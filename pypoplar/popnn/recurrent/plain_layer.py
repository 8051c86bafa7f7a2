"""Recurrent layers without gates: their tensors, what they cost, and the options of their products."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.fc import FullyConnectedParams
from pypoplar.poplin.fc import getMatMulPrePlanParameters as layer_products
from pypoplar.poplin.matmul.matmul_operands import createMatMulInputLHS, createMatMulInputRHS
from pypoplar.poplin.matmul.matmul_params import MatMulParams
from pypoplar.poplin.planning_cache import PlanningCache, check_cache
from pypoplar.popnn.recurrent.recurrent_options import RecurrentOptions
from pypoplar.popnn.recurrent.rnn_params import REALS
from pypoplar.popnn.recurrent.step_layout import StepLayout
from pypoplar.popops.elements.fill import zero
from pypoplar.poputil.arguments import (
    check_call,
    check_debug,
    check_flag,
    check_graph,
    check_tensor,
    whole_number,
)
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, ElementType, check_type


@public
def getMatMulPrePlanParameters(
    numSteps: int,
    batchSize: int,
    inputSize: int,
    outputSize: int,
    dType: ElementType,
    partialsType: ElementType = FLOAT,
    inferenceOnly: bool = False,
    hasFeedforwardWeights: bool = True,
) -> list[tuple[MatMulParams, dict[str, object]]]:
    """The products of a step of a plain recurrent layer, for `poplin.preplan`.

    Parameters
    ----------
    numSteps:
        How many steps there are.
    batchSize:
        How many samples there are.
    inputSize:
        Elements that go in.
    outputSize:
        Elements that come out.
    dType:
        FLOAT or HALF.
    partialsType:
        The type of partial sums of products, FLOAT or HALF.
    inferenceOnly:
        Whether products of the forward pass are all.
    hasFeedforwardWeights:
        Whether the input is multiplied.

    Returns
    -------
    list[tuple[MatMulParams, dict[str, object]]]
        Parameters and options of each product.

    Raises
    ------
    PoplibsError
        For other types and sizes.
    """
    call = "popnn.rnn.getMatMulPrePlanParameters"
    sizes = _sizes(call, numSteps=numSteps, batchSize=batchSize, inputSize=inputSize, outputSize=outputSize)
    options = plain_options(call, partialsType, inferenceOnly)
    check_flag(call, "hasFeedforwardWeights", hasFeedforwardWeights)
    read = [sizes[2], sizes[3]] if hasFeedforwardWeights else [sizes[3]]
    layers = [FullyConnectedParams(1, sizes[1], size, sizes[3]) for size in read]
    return [product for layer in layers for product in layer_products(layer, options.products, dType, inferenceOnly)]


@public
def getFwdFlops(sequenceSize: int, batchSize: int, inputSize: int, outputSize: int, weightInput: bool = True) -> int:
    """The operations of a plain layer's forward pass, non-linearities not counted.

    Parameters
    ----------
    sequenceSize:
        How many steps there are.
    batchSize:
        How many samples there are.
    inputSize:
        Elements that go in.
    outputSize:
        Elements that come out.
    weightInput:
        Whether the input is multiplied.

    Returns
    -------
    int
        Floating point operations.
    """
    steps, batch, size, out = _layer_sizes("popnn.rnn.getFwdFlops", sequenceSize, batchSize, inputSize, outputSize)
    check_flag("popnn.rnn.getFwdFlops", "weightInput", weightInput)
    return steps * batch * out * (2 * out - 1 + (2 * size - 1) * weightInput) + 2 * steps * out


@public
def getBwdFlops(sequenceSize: int, batchSize: int, inputSize: int, outputSize: int, calcInputGrad: bool = True) -> int:
    """The operations of a plain layer's backward pass, non-linearities not counted.

    Parameters
    ----------
    sequenceSize:
        How many steps there are.
    batchSize:
        How many samples there are.
    inputSize:
        Elements that go in.
    outputSize:
        Elements that come out.
    calcInputGrad:
        Whether the gradient of the input is computed.

    Returns
    -------
    int
        Floating point operations.
    """
    steps, batch, size, out = _layer_sizes("popnn.rnn.getBwdFlops", sequenceSize, batchSize, inputSize, outputSize)
    check_flag("popnn.rnn.getBwdFlops", "calcInputGrad", calcInputGrad)
    return steps * batch * out * (2 * out - 1 + (2 * size - 1) * calcInputGrad)


@public
def getWuFlops(sequenceSize: int, batchSize: int, inputSize: int, outputSize: int) -> int:
    """The operations of the gradients of a plain layer's weights and biases, and of their update.

    Parameters
    ----------
    sequenceSize:
        How many steps there are.
    batchSize:
        How many samples there are.
    inputSize:
        Elements that go in.
    outputSize:
        Elements that come out.

    Returns
    -------
    int
        Floating point operations.
    """
    steps, batch, size, out = _layer_sizes("popnn.rnn.getWuFlops", sequenceSize, batchSize, inputSize, outputSize)
    samples, weights = steps * batch, out * (size + out)
    return samples * weights + (samples - 1) * (weights + out) + weights + out


@public
def createInput(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    numSteps: int,
    batchSize: int,
    inputSize: int,
    outputSize: int,
    dType: ElementType,
    partialsType: ElementType = FLOAT,
    inferenceOnly: bool = False,
    debugContext: str | None = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor for the input of a plain layer, which lies as the left operand of the product of all steps.

    Parameters
    ----------
    numSteps:
        How many steps there are.
    batchSize:
        How many samples there are.
    inputSize:
        Elements that go in.
    outputSize:
        Elements that come out.
    dType:
        FLOAT or HALF.
    partialsType:
        The type of partial sums of products, FLOAT or HALF.
    inferenceOnly:
        Whether there is no backward pass; plans are the same.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    Tensor
        [numSteps, batchSize, inputSize], with tiles.

    Raises
    ------
    PoplibsError
        For other types and sizes.
    """
    call = "popnn.rnn.createInput"
    steps, batch, size, out = _sizes(call, numSteps=numSteps, batchSize=batchSize, inputSize=inputSize, outputSize=outputSize)
    options = _created(call, graph, dType, partialsType, inferenceOnly, debugContext, planningCache)
    left, debug = [steps * batch, size], below(debugContext, "input")
    return createMatMulInputLHS(graph, dType, left, [size, out], debug, options.forward, planningCache).reshape(
        [steps, batch, size]
    )


@public
def createFwdState(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    dType: ElementType,
    batchSize: int,
    outputSize: int,
    prog: Sequence,
    initState: bool,
    inferenceOnly: bool,
    debugContext: str | None = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """A new state of a plain layer, the output before the first step.

    Parameters
    ----------
    dType:
        FLOAT or HALF.
    batchSize:
        How many samples there are.
    outputSize:
        Elements that come out.
    initState:
        Whether `prog` is extended by what fills it with zeros.
    inferenceOnly:
        It changes nothing.
    planningCache:
        It is checked, and not used.

    Returns
    -------
    Tensor
        [batchSize, outputSize], with tiles.

    Raises
    ------
    PoplibsError
        For other types and sizes.
    """
    call = "popnn.rnn.createFwdState"
    check_flag(call, "initState", initState)
    return _state(call, graph, dType, [batchSize, outputSize], prog, initState, inferenceOnly, debugContext, planningCache)


@public
def createBwdState(
    graph: Graph,
    dType: ElementType,
    batchSize: int,
    outputSize: int,
    prog: Sequence,
    debugContext: str | None = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """A new state for `backwardGradientStep`; `prog` is extended by what fills it with zeros.

    Parameters
    ----------
    dType:
        FLOAT or HALF.
    batchSize:
        How many samples there are.
    outputSize:
        Elements that come out.
    planningCache:
        It is checked, and not used.

    Returns
    -------
    Tensor
        [batchSize, outputSize], with tiles.

    Raises
    ------
    PoplibsError
        For other types and sizes.
    """
    call = "popnn.rnn.createBwdState"
    return _state(call, graph, dType, [batchSize, outputSize], prog, True, False, debugContext, planningCache)


@public
def getOutputFromFwdState(fwdState: Tensor) -> Tensor:
    """The output that a state of a plain layer holds.

    Parameters
    ----------
    fwdState:
        The state.

    Returns
    -------
    Tensor
        The state itself.
    """
    check_tensor("popnn.rnn.getOutputFromFwdState", fwdState, "fwdState")
    return fwdState


@public
def createWeightsInput(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    sequenceSize: int,
    batchSize: int,
    inputSize: int,
    outputSize: int,
    dType: ElementType,
    partialsType: ElementType = FLOAT,
    inferenceOnly: bool = False,
    debugContext: str | None = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """New weights of a plain layer's input, which lie as the product of all steps needs them.

    Parameters
    ----------
    sequenceSize:
        How many steps there are.
    batchSize:
        How many samples there are.
    inputSize:
        Elements that go in.
    outputSize:
        Elements that come out.
    dType:
        FLOAT or HALF.
    partialsType:
        The type of partial sums of products, FLOAT or HALF.
    inferenceOnly:
        Whether there is no backward pass; plans are the same.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    Tensor
        [inputSize, outputSize], with tiles.

    Raises
    ------
    PoplibsError
        For other types and sizes.
    """
    call = "popnn.rnn.createWeightsInput"
    steps, batch, size, out = _layer_sizes(call, sequenceSize, batchSize, inputSize, outputSize)
    options = _created(call, graph, dType, partialsType, inferenceOnly, debugContext, planningCache)
    left, debug = [steps * batch, size], below(debugContext, "weightsInput")
    return createMatMulInputRHS(graph, dType, left, [size, out], debug, options.forward, planningCache)


@public
def createWeightsFeedback(
    graph: Graph,
    batchSize: int,
    outputSize: int,
    dType: ElementType,
    partialsType: ElementType = FLOAT,
    inferenceOnly: bool = False,
    debugContext: str | None = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """New weights of a plain layer's output before, which lie as the product of a step needs them.

    Parameters
    ----------
    batchSize:
        How many samples there are.
    outputSize:
        Elements that come out.
    dType:
        FLOAT or HALF.
    partialsType:
        The type of partial sums of products, FLOAT or HALF.
    inferenceOnly:
        Whether there is no backward pass; plans are the same.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    Tensor
        [outputSize, outputSize], with tiles.

    Raises
    ------
    PoplibsError
        For other types and sizes.
    """
    call = "popnn.rnn.createWeightsFeedback"
    batch, out = _sizes(call, batchSize=batchSize, outputSize=outputSize)
    options = _created(call, graph, dType, partialsType, inferenceOnly, debugContext, planningCache)
    debug = below(debugContext, "weightsFeedback")
    return createMatMulInputRHS(graph, dType, [batch, out], [out, out], debug, options.forward, planningCache)


def _sizes(call: str, **sizes: int) -> list[int]:
    return [whole_number(call, name, size, 1) for name, size in sizes.items()]


def _layer_sizes(call: str, steps: int, batchSize: int, inputSize: int, outputSize: int) -> list[int]:
    return _sizes(call, sequenceSize=steps, batchSize=batchSize, inputSize=inputSize, outputSize=outputSize)


def plain_options(call: str, partialsType: ElementType, inferenceOnly: bool) -> RecurrentOptions:
    """The options of the products of a layer; `PoplibsError` for a type of partial sums that there is not."""
    check_flag(call, "inferenceOnly", inferenceOnly)
    if check_type(partialsType) not in REALS:
        raise PoplibsError(f"{call}: partialsType is FLOAT or HALF, got {partialsType!r}")
    return RecurrentOptions({"partialsType": partialsType.spelling}, inferenceOnly)


def _created(
    call: str,
    graph: Graph,
    dType: ElementType,
    partialsType: ElementType,
    inferenceOnly: bool,
    debugContext: str | None,
    cache: PlanningCache | None,
) -> RecurrentOptions:
    """The options of the products of a call that makes a tensor."""
    check_graph(call, graph)
    check_debug(call, debugContext)
    check_cache(call, cache)
    if check_type(dType) not in REALS:
        raise PoplibsError(f"{call}: dType is FLOAT or HALF, got {dType!r}")
    return plain_options(call, partialsType, inferenceOnly)


def _state(  # noqa: PLR0913 (as the calls)
    call: str,
    graph: Graph,
    dType: ElementType,
    shape: list[int],
    prog: Sequence,
    filled: bool,
    inferenceOnly: bool,
    debugContext: str | None,
    cache: PlanningCache | None,
) -> Tensor:
    check_call(call, graph, prog, debugContext)
    batch, out = _sizes(call, batchSize=shape[0], outputSize=shape[1])
    _created(call, graph, dType, FLOAT, inferenceOnly, debugContext, cache)
    layout, debug = StepLayout.of(graph, 1, batch, out), below(debugContext, call.rpartition("create")[2])
    state = layout.shaped(layout.create(graph, dType, 1, debug))[0][0]
    if filled:
        zero(graph, state, prog, debug)
    return state
