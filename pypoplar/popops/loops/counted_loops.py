"""`popops.countedLoop` and `popops.countedForLoop`: loops with a counter that their body can read."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.elements.element_functions import addInPlace
from pypoplar.poputil.arguments import check_call, check_codelet, check_operands, check_own, whole_number
from pypoplar.poputil.copies import shares_elements
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import fits, overloaded
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy, Execute, Program, Repeat, RepeatWhileTrue, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import INT, UNSIGNED_INT

CountedLoopBodyType = Callable[[Tensor], Program]
WHOLE = (INT, UNSIGNED_INT)
UNSIGNED_END = 2**32
COUNTER_CYCLES = 43  # ForLoopCounter, by popopsCycleEstimators of PopLibs


@overload
def countedLoop(
    graph: Graph, begin: int, end: int, step: int, body: Callable[[Tensor], Program], debugContext: str | None = None
) -> Sequence: ...
@overload
def countedLoop(graph: Graph, count: int, body: Callable[[Tensor], Program], debugContext: str | None = None) -> Sequence: ...
@overloaded("popops.countedLoop")
def countedLoop(
    graph: Graph,
    body: Callable[[Tensor], Program],
    begin: int = 0,
    end: int = 0,
    step: int = 1,
    count: int | None = None,
    debugContext: str | None = None,
) -> Sequence:
    """A loop whose number of rounds is known: for ``begin``, ``begin + step`` and so on below ``end``, or 0 to ``count - 1``.

    Parameters
    ----------
    body:
        A function of the counter, an UNSIGNED_INT [1] on tile 0, that gives the program of a round. It is called once.
    begin:
        The counter's first value, 0 at least.
    end:
        Where the counter ends, which it does not reach.
    step:
        What is added to the counter after a round, 1 at least.
    count:
        The number of rounds, instead of the three.

    Returns
    -------
    Sequence
        The loop, to be added to a program.

    Raises
    ------
    PoplibsError
        Unless ``begin < end``, both UNSIGNED_INTs, and `step` is at least 1.
    PoplarTypeError
        If `body` returns no program.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popops, program, testing
    >>> def compute(graph, x, sums):
    ...     popops.addCodelets(graph)
    ...
    ...     def add(counter):  # the element of that number, to the sums so far
    ...         step = program.Sequence()
    ...         popops.addInPlace(graph, sums, popops.dynamicSlice(graph, x, counter, [0], [1], step), step)
    ...         return step
    ...
    ...     return popops.countedLoop(graph, 0, 6, 2, add)
    >>> testing.run(compute, {"x": np.int32([1, 20, 300, 4000, 50000, 600000]), "sums": np.int32([0])})["sums"].tolist()
    [50301]
    """
    first, last = whole_number("popops.countedLoop", "begin", begin), end if count is None else count
    by = whole_number("popops.countedLoop", "step", step, 1)
    if not first < last <= UNSIGNED_END:
        raise PoplibsError(f"popops.countedLoop: begin is below end, both UNSIGNED_INTs, got {first} and {last}")
    check_codelet("popops.countedLoop", graph, templateVertex("popops::ForLoopCounter", INT))
    counter = graph.addVariable(UNSIGNED_INT, [1], below(debugContext, "counter"))
    start = graph.addConstant(UNSIGNED_INT, [1], first, below(debugContext, f"begin-{first}"))
    increment = graph.addConstant(UNSIGNED_INT, [1], by % UNSIGNED_END, below(debugContext, f"step-{by}"))
    for tensor in (counter, start, increment):
        graph.setTileMapping(tensor, 0)
    program = body(counter)
    if not isinstance(program, Program):
        raise PoplarTypeError(f"popops.countedLoop: the body returns a program, got {program!r}")
    turn = Sequence([program])
    addInPlace(graph, counter, increment, turn, below(debugContext, "increment"))
    return Sequence([Copy(start, counter), Repeat(-(-(last - first) // by), turn, below(debugContext, "countedLoop"))])


@public
def addForLoopCounterVertex(
    graph: Graph, count: Tensor, countLimit: Tensor, countStep: int, tile: int, prog: Sequence, di: str | None = None
) -> Tensor:
    """Extend `prog` by a step that adds `countStep` to `count`, on a tile, and gives 1 while it is not `countLimit`, then 0.

    Parameters
    ----------
    count:
        The counter, one INT or UNSIGNED_INT, which can be written.
    countLimit:
        Where the loop ends, one element of the type of `count`.
    countStep:
        A whole number of 32 bits other than 0.
    tile:
        The tile of the vertex and of the result.
    di:
        A name for what the call adds to the graph.

    Returns
    -------
    Tensor
        A new UNSIGNED_INT of shape [], to be asked by `program.RepeatWhileTrue`.

    Raises
    ------
    PoplibsError
        For other types, several elements or another tile, for a `count` that is a constant, and if both are one element.
    """
    call = "popops.addForLoopCounterVertex"
    check_call(call, graph, prog, di)
    _check_counters(call, graph, count, countLimit, countStep)
    tile = whole_number(call, "tile", tile)
    if tile >= graph.getTarget().getNumTiles():
        raise PoplibsError(f"{call}: tile {tile}, and the graph has {graph.getTarget().getNumTiles()} tiles")
    predicate = graph.addVariable(UNSIGNED_INT, [], below(di, "predicate"))
    graph.setTileMapping(predicate, tile)
    cs = graph.addComputeSet(below(di, "ForLoopCounter"))
    edges = {"count": count.reshape([]), "limit": countLimit.reshape([]), "comparisonResult": predicate}
    vertex = graph.addVertex(cs, templateVertex("popops::ForLoopCounter", count.elementType()), edges)
    graph.setInitialValue(vertex["increment"], countStep % UNSIGNED_END if count.elementType() is UNSIGNED_INT else countStep)
    graph.setTileMapping(vertex, tile)
    prog.add(Execute(cs))
    return predicate


@overload
def countedForLoop(
    graph: Graph,
    count: Tensor,
    initialCount: int,
    countLimit: Tensor,
    countStep: int,
    body: Program,
    debugContext: str | None = None,
) -> Sequence: ...
@overload
def countedForLoop(
    graph: Graph, initialCount: int, countLimit: Tensor, countStep: int, body: Program, debugContext: str | None = None
) -> Sequence: ...
@overloaded("popops.countedForLoop")
def countedForLoop(
    graph: Graph,
    initialCount: int,
    countLimit: Tensor,
    countStep: int,
    body: Program,
    count: Tensor | None = None,
    debugContext: str | None = None,
) -> Sequence:
    """A loop whose end is known when it runs: `body` for `initialCount`, ``initialCount + countStep`` ..., until `countLimit`.

    The loop ends where the counter *equals* the limit: one that it steps over is never reached.

    Parameters
    ----------
    initialCount:
        The counter's first value, of the limit's type.
    countLimit:
        Where the loop ends, one INT or UNSIGNED_INT, read before each round.
    countStep:
        What is added after a round, a whole number of 32 bits other than 0.
    body:
        The program of a round.
    count:
        The counter, which `body` may read, of the limit's type; without it the call makes one on tile 0.

    Returns
    -------
    Sequence
        The loop, to be added to a program.

    Raises
    ------
    PoplibsError
        For other types or several elements, for an `initialCount` that the type does not have, for a `count` that is a
        constant, and if both are one element.
    """
    call = "popops.countedForLoop"
    _check_counters(call, graph, count, countLimit, countStep)
    type = countLimit.elementType()
    low, high = (0, UNSIGNED_END) if type is UNSIGNED_INT else (-(2**31), 2**31)
    if not low <= initialCount < high:
        raise PoplibsError(f"{call}: {initialCount} is no {type!r}, as {countLimit!r} is")
    if count is None:
        count = graph.addVariable(type, [], below(debugContext, "count"))
        graph.setTileMapping(count, 0)
    before = (initialCount - countStep - low) % UNSIGNED_END + low  # the condition counts before it compares
    start = graph.addConstant(type, [], before, below(debugContext, "initialCount"))
    graph.setTileMapping(start, 0)
    condition = Sequence()
    predicate = addForLoopCounterVertex(graph, count, countLimit, countStep, 0, condition, below(debugContext, "countedLoop"))
    loop = RepeatWhileTrue(condition, predicate, body, below(debugContext, "countedLoop"))
    return Sequence([Copy(start, count.reshape([])), loop])


def _check_counters(call: str, graph: Graph, count: Tensor | None, limit: Tensor, step: int) -> None:
    """`count` is None where the call makes one."""
    named = {"countLimit": limit} if count is None else {"count": count, "countLimit": limit}
    check_own(call, graph, **named)
    check_codelet(call, graph, templateVertex("popops::ForLoopCounter", INT))
    for name, tensor in named.items():
        if tensor.numElements() != 1 or tensor.elementType() not in WHOLE:
            raise PoplibsError(f"{call}: {name} is one INT or UNSIGNED_INT, got {tensor!r}")
    check_operands(call, graph, **named)
    if count is not None and count.elementType() is not limit.elementType():
        raise PoplibsError(f"{call}: count and countLimit have one type, got {count!r} and {limit!r}")
    if count is not None and not count.isParallelWriteable():
        raise PoplibsError(f"{call}: {count!r} is counted, and cannot be written: it is a constant")
    if count is not None and shares_elements(graph, count, limit):
        raise PoplibsError(f"{call}: count and countLimit are the same element, which a loop would never reach: {count!r}")
    if not fits(step, int) or step == 0 or not -(2**31) <= step < 2**31:
        raise PoplibsError(f"{call}: countStep is a whole number other than 0, of 32 bits, got {step!r}")
