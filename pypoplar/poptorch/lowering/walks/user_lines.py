"""The traceback of an error shows the line of the user's module that it is about, although the module ran long before.

A location is a value (`pypoplar.location`), and whatever is made has its line by that. A traceback has frames alone, and Python
makes none but by running code: for an error, and for nothing else, a frame of the user's line is made. A note of the error would
stand below its message, where debuggers and pytest do not go by it.
"""

from __future__ import annotations

from functools import cache
from types import CodeType, TracebackType

from pypoplar.codelet.ir.terms import Location


@cache
def _raising(location: Location) -> CodeType:
    """The code of a line that raises an error."""
    code = compile("raise error", location.file, "exec", dont_inherit=True)
    name = location.function.rpartition(".")[2]
    return code.replace(co_firstlineno=location.line, co_name=name, co_qualname=location.function)


def show_line(error: BaseException, location: Location) -> None:
    """Put a line of the user's into the traceback of an error, above what led from where it is caught to where it was raised."""
    below = error.__traceback__
    try:
        exec(_raising(location), {"error": error.with_traceback(None)})
    except BaseException:
        entry = error.__traceback__
        while entry is not None and entry.tb_next is not None:
            entry = entry.tb_next
    assert entry is not None
    error.__traceback__ = TracebackType(None if below is None else below.tb_next, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
