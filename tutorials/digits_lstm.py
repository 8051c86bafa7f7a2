"""A recurrent network that reads handwritten digits line by line, trained on the simulated IPU.

An LSTM of 64 units takes the eight rows of a digit one after the other; what it puts out after the last row goes
through a linear layer and says which digit it was.

    pypoplar tutorial digits_lstm                          15 epochs on the 1,797 digits that come with pypoplar
    pypoplar tutorial digits_lstm 3 --half --page lstm.html

What to look at
- `lstmFwd` makes one loop, whatever the number of steps: the program has the cell once. The loop keeps what the
  backward pass needs of each step, and `lstmBwdWithWU` goes through them in reverse.
- The states before the first step are zeros, filled in by `zeroInitialState` in each step of training.
- Only the last output is used, so `outputFullSequence` is off, and no gradient of the input is asked for.

Exercises
1. How many cycles does a step of the loop take? Give the network the 64 pixels as 64 steps of one.
2. Try the option `preCalcWeights`: the product of all inputs comes before the loop.
3. Replace `lstm` by `gru`. What changes in the calls, what in the cycles?
"""

import argparse

import numpy as np
from _arguments import number
from _digits import uci_parts
from _layers import CrossEntropy, Linear, Shared, new_graph
from _training import Parameters, Trainer, learn, print_prediction

from pypoplar import FLOAT, HALF, poplin, popnn, popops
from pypoplar.program import Call, Sequence

ROWS = COLUMNS = 8
UNITS = 64
CLASSES = 10


class Recurrent:
    """An LSTM over the rows of images; its result is the last output."""

    def __init__(self, shared, name):
        self.shared, self.name = shared, name
        graph, plans = shared.graph, shared.plans
        self.params = popnn.lstm.LstmParams(shared.type, shared.batch, ROWS, [COLUMNS, UNITS])
        self.params.outputFullSequence = False
        self.params.calcInputGradients = False
        self.state = popnn.lstm.createInitialState(graph, self.params, name, {}, plans)
        self.weights = popnn.lstm.createWeights(graph, self.params, name, {}, plans)
        for kind in ("inputWeights", "outputWeights", "biases"):
            shared.parameters.add(f"{name}/{kind}", getattr(self.weights, kind))

    def input(self):
        """A tensor [batch, rows, columns] for images."""
        rows = popnn.lstm.createInput(self.shared.graph, self.params, f"{self.name}/input", {}, self.shared.plans)
        return rows.dimShuffle([1, 0, 2])

    def forward(self, x, prog):
        graph, plans, name = self.shared.graph, self.shared.plans, f"{self.name}/forward"
        self.rows = x.dimShuffle([1, 0, 2])
        popnn.lstm.zeroInitialState(graph, self.state, prog, name)
        results = popnn.lstm.lstmFwd(graph, self.params, self.state, self.rows, self.weights, prog, name, {}, plans)
        self.output, _, self.kept = results
        return self.output

    def backward(self, gradient, prog):
        graph, plans, name = self.shared.graph, self.shared.plans, f"{self.name}/backward"
        _, _, gradients = popnn.lstm.lstmBwdWithWU(
            graph, self.params, prog, self.state, self.kept, self.weights, self.rows, self.output, gradient, None, name, {}, plans
        )
        for kind in ("inputWeights", "outputWeights", "biases"):
            self.shared.parameters.update(f"{self.name}/{kind}", getattr(gradients, kind), prog)


def build(type, batch, steps, rate, tiles):
    """The compiled network with its training step and its test program."""
    device, graph = new_graph(tiles, popops, poplin, popnn)

    def descend(master, gradient, prog, name):  # the loss is the mean over the batch, gradients are sums over it
        popops.scaledAddTo(graph, master, gradient, -rate / batch, prog, name)

    shared = Shared(graph, type, batch, Parameters(graph, type, descend))
    recurrent, linear = Recurrent(shared, "lstm"), Linear(shared, "linear", batch, UNITS, CLASSES)
    images, loss = recurrent.input(), CrossEntropy(shared, CLASSES)

    forward = Sequence()
    loss.forward(linear.forward(recurrent.forward(images, forward), forward), forward)
    forward = graph.addFunction(forward)
    train = Sequence([Call(forward)])
    recurrent.backward(linear.backward(loss.gradient, train), train)

    inputs = {"images": images, "labels": loss.labels}
    return Trainer(device, shared.parameters, inputs, loss.outputs, train, Sequence([Call(forward)]), steps)


def initial(shapes, seed):
    """Parameters drawn evenly from plus and minus 1 / sqrt(units), as PyTorch draws them."""
    random, bound = np.random.default_rng(seed), UNITS**-0.5
    return {name: random.uniform(-bound, bound, shape).astype(np.float32) for name, shape in shapes.items()}


def arguments(given=None):
    parser = argparse.ArgumentParser(description="Train an LSTM on a simulated IPU.")
    parser.add_argument("epochs", type=number(int, 0), nargs="?", default=15, help="rounds over the images (15)")
    parser.add_argument("--half", action="store_true", help="compute in half precision, with float master weights")
    parser.add_argument("--rate", type=number(float, 0), default=0.3, help="step of the descent (0.3)")
    parser.add_argument("--batch", type=number(int, 1), default=8, help="images of a step (8)")
    parser.add_argument("--steps", type=number(int, 1), default=25, help="steps of a run of the program (25)")
    parser.add_argument("--tiles", type=number(int, 1), default=1472, help="tiles of the IPU (1,472)")
    parser.add_argument("--seed", type=number(int, 0), default=0, help="of the first weights and the order (0)")
    parser.add_argument("--page", metavar="FILE", help="write what a run cost as an HTML page")
    return parser.parse_args(given)


def main(given=None):
    chosen = arguments(given)
    parts = uci_parts()
    type = HALF if chosen.half else FLOAT
    print(f"Training on {len(parts[1]):,} images with {chosen.tiles:,} tiles, in {type.spelling}")
    trainer = build(type, chosen.batch, chosen.steps, chosen.rate, chosen.tiles)
    trainer.write(initial({name: value.shape for name, value in trainer.read().items()}, chosen.seed))
    learn(trainer, "images", parts, chosen.epochs, chosen.batch, chosen.seed)
    print_prediction(trainer, chosen.batch, chosen.page)


if __name__ == "__main__":
    main()
