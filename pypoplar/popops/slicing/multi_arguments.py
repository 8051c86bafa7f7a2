"""The arguments that lookups and updates of many slices have in common, checked."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.slicing.index_range import remapped, validate
from pypoplar.popops.slicing.slice_arguments import (
    Extent,
    Options,
    check_offsets,
    check_same_type,
    read_extent,
)
from pypoplar.popops.slicing.slice_options import SliceOptions
from pypoplar.popops.slicing.slice_plan import PlannedLayout, SlicePlan, check_plan, planned_layout
from pypoplar.poputil.arguments import check_codelet, check_operands
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Sequence


@frozen
class MultiCall:
    """A call by which several slices of each group of a tensor are looked up or updated; there is one group without a plan."""

    name: str
    graph: Graph
    t: Tensor  # [groups, *shape]
    offsets: Tensor  # [groups, lookups, len(dims)]
    extent: Extent  # of a group
    options: SliceOptions
    layout: PlannedLayout | None

    @staticmethod
    def read(
        name: str,
        graph: Graph,
        t: Tensor,
        offsets: Tensor,
        dims: Iterable[int],
        sizes: Iterable[int],
        plan: SlicePlan,
        options: Options,
        grouped: bool,
    ) -> MultiCall:
        """Check what all such calls have; `grouped` ones have a group dimension and need a plan."""
        check_operands(name, graph, t=t, offsets=offsets)
        if grouped and t.rank() == 0:
            raise PoplibsError(f"{name}: dimension 0 of the tensor are the groups, got {t!r}")
        check_plan(name, plan)
        every = t if grouped else t.expand([0])
        extent = read_extent(name, every.shape()[1:], dims, sizes)
        chosen = SliceOptions.read(name, options)
        wanted = [*every.shape()[:1]] if grouped else []
        lookups = offsets.dim(int(grouped)) if offsets.rank() == 2 + grouped else 0
        meaning = f"{'[groups, ' if grouped else '['}lookups, len(dims)]"
        check_offsets(name, offsets, [*wanted, lookups, len(extent.dims)], meaning)
        check_codelet(name, graph, templateVertex("popops::MultiSlice", t.elementType()))
        layout = None
        if plan.planned or grouped:
            layout = planned_layout(name, graph, plan, every.dim(0), extent)
            if layout.table.sorted and not chosen.in_order:
                raise PoplibsError(f"{name}: the plan is for sorted indices; give the option indicesAreSorted, or another plan")
        return MultiCall(name, graph, every, offsets if grouped else offsets.expand([0]), extent, chosen, layout)

    @property
    def lookups(self) -> int:
        """Slices of each group."""
        return self.offsets.dim(1)

    @property
    def is_plain(self) -> bool:
        """Whether slices are single elements of one dimension."""
        return len(self.extent.dims) == 1 and self.extent.sizes == (1,)

    def check_slices(self, s: Tensor, grouped: bool) -> Tensor:
        """The slices of an update, ``[groups, lookups, *shape of a slice]``."""
        check_operands(self.name, self.graph, s=s)
        check_same_type(self.name, t=self.t, s=s)
        wanted = [*([self.t.dim(0)] if grouped else []), self.lookups, *self.extent.slice_shape]
        if s.shape() != wanted:
            raise PoplibsError(f"{self.name}: the slices have the shape {wanted}, got {s!r}")
        return s if grouped else s.expand([0])

    def in_range(self, prog: Sequence, debug: str, everything: bool) -> MultiCall:
        """The call with indices put right where the options want that, or after a check of them.

        With `everything` false the vertices put right what is out of range.
        """
        bounds = [self.extent.shape[dim] for dim in self.extent.dims]
        if not self.lookups or not bounds:
            return self
        if self.options.index.remaps and everything:
            return evolve(self, offsets=remapped(self.graph, self.offsets, bounds, prog, debug))
        if self.options.validates:
            validate(self.graph, self.offsets, [bound + self.options.index.pads for bound in bounds], prog, debug)
        return self
