"""Which operation of the user's module, on which line, a node of an exported graph stands for."""

from __future__ import annotations

import contextlib
import dis
import os
import re
from collections.abc import Iterator
from traceback import FrameSummary, StackSummary
from types import ModuleType
from unittest import mock

import torch
from torch import fx
from torch._C._profiler import symbolize_tracebacks
from torch.fx.proxy import TracerBase
from torch.utils._traceback import CapturedTraceback

from pypoplar.codelet.ir.terms import Location
from pypoplar.poptorch.capture.joint_graph import Origin
from pypoplar.poptorch.capture.model_blocks import place_of
from pypoplar.poptorch.operators import scope_of
from pypoplar.poptorch.operators.hints import plan_of
from pypoplar.tracebacks import is_ours

RAISING = tuple(dis.opmap[name] for name in ("RAISE_VARARGS", "RERAISE"))  # instructions
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')
_LIBRARIES = [os.path.dirname(os.path.abspath(torch.__file__)) + os.sep]  # folders whose files are nobody's program


def origin_of(node: fx.Node) -> Origin:
    """Module path, operation and line of a node of an exported program."""
    stack = node.meta.get("nn_module_stack") or {}
    path = next((name for name, _ in reversed(stack.values())), "") if stack else ""
    line = _user_line(node.meta.get("stack_trace") or "")
    return Origin(_module_path(path), operation_name(node), line, place_of(node.meta), scope_of(node.meta), plan_of(node.meta))


def operation_name(node: fx.Node) -> str:
    """An operation's name without namespace and overload, such as conv2d."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.name.partition("::")[2]
    return getattr(target, "__name__", str(target))


def _module_path(path: str) -> str:
    """A path such as `layer1.conv` from how an exported program writes it."""
    return re.sub(r"^L\['self'\]\.?", "", path).replace("._modules['", ".").replace("']", "").strip(".")


def _user_line(trace: str) -> Location | None:
    """The innermost line of a trace that is neither PyTorch's nor pypoplar's."""
    frames = [Location(frame["file"], int(frame["line"]), frame["function"]) for frame in _FRAME.finditer(trace)]
    users = [frame for frame in frames if is_users(frame.file)]
    return users[-1] if users else None


@contextlib.contextmanager
def all_users_lines() -> Iterator[None]:
    """While a module is exported, traces of its operations have all of the user's lines, not those of methods `forward` alone.

    The text of other lines is not looked up, which PyTorch does for all of a trace.
    """

    def users_lines(trace: CapturedTraceback) -> StackSummary:
        frames = symbolize_tracebacks([trace.tb])[0][::-1] if trace.tb is not None else []
        first = next((number for number, frame in enumerate(frames) if frame["name"] == "forward"), len(frames))
        users = [FrameSummary(one["filename"], one["line"], one["name"]) for one in frames[first:] if is_users(one["filename"])]
        return StackSummary.from_list(users)

    with (
        mock.patch.object(CapturedTraceback, "summary", users_lines),
        mock.patch.object(TracerBase, "_filter_traceback_frames", lambda _, trace: trace),
    ):
        yield


def raised_by_user(problem: BaseException) -> bool:
    """Whether a line of the user's raises an error itself, by `raise` or `assert`, and no function that it calls."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not is_users(trace.tb_frame.f_code.co_filename):
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] in RAISING


def is_users(file: str) -> bool:
    """Whether a file is neither a library's, such as PyTorch, nor pypoplar's, nor text that PyTorch has made."""
    return not (file.startswith((*_LIBRARIES, "<eval_with_key>", "<string>", "<frozen")) or is_ours(file))


def add_library(package: ModuleType) -> None:
    """Take the files of a package for a library's, as PyTorch's are: their lines are not shown as the user's."""
    folder = os.path.dirname(os.path.abspath(str(package.__file__))) + os.sep
    if folder not in _LIBRARIES:
        _LIBRARIES.append(folder)
