"""The scripts of the tutorials as modules."""

import importlib
import sys
from types import ModuleType

import pytest

from pypoplar import resources


def tutorial_module(name: str) -> ModuleType:
    """A new module of a tutorial's script; those beside it that it imports, such as ``_digits``, are its own."""
    directory = str(resources.directory("tutorials"))
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(directory)
        module = importlib.import_module(name)
    for added in set(sys.modules) - before:
        if str(getattr(sys.modules[added], "__file__", "")).startswith(directory):
            del sys.modules[added]
    return module
