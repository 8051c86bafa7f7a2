"""Options of sessions: those that change numbers work, and those of PopART's compiler say that they change nothing."""

from __future__ import annotations

import logging
from typing import Any

from pypoplar.errors import MissingFeature
from pypoplar.popart.popart_enums import PatternsLevel, RecomputationType, ReductionType, VirtualGraphMode
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
    "enablePipelining": False,
    "virtualGraphMode": 0,
    "autoRecomputation": 0,
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
}
"""Those of outlining, scheduling, caching and pictures, which change nothing here."""
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
        if name in WORKING:
            _check(name, value)
        if (name in ACCEPTED or name in GROUPS) and value != self.__dict__[name]:
            logging.getLogger("popart").warning("SessionOptions.%s changes nothing here", name)
        self.__dict__[name] = value


def _check(name: str, value: Any) -> None:
    """`popart_exception` for a value that is not of the kind of the option's first one."""
    kind = type(WORKING[name])
    words = {bool: "True or False", int: "a whole number", dict: "a dict of texts", str: "a text"}[kind]
    right = isinstance(value, kind) and (kind is not int or not isinstance(value, bool))
    if kind is dict and right:
        right = all(isinstance(one, str) for pair in value.items() for one in pair)
    if not right:
        raise popart_exception(f"SessionOptions.{name} is {words}, got {value!r}")
    if name == "accumulationFactor" and value < 1:
        raise popart_exception(f"SessionOptions.accumulationFactor is at least 1, got {value}")
    if name == "accumulationAndReplicationReductionType" and value not in (ReductionType.Sum, ReductionType.Mean):
        raise popart_exception(f"SessionOptions.accumulationAndReplicationReductionType is Sum or Mean, got {value!r}")
    if name == "autoRecomputation" and value not in list(RecomputationType):
        raise popart_exception(f"SessionOptions.autoRecomputation is one of popart.RecomputationType, got {value!r}")
    if name == "virtualGraphMode" and value not in (VirtualGraphMode.Off, VirtualGraphMode.Manual):
        raise MissingFeature(
            f"SessionOptions.virtualGraphMode is {value!r}: there are Off and Manual, in which Builder.virtualGraph says where"
        )


class Patterns:
    """PopART's patterns, which change nothing here: any name can be switched.

    Parameters
    ----------
    level:
        A `PatternsLevel`, how many are on at first.
    """

    def __init__(self, level: Any = PatternsLevel.Default) -> None:
        self.level = level
        self.switched: dict[str, bool] = {}

    def enablePattern(self, name: str, enabled: bool) -> Patterns:
        """Switch a pattern of PopART's compiler on or off, which changes nothing.

        Parameters
        ----------
        name:
            The pattern.
        enabled:
            Whether it is on.

        Returns
        -------
        Patterns
            The same.
        """
        self.switched[name] = enabled
        return self

    def isPatternEnabled(self, name: str) -> bool:
        """Whether a pattern is on; all are that were not switched.

        Parameters
        ----------
        name:
            The pattern.

        Returns
        -------
        bool
            As it was switched.
        """
        return self.switched.get(name, True)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("level", "switched"):
            self.__dict__[name] = value
        else:
            self.switched[name] = bool(value)
