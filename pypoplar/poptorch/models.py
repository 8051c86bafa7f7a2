"""What makes a module a model on the simulated IPU."""

from __future__ import annotations

import torch

from pypoplar.poptorch.executor import PoplarExecutor
from pypoplar.poptorch.options import Options


def trainingModel(
    model: torch.nn.Module | PoplarExecutor, options: Options | None = None, optimizer: torch.optim.Optimizer | None = None
) -> PoplarExecutor:
    """A module that trains on the simulated IPU: each call is a step, or as many as the options say.

    The module's forward pass returns its loss, alone or beside other outputs: that of a loss function of PyTorch, or a value behind
    `identity_loss`. Its parameters are trained in place, so that the module has the new weights after each call. Without an
    `optimizer` it is ``torch.optim.SGD(model.parameters(), lr=0.01)``. The module runs as it is: call its `train()` before.
    """
    module = model.model if isinstance(model, PoplarExecutor) else model
    chosen = torch.optim.SGD(module.parameters(), lr=0.01) if optimizer is None else optimizer
    return PoplarExecutor(module, options, chosen)


def inferenceModel(model: torch.nn.Module | PoplarExecutor, options: Options | None = None) -> PoplarExecutor:
    """A module whose calls run on the simulated IPU. Dropout drops nothing; all else is as the module says: `eval()` it before."""
    return PoplarExecutor(model.model if isinstance(model, PoplarExecutor) else model, options, None)
