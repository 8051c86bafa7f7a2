"""What messages and reports say of the graph: how much there is, and where in the user's code it was made."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

Array = np.ndarray[Any, np.dtype[Any]]

PRICED_BY = ("estimate", "estimator", "code")
"""Who decides a vertex's cycles: `Graph.setPerfEstimate`, an estimator of the codelet, or the code as it runs."""


@frozen(eq=False)
class Counts:
    vertices: int
    edges: int
    variables: int
    compute_sets: int


@frozen(eq=False)
class VertexNames:
    """Where vertices of the graph come from, for messages: their tile and the user's line."""

    location: Array  # int64 [vertices]: index into `locations`
    tile: Array  # int64 [vertices]
    locations: tuple[tuple[str, int, str], ...]
