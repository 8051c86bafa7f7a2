"""What PopART's ways to choose it put aside, of graphs that are made by hand."""

import operator
from types import SimpleNamespace

import pytest
import torch
from torch import fx

from pypoplar.compiler.liveness.block_effects import Touched
from pypoplar.poptorch.capture import Pass
from pypoplar.poptorch.pipelines import checkpoints, recomputation
from pypoplar.poptorch.pipelines.checkpoints import Recomputation, checkpoints_of, intervals
from pypoplar.poptorch.pipelines.recomputation import KeptVariables

aten = torch.ops.aten


class Chain:
    """A graph forward, operation by operation, each with the number of its elements."""

    def __init__(self):
        self.graph = fx.Graph()
        self.x = self.graph.placeholder("x")

    def add(self, target, *operands, size=1):
        node = self.graph.call_function(target, operands)
        node.meta |= {"pass": Pass.FORWARD, "val": torch.zeros(size)}
        return node

    def chosen(self, kind, loss=None):
        return checkpoints_of(SimpleNamespace(graph=self.graph, loss=loss), kind)


@pytest.mark.parametrize(("count", "length"), [(1, 0), (8, 2), (13, 3), (18, 3), (25, 4), (32, 5), (50, 6)])
def test_the_first_interval_is_three_quarters_of_what_it_could_be(count, length):
    begin, end = intervals(count)[0]
    assert (begin, end) == (0, max(1, length))


def test_nothing_is_put_aside_where_nothing_is_done_again():
    assert Chain().chosen(Recomputation.NONE) is None


def test_a_result_is_alive_until_its_last_reader_through_views():
    chain = Chain()
    first = chain.add(aten.sin.default, chain.x)
    seen = chain.add(aten.view.default, chain.add(aten.t.default, first), [1])
    second = chain.add(aten.cos.default, chain.x)
    third = chain.add(aten.add.Tensor, second, seen)
    made = [first, second, third]
    assert checkpoints._last_readers(made, set(chain.graph.nodes)) == {first: 2, second: 2, third: 2}


def test_readers_backward_keep_nothing_alive():
    chain = Chain()
    first = chain.add(aten.sin.default, chain.x)
    second = chain.add(aten.cos.default, first)
    third = chain.add(aten.exp.default, second)
    backward = chain.add(aten.mul.Tensor, first, third)
    backward.meta["pass"] = Pass.BACKWARD
    assert checkpoints._last_readers([first, second, third], {first, second, third}) == {first: 1, second: 2, third: 2}


def test_places_between_have_the_fewest_bytes_and_marks_are_kept_beside_them():
    chain = Chain()
    nodes = [chain.x]
    sizes = [9, 9, 1, 9, 9, 9, 2, 9]
    for size in sizes:
        nodes.append(chain.add(aten.sin.default, nodes[-1], size=size))
    mark = chain.add(checkpoints.MARK, nodes[-1], size=100)
    unread = chain.add(aten.cos.default, nodes[2], size=1)
    kept = chain.chosen(Recomputation.STANDARD, nodes[-1]).kept
    assert mark in kept
    assert unread not in kept
    assert intervals(len(sizes))[0] == (0, 2)
    assert nodes[1] in kept  # the first of two places that are as cheap
    assert chain.chosen(Recomputation.PIPELINE).kept == {mark}


def test_norms_their_parts_and_non_linearities_behind_them_are_done_again():
    chain = Chain()
    norm = chain.add(aten.native_layer_norm.default, chain.x)
    part = chain.add(operator.getitem, norm, 0)
    gelu, product = chain.add(aten.gelu.default, part), chain.add(aten.mm.default, part, part)
    behind, alone = chain.add(aten.relu.default, product), chain.add(aten.tanh.default, chain.x)
    chosen = chain.chosen(Recomputation.NORM_ONLY)
    assert chosen.again == {norm, part, gelu}
    assert chosen.kept == {product, behind, alone}
    assert chosen.apart == chosen.again


def test_what_is_done_again_is_made_of_what_is_put_aside():
    """Steps that make one variable each of the one before; a step for something else lies between."""
    steps = [((0,), 1), ((1,), 2), ((0,), 9), ((2,), 3), ((3,), 4)]
    own = [Touched(frozenset(read), frozenset((written,))) for read, written in steps]
    assert recomputation._beside(own, KeptVariables(frozenset((2,)), frozenset((3,)))) == {0, 1, 2, 4}
    assert recomputation._beside(own, KeptVariables(frozenset(), frozenset((4,)))) == {2}
    assert recomputation._beside(own, KeptVariables(frozenset((2,)), None)) == set()
