"""The scope within which models are made that run on the simulated IPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pypoplar.errors import PoplarRuntimeError
from pypoplar.keras.ipu.config import configured
from pypoplar.tracebacks import public

_entered: list[IPUStrategy] = []


@public
class IPUStrategy:
    """Models that are made, or compiled, in ``with IPUStrategy().scope():`` run on the simulated IPU.

    Parameters
    ----------
    ipu_device:
        The device's name; there is the first one.
    enable_dataset_iterators, enable_keras_extensions:
        As in Graphcore's; both do nothing here: data sets are iterated by Keras, and models have the methods of IPU Keras.
    """

    def __init__(
        self, ipu_device: str = "/device:IPU:0", enable_dataset_iterators: bool = True, enable_keras_extensions: bool = True
    ) -> None:
        self.ipu_device = ipu_device

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas of a model of one IPU train together: as many as the configuration has IPUs."""
        config = configured()
        return config.ipus if config.auto_select_ipus else 1

    @contextlib.contextmanager
    def scope(self) -> Iterator[IPUStrategy]:
        """The scope, for a ``with`` statement.

        Raises
        ------
        PoplarRuntimeError
            For a scope within a scope.
        """
        if _entered:
            raise PoplarRuntimeError("IPUStrategy.scope(): this is within another scope of an IPUStrategy; one is enough")
        _entered.append(self)
        try:
            yield self
        finally:
            _entered.pop()


IPUStrategyV1 = IPUStrategy


def get_strategy() -> IPUStrategy | None:
    """The strategy whose scope this is in; None outside."""
    return _entered[-1] if _entered else None
