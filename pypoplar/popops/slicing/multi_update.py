"""Updates of many slices of a tensor at once: replaced, added to, multiplied, or the larger of both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops.elements.cast import cast, castWithOutput
from pypoplar.popops.elements.scaled_add import scaledAddTo
from pypoplar.popops.loops.counted_loops import countedLoop
from pypoplar.popops.slicing.dynamic_slice import slice_at, update_at
from pypoplar.popops.slicing.multi_arguments import MultiCall
from pypoplar.popops.slicing.multi_slice import FEW, static_offsets
from pypoplar.popops.slicing.multi_vertices import EntryUpdate, UnplannedTable, spread_table
from pypoplar.popops.slicing.planned_vertices import PlannedPass
from pypoplar.popops.slicing.slice_arguments import (
    Extent,
    IndexOptions,
    Options,
    check_same_type,
    check_written,
    whole_number,
    whole_numbers,
)
from pypoplar.popops.slicing.slice_options import SliceOptions
from pypoplar.popops.slicing.slice_plan import SlicePlan
from pypoplar.poputil.arguments import check_call, check_codelet, check_operands
from pypoplar.poputil.copies import apart
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, INT, UNSIGNED_INT, ElementType

NUMBERS = (FLOAT, HALF, INT, UNSIGNED_INT)


@public
def multiUpdate(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    prog: Sequence,
    plan: SlicePlan,
    options: Options,
    debugContext: str | None = None,
) -> None:
    """Put slices in the places in `t` that `multiSlice` would take; `prog` is extended.

    Of several in one place the last one stays. What goes to an offset out of range is dropped.

    Parameters
    ----------
    t:
        What is written.
    s:
        The slices, ``[lookups, *shape of a slice]`` of the type of `t`.
    offsets:
        UNSIGNED_INT ``[lookups, len(dims)]``.
    dims:
        The dimensions that are sliced, each once.
    sizes:
        How many elements of each of `dims` a slice has.
    plan:
        A plan of `embedding.plan`, or the empty ``SlicePlan()``: the tensors are taken as they are mapped.
    options:
        As for `multiSlice`.

    Raises
    ------
    PoplibsError
        As for `multiSlice`; for slices of another shape or type, if `t` holds an element twice or a constant, and for a plan
        that is not for updates.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    _combine("", graph, t, s, offsets, dims, sizes, prog, plan, options, debugContext, grouped=False)


@public
def groupedMultiUpdate(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    prog: Sequence,
    plan: SlicePlan,
    options: Options,
    debugContext: str | None = None,
) -> None:
    """`multiUpdate` of each group of `t` with slices and offsets of its own, by a plan for groups; `prog` is extended.

    Parameters
    ----------
    t:
        What is written, ``[groups, *shape]``.
    s:
        The slices, ``[groups, lookups, *shape of a slice]``.
    offsets:
        UNSIGNED_INT ``[groups, lookups, 1]``.
    dims:
        The dimensions of a group that are sliced: [0].
    sizes:
        How many elements of them: [1].
    plan:
        A plan of `embedding.plan` for as many groups.
    options:
        As for `multiSlice`.

    Raises
    ------
    PoplibsError
        As for `multiUpdate`; for the empty plan, and one for another number of groups.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    _combine("", graph, t, s, offsets, dims, sizes, prog, plan, options, debugContext, grouped=True)


@overload
def multiUpdateAdd(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    scale: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    prog: Sequence,
    plan: SlicePlan,
    options: Options,
    debugContext: str | None = None,
) -> None: ...
@overload
def multiUpdateAdd(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Iterable[int],
    scale: Tensor,
    dim: int,
    prog: Sequence,
    debugContext: str | None = None,
    optionFlags: Options = None,
) -> None: ...
@overloaded("popops.multiUpdateAdd")
def multiUpdateAdd(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor | Iterable[int],
    scale: Tensor,
    prog: Sequence,
    dims: Iterable[int] = (),
    sizes: Iterable[int] = (),
    plan: SlicePlan | None = None,
    options: Options = None,
    dim: int = 0,
    debugContext: str | None = None,
    optionFlags: Options = None,
) -> None:
    """Add `scale` times the slices `s` to the places in `t` that `multiSlice` would take, in their order; `prog` is extended.

    Halves are added in float and rounded once each time, or once after all with the option ``partialType`` float. What goes to
    an offset out of range is dropped.

    Parameters
    ----------
    t:
        What is written: FLOAT, HALF, INT or UNSIGNED_INT, a matrix if the offsets are a tensor.
    s:
        The slices, ``[lookups, *shape of a slice]`` of the type of `t`.
    offsets:
        UNSIGNED_INT ``[lookups, 1]``; or whole numbers known now, the indices of dimension `dim`.
    scale:
        A scalar [] of the type of `t`, or FLOAT where that is HALF.
    dims:
        The one dimension that is sliced.
    sizes:
        [1].
    plan:
        A plan of `embedding.plan`, or the empty ``SlicePlan()``: the tensors are taken as they are mapped.
    options:
        As for `multiSlice`; ``partialType`` is "half" or "float".
    dim:
        The dimension that numbers are indices of.
    optionFlags:
        As `options`, for numbers.

    Raises
    ------
    PoplibsError
        As for `multiUpdate`; for other types of `t` or `scale`, and for slices of another size or of several dimensions.
    PoplarIndexError
        For numbers out of range, and a dimension that `t` does not have.
    InvalidTileMapping
        If an element of a tensor has no tile.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popops, program, testing
    >>> def compute(graph, table, rows, places, scale):
    ...     popops.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     popops.multiUpdateAdd(graph, table, rows, places, scale, [0], [1], prog, popops.SlicePlan(), {})
    ...     return prog
    >>> arrays = {"table": np.zeros((3, 2), np.float32), "rows": np.float32([[[1, 2]], [[3, 4]]]), "places": np.uint32([[2], [2]])}
    >>> testing.run(compute, {**arrays, "scale": np.float32(10)})["table"].tolist()
    [[0.0, 0.0], [0.0, 0.0], [40.0, 60.0]]
    """
    if not isinstance(offsets, Tensor):
        call, debug = "popops.multiUpdateAdd", below(debugContext, "multiUpdateAdd")
        numbers = whole_numbers(call, "offsets", offsets)
        _add_static(call, graph, t, s, numbers, scale, whole_number(call, "dim", dim), prog, optionFlags, debug)
        return
    plan = plan or SlicePlan()
    _combine("Add", graph, t, s, offsets, dims, sizes, prog, plan, options, debugContext, grouped=False, scale=scale)


@public
def groupedMultiUpdateAdd(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    scale: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    prog: Sequence,
    plan: SlicePlan,
    options: Options,
    debugContext: str | None = None,
) -> None:
    """`multiUpdateAdd` of each group of `t` with slices and offsets of its own, by a plan for groups; `prog` is extended.

    Parameters
    ----------
    t:
        What is written, ``[groups, *shape]``.
    s:
        The slices, ``[groups, lookups, *shape of a slice]``.
    offsets:
        UNSIGNED_INT ``[groups, lookups, 1]``.
    scale:
        A scalar [] of the type of `t`, or FLOAT where that is HALF.
    dims:
        The dimensions of a group that are sliced: [0].
    sizes:
        How many elements of them: [1].
    plan:
        A plan of `embedding.plan` for as many groups.
    options:
        As for `multiUpdateAdd`.

    Raises
    ------
    PoplibsError
        As for `multiUpdateAdd`; for the empty plan, and one for another number of groups.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    _combine("Add", graph, t, s, offsets, dims, sizes, prog, plan, options, debugContext, grouped=True, scale=scale)


@public
def multiUpdateMax(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    prog: Sequence,
    plan: SlicePlan,
    options: Options,
    debugContext: str | None = None,
) -> None:
    """Put the larger of each two elements of slices and of the places that `multiSlice` would take into `t`; `prog` is extended.

    Parameters
    ----------
    t:
        What is written: a matrix of FLOAT, HALF, INT or UNSIGNED_INT.
    s:
        The slices, ``[lookups, *shape of a slice]`` of the type of `t`.
    offsets:
        UNSIGNED_INT ``[lookups, 1]``. What goes to one out of range is dropped.
    dims:
        The one dimension that is sliced.
    sizes:
        [1].
    plan:
        A plan of `embedding.plan`, or the empty ``SlicePlan()``: the tensors are taken as they are mapped.
    options:
        As for `multiSlice`.

    Raises
    ------
    PoplibsError
        As for `multiUpdate`; for another type, and for slices of another size or of several dimensions.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    _combine("Max", graph, t, s, offsets, dims, sizes, prog, plan, options, debugContext, grouped=False)


@public
def groupedMultiUpdateMax(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    prog: Sequence,
    plan: SlicePlan,
    options: Options,
    debugContext: str | None = None,
) -> None:
    """`multiUpdateMax` of each group of `t` with slices and offsets of its own, by a plan for groups; `prog` is extended.

    Parameters
    ----------
    t:
        What is written, ``[groups, *shape]``.
    s:
        The slices, ``[groups, lookups, *shape of a slice]``.
    offsets:
        UNSIGNED_INT ``[groups, lookups, 1]``.
    dims:
        The dimensions of a group that are sliced: [0].
    sizes:
        How many elements of them: [1].
    plan:
        A plan of `embedding.plan` for as many groups.
    options:
        As for `multiSlice`.

    Raises
    ------
    PoplibsError
        As for `multiUpdateMax`; for the empty plan, and one for another number of groups.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    _combine("Max", graph, t, s, offsets, dims, sizes, prog, plan, options, debugContext, grouped=True)


@public
def multiUpdateMul(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    prog: Sequence,
    plan: SlicePlan,
    options: Options,
    debugContext: str | None = None,
) -> None:
    """Multiply the places in `t` that `multiSlice` would take by the slices `s`, in their order; `prog` is extended.

    Parameters
    ----------
    t:
        What is written: a matrix of FLOAT, HALF, INT or UNSIGNED_INT.
    s:
        The slices, ``[lookups, *shape of a slice]`` of the type of `t`.
    offsets:
        UNSIGNED_INT ``[lookups, 1]``. What goes to one out of range is dropped.
    dims:
        The one dimension that is sliced.
    sizes:
        [1].
    plan:
        A plan of `embedding.plan`, or the empty ``SlicePlan()``: the tensors are taken as they are mapped.
    options:
        As for `multiSlice`.

    Raises
    ------
    PoplibsError
        As for `multiUpdate`; for another type, and for slices of another size or of several dimensions.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    _combine("Mul", graph, t, s, offsets, dims, sizes, prog, plan, options, debugContext, grouped=False)


@public
def groupedMultiUpdateMul(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    prog: Sequence,
    plan: SlicePlan,
    options: Options,
    debugContext: str | None = None,
) -> None:
    """`multiUpdateMul` of each group of `t` with slices and offsets of its own, by a plan for groups; `prog` is extended.

    Parameters
    ----------
    t:
        What is written, ``[groups, *shape]``.
    s:
        The slices, ``[groups, lookups, *shape of a slice]``.
    offsets:
        UNSIGNED_INT ``[groups, lookups, 1]``.
    dims:
        The dimensions of a group that are sliced: [0].
    sizes:
        How many elements of them: [1].
    plan:
        A plan of `embedding.plan` for as many groups.
    options:
        As for `multiSlice`.

    Raises
    ------
    PoplibsError
        As for `multiUpdateMul`; for the empty plan, and one for another number of groups.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    _combine("Mul", graph, t, s, offsets, dims, sizes, prog, plan, options, debugContext, grouped=True)


def _combine(
    operation: str,
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    prog: Sequence,
    plan: SlicePlan,
    options: Options,
    debugContext: str | None,
    grouped: bool,
    scale: Tensor | None = None,
) -> None:
    """The update that is called so: "Add" (with a scale), "Max", "Mul", or "" for the one that replaces."""
    name = f"{'groupedMultiUpdate' if grouped else 'multiUpdate'}{operation}"
    call = f"popops.{name}"
    check_call(call, graph, prog, debugContext)
    what = MultiCall.read(call, graph, t, offsets, dims, sizes, plan, options, grouped)
    if operation == "Add":
        _check_scale(call, graph, scale, t.elementType())
    _update(what, what.check_slices(s, grouped), prog, below(debugContext, name), operation.lower() or None, scale)


def _check_scale(call: str, graph: Graph, scale: Tensor | None, type: ElementType) -> None:
    """`PoplibsError` unless the scale is a scalar of a type that goes with the table's."""
    assert scale is not None
    check_operands(call, graph, scale=scale)
    if scale.rank() != 0:
        raise PoplibsError(f"{call}: the scale is a scalar, of shape [], got {scale!r}")
    allowed = (HALF, FLOAT) if type is HALF else (type,)
    if scale.elementType() not in allowed:
        raise PoplibsError(f"{call}: the scale of {type!r} is {' or '.join(map(repr, allowed))}, got {scale!r}")


def _update(what: MultiCall, s: Tensor, prog: Sequence, debug: str, operation: str | None, scale: Tensor | None) -> None:
    """Update by arguments that are checked, but for those that some operations do not take."""
    graph, t = what.graph, what.t
    type = t.elementType()
    check_written(what.name, t)
    if operation is not None and type not in NUMBERS:
        raise PoplibsError(f"{what.name} has no {type!r}: its types are {', '.join(map(repr, NUMBERS))}")
    if operation is not None and not (what.is_plain and t.rank() == 3):
        raise PoplibsError(
            f"{what.name}: slices are of size 1 of one dimension of a matrix, got sizes {list(what.extent.sizes)} of dimensions"
            f" {list(what.extent.dims)} of {t.elementType()!r} {list(what.extent.shape)}"
        )
    if what.layout is not None and what.layout.partition.lookupParallelSplit > 1:
        raise PoplibsError(f"{what.name}: the plan is not for updates; make it with usedForUpdate true, and operationForUpdate")
    partials = what.options.accumulates_in(what.name, type) if operation == "add" else type
    if s.numElements() == 0:
        return
    s, offsets = (apart(graph, read, t, prog, f"{debug}/copy") for read in (s, what.offsets))
    scale = None if scale is None else apart(graph, scale, t, prog, f"{debug}/copy")
    what = MultiCall(what.name, graph, t, offsets, what.extent, what.options, what.layout)
    what = what.in_range(prog, debug, everything=what.layout is not None or what.is_plain)
    if partials is not type:
        assert scale is not None
        wide, rows, factor = (cast(graph, read, partials, prog, f"{debug}/cast") for read in (t, s, scale))
        _into(
            MultiCall(what.name, graph, wide, what.offsets, what.extent, what.options, what.layout),
            rows,
            prog,
            debug,
            "add",
            factor,
        )
        castWithOutput(graph, wide, t, prog, f"{debug}/castBack")
    else:
        _into(what, s, prog, debug, operation, scale)


def _into(what: MultiCall, s: Tensor, prog: Sequence, debug: str, operation: str | None, scale: Tensor | None) -> None:
    """Update the table by its plan, or where it lies."""
    graph = what.graph
    update = EntryUpdate(operation, scale, what.options.in_order)
    if what.layout is not None:
        for part in PlannedPass.all_of(what.layout, what.t, what.offsets, s, debug):
            part.update(update, prog)
    elif what.is_plain and (operation is not None or what.lookups > FEW):
        (dim,) = what.extent.dims
        table = spread_table(graph, what.t[0], dim, what.options.memory, prog, debug)
        UnplannedTable.of(graph, table, s[0], what.offsets, dim).update(update, prog, debug, what.options.uniform)
        if table is not what.t[0] and table != what.t[0]:
            prog.add(Copy(table, what.t[0]))
    else:
        _one_by_one(what, s[0], prog, debug)


def _one_by_one(what: MultiCall, s: Tensor, prog: Sequence, debug: str) -> None:
    """Replace one slice after the other."""
    graph, offsets, remaps = what.graph, what.offsets[0], what.options.index
    if what.lookups <= FEW:
        for number in range(what.lookups):
            update_at(graph, what.t[0], s[number], offsets[number], what.extent, prog, remaps, f"{debug}/{number}")
        return
    index = IndexOptions(False, False)
    rows, given = Extent(tuple(offsets.shape()), (0,), (1,)), Extent(tuple(s.shape()), (0,), (1,))

    def body(number: Tensor) -> Sequence:
        steps = Sequence()
        offset = slice_at(graph, offsets, number, rows, steps, index, f"{debug}/index").squeeze([0])
        row = slice_at(graph, s, number, given, steps, index, f"{debug}/slice").squeeze([0])
        update_at(graph, what.t[0], row, offset, what.extent, steps, remaps, f"{debug}/update")
        return steps

    prog.add(countedLoop(graph, what.lookups, body, f"{debug}/loop"))


def _add_static(
    call: str,
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: tuple[int, ...],
    scale: Tensor,
    dim: int,
    prog: Sequence,
    options: Options,
    debug: str,
) -> None:
    """Add slices at offsets that are known now: those of different places at once, those of one place one after the other."""
    check_operands(call, graph, t=t, s=s)
    check_same_type(call, t=t, s=s)
    check_written(call, t)
    _check_scale(call, graph, scale, t.elementType())
    check_codelet(call, graph, templateVertex("popops::MultiUpdate", t.elementType()))
    chosen = static_offsets(call, t, offsets, dim, SliceOptions.read(call, options))
    wanted = [len(offsets), *(1 if place == dim else size for place, size in enumerate(t.shape()))]
    if s.shape() != wanted:
        raise PoplibsError(f"{call}: the slices have the shape {wanted}, got {s!r}")
    rounds: dict[int, list[int]] = defaultdict(list)
    seen: dict[int, int] = defaultdict(int)
    for number, offset in enumerate(chosen):
        if offset < t.dim(dim):
            rounds[seen[offset]].append(number)
            seen[offset] += 1
    rows, scale = (apart(graph, read, t, prog, f"{debug}/copy") for read in (s, scale))
    for numbers in rounds.values():
        places = concat([t.slice(chosen[number], chosen[number] + 1, dim).expand([0]) for number in numbers])
        scaledAddTo(graph, places, concat(rows.slices(numbers)), scale, prog, debug)
