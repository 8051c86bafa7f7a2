"""Plans of products and convolutions that are made before they are needed."""

from __future__ import annotations

from collections.abc import Iterable

from pypoplar.poplin.convolution.calls.conv_reports import ConvPlanParams, plan_convolutions
from pypoplar.poplin.matmul.matmul_options import Options
from pypoplar.poplin.matmul.matmul_params import MatMulParams, plan_products
from pypoplar.poplin.planning_cache import PlanningCache
from pypoplar.target import Target
from pypoplar.tracebacks import public


@public
def preplan(convs: Iterable[ConvPlanParams], matmuls: Iterable[tuple[Target, MatMulParams, Options]], cache: PlanningCache) -> None:
    """Plan convolutions and products into `cache`: lists of a target, parameters and options each."""
    plan_convolutions("poplin.preplan", convs, cache)
    plan_products("poplin.preplan", matmuls, cache)
