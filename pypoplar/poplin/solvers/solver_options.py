"""The options of solvers: the size of their blocks, and those of the products between blocks."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from pypoplar.braces import OPTIONS, ordered
from pypoplar.errors import PoplarTypeError
from pypoplar.poplin.matmul.matmul_options import MatMulOptions, Options
from pypoplar.poplin.planning_cache import PlanningCache, check_cache
from pypoplar.poputil.call_options import read_options
from pypoplar.poputil.exceptions import PoplibsError


@frozen(eq=False)
class SolverOptions:
    """The rows of a block, and the options and plans of products."""

    block: int
    products: dict[str, object]
    cache: PlanningCache

    @staticmethod
    def read(call: str, options: Options, cache: PlanningCache | None, block: int) -> SolverOptions:
        """`InvalidOption` for what neither the call nor `matMul` knows; `block` is the size where none is given."""
        check_cache(call, cache)
        given: object = ordered(options, f"the options of {call}", OPTIONS)
        if not isinstance(given, Mapping | None):
            raise PoplarTypeError(f"the options of {call} are a dict, got {given!r}")
        products = {name: value for name, value in (given or {}).items() if name != "blockSize"}
        own = {"blockSize": given["blockSize"]} if given and "blockSize" in given else {}
        size = int(read_options(call, own, {"blockSize": int}).get("blockSize", block))
        if size < 1:
            raise PoplibsError(f"{call}: the option 'blockSize' is 1 at least, got {size}")
        chosen = MatMulOptions.read(call, products)
        if chosen.pre_arranged:
            raise PoplibsError(
                f"{call}: the option 'inputRHSIsPreArranged' is for a product of given operands, not for those of blocks"
            )
        return SolverOptions(size, products, PlanningCache() if cache is None else cache)
