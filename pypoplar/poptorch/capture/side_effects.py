"""What a forward pass does beside computing: Python runs once, where the model is captured, and this is told."""

from __future__ import annotations

import contextlib
import pickle
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from pypoplar.poptorch.capture.origins import is_users
from pypoplar.poptorch.capture.problems import CaptureError, Whereabouts
from pypoplar.poptorch.operators import isRunningOnIpu
from pypoplar.poptorch.user_log import say_once

ONCE = "Python runs once, while the model is captured"


@contextlib.contextmanager
def told_side_effects(whereabouts: Whereabouts) -> Iterator[None]:
    """While a module is exported, say what it does that calls on the IPU will not do."""
    pythons, numpys = random.getstate(), _numpys_state()
    added: list[tuple[torch.nn.Module, str]] = []
    with contextlib.ExitStack() as stack:
        for name in ("__repr__", "__format__"):
            stack.enter_context(replaced(torch.Tensor, name, _telling_of_print(name, whereabouts)))
        stack.enter_context(replaced(torch.nn.Module, "__setattr__", _telling_of_change(whereabouts, added)))
        try:
            yield
        finally:
            for module, name in added:  # the tensors of an export have no values
                vars(module).pop(name, None)
    if random.getstate() != pythons:
        say_once(f"the model draws from Python's random: {ONCE}, and each call has the same number; take torch.rand")
    if _numpys_state() != numpys:
        say_once(f"the model draws from numpy.random: {ONCE}, and each call has the same number; take torch.rand")


def _numpys_state() -> bytes:
    """The state of the random numbers that NumPy's older functions draw."""
    return pickle.dumps(np.random.get_state())  # noqa: NPY002


def _telling_of_print(name: str, whereabouts: Whereabouts) -> Callable[..., str]:
    original = getattr(torch.Tensor, name)

    def told(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> str:
        if isRunningOnIpu() and is_users(sys._getframe(1).f_code.co_filename):
            say_once(f"a tensor is made a text: {ONCE}, without values; take poptorch.ipu_print_tensor ({whereabouts.now()})")
        return str(original(tensor, *args, **kwargs))

    return told


def _telling_of_change(whereabouts: Whereabouts, added: list[tuple[torch.nn.Module, str]]) -> Callable[..., None]:
    original = torch.nn.Module.__setattr__

    def told(module: torch.nn.Module, name: str, value: Any) -> None:
        within = vars(module)
        buffer = within.get("_buffers", {}).get(name)
        if isRunningOnIpu() and isinstance(value, torch.Tensor) and buffer is not None and not _takes(buffer, value):
            raise CaptureError(_reassigned(name, buffer, value, whereabouts))
        known = any(name in within.get(part, ()) for part in ("_parameters", "_buffers", "_modules"))
        if isRunningOnIpu() and not known and is_users(sys._getframe(1).f_code.co_filename):
            before = within.get(name)
            if isinstance(value, torch.Tensor) and before is not value:
                if name not in within:
                    added.append((module, name))
                say_once(
                    f"the forward pass sets the tensor {name}: {ONCE}, and each call finds what was there before; register_buffer "
                    f"keeps a tensor from call to call ({whereabouts.now()})"
                )
            elif isinstance(value, int | float | str | bool) and before != value:
                say_once(
                    f"the forward pass sets {name} to {value!r}: {ONCE}, and each call has the values of then; register_buffer "
                    f"keeps a tensor from call to call ({whereabouts.now()})"
                )
        original(module, name, value)

    return told


def _takes(buffer: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether a buffer can have a value from then on, as a step of training writes it."""
    return buffer.shape == value.shape and buffer.dtype.is_floating_point == value.dtype.is_floating_point


def _reassigned(name: str, buffer: torch.Tensor, value: torch.Tensor, whereabouts: Whereabouts) -> str:
    return (
        f"Buffer {name} is reassigned within the model when calling the forward method. This is not supported. Consider using "
        f"self.{name}.copy_(src) to copy data from a source tensor, where src is the name of the source tensor. It is "
        f"{tuple(buffer.shape)} of {buffer.dtype}, and becomes {tuple(value.shape)} of {value.dtype} ({whereabouts.now()})"
    )


@contextlib.contextmanager
def replaced(holder: type, name: str, value: Any) -> Iterator[None]:
    """An attribute of a class, for a while."""
    inherited = name not in vars(holder)
    original = vars(holder).get(name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        if inherited:
            delattr(holder, name)
        else:
            setattr(holder, name, original)
