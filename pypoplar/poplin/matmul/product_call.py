"""A call for a product whose arguments have been checked: what it adds to the graph."""

from __future__ import annotations

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.matmul.block_layout import LaidOutTensor, laid_out
from pypoplar.poplin.matmul.block_plan import BlockPlan, plan_blocks
from pypoplar.poplin.matmul.block_product import BlockProduct, new_result
from pypoplar.poplin.matmul.matmul_options import MatMulOptions, Options
from pypoplar.poplin.matmul.operand_blocks import given_operand
from pypoplar.poplin.matmul.outer_product import outer_product
from pypoplar.poplin.matmul.product_params import ProductParams, partials_type
from pypoplar.poplin.matmul.vector_product import plan_vector_product, vector_product
from pypoplar.poplin.planning_cache import PlanningCache, check_cache, plan_of
from pypoplar.popops import zero
from pypoplar.poputil.arguments import check_operands, check_own, check_writeable, element_type
from pypoplar.poputil.copies import shares_elements
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.largest_tensor import check_fits
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.tiles_of_elements import place_as
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.program import Copy, Sequence
from pypoplar.target import Target
from pypoplar.types import FLOAT, HALF, ElementType


def params_of(
    call: str, a: list[int], b: list[int], type: ElementType, outputType: ElementType | None, options: Options, grouped: bool
) -> ProductParams:
    """The product of matrices of two shapes; `PoplibsError` for shapes and types that do not go together."""
    chosen = MatMulOptions.read(call, options)
    if len(a) != 2 + grouped or len(b) != 2 + grouped or a[-1] != b[-2] or a[:-2] != b[:-2]:
        group = "g, " if grouped else ""
        raise PoplibsError(f"{call} needs matrices that fit: A is [{group}m, k] = {a}, B is [{group}k, n] = {b}")
    if type not in (FLOAT, HALF):
        raise PoplibsError(f"{call} multiplies FLOAT or HALF matrices, got {type!r}")
    result = type if outputType is None else element_type(call, outputType)
    if result not in (FLOAT, HALF):
        raise PoplibsError(f"{call}: a product of matrices is FLOAT or HALF, got the output type {result!r}")
    groups = a[0] if grouped else 1
    partials = partials_type(type, chosen.half_partials)
    nearest = chosen.always_nearest and partials is HALF
    return ProductParams(groups, a[-2], a[-1], b[-1], type, result, partials, chosen.memory, nearest)


def planned(target: Target, params: ProductParams, cache: PlanningCache | None) -> BlockPlan:
    """The plan of a product that is not empty; `PoplibsError` where a matrix is larger than the memory of all tiles."""
    for what, type, shape in (("A", params.type, params.a_shape), ("B", params.type, params.b_shape)):
        check_fits(f"{what} of a product", target, type, shape)
    check_fits("a product of matrices", target, params.result, params.out_shape)
    return plan_of(cache, (target, params), lambda: plan_blocks(target, params))


@frozen(eq=False)
class ProductCall:
    """A call with matrices as they were given."""

    name: str
    graph: Graph
    A: Tensor
    B: Tensor
    params: ProductParams
    prog: Sequence
    debug: str | None
    cache: PlanningCache | None

    @staticmethod
    def read(  # noqa: PLR0913 (what calls have)
        name: str,
        graph: Graph,
        A: Tensor,
        B: Tensor,
        prog: Sequence,
        outputType: ElementType | None,
        debugContext: str | None,
        options: Options,
        cache: PlanningCache | None,
        grouped: bool = False,
    ) -> ProductCall:
        """Check the arguments, before the graph changes."""
        check_own(name, graph, A=A, B=B)
        check_cache(name, cache)
        if A.elementType() is not B.elementType():
            raise PoplibsError(f"{name} takes matrices of one type, FLOAT or HALF, got {A!r} and {B!r}")
        try:
            params = params_of(name, A.shape(), B.shape(), A.elementType(), outputType, options, grouped)
        except PoplibsError as error:
            raise PoplibsError(f"{error}; got {A!r} and {B!r}") from None
        sides = {"A": A, "B": B}  # those that are laid out have tiles
        check_operands(name, graph, **{side: operand for side, operand in sides.items() if not isinstance(operand, LaidOutTensor)})
        return ProductCall(name, graph, A, B, params, prog, debugContext, cache)

    @property
    def shape(self) -> list[int]:
        """That of the product."""
        return self.params.out_shape[3 - self.A.rank() :]

    def check_output(self, out: Tensor) -> None:
        """An error if `out` cannot take the product."""
        if out.shape() != self.shape:
            words = "[g, m, n]" if self.A.rank() == 3 else "[m, n]"
            raise PoplibsError(f"{self.name} gives {words} = {self.shape}, got {out!r}")
        check_writeable(self.name, out)

    def add(self, out: Tensor | None = None) -> Tensor:
        """Extend graph and program; the product, in `out` if there is one."""
        if self.params.empty:
            return self._nothing(out)
        if out is not None and any(shares_elements(self.graph, operand, out) for operand in (self.A, self.B)):
            return self._moved(self.add(), out)
        product = self._single()
        return self._blocks(out) if product is None else self._moved(product, out)

    def _nothing(self, out: Tensor | None) -> Tensor:
        """The sums of no products are zeros."""
        if out is None:
            out = self.graph.addVariable(self.params.result, self.shape, self.debug or "")
        if self.graph.elements_without_tile(out):
            mapTensorLinearly(self.graph, out)
        if out.numElements():
            zero(self.graph, out, self.prog, self.debug)
        return out

    def _single(self) -> Tensor | None:
        """The product where it is computed without blocks: a column times a row, or a matrix times a vector where it lies."""
        params = self.params
        if params.groups > 1:
            return None
        a, b, product = self.A.reshape(params.a_shape[1:]), self.B.reshape(params.b_shape[1:]), None
        if params.depth == 1 and (params.result is FLOAT or params.columns % 2 == 0):  # rows of halves begin with a word
            product = outer_product(self.graph, a, b, params.result, self.prog, self.debug)
        elif 1 in (params.rows, params.columns):
            left, right = (a, b) if params.columns == 1 else (b.transpose(), a.transpose())
            plan = plan_vector_product(self.graph, left, right, params.result)
            if plan is not None and plan.cycles <= self._plan().cycles:
                product = vector_product(self.graph, left, right, params.result, plan, self.prog, self.debug)
        return None if product is None else product.reshape(self.shape)

    def _blocks(self, out: Tensor | None) -> Tensor:
        plan, graph = self._plan(), self.graph
        given = None if out is None else laid_out(out, plan.cuts.result_bounds())
        result = given or new_result(graph, plan, below(self.debug, "out"))
        left = given_operand(graph, plan, self.A, False, self.prog, self.debug)
        right = given_operand(graph, plan, self.B, True, self.prog, self.debug)
        BlockProduct(graph, plan, left, right, result, self.debug).add(self.prog)
        if out is not None and given:
            return out
        return self._moved(result.matrix.slice(0, self.params.columns, 2).reshape(self.shape), out)

    def _plan(self) -> BlockPlan:
        return planned(self.graph.getTarget(), self.params, self.cache)

    def _moved(self, product: Tensor, out: Tensor | None) -> Tensor:
        """The product in `out`, if there is one and it is not there yet."""
        if out is None:
            return product
        if self.graph.elements_without_tile(out):
            place_as(self.graph, out, product)
        self.prog.add(Copy(product, out))
        return out
