"""How `popops.pad` fills and maps what it adds."""

from enum import Enum


class Type(Enum):
    """`EDGE`: padding is the nearest element of the tensor. `REFLECT`: the one as far from it on the other side."""

    EDGE = "EDGE"
    REFLECT = "REFLECT"


class MappingMethod(Enum):
    """Where padding of a value lies. `NONE`: on no tile yet. `ZERO`: on tile 0. `EDGE`: where the nearest element is."""

    NONE = "NONE"
    ZERO = "ZERO"
    EDGE = "EDGE"


__all__ = ["MappingMethod", "Type"]
