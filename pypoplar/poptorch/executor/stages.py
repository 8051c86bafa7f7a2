"""What a model's first call waits for: its stages, as bars on a terminal and as messages of the logger at level INFO.

The Engine's option ``pypoplar.progress`` decides about bars, as it does for compilations and runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from pypoplar.options import EngineOptions
from pypoplar.poptorch.user_log import logger
from pypoplar.progress import StageBar, wanted

LONGEST = 3  # modules that the log names


class CompilationStage:
    """A stage that is going on: how far it is, by module, and what its end says."""

    def __init__(self, bar: StageBar | None) -> None:
        self._bar = bar
        self._module = ""
        self._since = time.perf_counter()
        self._seconds: dict[str, float] = {}  # by module
        self.result = ""  # what there is at its end, for the log

    def at(self, done: int, total: int, module: str) -> None:
        """So many operations are done, and those of a module come next."""
        now = time.perf_counter()
        self._seconds[self._module] = self._seconds.get(self._module, 0.0) + now - self._since
        if module != self._module:
            logger.debug("%s operations of %s done; next is %s", f"{done:,}", f"{total:,}", module or "the model")
        self._module, self._since = module, now
        if self._bar is not None:
            self._bar(done, total, module)

    def longest(self) -> str:
        """The modules that took longest, in words; empty where there are none."""
        named = sorted(((seconds, name) for name, seconds in self._seconds.items() if name), key=lambda one: -one[0])
        return ", ".join(f"{name} {seconds:.1f} s" for seconds, name in named[:LONGEST])


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
        bar = StageBar(f"{doing} {self._model}", unit=unit) if self._shown and own_bar else None
        stage = CompilationStage(bar)
        with nullcontext() if bar is None else bar:
            yield stage
        took = f"{doing} {self._model} took {time.perf_counter() - begin:.1f} s"
        told = "; ".join(filter(None, (stage.result, stage.longest() and f"longest: {stage.longest()}")))
        logger.info("%s%s", took, f": {told}" if told else "")
