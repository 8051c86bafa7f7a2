"""How `popops.pad` fills and maps what it adds."""

from enum import Enum


class Type(Enum):
    """Which elements of a tensor `popops.pad` adds at its ends.

    Attributes
    ----------
    EDGE:
        The nearest element, again and again.
    REFLECT:
        The one as far from the edge on the other side.
    """

    EDGE = "EDGE"
    REFLECT = "REFLECT"


class MappingMethod(Enum):
    """Where the constant lies that `popops.pad` adds.

    Attributes
    ----------
    NONE:
        On no tile: the caller maps it.
    ZERO:
        On tile 0.
    EDGE:
        On the tile of the nearest element.
    """

    NONE = "NONE"
    ZERO = "ZERO"
    EDGE = "EDGE"


__all__ = ["MappingMethod", "Type"]
