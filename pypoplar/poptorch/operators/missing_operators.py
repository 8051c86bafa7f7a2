"""Operators of PopTorch that pypoplar does not have yet: calls say so."""

from __future__ import annotations

from typing import Any, NoReturn

from pypoplar.errors import MissingFeature
from pypoplar.tracebacks import public


@public
def fps(*arguments: Any, **keywords: Any) -> NoReturn:
    """Farthest points first, an operator of torch_cluster, is missing: `MissingFeature`.

    Parameters
    ----------
    arguments, keywords:
        Any.

    Raises
    ------
    MissingFeature
        Always.
    """
    raise MissingFeature("poptorch.fps: operators of torch_cluster are missing; run it on the host and pass the indices")


@public
def nearest(*arguments: Any, **keywords: Any) -> NoReturn:
    """The nearest points, an operator of torch_cluster, are missing: `MissingFeature`.

    Parameters
    ----------
    arguments, keywords:
        Any.

    Raises
    ------
    MissingFeature
        Always.
    """
    raise MissingFeature("poptorch.nearest: operators of torch_cluster are missing; torch.cdist and argmin give the nearest points")
