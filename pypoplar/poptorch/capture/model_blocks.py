"""Blocks: marks in a module's forward pass of which stage, and so which IPU, an operation belongs to.

They mean something while a model is captured; on the CPU a module with blocks runs as without.
"""

from __future__ import annotations

import contextlib
import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import torch

from pypoplar.errors import InvalidOption, PoplarTypeError
from pypoplar.poptorch.operators.node_marks import mark_nodes, mark_of
from pypoplar.poptorch.options.execution_strategies import BlockId, BlockPlace, ExecutionStrategy, StagePlaces
from pypoplar.tracebacks import public

MARK = "poptorch_block"  # of nodes, by `mark_nodes`
BEHIND = "poptorch_behind_block"  # likewise, of nodes behind a `with` statement: the block that it ended


class _Marking:
    """The blocks of one pass through a module: one is open at a time."""

    def __init__(self, strategy: ExecutionStrategy) -> None:
        self.strategy = strategy
        self.places: StagePlaces = strategy.places()

    def begin(self, user_id: BlockId | None, ipu_id: int | None) -> None:
        place = self.places.begin(user_id, ipu_id)
        self.end()
        mark_nodes(MARK, (place.stage, place.ipu, place.block, place.phase))

    def leave(self, user_id: BlockId | None) -> None:
        """End a block so that the next operation has to be in another one."""
        self.end()
        mark_nodes(BEHIND, "" if user_id is None else f" {user_id!r}")

    def end(self) -> None:
        mark_nodes(MARK, None)
        mark_nodes(BEHIND, None)


_marking: ContextVar[_Marking | None] = ContextVar("marking", default=None)


@contextlib.contextmanager
def marked(strategy: ExecutionStrategy) -> Iterator[None]:
    """Let blocks mark the operations that are captured meanwhile."""
    marking = _Marking(strategy)
    token = _marking.set(marking)
    try:
        yield
        marking.places.tell_unused()
    finally:
        marking.end()
        _marking.reset(token)


@contextlib.contextmanager
def unmarked() -> Iterator[None]:
    """Let blocks mean nothing meanwhile, as on the CPU."""
    token = _marking.set(None)
    try:
        yield
    finally:
        _marking.reset(token)


def place_of(meta: dict[str, Any]) -> BlockPlace | None:
    """The place that a node was marked with."""
    mark = mark_of(meta, MARK)
    return BlockPlace(*mark) if mark is not None else None


def block_left(meta: dict[str, Any]) -> str | None:
    """The name of the block, with its quotes, whose end an operation comes behind, if it is in none; None if it is in one."""
    left = mark_of(meta, BEHIND)
    return None if left is None else str(left)


def _check_block(what: str, user_id: object, ipu_id: object) -> None:
    if user_id is not None and not isinstance(user_id, str) and not (isinstance(user_id, int) and user_id >= 0):
        raise PoplarTypeError(f"{what}: user_id is a name or a number, got {user_id!r}")
    if ipu_id is not None and (isinstance(ipu_id, bool) or not isinstance(ipu_id, int) or ipu_id < 0):
        raise PoplarTypeError(f"{what}: ipu_id is the number of an IPU, got {ipu_id!r}")


@public
class Block(torch.nn.Module):
    """What is called in ``with poptorch.Block("encoder", ipu_id=1):`` belongs to a block, which the execution strategy places.

    Blocks do not nest: one that begins ends the one before. Operations before the first block are on IPU 0; those behind the end
    of a ``with`` statement are refused, as PopTorch does it, until another block begins.

    Parameters
    ----------
    user_id:
        The block's name, by which an execution strategy lists it; None: its number among those without a name.
    ipu_id:
        The IPU that it runs on, unless the strategy says another; None: that of its stage's number.

    Raises
    ------
    PoplarTypeError
        For a name or number of another type.
    InvalidOption
        While a model is captured: for a block that the strategy does not list, or that began on another IPU.
    """

    def __init__(self, user_id: BlockId | None = None, ipu_id: int | None = None) -> None:
        _check_block("Block", user_id, ipu_id)
        super().__init__()
        self._user_id, self._ipu_id = user_id, ipu_id

    @staticmethod
    def start(user_id: BlockId | None = None, ipu_id: int | None = None) -> None:
        """Begin a block that lasts until the next one begins.

        Parameters
        ----------
        user_id:
            The block's name, as for `Block`.
        ipu_id:
            The IPU that it runs on, as for `Block`.

        Raises
        ------
        PoplarTypeError, InvalidOption
            As from `Block`.
        """
        _check_block("Block.start", user_id, ipu_id)
        marking = _marking.get()
        if marking is not None:
            marking.begin(user_id, ipu_id)

    @staticmethod
    def useAutoId() -> None:
        """Number blocks without a name from 0 on again: call it first in a forward pass."""
        marking = _marking.get()
        if marking is not None:
            marking.places = marking.strategy.places()

    def __enter__(self) -> None:
        Block.start(self._user_id, self._ipu_id)

    def __exit__(self, *_: object) -> None:
        marking = _marking.get()
        if marking is not None:
            marking.leave(self._user_id)


class _BeginsBlock:
    """A hook that begins a block before a layer runs."""

    def __init__(self, user_id: BlockId | None, ipu_id: int | None) -> None:
        self.user_id, self.ipu_id = user_id, ipu_id

    def __call__(self, module: torch.nn.Module, given: Any) -> None:
        Block.start(self.user_id, self.ipu_id)

    def __repr__(self) -> str:
        return f"BeginBlock(user_id={self.user_id}, ipu_id={self.ipu_id})"


class _FunctionInBlock(torch.nn.Module):
    """A function with a block that it begins: a module, as in PopTorch, which can be saved where the function can."""

    def __init__(self, function: Callable[..., Any], user_id: BlockId | None, ipu_id: int | None) -> None:
        super().__init__()
        self._layer_to_call, self._user_id, self._ipu_id = function, user_id, ipu_id

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the function returns."""
        Block.start(self._user_id, self._ipu_id)
        return self._layer_to_call(*args, **kwargs)


@public
def BeginBlock(layer_to_call: Any, user_id: BlockId | None = None, ipu_id: int | None = None) -> Any:
    """Begin a block where a layer, or a function, is called; it lasts until the next one begins.

    Parameters
    ----------
    layer_to_call:
        A module, which is changed, or a function.
    user_id:
        The block's name, as for `Block`.
    ipu_id:
        The IPU that it runs on, as for `Block`.

    Returns
    -------
    Any
        The same module; of a function a module that begins the block and calls it.

    Raises
    ------
    InvalidOption
        For a layer that begins a block already.
    PoplarTypeError
        For what cannot be called.
    """
    _check_block("BeginBlock", user_id, ipu_id)
    if not isinstance(layer_to_call, torch.nn.Module):
        if not callable(layer_to_call):
            raise PoplarTypeError(f"BeginBlock takes a torch.nn.Module or a function, got {layer_to_call!r}")
        begun = _FunctionInBlock(layer_to_call, user_id, ipu_id)
        if not isinstance(getattr(layer_to_call, "__self__", None), torch.nn.Module):
            return begun

        @functools.wraps(layer_to_call)
        def method(*args: Any, **kwargs: Any) -> Any:  # PyTorch would not find a module in the place of a model's method
            return begun(*args, **kwargs)

        return method
    if any(isinstance(hook, _BeginsBlock) for hook in layer_to_call._forward_pre_hooks.values()):
        raise InvalidOption(f"BeginBlock: {type(layer_to_call).__name__} begins a block already")
    layer_to_call.register_forward_pre_hook(_BeginsBlock(user_id, ipu_id))
    return layer_to_call


@public
def BlockFunction(user_id: BlockId | None = None, ipu_id: int | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: what the function calls belongs to a block.

    Parameters
    ----------
    user_id:
        The block's name, as for `Block`.
    ipu_id:
        The IPU that it runs on, as for `Block`.

    Returns
    -------
    Callable
        Which makes of a function one that runs in the block.
    """
    _check_block("BlockFunction", user_id, ipu_id)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with Block(user_id, ipu_id):
                return function(*args, **kwargs)

        return within

    return decorate


@public
def removeBlocks(module: torch.nn.Module) -> None:
    """Take away what `BeginBlock` did to a module and those within it.

    Parameters
    ----------
    module:
        The module; functions that `BeginBlock` made stay as they are.

    Raises
    ------
    PoplarTypeError
        For what is no module.
    """
    if not isinstance(module, torch.nn.Module):
        raise PoplarTypeError(f"removeBlocks takes a torch.nn.Module, got {module!r}")
    for layer in module.modules():
        hooks = layer._forward_pre_hooks
        layer._forward_pre_hooks = OrderedDict((key, hook) for key, hook in hooks.items() if not isinstance(hook, _BeginsBlock))
