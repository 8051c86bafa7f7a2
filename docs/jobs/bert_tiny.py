"""BERT-tiny's inference at batch 1, in half: ``pypoplar predict docs/jobs/bert_tiny.py -- --tokens 128``."""

import argparse

import poptorch
import torch

UNITS, HEADS, LAYERS, VOCABULARY = 128, 2, 2, 30_522

parser = argparse.ArgumentParser()
parser.add_argument("--tokens", type=int, default=128)
TOKENS = parser.parse_args().tokens


class BertTiny(torch.nn.Module):
    """Embeddings, two layers, and two classes of the first token."""

    def __init__(self):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(VOCABULARY, UNITS), torch.nn.Parameter(torch.zeros(TOKENS, UNITS))
        self.norm = torch.nn.LayerNorm(UNITS)
        layer = torch.nn.TransformerEncoderLayer(UNITS, HEADS, 4 * UNITS, 0.0, "gelu", batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = torch.nn.Linear(UNITS, 2)

    def forward(self, words):
        return self.head(self.layers(self.norm(self.words(words) + self.places))[:, 0])


with torch.device("meta"):
    model, words = BertTiny().half().eval(), torch.zeros(1, TOKENS, dtype=torch.int32)
poptorch.inferenceModel(model)(words)
