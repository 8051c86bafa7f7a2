"""Networks that are drawn: layers called several times, two models that share layers, several inputs and outputs, any options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras_rig as rig
import numpy as np
import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

keras = rig.keras
layers, optimizers = keras.layers, keras.optimizers
WIDTH, ROWS = 4, 6
ACTIVATIONS = ("tanh", "sigmoid", "silu", "softplus", "gelu", None)
LOSSES = ("mse", "huber", "log_cosh", "mae")


@frozen
class Pair:
    """Two models that share layers, compiled, with their inputs' and outputs' numbers."""

    models: tuple[Any, Any]
    sizes: tuple[tuple[int, int], ...]


class Drawing:
    """Draws from a seed; what is drawn for the host and for the device is the same."""

    def __init__(self, seed: int) -> None:
        self.numbers = np.random.default_rng(seed)

    def one_of(self, *given: Any) -> Any:
        return given[self.numbers.integers(len(given))]

    def layer(self) -> Any:
        kind = self.one_of("dense", "dense", "regular", "batch", "layer", "drop", "group")
        if kind == "dense":
            return layers.Dense(WIDTH, activation=self.one_of(*ACTIVATIONS), use_bias=self.one_of(True, False))
        return {
            "regular": lambda: layers.Dense(WIDTH, kernel_regularizer=self.one_of("l1", "l2"), activity_regularizer="l2"),
            "batch": lambda: layers.BatchNormalization(momentum=0.7),
            "layer": layers.LayerNormalization,
            "drop": lambda: layers.Dropout(0.0),
            "group": lambda: layers.GroupNormalization(2),
        }[kind]()

    def optimizer(self) -> Any:
        further = dict(self.one_of((), (("clipnorm", 0.1),), (("clipvalue", 0.05),), (("global_clipnorm", 0.2),)))
        further |= dict(self.one_of((), (), (("weight_decay", 0.01),)))
        further |= dict(self.one_of((), (), (("use_ema", True), ("ema_momentum", 0.7), ("ema_overwrite_frequency", 2))))
        rate = self.one_of(0.05, optimizers.schedules.ExponentialDecay(0.05, 2, 0.7))
        kind = self.one_of("SGD", "momentum", "Adam", "RMSprop", "Adagrad")
        if kind == "momentum":
            return optimizers.SGD(rate, momentum=0.9, nesterov=self.one_of(True, False), **further)
        if kind == "Adam":
            return optimizers.Adam(rate, epsilon=0.01, amsgrad=self.one_of(True, False), **further)
        return {"SGD": optimizers.SGD, "RMSprop": optimizers.RMSprop, "Adagrad": optimizers.Adagrad}[kind](
            rate, **further, **({} if kind == "SGD" else {"epsilon": 0.01})
        )

    def model(self, pool: list[Any], entries: int, exits: int, calls: int) -> Any:
        """A functional model that calls layers of a pool, some of them several times."""
        entered = [keras.Input((WIDTH,)) for _ in range(entries)]
        known = list(entered)
        for _ in range(calls):
            kind = self.one_of("layer", "layer", "layer", "add", "multiply", "join")
            first, second = self.one_of(*known), self.one_of(*known)
            if kind == "layer":
                known.append(self.one_of(*pool)(first))
            elif kind == "join":
                known.append(layers.Dense(WIDTH)(layers.Concatenate()([first, second])))
            else:
                known.append((layers.Add() if kind == "add" else layers.Multiply())([first, second]))
        mixed = layers.Average()(known) if len(known) > 1 else known[0]
        left = [layers.Dense(number + 1)(layers.Add()([mixed, self.one_of(*known)])) for number in range(exits)]
        return keras.Model(entered if entries > 1 else entered[0], left if exits > 1 else left[0])

    def pair(self) -> Pair:
        pool = [self.layer() for _ in range(3)]
        made, sizes = [], []
        for calls in (int(self.numbers.integers(2, 6)), 2):
            entries, exits = (int(self.numbers.integers(1, 3)) for _ in range(2))
            model = self.model(pool, entries, exits, calls)
            if self.numbers.integers(4) == 0:
                self.one_of(*pool).trainable = False
            losses = [self.one_of(*LOSSES) for _ in range(exits)]
            how = {"loss_weights": [0.5, 2.0]} if exits == 2 and self.one_of(True, False) else {}
            model.compile(self.optimizer(), losses if exits > 1 else losses[0], **how)
            made.append(model)
            sizes.append((entries, exits))
        return Pair(tuple(made), tuple(sizes))

    def batch(self, entries: int, exits: int, weighted: bool) -> tuple[Any, Any, Any]:
        x = [rig.drawn(ROWS, WIDTH, seed=int(self.numbers.integers(1 << 30))) for _ in range(entries)]
        y = [rig.drawn(ROWS, number + 1, seed=int(self.numbers.integers(1 << 30))) for number in range(exits)]
        weights = np.abs(rig.drawn(ROWS, seed=int(self.numbers.integers(1 << 30)))) if weighted and exits == 1 else None
        return (x if entries > 1 else x[0]), (y if exits > 1 else y[0]), weights


def variables_of(pair: Pair) -> Iterator[Any]:
    for model in pair.models:
        yield from (*model.variables, *model.optimizer.variables)


def steps_are_those_of_keras(seed: int, order: tuple[int, ...]) -> None:
    """Each step of either model, from the same variables, gives the same loss, and all variables of both models."""
    host = Drawing(seed).pair()
    with rig.scope():
        device = Drawing(seed).pair()
    for pair in (host, device):
        for model in pair.models:
            model.optimizer.build(model.trainable_variables)
    drawing = Drawing(seed + 1)
    weighted = bool(drawing.numbers.integers(2))
    for which in order:
        for ours, theirs in zip(variables_of(device), variables_of(host), strict=True):
            theirs.assign(ours)
        x, y, weights = drawing.batch(*host.sizes[which], weighted)
        losses = [np.ravel(pair.models[which].train_on_batch(x, y, sample_weight=weights)) for pair in (device, host)]
        np.testing.assert_allclose(*losses, rtol=1e-5, atol=1e-6)
        for ours, theirs in zip(variables_of(device), variables_of(host), strict=True):
            value, expected = (np.asarray(one.numpy(), np.float64) for one in (ours, theirs))
            apart, most = np.abs(value - expected).max(initial=0.0), np.abs(expected).max(initial=0.0)
            assert apart <= 1e-6 * most + 3e-7, f"{theirs.path} of model {which}: {apart:.1e} of {most:.1e}"
    for which, (entries, exits) in enumerate(host.sizes if len(order) > 1 else ()):
        x, *_ = drawing.batch(entries, exits, False)
        outs = [pair.models[which].predict_on_batch(x) for pair in (device, host)]
        assert rig.apart(*(out if exits > 1 else [out] for out in outs)) <= 1e-5


@given(st.integers(0, 1 << 20))
@examples(10, 2)
def test_a_drawn_model_makes_keras_step(seed):
    steps_are_those_of_keras(seed, (0,))


@pytest.mark.slow
@given(st.integers(0, 1 << 20))
@examples(12)
def test_drawn_models_that_share_layers_make_keras_steps(seed):
    steps_are_those_of_keras(seed, (0, 1, 0, 1))
