"""Which layer of a Keras model belongs to which stage of its pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from unittest import mock

import keras
from attrs import define, field
from keras.src.layers.layer import Layer

from pypoplar.errors import InvalidOption, PoplarRuntimeError, PoplarTypeError
from pypoplar.poptorch.capture.model_blocks import Block
from pypoplar.tracebacks import public

STAGES = "_ipu_pipeline_stages"
"""Of layers: the stage of each of their nodes, by its number; in their dictionary alone, where Keras does not see it."""


def start_stage(stage: int) -> None:
    """What is captured from now on belongs to a stage."""
    Block.start(stage_name(stage), stage)


def stage_name(stage: int) -> str:
    """The block of a stage."""
    return f"stage{stage}"


_open: list[int] = []


@public
class PipelineStage:
    """Layers that are called in ``with keras.ipu.PipelineStage(1):`` belong to that stage of a pipeline.

    It stands where a functional model is made, or in the `call` of a model of one's own.

    Parameters
    ----------
    stage:
        Its number, from 0 on.

    Raises
    ------
    PoplarTypeError
        If it is no whole number.
    PoplarRuntimeError
        For a stage within a stage.
    """

    def __init__(self, stage: int) -> None:
        self.stage = _checked("PipelineStage", stage)

    def __enter__(self) -> Self:
        if _open:
            raise PoplarRuntimeError(f"PipelineStage({self.stage}): this is within PipelineStage({_open[-1]}); stages do not nest")
        _open.append(self.stage)
        start_stage(self.stage)
        call, stage = Layer.__call__, self.stage

        def noted(layer: Any, *args: Any, **kwargs: Any) -> Any:
            before = len(layer._inbound_nodes)
            result = call(layer, *args, **kwargs)
            for node in range(before, len(layer._inbound_nodes)):
                vars(layer).setdefault(STAGES, {})[node] = stage
            return result

        self._noting = mock.patch.object(Layer, "__call__", noted)
        self._noting.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._noting.stop()
        _open.pop()


def _checked(what: str, stage: object) -> int:
    if isinstance(stage, bool) or not isinstance(stage, int):
        raise PoplarTypeError(f"{what}: a pipeline stage is a whole number, got {stage!r}")
    if stage < 0:
        raise InvalidOption(f"{what}: a pipeline stage is 0 or more, got {stage}")
    return stage


@define(eq=False)
class PipelineStageAssignment:
    """The stage of a call of a layer; None where it has none."""

    layer: Any
    node_index: int = 0
    pipeline_stage: int | None = field(default=None)

    @property
    def inbound_layers(self) -> list[Any]:
        """The layers whose results the call takes."""
        node = self.layer._inbound_nodes[self.node_index]
        return [parent.operation for parent in node.parent_nodes]


def calls_of(model: Any) -> Iterator[tuple[Any, int]]:
    """The layers of a model in the order of their calls, each with the number of its node; none of a model of one's own."""
    if isinstance(model, keras.Sequential):
        yield from ((layer, 0) for layer in model.layers)
    elif hasattr(model, "_nodes_by_depth"):
        for depth in sorted(model._nodes_by_depth, reverse=True):
            for node in model._nodes_by_depth[depth]:
                if not isinstance(node.operation, keras.layers.InputLayer):
                    yield node.operation, node.operation._inbound_nodes.index(node)


def assignments_of(model: Any) -> list[PipelineStageAssignment]:
    """The stages of a model's layers."""
    return [PipelineStageAssignment(layer, node, vars(layer).get(STAGES, {}).get(node)) for layer, node in calls_of(model)]


def assign(model: Any, given: Sequence[Any]) -> None:
    """Let a model's layers belong to stages, given by numbers or by assignments in the order of `assignments_of`."""
    known = list(calls_of(model))
    if not isinstance(given, list | tuple) or len(given) != len(known):
        count = len(given) if isinstance(given, list | tuple) else repr(given)
        raise InvalidOption(
            f"set_pipeline_stage_assignment takes the stage of each layer in a list of {len(known)}, got {count}: "
            f"{', '.join(layer.name for layer, _ in known)}"
        )
    for (layer, node), one in zip(known, given, strict=True):
        stage = one.pipeline_stage if isinstance(one, PipelineStageAssignment) else one
        vars(layer).setdefault(STAGES, {})[node] = _checked(f"set_pipeline_stage_assignment: {layer.name}", stage)


def forget_stages(model: Any) -> None:
    """Let a model's layers belong to no stages."""
    for layer, _ in calls_of(model):
        vars(layer).pop(STAGES, None)


def stages_by_layer(model: Any) -> Mapping[int, list[int]]:
    """The stages of a layer's calls, one after the other, by its identity. `InvalidOption` where a layer or a stage has none."""
    assigned = assignments_of(model)
    without = [one.layer.name for one in assigned if one.pipeline_stage is None]
    if without:
        raise InvalidOption(
            f"the pipeline has no stage for {', '.join(without)}: call layers within PipelineStage, or call "
            "model.set_pipeline_stage_assignment"
        )
    numbers = {one.pipeline_stage for one in assigned if one.pipeline_stage is not None}
    last = max(numbers, default=0)
    missing = [number for number in range(last) if number not in numbers]
    if missing:
        raise InvalidOption(f"the pipeline has no layer in stage {missing[0]}, and some in stage {last}")
    found: dict[int, list[int]] = {}
    for one in assigned:
        if one.pipeline_stage is not None:
            found.setdefault(id(one.layer), []).append(one.pipeline_stage)
    return found


def summary_of(model: Any) -> str:
    """A table of layers and stages."""
    rows = [("Layer (node)", "Pipeline stage")]
    for one in assignments_of(model):
        stage = "-" if one.pipeline_stage is None else str(one.pipeline_stage)
        rows.append((f"{one.layer.name} ({one.node_index})", stage))
    width = max(len(first) for first, _ in rows) + 2
    return "\n".join([f'Pipeline stages of "{model.name}"', *(f"{first:<{width}}{second}" for first, second in rows)])
