"""Formats and scales of 8-bit floats, which pypoplar does not have."""

from __future__ import annotations

from typing import Any, NoReturn

from pypoplar.errors import MissingFeature
from pypoplar.tracebacks import public


@public
def createConstantMetadataTensor(graph: Any, fp8Format: Any, fp8Scale: Any) -> NoReturn:
    """Raises `MissingFeature`: there is no QUARTER."""
    raise MissingFeature("poputil.createConstantMetadataTensor: pypoplar has no QUARTER, and so no metadata of such tensors")


@public
def createVariableMetadataTensor(graph: Any, fp8Format: Any, fp8Scale: Any) -> NoReturn:
    """Raises `MissingFeature`: there is no QUARTER."""
    raise MissingFeature("poputil.createVariableMetadataTensor: pypoplar has no QUARTER, and so no metadata of such tensors")
