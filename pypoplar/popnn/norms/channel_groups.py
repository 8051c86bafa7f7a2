"""Groups of channels that are normalised together, as channels of poplin's norms."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.norms.channel_layout import ChannelLayout
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.exceptions import PoplibsError

Options = Mapping[str, object] | None

STRIDED = "groupNormStridedChannelGrouping"
FEWEST_PLACES = 8  # of a field from which on vectors of all samples' channels are small beside activations
GROUP_NORM_OPTIONS: dict[str, Kind] = {STRIDED: bool}


def strided_grouping(call: str, options: Options) -> bool:
    """The option of this name: true unless it is given."""
    return bool(read_options(call, options, GROUP_NORM_OPTIONS).get(STRIDED, True))


@frozen
class ChannelGroups:
    """`count` groups of the channels of a sample: every `count`-th channel if `strided`, else neighbours."""

    count: int
    strided: bool

    def lie_apart(self, graph: Graph, acts: Tensor) -> bool:
        """Whether the channels of a group lie in pieces between those of others for each place of the field.

        What is done with these group by group takes a vertex for each place; channel by channel it takes one of all on a tile.
        """
        channels = acts.dim(1)
        if self.count in (1, channels) or acts.numElements() < FEWEST_PLACES * acts.dim(0) * channels:
            return False
        together = ChannelLayout.of(graph, acts).side_by_side
        return together > 1 and (self.strided or channels // self.count != together)

    @staticmethod
    def of_samples(acts: Tensor) -> Tensor:
        """Activations [N, C, ...] as [1, N * C, ...]: a channel for each one of each sample."""
        return acts.reshapePartial(0, 2, [1, acts.dim(0) * acts.dim(1)])

    def by_group(self, vector: Tensor, batch: int) -> Tensor:
        """A vector [N * C] as [N * groups, C / groups]."""
        size = vector.numElements() // (batch * self.count)
        if self.strided:
            return vector.reshape([batch, size, self.count]).dimRoll(1, 2).reshape([batch * self.count, size])
        return vector.reshape([batch * self.count, size])

    def by_channel(self, vector: Tensor, batch: int, channels: int) -> Tensor:
        """A vector [N * groups] as [N * C]: what a group has, for each of its channels."""
        size = channels // self.count
        if self.strided:
            return vector.reshape([batch, 1, self.count]).broadcast(size, 1).flatten()
        return vector.reshape([batch * self.count, 1]).broadcast(size, 1).flatten()

    @staticmethod
    def of(call: str, acts: Tensor, count: int, strided: bool) -> ChannelGroups:
        """`PoplibsError` unless the channels can be put in groups of one size."""
        if acts.dim(1) % count:
            raise PoplibsError(f"{call}: {acts.dim(1)} channels of {acts!r} cannot be put in {count} groups of one size")
        return ChannelGroups(count, strided)

    def grouped(self, acts: Tensor) -> Tensor:
        """Activations [N, C, ...] as [C / groups, N * groups, ...]: a channel for each group of each sample."""
        batch, channels = acts.dim(0), acts.dim(1)
        size = channels // self.count
        if self.strided:
            apart = acts.reshapePartial(1, 2, [size, self.count]).dimRoll(2, 1)
        else:
            apart = acts.reshapePartial(1, 2, [self.count, size])
        return apart.reshapePartial(0, 2, [batch * self.count]).dimRoll(1, 0)

    def ungrouped(self, grouped: Tensor, batch: int) -> Tensor:
        """What was `grouped`, as [N, C, ...] again."""
        apart = grouped.dimRoll(0, 1).reshapePartial(0, 1, [batch, self.count])
        if self.strided:
            apart = apart.dimRoll(1, 2)
        return apart.reshapePartial(1, 3, [self.count * grouped.dim(0)])
