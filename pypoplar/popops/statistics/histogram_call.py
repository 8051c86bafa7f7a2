"""`popops.histogram`: how many elements lie between levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import overload

from pypoplar.errors import InvalidOption
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops.elements.cast import cast
from pypoplar.popops.elements.element_functions import addInPlace
from pypoplar.popops.reduction.reduce_call import reduce, reduceWithOutput
from pypoplar.popops.reduction.reduce_params import Operation, ReduceParams
from pypoplar.popops.statistics.histogram_cycles import by_data_cycles, by_limit_cycles
from pypoplar.poputil.arguments import check_codelet, check_operands, check_own, check_writeable
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy, Execute, Sequence
from pypoplar.types import FLOAT, HALF, INT, UNSIGNED_INT

Options = Mapping[str, object] | None
OPTIONS: dict[str, Kind] = {"useFloatArithmetic": bool, "useFloatArithmeticWithUnsignedIntOutput": bool}
LARGEST_COUNT_OF_FLOATS = 1 << 24  # beyond it sums of floats leave out ones


@overload
def histogram(
    graph: Graph,
    input: Tensor,
    levels: Tensor,
    absoluteOfInput: bool,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor: ...
@overload
def histogram(
    graph: Graph,
    input: Tensor,
    output: Tensor,
    updateOutput: bool,
    levels: Tensor,
    absoluteOfInput: bool,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> None: ...
@overloaded("popops.histogram")
def histogram(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    input: Tensor,
    levels: Tensor,
    absoluteOfInput: bool,
    prog: Sequence,
    output: Tensor | None = None,
    updateOutput: bool = False,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor | None:
    """How many elements of `input` are below the first of some levels, between two of them, and beyond the last.

    An element counts between the levels a and b if it is a at least, and below b. NaNs are counted beyond all levels. `prog` is
    extended.

    Parameters
    ----------
    input:
        FLOAT or HALF of any shape.
    levels:
        A vector of its type with ascending numbers, one at least.
    absoluteOfInput:
        Whether the magnitudes of the elements are counted.
    output:
        The tensor that the counts are written to, UNSIGNED_INT or FLOAT ``[len(levels) + 1]``. Counts of FLOATs are summed up
        in float.
    updateOutput:
        Whether they are added to what is there.
    options:
        Known are

        - ``useFloatArithmeticWithUnsignedIntOutput`` (false): sums are taken in float, which of more than 2^24 elements is
          faster, and leaves some out.
        - ``useFloatArithmetic`` (false): the same, and the result is FLOAT; not with `output`.

    Returns
    -------
    Tensor | None
        The counts, a new UNSIGNED_INT tensor ``[len(levels) + 1]``; None with `output`.

    Raises
    ------
    PoplibsError
        For other types and shapes, and an `output` that cannot be written.
    InvalidOption
        For other options, and for two that exclude each other.
    """
    call = "popops.histogram"
    chosen = read_options(call, options, OPTIONS)
    floats = bool(chosen.get("useFloatArithmetic", False))
    whole_output = bool(chosen.get("useFloatArithmeticWithUnsignedIntOutput", False))
    if floats and output is not None:
        raise InvalidOption(f"{call}: the type of output decides; the option 'useFloatArithmetic' is for the form without one")
    if floats and whole_output:
        raise InvalidOption(
            f"{call}: the options 'useFloatArithmetic' and 'useFloatArithmeticWithUnsignedIntOutput' exclude each other"
        )
    check_own(call, graph, input, levels, *(() if output is None else (output,)))
    _check(call, input, levels, output, whole_output)
    check_operands(call, graph, input, levels, *(() if output is None else (output,)))
    check_codelet(call, graph, templateVertex("popops::Histogram1D", True, True, input.elementType()))
    debug = below(debugContext, "histogram")
    partials = _partials(graph, input, levels, bool(absoluteOfInput), prog, debug)
    in_float = floats or whole_output or input.numElements() <= LARGEST_COUNT_OF_FLOATS
    if output is not None and output.elementType() is FLOAT:
        reduceWithOutput(graph, partials, output, [0], ReduceParams(Operation.ADD, updateOutput), prog, debug)
        return None
    if not in_float:
        partials = cast(graph, partials, INT, prog, debug)
    counts = reduce(graph, partials, [0], Operation.ADD, prog, debug)
    if floats:
        return counts
    whole = cast(graph, counts, UNSIGNED_INT, prog, debug) if in_float else counts.reinterpret(UNSIGNED_INT)
    if output is None:
        return whole
    if updateOutput:
        addInPlace(graph, output, whole, prog, debug)
    else:
        prog.add(Copy(whole, output, debug))
    return None


def _check(call: str, input: Tensor, levels: Tensor, output: Tensor | None, whole_output: bool) -> None:
    if input.elementType() not in (FLOAT, HALF):
        raise PoplibsError(f"{call}: input is FLOAT or HALF, got {input!r}")
    if levels.elementType() is not input.elementType() or levels.rank() != 1 or levels.numElements() == 0:
        raise PoplibsError(f"{call}: levels is a vector of {input.elementType()!r} with one element at least, got {levels!r}")
    if output is None:
        return
    size, types = levels.numElements() + 1, (UNSIGNED_INT,) if whole_output else (FLOAT, UNSIGNED_INT)
    if output.shape() != [size] or output.elementType() not in types:
        raise PoplibsError(f"{call}: output has {size} elements of {' or '.join(map(repr, types))}, got {output!r}")
    check_writeable(call, output)


def _partials(graph: Graph, input: Tensor, levels: Tensor, absolute: bool, prog: Sequence, debug: str) -> Tensor:
    """The counts of each tile, or of its workers: a matrix of FLOATs [partial counts, levels + 1]."""
    simple, _ = graph.reorderToSimplify(input.flatten())
    mapping, target, limits = graph.getTileMapping(simple), graph.getTarget(), levels.numElements()
    type = input.elementType()
    cs = graph.addComputeSet(debug)
    counts = []
    for tile, intervals in enumerate(mapping):
        elements = sum(interval.size() for interval in intervals)
        if not elements:
            continue
        by_limit, by_data = (cost(target, elements, limits, type, absolute) for cost in (by_limit_cycles, by_data_cycles))
        rows = target.getNumWorkerContexts() if by_data < by_limit else 1
        partial = graph.addVariable(FLOAT, [rows, limits + 1], below(debug, "partials"))
        graph.setTileMapping(partial, tile)
        vertex = templateVertex("popops::Histogram1D", absolute, rows == 1, type)
        edges = {"data": concat(simple.slices(intervals)), "limits": levels, "histogram": partial.flatten()}
        graph.setTileMapping(graph.addVertex(cs, vertex, edges), tile)
        counts.append(partial)
    if not counts:
        return graph.addVariable(FLOAT, [0, limits + 1], below(debug, "partials"))
    prog.add(Execute(cs))
    return concat(counts, 0)
