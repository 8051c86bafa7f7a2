"""Errors as processes tell each other of them."""

from __future__ import annotations

import pickle

from pypoplar.errors import ApplicationRuntimeError


def packed_error(error: BaseException | None) -> bytes:
    """An error as other processes get it."""
    assert error is not None
    text = f"{type(error).__name__}: {error}"
    whole = (type(error), error.args, getattr(error, "__notes__", []))
    try:
        packed = pickle.dumps(whole)
        pickle.loads(packed)
    except Exception:  # what users raise may be anything
        return pickle.dumps((None, (text,), []))
    return packed


def rebuilt_error(told: bytes, name: str) -> BaseException:
    """The error of another process."""
    try:
        kind, arguments, notes = pickle.loads(told)
        error: BaseException = ApplicationRuntimeError(f"{name}: {arguments[0]}") if kind is None else kind(*arguments)
    except Exception as problem:
        return ApplicationRuntimeError(f"{name} has failed, and what it raised cannot be told here: {problem}")
    for note in notes:
        error.add_note(note)
    return error
