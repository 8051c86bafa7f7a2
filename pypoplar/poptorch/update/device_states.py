"""`optimizer.state` of an optimiser whose states are on a device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any


class DeviceStates(defaultdict[Any, dict[str, Any]]):
    """A dictionary by parameter, as PyTorch's optimisers have it. Whoever looks at it, or changes it, lets `look` fill it first."""

    def __init__(self, *given: Any) -> None:
        super().__init__(dict, *given)
        self.look: Callable[[], None] | None = None

    def unseen(self, parameter: Any) -> dict[str, Any]:
        """A parameter's states without a look."""
        return dict.get(self, parameter, {})

    def set_unseen(self, parameter: Any, states: dict[str, Any]) -> None:
        """Let a parameter have states, without a look."""
        dict.__setitem__(self, parameter, states)

    def __copy__(self) -> Any:
        return defaultdict(dict, self.items())

    def copy(self) -> Any:
        """A dictionary of its own, as PyTorch's."""
        return defaultdict(dict, self.items())

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return defaultdict(dict, other) | self.copy()

    def __reduce__(self) -> Any:
        """As PyTorch's: what is pickled or copied looks at nothing."""
        return defaultdict, (dict,), None, None, iter(self.items())


def _looking(name: str) -> Callable[..., Any]:
    whole = getattr(defaultdict, name)

    def method(self: DeviceStates, *arguments: Any, **keywords: Any) -> Any:
        if self.look is not None:
            self.look()
        return whole(self, *arguments, **keywords)

    return method


_LOOKING = (
    *("__getitem__", "__setitem__", "__delitem__", "__contains__", "__iter__", "__reversed__", "__len__", "__eq__", "__ne__"),
    *("__repr__", "__ior__"),
    *("clear", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"),
)
for _name in _LOOKING:
    setattr(DeviceStates, _name, _looking(_name))
