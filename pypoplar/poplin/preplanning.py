"""Plans of products and convolutions that are made before they are needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pypoplar.poplin.convolution.calls.conv_reports import ConvPlanParams, plan_convolutions
from pypoplar.poplin.convolution.conv_params import ConvParams
from pypoplar.poplin.matmul.matmul_options import KNOWN, Options
from pypoplar.poplin.matmul.matmul_params import MatMulParams, checked_products, plan_products
from pypoplar.poplin.planning_cache import PlanningCache
from pypoplar.poputil.call_options import read_options
from pypoplar.target import Target
from pypoplar.tracebacks import public

MatMulToConvOptions = dict[frozenset[tuple[str, object]], dict[str, object]]
CONVOLUTION_NAMES = {"fullyConnectedPass": "pass", "gatherOutput": "gatherConvOutput"}  # of options that products call otherwise


@public
def preplan(convs: Iterable[ConvPlanParams], matmuls: Iterable[tuple[Target, MatMulParams, Options]], cache: PlanningCache) -> None:
    """Plan convolutions and products into a cache, before calls need the plans.

    Parameters
    ----------
    convs:
        A target, a `ConvParams` and options of `convolution` for each convolution.
    matmuls:
        A target, a `MatMulParams` and options of `matMul` for each product.
    cache:
        What gets the plans.

    Raises
    ------
    PoplibsError
        For parameters that do not fit.
    PoplarTypeError
        For what is no list of such triples, or no cache.
    """
    plan_convolutions("poplin.preplan", convs, cache)
    plan_products("poplin.preplan", matmuls, cache)


@public
def matMulGetConvPlanParams(
    matmuls: Iterable[tuple[Target, MatMulParams, Options]],
) -> tuple[list[ConvPlanParams], MatMulToConvOptions]:
    """The convolutions that compute what products compute: of a field of m places, k channels and n output channels, in g groups.

    A product of `matMul` has a plan of its own: these parameters are for plans of convolutions.

    Parameters
    ----------
    matmuls:
        A target, a `MatMulParams` and options of `matMul` for each product.

    Returns
    -------
    tuple[list[ConvPlanParams], MatMulToConvOptions]
        A target, parameters and options of a convolution for each product; and which options of products became which, a dict
        by the items of the former.

    Raises
    ------
    PoplibsError
        For parameters that do not fit.
    """
    convs: list[ConvPlanParams] = []
    options: MatMulToConvOptions = {}
    for target, product, given in checked_products("poplin.matMulGetConvPlanParams", matmuls):
        *groups, rows, depth = product.aShape
        of_convolution = options.setdefault(frozenset((given or {}).items()), _of_convolution(given))
        columns, count = product.bShape[-1], groups[0] if groups else 1
        params = ConvParams(product.inputType, product.outputType, 1, [rows], [1], depth, columns, count)
        convs.append((target, params, of_convolution))
    return convs, options


def _of_convolution(options: Mapping[str, object] | None) -> dict[str, object]:
    """Options of a product as those of a convolution."""
    chosen = read_options("poplin.matMulGetConvPlanParams", options, KNOWN)
    chosen.pop("inputRHSIsPreArranged", None)
    stage = chosen.pop("fullyConnectedPass", "NONE")
    kept = {CONVOLUTION_NAMES.get(name, name): value for name, value in chosen.items()}
    return {**kept, "pass": "NONE_MATMUL" if stage == "NONE" else f"FC_{stage}"}
