"""The options of convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from attrs import evolve, frozen

from pypoplar.errors import InvalidOption, MissingFeature
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.types import FLOAT, HALF, ElementType

PARTIALS = {"half": HALF, "float": FLOAT}
PASSES = (
    "NONE",
    "NONE_MATMUL",
    "INFERENCE_FWD",
    "TRAINING_FWD",
    "TRAINING_BWD",
    "TRAINING_WU",
    "FC_INFERENCE_FWD",
    "FC_TRAINING_FWD",
    "FC_TRAINING_BWD",
    "FC_TRAINING_WU",
)
WEIGHT_UPDATES = {"TRAINING_FWD": "TRAINING_WU", "TRAINING_BWD": "TRAINING_WU", "INFERENCE_FWD": "TRAINING_WU"}
WEIGHT_UPDATES |= {f"FC_{name}": f"FC_{update}" for name, update in WEIGHT_UPDATES.items()}
KINDS: dict[str, Kind] = {
    "availableMemoryProportion": float,
    "pass": PASSES,
    "partialsType": tuple(PARTIALS),
    "partialsType.interTile": tuple(PARTIALS),
    "partialsType.interIPU": tuple(PARTIALS),
    "use128BitConvUnitLoad": bool,
    "planConstraints": str,
    "planConstraintsOutputFilename": str,
    "enableMultiStageReduce": bool,
    "enableFastReduce": bool,
    "remapOutputTensor": bool,
    "enableConvDithering": bool,
    "disableTransformations": bool,
    "insertTransformsCycleCountProgs": bool,
    "experimental.convTransformsEstimates": bool,
    "gatherConvOutput": bool,
    "experimental.slicVmac16": bool,
    "disableSRForAMPVertices": bool,
    "enableTileLevelExpandDims": bool,
}
NOT_KEPT: dict[str, Any] = {"insertTransformsCycleCountProgs": False}  # but for these values


@frozen
class ConvolutionOptions:
    """What a convolution is asked for, beside its parameters: PopLibs' options that change something, and their defaults.

    `memory` is the part of a tile's memory that may be used; partial sums have `partials_type` on a tile, and
    `inter_tile_partials_type` where they go to another, `None` for the same. `pass_` is one of `PASSES`, `constraints` JSON;
    those of the plan are written to `constraints_file`, if that is not empty.
    """

    memory: float = 0.6
    partials_type: ElementType = FLOAT
    inter_tile_partials_type: ElementType | None = None
    pass_: str = "NONE"
    constraints: str = ""
    multi_stage_reduce: bool = True
    transformations: bool = True
    random_rounding_off: bool = False
    constraints_file: str = ""
    samples: bool = False  # input channels are those of a batch, as in a weight update

    @classmethod
    def read(cls, call: str, options: Mapping[str, object] | None) -> ConvolutionOptions:
        """The options of a call; `InvalidOption` for unknown names and values, `MissingFeature` for what is not there."""
        chosen = read_options(call, options, KINDS)
        for name, kept in NOT_KEPT.items():
            if chosen.get(name, kept) != kept:
                raise MissingFeature(f"{call}: pypoplar does not keep the option {name!r}, got {chosen[name]!r}")
        memory = float(chosen.get("availableMemoryProportion", cls().memory))
        if not isfinite(memory) or not 0 <= memory <= 1:
            raise InvalidOption(f"{call}: the option 'availableMemoryProportion' is a number from 0 to 1, got {memory}")
        partials = str(chosen.get("partialsType", "float"))
        return cls(
            memory=memory,
            partials_type=PARTIALS[partials],
            inter_tile_partials_type=PARTIALS[str(chosen.get("partialsType.interTile", partials))],
            pass_=str(chosen.get("pass", "NONE")),
            constraints=str(chosen.get("planConstraints", "")),
            multi_stage_reduce=bool(chosen.get("enableMultiStageReduce", True)),
            transformations=not chosen.get("disableTransformations", False),
            random_rounding_off=bool(chosen.get("disableSRForAMPVertices", False)),
            constraints_file=str(chosen.get("planConstraintsOutputFilename", "")),
        )

    def for_weight_update(self) -> ConvolutionOptions:
        """The options of the weight update that belongs to a forward pass."""
        return evolve(self, pass_=WEIGHT_UPDATES.get(self.pass_, self.pass_), samples=True)
