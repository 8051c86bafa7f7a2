"""Connectionist temporal classification gives PyTorch's losses and gradients."""

import pytest
import torch
import torch.nn.functional as F
from poptorch_rig import Plain, check, compiled

from pypoplar.poptorch import UnsupportedOperation

LABELS = torch.tensor([[1, 2, 2, 4], [3, 1, 4, 0], [2, 3, 0, 0]])  # 0 is the blank, and fills the ends
STEPS, LENGTHS = torch.tensor([9, 8, 9]), torch.tensor([4, 3, 2])


def logits() -> torch.Tensor:
    return torch.randn(9, 3, 5, generator=torch.Generator().manual_seed(1))


def test_losses_of_sequences_are_pytorchs():
    def mean(x, *labels):
        return F.ctc_loss(x.log_softmax(2), *labels, reduction="sum"), F.ctc_loss(x.log_softmax(2), *labels, reduction="none")

    check(mean, logits(), arguments=(LABELS, STEPS, LENGTHS))


def test_the_loss_of_a_label_without_a_path_is_infinite():
    given = logits().log_softmax(2), LABELS, torch.tensor([9, 2, 9]), LENGTHS

    def losses(*given):
        return F.ctc_loss(*given, reduction="none")

    (got,) = compiled(Plain(losses), given, training=False).run(given)
    torch.testing.assert_close(got, losses(*given))


def test_labels_joined_in_one_vector_are_refused():
    with pytest.raises(UnsupportedOperation, match=r"labels \[samples, symbols\]"):
        given = logits().log_softmax(2), LABELS.reshape(-1)[:9], STEPS, LENGTHS
        compiled(Plain(lambda *given: F.ctc_loss(*given, reduction="none")), given, training=False)
