"""Functions that are called before and after any model is compiled."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torch.utils.hooks import RemovableHandle

from pypoplar.poptorch.asserted_errors import NotCallable
from pypoplar.tracebacks import public

Hook = Callable[[], Any]
PRE_COMPILE: OrderedDict[int, Hook] = OrderedDict()
POST_COMPILE: OrderedDict[int, Hook] = OrderedDict()


def _registered(call: str, hooks: OrderedDict[int, Hook], hook: Hook) -> RemovableHandle:
    if not callable(hook):
        raise NotCallable(f"poptorch.{call} takes a function without arguments: it must be callable, got {hook!r}")
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def call_hooks(hooks: OrderedDict[int, Hook]) -> None:
    """Call all of them, the first registered first."""
    for hook in list(hooks.values()):
        hook()


@public
def registerPreCompileHook(hook: Hook) -> RemovableHandle:
    """Call a function before any model is compiled.

    Parameters
    ----------
    hook:
        A function without arguments.

    Returns
    -------
    RemovableHandle
        PyTorch's: its `remove` ends the calls.

    Raises
    ------
    PoplarTypeError
        If it cannot be called.
    """
    return _registered("registerPreCompileHook", PRE_COMPILE, hook)


@public
def registerPostCompileHook(hook: Hook) -> RemovableHandle:
    """Call a function after any model was compiled.

    Parameters
    ----------
    hook:
        A function without arguments.

    Returns
    -------
    RemovableHandle
        PyTorch's: its `remove` ends the calls.

    Raises
    ------
    PoplarTypeError
        If it cannot be called.
    """
    return _registered("registerPostCompileHook", POST_COMPILE, hook)
