"""`popnn.rnn.Rnn`: a loop over steps whose body the caller writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as SequenceOf
from typing import overload

from pypoplar.errors import MissingFeature, PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.recurrent.recurrent_operands import copied
from pypoplar.popnn.recurrent.rnn_params import RnnParams
from pypoplar.popnn.recurrent.rnn_tensors import RnnBatchwiseFlags, RnnSlice, StateSequence, TimeStepState, check_rnn
from pypoplar.popnn.recurrent.step_layout import StepLayout
from pypoplar.popnn.recurrent.step_loop import StepLoop
from pypoplar.popops.elements.map_functions import map
from pypoplar.popops.expr import Cast, Gte, Lt, _1, _2
from pypoplar.popops.reduction.reduce_call import reduce
from pypoplar.popops.reduction.reduce_params import Operation, ReduceParams
from pypoplar.poputil.arguments import check_call, check_operands, check_own, check_writeable, whole_number
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.copies import shares_elements
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Copy, Program, Sequence
from pypoplar.types import BOOL, INT, UNSIGNED_INT

Options = Mapping[str, object] | None
LoopBodyType = Callable[
    [Graph, TimeStepState, RnnBatchwiseFlags, list[Tensor], RnnSlice, list[Tensor], Sequence | None, str | None], Program
]
GatherBodyType = Callable[[Graph, RnnSlice, int, Sequence | None, str | None], Program]
RNN_OPTIONS: dict[str, Kind] = {"codeReuse": bool}


@overload
def Rnn(
    graph: Graph,
    params: RnnParams,
    reverse: bool,
    initState: SequenceOf[Tensor],
    stateSequence: StateSequence,
    inputs: SequenceOf[Tensor | None],
    interimIn: Tensor | None,
    interimOut: Tensor | None,
    outputs: SequenceOf[Tensor],
    created: SequenceOf[Tensor],
    prog: Sequence,
    loopFn: Callable[..., Program],
    numShards: int,
    options: Options = None,
    debugContext: str | None = None,
) -> list[Tensor]: ...
@overload
def Rnn(
    graph: Graph,
    params: RnnParams,
    initState: SequenceOf[Tensor],
    stateSequence: StateSequence,
    inputs: SequenceOf[Tensor | None],
    interimIn: Tensor,
    numTemps: int,
    prog: Sequence,
    loopFn: Callable[..., Program],
    gatherInputs: SequenceOf[Tensor],
    gatherFn: Callable[..., Program],
    numShards: int,
    stepsPerGather: int,
    options: Options = None,
    debugContext: str | None = None,
) -> list[Tensor]: ...
@overloaded("popnn.rnn.Rnn")
def Rnn(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    params: RnnParams,
    initState: SequenceOf[Tensor],
    stateSequence: StateSequence,
    inputs: SequenceOf[Tensor | None],
    prog: Sequence,
    loopFn: Callable[..., Program],
    numShards: int,
    interimIn: Tensor | None = None,
    reverse: bool = True,
    interimOut: Tensor | None = None,
    outputs: SequenceOf[Tensor] = (),
    created: SequenceOf[Tensor] = (),
    numTemps: int = 0,
    gatherInputs: SequenceOf[Tensor] = (),
    gatherFn: Callable[..., Program] | None = None,
    stepsPerGather: int = 1,
    options: Options = None,
    debugContext: str | None = None,
) -> list[Tensor]:
    """A loop over the steps of a sequence, whose body the caller makes; `prog` is extended.

    What is written, also the output of `stateSequence`, best is of `createOutputTensor`. Steps behind the last that
    ``params.varTimeSteps`` allows are not written.

    Parameters
    ----------
    params:
        The sizes of the layer.
    initState:
        What the states begin as, [number, batch, size] each.
    stateSequence:
        An output that gets a state after each step.
    inputs:
        Sequences [steps, batch, size] that a step gets its part of, or None.
    loopFn:
        The body. It is called once, with the graph, a `TimeStepState`, `RnnBatchwiseFlags`, the states, an `RnnSlice` of the
        step, `created`, a Sequence that runs before the loop, and a debug name. It gives the program of a step, which updates
        the states in place.
    numShards:
        It changes nothing: sequences are spread over all tiles. 1 to ``params.getMaxShards(graph)``.
    interimIn:
        Another such sequence, [steps, number, batch, size].
    reverse:
        Whether the last step is first.
    interimOut:
        What the steps write, [steps, number, batch, size].
    outputs:
        What the steps write, too, [number * steps, batch, size] each.
    created:
        Tensors that the body is given as they are.
    numTemps, gatherInputs, gatherFn, stepsPerGather:
        Of the form that gathers steps, which is refused.
    options:
        ``codeReuse`` is known, and changes nothing.

    Returns
    -------
    list[Tensor]
        The states after the last step.

    Raises
    ------
    PoplibsError
        For other shapes and types, and outputs that cannot be written or have elements in common.
    MissingFeature
        For the form with `gatherFn`.
    PoplarTypeError
        If `loopFn` returns no program.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import FLOAT, popnn, popops, program, testing
    >>> params = popnn.rnn.RnnParams(FLOAT, 1, 3, [2, 2])  # a sample, 3 steps, 2 elements in and out
    >>> def compute(graph, x):
    ...     popops.addCodelets(graph)
    ...
    ...     def body(graph, time, flags, states, step, created, before, name):
    ...         turn = program.Sequence()
    ...         popops.addInPlace(graph, states[0][0], step.inputs[0], turn)
    ...         return turn
    ...
    ...     prog = program.Sequence()
    ...     state = popnn.rnn.createInitialState(graph, params, True, 1, 1)
    ...     popops.zero(graph, state, prog)
    ...     sums = popnn.rnn.StateSequence(popnn.rnn.createOutputTensor(graph, params, 1))
    ...     popnn.rnn.Rnn(graph, params, False, [state], sums, [x], None, None, [], [], prog, body, 1)
    ...     return prog, {"sums": sums.output}
    >>> testing.run(compute, {"x": np.float32([[[1, 10]], [[2, 20]], [[3, 30]]])})["sums"].tolist()
    [[[1.0, 10.0]], [[3.0, 30.0]], [[6.0, 60.0]]]
    """
    call = "popnn.rnn.Rnn"
    if gatherFn is not None:
        raise MissingFeature(f"{call}: the form that gathers steps is not there; products over all steps may follow the loop")
    check_call(call, graph, prog, debugContext)
    check_rnn(call, graph, params, numShards, debugContext)
    read_options(call, options, RNN_OPTIONS)
    sequences = [*((f"inputs[{number}]", tensor) for number, tensor in enumerate(inputs)), ("interimIn", interimIn)]
    written = [("stateSequence.output", stateSequence.output), ("interimOut", interimOut)]
    written += [(f"outputs[{number}]", tensor) for number, tensor in enumerate(outputs)]
    for name, tensor in (*sequences, *written):
        _check_steps(call, graph, params, name, tensor)
    _check_written(call, graph, written)
    check_own(call, graph, **{f"created[{number}]": tensor for number, tensor in enumerate(created)})
    for number, tensor in enumerate(initState):
        _check_state(call, graph, params, f"initState[{number}]", tensor)
    shown = whole_number(call, "stateSequence.stateIndex", stateSequence.stateIndex)
    if stateSequence.output is not None and shown >= len(initState):
        raise PoplibsError(f"{call}: stateIndex is that of one of {len(initState)} states, got {stateSequence.stateIndex}")
    debug = below(debugContext, "Rnn")
    loop, body = StepLoop.of(graph, params, reverse, prog, debug), Sequence()
    states = []
    for number, initial in enumerate(initState):
        layout = StepLayout.of(graph, *initial.shape())
        states.append(layout.shaped(copied(graph, layout, initial.expand([0]), prog, below(debug, f"state/{number}")))[0])
    taken = {name: _Steps(graph, params, tensor) for name, tensor in sequences if tensor is not None}
    rows = [copied(graph, steps.layout, steps.shaped, prog, below(debug, name)) for name, steps in taken.items()]
    parts = dict(zip(taken, loop.take(rows, body), strict=True))
    matrices = {name: steps.layout.shaped(parts[name])[0] for name, steps in taken.items()}
    puts = {name: _Steps(graph, params, tensor) for name, tensor in written if tensor is not None}
    buffers = {name: steps.layout.create(graph, params.dataType, 1, below(debug, name)) for name, steps in puts.items()}
    slots = {name: steps.layout.shaped(buffers[name])[0] for name, steps in puts.items()}
    given = RnnSlice(
        [matrices[name][0] if name in matrices else None for name, _ in sequences[:-1]],
        matrices.get("interimIn"),
        slots.get("interimOut"),
        [slots[name] for name, _ in written[2:]],
    )
    begin = loop.constant(0)
    time = TimeStepState(begin, loop.index, _variable_flag(graph, params, loop, prog, body, debug))
    turn = loopFn(graph, time, _flags(graph, params, loop, body, debug), states, given, list(created), prog, debugContext)
    if not isinstance(turn, Program):
        raise PoplarTypeError(f"{call}: loopFn returns a program, got {turn!r}")
    body.add(turn)
    if stateSequence.output is not None:
        body.add(Copy(states[stateSequence.stateIndex], slots["stateSequence.output"]))
    if puts:
        loop.put([(steps.layout.rows(steps.shaped), buffers[name]) for name, steps in puts.items()], body)
    loop.run(body, prog)
    return states


class _Steps:
    """A sequence as [steps, number, batch, size], and how it lies."""

    def __init__(self, graph: Graph, params: RnnParams, tensor: Tensor) -> None:
        shape = [params.maxTimeSteps, -1, params.batchSize, tensor.dim(tensor.rank() - 1)]
        self.shaped = tensor.reshape(shape)
        self.layout = StepLayout.of(graph, *self.shaped.shape()[1:])


def _check_steps(call: str, graph: Graph, params: RnnParams, name: str, tensor: Tensor | None) -> None:
    if tensor is None:
        return
    check_operands(call, graph, **{name: tensor})
    shape = tensor.shape()
    steps = len(shape) in (3, 4) and shape[0] > 0 and shape[0] % params.maxTimeSteps == 0 and shape[-2] == params.batchSize
    single = name.startswith("inputs") and shape != [params.maxTimeSteps, params.batchSize, *shape[-1:]]
    if not steps or single or tensor.elementType() is not params.dataType or not tensor.numElements():
        raise PoplibsError(
            f"{call}: {name} is {params.dataType!r} [{params.maxTimeSteps} steps, ..., {params.batchSize} samples, size], "
            f"got {tensor!r}"
        )


def _check_written(call: str, graph: Graph, written: SequenceOf[tuple[str, Tensor | None]]) -> None:
    """What the loop writes can be written, and has no elements of something else that it writes."""
    there = [(name, tensor) for name, tensor in written if tensor is not None]
    for place, (name, tensor) in enumerate(there):
        check_writeable(call, tensor)
        for other, behind in there[place + 1 :]:
            if shares_elements(graph, tensor, behind):
                raise PoplibsError(f"{call}: {name}, {tensor!r}, has elements of {other}, {behind!r}")


def _check_state(call: str, graph: Graph, params: RnnParams, name: str, tensor: Tensor) -> None:
    check_operands(call, graph, **{name: tensor})
    shape = tensor.shape()
    if len(shape) != 3 or shape[1] != params.batchSize or tensor.elementType() is not params.dataType or not tensor.numElements():
        raise PoplibsError(f"{call}: {name} is {params.dataType!r} [number, {params.batchSize} samples, size], got {tensor!r}")


def _flags(graph: Graph, params: RnnParams, loop: StepLoop, body: Sequence, debug: str) -> RnnBatchwiseFlags:
    if loop.lengths is None:
        return RnnBatchwiseFlags()
    lasts = Lt(Cast(_1, INT), Cast(_2, INT))
    trees = [Cast(lasts, params.dataType), 1.0 - Cast(lasts, params.dataType)]
    mask, inverse = (map(graph, tree, [loop.index, loop.lengths], body, below(debug, "flags")) for tree in trees)
    return RnnBatchwiseFlags(mask, inverse)


def _variable_flag(graph: Graph, params: RnnParams, loop: StepLoop, prog: Sequence, body: Sequence, debug: str) -> Tensor | None:
    """Whether the step is behind the last of some sample."""
    if loop.lengths is None:
        return None
    whole = map(graph, Cast(_1, INT), [loop.lengths], prog, below(debug, "steps"))
    fewest = reduce(graph, whole, [0], ReduceParams(Operation.MIN), prog, below(debug, "fewestSteps"))
    flag = map(graph, Gte(Cast(_1, INT), _2), [loop.index.reshape([]), fewest.reshape([])], body, below(debug, "variable"))
    assert flag.elementType() is BOOL
    assert loop.index.elementType() is UNSIGNED_INT
    return flag
