"""ResNet-50 that trains in half, in stages on 1 to 4 IPUs: ``pypoplar predict docs/jobs/resnet50.py -- --stages 4 --batch 4``.

With ``--stages 1 --replicas 16 --accumulated 57`` whole on each of 16 IPUs, which sum the gradients of 57 micro-batches.
``--published`` takes the rest as the vendor's public script has it, but for micro-batches, 18 there: images come in eight
bits and are normalised on the device, partial sums are of halves, a convolution may take 0.16 of the memory, and what
lies between the ends of blocks, but for those of the last part, is computed again for the gradients.
"""

import argparse

import poptorch
import torch
from torch import nn

DEPTHS = 3, 4, 6, 3

parser = argparse.ArgumentParser()
parser.add_argument("--stages", type=int, default=4, choices=range(1, 5))
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--replicas", type=int, default=1)
parser.add_argument("--accumulated", type=int, help="micro-batches: 16 of several stages, one of one, if it is left out")
parser.add_argument("--published", action="store_true")
given = parser.parse_args()


def kept(x):
    """What is not computed again."""
    return poptorch.recomputationCheckpoint(x) if given.published else x


class Bottleneck(nn.Module):
    """Three convolutions beside a shortcut."""

    def __init__(self, wide, narrow, stride, keeps_all):
        super().__init__()
        self.keep = kept if keeps_all else nn.Identity()
        sizes = (wide, narrow, 1, 1), (narrow, narrow, 3, stride), (narrow, 4 * narrow, 1, 1)
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, k, s, k // 2, bias=False) for a, b, k, s in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for _, b, _, _ in sizes)
        changed = nn.Conv2d(wide, 4 * narrow, 1, stride, bias=False), nn.BatchNorm2d(4 * narrow)
        self.shortcut = nn.Identity() if wide == 4 * narrow and stride == 1 else nn.Sequential(*changed)

    def forward(self, x):
        y = x
        for number, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            y = self.keep(norm(self.keep(convolution(y))))
            y = torch.relu(y) if number < 2 else y
        return torch.relu(kept(self.shortcut(x) + y))


class ResNet50(nn.Module):
    """The network with its loss; its four parts lie on as many IPUs as there are stages, or share the last."""

    def __init__(self):
        super().__init__()
        first = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.stem = nn.Sequential(first, nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.parts, wide = nn.ModuleList(), 64
        for number, depth in enumerate(DEPTHS):
            narrow, blocks = 64 << number, []
            for block in range(depth):
                blocks.append(Bottleneck(wide, narrow, 2 if block == 0 and number else 1, number == len(DEPTHS) - 1))
                wide = 4 * narrow
            self.parts.append(nn.Sequential(*blocks))
        self.head = nn.Linear(wide, 1000)

    def forward(self, x, labels):
        with poptorch.Block("stem", ipu_id=0):
            x = self.stem((x.half() - 118) / 58 if given.published else x)
        for number, part in enumerate(self.parts):
            with poptorch.Block(f"part{number}", ipu_id=min(number, given.stages - 1)):
                x = part(x)
        with poptorch.Block("head", ipu_id=given.stages - 1):
            y = self.head(x.mean((2, 3)))
            return y, nn.functional.cross_entropy(y, labels)


options = poptorch.Options()
accumulated = given.accumulated or (16 if given.stages > 1 else 1)
options.replicationFactor(given.replicas).broadcastBuffers(False).Training.gradientAccumulation(accumulated)
if given.published:
    options.Precision.setPartialsType(torch.half)
    options.setAvailableMemoryProportion({f"IPU{ipu}": 0.16 for ipu in range(given.stages)})
    options._Popart.set("autoRecomputation", 3)
count = given.replicas * accumulated * given.batch
with torch.device("meta"):
    model = ResNet50().half()
    images = torch.empty(count, 3, 224, 224, dtype=torch.uint8 if given.published else torch.half)
    labels = torch.empty(count, dtype=torch.long)
optimizer = poptorch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, use_combined_accum=False)
poptorch.trainingModel(model, options, optimizer)(images, labels)
