"""Products and lookups give PyTorch's results and gradients."""

from math import inf, nan

import pytest
import torch
import torch.nn.functional as F
from poptorch_functions import of_all
from poptorch_rig import check

from pypoplar import poptorch

TYPES = [torch.float32, torch.float16]


def random(*shape: int, type: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(type)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((4, 5), (5, 3)),
        ((5,), (5,)),
        ((4, 5), (5,)),
        ((5,), (5, 3)),
        ((2, 4, 5), (5, 3)),
        ((2, 1, 4, 5), (3, 5, 2)),
        ((1, 1), (1, 4)),
    ],
)
def test_products_of_all_ranks_are_pytorchs(left, right):
    check(torch.matmul, random(*left), random(*right, seed=2))


@pytest.mark.parametrize("shapes", [((0, 5), (5, 3)), ((4, 0), (0, 3)), ((2, 4, 0), (2, 0, 3)), ((0, 4, 2), (0, 2, 3))])
def test_products_of_nothing_are_pytorchs(shapes):
    check(torch.matmul, *(random(*shape) for shape in shapes), gradients=False)


@pytest.mark.parametrize("type", TYPES)
def test_batched_products_are_pytorchs(type):
    a, b, c = random(3, 4, 5, type=type), random(3, 5, 6, type=type), random(3, 4, 6, type=type)
    check(torch.bmm, a, b)
    check(lambda c, a, b: torch.baddbmm(c, a, b.transpose(1, 2), beta=0.5, alpha=2), c, a, b.transpose(1, 2).contiguous())
    check(lambda x, w, b: F.linear(x, w, b), a, random(2, 5, type=type), random(2, type=type))


def test_scaled_sums_of_products_are_pytorchs():
    a, b, bias = random(4, 5), random(5, 3), random(3)
    check(lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=3), bias, a, b)
    check(lambda c, a, b: torch.addmm(c, a, b, beta=0), bias, a, b, gradients=False)
    check(lambda c, a, v: torch.addmv(c, a, v, beta=2, alpha=0.5), random(4), a, random(5))
    check(lambda a, b: torch.einsum("bij,kj->bki", a, b), random(2, 3, 4), random(5, 4))
    left, right = random(2, 3, 4), random(2, 4, 5)
    check(lambda c, a, b: torch.addbmm(c, a, b, beta=0.5, alpha=3), random(5), left, right)
    check(lambda c, a, b: torch.addr(c, a[0, 0], b[0, 0], beta=0.5, alpha=3), random(5), left, right)


WHOLE = [torch.int64, torch.int32, torch.int8, torch.uint8]


@pytest.mark.parametrize("type", WHOLE)
def test_products_of_integers_are_pytorchs(type):
    left, right = (torch.arange(-5, count - 5).to(type) for count in (24, 60))
    of_vectors = ((4,), (4,)), ((6, 4), (4,)), ((4,), (4, 3))
    for shapes in (*of_vectors, ((6, 4), (4, 3)), ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (2, 4, 5))):
        pair = [whole[: torch.Size(shape).numel()].reshape(shape) for whole, shape in zip((left, right), shapes, strict=True)]
        check(torch.matmul, *pair, gradients=False)
    if type in (torch.int64, torch.int32):  # of narrow ones no sum with a factor is there, which is told
        check(lambda a, b: torch.addmm(b[0], a, b, beta=2, alpha=3), left.reshape(6, 4), right[:12].reshape(4, 3), gradients=False)
    check(lambda a, b: a[:, :0] @ b[:0], left.reshape(6, 4), right[:12].reshape(4, 3), gradients=False)


def test_products_of_truths_are_refused():
    with pytest.raises((poptorch.UnsupportedOperation, RuntimeError), match=r"(?i)bool"):
        check(lambda a: a @ a, torch.ones(2, 2, dtype=torch.bool), gradients=False)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("padding", [None, 2, -1])
def test_embeddings_are_pytorchs(type, padding):
    indices = torch.tensor([[1, 2, 6], [2, 2, 0]])
    check(lambda w, i: F.embedding(i, w, padding), random(7, 5, type=type), arguments=(indices,))


def test_lookups_of_any_shape_are_pytorchs():
    for indices in (torch.tensor(3), torch.tensor([1], dtype=torch.int32), torch.zeros(2, 0, dtype=torch.int64)):
        check(lambda w, i: F.embedding(i, w), random(7, 5), arguments=(indices,))


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_of_one_length_are_pytorchs(mode):
    check(lambda w, i: F.embedding_bag(i, w, mode=mode), random(7, 5), arguments=(torch.tensor([[1, 2, 1], [0, 6, 3]]),))


def test_bags_that_leave_out_an_entry_are_refused():
    with pytest.raises(poptorch.Error, match="padding_idx"):
        check(lambda w, i: F.embedding_bag(i, w, torch.tensor([0, 2]), padding_idx=1), random(7, 5), arguments=(torch.arange(5),))


def test_a_table_that_is_also_a_layers_weights_gets_both_gradients():
    check(lambda w, i: F.embedding(i, w) @ w.t(), random(7, 5), arguments=(torch.tensor([1, 2, 1]),))


@pytest.mark.parametrize("beta", [0, 1, 2])
def test_a_product_times_nothing_is_not_asked_for(beta):
    """PyTorch leaves out a product whose factor is 0: what is NaN in it does not matter."""
    matrix, vector, added = torch.tensor([[nan, 1.0], [2.0, inf]]), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
    check(
        of_all(
            lambda m, v, c: torch.addmv(c, m, v, alpha=0, beta=beta),
            lambda m, v, c: torch.addmm(c, m, m, alpha=0, beta=beta),
            lambda m, v, c: torch.addbmm(c, m[None], m[None], alpha=0, beta=beta),
            lambda m, v, c: torch.baddbmm(c[None, None], m[None], m[None], alpha=0, beta=beta),
            lambda m, v, c: torch.addmv(c, m, v, beta=beta),
        ),
        *(matrix, vector, added),
        gradients=False,
    )


def test_gradients_of_weights_lie_as_the_weights_do():
    torch.manual_seed(1)
    layer = torch.nn.Linear(64, 48)

    class WithLoss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return poptorch.identity_loss(self.layer(x) ** 2, "mean")

    model = poptorch.trainingModel(WithLoss(), optimizer=torch.optim.SGD(layer.parameters(), lr=0.01))
    model(random(32, 64))
    exchanges = model._built.compiled.engine.executable.exchanges
    (update,) = [one for one in exchanges if "update" in one.name and one.phase == "before"]
    assert update.messages["bytes"].mean() >= 16  # not element by element


@pytest.mark.parametrize("type", TYPES)
def test_products_that_are_used_transposed_are_pytorchs(type):
    a, b, c = random(5, 7, type=type), random(7, 3, type=type), random(2, 5, 7, type=type)
    check(lambda a, b: (a @ b).t() * 1.0, a, b)
    check(lambda c, b: torch.bmm(c, b).transpose(-1, -2) * 1.0, c, random(2, 7, 3, type=type))
    check(lambda c, b: torch.bmm(c, b).transpose(0, 1) * 1.0, c, random(2, 7, 3, type=type))
