"""A norm layer's statistics, results, gradients and updates: what the four kinds of norms have in common."""

from __future__ import annotations

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.norms.batch_share import DistributedNormReduceCallback
from pypoplar.poplin.norms.norm_arguments import (
    REALS,
    check_activations,
    check_alike,
    check_channel_vector,
    check_epsilon,
)
from pypoplar.poplin.norms.norm_gradients import (
    distributedNormStatisticsGradients,
    normGradients,
    normParamGradients,
    normStatisticsGradients,
    statistics_gradients,
)
from pypoplar.poplin.norms.norm_statistics import distributedNormStatistics, normStatistics, statistics_over
from pypoplar.poplin.norms.norm_whitening import normalise, normWhiten
from pypoplar.popnn.norms.channel_groups import ChannelGroups, Options, strided_grouping
from pypoplar.popnn.norms.group_share import GroupShare
from pypoplar.popops.elements.scaled_add import scaledAddTo
from pypoplar.poputil.arguments import check_call, check_flag, check_float, check_operands, check_own, check_writeable
from pypoplar.poputil.call_options import read_options
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.program import Sequence
from pypoplar.types import FLOAT, ElementType, check_type

Over = tuple[DistributedNormReduceCallback, int]
"""Of a layer over several replicas: what adds up statistics, and how many samples they have together."""


@frozen(eq=False)
class NormLayer:
    """One call on a norm layer; `strided` is how channels are put in groups, None for batch norm, which has no groups."""

    call: str
    graph: Graph
    prog: Sequence
    debug: str | None
    strided: bool | None

    @staticmethod
    def of_batches(call: str, graph: Graph, prog: Sequence, debugContext: str | None, options: Options) -> NormLayer:
        check_call(call, graph, prog, debugContext)
        read_options(call, options, {})
        return NormLayer(call, graph, prog, debugContext, None)

    @staticmethod
    def of_groups(call: str, graph: Graph, prog: Sequence, debugContext: str | None, options: Options) -> NormLayer:
        check_call(call, graph, prog, debugContext)
        return NormLayer(call, graph, prog, debugContext, strided_grouping(call, options))

    def statistics(
        self,
        acts: Tensor,
        eps: float,
        numGroups: int | None,
        unbiasedVarEstimate: bool,
        stableAlgo: bool,
        partialsType: ElementType,
        over: Over | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Mean and inverse deviation; `numGroups` means nothing to batch norm, None is a group for each channel."""
        check_activations(self.call, self.graph, "acts", acts)
        count = max(acts.dim(1), 1) if numGroups is None else numGroups
        check_epsilon(self.call, eps)
        check_flag(self.call, "unbiasedVarEstimate", unbiasedVarEstimate)
        check_flag(self.call, "stableAlgo", stableAlgo)
        type = self._partials(partialsType, acts)
        graph, prog, debug = self.graph, self.prog, self.debug
        if over is not None:
            return distributedNormStatistics(graph, acts, eps, prog, unbiasedVarEstimate, *over, stableAlgo, type, debug)
        if self.strided is None:
            return normStatistics(graph, acts, eps, prog, unbiasedVarEstimate, stableAlgo, type, debug)
        groups = ChannelGroups.of(self.call, acts, count, self.strided)
        if not groups.lie_apart(graph, acts):
            return normStatistics(graph, groups.grouped(acts), eps, prog, unbiasedVarEstimate, stableAlgo, type, debug)
        share, debug = GroupShare.of_groups(acts, groups), below(debug, "normStatistics")
        return statistics_over(graph, groups.of_samples(acts), eps, prog, unbiasedVarEstimate, stableAlgo, type, debug, share)

    def whiten(self, acts: Tensor, mean: Tensor, invStdDev: Tensor, deviation: str = "invStdDev") -> Tensor:
        """`deviation` is what the call calls `invStdDev`."""
        check_activations(self.call, self.graph, "acts", acts)
        groups = self._groups(acts, **{"mean": mean, deviation: invStdDev})
        if groups is None:
            return normWhiten(self.graph, acts, mean, invStdDev, self.prog, self.debug)
        if groups.lie_apart(self.graph, acts):
            share, channels = GroupShare.of_groups(acts, groups), groups.of_samples(acts)
            means, deviations = share.spread(self.graph, channels, [mean, invStdDev], self.prog, below(self.debug, "normWhiten"))
            return normWhiten(self.graph, channels, means, deviations, self.prog, self.debug).reshape(acts.shape())
        whitened = normWhiten(self.graph, groups.grouped(acts), mean, invStdDev, self.prog, self.debug)
        return groups.ungrouped(whitened, acts.dim(0))

    def normalise(self, acts: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, invStdDev: Tensor) -> tuple[Tensor, Tensor]:
        """The result, and the whitened activations."""
        check_activations(self.call, self.graph, "acts", acts)
        for name, vector in {"gamma": gamma, "beta": beta}.items():
            check_channel_vector(self.call, self.graph, name, vector, acts)
        whitened = self.whiten(acts, mean, invStdDev)
        return normalise(self.graph, whitened, gamma, beta, self.prog, self.debug), whitened

    def scale_and_shift(self, acts: Tensor, combinedMultiplicand: Tensor, addend: Tensor) -> Tensor:
        check_activations(self.call, self.graph, "acts", acts)
        for name, vector in {"combinedMultiplicand": combinedMultiplicand, "addend": addend}.items():
            check_channel_vector(self.call, self.graph, name, vector, acts)
        return normalise(self.graph, acts, combinedMultiplicand, addend, self.prog, self.debug)

    def whitened(self, acts: Tensor | None, actsWhitened: Tensor | None, mean: Tensor | None, **deviation: Tensor | None) -> Tensor:
        """The whitened activations of a call that has them, or what they follow from."""
        if actsWhitened is not None:
            check_activations(self.call, self.graph, "actsWhitened", actsWhitened)
            return actsWhitened
        ((name, invStdDev),) = deviation.items()
        assert acts is not None
        assert mean is not None
        assert invStdDev is not None
        return self.whiten(acts, mean, invStdDev, name)

    def check_gradients(self, gradsIn: Tensor, partialsType: ElementType, **acts: Tensor | None) -> None:
        """Before the activations are whitened: the gradients have the shape and type of those that the call has."""
        for name, tensor in acts.items():
            if tensor is not None:
                check_activations(self.call, self.graph, name, tensor)
                check_alike(self.call, self.graph, "gradsIn", gradsIn, tensor)
                self._partials(partialsType, tensor)

    def param_gradients(self, actsWhitened: Tensor, gradsIn: Tensor, partialsType: ElementType) -> tuple[Tensor, Tensor]:
        type = self._partials(partialsType, gradsIn)
        return normParamGradients(self.graph, actsWhitened, gradsIn, self.prog, type, self.debug)

    def check_scaling(self, gradsIn: Tensor, invStdDev: Tensor, gamma: Tensor) -> None:
        """Before the activations are whitened: what else the gradients of activations need."""
        check_channel_vector(self.call, self.graph, "gamma", gamma, gradsIn)
        self._groups(gradsIn, invStdDev=invStdDev)

    def gradients(
        self,
        actsWhitened: Tensor,
        gradsIn: Tensor,
        invStdDev: Tensor,
        gamma: Tensor,
        partialsType: ElementType,
        over: Over | None = None,
    ) -> Tensor:
        """The gradient of the activations, through the statistics."""
        type = self._partials(partialsType, gradsIn)
        groups = self._groups(gradsIn, invStdDev=invStdDev)
        graph, prog, debug = self.graph, self.prog, self.debug
        scaled = normGradients(graph, gradsIn, gamma, prog, debug)
        if over is not None:
            return distributedNormStatisticsGradients(graph, actsWhitened, scaled, invStdDev, prog, *over, type, debug)
        if groups is None:
            return normStatisticsGradients(graph, actsWhitened, scaled, invStdDev, prog, type, debug)
        if groups.lie_apart(graph, actsWhitened):
            share, debug = GroupShare.of_groups(actsWhitened, groups), below(debug, "normStatisticsGradients")
            channels, slopes = groups.of_samples(actsWhitened), groups.of_samples(scaled)
            return statistics_gradients(graph, channels, slopes, invStdDev, prog, debug, share).reshape(gradsIn.shape())
        whitened, slopes = groups.grouped(actsWhitened), groups.grouped(scaled)
        result = normStatisticsGradients(graph, whitened, slopes, invStdDev, prog, type, debug)
        return groups.ungrouped(result, gradsIn.dim(0))

    def update(self, gammaDelta: Tensor, betaDelta: Tensor, scale: float | Tensor, gamma: Tensor, beta: Tensor) -> None:
        """`gamma` and `beta` in one step."""
        named = {"gammaDelta": gammaDelta, "betaDelta": betaDelta, "gamma": gamma, "beta": beta}
        check_own(self.call, self.graph, **named)
        for name, tensor in named.items():
            if tensor.elementType() not in REALS or tensor.rank() != 1 or tensor.dim(0) != gamma.numElements():
                raise PoplibsError(
                    f"{self.call}: parameters and their deltas are vectors of FLOATs or HALFs of one length, {name} is {tensor!r} "
                    f"beside gamma, {gamma!r}"
                )
        for first, second in ((gamma, beta), (gammaDelta, betaDelta)):
            if first.elementType() is not second.elementType():
                raise PoplibsError(
                    f"{self.call}: gamma and beta have one type, and so have their deltas, got {first!r}, {second!r}"
                )
        check_operands(self.call, self.graph, **named)
        if not isinstance(scale, Tensor):
            check_float(self.call, "scale", scale)
        check_writeable(self.call, concat(beta, gamma))
        deltas = concat(betaDelta, gammaDelta)
        scaledAddTo(self.graph, concat(beta, gamma), deltas, scale, self.prog, self.debug)

    def _groups(self, acts: Tensor, **vectors: Tensor) -> ChannelGroups | None:
        """The groups that statistics were taken of, by their number; `PoplibsError` for vectors of another length or type."""
        check_own(self.call, self.graph, **vectors)
        if self.strided is None:
            for name, vector in vectors.items():
                check_channel_vector(self.call, self.graph, name, vector, acts)
            return None
        batch, type = acts.dim(0), acts.elementType()
        (first, statistics), *_ = vectors.items()
        count = statistics.numElements() // batch if batch else 1
        for name, vector in vectors.items():
            fits = vector.rank() == 1 and vector.dim(0) == count * batch and vector.elementType() is type
            if not fits or (count == 0 and batch):
                raise PoplibsError(
                    f"{self.call}: {name} has a {type!r} for each group of channels of each of the {batch} samples of {acts!r}, "
                    f"as many as {first}, got {vector!r}"
                )
        check_operands(self.call, self.graph, **vectors)
        return ChannelGroups.of(self.call, acts, count, self.strided)

    def _partials(self, partialsType: ElementType, acts: Tensor) -> ElementType:
        """The type of partial results, which is that of FLOAT activations at least."""
        if check_type(partialsType) not in REALS:
            raise PoplibsError(f"{self.call}: partialsType is FLOAT or HALF, got {partialsType!r}")
        return FLOAT if acts.elementType() is FLOAT else partialsType
