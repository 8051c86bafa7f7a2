"""The loss of connectionist temporal classification, with its gradient and alone."""

from __future__ import annotations

import math

from attrs import frozen

from pypoplar.errors import MissingFeature
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.ctc.ctc_plan import Options, Plan, float_type, loss_plan
from pypoplar.popnn.ctc.ctc_tensors import by_sample, check_data, check_labels_shape
from pypoplar.popnn.ctc.logarithms import NEVER
from pypoplar.popnn.ctc.loss_program import LossProgram
from pypoplar.popnn.nonlinearities.log_softmax import logSoftmax
from pypoplar.popops.elements.cast import cast
from pypoplar.poputil.arguments import check_call, check_codelet, check_operands, whole_number
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, UNSIGNED_INT, ElementType

OPTIONS: dict[str, Kind] = {
    "includeSoftmaxGradient": bool,
    "zeroInfinity": bool,
    "zeroInfinityRelTolerance": float,
    "returnReducedCodeletGradient": bool,
}


@frozen
class LossOptions:
    """Whether the gradient is that by what went into a softmax, and up to which logarithm a label's probability is taken as 0."""

    softmax: bool
    bound: float

    @staticmethod
    def read(call: str, options: Options) -> LossOptions:
        chosen = read_options(call, options, OPTIONS)
        if chosen.get("returnReducedCodeletGradient"):
            raise MissingFeature(f"{call}: the option 'returnReducedCodeletGradient' is for PopLibs' own tests, and is not there")
        tolerance = float(chosen.get("zeroInfinityRelTolerance", 0.01))
        if not 0 <= tolerance <= 1:
            raise PoplibsError(f"{call}: the option 'zeroInfinityRelTolerance' is from 0 to 1, got {tolerance:g}")
        bound = (1 - tolerance) * NEVER if chosen.get("zeroInfinity") else -math.inf
        return LossOptions(bool(chosen.get("includeSoftmaxGradient", True)), bound)


@public
def calcLossAndGradientLogProbabilities(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    outType: ElementType,
    logProbs: Tensor,
    labels: Tensor,
    dataLengths: Tensor,
    labelLengths: Tensor,
    prog: Sequence,
    blankClass: int,
    plan: Plan,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor]:
    """The negative logarithm of each label's probability, and its gradient; `prog` is extended.

    A label that no path gives, as one longer than its data, has a loss of 65504 and a gradient without meaning. A label beyond
    the classes or equal to the blank, and a length beyond the tensor, are errors of the run.

    Parameters
    ----------
    outType:
        The type of both results, that of the plan.
    logProbs:
        Logarithms of probabilities, [time, batch, classes]; best of `createDataInput`.
    labels:
        The class of each symbol, without the blank: UNSIGNED_INT [batch, symbols].
    dataLengths:
        How many steps of each sample count: UNSIGNED_INT [batch].
    labelLengths:
        How many symbols of each label count: UNSIGNED_INT [batch].
    blankClass:
        Which class is the blank.
    plan:
        One of `ctc.plan` for these sizes.
    options:
        Known are

        - ``includeSoftmaxGradient`` (true): the gradient is by what a softmax got, ``exp(logProbs)`` less the share of paths
          through the class; else by `logProbs` themselves.
        - ``zeroInfinity`` (false): a loss within ``zeroInfinityRelTolerance`` (0.01) of 65504, or beyond it, becomes 0, and so
          does its gradient.
        - ``returnReducedCodeletGradient`` raises `MissingFeature`.

    Returns
    -------
    tuple[Tensor, Tensor]
        Losses [batch] and gradients [time, batch, classes], new tensors; steps behind a sample's have gradient 0.

    Raises
    ------
    PoplibsError
        For shapes, types and an `outType` that are not those of the plan, and a blank beyond the classes.
    InvalidTileMapping
        If an element of a tensor has no tile.

    Notes
    -----
    After Graves et al., "Connectionist Temporal Classification", 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import FLOAT, popnn, program, testing
    >>> def compute(graph, logs, labels, steps, lengths):
    ...     popnn.addCodelets(graph)
    ...     prog, plan = program.Sequence(), popnn.ctc.plan(graph, FLOAT, FLOAT, 1, 1, 1, 2)
    ...     operands = [logs, labels, steps, lengths]
    ...     loss, gradient = popnn.ctc.calcLossAndGradientLogProbabilities(graph, FLOAT, *operands, prog, 0, plan)
    ...     return prog, {"loss": loss, "gradient": gradient}
    >>> one, logs = np.uint32([1]), np.log(np.float32([[[0.75, 0.25]]]))  # a step of a sample: blank and class 1
    >>> result = testing.run(compute, {"logs": logs, "labels": one[None], "steps": one, "lengths": one})
    >>> np.exp(-result["loss"]).round(3).tolist(), result["gradient"].round(3).tolist()
    ([0.25], [[[0.75, -0.75]]])
    """
    program, chosen = _program(
        "popnn.ctc.calcLossAndGradientLogProbabilities", graph, outType, {"logProbs": logProbs}, labels, dataLengths, labelLengths,
        prog, blankClass, plan, debugContext, options,
    )  # fmt: skip
    loss, gradient = program.loss_and_gradient(chosen.bound, chosen.softmax)
    return _typed(program, loss, outType), _typed(program, gradient, outType)


@public
def calcLossAndGradientLogits(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    outType: ElementType,
    logits: Tensor,
    labels: Tensor,
    dataLengths: Tensor,
    labelLengths: Tensor,
    prog: Sequence,
    blankClass: int,
    plan: Plan,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor]:
    """`calcLossAndGradientLogProbabilities` of the logarithms of the softmax of logits; `prog` is extended.

    Parameters
    ----------
    outType:
        The type of both results, that of the plan.
    logits:
        What the softmax gets, [time, batch, classes]; best of `createDataInput`.
    labels:
        The class of each symbol, without the blank: UNSIGNED_INT [batch, symbols].
    dataLengths:
        How many steps of each sample count: UNSIGNED_INT [batch].
    labelLengths:
        How many symbols of each label count: UNSIGNED_INT [batch].
    blankClass:
        Which class is the blank.
    plan:
        One of `ctc.plan` for these sizes.
    options:
        As for `calcLossAndGradientLogProbabilities`.

    Returns
    -------
    tuple[Tensor, Tensor]
        Losses [batch] and gradients by `logits` [time, batch, classes], new tensors.

    Raises
    ------
    PoplibsError
        For shapes, types and an `outType` that are not those of the plan, and a blank beyond the classes.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    program, chosen = _program(
        "popnn.ctc.calcLossAndGradientLogits", graph, outType, {"logits": logits}, labels, dataLengths, labelLengths, prog,
        blankClass, plan, debugContext, options,
    )  # fmt: skip
    loss, gradient = program.loss_and_gradient(chosen.bound, chosen.softmax)
    return _typed(program, loss, outType), _typed(program, gradient, outType)


@public
def calcCTCLossLogProbabilities(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    outType: ElementType,
    logProbs: Tensor,
    labels: Tensor,
    dataLengths: Tensor,
    labelLengths: Tensor,
    prog: Sequence,
    blankClass: int,
    plan: Plan,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """The loss of `calcLossAndGradientLogProbabilities` alone, which goes forward only; `prog` is extended.

    Parameters
    ----------
    outType:
        The type of the result, that of the plan.
    logProbs:
        Logarithms of probabilities, [time, batch, classes]; best of `createDataInput`.
    labels:
        The class of each symbol, without the blank: UNSIGNED_INT [batch, symbols].
    dataLengths:
        How many steps of each sample count: UNSIGNED_INT [batch].
    labelLengths:
        How many symbols of each label count: UNSIGNED_INT [batch].
    blankClass:
        Which class is the blank.
    plan:
        One of `ctc.plan` for these sizes.
    options:
        As for `calcLossAndGradientLogProbabilities`.

    Returns
    -------
    Tensor
        Losses [batch], a new tensor.

    Raises
    ------
    PoplibsError
        For shapes, types and an `outType` that are not those of the plan, and a blank beyond the classes.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    program, chosen = _program(
        "popnn.ctc.calcCTCLossLogProbabilities", graph, outType, {"logProbs": logProbs}, labels, dataLengths, labelLengths, prog,
        blankClass, plan, debugContext, options,
    )  # fmt: skip
    return _typed(program, program.loss_alone(chosen.bound), outType)


@public
def calcCTCLossLogits(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    outType: ElementType,
    logits: Tensor,
    labels: Tensor,
    dataLengths: Tensor,
    labelLengths: Tensor,
    prog: Sequence,
    blankClass: int,
    plan: Plan,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """The loss of `calcLossAndGradientLogits` alone, which goes forward only; `prog` is extended.

    Parameters
    ----------
    outType:
        The type of the result, that of the plan.
    logits:
        What the softmax gets, [time, batch, classes]; best of `createDataInput`.
    labels:
        The class of each symbol, without the blank: UNSIGNED_INT [batch, symbols].
    dataLengths:
        How many steps of each sample count: UNSIGNED_INT [batch].
    labelLengths:
        How many symbols of each label count: UNSIGNED_INT [batch].
    blankClass:
        Which class is the blank.
    plan:
        One of `ctc.plan` for these sizes.
    options:
        As for `calcLossAndGradientLogProbabilities`.

    Returns
    -------
    Tensor
        Losses [batch], a new tensor.

    Raises
    ------
    PoplibsError
        For shapes, types and an `outType` that are not those of the plan, and a blank beyond the classes.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    program, chosen = _program(
        "popnn.ctc.calcCTCLossLogits", graph, outType, {"logits": logits}, labels, dataLengths, labelLengths, prog, blankClass,
        plan, debugContext, options,
    )  # fmt: skip
    return _typed(program, program.loss_alone(chosen.bound), outType)


def _program(  # noqa: PLR0913 (PopLibs' arguments)
    call: str,
    graph: Graph,
    outType: ElementType,
    data: dict[str, Tensor],
    labels: Tensor,
    dataLengths: Tensor,
    labelLengths: Tensor,
    prog: Sequence,
    blankClass: int,
    plan: Plan,
    debugContext: str | None,
    options: Options,
) -> tuple[LossProgram, LossOptions]:
    """What a call adds, and its options, when all arguments are judged; the softmax of logits is added already."""
    check_call(call, graph, prog, debugContext)
    loss = loss_plan(call, plan)
    chosen = LossOptions.read(call, options)
    ((name, given),) = data.items()
    check_operands(call, graph, **data, labels=labels, dataLengths=dataLengths, labelLengths=labelLengths)
    check_data(call, name, given, loss.inType, loss.limits)
    if labels.elementType() is not UNSIGNED_INT or labels.rank() != 2:
        raise PoplibsError(f"{call}: labels are UNSIGNED_INT [batch, symbols], got {labels!r}")
    check_labels_shape(call, labels.shape(), loss)
    for length, tensor in (("dataLengths", dataLengths), ("labelLengths", labelLengths)):
        check_lengths(call, length, tensor, loss.batchSize)
    if float_type(call, "outType", outType) is not loss.outType:
        raise PoplibsError(f"{call}: outType is {loss.outType!r} by the plan, got {outType!r}")
    blank = check_blank(call, blankClass, loss.numClasses)
    check_codelet(call, graph, "popnn::CTCAlpha<float>")
    debug = below(debugContext, "CTCLoss")
    if name == "logits":
        given = by_sample(logSoftmax(graph, by_sample(given), prog, debug))
    return LossProgram(graph, loss, given, labels, dataLengths, labelLengths, blank, prog, debug), chosen


def check_lengths(call: str, name: str, lengths: Tensor, batch: int) -> None:
    """`PoplibsError` unless a tensor has a length of each sample."""
    if lengths.elementType() is not UNSIGNED_INT or lengths.shape() != [batch]:
        raise PoplibsError(f"{call}: {name} are UNSIGNED_INT [{batch}], one of each sample, got {lengths!r}")


def check_blank(call: str, blankClass: int, classes: int) -> int:
    """The class that stands for nothing; `PoplibsError` for one beyond the classes."""
    blank = whole_number(call, "blankClass", blankClass)
    if blank >= classes:
        raise PoplibsError(f"{call}: blankClass is one of {classes} classes from 0 on, got {blank}")
    return blank


def _typed(program: LossProgram, result: Tensor, type: ElementType) -> Tensor:
    return result if type is FLOAT else cast(program.graph, result, type, program.prog, program.debug)
