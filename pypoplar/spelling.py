"""What messages say of a name that nobody has: the nearest of those that there are."""

from __future__ import annotations

from collections.abc import Iterable

MOST_LISTED = 8


def nearest_name(name: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The one of the `known` names that is spelled most like `name`; None if none is at least `cutoff` (0 to 1) alike.

    A name that differs in capitals alone is the nearest.
    """
    from difflib import get_close_matches  # a correct program never gets here

    names, wanted = list(known), str(name)
    alike = (candidate for candidate in names if candidate.casefold() == wanted.casefold())
    return next(alike, None) or next(iter(get_close_matches(wanted, names, n=1, cutoff=cutoff)), None)


def nearest(name: object, known: Iterable[str], otherwise: str = "", cutoff: float = 0.6) -> str:
    """``"; did you mean 'x'?"`` for the nearest of the `known` names, `otherwise` if none is near."""
    near = nearest_name(name, known, cutoff)
    return otherwise if near is None else f"; did you mean {near!r}?"


def nearest_or_all(name: object, known: Iterable[str]) -> str:
    """`nearest`, or what names there are when none is near."""
    names = list(known)
    listed = ", ".join(map(repr, names[:MOST_LISTED])) + (" and more" if len(names) > MOST_LISTED else "")
    return nearest(name, names, f"; there are {listed}" if names else "; there are none")
