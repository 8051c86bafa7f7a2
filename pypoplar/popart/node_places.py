"""On which IPU and in which stage of a pipeline nodes run, as builders and options say: blocks of poptorch's."""

from __future__ import annotations

import logging

from attrs import evolve, frozen

from pypoplar.onnx.plan_steps import GraphPlan, PlannedStep
from pypoplar.popart.popart_enums import VirtualGraphMode
from pypoplar.popart.popart_types import popart_exception
from pypoplar.popart.session_options import SessionOptions
from pypoplar.poptorch.options import Options, PipelinedExecution, ShardedExecution, Stage


@frozen(eq=False)
class PlacedPlan:
    """A plan whose steps are in the order of their stages."""

    plan: GraphPlan
    blocks: dict[int, str]  # the names of blocks by the numbers of the steps that begin them
    stages: tuple[tuple[str, int], ...]  # blocks, and the IPUs that they are on
    overlapping: bool

    def of_options(self, options: Options) -> Options:
        """Options with the strategy that the blocks make, if there are any."""
        if not self.stages:
            return options
        strategy = PipelinedExecution if self.overlapping else ShardedExecution
        return options.setExecutionStrategy(strategy(*(Stage(name).ipu(ipu) for name, ipu in self.stages))).autoRoundNumIPUs(True)


def placed_plan(plan: GraphPlan, options: SessionOptions, ipus: int, batches: int) -> PlacedPlan:
    """A plan's steps with their places, on so many IPUs. A pipeline goes round `batches` times before it empties.

    `popart_exception` for places that contradict each other or the device, and PopART's rules of pipelines.
    """
    whole = PlacedPlan(plan, {}, (), False)
    if options.virtualGraphMode == VirtualGraphMode.Off:
        if options.enablePipelining:
            raise popart_exception(
                "SessionOptions.enablePipelining needs virtualGraphMode Manual, and virtualGraph of the nodes; it is Off"
            )
        if any(step.place.ipu for step in plan.steps):
            logging.getLogger("popart").warning("virtualGraph changes nothing: SessionOptions.virtualGraphMode is Off")
        return whole
    if not any(step.place.ipu is not None or step.place.stage is not None for step in plan.steps):
        return whole
    _check_ipus(plan, ipus)
    if options.enablePipelining:
        return _pipelined(plan, batches)
    blocks: dict[int, str] = {}
    stages: list[tuple[str, int]] = []
    before: int | None = None
    for number, step in enumerate(plan.steps):
        ipu = step.place.ipu if step.place.ipu is not None else 0 if before is None else before
        if ipu != before:
            blocks[number] = f"part {len(stages)}"
            stages.append((blocks[number], ipu))
        before = ipu
    return PlacedPlan(plan, blocks, tuple(stages), overlapping=False)


def _check_ipus(plan: GraphPlan, ipus: int) -> None:
    for step in plan.steps:
        if step.place.ipu is not None and step.place.ipu >= ipus:
            raise popart_exception(
                f"{step.label}: it is on IPU {step.place.ipu} by virtualGraph, and the device has {ipus} of them"
            )


def _pipelined(plan: GraphPlan, batches: int) -> PlacedPlan:
    staged = _staged(plan)
    ipus: dict[int, tuple[int, str]] = {}
    for stage, step in staged:
        if step.place.ipu is None:
            continue
        ipu, first = ipus.setdefault(stage, (step.place.ipu, step.label))
        if ipu != step.place.ipu:
            raise popart_exception(f"{step.label}: stage {stage} is on IPU {ipu} by {first}, and on IPU {step.place.ipu} by this")
    numbers = sorted({stage for stage, _ in staged})
    if batches < len(numbers):
        raise popart_exception(
            f"a pipeline of {len(numbers)} stages takes at least as many batches in a step, by batchesPerStep, or in training by "
            f"accumulationFactor; got {batches}"
        )
    without = [stage for stage in numbers if stage not in ipus]
    if without:
        raise popart_exception(f"stage {without[0]} is on no IPU: give one of its nodes virtualGraph")
    staged.sort(key=lambda one: one[0])
    blocks = {}
    for number, (stage, _) in enumerate(staged):
        if number == 0 or staged[number - 1][0] != stage:
            blocks[number] = f"stage {stage}"
    stages = tuple((f"stage {stage}", ipus[stage][0]) for stage in numbers)
    return PlacedPlan(evolve(plan, steps=tuple(step for _, step in staged)), blocks, stages, overlapping=True)


def _staged(plan: GraphPlan) -> list[tuple[int, PlannedStep]]:
    """Steps with the numbers of their stages: those that nodes say, or else their IPUs, or else as of the step before."""
    by_ipu = all(step.place.stage is None for step in plan.steps)
    staged: list[tuple[int, PlannedStep]] = []
    made: dict[int, tuple[int, str]] = {}
    for step in plan.steps:
        own = step.place.ipu if by_ipu else step.place.stage
        stage = own if own is not None else staged[-1][0] if staged else 0
        for value in step.operands:
            earlier, label = made.get(id(value), (stage, ""))
            if earlier > stage:
                name = "" if value is None else value.name
                raise popart_exception(
                    f"{step.label}: it is of stage {stage}, and takes {name} of stage {earlier}, which {label} makes"
                )
        made.update({id(value): (stage, step.label) for value in step.results})
        staged.append((stage, step))
    return staged
