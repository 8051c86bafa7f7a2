"""What a library says of a function that PopLibs has and it has not."""

from __future__ import annotations

from collections.abc import Iterable

from pypoplar.errors import PoplarAttributeError
from pypoplar.spelling import nearest


def absent_member(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for ``module.name``; the README lists what is missing."""
    if name.startswith("_"):
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    hint = nearest(name, known, '; the README\'s list "Not there yet" has what of PopLibs is missing')
    return PoplarAttributeError(f"{module} has no {name!r}{hint}")
