"""What models of Keras ask when they are made, compiled and run: whether they are the simulated IPU's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
from keras.src.backend.torch.trainer import TorchTrainer
from keras.src.trainers.trainer import Trainer

from pypoplar.keras.captured_step import StepKind
from pypoplar.keras.device_model import DeviceModel
from pypoplar.keras.ipu.config import configured
from pypoplar.keras.ipu.ipu_strategy import get_strategy
from pypoplar.keras.model_methods import ATTRIBUTE, METHODS, device_model
from pypoplar.keras.step_options import StepOptions
from pypoplar.poptorch.capture.origins import add_library

FUNCTIONS = {StepKind.TRAIN: "make_train_function", StepKind.TEST: "make_test_function", StepKind.PREDICT: "make_predict_function"}


def _join(model: Any) -> None:
    """Let a model run on the IPU, if this is a strategy's scope."""
    if get_strategy() is not None and device_model(model) is None:
        vars(model)[ATTRIBUTE] = DeviceModel(model, StepOptions(configured()))


def _making(original: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any) -> None:
        original(self)
        _join(self)

    return __init__


def _compiling(original: Callable[..., None]) -> Callable[..., None]:
    def compile(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        _join(self)
        found = device_model(self)
        if found is not None:
            found.forget()
            found.options.copies = 1  # Keras has set the steps of an execution anew
            if get_strategy() is not None:
                found.options.config = configured()
            found.copy_model()

    return compile


def _functions(kind: StepKind, original: Callable[..., Any]) -> Callable[..., Any]:
    attribute = f"{kind.value}_function"

    def make(self: Any, force: bool = False) -> Any:
        found = device_model(self)
        if found is None:
            return original(self, force)
        if getattr(self, attribute) is None or force:
            found.check(kind)
            setattr(self, attribute, getattr(found, kind.value))
        return getattr(self, attribute)

    make.__name__ = FUNCTIONS[kind]
    return make


def _training_on_a_batch(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def train_on_batch(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = device_model(self)
        if found is not None:
            found.check_one_batch()
        return original(self, *args, **kwargs)

    return train_on_batch


def install() -> None:
    """Let Keras' models ask. It is done once; outside scopes they do as before."""
    if getattr(TorchTrainer, "_asks_for_ipu", False):
        return
    TorchTrainer._asks_for_ipu = True
    add_library(keras)
    TorchTrainer.__init__ = _making(TorchTrainer.__init__)
    Trainer.compile = _compiling(Trainer.compile)
    TorchTrainer.train_on_batch = _training_on_a_batch(TorchTrainer.train_on_batch)
    for kind, name in FUNCTIONS.items():
        setattr(TorchTrainer, name, _functions(kind, getattr(TorchTrainer, name)))
    for name, method in METHODS.items():
        setattr(keras.Model, name, method)
