"""Sums of the gradients that replicas have, which come before an update, so that all of them make the same one."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf

from pypoplar import gcl, popops
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.update.accumulation import Accumulation, GradientReduction
from pypoplar.poptorch.update.parameter_step import ParameterStep
from pypoplar.program import Copy, Sequence


def add_across_replicas(
    graph: Graph, steps: SequenceOf[ParameterStep], velocities: SequenceOf[Tensor], sums: Accumulation, prog: Sequence
) -> None:
    """Let the gradients of steps be those of all replicas together, by one collective for each type; likewise `velocities`.

    A running mean is one of replicas, too: each brings its share, so that no sum is larger than the largest gradient.
    """
    replicas = graph.getReplicationFactor()
    if replicas == 1 or not (steps or velocities):
        return
    name, own = "optimizer/update/replicas", [step.gradient for step in steps]
    if sums.batches == 1:  # what is the model's own tensor, which may be an output, stays as it is
        for step in steps:
            step.gradient = graph.clone(step.gradient.elementType(), step.weight, f"{step.name}/replicas")
    if sums.reduction is GradientReduction.RUNNING_MEAN:
        for step, gradient in zip(steps, own, strict=True):
            if step.gradient is not gradient:
                prog.add(Copy(gradient, step.gradient, name=f"{step.name}/replicas"))
            popops.mulInPlace(graph, step.gradient, 1.0 / replicas, prog, f"{step.name}/replicas")
        own = [step.gradient for step in steps]
    added, totals = [*own, *velocities], [*(step.gradient for step in steps), *velocities]
    gcl.allReduceToDestinationCrossReplica(graph, added, totals, gcl.CollectiveOperator.ADD, prog, debugContext=name)


def share_velocity(graph: Graph, velocity: Tensor, prog: Sequence, name: str) -> None:
    """Let each replica have its share of a velocity, which takes up gradients before all shares are added up again."""
    replicas = graph.getReplicationFactor()
    if replicas > 1:
        popops.mulInPlace(graph, velocity, 1.0 / replicas, prog, name)
