"""What of a module cannot become a graph: each with the user's line, all told in one error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

import torch
from attrs import frozen

from pypoplar.codelet.ir.terms import Location
from pypoplar.errors import PoplarError
from pypoplar.poptorch.capture.joint_graph import JointGraph, Origin, described_line
from pypoplar.poptorch.capture.origins import is_users

MOST_TOLD = 20  # problems in one message


@frozen
class Problem:
    """What is wrong, with what is supported instead, and where: an operation, or a line of a module's forward pass."""

    what: str
    where: str = ""

    def __str__(self) -> str:
        return self.what + (f" ({self.where})" if self.where else "")


class CaptureError(PoplarError, RuntimeError):
    """A module that cannot become a graph: what depends on data, or what PyTorch does as Python runs.

    The message has every such line of the module, with what there is instead.
    """

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = list(problems)
        self.rest: JointGraph | None = None  # where known, a graph with all else that may be wrong

    def and_also(self, others: list[str]) -> CaptureError:
        """The same error with more problems of the module."""
        return CaptureError(f"{self}\n{listed(others)}", self.problems) if others else self


def refuse(module: torch.nn.Module, problems: list[Problem], cause: Exception | None = None) -> None:
    """`CaptureError` with all problems, if there are any."""
    if problems:
        once = list(dict.fromkeys(problems))
        raise CaptureError(f"{type(module).__name__} cannot run on the IPU as it is:\n{listed(once)}", once) from cause


def listed(problems: Iterable[Any]) -> str:
    """Problems in lines of a message."""
    told = [f"- {problem}" for problem in problems]
    return "\n".join(told[:MOST_TOLD]) + (f"\n- and {len(told) - MOST_TOLD} more" if len(told) > MOST_TOLD else "")


def at_node(what: str, origin: Origin) -> Problem:
    """A problem with an operation of a graph."""
    return Problem(what, str(origin))


class Whereabouts:
    """Where Python is within a module: the path of the layer whose forward pass runs, and the user's line."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._paths = {id(one): path for path, one in module.named_modules()}

    def now(self) -> str:
        """The place from which this was called."""
        return self.of(_outwards(sys._getframe(1)))

    def of(self, frames: Iterable[tuple[FrameType, int]]) -> str:
        """The place that frames, the innermost first, are in."""
        line: Location | None = None
        for frame, number in frames:
            code = frame.f_code
            if line is None and is_users(code.co_filename):
                line = Location(code.co_filename, number, code.co_qualname)
            path = self._paths.get(id(frame.f_locals.get("self"))) if code.co_name == "forward" else None
            if path is not None:
                return f"{path or 'the model'}{described_line(line)}"
        return f"the model{described_line(line)}"


def _outwards(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back
