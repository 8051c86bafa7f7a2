"""BERT-tiny, written in PyTorch for PopTorch: it learns to fill in words that are left out.

Two layers of a transformer, 128 wide with two heads, stand on embeddings of words and places; the table of words is
also the matrix that tells them. The texts count: each starts somewhere and goes on in steps of one length, so that a
hidden word follows from its neighbours. It needs PyTorch, the extra ``pytorch``.

    pypoplar tutorial poptorch_bert         200 steps
    pypoplar tutorial poptorch_bert 20      fewer of them

What to look at
- Parameters that are used twice, as the table of words here, are one tensor on the device and get both gradients.
- Words that are not hidden have the label -100: `cross_entropy` leaves them out.
- `poptorch.optim.AdamW` has its states on the device; between calls nothing but batches and losses moves.

Exercises
1. Which module takes most cycles? Look at `training.getReport()`.
2. Put the layers on two IPUs with `poptorch.BeginBlock`. What does the exchange between them cost?
3. Train `model.half()`; what does `poptorch.optim.AdamW` keep in float then?
"""

import argparse

import torch
from _arguments import number
from torch import nn

from pypoplar import poptorch

HIDDEN_WORD = 0  # stands for a word that is left out
LEFT_OUT = -100  # the label of a word that is not asked for


class TinyBert(nn.Module):
    """Embeddings, layers of a transformer, and what tells the words."""

    def __init__(self, words=64, length=16, width=128, heads=2, layers=2):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.bias = nn.Parameter(torch.zeros(words))
        self.register_buffer("order", torch.arange(length))
        nn.init.normal_(self.words.weight, std=0.02)
        nn.init.normal_(self.places.weight, std=0.02)

    def forward(self, text, labels=None):
        read = self.norm(self.words(text) + self.places(self.order))
        scores = nn.functional.linear(self.encoder(read), self.words.weight, self.bias)
        if labels is None:
            return scores
        return scores, nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), ignore_index=LEFT_OUT)


def texts(count, words, length, generator):
    """Texts that count in steps, with some words hidden, and those words."""
    first = torch.randint(1, words, (count, 1), generator=generator)
    step = torch.randint(1, 4, (count, 1), generator=generator)
    whole = (first + step * torch.arange(length) - 1) % (words - 1) + 1
    hidden = torch.rand(count, length, generator=generator) < 0.2
    return whole.masked_fill(hidden, HIDDEN_WORD), whole.masked_fill(~hidden, LEFT_OUT)


def arguments(given=None):
    parser = argparse.ArgumentParser(description="Train BERT-tiny of PyTorch on a simulated IPU.")
    parser.add_argument("steps", type=number(int, 1), nargs="?", default=200, help="steps of training (200)")
    parser.add_argument("--rate", type=number(float, 0), default=1e-3, help="learning rate (0.001)")
    parser.add_argument("--batch", type=number(int, 1), default=8, help="texts of a step (8)")
    parser.add_argument("--width", type=number(int, 2), default=128, help="of the layers, an even number (128)")
    parser.add_argument("--seed", type=number(int, 0), default=0, help="of the first weights and the texts (0)")
    return parser.parse_args(given)


def main(given=None):
    chosen = arguments(given)
    torch.manual_seed(chosen.seed)
    generator = torch.Generator().manual_seed(chosen.seed)
    model = TinyBert(width=chosen.width)
    words, length = model.words.num_embeddings, model.places.num_embeddings
    training = poptorch.trainingModel(model, optimizer=poptorch.optim.AdamW(model.parameters(), lr=chosen.rate))
    print(f"Training {sum(one.numel() for one in model.parameters()):,} parameters")
    for step in range(1, chosen.steps + 1):
        _, loss = training(*texts(chosen.batch, words, length, generator))
        if step % 10 == 0 or step == chosen.steps:
            print(f"Step {step}: loss {float(loss):.4f}")
    inference = poptorch.inferenceModel(model.eval())
    read, wanted = texts(chosen.batch, words, length, generator)
    asked = wanted != LEFT_OUT
    right = (inference(read).argmax(-1) == wanted)[asked].float().mean()
    print(f"Words told right: {100 * float(right):.0f} %")


if __name__ == "__main__":
    main()
