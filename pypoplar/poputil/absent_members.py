"""What a library says of a name that it does not have: PopLibs has it, or nobody has."""

from __future__ import annotations

from collections.abc import Iterable

from pypoplar.errors import MissingMember, PoplarAttributeError
from pypoplar.poputil.poplibs_names import names_of
from pypoplar.spelling import nearest

MISSING = "docs/not-there-yet.md has what of PopLibs is missing"


def absent_member(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for ``module.name``: `MissingMember` for a name of PopLibs, else `PoplarAttributeError` with the nearest name."""
    if name.startswith("_"):
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    if name in names_of(module.partition(".")[2]):
        return MissingMember(
            f"PopLibs has {module.partition('.')[2]}.{name}, and pypoplar does not have it yet; docs/poplibs.md has what is there"
        )
    return PoplarAttributeError(f"{module} has no {name!r}{nearest(name, known, f'; {MISSING}')}")
