"""Layers of BERT-Large that train on 128 tokens, in half: ``pypoplar predict docs/jobs/bert_large.py -- --layers 1 --batch 8``.

With ``--stages 4`` they are as many stages of a pipeline, an IPU each; with ``--replicas 16``, too, on 64 IPUs.
"""

import argparse

import poptorch
import torch

UNITS, HEADS, TOKENS = 1024, 16, 128
ACCUMULATED = 16

parser = argparse.ArgumentParser()
parser.add_argument("--layers", type=int, default=1)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--stages", type=int, default=1)
parser.add_argument("--replicas", type=int, default=1)
given = parser.parse_args()


class Layers(torch.nn.Module):
    """Layers alone, without embeddings; a loss of their output's size."""

    def __init__(self):
        super().__init__()
        layers = (
            torch.nn.TransformerEncoderLayer(UNITS, HEADS, 4 * UNITS, 0.1, "gelu", batch_first=True) for _ in range(given.layers)
        )
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            stage = number * given.stages // given.layers
            with poptorch.Block(f"stage{stage}", ipu_id=stage):
                x = layer(x)
        with poptorch.Block("loss", ipu_id=given.stages - 1):
            return poptorch.identity_loss(x**2, "mean")


options = poptorch.Options()
accumulated = ACCUMULATED if given.stages > 1 else 1
options.replicationFactor(given.replicas).Training.gradientAccumulation(accumulated)
with torch.device("meta"):
    model, x = Layers().half(), torch.empty(given.replicas * accumulated * given.batch, TOKENS, UNITS, dtype=torch.half)
poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.01))(x)
