"""What is made for a line of the user's module says that line, although the module ran long before."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import TypeVar

from pypoplar.codelet.ir.terms import Location

Result = TypeVar("Result")


@cache
def _call(location: Location) -> CodeType:
    """The code of one call that stands at a location; what looks for the caller's line finds it there."""
    code = compile("result = act()", location.file, "exec", dont_inherit=True)
    name = location.function.rpartition(".")[2]
    return code.replace(co_firstlineno=location.line, co_name=name, co_qualname=location.function)


def at_line(location: Location | None, act: Callable[[], Result]) -> Result:
    """The result of `act`, called as from a line of the user's; from here where no line is known."""
    if location is None:
        return act()
    names: dict[str, object] = {"act": act}
    exec(_call(location), names)
    return names["result"]  # type: ignore[return-value]
