"""What a model's first call waits for: its stages, as bars on a terminal and as messages of the logger at level INFO.

The Engine's option ``pypoplar.progress`` decides about bars, as it does for compilations and runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from pypoplar.host_memory import memory_text, resident, resident_text
from pypoplar.options import EngineOptions
from pypoplar.poptorch.user_log import logger
from pypoplar.progress import StageBar, wanted

MOST_NAMED = 3  # modules that the log names
LEAST_BYTES = 500_000  # by which a module makes the process grow that is named for it


class CompilationStage:
    """A stage that is going on: how far it is, by module, and what its end says."""

    def __init__(self, bar: StageBar | None) -> None:
        self._bar = bar
        self._module = ""
        self._since, self._bytes = time.perf_counter(), resident() or 0
        self._seconds: dict[str, float] = {}  # by module
        self._grown: dict[str, int] = {}  # likewise, by how many bytes the process
        self.result = ""  # what there is at its end, for the log

    def at(self, done: int, total: int, module: str) -> None:
        """So many operations are done, and those of a module come next."""
        now, bytes = time.perf_counter(), resident() or 0
        self._seconds[self._module] = self._seconds.get(self._module, 0.0) + now - self._since
        self._grown[self._module] = self._grown.get(self._module, 0) + bytes - self._bytes
        if module != self._module:
            logger.debug("%s operations of %s done; next is %s", f"{done:,}", f"{total:,}", module or "the model")
        self._module, self._since, self._bytes = module, now, bytes
        if self._bar is not None:
            self._bar(done, total, module)

    def by_module(self) -> list[str]:
        """The modules that took longest, and those with which the process grew most, in words."""
        words = {
            "longest": _most(self._seconds, 0.0, "{:.1f} s".format),
            "most memory": _most(self._grown, LEAST_BYTES, memory_text),
        }
        return [f"{what}: {modules}" for what, modules in words.items() if modules]


def _most(figures: Mapping[str, Any], least: float, text: Callable[[Any], str]) -> str:
    """The modules with the largest figures, of more than the least; empty where there are none."""
    named = sorted(((figure, name) for name, figure in figures.items() if name and figure > least), key=lambda one: -one[0])
    return ", ".join(f"{name} {text(figure)}" for figure, name in named[:MOST_NAMED])


class CompilationStages:
    """The stages of a model's compilation."""

    def __init__(self, model: str, options: Mapping[str, Any]) -> None:
        self._model = model
        self._shown = wanted(EngineOptions.parse(options).progress)

    @contextmanager
    def stage(self, doing: str, unit: str = "", *, own_bar: bool = True) -> Iterator[CompilationStage]:
        """Around a stage, such as "capturing"; without a bar where what it calls has one of its own."""
        begin = time.perf_counter()
        logger.info("%s %s", doing, self._model)
        bar = StageBar(f"{doing} {self._model}", unit=unit, beside=resident_text) if self._shown and own_bar else None
        stage = CompilationStage(bar)
        with nullcontext() if bar is None else bar:
            yield stage
        took = ", ".join(filter(None, (f"{doing} {self._model} took {time.perf_counter() - begin:.1f} s", resident_text())))
        told = "; ".join(filter(None, (stage.result, *stage.by_module())))
        logger.info("%s%s", took, f": {told}" if told else "")
