"""The options of library calls: names with text values, checked against those that the call knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypoplar.braces import OPTIONS, ordered
from pypoplar.errors import InvalidOption, PoplarTypeError
from pypoplar.spelling import nearest

Kind = type[bool] | type[float] | type[int] | type[str] | Sequence[str]


def read_options(call: str, options: Mapping[str, object] | None, known: Mapping[str, Kind]) -> dict[str, bool | float | int | str]:
    """The options of a call, converted to their kinds; a kind is bool, int, float, str or a list of words.

    `InvalidOption` for a name that the call does not know, with the nearest one, and for a value of another kind;
    `PoplarTypeError` for what is no dict.
    """
    chosen: dict[str, bool | float | int | str] = {}
    given: object = ordered(options, f"the options of {call}", OPTIONS)
    if not isinstance(given, Mapping | None):
        raise PoplarTypeError(f"the options of {call} are a dict, got {given!r}")
    for name, value in (given or {}).items():
        if name not in known:
            hint = nearest(name, known, f"; it has {', '.join(known)}")
            raise InvalidOption(f"{call} has no option {name!r}{hint}")
        chosen[name] = _read(call, name, str(value), known[name])
    return chosen


def _read(call: str, name: str, text: str, kind: Kind) -> bool | float | int | str:
    if kind is bool:
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise InvalidOption(f"{call}: the option {name!r} is 'true' or 'false', got {text!r}")
    if isinstance(kind, type):
        try:
            return kind(text)
        except ValueError:
            raise InvalidOption(f"{call}: the option {name!r} is a number, got {text!r}") from None
    if text not in kind:
        raise InvalidOption(f"{call}: the option {name!r} is one of {', '.join(kind)}, got {text!r}")
    return text
