"""`reduce`, `reduceWithOutput` and `reduceMany`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from math import inf, prod
from typing import Any, overload

from attrs import frozen

from pypoplar.braces import NUMBERS, ordered
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.popops.elements.element_vertices import add_element_vertices
from pypoplar.popops.reduction.local_plan import ReduceTypes, plan_local
from pypoplar.popops.reduction.partial_matrix import PartialMatrix
from pypoplar.popops.reduction.reduce_build import ComputeSets, ReduceBuilder
from pypoplar.popops.reduction.reduce_params import (
    PRECISE,
    SUMS,
    TYPES,
    WIDENED,
    Operation,
    ReduceParams,
    SingleReduceOp,
    added,
    listed_types,
    params_of,
)
from pypoplar.popops.reduction.reduce_plan import Results
from pypoplar.popops.reduction.tile_holdings import TileHoldings, holdings_of
from pypoplar.poputil.arguments import (
    check_codelet,
    check_compute_set,
    check_debug,
    check_graph,
    check_operands,
    check_own,
    check_tensor,
    dimension_of,
)
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.copies import shares_elements
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.largest_tensor import check_fits
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.placement.tiles_of_elements import TileRegions, place_as
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy, Execute, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import BOOL, FLOAT, HALF, INT, LONGLONG, UNSIGNED_INT, ElementType, check_type

OPTIONS: dict[str, Kind] = {"accumType.interTile": ("float", "half"), "accumType.inVertex": ("float", "half")}
WIDE: dict[ElementType, ElementType] = {HALF: FLOAT, BOOL: UNSIGNED_INT}  # of results that workers write side by side
IDENTITY: dict[Operation, int] = {Operation.MUL: 1, Operation.LOGICAL_AND: 1}  # 0 of the others but MIN and MAX
Options = Mapping[str, object] | None
Work = Sequence | list[ComputeSet]


@overload
def reduce(
    graph: Graph,
    in_: Tensor,
    outType: ElementType,
    dims: Iterable[int],
    params: ReduceParams | Operation,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor: ...
@overload
def reduce(
    graph: Graph,
    in_: Tensor,
    outType: ElementType,
    dims: Iterable[int],
    params: ReduceParams | Operation,
    css: list[ComputeSet],
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor: ...
@overload
def reduce(
    graph: Graph,
    in_: Tensor,
    dims: Iterable[int],
    params: ReduceParams | Operation,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor: ...
@overload
def reduce(
    graph: Graph,
    in_: Tensor,
    dims: Iterable[int],
    params: ReduceParams | Operation,
    css: list[ComputeSet],
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor: ...
@overloaded("popops.reduce")
def reduce(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    in_: Tensor,
    dims: Iterable[int],
    params: ReduceParams | Operation,
    outType: ElementType | None = None,
    prog: Sequence | None = None,
    css: list[ComputeSet] | None = None,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """`in_` with the dimensions `dims` reduced to one element each and left out, as a new tensor.

    The result of no dimensions is a copy; that of a dimension of size 0 is what the operation starts from: 0, 1, the largest or
    the smallest value, infinity for floats. The order in which elements are combined follows from shapes, mapping and target
    alone.

    Parameters
    ----------
    in_:
        What is reduced, of a type that the `Operation` takes.
    dims:
        The numbers of dimensions, in any order.
    params:
        A `ReduceParams`, or an `Operation` alone.
    outType:
        The type of the result, that of `in_` by default. ADD, SQUARE_ADD, MUL and LOG_ADD of FLOAT or HALF give either.
    css:
        A list of compute sets instead of `prog`, which is extended: vertices of stage i go into the i-th, and those that it
        lacks are appended. The caller executes them one after the other.
    options:
        Known are ``accumType.inVertex`` and ``accumType.interTile``, each "float" or "half": the type of partial results within
        a vertex and from tile to tile. By default all but MIN, MAX and the logical operations combine halves in float.

    Returns
    -------
    Tensor
        Of the shape of `in_` without `dims`, mapped where the last stage computes it.

    Raises
    ------
    PoplibsError
        For types that the operation does not take or give, if `params` has update (that is what `reduceWithOutput` does), if
        MUL, MIN, MAX or a logical operation is scaled, and for LOG_ADD of no elements.
    PoplarIndexError
        For a dimension that `in_` does not have.
    InvalidTileMapping
        If an element of `in_` or of the scale has no tile.

    Notes
    -----
    The stages, and the tiles of each, are those that the model predicts to be fastest.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popops, program, testing
    >>> def compute(graph, x):
    ...     popops.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     return prog, {"sums": popops.reduce(graph, x, [1], popops.Operation.ADD, prog)}
    >>> testing.run(compute, {"x": np.float32([[1, 2, 3], [10, 20, 30]])})["sums"]
    array([ 6., 60.], dtype=float32)
    """
    call = ReduceCall.read("popops.reduce", graph, in_, outType, dims, params, prog if css is None else css, debugContext, options)
    if call.params.update:
        raise PoplibsError("popops.reduce makes a new tensor, so there is nothing to update; call popops.reduceWithOutput")
    return call.add(None)


@overload
def reduceWithOutput(
    graph: Graph,
    in_: Tensor,
    out: Tensor,
    dims: Iterable[int],
    params: ReduceParams | Operation,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> None: ...
@overload
def reduceWithOutput(
    graph: Graph,
    in_: Tensor,
    out: Tensor,
    dims: Iterable[int],
    params: ReduceParams | Operation,
    css: list[ComputeSet],
    debugContext: str | None = None,
    options: Options = None,
) -> None: ...
@overloaded("popops.reduceWithOutput")
def reduceWithOutput(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    in_: Tensor,
    out: Tensor,
    dims: Iterable[int],
    params: ReduceParams | Operation,
    prog: Sequence | None = None,
    css: list[ComputeSet] | None = None,
    debugContext: str | None = None,
    options: Options = None,
) -> None:
    """As `reduce`, into a tensor that is given, with its type.

    Parameters
    ----------
    in_:
        What is reduced, of a type that the `Operation` takes.
    out:
        The tensor that is written. It has the shape of the result, where dimensions of size 1 do not count. Where not all its
        elements have a tile, all are mapped.
    dims:
        The numbers of dimensions, in any order.
    params:
        A `ReduceParams`, or an `Operation` alone. With update, `out` becomes what it was and the result together.
    css:
        A list of compute sets instead of `prog`, as for `reduce`.
    options:
        As for `reduce`.

    Raises
    ------
    PoplibsError
        As for `reduce`, but for update; for an `out` of another shape, that holds an element twice or a constant, or that has
        elements of `in_` or of the scale.
    PoplarIndexError
        For a dimension that `in_` does not have.
    InvalidTileMapping
        If an element of `in_` or of the scale has no tile.
    """
    work = prog if css is None else css
    call = ReduceCall.read("popops.reduceWithOutput", graph, in_, out.elementType(), dims, params, work, debugContext, options)
    call.check_output(out)
    call.add(out)


@public
def reduceMany(
    graph: Graph,
    reductions: Iterable[SingleReduceOp],
    outputs: list[Tensor],
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> list[Tensor]:
    """Reductions side by side: the first stages of all in one compute set, then the second ones; `prog` is extended.

    Parameters
    ----------
    reductions:
        What is reduced, and how.
    outputs:
        A tensor for each reduction, as `reduceWithOutput` takes it; or an empty list, which is filled with new ones.
    options:
        As for `reduce`, for all of them.

    Returns
    -------
    list[Tensor]
        The list `outputs`.

    Raises
    ------
    PoplibsError
        As for `reduceWithOutput`; for another number of outputs, for an update without outputs, and if a reduction writes
        elements that another one reads or writes.
    PoplarTypeError
        For what is no list of `SingleReduceOp`, and outputs that are no list.
    """
    name = "popops.reduceMany"
    check_graph(name, graph)
    if not isinstance(ordered(reductions, f"the reductions of {name}", "[SingleReduceOp(...), ...]"), Iterable):
        raise PoplarTypeError(f"{name}: reductions is a list of popops.SingleReduceOp, got {reductions!r}")
    asked = list(reductions)
    if not isinstance(prog, Sequence):
        raise PoplarTypeError(f"{name}: the argument prog is the Sequence that the call extends, got {prog!r}")
    read_options(name, options, OPTIONS)
    if not isinstance(ordered(outputs, f"the outputs of {name}", "[a, b]"), list):
        raise PoplarTypeError(f"{name}: outputs is a list of tensors, or an empty one that is filled, got {outputs!r}")
    if outputs and len(outputs) != len(asked):
        raise PoplibsError(f"{name} has {len(asked)} reductions, got {len(outputs)} outputs; an empty list has them made")
    css: list[ComputeSet] = []
    calls: list[ReduceCall] = []
    for number, single in enumerate(asked):
        if not isinstance(single, SingleReduceOp):
            raise PoplarTypeError(f"{name}: a reduction is a popops.SingleReduceOp, got {single!r}")
        type = single.outType if single.useOutType else None
        if outputs:
            check_tensor(name, outputs[number])
            type = outputs[number].elementType()
        debug = below(debugContext, single.debugName or f"reduction-{number}")
        call = ReduceCall.read(name, graph, single.in_, type, single.dims, single.params, css, debug, options, calls)
        calls.append(call)
        if outputs:
            calls[-1].check_output(outputs[number])
        elif single.params.update:
            raise PoplibsError(f"{name}: reduction {number} updates its output, so outputs must be given")
    _check_apart(name, calls, outputs)
    results = [call.add(outputs[number] if outputs else None, number) for number, call in enumerate(calls)]
    for cs in css:
        prog.add(Execute(cs))
    if not outputs:
        outputs += results
    return outputs


def _check_apart(name: str, calls: list[ReduceCall], outputs: list[Tensor]) -> None:
    """What one reduction writes no other may read or write: they run at once."""
    if not outputs:
        return
    for number, out in enumerate(outputs):
        for other, call in enumerate(calls):
            graph = call.graph
            shared = shares_elements(graph, out, call.in_) or (other != number and shares_elements(graph, out, outputs[other]))
            if shared:
                raise PoplibsError(
                    f"{name}: output {number}, {out!r}, has elements that reduction {other} uses, and they run at once"
                )


@frozen(eq=False)
class ReduceCall:
    """A call of reduce whose arguments are checked."""

    name: str
    graph: Graph
    in_: Tensor
    out_type: ElementType
    dims: list[int]
    params: ReduceParams
    types: ReduceTypes
    prog: Work
    debug: str
    holdings: TileHoldings | None  # of what has elements

    @staticmethod
    def read(  # noqa: PLR0913 (what calls have)
        name: str,
        graph: Graph,
        in_: Tensor,
        outType: ElementType | None,
        dims: Iterable[int],
        params: ReduceParams | Operation,
        work: Work | None,
        debugContext: str | None,
        options: Options,
        others: SequenceOf[ReduceCall] = (),
    ) -> ReduceCall:
        """Check the arguments, before the graph changes. What tiles hold is taken from others of the same tensor."""
        check_operands(name, graph, in_)
        check_debug(name, debugContext)
        check_fits(f"{name}: what is reduced", graph.getTarget(), in_.elementType(), in_.shape())
        prog = [] if work is None else work
        if isinstance(prog, list) and not all(isinstance(cs, ComputeSet) for cs in prog):
            raise PoplarTypeError(f"{name}: css is a list of compute sets, got {prog!r}")
        numbers = _dimensions(name, in_, dims)
        given = params_of(name, params)
        type = in_.elementType() if outType is None else check_type(outType)
        _check_types(name, given, in_, type)
        types = _types(name, given.op, in_.elementType(), type, options)
        if given.op is Operation.LOG_ADD and any(in_.dim(dimension) == 0 for dimension in numbers):
            raise PoplibsError(f"{name}: LOG_ADD of no elements has no value in {in_!r} over dimensions {numbers}")
        if given.scale is not None:
            check_operands(name, graph, given.scale)
        for cs in prog if isinstance(prog, list) else ():
            check_compute_set(name, graph, cs)
        check_codelet(name, graph, templateVertex("popops::Fill", type))
        same = (other.holdings for other in others if other.in_ is in_ and other.dims == numbers)
        return ReduceCall.of(name, graph, in_, type, numbers, given, types, prog, below(debugContext, "reduce"), next(same, None))

    @staticmethod
    def of(  # noqa: PLR0913 (what calls have)
        name: str,
        graph: Graph,
        in_: Tensor,
        type: ElementType,
        dims: list[int],
        params: ReduceParams,
        types: ReduceTypes,
        prog: Work,
        debug: str,
        holdings: TileHoldings | None = None,
    ) -> ReduceCall:
        """A call whose arguments are right; what it reduces has tiles. `holdings` are theirs if they are known."""
        if holdings is None:
            holdings = holdings_of(graph, in_, dims) if in_.numElements() else None
        return ReduceCall(name, graph, in_, type, dims, params, types, prog, debug, holdings)

    @property
    def shape(self) -> list[int]:
        """The shape of the result."""
        return [size for dimension, size in enumerate(self.in_.shape()) if dimension not in self.dims]

    def check_output(self, out: Tensor) -> None:
        """Whether `out` can take the result."""
        check_own(self.name, self.graph, out)
        if [size for size in out.shape() if size != 1] != [size for size in self.shape if size != 1]:
            raise PoplibsError(f"{self.name} of {self.in_!r} over dimensions {self.dims} gives shape {self.shape}, got {out!r}")
        if not out.isParallelWriteable():
            raise PoplibsError(f"{self.name}: {out!r} cannot be written: it holds an element twice, or a constant")
        for what, tensor in (("what is reduced", self.in_), ("the scale", self.params.scale)):
            if tensor is not None and shares_elements(self.graph, out, tensor):
                raise PoplibsError(f"{self.name}: the output {out!r} has elements of {what}, {tensor!r}")

    def add(self, out: Tensor | None, number: int = 0) -> Tensor:
        """Add what computes the result, into `out` if there is one. `number` tells reductions that run at once apart."""
        css: list[ComputeSet] = self.prog if isinstance(self.prog, list) else []
        outputs = prod(self.shape)
        if out is None:
            given, placed = self.graph.addVariable(self.out_type, self.shape, self.debug), False
        else:
            given, placed = out, self.graph.elements_without_tile(out) == 0
        if outputs == 0:
            return given
        if self.in_.numElements() == 0:
            self._start(css, given, placed)
        elif self._copies and isinstance(self.prog, Sequence):
            if not placed:
                place_as(self.graph, given, self.in_)
            self.prog.add(Copy(self.in_.reshape(given.shape()), given))
        else:
            self._reduce(css, given.flatten(), placed, number)
        if isinstance(self.prog, Sequence):
            for cs in css:
                self.prog.add(Execute(cs))
        return given

    @property
    def _places(self) -> int:
        """Elements that are reduced to one."""
        return prod(self.in_.dim(dimension) for dimension in self.dims)

    @property
    def _copies(self) -> bool:
        plain = not (self.params.update or self.params.useScale or self.params.op is Operation.SQUARE_ADD)
        return self._places == 1 and plain and self.in_.elementType() is self.out_type and not self.in_.containsAliases()

    def _start(self, css: list[ComputeSet], out: Tensor, placed: bool) -> None:
        """What reducing nothing gives; an update adds nothing."""
        if not placed:
            mapTensorLinearly(self.graph, out)
        if self.params.update:
            return
        value = float(IDENTITY.get(self.params.op, 0))
        if self.params.op in (Operation.MIN, Operation.MAX):
            low, high = (-inf, inf) if self.out_type.is_floating else self.out_type.limits
            value = high if self.params.op is Operation.MIN else low
        cs = ComputeSets(self.graph, css, self.debug).at(0, "fill")
        fill = templateVertex("popops::Fill", self.out_type)
        add_element_vertices(self.graph, cs, fill, "out", {"out": out}, values={"in": value})

    def _reduce(self, css: list[ComputeSet], out: Tensor, placed: bool, number: int) -> None:
        target = self.graph.getTarget()
        holdings = self.holdings
        assert holdings is not None
        sets = ComputeSets(self.graph, css, self.debug)
        builder = ReduceBuilder(self.graph, sets, self.params, self.types, out, placed, self.debug)
        operation, stage = self.params.op, 0
        first = int(holdings.tile[0]) + number
        results = Results(self.out_type, self.params.update, self._most_outputs(out) if placed else 0)
        local = plan_local(target, operation.name, holdings, self._places, self.types, results)
        if local.reduces:
            matrices, stage, operation = builder.local(holdings, local), 1, added(operation)
        else:
            kept = [dimension for dimension in range(self.in_.rank()) if dimension not in self.dims]
            values = self.in_.dimShuffle([*kept, *self.dims]).reshape([out.numElements(), self._places])
            matrices = [PartialMatrix.whole(values)]
        plan = local.after
        if plan is None:
            return
        for across in plan.stages[:-1]:
            matrices = builder.across(stage, matrices, across, operation, first)
            operation = added(operation)
            stage += 1
        builder.final(stage, matrices, plan, operation, first)

    def _most_outputs(self, out: Tensor) -> int:
        """Of the tile that has most."""
        return TileRegions.of(self.graph, out).most()


def any_true(name: str, graph: Graph, flags: Tensor, prog: Sequence, debug: str) -> Tensor:
    """Whether one of some UNSIGNED_INTs is not 0: a BOOL of shape []."""
    params = ReduceParams(Operation.LOGICAL_OR)
    types = ReduceTypes(BOOL, UNSIGNED_INT, UNSIGNED_INT)
    return ReduceCall.of(name, graph, flags, BOOL, [0], params, types, prog, below(debug, "reduce")).add(None)


def _dimensions(name: str, in_: Tensor, dims: Any) -> list[int]:
    given = ordered(dims, f"the dimensions of {name}", NUMBERS)
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise PoplarTypeError(f"{name}: dims is a list of dimensions, got {dims!r}")
    numbers = list(given)
    for number in numbers:
        dimension_of(name, "a dimension", in_, number)
    return sorted({int(number) for number in numbers})


def _check_types(name: str, params: ReduceParams, in_: Tensor, out: ElementType) -> None:
    op, type = params.op, in_.elementType()
    if type not in TYPES[op]:
        raise PoplibsError(f"{name}: {op.name} takes {listed_types(TYPES[op])}, got {in_!r}")
    widened = op in WIDENED and type is INT and out is LONGLONG
    if out is not type and not widened and not (op in PRECISE and type.is_floating and out.is_floating):
        results = "FLOAT or HALF" if op in PRECISE and type.is_floating else repr(type)
        if op in WIDENED and type is INT:
            results += " or LONGLONG"
        raise PoplibsError(f"{name}: {op.name} of {type!r} gives {results}, not {out!r}")
    if (params.update or params.useScale) and op not in SUMS:
        what = "scaled" if params.useScale else "updated"
        raise PoplibsError(f"{name}: only ADD, SQUARE_ADD and LOG_ADD are {what}, got {op.name}")
    if params.scale is not None and (params.scale.elementType() is not FLOAT or params.scale.numElements() != 1):
        raise PoplibsError(f"{name}: the scale is one FLOAT, got {params.scale!r}")


def _types(name: str, op: Operation, type: ElementType, out: ElementType, options: Options) -> ReduceTypes:
    """The types of partial results: the output's, but FLOAT where that is more precise; options never make them smaller."""
    usual = FLOAT if out is HALF and op in PRECISE else out
    chosen = read_options(name, options, OPTIONS)
    named = {"float": FLOAT, "half": HALF}
    asked = [named.get(str(chosen.get(f"accumType.{where}")), usual) for where in ("inVertex", "interTile")]
    in_vertex, between = (wanted if wanted.size >= out.size else out for wanted in asked) if out.is_floating else (out, out)
    return ReduceTypes(in_vertex, between, WIDE.get(between, between))
