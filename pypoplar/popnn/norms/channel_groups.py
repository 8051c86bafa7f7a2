"""Groups of channels that are normalised together, as channels of poplin's norms."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.exceptions import PoplibsError

Options = Mapping[str, object] | None

STRIDED = "groupNormStridedChannelGrouping"
GROUP_NORM_OPTIONS: dict[str, Kind] = {STRIDED: bool}


def strided_grouping(call: str, options: Options) -> bool:
    """The option of this name: true unless it is given."""
    return bool(read_options(call, options, GROUP_NORM_OPTIONS).get(STRIDED, True))


@frozen
class ChannelGroups:
    """`count` groups of the channels of a sample: every `count`-th channel if `strided`, else neighbours."""

    count: int
    strided: bool

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
