"""A parameter of a model with replicas, as the model's wrapper shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import torch
import torch.utils._pytree as pytree

from pypoplar.errors import MissingFeature


class ReplicatedParameter:
    """A parameter that is asked for weights of each group of replicas, as in PopTorch. All else of it is the parameter's own."""

    def __init__(self, name: str, parameter: torch.nn.Parameter) -> None:
        self._name, self._parameter = name, parameter

    def replicaGrouping(self, *_: Any, **__: Any) -> NoReturn:
        """Weights that differ from one group of replicas to another are missing: `MissingFeature`."""
        raise MissingFeature(
            f"{self._name}.replicaGrouping: pypoplar does not have weights of each group of replicas yet, all have the same ones"
        )

    def __getattr__(self, name: str) -> Any:
        if "_parameter" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._parameter, name)

    def __repr__(self) -> str:
        return repr(self._parameter)

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """PyTorch's functions take the parameter."""
        args, kwargs = pytree.tree_map(lambda one: one._parameter if isinstance(one, cls) else one, (args, dict(kwargs or {})))
        return function(*args, **kwargs)
