"""Fully connected layers: PopLibs' namespace of this name."""

from __future__ import annotations

from attrs import define, evolve

from pypoplar.braces import OPTIONS, ordered
from pypoplar.errors import PoplarTypeError
from pypoplar.poplin.matmul.matmul_options import Options, matmulValidateOptions
from pypoplar.poplin.matmul.matmul_params import MatMulParams
from pypoplar.poputil.arguments import check_flag, element_type, whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, ElementType

__all__ = ["FullyConnectedParams", "getMatMulPrePlanParameters"]


@public
@define
class FullyConnectedParams:
    """Fully connected layers side by side, for `getMatMulPrePlanParameters`.

    Parameters
    ----------
    numGroups:
        How many layers there are.
    batchSize:
        Samples of each.
    inputSize:
        Elements of a sample that go in.
    outputSize:
        Elements of a sample that come out.
    """

    numGroups: int = 1
    batchSize: int = 1
    inputSize: int = 1
    outputSize: int = 1


@public
def getMatMulPrePlanParameters(
    parameters: FullyConnectedParams, matmulOptions: Options, type: ElementType, inferenceOnly: bool
) -> list[tuple[MatMulParams, dict[str, object]]]:
    """The products of a fully connected layer, for `preplan`.

    Parameters
    ----------
    parameters:
        The sizes of the layer.
    matmulOptions:
        Options that all products have, but for ``fullyConnectedPass``, which the call sets.
    type:
        The type of all matrices, FLOAT or HALF.
    inferenceOnly:
        Whether the products are those of the forward pass alone; else those of the backward pass and of the weight update come,
        too.

    Returns
    -------
    list[tuple[MatMulParams, dict[str, object]]]
        Parameters and options of each product.

    Raises
    ------
    PoplibsError
        For another type, and negative sizes.
    PoplarTypeError
        For other classes.
    """
    call = "poplin.fc.getMatMulPrePlanParameters"
    if not isinstance(parameters, FullyConnectedParams):
        raise PoplarTypeError(f"{call}: parameters is a poplin.fc.FullyConnectedParams, got {parameters!r}")
    for name in ("numGroups", "batchSize", "inputSize", "outputSize"):
        whole_number(call, name, getattr(parameters, name))
    if element_type(call, type) not in (FLOAT, HALF):
        raise PoplibsError(f"{call}: matrices are FLOAT or HALF, got {type!r}")
    check_flag(call, "inferenceOnly", inferenceOnly)
    matmulValidateOptions(ordered(matmulOptions, f"matmulOptions of {call}", OPTIONS))
    forward = "INFERENCE_FWD" if inferenceOnly else "TRAINING_FWD"
    passes = {forward: parameters}
    if not inferenceOnly:
        size = parameters
        passes["TRAINING_BWD"] = evolve(size, inputSize=size.outputSize, outputSize=size.inputSize)
        passes["TRAINING_WU"] = evolve(size, inputSize=size.batchSize, batchSize=size.inputSize)
    return [(_product(size, type), {**(matmulOptions or {}), "fullyConnectedPass": name}) for name, size in passes.items()]


def _product(size: FullyConnectedParams, type: ElementType) -> MatMulParams:
    left, right = [size.numGroups, size.batchSize, size.inputSize], [size.numGroups, size.inputSize, size.outputSize]
    return MatMulParams(type, type, left, right)
