"""`MultiConv`: convolutions that may run at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode

from pypoplar.errors import InvalidOption, PoplarTypeError
from pypoplar.poptorch.asserted_errors import AssertedType
from pypoplar.poptorch.enums import MultiConvPlanType
from pypoplar.poptorch.user_log import say_once
from pypoplar.tracebacks import public

CONVOLUTIONS = (
    *(torch.conv1d, torch.conv2d, torch.conv3d, torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d),
    torch.convolution,
)


class _Convolutions(TorchFunctionMode):
    """Notices convolutions."""

    met = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.met = self.met or func in CONVOLUTIONS
        return func(*args, **(kwargs or {}))


@public
class MultiConv:
    """Convolutions in ``with poptorch.MultiConv():`` may run at the same time; they have to be independent.

    It is accepted, told once, and changes nothing: each of them is computed on all tiles of its IPU, one after the other. Its
    settings are checked.

    Raises
    ------
    InvalidOption
        Where one begins within another, or ends without a convolution.
    """

    def __init__(self) -> None:
        self._settings: dict[str, Any] = {}

    def _each(self, name: str, value: Any, types: tuple[type, ...]) -> Self:
        several = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        if value is not None and (not several or not all(type(one) in types for one in several)):
            wanted = " or ".join(one.__name__ for one in types)
            raise PoplarTypeError(f"poptorch.MultiConv.{name} takes {wanted}, or a list of them, got {value!r}")
        self._settings[name] = value
        return self

    def availableMemoryProportions(self, value: float | Sequence[float]) -> Self:
        """The part of memory that each convolution's plan may take.

        Parameters
        ----------
        value:
            From 0 to less than 1, for all or one for each.

        Raises
        ------
        InvalidOption
            For a part beyond that.
        PoplarTypeError
            For what is no float.
        """
        for one in value if isinstance(value, list | tuple) else [value]:
            if isinstance(one, float) and not 0 <= one < 1:
                raise InvalidOption(f"poptorch.MultiConv.availableMemoryProportions takes numbers from 0 to less than 1, got {one}")
        return self._each("availableMemoryProportions", value, (float,))

    def partialsTypes(self, value: torch.dtype | Sequence[torch.dtype]) -> Self:
        """The type of each convolution's partial sums.

        Parameters
        ----------
        value:
            `torch.float` or `torch.half`, for all or one for each.

        Raises
        ------
        InvalidOption
            For another type.
        """
        for one in value if isinstance(value, list | tuple) else [value]:
            if one not in (torch.float32, torch.float16):
                raise InvalidOption(
                    f"Invalid partials types: poptorch.MultiConv.partialsTypes takes torch.float or torch.half, got {one!r}"
                )
        return self._each("partialsTypes", value, (torch.dtype,))

    def enableConvDithering(self, value: bool | Sequence[bool]) -> Self:
        """Whether each convolution may begin on another tile.

        Parameters
        ----------
        value:
            For all or one for each.

        Raises
        ------
        PoplarTypeError
            For what is no bool.
        """
        return self._each("enableConvDithering", value, (bool,))

    def planType(self, value: MultiConvPlanType) -> Self:
        """Whether convolutions run at the same time, or one after the other.

        Parameters
        ----------
        value:
            Which of the two.

        Raises
        ------
        PoplarTypeError
            For what is no `MultiConvPlanType`.
        """
        try:
            return self._each("planType", value, (MultiConvPlanType,))
        except PoplarTypeError as wrong:
            raise AssertedType(f"Invalid plan type: {wrong}") from None

    def perConvReservedTiles(self, value: int) -> Self:
        """The tiles that each convolution has at least.

        Parameters
        ----------
        value:
            Their number.

        Raises
        ------
        PoplarTypeError
            For what is no whole number.
        """
        return self._each("perConvReservedTiles", value, (int,))

    def cycleBackOff(self, value: float) -> Self:
        """How much longer the largest convolution may take for the others' sake.

        Parameters
        ----------
        value:
            A share, from 0 to 1.

        Raises
        ------
        PoplarTypeError
            For what is no float.
        """
        return self._each("cycleBackOff", value, (float,))

    def __enter__(self) -> Self:
        if _open.get() is not None:
            raise InvalidOption("Nested poptorch.MultiConv is not supported")
        say_once("poptorch.MultiConv changes nothing: its convolutions are computed one after the other, each on all tiles")
        self._convolutions = _Convolutions()
        self._token = _open.set(self)
        self._convolutions.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._convolutions.__exit__(kind, error, trace)
        _open.reset(self._token)
        if error is None and not self._convolutions.met:
            raise InvalidOption("Unexpected end_multi_conv: there is no convolution in this poptorch.MultiConv")


_open: ContextVar[MultiConv | None] = ContextVar("multi_conv", default=None)
