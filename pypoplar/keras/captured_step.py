"""A step of a Keras model as a module of PyTorch: forward pass and loss, with the model's variables as parameters and buffers."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any
from unittest import mock

import torch
import torch.utils._pytree as pytree
from attrs import field, frozen
from keras.src.backend.common.masking import get_keras_mask
from keras.src.layers.layer import Layer

from pypoplar.errors import MissingFeature
from pypoplar.keras.captured_functions import captured_functions
from pypoplar.keras.device_randomness import device_draws
from pypoplar.keras.keras_batches import unflattened
from pypoplar.keras.pipeline_stages import start_stage
from pypoplar.keras.refused_layers import refuse_layer
from pypoplar.keras.step_scope import StepScope, UnlistedVariables
from pypoplar.poptorch.operators import NameScope, identity_loss


class StepKind(Enum):
    """What a step does."""

    TRAIN = "train"
    TEST = "test"
    PREDICT = "predict"


@frozen
class Capture:
    """How a step is captured."""

    stable: bool = False  # variances are those of the squares of differences from the mean
    loss_weight: int = 1  # of the loss that gradients are of; the one that is told has none
    stages: Mapping[int, list[int]] = field(factory=dict)  # of a pipeline: those of a layer's calls, by its identity


class CapturedStep(torch.nn.Module):
    """A step of a model for data of one structure, given as its tensors one after the other.

    Training and tests give the loss, behind it the predictions, each as they are when flattened, and the masks of those that have
    one; predictions alone else.
    """

    def __init__(self, model: Any, kind: StepKind, structure: Any, capture: Capture, further: Sequence[Any] = ()) -> None:
        super().__init__()
        self.capture = capture
        self.kind = kind
        self._step = (model, structure)  # in a tuple, so that the model's layers are no parts of this module
        self.found: dict[str, Any] = {}  # of the predictions, once the step is captured: their structure, and which have masks
        self._trained, self._others = list(model.trainable_variables), [*model.non_trainable_variables, *further]
        self._further = list(further)  # variables that no layer lists, such as the states of recurrent layers
        self._names: dict[int, str] = {}
        for variable in self._trained:
            self.register_parameter(self._name(variable), variable.value)
        for variable in self._others:
            self.register_buffer(self._name(variable), variable.value.detach())

    def _name(self, variable: Any) -> str:
        """A variable's path, which another may have, too."""
        path = variable.path.replace(".", "_")
        taken = set(self._names.values())
        name = next(one for one in (path, *(f"{path}_{number}" for number in range(1, len(taken) + 2))) if one not in taken)
        self._names[id(variable)] = name
        return name

    @property
    def trained(self) -> list[str]:
        """The names of the parameters, in the order of the model's trainable variables."""
        return [self._names[id(variable)] for variable in self._trained]

    def is_of(self, model: Any) -> bool:
        """Whether the model's variables are still these, trained and not."""
        trained, others = model.trainable_variables, [*model.non_trainable_variables, *self._further]
        return [*map(id, trained)] == [*map(id, self._trained)] and [*map(id, others)] == [*map(id, self._others)]

    def forward(self, *tensors: torch.Tensor) -> Any:
        """Loss and predictions."""
        model, structure = self._step
        kind = self.kind
        x, y, sample_weight = unflattened(tensors, structure)
        held = [(one, getattr(self, self._names[id(one)])) for one in (*self._trained, *self._others)]
        training = kind is StepKind.TRAIN
        with (
            captured_functions(self.capture.stable),
            device_draws(),
            named_layers(model, self.capture.stages),
            StepScope(held) as scope,
        ):
            predictions = model(x, training=training) if model._call_has_training_arg else model(x)
            loss = None
            if kind is not StepKind.PREDICT:
                loss = model._compute_loss(x=x, y=y, y_pred=predictions, sample_weight=sample_weight, training=training)
        unlisted = scope.unlisted(model)
        if unlisted:
            raise UnlistedVariables(unlisted)
        self._keep(scope)
        flat, self.found["outputs"] = pytree.tree_flatten(predictions)
        if loss is None:
            return tuple(flat)
        masks = [get_keras_mask(one) for one in flat]
        self.found["masked"] = [place for place, mask in enumerate(masks) if mask is not None]
        flat += [mask for mask in masks if mask is not None]  # which metrics take
        loss = loss.reshape(()) if loss.dim() else loss
        if training and self.capture.loss_weight != 1:
            return (loss, *flat, identity_loss(loss * self.capture.loss_weight, "none"))
        return (identity_loss(loss, "none") if training else loss, *flat)

    def _keep(self, scope: StepScope) -> None:
        """Let the buffers have what the forward pass gave the variables; `MissingFeature` where it sets what is trained."""
        for variable in self._trained:
            if scope.get_current_value(variable) is not getattr(self, self._names[id(variable)]):
                raise MissingFeature(
                    f"the forward pass sets {variable.path}, which is trained: a step sets it by its gradient alone"
                )
        for variable in self._others:
            buffer = getattr(self, self._names[id(variable)])
            new = scope.get_current_value(variable)
            if new is not None and new is not buffer:
                buffer.copy_(new)


def step_of(model: Any, kind: StepKind, structure: Any, capture: Capture, further: Sequence[Any] = ()) -> CapturedStep:
    """A step of a model, of a class of the model's name, so that messages tell of that."""
    named: type[CapturedStep] = type(type(model).__name__, (CapturedStep,), {})
    return named(model, kind, structure, capture, further)


@contextlib.contextmanager
def named_layers(model: Any, stages: Mapping[int, list[int]]) -> Iterator[None]:
    """Within it operations are named by the layers that do them, and belong to their stages; the model itself names none."""
    call = Layer.__call__
    calls: Counter[int] = Counter()

    def named(layer: Any, *args: Any, **kwargs: Any) -> Any:
        refuse_layer(layer)
        if id(layer) in stages:
            start_stage(stages[id(layer)][calls[id(layer)]])
            calls[id(layer)] += 1
        with contextlib.nullcontext() if layer is model else NameScope(layer.name):
            return call(layer, *args, **kwargs)

    with mock.patch.object(Layer, "__call__", named):
        yield
