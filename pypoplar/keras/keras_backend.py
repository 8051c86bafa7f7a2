"""Keras, on the backend that runs on the simulated IPU: PyTorch."""

from __future__ import annotations

import importlib.util
import os
import sys

from pypoplar.errors import PoplarRuntimeError
from pypoplar.extras import install_command

VARIABLE = "KERAS_BACKEND"
HOW = f'set the environment variable {VARIABLE}="torch" before Keras is imported, or import pypoplar.keras first'


def choose_torch() -> None:
    """Let Keras take PyTorch, if it is not imported yet and nobody has chosen.

    `ModuleNotFoundError` without Keras or PyTorch; `PoplarRuntimeError` where Keras has another backend, or is to have one.
    """
    for name in ("keras", "torch"):
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(
                f"pypoplar.keras needs the packages keras and PyTorch; {name} is not installed: {install_command('keras')}",
                name=name,
            )
    if "keras" not in sys.modules:
        chosen = os.environ.setdefault(VARIABLE, "torch")
        if chosen != "torch":
            raise PoplarRuntimeError(f"{VARIABLE} is {chosen!r}, and the simulated IPU runs Keras on PyTorch: {HOW}")
    import keras

    if keras.backend.backend() != "torch":
        raise PoplarRuntimeError(
            f"Keras runs on the backend {keras.backend.backend()!r}, and the simulated IPU runs Keras on PyTorch: {HOW}"
        )
