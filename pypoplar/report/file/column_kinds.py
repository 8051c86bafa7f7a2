"""What values the columns of a profile file have."""

from __future__ import annotations

from enum import Enum


class ColumnKind(Enum):
    """What values a column has."""

    TEXT = "text"
    REAL = "a finite number of 0 or more"
    COUNT = "an integer of 0 or more"
    PLACE = "an integer of -1 or more"
    MAYBE = "a count or NULL"


TEXT, REAL, COUNT, PLACE, MAYBE = ColumnKind
