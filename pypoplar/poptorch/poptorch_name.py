"""The names ``poptorch``, ``popdist`` and ``popart`` for pypoplar's modules, and for their parts, in this process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

NAMES = ("poptorch", "popdist")
LATER = "popart"  # loaded when a program imports it
PACKAGE = "pypoplar."  # which has modules of these names
FOR_PROCESSES = str(Path(__file__).parent / "script_path")
"""A directory whose module ``poptorch`` calls `install`: for processes that are started anew and get this one's `sys.path`."""


def _is_part(name: str) -> bool:
    """Whether a name is that of a part of one of the modules, or of one that is loaded when it is asked for."""
    return name == LATER or (name.partition(".")[0] in (*NAMES, LATER) and "." in name)


class PoptorchNames(MetaPathFinder, Loader):
    """Finds ``poptorch.X`` as the module ``pypoplar.poptorch.X`` itself, so that no class is there twice."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Where a module is that a program imports as a part of ``poptorch``."""
        if not _is_part(fullname):
            return None
        real = PACKAGE + fullname
        try:
            import_module(real)
        except ModuleNotFoundError as missing:
            if missing.name != real:
                raise
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of pypoplar's that the name stands for; it is there once, under both names."""
        module = sys.modules[PACKAGE + spec.name]
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module has run already; it keeps its own spec, in whose place the machinery has put that of the other name."""
        module.__spec__ = self._spec


def install() -> None:
    """Give the names to the modules, whatever else is called so; and to child processes, which get `sys.path`."""
    for name in NAMES:
        sys.modules[name] = import_module(PACKAGE + name)
    for name in [name for name in sys.modules if _is_part(name)]:
        del sys.modules[name]  # of another module of the name
    if not any(isinstance(finder, PoptorchNames) for finder in sys.meta_path):
        sys.meta_path.insert(0, PoptorchNames())
    if FOR_PROCESSES not in sys.path:
        sys.path.append(FOR_PROCESSES)
