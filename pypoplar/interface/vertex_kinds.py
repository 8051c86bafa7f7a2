"""Kinds of vertices, as they take the workers of their tile."""

from __future__ import annotations

from enum import auto

from pypoplar.interface.layout import Code


class VertexKind(Code):
    """The kind of a group's vertices."""

    VERTEX = auto()  # each is one worker's
    MULTI = auto()  # a MultiVertex: one after the other, each on all workers
    SUPERVISOR = auto()  # a SupervisorVertex: one after the other, while the workers wait

    @classmethod
    def of(cls, kind: str) -> VertexKind:
        """The kind that a codelet names: ``"vertex"``, ``"multi"`` or ``"supervisor"``."""
        return cls[kind.upper()]
