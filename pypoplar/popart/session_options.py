"""Options of sessions: those that change numbers work, and those of PopART's compiler say that they change nothing."""

from __future__ import annotations

import logging
from typing import Any

from pypoplar.errors import MissingFeature
from pypoplar.popart.popart_enums import PatternsLevel
from pypoplar.popart.popart_types import popart_exception
from pypoplar.spelling import nearest

WORKING: dict[str, Any] = {
    "accumulationFactor": 1,
    "accumulationAndReplicationReductionType": 0,
    "enableGradientAccumulation": False,
    "enableStochasticRounding": False,
    "engineOptions": {},
    "convolutionOptions": {},
    "matmulOptions": {},
    "lstmOptions": {},
    "partialsTypeMatMuls": "",
    "enableFloatingPointChecks": False,
}
"""Those that change numbers or costs."""
REFUSED: dict[str, Any] = {
    "enableReplicatedGraphs": False,
    "enableDistributedReplicatedGraphs": False,
    "replicatedGraphCount": 1,
    "globalReplicationFactor": 1,
    "syntheticDataMode": 0,
}
"""What is missing here, with the value that is fine."""
ACCEPTED: dict[str, Any] = {
    "aliasZeroCopy": False,
    "autoRecomputation": 0,
    "cachePath": "",
    "constantWeights": True,
    "customCodelets": [],
    "decomposeGradSum": False,
    "delayVarUpdates": True,
    "disableGradAccumulationTensorStreams": False,
    "dotChecks": set(),
    "dotOpNames": True,
    "enableEngineCaching": False,
    "enableExplicitIR": False,
    "enableExplicitMainLoops": False,
    "enableFullyConnectedPass": True,
    "enableInplaceAmbiguityChecking": False,
    "enableLoadAndOffloadRNGState": False,
    "enableMergeExchange": True,
    "enableNonStableSoftmax": False,
    "enableOutlining": True,
    "enableOutliningCopyCostPruning": True,
    "enablePipelining": False,
    "enablePrefetchDatastreams": True,
    "enableSerializedMatmuls": True,
    "enableStableNorm": False,
    "enableSupportedDataTypeCasting": True,
    "enableVariablesCaching": True,
    "explicitRecomputation": False,
    "exportPoplarVertexGraph": False,
    "finalDotOp": 10000,
    "firstDotOp": 0,
    "groupHostSync": False,
    "hardwareInstrumentations": set(),
    "instrumentWithHardwareCycleCounter": False,
    "logDir": "",
    "mergeVarUpdate": 0,
    "numIOTiles": 0,
    "opxAliasChecking": False,
    "opxModifyChecking": False,
    "outlineThreshold": 1.0,
    "rearrangeAnchorsOnHost": True,
    "reportOptions": {},
    "separateCallOpPdfs": True,
    "strictOpVersions": True,
    "subgraphCopyingStrategy": 0,
    "swapLimitScheduler": 1000000000,
    "timeLimitScheduler": 1e9,
    "useHostCopyOps": False,
    "virtualGraphMode": 0,
}
"""Those of outlining, scheduling, caching, placement and pictures, which change nothing here: operations are all on IPU 0."""
GROUPS = (
    "accumulateOuterFragmentSettings",
    "accumulatorTensorLocationSettings",
    "activationTensorLocationSettings",
    "autodiffSettings",
    "automaticLossScalingSettings",
    "batchSerializationSettings",
    "executionPhaseSettings",
    "optimizerStateTensorLocationSettings",
    "replicatedCollectivesSettings",
    "tensorLocationSettingsOverride",
    "weightTensorLocationSettings",
)
KNOWN = {**WORKING, **REFUSED, **ACCEPTED}


class SettingsGroup:
    """Settings that are accepted together, such as where weights are; they change nothing."""


class SessionOptions:
    """Options of a session, as attributes: ``options.accumulationFactor = 4``."""

    def __init__(self) -> None:
        for name, value in KNOWN.items():
            self.__dict__[name] = value.copy() if isinstance(value, dict | list | set) else value
        for name in GROUPS:
            self.__dict__[name] = SettingsGroup()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise popart_exception(f"SessionOptions has no option {name!r}{nearest(name, [*KNOWN, *GROUPS])}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in KNOWN and name not in GROUPS:
            raise popart_exception(f"SessionOptions has no option {name!r}{nearest(name, [*KNOWN, *GROUPS])}")
        if name in REFUSED and value != REFUSED[name]:
            raise MissingFeature(
                f"SessionOptions.{name} is {value!r}: PopART's sessions have no replicas here, and take data from the host"
            )
        if (name in ACCEPTED or name in GROUPS) and value != self.__dict__[name]:
            logging.getLogger("popart").warning("SessionOptions.%s changes nothing here", name)
        self.__dict__[name] = value


class Patterns:
    """PopART's patterns, which change nothing here: any name can be switched."""

    def __init__(self, level: Any = PatternsLevel.Default) -> None:
        self.level = level
        self.switched: dict[str, bool] = {}

    def enablePattern(self, name: str, enabled: bool) -> Patterns:
        """Switch a pattern."""
        self.switched[name] = enabled
        return self

    def isPatternEnabled(self, name: str) -> bool:
        """Whether a pattern is on."""
        return self.switched.get(name, True)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("level", "switched"):
            self.__dict__[name] = value
        else:
            self.switched[name] = bool(value)
