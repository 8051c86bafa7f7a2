"""What a run of operations takes, and what the copies of a call add to it, before anything is compiled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from torch import fx
from torch.utils.flop_counter import flop_registry

from pypoplar.arrays.dtypes import Int64s
from pypoplar.compiler.exchange.exchange_costs import PRICES
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.superstep_cost import superstep_cycles
from pypoplar.target import Target
from pypoplar.types import ElementType

MOST_SHARE = 0.03  # of a run's cycles that copies may take
OF_SMALL_VERTICES = (
    250  # cycles of a compute set whose vertices have little to do: small networks take 480 to 570 with the superstep
)
OF_PRODUCTS = 1000  # of a product beside its flops and supersteps: 8 layers of 256 units take 80,000 each, by these numbers 58,000
REACHED = 0.3  # of the most flops, by products and convolutions of layers


def cycles_of_run(target: Target, operations: Iterable[fx.Node], compute_sets: int, type: ElementType) -> float:
    """What operations that are so many compute sets take at least: the supersteps, and the products among them."""
    flops = [_flops(node) for node in operations]
    per_cycle = REACHED * target.peak_flops(type) / target.getTileClockFrequency()
    of_products = sum(count / per_cycle if per_cycle else 0.0 for count in flops) + OF_PRODUCTS * sum(count > 0 for count in flops)
    return compute_sets * (superstep_cycles(target) + OF_SMALL_VERTICES) + of_products


def cycles_of_copies(graph: Graph, tensors: Sequence[Tensor]) -> float:
    """What it takes to copy tensors to their like on the same tiles, all of a type in one step."""
    target = graph.getTarget()
    tiles = target.getNumTiles()
    held: dict[ElementType, Int64s] = {}
    for tensor in tensors:
        begin, end, tile = graph.mapped_pieces(tensor)
        elements = np.bincount(tile, weights=end - begin, minlength=tiles).astype(np.int64)
        held[tensor.elementType()] = held.get(tensor.elementType(), np.zeros(tiles, np.int64)) + elements
    begin_of_step = PRICES.copy_slots * target.getNumWorkerContexts()
    return sum(begin_of_step + int(each.max()) * type.size / target.memcpy_bytes_per_cycle for type, each in held.items())


def _flops(node: fx.Node) -> int:
    """Those of products and convolutions, as PyTorch counts them."""
    count = flop_registry.get(getattr(node.target, "overloadpacket", None))
    if count is None:
        return 0
    args, kwargs = fx.node.map_arg((node.args, dict(node.kwargs)), lambda one: one.meta["val"])
    return int(count(*args, **kwargs, out_val=node.meta["val"]))
