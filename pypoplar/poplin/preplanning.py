"""Plans of products and convolutions that are made before they are needed."""

from __future__ import annotations

from collections.abc import Iterable

from pypoplar.braces import ordered
from pypoplar.errors import MissingFeature, PoplarTypeError
from pypoplar.poplin.matmul.matmul_options import Options
from pypoplar.poplin.matmul.matmul_params import MatMulParams, plan_products
from pypoplar.poplin.planning_cache import PlanningCache
from pypoplar.target import Target
from pypoplar.tracebacks import public


@public
def preplan(
    convs: Iterable[tuple[Target, object, Options]], matmuls: Iterable[tuple[Target, MatMulParams, Options]], cache: PlanningCache
) -> None:
    """Plan products into `cache`: lists of a target, parameters and options each. `MissingFeature` for convolutions."""
    if not isinstance(ordered(convs, "the convs of poplin.preplan", "[(target, params, {}), ...]"), Iterable):
        raise PoplarTypeError(f"poplin.preplan: convs is a list of a target, parameters and options each, got {convs!r}")
    if list(convs):
        raise MissingFeature("poplin.preplan plans no convolutions yet; give an empty list of them")
    plan_products("poplin.preplan", matmuls, cache)
