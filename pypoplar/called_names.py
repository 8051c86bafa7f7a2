"""What names within a function stand for where it is called, as a report's program tree says it of a call: "layer3 for layer0"."""

from __future__ import annotations

from collections.abc import Mapping

FOR, NEXT, BEHIND = " for ", ", ", "; "


def told(names: Mapping[str, str], note: str = "") -> str:
    """Names by what they stand for, and a note behind."""
    return BEHIND.join(filter(None, (NEXT.join(f"{here}{FOR}{there}" for there, here in names.items()), note)))


def names_told(text: str) -> dict[str, str]:
    """The names that a text of `told` has."""
    pairs = (pair.split(FOR) for pair in text.partition(BEHIND)[0].split(NEXT))
    return {pair[1]: pair[0] for pair in pairs if len(pair) == 2}


def name_in_call(name: str, names: Mapping[str, str]) -> str:
    """What a name of a function's is in a call: the longest beginning of it that is told is replaced."""
    parts = name.split("/")
    for length in range(len(parts), 0, -1):
        stands_for = names.get("/".join(parts[:length]))
        if stands_for is not None:
            return "/".join([stands_for, *parts[length:]])
    return name
