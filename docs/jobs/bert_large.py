"""Layers of BERT-Large that train on 128 tokens, in half: ``pypoplar predict docs/jobs/bert_large.py -- --layers 1 --batch 8``."""

import argparse

import poptorch
import torch

UNITS, HEADS, TOKENS = 1024, 16, 128

parser = argparse.ArgumentParser()
parser.add_argument("--layers", type=int, default=1)
parser.add_argument("--batch", type=int, default=8)
given = parser.parse_args()


class Layers(torch.nn.Module):
    """Layers alone, without embeddings; a loss of their output's size."""

    def __init__(self):
        super().__init__()
        layers = (
            torch.nn.TransformerEncoderLayer(UNITS, HEADS, 4 * UNITS, 0.1, "gelu", batch_first=True) for _ in range(given.layers)
        )
        self.layers = torch.nn.Sequential(*layers)

    def forward(self, x):
        return poptorch.identity_loss(self.layers(x) ** 2, "mean")


with torch.device("meta"):
    model, x = Layers().half(), torch.empty(given.batch, TOKENS, UNITS, dtype=torch.half)
poptorch.trainingModel(model, optimizer=poptorch.optim.SGD(model.parameters(), lr=0.01))(x)
