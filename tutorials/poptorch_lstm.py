"""The recurrent network of `digits_lstm`, written in PyTorch for PopTorch.

An LSTM of 64 units takes the eight rows of a digit one after the other; what it puts out after the last row goes
through a linear layer and says which digit it was. It needs PyTorch, the extra ``pytorch``.

    pypoplar tutorial poptorch_lstm             15 epochs on the 1,797 digits that come with pypoplar
    pypoplar tutorial poptorch_lstm 3 --half    in half precision

What to look at
- The module is an ordinary one. In training its `forward` returns the loss beside the outputs.
- `poptorch.trainingModel` captures it with the first batch, forward and backward, and trains its weights in place;
  `poptorch.inferenceModel` uses the same weights.
- The LSTM is one loop on the device, forward and backward, however many rows there are: see the report's modules.
- `deviceIterations` lets one call do several steps: `DataLoader` gives batches for all of them.

Exercises
1. Compare the cycles of a step with those of `digits_lstm`. What does the front end do more?
2. Replace `nn.LSTM` by `nn.GRU`, then by two layers of it.
3. Give `deviceIterations` another number. What changes in the losses that come back, what in the cycles of a call?
"""

import argparse

import torch
from _arguments import number
from _digits import uci_parts
from torch import nn

from pypoplar import poptorch

ROWS = COLUMNS = 8
CLASSES = 10


class Reader(nn.Module):
    """Reads a digit row by row."""

    def __init__(self, units=64):
        super().__init__()
        self.lstm = nn.LSTM(COLUMNS, units, batch_first=True)
        self.classes = nn.Linear(units, CLASSES)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, images, labels=None):
        outputs, _ = self.lstm(images)
        scores = self.classes(outputs[:, -1])
        return scores if labels is None else (scores, self.loss(scores, labels))


def digits(type):
    """Images and labels to train on, and those that are kept aside."""
    images, labels, kept_images, kept_labels = map(torch.from_numpy, uci_parts())
    pairs = (images, labels), (kept_images, kept_labels)
    return [(some.reshape(-1, ROWS, COLUMNS).to(type), wanted.to(torch.int64)) for some, wanted in pairs]


def accuracy(model, images, labels, batch):
    """The share of digits that a model tells right."""
    inference = poptorch.inferenceModel(model.eval(), poptorch.Options().deviceIterations(10))
    size = 10 * batch
    whole = len(images) // size * size
    right = sum((inference(some).argmax(1) == wanted).sum() for some, wanted in _parts(images, labels, whole, size))
    return float(right) / whole


def _parts(images, labels, whole, size):
    return zip(images[:whole].split(size), labels[:whole].split(size), strict=True)


def arguments(given=None):
    parser = argparse.ArgumentParser(description="Train an LSTM of PyTorch on a simulated IPU.")
    parser.add_argument("epochs", type=number(int, 0), nargs="?", default=15, help="rounds over the images (15)")
    parser.add_argument("--half", action="store_true", help="compute in half precision")
    parser.add_argument("--rate", type=number(float, 0), default=0.3, help="step of the descent (0.3)")
    parser.add_argument("--batch", type=number(int, 1), default=8, help="images of a step (8)")
    parser.add_argument("--steps", type=number(int, 1), default=25, help="steps of a call (25)")
    parser.add_argument("--seed", type=number(int, 0), default=0, help="of the first weights and the order (0)")
    return parser.parse_args(given)


def main(given=None):
    chosen = arguments(given)
    torch.manual_seed(chosen.seed)
    type = torch.float16 if chosen.half else torch.float32
    (images, labels), kept = digits(type)
    model = Reader().to(type)
    options = poptorch.Options().deviceIterations(chosen.steps).outputMode(poptorch.OutputMode.All)
    data = poptorch.DataLoader(
        options, torch.utils.data.TensorDataset(images, labels), batch_size=chosen.batch, shuffle=True, drop_last=True
    )
    training = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=chosen.rate))
    print(f"Training on {len(images):,} images")
    for epoch in range(1, chosen.epochs + 1):
        losses = [training(some, wanted)[1].float().mean() for some, wanted in data]
        print(f"Epoch {epoch}: loss {torch.stack(losses).mean():.4f}")
    print(f"Test accuracy: {100 * accuracy(model, *kept, chosen.batch):.1f} %")


if __name__ == "__main__":
    main()
