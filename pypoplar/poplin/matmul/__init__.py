"""Products of matrices; of PopLibs' namespace of this name it has the older `PlanningCache`."""

from __future__ import annotations

from pypoplar.poplin import planning_cache
from pypoplar.tracebacks import public

__all__ = ["PlanningCache"]


@public
class PlanningCache(planning_cache.PlanningCache):
    """A `poplin.PlanningCache`, which is to be used instead."""

    __slots__ = ()

    def getImpl(self) -> planning_cache.PlanningCache:
        """The cache itself."""
        return self
