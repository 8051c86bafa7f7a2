"""Arguments of models that are objects of a program's own classes."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree
from attrs import frozen

from pypoplar.errors import PoplarTypeError
from pypoplar.poptorch.capture.own_dictionaries import forget, know
from pypoplar.tracebacks import public


class ICustomArgParser(ABC):
    """A base of classes that take objects apart into tensors and make them again, for `registerCustomArgParser`."""

    @abstractmethod
    def yieldTensors(self, struct: Any) -> Iterable[torch.Tensor]:
        """Yield the tensors of an object, always in the same order.

        Parameters
        ----------
        struct:
            An object of the class that was registered.

        Returns
        -------
        Iterable[torch.Tensor]
            Its tensors, which become arguments or results of the model.
        """

    @abstractmethod
    def reconstruct(self, original_structure: Any, tensor_iterator: Iterator[Any]) -> Any:
        """A new object with other tensors.

        Parameters
        ----------
        original_structure:
            An object that `yieldTensors` took apart.
        tensor_iterator:
            The new tensors, in the order of `yieldTensors`.

        Returns
        -------
        Any
            An object like `original_structure`.
        """


@frozen(eq=False)
class _Original:
    """An object that was taken apart: a copy of it, since a forward pass may give attributes to what it is given."""

    structure: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Original) and type(other.structure) is type(self.structure)

    def __hash__(self) -> int:
        return hash(type(self.structure))

    def __deepcopy__(self, memo: object) -> _Original:
        return self  # PyTorch copies descriptions of arguments; the tensors in this one may have no elements


@public
def registerCustomArgParser(arg_data_type: type, arg_parser: ICustomArgParser | None) -> None:
    """Let models take and return objects of a class. A second parser takes the place of the first.

    Parameters
    ----------
    arg_data_type:
        The class.
    arg_parser:
        What takes its objects apart and makes them; None takes that back.

    Raises
    ------
    PoplarTypeError
        For what is no class, or no parser.
    """
    if not isinstance(arg_data_type, type):
        raise PoplarTypeError(f"poptorch.registerCustomArgParser takes a class, got {arg_data_type!r}")
    if not isinstance(arg_parser, ICustomArgParser | None):
        raise PoplarTypeError(f"poptorch.registerCustomArgParser takes a poptorch.ICustomArgParser or None, got {arg_parser!r}")
    forget(arg_data_type)
    if arg_parser is None:
        return
    parser = arg_parser

    def named(struct: Any) -> tuple[list[Any], _Original]:
        """The tensors of an object with their places, by which errors of PyTorch call them."""
        tensors = enumerate(parser.yieldTensors(struct))
        return [(pytree.SequenceKey(number), one) for number, one in tensors], _Original(copy.copy(struct))

    know(
        arg_data_type,
        lambda struct: (list(parser.yieldTensors(struct)), _Original(copy.copy(struct))),
        lambda tensors, original: parser.reconstruct(original.structure, iter(tensors)),
        named,
    )
