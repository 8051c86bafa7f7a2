"""What a training step of a residual network would cost, by batch and by the number of IPUs: nothing is trained.

The network is ResNet-50's, with as many blocks and pixels as one asks for. Its tensors are on PyTorch's device "meta":
they have shapes and no values, so that weights need not fit the host, and no data is needed. It needs PyTorch, the
extra ``pytorch``.

    pypoplar tutorial poptorch_predict                                one block in each of two parts, images of 32 x 32
    pypoplar tutorial poptorch_predict --batches 4 --ipus 1 --depths 3,4 --side 64

ResNet-50 itself has ``--depths 3,4,6,3 --side 224``. On four IPUs with ``--batches 4 --accumulate 16`` its prediction
takes two to three minutes and 5 GB.

What to look at
- `predict` takes what a call would. Items are the images of a call: batch times accumulated batches.
- The share of the peak rises with the batch, as what a step pays once, syncs and the update, is shared by more
  images. Where a tile is over its memory, the row says so, and the figure is that of a machine on which it would fit.
- Two IPUs hold twice as much. Stages of a pipeline work at the same time, on several micro-batches.
- The last line is what the figures leave out.

Exercises
1. Let the gradients of 16 batches be accumulated. What does an image cost then, and why?
2. What would it be on four replicas, each with a batch of its own?
3. What do halves bring? Leave the network in float.
"""

import argparse

import torch
from _arguments import number
from torch import nn

from pypoplar import poptorch, sweep

CLASSES = 1000


class Bottleneck(nn.Module):
    """Convolutions of 1x1, 3x3 and 1x1 with their norms, beside a shortcut."""

    def __init__(self, wide, narrow, stride):
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(wide, narrow, 1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU()),
            *(nn.Conv2d(narrow, narrow, 3, stride, 1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU()),
            *(nn.Conv2d(narrow, 4 * narrow, 1, bias=False), nn.BatchNorm2d(4 * narrow)),
        )
        changed = nn.Conv2d(wide, 4 * narrow, 1, stride, bias=False), nn.BatchNorm2d(4 * narrow)
        self.shortcut = nn.Identity() if wide == 4 * narrow and stride == 1 else nn.Sequential(*changed)

    def forward(self, x):
        return torch.relu(self.layers(x) + self.shortcut(x))


class Network(nn.Module):
    """A stem, parts of so many bottlenecks each, and classes; the parts are shared out to IPUs."""

    def __init__(self, depths, ipus):
        super().__init__()
        self.ipus = ipus
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.parts, wide = nn.ModuleList(), 64
        for part, depth in enumerate(depths):
            narrow, blocks = 64 << part, []
            for block in range(depth):
                blocks.append(Bottleneck(wide, narrow, 2 if block == 0 and part else 1))
                wide = 4 * narrow
            self.parts.append(nn.Sequential(*blocks))
        self.head = nn.Linear(wide, CLASSES)

    def forward(self, x, labels):
        with poptorch.Block("stem", ipu_id=0):
            x = self.stem(x)
        for part, blocks in enumerate(self.parts):
            with poptorch.Block(f"part{part}", ipu_id=part * self.ipus // len(self.parts)):
                x = blocks(x)
        with poptorch.Block("head", ipu_id=self.ipus - 1):
            scores = self.head(x.mean((2, 3)))
            return scores, nn.functional.cross_entropy(scores, labels)


def predicted(batch, ipus, chosen):
    """What a call costs that accumulates the gradients of some batches, and updates the weights once."""
    options = poptorch.Options()
    options.Training.gradientAccumulation(chosen.accumulate)
    images = batch * chosen.accumulate
    with torch.device("meta"):
        model = Network(chosen.depths, ipus).half()
        x, labels = torch.empty(images, 3, chosen.side, chosen.side, dtype=torch.half), torch.empty(images, dtype=torch.long)
    training = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.1))
    return training.predict(x, labels)


def told(prediction):
    """A line of figures."""
    memory = f"{prediction.fullest_tile.bytes:,} B on the fullest tile" + ("" if not prediction.does_not_fit else ", too many")
    shares = ", ".join(f"{name} {prediction.shares[name]:.0%}" for name in ("compute", "exchange", "sync"))
    return f"{prediction.items_per_second:,.0f} images/s, {prediction.share_of_peak:.1%} of the peak; {shares}; {memory}"


def numbers(text):
    """Whole numbers with commas between them."""
    return [number(int, 1)(one) for one in text.split(",")]


def arguments(given=None):
    parser = argparse.ArgumentParser(description="Predict what training a residual network costs, by batch and number of IPUs.")
    parser.add_argument("--batches", type=numbers, default=[1, 4], help="images of a batch (1,4)")
    parser.add_argument("--ipus", type=numbers, default=[1, 2], help="IPUs that the parts are shared out to (1,2)")
    parser.add_argument("--depths", type=numbers, default=[1, 1], help="blocks of each part (1,1)")
    parser.add_argument("--side", type=number(int, 32), default=32, help="pixels of an image's side (32)")
    parser.add_argument("--accumulate", type=number(int, 1), default=4, help="batches of an update (4)")
    return parser.parse_args(given)


def main(given=None):
    chosen = arguments(given)
    cases = [{"batch": batch, "ipus": ipus, "chosen": chosen} for ipus in chosen.ipus for batch in chosen.batches]
    table = sweep(predicted, cases)
    for row in table.rows:
        print(f"IPUs {row.case['ipus']}, batch {row.case['batch']}: {told(row.result) if row.result is not None else row.failed}")
    last = table.rows[-1].result
    if last is not None:
        dearest = ", ".join(f"{one.name} {one.share:.0%} ({one.bound_by})" for one in last.modules[:3])
        print(f"The dearest of the last: {dearest}\n{last.validity}")


if __name__ == "__main__":
    main()
