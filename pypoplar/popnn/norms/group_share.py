"""The channels that a group has a share in: their statistics are added up, and what a group has goes to each of them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen

from pypoplar import program
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.norms.batch_share import BatchShare
from pypoplar.poplin.norms.norm_parameters import channel_vector
from pypoplar.popnn.norms.channel_groups import ChannelGroups
from pypoplar.popops.reduction.reduce_call import reduceMany
from pypoplar.popops.reduction.reduce_params import Operation, SingleReduceOp
from pypoplar.poputil.naming import below
from pypoplar.types import FLOAT, ElementType


@frozen(eq=False)
class GroupShare(BatchShare):
    """Activations whose channels are those of all samples, [1, N * C, ...], with statistics of groups of them.

    `elements` are those of a group; a vector of groups has N * groups elements.
    """

    groups: ChannelGroups = field(kw_only=True)
    batch: int = field(kw_only=True)

    @staticmethod
    def of_groups(acts: Tensor, groups: ChannelGroups) -> GroupShare:
        """The groups of the channels of activations [N, C, ...]."""
        batch = acts.dim(0)
        return GroupShare("", acts.numElements() // (batch * groups.count), groups=groups, batch=batch)

    def sum_type(self, type: ElementType) -> ElementType:
        """Sums of channels, which are added up further."""
        return FLOAT

    def together(
        self, graph: Graph, vectors: Sequence[Tensor], type: ElementType, prog: program.Sequence, debug: str
    ) -> list[Tensor]:
        """The sums of vectors over the channels of each group, of `type`."""
        sums = [SingleReduceOp(self.groups.by_group(vector, self.batch), [1], Operation.ADD, type) for vector in vectors]
        return reduceMany(graph, sums, [], prog, below(debug, "ofGroups"))

    def spread(self, graph: Graph, acts: Tensor, vectors: Sequence[Tensor], prog: program.Sequence, debug: str) -> list[Tensor]:
        """Vectors of channels, each beside its channel, from those of groups."""
        channels = acts.dim(1) // self.batch
        spread = [channel_vector(graph, acts, vector.elementType(), below(debug, "ofChannels")) for vector in vectors]
        for type in dict.fromkeys(vector.elementType() for vector in vectors):
            own = [number for number, vector in enumerate(vectors) if vector.elementType() is type]
            sources = concat([self.groups.by_channel(vectors[number], self.batch, channels) for number in own])
            prog.add(program.Copy(sources, concat([spread[number] for number in own]), below(debug, "ofChannels")))
        return spread
