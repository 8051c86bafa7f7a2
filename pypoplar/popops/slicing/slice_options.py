"""The options of plans and of the calls that they are for."""

from __future__ import annotations

import json
from collections.abc import Mapping

from attrs import field, frozen

from pypoplar.errors import InvalidOption
from pypoplar.popops.slicing.slice_arguments import IndexOptions, Options
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.spelling import nearest
from pypoplar.types import FLOAT, HALF, ElementType

SLICE_OPTIONS: dict[str, Kind] = {
    "usedForSlice": bool,
    "usedForUpdate": bool,
    "operationForUpdate": ("none", "add", "max", "mul"),
    "availableMemoryProportion": float,
    "indicesDistribution": ("uniform", "onePoint"),
    "indicesAreSorted": bool,
    "validateIndices": bool,
    "remapOutOfBoundIndices": bool,
    "paddingIndexUsed": bool,
    "partialType": ("half", "float"),
    "planConstraints": str,
}
CONSTRAINTS = (
    "groupSplit",
    "lookupSerialSplit",
    "lookupParallelSplit",
    "slicedDimSplit",
    "unslicedDimSplit",
    "unslicedGrainSize",
)


@frozen
class SliceOptions:
    """What the options of a plan, a lookup or an update say."""

    for_slice: bool = True
    for_update: bool = True
    operation: str = "add"
    memory: float = 0.6  # of a tile's, for temporary variables
    uniform: bool = True
    in_order: bool = False
    validates: bool = False
    index: IndexOptions = field(factory=lambda: IndexOptions(False, False))
    partials: ElementType | None = None
    constraints: Mapping[str, int] = field(factory=dict, hash=False)  # a dict has none

    @staticmethod
    def read(call: str, options: Options) -> SliceOptions:
        """`InvalidOption` for what is no option, and for values out of range."""
        chosen = read_options(call, options, SLICE_OPTIONS)
        memory = float(chosen.get("availableMemoryProportion", 0.6))
        if not 0 <= memory <= 1:
            raise InvalidOption(f"{call}: the option 'availableMemoryProportion' is from 0 to 1, got {memory}")
        partials = chosen.get("partialType")
        remaps = bool(chosen.get("remapOutOfBoundIndices", False))
        return SliceOptions(
            for_slice=bool(chosen.get("usedForSlice", True)),
            for_update=bool(chosen.get("usedForUpdate", True)),
            operation=str(chosen.get("operationForUpdate", "add")),
            memory=memory,
            uniform=chosen.get("indicesDistribution", "uniform") == "uniform",
            in_order=bool(chosen.get("indicesAreSorted", False)),
            validates=bool(chosen.get("validateIndices", False)) and not remaps,
            index=IndexOptions(remaps, bool(chosen.get("paddingIndexUsed", False))),
            partials=None if partials is None else HALF if partials == "half" else FLOAT,
            constraints=_constraints(call, str(chosen.get("planConstraints", "{}"))),
        )

    def accumulates_in(self, call: str, type: ElementType) -> ElementType:
        """The type in which updates are added up; `PoplibsError` if it holds less than the data's."""
        if self.partials is HALF and type is FLOAT:
            raise PoplibsError(f"{call}: partialType half holds less than the data, which are FLOAT")
        return self.partials if self.partials is not None and type.is_floating else type


def _constraints(call: str, text: str) -> dict[str, int]:
    """The splits that a plan has to have, as JSON: ``{"slicedDimSplit": 4}``."""
    try:
        given = json.loads(text or "{}")
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise InvalidOption(
            f"{call}: the option 'planConstraints' is a JSON object such as {{\"slicedDimSplit\": 4}}, got {text!r}"
        )
    for name, value in given.items():
        if name not in CONSTRAINTS:
            hint = nearest(name, CONSTRAINTS, f"; there are {', '.join(CONSTRAINTS)}")
            raise InvalidOption(f"{call}: planConstraints have no {name!r}{hint}")
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InvalidOption(f"{call}: the constraint {name!r} is a whole number of at least 1, got {value!r}")
    return given
