"""Analyses that are made once: what they find is kept with what they are of, and goes when that goes.

The typed form of a codelet never changes, nor does a frozen graph. What follows from it alone, or from it and arguments that are
compared, holds as long as it lives. A class that is written anew, a constant that has changed or another table of operations make
another typed form, which has nothing kept yet. What is kept is handed to everybody who asks, so that nobody may change it: frozen
sets, tuples, read-only mappings and arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar


class Analysed(Protocol):
    """What analyses are kept with: it never changes."""

    @property
    def analyses(self) -> dict[Hashable, Any]:
        """What has been found by now, by the analysis and its arguments."""


Arguments = ParamSpec("Arguments")
Subject = TypeVar("Subject", bound=Analysed)
Found = TypeVar("Found")


def kept(analysis: Callable[Concatenate[Subject, Arguments], Found]) -> Callable[Concatenate[Subject, Arguments], Found]:
    """An analysis that is made once for each subject and arguments, which are given by position and say all that it depends on.

    An error is not kept: it is raised anew each time.
    """

    @functools.wraps(analysis)
    def find(subject: Subject, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Found:
        assert not named, "arguments of a kept analysis are given by position"
        return found_once(subject, (analysis, *arguments), lambda: analysis(subject, *arguments, **named))

    return find


def found_once(subject: Analysed, key: Hashable, find: Callable[[], Found]) -> Found:
    """What `find` gave when it was first called for the subject and `key`, which says all that it depends on besides."""
    analyses = subject.analyses
    if key not in analyses:
        analyses[key] = find()
    found: Found = analyses[key]
    return found
