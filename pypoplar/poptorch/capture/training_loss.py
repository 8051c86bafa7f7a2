"""Which output of a training graph is the loss.

PopTorch takes the loss by its operation, wherever it stands among the outputs: that of `identity_loss`, or the one loss function.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from pypoplar.errors import PoplarError
from pypoplar.poptorch.capture.origins import operation_name, origin_of

LOSSES = (
    *("binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy_loss", "ctc_loss"),
    *("hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss", "multi_margin_loss"),
    *("multilabel_margin_loss", "nll_loss", "nll_loss_nd", "nll_loss2d", "poisson_nll_loss", "smooth_l1_loss"),
    *("soft_margin_loss", "triplet_margin_loss"),
)
IDENTITY = "identity_loss"


class LossError(PoplarError, ValueError):
    """A training model without a loss, or with several."""


def loss_of(outputs: list[Any], graph: fx.Graph) -> int:
    """The number of the output that is the loss."""
    marked = _last([node for node in graph.nodes if node.op == "call_function" and operation_name(node) == IDENTITY])
    losses = marked or _last([node for node in graph.nodes if node.op == "call_function" and operation_name(node) in LOSSES])
    if not losses:
        raise LossError(
            "Couldn't find a loss in graph: a training model returns its loss, that of a loss function such as "
            "torch.nn.CrossEntropyLoss, or any value behind poptorch.identity_loss(value, reduction)"
        )
    if len(losses) > 1:
        listed = "; ".join(str(origin_of(node)) for node in losses)
        raise LossError(
            "Multiple independent losses found in graph. Graph must have one final loss. "
            f"Wrap final graph loss in poptorch.identity_loss. There are {len(losses)}: {listed}"
        )
    return _output(_batch_mean(losses[0], outputs) or losses[0], outputs)


def _batch_mean(loss: fx.Node, outputs: list[Any]) -> fx.Node | None:
    """The output that is a divergence over the number of samples: what ``reduction="batchmean"`` becomes."""
    if operation_name(loss) != "kl_div":
        return None
    samples = loss.args[0].meta["val"].shape[:1]
    means = [one for one in outputs if isinstance(one, fx.Node) and operation_name(one) == "div" and one.args[0] is loss]
    return next((one for one in means if [one.args[1]] == list(samples)), None)


def _last(losses: list[fx.Node]) -> list[fx.Node]:
    """Those of losses that no other of them is computed from."""
    earlier = {before for loss in losses for before in _ancestors(loss) if before is not loss}
    return [loss for loss in losses if loss not in earlier]


def _ancestors(node: fx.Node) -> set[fx.Node]:
    found: set[fx.Node] = set()
    waiting = [node]
    while waiting:
        for before in waiting.pop().all_input_nodes:
            if before not in found:
                found.add(before)
                waiting.append(before)
    return found


def _output(loss: fx.Node, outputs: list[Any]) -> int:
    if loss not in outputs:
        behind = [str(origin_of(one)) for one in outputs if isinstance(one, fx.Node) and loss in _ancestors(one)]
        hint = f"; {behind[0]} is computed from it: mark that as poptorch.identity_loss(value, 'none')" if behind else ""
        raise LossError(f"a training model returns its loss; {origin_of(loss)} is not among the outputs{hint}")
    value = loss.meta["val"]
    if not isinstance(value, torch.Tensor) or value.numel() != 1 or not value.dtype.is_floating_point:
        raise LossError(
            f"a loss is one floating-point number; {origin_of(loss)} gives {tuple(value.shape)} of {value.dtype}: "
            "take its mean or sum"
        )
    return outputs.index(loss)
