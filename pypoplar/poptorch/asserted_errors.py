"""Errors of what PopTorch asserts: scripts catch them as `AssertionError`, and here by what they are, too."""

from __future__ import annotations

from pypoplar.errors import InvalidOption, PoplarRuntimeError, PoplarTypeError


class AssertedState(PoplarRuntimeError, AssertionError):
    """A model was asked for what it does not have yet, or cannot do on its device."""


class AssertedOption(InvalidOption, AssertionError):
    """A value that an option cannot have."""


class AssertedType(PoplarTypeError, AssertionError):
    """What is of another type than an option takes."""
