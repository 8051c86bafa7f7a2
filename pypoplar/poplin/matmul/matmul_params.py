"""Products of matrices that are to be planned, and reports of plans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO

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


def _shape(given: Any) -> tuple[int, ...]:
    return check_shape(ordered(given, "a shape of MatMulParams"))


@public
@frozen
class MatMulParams:
    """A product of A of `inputType` and `aShape`, [m, k], and B of `bShape`, [k, n], or of groups, as `outputType`."""

    inputType: ElementType = field(converter=check_type)
    outputType: ElementType = field(converter=check_type)
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
    """Write the plan of a product [m, k] x [k, n] to `out`, a text file: parts, tiles, memory and estimated cycles.

    It is that of blocks, with operands that lie as the plan wants them; a product with a vector may have a cheaper one that depends
    on where its matrix lies.
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
    """Write the plan of products [g, m, k] x [g, k, n] to `out`, as `matMulReportPlan`."""
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
    """Plan products into a cache, as `preplan`, which is to be called instead."""
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
