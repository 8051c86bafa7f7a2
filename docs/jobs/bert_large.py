"""Layers of BERT-Large that train on 128 tokens, in half: ``pypoplar predict docs/jobs/bert_large.py -- --layers 1 --batch 8``.

With ``--stages 4`` they are as many stages of a pipeline, an IPU each; with ``--replicas 16``, too, on 64 IPUs, which sum the
gradients of as many micro-batches as ``--accumulated`` says. ``--stages 3 7 7 7`` gives each stage so many layers. ``--recomputed``
keeps what comes into layers alone, and has what lies between computed again for the gradients; ``--partials half`` adds up products
in half.
"""

import argparse

import poptorch
import torch

UNITS, HEADS, TOKENS = 1024, 16, 128

parser = argparse.ArgumentParser()
parser.add_argument("--layers", type=int, default=1)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--stages", type=int, nargs="+", default=[1], help="how many, or the layers of each")
parser.add_argument("--replicas", type=int, default=1)
parser.add_argument("--accumulated", type=int, help="micro-batches: 16 of several stages, one of one, if it is left out")
parser.add_argument("--recomputed", action="store_true")
parser.add_argument("--partials", choices=("half", "float"), default="float")
given = parser.parse_args()
if len(given.stages) == 1:
    stages = [number * given.stages[0] // given.layers for number in range(given.layers)]
else:
    stages = [stage for stage, layers in enumerate(given.stages) for _ in range(layers)]
if len(stages) != given.layers:
    parser.error(f"--stages has {len(stages)} layers, --layers {given.layers}")


class Layers(torch.nn.Module):
    """Layers alone, without embeddings; a loss of their output's size."""

    def __init__(self):
        super().__init__()
        layers = (
            torch.nn.TransformerEncoderLayer(UNITS, HEADS, 4 * UNITS, 0.1, "gelu", batch_first=True) for _ in range(given.layers)
        )
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x):
        for stage, layer in zip(stages, self.layers, strict=True):
            with poptorch.Block(f"stage{stage}", ipu_id=stage):
                x = layer(x)
                if given.recomputed:
                    x = poptorch.recomputationCheckpoint(x)
        with poptorch.Block("loss", ipu_id=stages[-1]):
            return poptorch.identity_loss(x**2, "mean")


options = poptorch.Options()
accumulated = given.accumulated or (16 if stages[-1] else 1)
options.replicationFactor(given.replicas).Training.gradientAccumulation(accumulated)
options.Precision.setPartialsType(torch.half if given.partials == "half" else torch.float)
if given.recomputed:
    options._Popart.set("autoRecomputation", 3)
with torch.device("meta"):
    model, x = Layers().half(), torch.empty(given.replicas * accumulated * given.batch, TOKENS, UNITS, dtype=torch.half)
poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.01))(x)
