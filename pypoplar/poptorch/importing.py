"""What ``import pypoplar.poptorch`` waits for, some seconds: a bar on a terminal, and messages of the logger at level INFO."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from pypoplar.errors import PoplarError
from pypoplar.options import EngineOptions
from pypoplar.poptorch.user_log import logger
from pypoplar.progress import StageBar, wanted


@contextmanager
def importing(name: str, what: str) -> Iterator[None]:
    """Around the import of the module of that name, which is called `what`; nothing is told where it is there already."""
    if name in sys.modules:
        yield
        return
    begin = time.perf_counter()
    logger.info("importing %s", what)
    with _bar(f"importing {what}") if wanted(_option()) else nullcontext():
        yield
    logger.info("importing %s took %.1f s", what, time.perf_counter() - begin)


def _bar(description: str) -> StageBar:
    import tqdm  # noqa: F401 - here, as the bar's thread would meet PyTorch's own import of it half way

    return StageBar(description)


def _option() -> str:
    """What the environment says of bars. Where it is wrong the first Engine says so, not an import."""
    try:
        return EngineOptions.parse().progress
    except PoplarError:
        return EngineOptions().progress
