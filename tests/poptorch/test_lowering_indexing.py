"""What is gathered, scattered, indexed and sorted is PyTorch's, and so are its gradients."""

import math

import pytest
import torch
from poptorch_functions import of_all, random, total_of
from poptorch_rig import check

from pypoplar.poptorch import UnsupportedOperation

TYPES = [torch.float32, torch.float16]


@pytest.mark.parametrize("type", TYPES)
def test_elements_and_slices_are_looked_up(type):
    lookups = [
        lambda a, i, r: a.gather(1, i % 4),
        lambda a, i, r: a.index_select(1, r % 4),
        lambda a, i, r: a[r],
        lambda a, i, r: a[:, i],
        lambda a, i, r: a[r, r + 0],
        lambda a, i, r: a[r, 1:],
        lambda a, i, r: a.view(3, 2, 2)[r, :, (r + 3) % 2],
        lambda a, i, r: torch.take_along_dim(a, a.argsort(1), 1),
        lambda a, i, r: a.take(i.abs()),
    ]
    places, rows = torch.tensor([[2, 0], [1, -4], [3, 3]]), torch.tensor([2, 0, -1, 1])
    check(total_of(*lookups), random(3, 4, type=type), arguments=(places, rows))


@pytest.mark.parametrize("type", TYPES)
def test_elements_and_slices_are_written(type):
    writes = [
        lambda a, b, i, r: a.scatter(1, i, b[:, :2] * 2),
        lambda a, b, i, r: a.scatter_add(1, i, b[:, :2].contiguous()),
        lambda a, b, i, r: a.index_add(1, r, b, alpha=2),
        lambda a, b, i, r: a.index_put((r[:2], r[1:3]), b[0, :2]),
        lambda a, b, i, r: a.index_put((r,), b[0], accumulate=True),
        lambda a, b, i, r: a.index_copy(0, r[:2], b[:2]),
        lambda a, b, i, r: a.index_fill(1, r[:2], 0.5),
        lambda a, b, i, r: a.scatter(1, i, 2.0),
        lambda a, b, i, r: a.scatter_reduce(1, i, b[:, :2].contiguous(), "amax"),
        lambda a, b, i, r: a.scatter_reduce(1, i, b[:, :2].contiguous(), "mean", include_self=False),
        lambda a, b, i, r: a.scatter_reduce(1, i, b[:, :2].contiguous(), "sum", include_self=False),
    ]
    places, rows = torch.tensor([[2, 0], [1, 3], [3, 2]]), torch.tensor([2, 0, 1, 2])
    check(total_of(*writes), random(3, 4, type=type), random(3, 4, type=type, seed=2), arguments=(places, rows))


def test_masks_that_are_written_by_one_value():
    def write(a):
        b = a.clone()
        b[a > 0] = 0.25
        return b

    check(write, random(3, 4))


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8 is now deprecated")  # PyTorch's own
def test_masks_that_are_written_by_values_that_are_the_same_for_each_row():
    def written(masked, shape, accumulate):
        def write(a, v, mask):
            b = a * 2
            return b.index_put((mask,), v, accumulate=accumulate)

        mask = random(2, 3, 4)[(..., *[0] * (3 - masked))] > 0
        check(write, random(2, 3, 4, seed=1), random(*shape, seed=2), arguments=(mask,), gradients=False)

    for masked, shape in ((1, (3, 4)), (1, (4,)), (1, (1, 3, 4)), (1, (3, 1)), (2, (4,)), (2, (1, 4)), (3, ()), (3, (1,))):
        for accumulate in (False, True):
            written(masked, shape, accumulate)
    bytes = torch.tensor([2, 0], dtype=torch.uint8)
    check(lambda a, v, i: a.index_put((i,), v), random(2, 3), random(3), arguments=(bytes,), gradients=False)
    with pytest.raises(UnsupportedOperation, match="uint8 is a mask"):
        check(lambda a, v, i: a.index_put((i,), v), random(2, 3), random(2, 3), arguments=(bytes + 1,), gradients=False)
    with pytest.raises(UnsupportedOperation, match="how many elements a mask picks depends on data"):
        check(lambda a, v: a.index_put((torch.tensor([True, True]),), v), random(2, 3), random(2, 3), gradients=False)


@pytest.mark.parametrize("type", [torch.int64, torch.bool, torch.uint8])
def test_lookups_of_integers(type):
    x = torch.tensor([[3, 0, 1, 7], [0, 1, 0, 2], [1, 5, 9, 0]]).to(type)
    several = [lambda a, i: a.gather(1, i), lambda a, i: a[i[:, 0]], lambda a, i: a.scatter(1, i, a[:, :2].contiguous())]
    if type is torch.int64:
        reduced = ("sum", "prod", "mean", "amin", "amax")
        several += [lambda a, i, r=r: a.scatter_reduce(1, i, a[:, :2].contiguous(), r, include_self=False) for r in reduced]
    check(of_all(*several), x, torch.tensor([[2, 0], [1, 0], [0, 2]]), gradients=False)


def test_constant_indices_are_checked():
    with pytest.raises(IndexError, match="out of a dimension of size 3"):
        check(lambda a: a.gather(0, torch.tensor([[0, 3]])), random(3, 4), gradients=False)


@pytest.mark.parametrize("type", TYPES)
def test_sorted_elements(type):
    x = torch.tensor([[3.0, 1.0, 2.0, 0.5], [7.0, -1.0, 4.0, 9.0], [0.0, 5.0, 2.5, 1.5]]).to(type)
    several = [
        lambda a: a.sort(1).values,
        lambda a: a.sort(0, descending=True).values,
        lambda a: a.topk(2, 1).values,
        lambda a: a.topk(2, 0, largest=False).values,
        lambda a: a.kthvalue(3, 1).values,
        lambda a: a.median(1, keepdim=True).values,
        torch.median,
    ]
    check(total_of(*several), x)
    check(of_all(lambda a: a.argsort(1), lambda a: a.topk(3, 1)[1], lambda a: a.sort(stable=True, dim=1)[1]), x, gradients=False)


@pytest.mark.parametrize("type", [torch.float, torch.half])
def test_nan_is_larger_than_all_other_elements(type):
    """The first of several NaNs, whose sign does not matter, is a median; zeros of both signs are equal."""
    nan = math.nan
    x = torch.tensor(
        [[3, nan, -1, math.inf, 0.0, nan, -0.0], [1, 2, 3, 4, 5, 6, nan], [nan] * 7, [6, 5, 4, 3, 2, 1, 0]], dtype=type
    )
    x[0, 5].neg_()
    check(
        of_all(
            lambda a: tuple(a.sort(dim=1, stable=True)),
            lambda a: tuple(a.sort(dim=0, descending=True, stable=True)),
            lambda a: a.topk(3, 1).values,
            lambda a: a.topk(5, 1, largest=False).values,
            lambda a: a.argsort(dim=1, descending=True, stable=True),
            lambda a: tuple(a.median(1)),
            lambda a: tuple(a.median(0, keepdim=True)),
            lambda a: tuple(a.t().median(0)),
            torch.median,
            lambda a: a.kthvalue(3, 1).values,
            lambda a: a.kthvalue(7, 1).values,
            lambda a: (a.max(1), a.min(1), a.amax(), a.amin(0), a.argmax(1), a.argmin(1)),
            lambda a: (a.cummax(1), a.cummin(0)),
        ),
        x,
        gradients=False,
    )


@pytest.mark.parametrize("type", TYPES)
def test_the_median_of_a_nan_is_nan(type):
    x = torch.tensor([[3.0, math.nan, 2.0, 0.5], [7.0, -1.0, math.inf, 9.0], [0.0, 5.0, 2.5, -math.inf]]).to(type)
    check(of_all(lambda a: a.median(1).values, lambda a: a.median(0, keepdim=True).values, torch.median), x, gradients=False)


def test_counts_of_elements():
    x, ends = torch.tensor([[0.1, 0.5, 0.9], [1.0, -0.2, 0.5]]), torch.tensor([0.1, 0.5, 0.8])
    both = [
        lambda a, b: torch.bucketize(a, b),
        lambda a, b: torch.bucketize(a, b, right=True),
        lambda a, b: torch.histc(a, 4, 0, 1),
    ]
    check(of_all(*both), x, ends, gradients=False)
    check(lambda i: torch.nn.functional.one_hot(i, 5), torch.tensor([[3, 0], [1, 4]]), gradients=False)


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("include", [True, False])
def test_the_largest_and_the_smallest_of_what_has_a_nan_are_nan(type, include):
    """A NaN among what is scattered, or where it goes to; what it does not meet stays."""
    a = torch.tensor([[1.0, math.nan, 3.0], [4.0, 5.0, 6.0], [math.inf, 2.0, 0.0]], dtype=type)
    b = torch.tensor([[math.nan, 1.0, 2.0], [3.0, math.nan, 5.0], [-math.inf, 1.0, 0.0]], dtype=type)
    places, rows = torch.tensor([[0, 1, 1], [2, 2, 0], [1, 0, 0]]), torch.tensor([0, 2, 0])
    scattered = [lambda a, b, i, r, how=how: a.scatter_reduce(1, i, b, how, include_self=include) for how in ("amax", "amin")]
    chosen = [lambda a, b, i, r, how=how: a.index_reduce(0, r, b, how, include_self=include) for how in ("amax", "amin")]
    check(of_all(*scattered, *chosen), a, b, arguments=(places, rows), gradients=False)


def test_the_median_of_no_floats_is_nan():
    check(of_all(lambda a: a[:0].median(), lambda a: a.half()[:0].median()), torch.ones(3), gradients=False)
    with pytest.raises(UnsupportedOperation, match="median: of no elements there is none"):
        check(lambda a: a[:0].median(), torch.ones(3, dtype=torch.int32), gradients=False)


def test_indices_of_no_elements_have_any_dimensions():
    none, x = torch.zeros(0, dtype=torch.long), torch.arange(6.0).reshape(2, 3)
    check(lambda x: x.gather(1, none), x)
    check(lambda x: x.scatter(0, none, x), x, gradients=False)
    check(lambda x: x.scatter_add(0, none, x[0]), x, gradients=False)
    check(lambda x: x.scatter_reduce(0, none, x[0], "amax"), x, gradients=False)


def test_an_index_without_dimensions_is_one_of_a_single_element():
    vector, source = torch.tensor([1.0, 5.0, 2.0]), torch.tensor([3.0, 4.0, 7.0])
    check(lambda v, s: v.scatter(0, v.detach().argmax(-1), 1.0) + v.gather(0, v.detach().argmax(-1)) * s, vector, source)
    several = [
        lambda v, s, i: v.scatter(-1, i, s),
        lambda v, s, i: v.scatter(0, i, s[0]),
        lambda v, s, i: v.scatter_add(0, i, s),
        lambda v, s, i: v.scatter_reduce(0, i, s, "amax"),
    ]
    for function in several:  # of which PyTorch has no gradients for a source that is longer than the index
        check(lambda v, s, function=function: function(v, s, v.argmax(-1)), vector, source, gradients=False)
