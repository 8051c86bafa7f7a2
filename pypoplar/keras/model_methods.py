"""The methods that models have within IPU Keras: accumulation, pipelines, queues, and what an execution cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pypoplar.errors import InvalidOption, PoplarRuntimeError, PoplarTypeError
from pypoplar.keras.device_model import DeviceModel
from pypoplar.keras.ipu.gradient_accumulation import GradientAccumulationReductionMethod
from pypoplar.keras.pipeline_stages import assign, assignments_of, forget_stages, summary_of
from pypoplar.poptorch.enums import ReductionType
from pypoplar.poptorch.user_log import say_once
from pypoplar.report.report import Report
from pypoplar.spelling import nearest

ATTRIBUTE = "_ipu_device_model"
"""Of models that run on the IPU. It is in their dictionary alone, where Keras, which tracks attributes, does not see it."""
SUM = GradientAccumulationReductionMethod.SUM
IGNORED = {  # further arguments that change nothing, and why
    "accumulate_outfeed": "losses and metrics are those of all batches",
    "use_v2_gradient_accumulation_optimizer": "there is one",
    "pipeline_schedule": "stages overlap as far as they can",
    "offload_weight_update_variables": "variables are in the IPU's memory",
    "offload_activations": "activations are in the IPU's memory",
    "offload_gradient_accumulation_buffers": "sums are in the IPU's memory",
    "replicated_optimizer_state_sharding": "each replica has its states",
    "recomputation_mode": "IPUConfig's allow_recompute lets stages compute again",
    "name": "the model has one",
    "dtype": "gradients are summed as floats",
}

ARGUMENTS = ("gradient_accumulation_steps_per_replica", "gradient_accumulation_reduction_method", "device_mapping")


def device_model(model: Any) -> DeviceModel | None:
    """What the IPU has of a model; None for one that runs on the host."""
    found = vars(model).get(ATTRIBUTE)
    return found if isinstance(found, DeviceModel) else None


def _on_the_ipu(model: Any, what: str) -> DeviceModel:
    """The same; `PoplarRuntimeError` for a model that runs on the host."""
    found = device_model(model)
    if found is None:
        raise PoplarRuntimeError(
            f"{what}: {type(model).__name__} runs on the host; make or compile it within IPUStrategy().scope() to run it on the IPU"
        )
    return found


def ipu_report(self: Any) -> Report:
    """The `pva.Report` of the model's last execution of any kind."""
    return _on_the_ipu(self, "ipu_report").report()


def ipu_cycles(self: Any) -> int:
    """The tile cycles of the model's last execution of any kind."""
    return _on_the_ipu(self, "ipu_cycles").cycles()


def set_gradient_accumulation_options(
    self: Any,
    gradient_accumulation_steps_per_replica: int | None = None,
    gradient_accumulation_reduction_method: Any = SUM,
    **further: Any,
) -> None:
    """Let each update of the weights take the gradients of several batches; `steps_per_execution` is a multiple of their number."""
    _accumulate(
        self, "set_gradient_accumulation_options", gradient_accumulation_steps_per_replica, gradient_accumulation_reduction_method
    )
    _ignore("set_gradient_accumulation_options", further)


def set_pipelining_options(
    self: Any,
    gradient_accumulation_steps_per_replica: int | None = None,
    device_mapping: Sequence[Any] | None = None,
    gradient_accumulation_reduction_method: Any = SUM,
    **further: Any,
) -> None:
    """Let the model's stages run as a pipeline, stage by stage on the IPUs of `device_mapping`, or on one each."""
    _ignore("set_pipelining_options", further)
    if device_mapping is not None:
        device_mapping = list(device_mapping)
        for ipu in device_mapping:
            if type(ipu) is not int or ipu < 0:
                raise PoplarTypeError(f"set_pipelining_options: device_mapping is a list of IPUs' numbers, got {ipu!r} in it")
    _on_the_ipu(self, "set_pipelining_options").options.set_pipeline(device_mapping)
    _accumulate(self, "set_pipelining_options", gradient_accumulation_steps_per_replica, gradient_accumulation_reduction_method)


def _accumulate(model: Any, call: str, steps: Any, method: Any) -> None:
    found = _on_the_ipu(model, call)
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
        raise InvalidOption(f"{call}: gradient_accumulation_steps_per_replica is a whole number from 1 on, got {steps!r}")
    chosen = GradientAccumulationReductionMethod.parse(method)
    if chosen is None:
        names = ", ".join(GradientAccumulationReductionMethod.__members__)
        raise InvalidOption(f"{call}: gradient_accumulation_reduction_method is one of {names}, got {method!r}")
    found.options.accumulated = 1 if steps is None else steps
    found.options.reduction = ReductionType.Sum if chosen is SUM else ReductionType.Mean
    _anew(model, found)


def _anew(model: Any, found: DeviceModel) -> None:
    """Let Keras ask for the functions of its steps again."""
    found.forget()
    found.copy_model()
    model.train_function = model.test_function = model.predict_function = None


def _ignore(call: str, further: dict[str, Any]) -> None:
    for name in further:
        if name not in IGNORED:
            raise InvalidOption(f"{call} has no argument {name!r}{nearest(name, [*ARGUMENTS, *IGNORED])}")
        say_once(f"{call}: {name} changes nothing: {IGNORED[name]}")


def set_infeed_queue_options(self: Any, **options: Any) -> None:
    """Accepted: data sets are read by Keras, batch by batch."""
    _on_the_ipu(self, "set_infeed_queue_options")
    say_once("set_infeed_queue_options changes nothing: batches are read by Keras")


def set_outfeed_queue_options(self: Any, **options: Any) -> None:
    """Accepted: results come back with each execution."""
    _on_the_ipu(self, "set_outfeed_queue_options")
    say_once("set_outfeed_queue_options changes nothing: results come back with each execution")


def set_asynchronous_callbacks(self: Any, asynchronous: bool = False) -> None:
    """Accepted: callbacks come once an execution."""
    _on_the_ipu(self, "set_asynchronous_callbacks")


def get_pipeline_stage_assignment(self: Any) -> list[Any]:
    """The stage of each layer: of a Sequential numbers, of a functional model a `PipelineStageAssignment` each."""
    assigned = assignments_of(self)
    return [one.pipeline_stage for one in assigned] if type(self).__name__ == "Sequential" else assigned


def set_pipeline_stage_assignment(self: Any, pipeline_stage_assignment: Sequence[Any]) -> None:
    """Let layers belong to stages, given as `get_pipeline_stage_assignment` gives them."""
    found = _on_the_ipu(self, "set_pipeline_stage_assignment")
    assign(self, pipeline_stage_assignment)
    _anew(self, found)


def reset_pipeline_stage_assignment(self: Any) -> None:
    """Let layers belong to no stages."""
    forget_stages(self)


def print_pipeline_stage_assignment_summary(
    self: Any, line_length: int | None = None, print_fn: Callable[[str], Any] = print
) -> None:
    """Print a table of layers and stages."""
    print_fn(summary_of(self))


METHODS: dict[str, Callable[..., Any]] = {
    method.__name__: method
    for method in (
        get_pipeline_stage_assignment,
        ipu_cycles,
        ipu_report,
        print_pipeline_stage_assignment_summary,
        reset_pipeline_stage_assignment,
        set_asynchronous_callbacks,
        set_gradient_accumulation_options,
        set_infeed_queue_options,
        set_outfeed_queue_options,
        set_pipeline_stage_assignment,
        set_pipelining_options,
    )
}
"""What is a method of every model, by its name."""
