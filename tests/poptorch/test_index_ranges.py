"""Indices that come with a call are checked before it runs."""

import pytest
import torch
import torch.nn.functional as F
from poptorch_rig import Plain, compiled

from pypoplar import poptorch
from pypoplar.errors import PoplarIndexError
from pypoplar.poptorch.executor import building


def refused(function, good, bad, message):
    """Arguments that are in range run, others are refused with a message."""
    machine = compiled(Plain(function), good, training=False, tiles=2)
    machine.run(good)
    with pytest.raises(PoplarIndexError, match=message):
        machine.run(bad)


def test_labels_out_of_range_are_refused():
    x, labels = torch.zeros(3, 4), torch.tensor([0, 3, -100])
    message = r"the argument arguments_1 is 4 at \[1\]: cross_entropy_loss of the model at .*:\d+: .* takes 0 to 3, or -100"
    refused(lambda x, y: F.cross_entropy(x, y), (x, labels), (x, torch.tensor([0, 4, 1])), message)
    refused(lambda x, y: F.cross_entropy(x, y), (x, labels), (x, torch.tensor([0, -1, 1])), "is -1 at")
    wide = torch.zeros(2, 3, 2)
    refused(lambda x, y: F.nll_loss(x, y), (wide, labels.new_zeros(2, 2)), (wide, labels.new_full((2, 2), 3)), "takes 0 to 2")
    refused(lambda y: F.one_hot(y - 1, 3), (labels[1:2],), (labels[:1],), "computed from arguments_0 is -1 at .*: one_hot of")


def test_indices_out_of_range_are_refused():
    table, index = torch.zeros(5, 2), torch.tensor([[1, 4, 9]])
    last = torch.tensor([[1, 5, 9]])
    refused(
        lambda t, i: F.embedding(i[:, :2] * 1, t), (table, index), (table, last), r"computed from .* is 5 at \[0, 1\]: embedding"
    )
    refused(lambda t, i: t[i], (table, index[0, :2] - 5), (table, index[0, :2] - 7), "takes -5 to 4")
    refused(lambda t, i: t.gather(1, i), (table, index % 2), (table, index), "takes 0 to 1")
    refused(lambda t, i: t.index_select(0, i.long()), (table, table[:, 0]), (table, table[:, 0] - 1), "takes 0 to 4")


def test_batches_of_a_call_are_checked_each(monkeypatch):
    monkeypatch.setattr(building, "TILES", 4)
    options = poptorch.Options().deviceIterations(2)
    model = poptorch.inferenceModel(Plain(lambda t, i: t[i[0]]), options)
    table, index = torch.arange(6.0).reshape(6, 1), torch.tensor([[1, 2], [7, 7], [0, 1], [7, 7]])
    assert model(table, index).flatten().tolist() == [1, 2, 3, 4]
    with pytest.raises(PoplarIndexError, match=r"is 3 at \[0\] of batch 1"):
        model(table, index.masked_fill(index == 0, 3))


PARTS = [
    (lambda t, i: t[tuple(i.unbind(-1))], "computed from .* is 9 at"),
    (lambda t, i: t[tuple(part.squeeze(-1) for part in i.split(1, -1))], "computed from .* is 9 at"),
    (lambda t, i: t[i.chunk(2, -1)[0].squeeze(-1)], None),
    (lambda t, i: t[0][i.sort(0)[0]], None),
    (lambda t, i: t[0][i.max(0).values], None),
]


@pytest.mark.parametrize(("function", "message"), PARTS)
def test_indices_may_be_parts_of_an_argument(function, message):
    table, index = torch.arange(12.0).reshape(3, 4), torch.tensor([[0, 1], [1, 2]])
    machine = compiled(Plain(function), (table, index), training=False, tiles=2)
    assert torch.equal(machine.run((table, index))[0], function(table, index))
    if message is not None:
        with pytest.raises(PoplarIndexError, match=message):
            machine.run((table, torch.tensor([[0, 9], [1, 2]])))
