"""The libraries' files of device code."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType

from pypoplar import resources
from pypoplar.codelet.language.codelet_file import module_of_file


@cache
def codelet_module(file: str) -> ModuleType:
    """The module of a file of codelets, which Python runs once for all graphs."""
    return module_of_file(Path(resources.codelets(file)))
