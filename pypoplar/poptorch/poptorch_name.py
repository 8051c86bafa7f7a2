"""The name ``poptorch`` for `pypoplar.poptorch`, and ``poptorch.optim`` and the like for its parts, in this process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

NAME = "poptorch"
REAL = "pypoplar.poptorch"
FOR_PROCESSES = str(Path(__file__).parent / "script_path")
"""A directory whose module ``poptorch`` calls `install`: for processes that are started anew and get this one's `sys.path`."""


class PoptorchNames(MetaPathFinder, Loader):
    """Finds ``poptorch.X`` as the module ``pypoplar.poptorch.X`` itself, so that no class is there twice."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Where a module is that a program imports as a part of ``poptorch``."""
        if not fullname.startswith(NAME + "."):
            return None
        real = REAL + fullname.removeprefix(NAME)
        try:
            import_module(real)
        except ModuleNotFoundError as missing:
            if missing.name != real:
                raise
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of pypoplar's that the name stands for; it is there once, under both names."""
        module = sys.modules[REAL + spec.name.removeprefix(NAME)]
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module has run already; it keeps its own spec, in whose place the machinery has put that of the other name."""
        module.__spec__ = self._spec


def install() -> None:
    """Give the name to the module, whatever else is called so; and to child processes, which get `sys.path`."""
    sys.modules[NAME] = import_module(REAL)
    for name in [name for name in sys.modules if name.startswith(NAME + ".")]:
        del sys.modules[name]  # of another module of the name
    if not any(isinstance(finder, PoptorchNames) for finder in sys.meta_path):
        sys.meta_path.insert(0, PoptorchNames())
    if FOR_PROCESSES not in sys.path:
        sys.path.append(FOR_PROCESSES)
