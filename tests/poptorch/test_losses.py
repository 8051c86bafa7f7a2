"""Losses give PyTorch's results and gradients."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from poptorch_rig import Plain, agrees, check, compiled

TYPES = [torch.float32, torch.float16]
REDUCTIONS = ("mean", "sum", "none")


def random(*shape: int, type: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(type)


def check_reductions(loss, *tensors, arguments=()):
    """All reductions at once: `loss` takes the keyword."""

    def run(*given):
        results = [loss(*given, reduction=reduction) for reduction in REDUCTIONS]
        return results[0] * 2 + results[1] / 4 + (results[2] * results[2]).sum(), *results

    check(run, *tensors, arguments=arguments)


@pytest.mark.parametrize("type", TYPES)
def test_distances_are_pytorchs(type):
    x, y = random(3, 5, type=type), random(3, 5, type=type, seed=1)
    check_reductions(F.mse_loss, x, y)
    check_reductions(lambda x, y, **how: F.smooth_l1_loss(x, y, beta=0.5, **how), x, y)
    check_reductions(lambda x, y, **how: F.huber_loss(x, y, delta=0.75, **how), x, arguments=(y,))


@pytest.mark.parametrize("type", TYPES)
def test_losses_of_two_classes_are_pytorchs(type):
    x, y = random(3, 5, type=type), random(3, 5, seed=1).sigmoid().to(type)
    signs = torch.sign(random(3, 5, type=type, seed=2))
    check_reductions(F.binary_cross_entropy, (x * 2).sigmoid(), arguments=(y,))
    check_reductions(lambda x, y, w, **how: F.binary_cross_entropy(x, y, w, **how), x.sigmoid(), arguments=(y, y + 1))
    check_reductions(F.soft_margin_loss, x, arguments=(signs,))


def test_losses_take_all_their_arguments():
    x, y, weight = random(3, 5), random(3, 5, seed=1), random(3, 5, seed=2).abs()
    check_reductions(lambda x, y, w, **how: F.l1_loss(x, y, weight=w, **how), x, y, arguments=(weight,))
    check_reductions(lambda x, y, z, **how: F.triplet_margin_loss(x, y, z, p=3, swap=True, **how), x, y, weight)


@pytest.mark.parametrize(("reduction", "wanted"), [("mean", float("nan")), ("sum", 0.0)])
def test_the_mean_of_no_losses_is_nan_and_their_sum_0(reduction, wanted):
    nothing = torch.zeros(0, 3), torch.zeros(0, 3)
    for loss in (F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy, F.soft_margin_loss):
        machine = compiled(Plain(partial(loss, reduction=reduction)), nothing, training=False)
        agrees(machine.run(nothing)[0], torch.tensor(wanted), loss.__name__)


def test_a_gaussian_loss_bounds_its_variance_and_does_not_look_into_it():
    x, y, variance = random(3, 5), random(3, 5, seed=1), random(3, 1, seed=2).abs()
    check_reductions(lambda x, y, v, **how: F.gaussian_nll_loss(x, y, v, full=True, eps=0.5, **how), x, y, variance)
    check(lambda x, y, v: F.gaussian_nll_loss(x, y, v), x, y, variance.reshape(3))
    with pytest.raises(ValueError, match="var is of incorrect size"):
        compiled(Plain(F.gaussian_nll_loss), (x, y, random(1, 1)), training=False)


def test_a_batch_of_ignored_labels_alone_has_gradient_zero():
    check(F.cross_entropy, random(3, 5), arguments=(torch.full((3,), -100),))


def test_a_divergence_by_samples_is_a_loss():
    class Divergence(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scores = torch.nn.Parameter(random(2, 3))

        def forward(self, target):
            return F.kl_div(self.scores.log_softmax(1), target, reduction="batchmean")

    module, target = Divergence(), random(2, 3, seed=1).softmax(1)
    machine = compiled(module, (target,), training=True)
    module(target).backward()
    agrees(machine.run((target,))[0], module(target).detach(), "the loss")
    agrees(machine.engine.readTensor("gradient/scores"), module.scores.grad, "the gradient")
