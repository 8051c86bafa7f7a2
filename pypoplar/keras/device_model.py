"""A Keras model on the simulated IPU: its compiled steps, and what `fit`, `evaluate` and `predict` call for a few batches."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree
from attrs import define, field
from keras.src.backend.common.masking import set_keras_mask
from keras.src.backend.torch.trainer import TorchTrainer

from pypoplar.errors import InvalidOption, MissingFeature, PoplarRuntimeError, TensorShapeError
from pypoplar.keras.captured_step import Capture, CapturedStep, StepKind, step_of
from pypoplar.keras.device_optimizer import OptimizerPair
from pypoplar.keras.ipu.utils import DeviceSeed, device_seed
from pypoplar.keras.keras_batches import StepBatch, joined_batches
from pypoplar.keras.layer_settings import layer_settings
from pypoplar.keras.pipeline_stages import assignments_of, stages_by_layer
from pypoplar.keras.step_options import StepOptions
from pypoplar.keras.step_scope import UnlistedVariables
from pypoplar.poptorch.executor import PoplarExecutor
from pypoplar.poptorch.models import inferenceModel, trainingModel
from pypoplar.poptorch.user_log import say_once
from pypoplar.report.report import Report

CHANGES = 8  # executions of a kind in a row, each of other shapes than any before, after which shapes are taken to change for ever
STEP_METHODS = {StepKind.TRAIN: "train_step", StepKind.TEST: "test_step", StepKind.PREDICT: "predict_step"}


@define(eq=False)
class CompiledStep:
    """A step for batches of one signature, so many in a call."""

    step: CapturedStep
    executor: PoplarExecutor
    count: int
    settings: Any = None  # of the layers, once it is compiled

    def run(self, batches: list[StepBatch]) -> tuple[torch.Tensor | None, list[Any]]:
        """The losses of batches, None where only predictions are asked for, and each batch's predictions."""
        results = list(self.executor(*joined_batches(batches)))
        losses = None if self.step.kind is StepKind.PREDICT else results.pop(0).reshape(-1)
        if self.step.capture.loss_weight != 1:
            results.pop()  # the loss with its weight
        return losses, [self._predictions(list(parts)) for parts in self._of_each(results)]

    def _predictions(self, parts: list[torch.Tensor]) -> Any:
        """Those of a batch, with their masks, which metrics take."""
        structure = self.step.found["outputs"]
        flat, masks = parts[: structure.num_leaves], parts[structure.num_leaves :]
        for place, mask in zip(self.step.found.get("masked", ()), masks, strict=True):
            set_keras_mask(flat[place], mask)
        return pytree.tree_unflatten(flat, structure)

    def _of_each(self, results: list[torch.Tensor]) -> Iterator[tuple[torch.Tensor, ...]]:
        if self.count == 1:
            return iter([tuple(results)])
        return zip(*(one.chunk(self.count) for one in results), strict=True)


@define(eq=False)
class DeviceModel:
    """What the device has of a model. Between calls Keras' variables, of model and optimiser, are right."""

    model: Any
    options: StepOptions
    steps: dict[Any, CompiledStep] = field(factory=dict)
    pair: OptimizerPair | None = None  # of the optimiser and the variables that it trains
    last: PoplarExecutor | None = None
    new_shapes: Counter[StepKind] = field(factory=Counter)  # in a row, of each kind
    seed: DeviceSeed = field(factory=device_seed)  # that compiled steps have
    further: list[Any] = field(factory=list)  # variables that the model does not list

    # what Keras calls

    def train(self, data: list[Any]) -> dict[str, Any]:
        """A training step for each batch, or for so many as are accumulated."""
        with_metrics: dict[str, Any] = {}
        if not self.model.trainable_variables:
            warnings.warn("The model does not have any trainable weights.", stacklevel=2)  # as Keras says it
        for batches in self._runs(data, StepKind.TRAIN):
            updates, rest = divmod(len(batches), self.options.accumulated * self.options.copies)
            if rest:
                self._tell_dropped(rest)
                batches = batches[: len(batches) - rest]
            if not batches:
                continue
            compiled = self._ready(StepKind.TRAIN, batches)
            pair = self.pair
            if pair is not None and updates > 1 and pair.rate_changes:
                say_once("the learning rate of a schedule is the same for all steps of an execution (steps_per_execution)")
            losses, predictions = self._run(compiled, batches)
            if pair is not None:
                pair.take(updates)
            with_metrics = self._measured(batches, losses, predictions)
        return with_metrics or dict(self.model.get_metrics_result())

    def test(self, data: list[Any]) -> dict[str, Any]:
        """Loss and metrics of each batch."""
        with_metrics: dict[str, Any] = {}
        for batches in self._runs(data, StepKind.TEST):
            losses, predictions = self._run(self._ready(StepKind.TEST, batches), batches)
            with_metrics = self._measured(batches, losses, predictions)
        return with_metrics

    def predict(self, data: list[Any]) -> Any:
        """The predictions for all batches, one after the other."""
        found: list[Any] = []
        for batches in self._runs(data, StepKind.PREDICT):
            found += self._run(self._ready(StepKind.PREDICT, batches), batches)[1]
        if len(found) == 1:
            return found[0]
        structure = pytree.tree_flatten(found[0])[1]
        flat = zip(*(pytree.tree_flatten(one)[0] for one in found), strict=True)
        return pytree.tree_unflatten([torch.cat(several) for several in flat], structure)

    # what is asked of the last execution

    def report(self) -> Report:
        """That of the last execution, whatever it did."""
        return self._executed("ipu_report").getReport()

    def cycles(self) -> int:
        """Those of the last execution."""
        return self._executed("ipu_cycles").cycleCount()

    def forget(self) -> None:
        """Let go of all that is compiled."""
        for one in self.steps.values():
            one.executor.destroy()
        self.steps.clear()
        self.pair, self.last = None, None
        self.new_shapes.clear()

    def copy_model(self) -> None:
        """Find how many replicas there are of the model, and let Keras give each of them its batches."""
        model, options = self.model, self.options
        steps = self._steps() // options.copies
        stages = {one.pipeline_stage for one in assignments_of(model)} - {None}
        options.copies = options.replicas(len(stages))
        if model.compiled:
            model.steps_per_execution = steps * options.copies

    def check(self, kind: StepKind) -> None:
        """Refuse what the device cannot do of a kind of step: `MissingFeature` and `InvalidOption`."""
        model, method = self.model, STEP_METHODS[kind]
        if getattr(type(model), method) is not getattr(TorchTrainer, method):
            raise MissingFeature(
                f"{type(model).__name__} has a {method} of its own, which is Python that runs step by step; on the IPU Keras' own "
                "runs: override compute_loss or compute_metrics"
            )
        if model.compiled and model.run_eagerly:
            raise InvalidOption(
                f"{type(model).__name__}: run_eagerly=True runs Python step by step, and an IPU runs what is compiled: leave it out"
            )
        accumulated = self.options.accumulated
        steps = self._steps() // self.options.copies if model.compiled else 1
        if kind is StepKind.TRAIN and steps % accumulated:
            raise InvalidOption(
                f"steps_per_execution is {steps}, and is to be a multiple of gradient_accumulation_steps_per_replica, {accumulated}"
            )

    def check_one_batch(self) -> None:
        """Refuse to train on one batch where an update takes several, of which it would be what is left over: `InvalidOption`."""
        accumulated, copies = self.options.accumulated, self.options.copies
        if accumulated * copies == 1:
            return
        each = f"{copies} replicas take {accumulated} each" if copies > 1 else "so many are accumulated"
        cause = "auto_select_ipus and " * (copies > 1) + "gradient_accumulation_steps_per_replica" * (accumulated > 1)
        raise InvalidOption(
            f"train_on_batch has one batch, and an update of the weights takes {accumulated * copies}: {each}. Call fit with all "
            f"of them (batch_size is that of one batch), or leave out {cause.removesuffix(' and ')}"
        )

    # within

    def _executed(self, what: str) -> PoplarExecutor:
        if self.last is None:
            raise PoplarRuntimeError(f"{what}: nothing was executed yet; call fit, evaluate or predict first")
        return self.last

    def _runs(self, data: list[Any], kind: StepKind) -> Iterator[list[StepBatch]]:
        """The batches of an execution; where the last one is smaller it comes for itself."""
        batches = [StepBatch.of(one, with_targets=kind is not StepKind.PREDICT) for one in data]
        copies = self.options.copies
        for _, same in groupby(batches, key=lambda one: one.signature):
            run = list(same)
            whole = len(run) if kind is StepKind.TRAIN else len(run) - len(run) % copies
            if whole:
                yield run[:whole]
            for one in run[whole:]:  # fewer than there are replicas
                yield [one]

    def _tell_dropped(self, rest: int) -> None:
        copies = self.options.copies
        say_once(
            f"{rest} batches are left over, which are fewer than gradient_accumulation_steps_per_replica, "
            f"{self.options.accumulated}{f', of {copies} replicas' if copies > 1 else ''}: they are dropped"
        )

    def _steps(self) -> int:
        """Those of an execution, as the model has them; `InvalidOption` for what is no number of them."""
        steps = self.model.steps_per_execution
        if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
            hint = ": an IPU runs what is compiled, so give their number" if steps == "auto" else ""
            raise InvalidOption(f"steps_per_execution is a whole number from 1 on, got {steps!r}{hint}")
        return int(steps)

    def _ready(self, kind: StepKind, batches: list[StepBatch]) -> CompiledStep:
        """A step that is compiled, with what the optimiser says now where it trains."""
        while True:
            pair = self._pair() if kind is StepKind.TRAIN else None
            compiled = self._compiled(kind, batches)
            if pair is not None:
                pair.give(compiled.executor)
            if compiled.executor.isCompiled():
                return compiled
            try:
                compiled.executor.compile(*joined_batches(batches))
            except UnlistedVariables as found:
                self.further += found.variables
                self.steps = {key: one for key, one in self.steps.items() if one is not compiled}
            else:
                return compiled

    def _pair(self) -> OptimizerPair | None:
        """The optimiser's counterpart, made anew where Keras' optimiser or what is trained has changed; None if nothing is."""
        model, pair = self.model, self.pair
        trained = list(model.trainable_variables)
        if not trained:
            self.pair = None
            return None
        if pair is None or not pair.is_of(model.optimizer, trained):
            self.forget()
            self.pair = pair = OptimizerPair(model.optimizer, trained)
        return pair

    def _compiled(self, kind: StepKind, batches: list[StepBatch]) -> CompiledStep:
        if not self.model.built:
            self.model._symbolic_build(data_batch=(batches[0].x, batches[0].y, batches[0].sample_weight))
        key = (kind, batches[0].signature, len(batches))
        found = self.steps.get(key)
        if found is not None and found.step.is_of(self.model) and found.settings in (None, layer_settings(self.model)):
            self.new_shapes[kind] = 0
            return found
        known = any(step == kind and signature == batches[0].signature for step, signature, _ in self.steps)
        self.new_shapes[kind] += not known
        if self.new_shapes[kind] > CHANGES:
            shapes = ", ".join(str(tuple(one.shape)) for one in batches[0].tensors)
            raise TensorShapeError(
                f"{CHANGES} executions in a row had other shapes than those before them, and each is compiled anew; now {shapes}: "
                "give batches of one shape, padded where they have to be"
            )
        self.steps[key] = found = self._made(kind, batches)
        return found

    def _made(self, kind: StepKind, batches: list[StepBatch]) -> CompiledStep:
        stable = bool(self.options.config.norms.use_stable_statistics)
        stages = stages_by_layer(self.model) if self.options.pipelined else {}
        pair = self.pair if kind is StepKind.TRAIN else None
        weight = 1 if pair is None else self.options.loss_weight
        step = step_of(self.model, kind, batches[0].structure, Capture(stable, weight, stages), self.further)
        known = max((number for several in stages.values() for number in several), default=-1) + 1
        options = self.options.of_step(StepKind.TEST if pair is None else kind, len(batches), known or None)
        if pair is None:
            return CompiledStep(step, inferenceModel(step, options), len(batches))
        return CompiledStep(step, trainingModel(step, options, pair.device), len(batches))

    def _run(self, compiled: CompiledStep, batches: list[StepBatch]) -> tuple[torch.Tensor | None, list[Any]]:
        if self.seed != device_seed():
            self.seed = device_seed()
            self._draw_anew()
        found = compiled.run(batches)
        if compiled.settings is None:
            compiled.settings = layer_settings(self.model)
        self.last = compiled.executor
        return found

    def _draw_anew(self) -> None:
        """Let random numbers of steps that are compiled begin from the seed; others begin from it anyway."""
        for one in self.steps.values():
            if one.executor.isCompiled() and one.executor.rng_state:
                one.executor.rng_state = [self.seed.seed & 0xFFFFFFFF if self.seed.seed is not None else 0, 0]

    def _measured(self, batches: list[StepBatch], losses: torch.Tensor | None, predictions: list[Any]) -> dict[str, Any]:
        """Keras' metrics with these batches in them; they are computed on the host."""
        assert losses is not None
        model, logs = self.model, {}
        with torch.no_grad():
            for batch, loss, predicted in zip(batches, losses, predictions, strict=True):
                model._loss_tracker.update_state(loss, sample_weight=batch.size)
                if model._compile_loss is not None and model._compile_loss.metrics:
                    model._compile_loss(batch.y, predicted, batch.sample_weight)  # whose trackers have the losses of outputs
                logs = model.compute_metrics(batch.x, batch.y, predicted, sample_weight=batch.sample_weight)
        return dict(logs)
