"""The options of products of matrices."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from pypoplar.errors import MissingFeature
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.tracebacks import public

PASSES = ("NONE", "INFERENCE_FWD", "TRAINING_FWD", "TRAINING_BWD", "TRAINING_WU")
KNOWN: dict[str, Kind] = {
    "availableMemoryProportion": float,
    "fullyConnectedPass": PASSES,
    "inputRHSIsPreArranged": bool,
    "use128BitConvUnitLoad": bool,
    "enableMultiStageReduce": bool,
    "enableFastReduce": bool,
    "remapOutputTensor": bool,
    "partialsType": ("half", "float"),
    "gatherOutput": bool,
    "disableSRForAMPVertices": bool,
    "planConstraints": str,
}
MEMORY = 0.6  # of a tile, for the blocks of a product
Options = Mapping[str, object] | None


@frozen
class MatMulOptions:
    """What the options of a call say of its plan."""

    memory: float
    half_partials: bool
    pre_arranged: bool
    always_nearest: bool

    @staticmethod
    def read(call: str, options: Options) -> MatMulOptions:
        """`InvalidOption` for unknown options and values, `PoplibsError` for a part of the memory that is none."""
        chosen = read_options(call, options, KNOWN)
        memory = float(chosen.get("availableMemoryProportion", MEMORY))
        if not 0 <= memory <= 1:
            raise PoplibsError(f"{call}: the option 'availableMemoryProportion' is from 0 to 1, got {memory:g}")
        if chosen.get("gatherOutput"):
            raise MissingFeature(f"{call}: the option 'gatherOutput' is not there yet: a product lies where it is computed")
        if str(chosen.get("planConstraints", "")).strip() not in ("", "{}"):
            raise MissingFeature(f"{call}: the option 'planConstraints' of a product is not there yet")
        flags = (bool(chosen.get(name, False)) for name in ("inputRHSIsPreArranged", "disableSRForAMPVertices"))
        return MatMulOptions(memory, chosen.get("partialsType") == "half", *flags)


@public
def matmulValidateOptions(options: Options) -> None:
    """Whether `matMul` takes options: it is the same check, without a product.

    Parameters
    ----------
    options:
        The options.

    Raises
    ------
    InvalidOption
        For an option that `matMul` does not know, or a value that it does not take.
    PoplibsError
        For an ``availableMemoryProportion`` that is not from 0 to 1.
    MissingFeature
        For ``gatherOutput`` and ``planConstraints``.
    """
    MatMulOptions.read("poplin.matmulValidateOptions", options)
