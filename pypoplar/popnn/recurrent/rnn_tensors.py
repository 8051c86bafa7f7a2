"""Tensors for recurrences of the caller's own: states, sequences, and what a body is given of a step."""

from __future__ import annotations

from typing import overload

from attrs import define, field

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.recurrent.rnn_params import RnnParams
from pypoplar.popnn.recurrent.step_layout import StepLayout
from pypoplar.poputil.arguments import check_call, check_debug, check_flag, check_operands, check_own, whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public


@public
@define(eq=False)
class RnnSlice:
    """What the body of a loop has of a step: its inputs, and where its results go; given by `Rnn`.

    Attributes
    ----------
    inputs:
        Each [batch, size]; None for an input that is None.
    interimIn:
        [number, batch, size], or None.
    interimOut:
        What is to be written, [number, batch, size], or None.
    outputs:
        What is to be written for each output, [number, batch, size].
    """

    inputs: list[Tensor | None] = field(factory=list)
    interimIn: Tensor | None = None
    interimOut: Tensor | None = None
    outputs: list[Tensor] = field(factory=list)


@public
@define(eq=False)
class RnnBatchwiseFlags:
    """Which samples have not ended yet, in the layer's type; given by `Rnn`.

    Attributes
    ----------
    mask:
        For each sample 1 while its steps last, then 0; None where all have as many steps.
    inverse:
        The other way round.
    """

    mask: Tensor | None = None
    inverse: Tensor | None = None

    def valid(self) -> bool:
        """Whether samples have numbers of steps of their own."""
        return self.mask is not None


@public
@define(eq=False)
class TimeStepState:
    """Which step the body of a loop computes; given by `Rnn`.

    Attributes
    ----------
    begin:
        0, UNSIGNED_INT [1].
    counter:
        The number of the step, UNSIGNED_INT [1].
    variableSeqFlag:
        Whether some sample may have ended, BOOL []; None where all have as many steps.
    """

    begin: Tensor
    counter: Tensor
    variableSeqFlag: Tensor | None = None


@public
@define(eq=False)
class StateSequence:
    """An output of `Rnn` that gets one of the states after each step.

    Parameters
    ----------
    output:
        [steps, batch, size], best of `createOutputTensor`; None for none.
    stateIndex:
        The number of the state.
    """

    output: Tensor | None = None
    stateIndex: int = 0


def check_rnn(call: str, graph: Graph, params: object, numShards: object, debugContext: str | None) -> RnnParams:
    """The arguments that all calls have; shards are between 1 and `RnnParams.getMaxShards`, and change nothing."""
    if not isinstance(params, RnnParams):
        raise PoplarTypeError(f"{call}: params is a popnn.rnn.RnnParams, got {params!r}")
    params.check_of(call, graph)
    check_debug(call, debugContext)
    most = params.getMaxShards(graph)
    if whole_number(call, "numShards", numShards, 1) > most:
        raise PoplibsError(f"{call}: numShards is {most} at most for {params!r}, got {numShards!r}")
    return params


@public
def createInitialState(
    graph: Graph, params: RnnParams, isOutput: bool, multiple: int, numShards: int, debugContext: str | None = None
) -> Tensor:
    """A new tensor for states before the first step.

    Parameters
    ----------
    params:
        The sizes of the layer.
    isOutput:
        Whether states have the size of the output, else of the input.
    multiple:
        How many states there are.
    numShards:
        It changes nothing: sequences are spread over all tiles. 1 to ``params.getMaxShards(graph)``.

    Returns
    -------
    Tensor
        [multiple, batch, size], with tiles.

    Raises
    ------
    PoplibsError
        For parameters that make no layer, and other numbers of states or shards.
    """
    call = "popnn.rnn.createInitialState"
    check_rnn(call, graph, params, numShards, debugContext)
    check_flag(call, "isOutput", isOutput)
    layout = _layout(call, graph, params, multiple, params.layerSizes[isOutput])
    return layout.shaped(layout.create(graph, params.dataType, 1, below(debugContext, "initState")))[0]


@public
def createRecurrentTensor(graph: Graph, params: RnnParams, size: int, numShards: int, debugContext: str | None = None) -> Tensor:
    """A new tensor for a sequence, all steps of an element on one tile.

    Parameters
    ----------
    params:
        The sizes of the layer.
    size:
        How many elements a step of a sample has.
    numShards:
        It changes nothing: sequences are spread over all tiles. 1 to ``params.getMaxShards(graph)``.

    Returns
    -------
    Tensor
        [steps, batch, size], with tiles.

    Raises
    ------
    PoplibsError
        For parameters that make no layer, and another number of shards.
    """
    call = "popnn.rnn.createRecurrentTensor"
    check_rnn(call, graph, params, numShards, debugContext)
    return _sequence(call, graph, params, 1, size, below(debugContext, "recurrent"))


@public
def createInputTensor(graph: Graph, params: RnnParams, numShards: int, debugContext: str | None = None) -> Tensor:
    """A new tensor for the input of a layer, all steps of an element on one tile.

    Parameters
    ----------
    params:
        The sizes of the layer.
    numShards:
        It changes nothing: sequences are spread over all tiles. 1 to ``params.getMaxShards(graph)``.

    Returns
    -------
    Tensor
        [steps, batch, layerSizes[0]], with tiles.

    Raises
    ------
    PoplibsError
        For parameters that make no layer, and another number of shards.
    """
    call = "popnn.rnn.createInputTensor"
    check_rnn(call, graph, params, numShards, debugContext)
    return _sequence(call, graph, params, 1, params.layerSizes[0], below(debugContext, "input"))


@overload
def createOutputTensor(graph: Graph, params: RnnParams, numShards: int, debugContext: str | None = None) -> Tensor: ...
@overload
def createOutputTensor(
    graph: Graph, params: RnnParams, multiple: int, numShards: int, debugContext: str | None = None
) -> Tensor: ...
@overloaded("popnn.rnn.createOutputTensor")
def createOutputTensor(
    graph: Graph, params: RnnParams, numShards: int, multiple: int = 1, debugContext: str | None = None
) -> Tensor:
    """A new tensor for outputs of a layer, all steps of an element on one tile.

    Parameters
    ----------
    params:
        The sizes of the layer.
    numShards:
        It changes nothing: sequences are spread over all tiles. 1 to ``params.getMaxShards(graph)``.
    multiple:
        How many matrices of each step there are, one after the other.

    Returns
    -------
    Tensor
        [multiple * steps, batch, layerSizes[1]], with tiles.

    Raises
    ------
    PoplibsError
        For parameters that make no layer, and another number of shards.
    """
    call = "popnn.rnn.createOutputTensor"
    check_rnn(call, graph, params, numShards, debugContext)
    return _sequence(call, graph, params, multiple, params.layerSizes[1], below(debugContext, "output"))


@public
def shiftRnnTensor(
    graph: Graph,
    params: RnnParams,
    tBase: Tensor,
    tSingle: Tensor,
    prog: Sequence,
    numShards: int,
    debugContext: str | None = None,
) -> Tensor:
    """A new tensor that has for each step what another has for the one before; `prog` is extended.

    Parameters
    ----------
    params:
        The sizes of the layer.
    tBase:
        The sequence, [number * steps, batch, size].
    tSingle:
        What stands before its first step.
    numShards:
        It changes nothing: sequences are spread over all tiles. 1 to ``params.getMaxShards(graph)``.

    Returns
    -------
    Tensor
        Of the shape and type of `tBase`, and laid out as it.

    Raises
    ------
    PoplibsError
        For shapes that do not fit.
    """
    call = "popnn.rnn.shiftRnnTensor"
    check_call(call, graph, prog, debugContext)
    check_rnn(call, graph, params, numShards, debugContext)
    check_own(call, graph, tBase=tBase, tSingle=tSingle)
    steps = params.maxTimeSteps
    rows = tBase.dim(0) // steps if tBase.rank() else 0
    shape = [size for size in [rows, *tBase.shape()[1:]] if size != 1]
    if not rows or tBase.dim(0) % steps or [size for size in tSingle.shape() if size != 1] != shape:
        raise PoplibsError(f"{call}: tBase has {steps} steps, and tSingle what one of them has, got {tBase!r} and {tSingle!r}")
    check_operands(call, graph, tBase=tBase, tSingle=tSingle)
    shifted = graph.clone(tBase, below(debugContext, "shifted"))
    prog.add(Copy(tSingle, shifted.slice(0, rows)))
    if steps > 1:
        prog.add(Copy(tBase.slice(0, tBase.dim(0) - rows), shifted.slice(rows, tBase.dim(0))))
    return shifted


def _layout(call: str, graph: Graph, params: RnnParams, multiple: int, size: int) -> StepLayout:
    numbers = whole_number(call, "multiple", multiple, 1), whole_number(call, "size", size, 1)
    return StepLayout.of(graph, numbers[0], params.batchSize, numbers[1])


def _sequence(call: str, graph: Graph, params: RnnParams, multiple: int, size: int, debug: str) -> Tensor:
    layout = _layout(call, graph, params, multiple, size)
    steps = layout.shaped(layout.create(graph, params.dataType, params.maxTimeSteps, debug))
    return steps.reshape([multiple * params.maxTimeSteps, params.batchSize, size])
