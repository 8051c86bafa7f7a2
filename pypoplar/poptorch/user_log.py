"""What the front end tells its user beside errors: the logger ``poptorch``, on standard error unless a program logs by itself.

The environment variable ``POPTORCH_LOG_LEVEL`` or `setLogLevel` says how much: WARN at first.
"""

from __future__ import annotations

import logging
import os
import sys

from pypoplar.errors import InvalidOption
from pypoplar.spelling import nearest_or_all

ENVIRONMENT = "POPTORCH_LOG_LEVEL"
LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERR": logging.ERROR,
    "OFF": logging.CRITICAL + 1,
}
NUMBERS = {0: "TRACE", 1: "DEBUG", 2: "INFO", 3: "WARN", 4: "ERR", 6: "OFF"}
"""PopTorch's older names of its levels."""


class StandardError(logging.Handler):
    """Writes a line on what is standard error just then, unless the program has told `logging` where messages go."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message, unless the program's own handlers do."""
        if not logging.getLogger().handlers:
            sys.stderr.write(self.format(record) + "\n")


logger = logging.getLogger("poptorch")
"""What `poptorch` tells, by the module `logging`; `setLogLevel` says how much."""
_said: set[str] = set()


def setLogLevel(level: str | int) -> None:
    """Tell messages of a level and all that are more serious.

    Parameters
    ----------
    level:
        "TRACE", "DEBUG", "INFO", "WARN", "ERR", or "OFF" for none; or PopTorch's older numbers of them.

    Raises
    ------
    InvalidOption
        For another level.
    """
    if type(level) is int and level not in NUMBERS:
        raise InvalidOption(f"Invalid log level integer: {level}. Valid values are {', '.join(map(str, NUMBERS))}")
    name = NUMBERS[level] if type(level) is int else str(level)
    if name not in LEVELS:
        *first, last = sorted(LEVELS)
        near = nearest_or_all(name, LEVELS)
        raise InvalidOption(f"Unknown log level: {level}. Valid values are {', '.join(first)} and {last}{near}")
    logger.setLevel(LEVELS[name])


def say_once(message: str) -> None:
    """A warning, if it has not been given before."""
    if message not in _said:
        _said.add(message)
        logger.warning(message)


def set_up() -> None:
    """Give the logger its handler and its level, once."""
    if any(isinstance(handler, StandardError) for handler in logger.handlers):
        return
    handler = StandardError()
    handler.setFormatter(logging.Formatter("[%(asctime)s] [%(name)s] [%(levelname)s] %(message)s", "%H:%M:%S"))
    logger.addHandler(handler)
    level = os.environ.get(ENVIRONMENT, "WARN")
    if level not in LEVELS:
        raise InvalidOption(f"the environment variable {ENVIRONMENT} is no log level: {level!r}{nearest_or_all(level, LEVELS)}")
    logger.setLevel(LEVELS[level])


set_up()
