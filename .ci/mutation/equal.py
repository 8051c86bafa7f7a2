"""Mutants that are known to do what the code does: `.ci/equal_mutants.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path

from attrs import frozen


@frozen
class EqualMutant:
    """The lines of a module that one change makes from others, without the space before them; why nothing differs."""

    module: str
    before: str
    after: str
    reason: str


def equal_mutants(path: Path) -> list[EqualMutant]:
    """Those of a file."""
    entries = tomllib.loads(path.read_text())["equal"] if path.exists() else []
    return [EqualMutant(each["module"], each["before"], each["after"], each["reason"]) for each in entries]
