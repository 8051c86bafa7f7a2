"""Plans written as the constraints that say them: the option ``planConstraintsOutputFilename``."""

from __future__ import annotations

import json
from typing import Any, assert_never

from pypoplar.files import written_whole
from pypoplar.poplin.convolution.conv_partition import KERNEL, OUT
from pypoplar.poplin.convolution.conv_plan import ConvolutionPlan
from pypoplar.poplin.convolution.conv_shape import AXES
from pypoplar.poplin.convolution.joined_groups import JoinedPlan
from pypoplar.poplin.convolution.plan_choice import AnyPlan
from pypoplar.poplin.convolution.serial_steps import DIMENSIONS, SteppedPlan
from pypoplar.poplin.convolution.swapped_plan import SwappedPlan

SUFFIXES = {"FWD": "_FWD", "BWD": "_BWD", "WU": "_WU"}  # of a file, by the last word of the pass


def write_constraints(plan: AnyPlan, name: str, stage: str) -> None:
    """Write the constraints of a plan to the file of a name, with the pass and ``.json`` behind it."""
    path = f"{name}{SUFFIXES.get(stage.rpartition('_')[2], '')}.json"
    with written_whole(path) as part:
        part.write_text(json.dumps(constraints_of(plan), indent=2) + "\n", encoding="utf-8")


def constraints_of(plan: AnyPlan) -> dict[str, Any]:
    """What `PlanConstraints.read` takes to find a plan again; of one in steps, how many of channels there are."""
    match plan:
        case ConvolutionPlan():
            return _of_parts(plan, {"swapOperands": False})
        case SwappedPlan():
            return _of_parts(plan.inner, {"swapOperands": True})
        case JoinedPlan():
            return _of_parts(plan.inner, {"swapOperands": False, "combineConvGroupsFactor": [plan.factor]})
        case SteppedPlan():
            serial = {"inChanSplit": DIMENSIONS[2], "outChanSplit": DIMENSIONS[3]}
            return {"0": {"partition": {name: {"serial": plan.counts.get(counted, 1)} for name, counted in serial.items()}}}
        case _:
            assert_never(plan)


def _of_parts(plan: ConvolutionPlan, transform: dict[str, Any]) -> dict[str, Any]:
    parts, form = plan.partition.parts, plan.form
    first = AXES - len(form.sliding)
    fields, kernels = (
        {str(place): parts[base + first + number] for number, place in enumerate(form.sliding)}
        for base in (OUT.start, KERNEL.start)
    )
    partition = {
        "convGroupSplit": parts[0],
        "batchSplit": parts[1],
        "fieldSplit": fields,
        "kernelSplit": kernels,
        "inChanSplit": {"parallel": parts[8]},
        "outChanSplit": {"parallel": parts[9]},
    }
    folded = [place for place, fold in enumerate(form.folded) if fold]
    return {"method": {"type": form.method}, "0": {"transform": {**transform, "expandDims": folded}, "partition": partition}}
