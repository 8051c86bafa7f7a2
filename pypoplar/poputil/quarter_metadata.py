"""Formats and scales of 8-bit floats, which pypoplar does not have."""

from __future__ import annotations

from typing import NoReturn

from pypoplar.errors import MissingFeature
from pypoplar.graph.graph import Graph
from pypoplar.tracebacks import public


@public
def createConstantMetadataTensor(graph: Graph, fp8Format: object, fp8Scale: int) -> NoReturn:
    """Refused: pypoplar has no QUARTER, and so no metadata of such tensors.

    Parameters
    ----------
    fp8Format:
        The format of 8-bit floats.
    fp8Scale:
        Their scale.

    Raises
    ------
    MissingFeature
        Always.
    """
    raise MissingFeature("poputil.createConstantMetadataTensor: pypoplar has no QUARTER, and so no metadata of such tensors")


@public
def createVariableMetadataTensor(graph: Graph, fp8Format: object, fp8Scale: int) -> NoReturn:
    """Refused: pypoplar has no QUARTER, and so no metadata of such tensors.

    Parameters
    ----------
    fp8Format:
        The format of 8-bit floats.
    fp8Scale:
        Their scale.

    Raises
    ------
    MissingFeature
        Always.
    """
    raise MissingFeature("poputil.createVariableMetadataTensor: pypoplar has no QUARTER, and so no metadata of such tensors")
