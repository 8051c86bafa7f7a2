"""EfficientNet-B4 that trains in half: ``pypoplar predict docs/jobs/efficientnet_b4.py -- --replicas 8 --accumulated 64``.

As Graphcore's examples have it: convolutions of groups of 16 channels, four times as many channels within a block, group norms, and
two IPUs a replica, of which the second begins with the second norm of block 10. ``--blocks 8`` takes the first eight blocks alone.
``--published`` takes the rest as the vendor's public script has it: images come in eight bits, products are added up in half,
convolutions have a tenth of the memory, two early blocks and what comes into stages are kept and all else is computed again for the
gradients, and the optimizer is RMSProp.
"""

import argparse
import math

import poptorch
import torch
from torch import nn

WIDTH, DEPTH, SIDE = 1.4, 1.8, 380
KINDS = (16, 1, 1, 3), (24, 2, 2, 3), (40, 2, 2, 5), (80, 3, 2, 3), (112, 3, 1, 5), (192, 4, 2, 5), (320, 1, 1, 3)
"""Channels, blocks, stride of the first of them and side of the kernel, of the smallest network of the family."""
SPLIT = sum(math.ceil(DEPTH * repeats) for _, repeats, _, _ in KINDS[:3])
"""The block in which the second IPU begins: the first one of the fourth kind."""
CHECKPOINTS = 3, 5
"""Blocks whose results are kept: the second and the fourth that skip."""

parser = argparse.ArgumentParser()
parser.add_argument("--stages", type=int, default=2, choices=(1, 2))
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--blocks", type=int, default=32)
parser.add_argument("--replicas", type=int, default=1)
parser.add_argument("--accumulated", type=int, help="micro-batches: 16 of two stages, one of one, if it is left out")
parser.add_argument("--published", action="store_true")
given = parser.parse_args()


def channels(of_smallest):
    """So many as the width makes of them, a multiple of 8."""
    return max(8, int(of_smallest * WIDTH + 4) // 8 * 8)


def normed(wide, narrow, kernel, stride=1, groups=1):
    """A convolution without a bias, and the norm behind it."""
    return nn.Conv2d(wide, narrow, kernel, stride, kernel // 2, groups=groups, bias=False), nn.GroupNorm(4, narrow)


class Block(nn.Module):
    """More channels, a convolution by groups, a share of each channel by all of them, and fewer channels again."""

    def __init__(self, wide, narrow, stride, kernel, expansion):
        super().__init__()
        inner = expansion * wide
        layers = [*normed(wide, inner, 1), nn.SiLU()] if expansion > 1 else []
        convolution, norm = normed(inner, inner, kernel, stride, max(1, inner // 16))
        self.first, self.norm = nn.Sequential(*layers, convolution), nn.Sequential(norm, nn.SiLU())
        self.last = nn.Sequential(*normed(inner, narrow, 1))
        squeezed = max(1, wide // 4)
        self.shares = nn.Sequential(nn.Conv2d(inner, squeezed, 1), nn.SiLU(), nn.Conv2d(squeezed, inner, 1), nn.Sigmoid())
        self.skips = stride == 1 and wide == narrow

    def rest(self, y, x):
        """What follows the convolution by groups."""
        y = self.norm(y)
        y = self.last(y * self.shares(y.mean((2, 3), keepdim=True)))
        return x + y if self.skips else y


class EfficientNet(nn.Module):
    """The network with its loss."""

    def __init__(self):
        super().__init__()
        wide, blocks = channels(32), []
        self.stem = nn.Sequential(*normed(3, wide, 3, 2), nn.SiLU())
        for kind, (narrow, repeats, stride, kernel) in enumerate(KINDS):
            for number in range(math.ceil(DEPTH * repeats)):
                blocks.append(Block(wide, channels(narrow), 1 if number else stride, kernel, 4 if kind else 1))
                wide = channels(narrow)
        self.blocks = nn.ModuleList(blocks[: given.blocks])
        wide = self.blocks[-1].last[0].out_channels
        self.last = nn.Sequential(*normed(wide, 4 * wide, 1), nn.SiLU())
        self.head = nn.Linear(4 * wide, 1000)

    def forward(self, x, labels):
        with poptorch.Block("stem", ipu_id=0):
            x = self.stem((x.half() - 118) / 58 if given.published else x)
        last = given.stages - 1
        for number, block in enumerate(self.blocks):
            with poptorch.Block(f"block{number}", ipu_id=last * (number > SPLIT)):
                y = block.first(x)
            with poptorch.Block(f"rest of block{number}", ipu_id=last * (number >= SPLIT)):
                x = block.rest(y, x)
                if given.published and number in CHECKPOINTS:
                    x = poptorch.recomputationCheckpoint(x)
        with poptorch.Block("head", ipu_id=last):
            y = self.head(self.last(x).mean((2, 3)))
            return y, nn.functional.cross_entropy(y, labels)


options = poptorch.Options()
accumulated = given.accumulated or (16 if given.stages > 1 else 1)
options.replicationFactor(given.replicas).Training.gradientAccumulation(accumulated)
count = given.replicas * accumulated * given.batch
if given.published:
    options.Precision.setPartialsType(torch.half)
    options.setAvailableMemoryProportion({f"IPU{ipu}": 0.1 for ipu in range(given.stages)})
    options._Popart.set("autoRecomputation", 3)
with torch.device("meta"):
    model, labels = EfficientNet().half(), torch.empty(count, dtype=torch.long)
    images = torch.empty(count, 3, SIDE, SIDE, dtype=torch.uint8 if given.published else torch.half)
if given.published:
    optimizer = poptorch.optim.RMSprop(
        model.parameters(), lr=0.1, alpha=0.953125, eps=1e-3, weight_decay=1e-5, momentum=0.9, use_tf_variant=True
    )
else:
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, use_combined_accum=False)
poptorch.trainingModel(model, options, optimizer)(images, labels)
