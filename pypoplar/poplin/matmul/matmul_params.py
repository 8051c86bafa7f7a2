"""Products of matrices that are to be planned, and reports of plans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from attrs import field, frozen

from pypoplar.braces import ordered
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.variables import check_shape
from pypoplar.poplin.matmul.matmul_options import Options
from pypoplar.poplin.matmul.plan_report import report_of
from pypoplar.poplin.matmul.product_call import params_of, planned
from pypoplar.poplin.matmul.product_params import ProductParams
from pypoplar.poplin.planning_cache import PlanningCache, check_cache
from pypoplar.poputil.arguments import check_graph
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.target import Target
from pypoplar.tracebacks import public
from pypoplar.types import ElementType, check_type

WRITE = "[(target, poplin.MatMulParams(...), {}), ...]"


def _type(given: ElementType) -> ElementType:
    return check_type(given)


def _shape(given: Iterable[int]) -> tuple[int, ...]:
    return check_shape(ordered(given, "a shape of MatMulParams"))


@public
@frozen
class MatMulParams:
    """A product of matrices A and B, or of groups of them, for `preplan`.

    Parameters
    ----------
    inputType:
        The type of A and B, FLOAT or HALF.
    outputType:
        The type of the product, FLOAT or HALF.
    aShape:
        The shape of A: [m, k], or [g, m, k] of groups.
    bShape:
        The shape of B: [k, n], or [g, k, n] of groups.

    Raises
    ------
    PoplarTypeError
        For what is no type or no shape. Whether they fit together is looked at by `preplan`.
    """

    inputType: ElementType = field(converter=_type)
    outputType: ElementType = field(converter=_type)
    aShape: tuple[int, ...] = field(converter=_shape)
    bShape: tuple[int, ...] = field(converter=_shape)

    def __lt__(self, other: MatMulParams) -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple[object, ...]:
        return (self.inputType.__name__, self.outputType.__name__, self.aShape, self.bShape)


@public
def matMulReportPlan(
    out: TextIO,
    graph: Graph,
    inputType: ElementType,
    outputType: ElementType | None,
    aShape: Iterable[int],
    bShape: Iterable[int],
    options: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """Write the plan of a product to a text file: parts, tiles, memory and estimated cycles.

    It is that of blocks, with operands that lie as the plan wants them; a product with a vector may have a cheaper one that
    depends on where its matrix lies.

    Parameters
    ----------
    out:
        A text file such as ``sys.stdout``.
    inputType:
        The type of A and B.
    outputType:
        The type of the product; None for that of A and B.
    aShape:
        [m, k].
    bShape:
        [k, n].
    options:
        As for `matMul`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Raises
    ------
    PoplibsError
        For shapes that do not fit, and for types but FLOAT and HALF.
    PoplarTypeError
        If `out` cannot be written to.
    """
    _report("poplin.matMulReportPlan", out, graph, inputType, outputType, aShape, bShape, options, cache)


@public
def matMulGroupedReportPlan(
    out: TextIO,
    graph: Graph,
    inputType: ElementType,
    outputType: ElementType | None,
    aShape: Iterable[int],
    bShape: Iterable[int],
    options: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """Write the plan of a grouped product to a text file, as `matMulReportPlan`.

    Parameters
    ----------
    out:
        A text file such as ``sys.stdout``.
    inputType:
        The type of A and B.
    outputType:
        The type of the product; None for that of A and B.
    aShape:
        [g, m, k].
    bShape:
        [g, k, n].
    options:
        As for `matMul`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Raises
    ------
    PoplibsError
        For shapes that do not fit, and for types but FLOAT and HALF.
    PoplarTypeError
        If `out` cannot be written to.
    """
    _report("poplin.matMulGroupedReportPlan", out, graph, inputType, outputType, aShape, bShape, options, cache, grouped=True)


def _report(  # noqa: PLR0913 (PopLibs' arguments)
    name: str,
    out: TextIO,
    graph: Graph,
    inputType: ElementType,
    outputType: ElementType | None,
    aShape: Iterable[int],
    bShape: Iterable[int],
    options: Options,
    cache: PlanningCache | None,
    grouped: bool = False,
) -> None:
    if not callable(getattr(out, "write", None)):
        raise PoplarTypeError(f"{name}: out is a text file, got {out!r}")
    check_graph(name, graph)
    check_cache(name, cache)
    a, b = (list(check_shape(ordered(shape, f"{what} of {name}"))) for what, shape in (("aShape", aShape), ("bShape", bShape)))
    params = params_of(name, a, b, check_type(inputType), outputType, options, grouped)
    if params.empty:
        out.write("nothing is multiplied\n")
    else:
        out.write(report_of(graph.getTarget(), planned(graph.getTarget(), params, cache)))


@public
def preplanMatMuls(matmuls: Iterable[tuple[Target, MatMulParams, Options]], cache: PlanningCache) -> None:
    """Plan products into a cache; PopLibs has `preplan` in its place.

    Parameters
    ----------
    matmuls:
        A target, a `MatMulParams` and options of `matMul` for each product.
    cache:
        What gets the plans.

    Raises
    ------
    PoplibsError
        For shapes that do not fit, types but FLOAT and HALF, and entries that are not such triples.
    PoplarTypeError
        For what is no list, or no cache.
    """
    plan_products("poplin.preplanMatMuls", matmuls, cache)


def plan_products(name: str, matmuls: Iterable[tuple[Target, MatMulParams, Options]], cache: PlanningCache) -> None:
    """Put the plan of each product into `cache`, once all have been checked."""
    if not isinstance(cache, PlanningCache):
        raise PoplarTypeError(f"{name}: cache is a poplin.PlanningCache, got {cache!r}")
    for target, product, options in checked_products(name, matmuls):
        params = _params(name, product, options)
        if not params.empty:
            planned(target, params, cache)


def checked_products(
    name: str, matmuls: Iterable[tuple[Target, MatMulParams, Options]]
) -> list[tuple[Target, MatMulParams, Options]]:
    """Products to be planned; an error for what are none, or do not fit together."""
    if not isinstance(ordered(matmuls, f"the matmuls of {name}", WRITE), Iterable):
        raise PoplarTypeError(f"{name}: matmuls is a list of a target, MatMulParams and options each, got {matmuls!r}")
    products = list(matmuls)
    for entry in products:
        match entry:
            case (Target(), MatMulParams() as product, options):
                _params(name, product, options)
            case _:
                raise PoplibsError(f"{name}: a product is (target, MatMulParams, options), got {entry!r}")
    return products


def _params(name: str, product: MatMulParams, options: Options) -> ProductParams:
    shapes = list(product.aShape), list(product.bShape)
    return params_of(name, *shapes, product.inputType, product.outputType, options, len(product.aShape) == 3)
