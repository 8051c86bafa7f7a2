"""Errors that scripts catch as Python's own, which PopTorch raises, and here by what they are, too."""

from __future__ import annotations

from pypoplar.errors import InvalidOption, PoplarRuntimeError, PoplarTypeError


class AssertedState(PoplarRuntimeError, AssertionError):
    """A model was asked for what it does not have yet, or cannot do on its device."""


class AssertedOption(InvalidOption, AssertionError):
    """A value that an option cannot have."""


class BlockedOption(InvalidOption, RuntimeError):
    """An option that something else has set, which scripts of instances find out when they run."""


class AssertedType(PoplarTypeError, AssertionError):
    """What is of another type than an option takes."""


class WrongList(PoplarTypeError, ValueError):
    """What is no list of tensors, where PopTorch finds a wrong value."""


class NotCallable(PoplarTypeError, RuntimeError):
    """What is no function, where PopTorch finds out when it runs."""
