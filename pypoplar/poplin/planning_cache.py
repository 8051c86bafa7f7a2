"""Plans of products and convolutions that have been made, to be found again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

from pypoplar.errors import PoplarTypeError
from pypoplar.tracebacks import public

Plan = TypeVar("Plan")


@public
class PlanningCache:
    """Plans of products and convolutions that calls with this `cache` have made.

    A later call with equal shapes, types, options and target takes the same plan, and spends no time on it. A cache may serve
    several graphs.
    """

    __slots__ = ("_plans",)

    def __init__(self) -> None:
        self._plans: dict[Hashable, object] = {}

    def size(self) -> int:
        """How many plans of products and convolutions it has."""
        return len(self._plans)


def check_cache(call: str, cache: object) -> None:
    """`PoplarTypeError` for the argument `cache` of a call that is none."""
    if not isinstance(cache, PlanningCache | None):
        raise PoplarTypeError(f"{call}: cache is a poplin.PlanningCache, got {cache!r}")


def plan_of(cache: PlanningCache | None, key: Hashable, make: Callable[[], Plan]) -> Plan:
    """The plan under a key of `cache`, made if it is not there; without a cache it is made."""
    if cache is None:
        return make()
    plans = cache._plans
    if key not in plans:
        plans[key] = make()
    return cast("Plan", plans[key])
