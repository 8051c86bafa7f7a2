"""The plan that is chosen for a convolution, of all kinds of plans."""

from __future__ import annotations

from attrs import evolve

from pypoplar.poplin.convolution.conv_options import ConvolutionOptions
from pypoplar.poplin.convolution.conv_params import ConvParams
from pypoplar.poplin.convolution.conv_plan import ConvolutionPlan, empty_plan, plans_by_form
from pypoplar.poplin.convolution.conv_request import ConvRequest
from pypoplar.poplin.convolution.conv_shape import ConvTypes
from pypoplar.poplin.convolution.joined_groups import JoinedPlan, joined_groups, joined_plan
from pypoplar.poplin.convolution.plan_constraints import PlanConstraints
from pypoplar.poplin.convolution.serial_steps import SteppedPlan, WholePlan, cheapest, fitting_steps, stepped_plan
from pypoplar.poplin.convolution.sliding_axis import SlidingAxis
from pypoplar.poplin.convolution.swapped_plan import SwappedPlan, rearranging_cycles, swapped
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.target import Target
from pypoplar.types import FLOAT, HALF

AnyPlan = ConvolutionPlan | SwappedPlan | JoinedPlan | SteppedPlan


def request_of(target: Target, params: ConvParams, options: ConvolutionOptions) -> ConvRequest:
    """What is asked for by the parameters of a plain convolution: they have padding, kernel dilation and stride alone."""
    axes = [
        SlidingAxis(
            axis.input.size, axis.kernel.size, axis.input.paddingLower, axis.kernel.dilation, axis.output.stride, axis.output_size
        )
        for axis in params.axes()
    ]
    sizes = (params.numConvGroups, params.batchSize, params.inputChannelsPerConvGroup, params.outputChannelsPerConvGroup)
    partials = HALF if {options.partials_type, params.inputType, params.outputType} == {HALF} else FLOAT
    nearest = options.random_rounding_off and partials is HALF
    types = ConvTypes(params.inputType, partials, params.outputType, nearest)
    return ConvRequest(
        target, sizes, tuple(axes), types, options.memory, PlanConstraints.read(options.constraints), options.samples
    )


def choose_plan(request: ConvRequest) -> AnyPlan:
    """The cheapest plan within the memory; if there is none, one in steps; or else that which takes least memory.

    `PoplibsError` if no plan keeps the constraints.
    """
    if request.empty:
        return empty_plan(request)
    plan = _in_steps(request) if request.constraints.steps else cheapest(all_plans(request))
    if plan is None:
        raise PoplibsError(
            f"no plan of a convolution with the result {list(request.result)} keeps planConstraints, {request.constraints}"
        )
    if plan.bytes <= request.limit or request.constraints.steps:
        return plan
    return fitting_steps(request, all_plans) or plan


def all_plans(request: ConvRequest) -> list[WholePlan]:
    """The best plan of each kind that is done at once."""
    if request.empty:
        return [empty_plan(request)]
    constraints = request.constraints
    plans: list[WholePlan] = []
    if not constraints.swapped and not constraints.factors:
        plans += plans_by_form(request)
    exchanged = swapped(request)
    if exchanged is not None and (constraints.swapped or constraints.free):
        inner, points = exchanged
        order = rearranging_cycles(request, inner)
        inner = evolve(inner, constraints=constraints.rest)
        plans += [SwappedPlan(request.result, points, plan, order) for plan in plans_by_form(inner)]
    if constraints.factors or constraints.free:
        for factor, inner in joined_groups(request):
            plans += [joined_plan(request, factor, plan) for plan in plans_by_form(evolve(inner, constraints=constraints.rest))]
    return plans


def _in_steps(request: ConvRequest) -> SteppedPlan | None:
    return stepped_plan(evolve(request, constraints=request.constraints.rest), request.constraints.steps, all_plans)
