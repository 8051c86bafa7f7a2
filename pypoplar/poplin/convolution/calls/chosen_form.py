"""The way to compute a convolution that is chosen: its plain form, and their plans."""

from __future__ import annotations

from functools import lru_cache

from attrs import frozen

from pypoplar.poplin.convolution.calls.plain_forms import PlainForm, plain_forms
from pypoplar.poplin.convolution.calls.written_constraints import write_constraints
from pypoplar.poplin.convolution.conv_options import ConvolutionOptions
from pypoplar.poplin.convolution.conv_params import ConvParams, operand_shape
from pypoplar.poplin.convolution.plan_choice import AnyPlan, choose_plan, request_of
from pypoplar.poplin.planning_cache import PlanningCache, plan_of
from pypoplar.poputil.largest_tensor import check_fits, most_bytes
from pypoplar.target import Target

FAR_MORE = 8  # times the products of another form: such a form is not planned
REMEMBERED = 256  # plans that calls without a cache find again


@frozen
class ChosenForm:
    """A convolution as plain ones, and the plan of each; there are none if the result is 0 or has no elements."""

    form: PlainForm
    plans: tuple[AnyPlan, ...]

    @property
    def cycles(self) -> int:
        """Estimated cycles, those of all plain convolutions, one after the other."""
        return sum(plan.cycles for plan in self.plans)

    @property
    def bytes(self) -> int:
        """Estimated bytes of the fullest tile."""
        return max((plan.bytes for plan in self.plans), default=0)

    def describe(self) -> str:
        """What a report says."""
        if not self.plans:
            return "  no products: the result is 0\n"
        lines = []
        if self.form.params.getNumFieldDims() and any(axis.input.dilation > 1 for axis in self.form.params.axes()):
            lines.append(f"  {self.form.phases.value}: {len(self.plans)} convolution{'s' * (len(self.plans) > 1)}")
        return "\n".join([*lines, *(plan.describe().rstrip("\n") for plan in self.plans)]) + "\n"


def choose_form(target: Target, params: ConvParams, options: ConvolutionOptions, cache: PlanningCache | None) -> ChosenForm:
    """The form that is estimated to take fewest cycles; parameters that are written in another way find the same one.

    `PoplibsError` where the input, the weights or the output are larger than the memory of all tiles.
    """
    _check_sizes(target, params)
    params = params.canonicalize()
    chosen = plan_of(cache, ("convolution", target, params.key(), options), lambda: _chosen(target, Canonical(params), options))
    if options.constraints_file and chosen.plans:
        write_constraints(chosen.plans[0], options.constraints_file, options.pass_)
    return chosen


def _check_sizes(target: Target, params: ConvParams) -> None:
    inputs, outputs = params.getNumInputChans(), params.getNumOutputChans()
    kernel = operand_shape(params, "weights")
    check_fits("the input of a convolution", target, params.inputType, [params.batchSize, inputs, *params.inputFieldShape])
    check_fits("the weights of a convolution", target, params.inputType, kernel)
    output = [params.batchSize, outputs, *params.getOutputFieldShape()]
    check_fits("the output of a convolution", target, params.outputType, output)


@frozen(hash=False)
class Canonical:
    """Parameters as a key."""

    params: ConvParams

    def __hash__(self) -> int:
        return hash(self.params)


@lru_cache(REMEMBERED)
def _chosen(target: Target, key: Canonical, options: ConvolutionOptions) -> ChosenForm:
    forms = plain_forms(key.params, most_bytes(target) // target.getTypeSize(key.params.inputType))
    sizes = (key.params.batchSize, key.params.numConvGroups, key.params.outputChannelsPerConvGroup)
    least = min(form.products() for form in forms)
    if least == 0 or 0 in sizes:
        return ChosenForm(forms[0], ())
    worthwhile = [form for form in forms if form.products() <= FAR_MORE * least]
    return min((_planned(target, form, options) for form in worthwhile), key=lambda chosen: (chosen.cycles, chosen.bytes))


def _planned(target: Target, form: PlainForm, options: ConvolutionOptions) -> ChosenForm:
    plans: dict[ConvParams, AnyPlan] = {}
    for part in form.convolutions():
        if part.params is not None and part.params not in plans:
            plans[part.params] = choose_plan(request_of(target, part.params, options))
    return ChosenForm(form, tuple(plans[part.params] for part in form.convolutions() if part.params is not None))
