"""Short tracebacks: below a line of the user's stands at most one frame of pypoplar, that of the public function which was called.

A public function, or class with its methods, is marked `public`. Where a call more would take too long it is `swift` instead: it
lets its errors out through `cut`, or leaves all that can go wrong to a `slow_path`. The environment variable
``PYPOPLAR_FULL_TRACEBACK`` leaves tracebacks whole, and so does an error that is none of ours, but a fault within pypoplar.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from types import FunctionType, TracebackType
from typing import Any, TypeVar, cast

from pypoplar.errors import PoplarError

ENVIRONMENT = "PYPOPLAR_FULL_TRACEBACK"
OPERATORS = ("__init__", "__getitem__", "__setattr__", "__enter__", "__iter__")  # methods that are called by other names
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_RESOURCES = _PACKAGE + "_resources" + os.sep  # tutorials ship in there, yet are written as a user would
_TESTING = _PACKAGE + "testing" + os.sep  # there an AssertionError is about the user's program
_PYTHON = os.path.dirname(os.__file__) + os.sep
_PACKAGES = _PYTHON + "site-packages" + os.sep

Public = TypeVar("Public", bound=Callable[..., Any])


def is_ours(file: str) -> bool:
    """Whether `file` belongs to pypoplar itself, so that its lines mean nothing to the user."""
    return (file.startswith(_PACKAGE) and not file.startswith(_RESOURCES)) or file.startswith("<attrs generated")


def _is_pythons(file: str) -> bool:
    """Whether `file` is of Python's own library."""
    return file.startswith("<frozen") or (file.startswith(_PYTHON) and not file.startswith(_PACKAGES))


def public(what: Public) -> Public:
    """A function, or a class with its public methods, whose errors leave it through `cut`.

    Left alone are methods that are `swift`, and those that take no arguments unless they are marked themselves.
    """
    if isinstance(what, type):
        for name, member in list(vars(what).items()):
            function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
            if (name.startswith("_") and name not in OPERATORS) or not _needs_cutting(function, member):
                continue
            setattr(what, name, _cutting(function) if function is member else type(member)(_cutting(function)))
        return what
    return cast(Public, _cutting(what))


def swift(function: Public) -> Public:
    """A public function that shortens tracebacks by itself."""
    function.__dict__["swift"] = True
    return function


def slow_path(function: Public) -> Public:
    """What a `swift` function does when it is not asked for the usual: errors leave no frame of it."""
    return cast(Public, _cutting(function, keep=0))


def _needs_cutting(function: Any, member: Any) -> bool:
    """Whether it is a method that takes arguments and is not marked itself."""
    if not isinstance(function, FunctionType) or "swift" in vars(function) or hasattr(function, "__wrapped__"):
        return False
    code = function.__code__
    several = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    taken = code.co_argcount + code.co_kwonlyargcount - (not isinstance(member, staticmethod))
    return bool(several) or taken > 0 or function.__name__ in OPERATORS


def _cutting(function: Callable[..., Any], keep: int = 1) -> Callable[..., Any]:
    """The function with an ``except`` around it, which is not seen in the tracebacks that it shortens."""

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except BaseException as error:
            told = _told(error, (*arguments, *keywords.values()))
            if told is None:
                _shorten(error, 1, keep)
                raise
            trace = error.__traceback__
        try:
            raise told
        except PoplarError:  # raised again it has no line of this function
            told.__traceback__ = trace
            _shorten(told, 1, keep)
            raise

    return call


def _told(error: BaseException, arguments: tuple[Any, ...]) -> PoplarError | None:
    """What is raised for want of memory: the error of the first argument that can say what takes it, as graphs and tensors can."""
    if isinstance(error, PoplarError) or not isinstance(error, MemoryError):
        return None
    tellers = (getattr(type(argument), "_memory_shortage", None) for argument in arguments)
    return next((teller(argument, error) for argument, teller in zip(arguments, tellers, strict=True) if teller is not None), None)


def cut(error: BaseException) -> None:
    """Shorten the traceback of an error that leaves the function whose ``except`` this is in."""
    _shorten(error, 0, 1)


def cut_all(error: BaseException) -> None:
    """Leave no entry of ours, of an error and of its reasons: for who shows the text of whole functions, as pytest does."""
    entries = _entries(error.__traceback__)
    if not entries or os.environ.get(ENVIRONMENT) or not _means_the_user(error, entries):
        return
    for reason in [error, *_reasons(error)]:
        users = [entry for entry in _entries(reason.__traceback__) if not is_ours(_file(entry))]
        for entry, following in zip(users, [*users[1:], None], strict=False):
            entry.tb_next = following
        reason.__traceback__ = users[0] if users else None


def _shorten(error: BaseException, hidden: int, keep: int) -> None:
    """Without the first `hidden` entries, and all but `keep` entries of ours that follow below them."""
    entries = _entries(error.__traceback__)[hidden:]
    if os.environ.get(ENVIRONMENT):
        return
    if not entries and isinstance(error, TypeError):  # arguments that are not those of the function: it was not entered
        error.__traceback__ = None
    if not entries or not _means_the_user(error, entries):
        return
    error.__traceback__ = _linked(entries, keep)
    for reason in _reasons(error):
        reason.__traceback__ = _linked(_entries(reason.__traceback__), 1)


def _means_the_user(error: BaseException, entries: list[TracebackType]) -> bool:
    """Whether an error is no fault within pypoplar: one of ours, or one that the user's own code raised."""
    if isinstance(error, PoplarError | KeyboardInterrupt):
        return True
    last = next((entry for entry in reversed(entries) if not _is_pythons(_file(entry))), entries[-1])
    return not is_ours(_file(last)) or (isinstance(error, AssertionError) and _file(last).startswith(_TESTING))


def _reasons(error: BaseException) -> list[BaseException]:
    """The errors that are shown above an error, the last one first."""
    seen = {id(error): error}
    while (reason := _reason(error)) is not None and id(reason) not in seen:
        seen[id(reason)] = error = reason
    return list(seen.values())[1:]


def _reason(error: BaseException) -> BaseException | None:
    """The error that is shown above another one."""
    if error.__cause__ is not None:
        return error.__cause__
    return None if error.__suppress_context__ else error.__context__


def _entries(trace: TracebackType | None) -> list[TracebackType]:
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    return entries


def _file(entry: TracebackType) -> str:
    return entry.tb_frame.f_code.co_filename


def _linked(entries: list[TracebackType], keep: int) -> TracebackType | None:
    """The entries with `keep` of ours at first, one below each line of the user's, and Python's own that lead to such lines."""
    kept: list[TracebackType] = []
    between: list[TracebackType] = []
    below_ours = not keep
    for entry in entries:
        if is_ours(_file(entry)):
            kept += [] if below_ours else [entry]
            below_ours, between = True, []
        elif below_ours and _is_pythons(_file(entry)):
            between.append(entry)
        else:
            kept += [*between, entry]
            below_ours, between = False, []
    kept += between
    for entry, following in zip(kept, [*kept[1:], None], strict=False):
        entry.tb_next = following
    return kept[0] if kept else None
