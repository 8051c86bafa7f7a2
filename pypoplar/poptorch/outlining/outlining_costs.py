"""What a run of operations takes, and what the copies of a call add to it, before anything is compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import torch
import torch.utils._pytree as pytree
from torch import fx
from torch.utils.flop_counter import flop_registry

from pypoplar.compiler.exchange.exchange_costs import PRICES
from pypoplar.poptorch.lowering.torch_types import ELEMENT_TYPES
from pypoplar.poptorch.outlining.equal_runs import OF_ELEMENTS, OF_OTHERS, worth_of
from pypoplar.target import Target
from pypoplar.types import ElementType

aten = torch.ops.aten
MOST_SHARE = 0.03  # of a run's cycles that copies may take
OF_COMPUTE_SET = 500  # cycles, with its superstep, where vertices have little to do: small networks take 480 to 570
COMPUTE_SETS = {OF_OTHERS: 3.0, OF_ELEMENTS: 0.7}  # of an operation, by what it is worth: several on elements become one
OF_NORM, OF_GRADIENTS = (
    9.0,
    8.0,
)  # those of a norm over batches or its gradient, each a few reductions; of both gradients of a convolution
MANY_COMPUTE_SETS = {
    aten.convolution_backward.default: OF_GRADIENTS,
    aten._native_batch_norm_legit_functional.default: OF_NORM,
    aten.native_batch_norm_backward.default: OF_NORM,
}
OF_PRODUCT = 1000  # beside its compute sets and flops: what its operands take to come together
REACHED = 0.3  # of the most flops, by products and convolutions of layers
FULLEST = 1.5  # bytes on the tile that has most of a tensor, for one that is the mean


def cycles_of_run(target: Target, operations: Iterable[fx.Node], type: ElementType) -> float:
    """What operations take at least: the supersteps, and the products among them."""
    operations = list(operations)
    compute_sets = sum(MANY_COMPUTE_SETS.get(node.target, COMPUTE_SETS.get(worth_of(node), 0.0)) for node in operations)
    per_cycle = REACHED * target.peak_flops(type) / target.getTileClockFrequency()
    flops = [count for node in operations if (count := _flops(node))]
    return compute_sets * OF_COMPUTE_SET + OF_PRODUCT * len(flops) + (sum(flops) / per_cycle if per_cycle else 0.0)


def cycles_of_copies(target: Target, nodes: Iterable[fx.Node]) -> float:
    """What it takes to copy the tensors of nodes to their like on the same tiles, all of a type in one step."""
    held: Counter[torch.dtype] = Counter()
    for node in nodes:
        for tensor in pytree.tree_leaves(node.meta.get("val")):
            if isinstance(tensor, torch.Tensor):
                held[tensor.dtype] += tensor.numel() * ELEMENT_TYPES[tensor.dtype].size
    each = target.getNumTiles() * target.memcpy_bytes_per_cycle
    return sum(PRICES.copy_slots * target.getNumWorkerContexts() + FULLEST * bytes / each for bytes in held.values())


def _flops(node: fx.Node) -> int:
    """Those of products and convolutions, as PyTorch counts them."""
    count = flop_registry.get(getattr(node.target, "overloadpacket", None))
    if count is None:
        return 0
    args, kwargs = fx.node.map_arg((node.args, dict(node.kwargs)), lambda one: one.meta["val"])
    return int(count(*args, **kwargs, out_val=node.meta["val"]))
