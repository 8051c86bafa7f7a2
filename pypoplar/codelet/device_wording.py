"""How messages of the compiler and of engines tell what is wrong in device code, and where."""

from __future__ import annotations

import linecache

from pypoplar.codelet.ir.terms import line_text
from pypoplar.codelet.ir.typed import TypedCodelet


def device_code(codelet: TypedCodelet, where: int, what: str) -> str:
    """What is wrong at a line of device code, and the line: ``scale.py:7: Scale.compute: ...``."""
    place = codelet.locations[where]
    source = linecache.getline(place.file, place.line).strip()
    shown = f"\n    {source}" if source else ""
    return f"{line_text(place)}: {codelet.name}.{place.function}: {what}{shown}"


def worker_race(later: int, place: str, earlier: int, *, writes: bool, written: bool) -> str:
    """What two workers of a MultiVertex do to an element or scalar, one after the other here."""
    does, done = "writes" if writes else "reads", "written" if written else "read"
    return (
        f"worker {later} {does} {place}, which worker {earlier} has {done}: the workers of a MultiVertex run at once, so what is "
        "read or left there depends on their timing"
    )


def shared_word(first: str, second: str) -> str:
    """What two workers do to a word; each says its worker and what of the word it stores."""
    return (
        f"two workers store into one 32-bit word, and one of the stores would be lost: {first} and {second}; "
        "let each worker store whole words, have elements of 32 bits, such as INT for BOOL, or let one worker store all of a word"
    )
