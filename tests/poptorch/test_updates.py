"""Optimisers on the device make PyTorch's steps."""

import pytest
import torch

from tests.helpers.update_rig import steps_alike

SETTINGS = {
    "SGD": [
        {"lr": 0.1},
        {"lr": 0.1, "weight_decay": 0.2, "maximize": True},
        {"lr": 0.1, "momentum": 0.9},
        {"lr": 0.1, "momentum": 0.8, "dampening": 0.4, "weight_decay": 0.1},
        {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1},
    ],
    "Adam": [
        {"lr": 0.05},
        {"lr": 0.05, "betas": (0.7, 0.9), "weight_decay": 0.1, "eps": 1e-4},
        {"lr": 0.05, "amsgrad": True, "maximize": True},
        {"lr": 0.05, "betas": (0.0, 0.9)},
    ],
    "AdamW": [{"lr": 0.05}, {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True}],
    "RMSprop": [
        {"lr": 0.05},
        {"lr": 0.05, "centered": True, "weight_decay": 0.1},
        {"lr": 0.05, "momentum": 0.7, "alpha": 0.8},
        {"lr": 0.05, "momentum": 0.7, "centered": True, "maximize": True},
    ],
}
EVERY = [(kind, settings) for kind, several in SETTINGS.items() for settings in several]


@pytest.mark.parametrize(("kind", "settings"), EVERY)
def test_steps_are_pytorchs(kind, settings):
    steps_alike(lambda parameters: getattr(torch.optim, kind)(parameters, **settings))
