"""The older calls of recurrent layers without gates: `act(x Wi + h Wf + b)` for a step, and for a sequence of them."""

from __future__ import annotations

from typing import overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.matmul.mat_mul import matMul, matMulAcc
from pypoplar.poplin.matmul.matmul_operands import preArrangeMatMulInputRHS
from pypoplar.poplin.planning_cache import PlanningCache
from pypoplar.popnn.nonlinearities.nonlinearity_type import NonLinearityType
from pypoplar.popnn.recurrent.cell_functions import BACKWARD, FUNCTIONS, check_activation
from pypoplar.popnn.recurrent.plain_layer import plain_options
from pypoplar.popnn.recurrent.recurrent_operands import check_shaped, copied, previous_steps
from pypoplar.popnn.recurrent.recurrent_options import RecurrentOptions
from pypoplar.popnn.recurrent.recurrent_products import bias_gradients, input_gradients, weight_products
from pypoplar.popnn.recurrent.rnn_params import REALS, RnnParams
from pypoplar.popnn.recurrent.step_layout import StepLayout
from pypoplar.popnn.recurrent.step_loop import StepLoop
from pypoplar.popops.elements.element_functions import addInPlace
from pypoplar.popops.elements.fill import zero
from pypoplar.popops.elements.map_functions import map, mapInPlace
from pypoplar.popops.expr import Expr, _1, _2, _3, _4
from pypoplar.popops.reduction.reduce_call import reduce
from pypoplar.popops.reduction.reduce_params import Operation, ReduceParams
from pypoplar.poputil.arguments import (
    check_call,
    check_flag,
    check_own,
    check_writeable,
)
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, ElementType


@public
def forwardWeightInput(
    graph: Graph,
    actIn: Tensor,
    weights: Tensor,
    prog: Sequence,
    partialsType: ElementType = FLOAT,
    inferenceOnly: bool = False,
    debugContext: str | None = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """The product of the input of all steps and weights; `prog` is extended.

    Parameters
    ----------
    actIn:
        The input, FLOAT or HALF [steps, batch, inputSize].
    weights:
        [inputSize, outputSize] of its type.
    partialsType:
        The type of partial sums of products, FLOAT or HALF.
    inferenceOnly:
        Whether there is no backward pass; plans are the same.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    Tensor
        A new tensor [steps, batch, outputSize].

    Raises
    ------
    PoplibsError
        For other shapes and types.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = "popnn.rnn.forwardWeightInput"
    check_call(call, graph, prog, debugContext)
    options = plain_options(call, partialsType, inferenceOnly)
    steps, batch, size = _sequence(call, graph, "actIn", actIn)
    check_own(call, graph, weights=weights)
    out = weights.dim(1) if weights.rank() == 2 else 1
    check_shaped(call, graph, "weights", weights, actIn.elementType(), [size, out], "[in, out]")
    debug = below(debugContext, "weighInput")
    product = matMul(graph, actIn.reshape([steps * batch, size]), weights, prog, debug, options.forward, planningCache)
    return product.reshape([steps, batch, out])


@public
def forwardIterate(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    feedFwdIn: Tensor,
    initState: Tensor,
    feedbackWeights: Tensor,
    biases: Tensor,
    prog: Sequence,
    nonLinearityType: NonLinearityType,
    partialsType: ElementType = FLOAT,
    inferenceOnly: bool = False,
    debugContext: str | None = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """The outputs of all steps of a plain layer, in one loop; `prog` is extended.

    Parameters
    ----------
    feedFwdIn:
        What `forwardWeightInput` gives, FLOAT or HALF [steps, batch, outputSize].
    initState:
        The output before the first step, [batch, outputSize].
    feedbackWeights:
        The weights of the output before, [outputSize, outputSize].
    biases:
        [outputSize].
    nonLinearityType:
        TANH, SIGMOID, HARD_SIGMOID or RELU.
    partialsType:
        The type of partial sums of products, FLOAT or HALF.
    inferenceOnly:
        Whether there is no backward pass; plans are the same.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    Tensor
        A new tensor [steps, batch, outputSize].

    Raises
    ------
    PoplibsError
        For other shapes and types.
    MissingFeature
        For another non-linearity.
    """
    call = "popnn.rnn.forwardIterate"
    check_call(call, graph, prog, debugContext)
    options = plain_options(call, partialsType, inferenceOnly)
    _sequence(call, graph, "feedFwdIn", feedFwdIn)
    _check_layer(call, graph, feedFwdIn, initState, feedbackWeights, biases, nonLinearityType)
    debug = below(debugContext, "forwardIterate")
    return _forward(
        graph, feedFwdIn, None, initState, feedbackWeights, biases, prog, nonLinearityType, options, planningCache, debug
    )


@public
def rnnFwdSequence(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    prog: Sequence,
    fwdStateInit: Tensor,
    weightedIn: Tensor | None,
    biases: Tensor,
    feedFwdWeights: Tensor,
    feedbackWeights: Tensor,
    prevLayerActs: Tensor,
    nonLinearityType: NonLinearityType,
    partialsType: ElementType,
    inferenceOnly: bool,
    debugContext: str | None = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """The outputs of all steps of a plain layer, of its input or of the input's product; `prog` is extended.

    Parameters
    ----------
    fwdStateInit:
        The output before the first step, [batch, outputSize].
    weightedIn:
        The product of the input and `feedFwdWeights`, as of `forwardWeightInput`; with None each step computes its own.
    biases:
        [outputSize].
    feedFwdWeights:
        The weights of the input, [inputSize, outputSize].
    feedbackWeights:
        The weights of the output before, [outputSize, outputSize].
    prevLayerActs:
        The input, FLOAT or HALF [steps, batch, inputSize].
    nonLinearityType:
        TANH, SIGMOID, HARD_SIGMOID or RELU.
    partialsType:
        The type of partial sums of products, FLOAT or HALF.
    inferenceOnly:
        Whether there is no backward pass; plans are the same.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    Tensor
        A new tensor [steps, batch, outputSize].

    Raises
    ------
    PoplibsError
        For other shapes and types.
    MissingFeature
        For another non-linearity.
    """
    call = "popnn.rnn.rnnFwdSequence"
    check_call(call, graph, prog, debugContext)
    options = plain_options(call, partialsType, inferenceOnly)
    steps, batch, size = _sequence(call, graph, "prevLayerActs", prevLayerActs)
    type, debug = prevLayerActs.elementType(), below(debugContext, "rnnFwdSequence")
    check_own(call, graph, biases=biases)
    out = biases.numElements()
    if weightedIn is not None:
        check_shaped(call, graph, "weightedIn", weightedIn, type, [steps, batch, out], "[steps, batch, out]")
    check_shaped(call, graph, "feedFwdWeights", feedFwdWeights, type, [size, out], "[in, out]")
    given = prevLayerActs if weightedIn is None else weightedIn
    _check_state_and_weights(call, graph, type, batch, fwdStateInit, feedbackWeights, biases, nonLinearityType)
    weights = feedFwdWeights if weightedIn is None else None
    return _forward(
        graph, given, weights, fwdStateInit, feedbackWeights, biases, prog, nonLinearityType, options, planningCache, debug
    )


@overload
def backwardGradientStep(
    graph: Graph,
    nextLayerGrad: Tensor,
    bwdState: Tensor,
    actOut: Tensor,
    weightsInput: Tensor,
    weightsFeedback: Tensor,
    prog: Sequence,
    nonLinearityType: NonLinearityType,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor]: ...


@overload
def backwardGradientStep(
    graph: Graph,
    nextLayerGrad: Tensor,
    bwdState: Tensor,
    actOut: Tensor,
    weightsFeedback: Tensor,
    prog: Sequence,
    nonLinearityType: NonLinearityType,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    planningCache: PlanningCache | None = None,
) -> Tensor: ...


@overloaded("popnn.rnn.backwardGradientStep")
def backwardGradientStep(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    nextLayerGrad: Tensor,
    bwdState: Tensor,
    actOut: Tensor,
    weightsFeedback: Tensor,
    prog: Sequence,
    nonLinearityType: NonLinearityType,
    weightsInput: Tensor | None = None,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor] | Tensor:
    """One step back of a plain layer: the gradient of the input, and the next state; `prog` is extended.

    The state is ``(nextLayerGrad + bwdState weightsFeedback^T)`` times the slope of the non-linearity at the step's output.

    Parameters
    ----------
    nextLayerGrad:
        The gradient of the step's output, [batch, outputSize].
    bwdState:
        The state of the step behind; the first is that of `createBwdState`, [batch, outputSize].
    actOut:
        The step's output, FLOAT or HALF [batch, outputSize].
    weightsFeedback:
        The weights of the output before, [outputSize, outputSize].
    nonLinearityType:
        TANH, SIGMOID, HARD_SIGMOID or RELU.
    weightsInput:
        The weights of the input, [inputSize, outputSize]; without them there is no gradient of the input.
    partialsType:
        The type of partial sums of products, FLOAT or HALF.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    tuple[Tensor, Tensor] | Tensor
        The gradient [batch, inputSize] and the state [batch, outputSize]; without `weightsInput` the state alone.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    MissingFeature
        For another non-linearity.
    """
    call = "popnn.rnn.backwardGradientStep"
    check_call(call, graph, prog, debugContext)
    options = plain_options(call, partialsType, False)
    check_own(call, graph, actOut=actOut)
    type, shape = actOut.elementType(), actOut.shape()
    if type not in REALS or len(shape) != 2 or 0 in shape:
        raise PoplibsError(f"{call}: actOut is FLOAT or HALF [batch, out], got {actOut!r}")
    for name, tensor in (("nextLayerGrad", nextLayerGrad), ("bwdState", bwdState), ("actOut", actOut)):
        check_shaped(call, graph, name, tensor, type, shape, "[batch, out]")
    check_shaped(call, graph, "weightsFeedback", weightsFeedback, type, [shape[1]] * 2, "[out, out]")
    check_activation(call, "nonLinearityType", nonLinearityType)
    if weightsInput is not None:
        check_own(call, graph, weightsInput=weightsInput)
        check_shaped(call, graph, "weightsInput", weightsInput, type, [*weightsInput.shape()[:1], shape[1]], "[in, out]")
    debug, passed = below(debugContext, "backwardGradientStep"), options.of_pass("TRAINING_BWD")
    back = matMul(graph, bwdState, weightsFeedback.transpose(), prog, debug, passed, planningCache)
    state = map(graph, BACKWARD[nonLinearityType](_1 + _2, _3), [nextLayerGrad, back, actOut], prog, debug)
    if weightsInput is None:
        return state
    return matMul(graph, state, weightsInput.transpose(), prog, below(debug, "input"), passed, planningCache), state


@public
def paramDeltaUpdate(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    bwdState: Tensor,
    actIn: Tensor,
    prevOut: Tensor,
    weightsInputDeltasAcc: Tensor,
    weightsFeedbackDeltasAcc: Tensor,
    biasDeltasAcc: Tensor,
    prog: Sequence,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    planningCache: PlanningCache | None = None,
) -> None:
    """Add a step's gradients of weights and biases to what is there; `prog` is extended.

    Parameters
    ----------
    bwdState:
        The state that `backwardGradientStep` gave, FLOAT or HALF [batch, outputSize].
    actIn:
        The step's input, [batch, inputSize].
    prevOut:
        The output of the step before, [batch, outputSize].
    weightsInputDeltasAcc:
        What is added to, [inputSize, outputSize].
    weightsFeedbackDeltasAcc:
        What is added to, [outputSize, outputSize].
    biasDeltasAcc:
        What is added to, [outputSize].
    partialsType:
        The type of partial sums of products, FLOAT or HALF.
    planningCache:
        Where the plans of products are kept.

    Raises
    ------
    PoplibsError
        For other shapes and types, and if what is written holds an element twice or a constant.
    """
    call = "popnn.rnn.paramDeltaUpdate"
    check_call(call, graph, prog, debugContext)
    options = plain_options(call, partialsType, False)
    check_own(call, graph, bwdState=bwdState, actIn=actIn)
    type = bwdState.elementType()
    if type not in REALS or bwdState.rank() != 2 or actIn.rank() != 2:
        raise PoplibsError(f"{call}: bwdState and actIn are FLOAT or HALF matrices, got {bwdState!r} and {actIn!r}")
    (batch, out), size = bwdState.shape(), actIn.dim(1)
    check_shaped(call, graph, "actIn", actIn, type, [batch, size], "[batch, in]")
    check_shaped(call, graph, "prevOut", prevOut, type, [batch, out], "[batch, out]")
    check_shaped(call, graph, "weightsInputDeltasAcc", weightsInputDeltasAcc, type, [size, out], "[in, out]")
    check_shaped(call, graph, "weightsFeedbackDeltasAcc", weightsFeedbackDeltasAcc, type, [out, out], "[out, out]")
    check_shaped(call, graph, "biasDeltasAcc", biasDeltasAcc, type, [out], "[out]")
    for tensor in (weightsInputDeltasAcc, weightsFeedbackDeltasAcc, biasDeltasAcc):
        check_writeable(call, tensor)
    debug, passed = below(debugContext, "paramDeltaUpdate"), options.of_pass("TRAINING_WU")
    for sums, read in ((weightsInputDeltasAcc, actIn), (weightsFeedbackDeltasAcc, prevOut)):
        matMulAcc(graph, sums, 1.0, read.transpose(), bwdState, prog, debug, passed, planningCache)
    of_biases = reduce(graph, bwdState, [0], ReduceParams(Operation.ADD), prog, debug)
    addInPlace(graph, biasDeltasAcc, of_biases, prog, debug)


@public
def rnnBwdSequence(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    doWU: bool,
    ignoreInputGradientCalc: bool,
    prog: Sequence,
    fwdStateInit: Tensor,
    fwdState: Tensor,
    biases: Tensor,
    feedFwdWeights: Tensor,
    feedbackWeights: Tensor,
    outGradient: Tensor,
    actIn: Tensor,
    nonLinearityType: NonLinearityType,
    partialsType: ElementType,
    debugContext: str | None = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    """The gradients of a plain layer's input, weights and biases; `prog` is extended.

    One loop in reverse computes all steps; products over all of them follow.

    Parameters
    ----------
    doWU:
        Whether the gradients of weights and biases are computed.
    ignoreInputGradientCalc:
        Whether that of the input is left out.
    fwdStateInit:
        The output before the first step, [batch, outputSize].
    fwdState:
        The outputs of `rnnFwdSequence`, [steps, batch, outputSize].
    biases:
        [outputSize].
    feedFwdWeights:
        The weights of the input, [inputSize, outputSize].
    feedbackWeights:
        The weights of the output before, [outputSize, outputSize].
    outGradient:
        The gradients of the outputs, [batch, steps, outputSize].
    actIn:
        The input, FLOAT or HALF [steps, batch, inputSize].
    nonLinearityType:
        TANH, SIGMOID, HARD_SIGMOID or RELU.
    partialsType:
        The type of partial sums of products, FLOAT or HALF.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]
        Gradients of the input [steps, batch, inputSize], of its weights, of the weights of the output, and of the biases; None
        for those that are not computed.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    MissingFeature
        For another non-linearity.
    """
    call = "popnn.rnn.rnnBwdSequence"
    check_call(call, graph, prog, debugContext)
    check_flag(call, "doWU", doWU)
    check_flag(call, "ignoreInputGradientCalc", ignoreInputGradientCalc)
    options = plain_options(call, partialsType, False)
    steps, batch, size = _sequence(call, graph, "actIn", actIn)
    type = actIn.elementType()
    _check_state_and_weights(call, graph, type, batch, fwdStateInit, feedbackWeights, biases, nonLinearityType)
    out = biases.dim(0)
    check_shaped(call, graph, "fwdState", fwdState, type, [steps, batch, out], "[steps, batch, out]")
    check_shaped(call, graph, "feedFwdWeights", feedFwdWeights, type, [size, out], "[in, out]")
    check_shaped(call, graph, "outGradient", outGradient, type, [batch, steps, out], "[batch, steps, out]")
    debug, layout = below(debugContext, "rnnBwdSequence"), StepLayout.of(graph, 1, batch, out)
    gradients = copied(graph, layout, outGradient.dimRoll(1, 0).expand([1]), prog, below(debug, "outGradient"))
    outputs = copied(graph, layout, fwdState.expand([1]), prog, below(debug, "outputs"))
    back = layout.shaped(layout.create(graph, type, 1, below(debug, "back")))[0][0]
    zero(graph, back, prog, debug)
    step, sequence = (layout.create(graph, type, count, below(debug, "slopes")) for count in (1, steps))
    loop, body = StepLoop.of(graph, RnnParams(type, batch, steps, [size, out]), True, prog, debug), Sequence()
    given, shown = (layout.shaped(part)[0][0] for part in loop.take([gradients, outputs], body))
    slope = layout.shaped(step)[0][0]
    mapInPlace(graph, BACKWARD[nonLinearityType](_2 + _3, _4), [slope, given, back, shown], body, below(debug, "cell"))
    passed = {**options.of_pass("TRAINING_BWD"), "inputRHSIsPreArranged": True}
    arranged = preArrangeMatMulInputRHS(graph, slope.shape(), feedbackWeights.transpose(), prog, debug, passed, planningCache)
    body.add(Copy(matMul(graph, slope, arranged, body, below(debug, "stepBack"), passed, planningCache), back))
    loop.put([(sequence, step)], body)
    loop.run(body, prog)
    slopes = layout.shaped(sequence)
    of_input = None
    if not ignoreInputGradientCalc:
        weights = feedFwdWeights.expand([0])
        of_input = input_gradients(graph, slopes, weights, prog, options, planningCache, below(debug, "input"))
    if not doWU:
        return of_input, None, None, None
    read = [actIn, previous_steps(fwdStateInit, fwdState)]
    of_weights = weight_products(graph, read, slopes, prog, options, planningCache, below(debug, "weights"))
    sums = bias_gradients(graph, slopes, prog, below(debug, "biases"))
    return of_input, of_weights[0][0], of_weights[1][0], sums[0]


def _forward(  # noqa: PLR0913 (a layer's operands)
    graph: Graph,
    given: Tensor,
    weights: Tensor | None,
    initial: Tensor,
    feedback: Tensor,
    biases: Tensor,
    prog: Sequence,
    kind: NonLinearityType,
    options: RecurrentOptions,
    cache: PlanningCache | None,
    debug: str,
) -> Tensor:
    """All steps of a layer, of its input and the input's weights, or of their product."""
    (steps, batch, size), out, type = given.shape(), biases.dim(0), given.elementType()
    layout, read = StepLayout.of(graph, 1, batch, out), StepLayout.of(graph, 1, batch, size)
    step, sequence = (layout.create(graph, type, count, below(debug, "output")) for count in (1, steps))
    output = layout.shaped(step)[0][0]
    prog.add(Copy(initial, output))
    spread = copied(graph, layout, biases.broadcast(batch).reshape([1, 1, batch, out]), prog, below(debug, "biases"))
    loop, body = StepLoop.of(graph, RnnParams(type, batch, steps, [size, out]), False, prog, debug), Sequence()
    (part,) = loop.take([copied(graph, read, given.expand([1]), prog, below(debug, "input"))], body)
    row, added = read.shaped(part)[0][0], layout.shaped(spread)[0][0]
    left, right = (output, feedback) if weights is None else (concat(row, output, 1), concat(weights, feedback))
    product = matMul(graph, left, right, body, below(debug, "weigh"), options.forward, cache)
    tree: Expr = _2 + _3
    tensors = [output, product, added]
    if weights is None:
        tree, tensors = tree + _4, [*tensors, row]
    mapInPlace(graph, FUNCTIONS[kind](tree), tensors, body, below(debug, "cell"))
    loop.put([(sequence, step)], body)
    loop.run(body, prog)
    return layout.shaped(sequence).squeeze([1])


def _sequence(call: str, graph: Graph, name: str, tensor: Tensor) -> list[int]:
    """The sizes of a sequence; `PoplibsError` for what is none."""
    check_own(call, graph, **{name: tensor})
    if tensor.elementType() not in REALS or tensor.rank() != 3 or not tensor.numElements():
        raise PoplibsError(f"{call}: {name} is FLOAT or HALF [steps, batch, size], got {tensor!r}")
    check_shaped(call, graph, name, tensor, tensor.elementType(), tensor.shape(), "[steps, batch, size]")
    return tensor.shape()


def _check_layer(
    call: str, graph: Graph, given: Tensor, state: Tensor, weights: Tensor, biases: Tensor, kind: NonLinearityType
) -> None:
    """Of the products [steps, batch, out] of an input."""
    check_shaped(call, graph, "biases", biases, given.elementType(), [given.dim(2)], "[out]")
    _check_state_and_weights(call, graph, given.elementType(), given.dim(1), state, weights, biases, kind)


def _check_state_and_weights(
    call: str,
    graph: Graph,
    type: ElementType,
    batch: int,
    state: Tensor,
    weights: Tensor,
    biases: Tensor,
    kind: NonLinearityType,
) -> None:
    check_activation(call, "nonLinearityType", kind)
    check_own(call, graph, biases=biases)
    out = biases.numElements()
    check_shaped(call, graph, "biases", biases, type, [max(out, 1)], "[out]")
    check_shaped(call, graph, "the initial state", state, type, [batch, out], "[batch, out]")
    check_shaped(call, graph, "feedbackWeights", weights, type, [out, out], "[out, out]")
