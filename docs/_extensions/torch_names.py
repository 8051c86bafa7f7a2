"""The site is made without PyTorch, ONNX and Keras, whose names stand for nothing but themselves, as types and bases of classes.

So the pages are the same wherever they are made, and PyTorch is not loaded for them. Sphinx has what stands for the names of a
package that is not there; operators of PyTorch's, which a function becomes by a decorator, are added here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Union

from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import MockFinder, _MockObject

TRIED = "2.13"  # a version that `poptorch` takes without a word


class _Operator:
    """What `torch.library.custom_op` makes of a function: its methods are decorators that change nothing."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *given, **settings: lambda function: function


def install() -> None:
    """Let `import torch` give names that stand for themselves, from now on in this process."""
    _MockObject.__or__ = lambda this, other: Union[this, other]
    _MockObject.__ror__ = lambda this, other: Union[other, this]
    del _MockObject.__new__  # classes that are derived from a name have the arguments of their own `__init__`
    sys.meta_path.insert(0, MockFinder(["torch", "onnx", "google", "keras"]))
    import keras
    import torch

    torch.__version__ = TRIED
    keras.backend = SimpleNamespace(backend=lambda: "torch")
    torch.library.custom_op = lambda *given, **settings: lambda function: _Operator()


def setup(app: Sphinx) -> dict[str, bool]:
    if "torch" not in sys.modules:
        install()
    return {"parallel_read_safe": True, "parallel_write_safe": True}
