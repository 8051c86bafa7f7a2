"""A small transformer that fills in masked bytes of text, trained on the simulated IPU.

Two layers of attention with two heads, 128 units, read 128 bytes at a time from pypoplar's own documents. Some of the
bytes are hidden, and the network says which they were, as BERT does with words.

    pypoplar tutorial transformer                           4 epochs, four stretches of text a step
    pypoplar tutorial transformer 1 --half --page page.html
    pypoplar tutorial transformer 4 --text FILE             on a text of yours

What to look at
- All of it are library calls: `popops.embedding` plans the table of bytes, `multiSlice` looks them up, and
  `multiUpdateAdd` sums the gradients of equal bytes. Attention is `matMulGrouped`, a product for each head of each
  text, with a softmax between the two of them.
- Matrices of activations have a row for each byte, so that queries, keys and values of all heads are one product;
  the heads are views of its result. No copy is asked for: the products take operands however they lie.
- Every norm and every linear layer is a residual branch: what comes out is added to what went in, and the gradient
  goes both ways.
- Layers are equal but for their parameters. What they do is in the graph once, as functions of `poputil.graphfn`, which
  each of them calls with copies of what is its own.
- AdamW is three expressions, given to one `popops.mapInPlace` over all parameters and both of their moments at once:
  one superstep, however many layers there are.

Exercises
1. `--page` has a view Names. Which part of a layer takes most cycles? Is it compute or exchange?
2. Keep the optimiser's moments where a second call of `mapInPlace` updates each parameter by itself. What does it cost?
3. Use four heads. What changes in the products of attention, and in their cycles?
4. Build each layer by itself, as a `Residual`. What do functions save, and what do they cost?
5. Let `Embedding` serve the last layer, too, as its weights: what must be added to the gradient?
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from _arguments import number
from _layers import CrossEntropy, Linear, NonLinearity, Shared, new_graph, variable
from _training import MASKED, Parameters, Trainer, print_prediction, run_epoch

from pypoplar import FLOAT, HALF, FileLoadError, concat, poplin, popnn, popops, poputil, resources
from pypoplar.popops.expr import Cast, Sqrt, _1, _2, _3, _4, _5, _6
from pypoplar.poputil import graphfn
from pypoplar.program import Call, Copy, Sequence

BYTES = 256  # each is a class; byte 0 is no text, and stands for one that is hidden
TOKENS = 128  # bytes of a text
HIDDEN = 19  # of each text: 15 %, as BERT has it
UNITS = 128
HEADS = 2
LAYERS = 2
GRAIN = 32  # elements of a row that stay on one tile
ADD = popops.Operation.ADD


class AdamW(Parameters):
    """Parameters that move by the mean of their gradients, over its spread, and decay a little in each step."""

    FIRST, SECOND, SMALL, DECAY = 0.9, 0.999, 1e-8, 0.01

    def __init__(self, graph, type, rate, scale):
        """`scale` is what gradients are multiplied by: they are sums over all samples."""
        super().__init__(graph, type, None)
        self.rate, self.scale, self.gradients = rate, scale, {}
        self.powers = variable(graph, FLOAT, [2], "adamw/powers")  # FIRST and SECOND to the number of steps
        graph.createHostWrite("adamw/powers", self.powers)
        self.moments = {}

    def add(self, name, value):
        value = super().add(name, value)
        self.moments[name] = [self.graph.clone(FLOAT, value, f"{name}/{moment}") for moment in ("mean", "square")]
        return value

    def update(self, name, gradient, prog):
        """Keep the gradient until that of every parameter is there."""
        self.gradients[name] = gradient

    def update_all(self, prog):
        """A step of all parameters at once."""
        name = "adamw/update"
        first, second = self.powers[0], self.powers[1]
        popops.mapInPlace(self.graph, _1 * self.FIRST, [first], prog, name)
        popops.mapInPlace(self.graph, _1 * self.SECOND, [second], prog, name)
        for type in (FLOAT, HALF):  # with HALF activations there are gradients of both types
            chosen = [each for each, gradient in self.gradients.items() if gradient.elementType() is type]
            if chosen:
                self._update_of(chosen, prog, name)
        for each in self.values:
            self.refresh(each, prog)

    def _update_of(self, names, prog, name):
        gradient = Cast(_4, FLOAT) * self.scale
        mean = _2 * self.FIRST + gradient * (1 - self.FIRST)
        square = _3 * self.SECOND + gradient * gradient * (1 - self.SECOND)
        step = (mean / (1 - _5)) / (Sqrt(square / (1 - _6)) + self.SMALL)
        value = _1 * (1 - self.rate * self.DECAY) - step * self.rate
        masters = [self.masters[each] for each in names]
        means, squares = zip(*(self.moments[each] for each in names), strict=True)
        gradients = [self.gradients[each] for each in names]
        operands = [one_row(tensors) for tensors in (masters, means, squares, gradients)]
        popops.mapInPlace(self.graph, [value, mean, square], [*operands, self.powers[0], self.powers[1]], prog, name)

    def load(self, prog):
        super().load(prog)
        popops.fill(self.graph, self.powers, prog, 1.0, "adamw/load")
        popops.zero(self.graph, one_row(moment for moments in self.moments.values() for moment in moments), prog, "adamw/load")


def one_row(tensors):
    """The elements of all tensors, one after the other."""
    return concat([tensor.flatten() for tensor in tensors])


class Embedding:
    """A vector for each byte, and one for each place in a text, which is added."""

    def __init__(self, shared, name):
        self.shared, self.name = shared, name
        graph, type = shared.graph, shared.type
        self.plan = popops.embedding.plan(graph, type, BYTES, UNITS, [shared.batch], {})
        table = popops.createSliceableTensor(graph, type, [BYTES, UNITS], [0], [1], self.plan, {}, f"{name}/table")
        self.table = shared.parameters.add(f"{name}/table", table)
        self.tokens = popops.createIndicesTensor(graph, [0], shared.batch, self.plan, {}, "tokens")
        self.places = shared.parameters.add(f"{name}/places", variable(graph, type, [TOKENS, UNITS], f"{name}/places"))
        self.one = graph.addConstant(FLOAT, [], 1.0)
        graph.setTileMapping(self.one, 0)

    def forward(self, prog):
        graph, name = self.shared.graph, f"{self.name}/forward"
        found = popops.multiSlice(graph, self.table, self.tokens, [0], [1], prog, self.plan, {}, name)
        rows = graph.addVariable(self.shared.type, [self.shared.batch, UNITS], f"{self.name}/rows")
        poputil.mapTensorLinearly(graph, rows, GRAIN, GRAIN)
        prog.add(Copy(found.reshape(rows.shape()), rows, name=name))
        texts = rows.reshape([self.shared.batch // TOKENS, TOKENS, UNITS])
        popops.addInPlace(graph, texts, self.places.expand([0]), prog, name)
        return rows

    def backward(self, gradient, prog):
        graph, name, update = self.shared.graph, f"{self.name}/update", self.shared.parameters.update
        texts = gradient.reshape([self.shared.batch // TOKENS, TOKENS, UNITS])
        update(f"{self.name}/places", popops.reduce(graph, texts, FLOAT, [0], popops.ReduceParams(ADD), prog, name), prog)
        table = graph.clone(self.table, f"{self.name}/gradient")
        popops.zero(graph, table, prog, name)
        rows = gradient.reshape([self.shared.batch, 1, UNITS])
        popops.multiUpdateAdd(graph, table, rows, self.tokens, self.one, [0], [1], prog, self.plan, {}, name)
        update(f"{self.name}/table", table, prog)


class LayerNorm:
    """Rows with mean 0 and variance 1, times gamma, plus beta."""

    PARAMETERS, KEPT = ("gamma", "beta"), ("inverse", "whitened")
    EPSILON = 1e-5

    def __init__(self, shared, name):
        self.shared, self.name = shared, name
        for kind in self.PARAMETERS:
            vector = variable(shared.graph, shared.type, [UNITS], f"{name}/{kind}")
            setattr(self, kind, shared.parameters.add(f"{name}/{kind}", vector))

    def forward(self, x, prog):
        graph, name = self.shared.graph, f"{self.name}/forward"
        mean, self.inverse = popnn.ln.layerNormStatistics(graph, x, self.EPSILON, prog, False, True, FLOAT, name)
        y, self.whitened = popnn.ln.layerNormalise(graph, x, self.gamma, self.beta, mean, self.inverse, prog, name)
        return y

    def backward(self, gradient, prog):
        graph, name = self.shared.graph, f"{self.name}/update"
        gamma, beta = popnn.ln.layerNormParamGradients(graph, self.whitened, gradient, prog, FLOAT, name)
        self.shared.parameters.update(f"{self.name}/gamma", gamma, prog)
        self.shared.parameters.update(f"{self.name}/beta", beta, prog)
        name = f"{self.name}/backward"
        return popnn.ln.layerNormGradients(graph, self.whitened, gradient, self.inverse, self.gamma, prog, FLOAT, name)


class Inner(Linear):
    """A linear layer of an equal one, which has to have its biases before it is called."""

    def __init__(self, shared, name, rows, inputs, outputs):
        super().__init__(shared, name, rows, inputs, outputs)
        shapes = [rows, inputs], [inputs, outputs]
        self.add_biases(poplin.createMatMulOutput(shared.graph, shared.type, shared.type, *shapes, name, {}, shared.plans))


class Attention:
    """Each place of a text takes from all of them, head by head: softmax(Q K^T / sqrt(units of a head)) V."""

    KEPT = ("queries", "keys", "values", "shares")

    def __init__(self, shared, name):
        self.shared, self.name = shared, name
        self.scale = (UNITS // HEADS) ** -0.5
        self.texts = shared.batch // TOKENS
        self.before = Inner(shared, f"{name}/queries", shared.batch, UNITS, 3 * UNITS)
        self.after = Inner(shared, f"{name}/output", shared.batch, UNITS, UNITS)
        self.layers = [self.before, self.after]

    def forward(self, x, prog):
        name = f"{self.name}/heads/forward"
        three = self.before.forward(x, prog).reshape([self.texts, TOKENS, 3, HEADS, UNITS // HEADS])
        self.queries, self.keys, self.values = (self._heads(three[:, :, kind]) for kind in range(3))
        scores = self._product(self.queries, self.keys.dimShuffle([0, 2, 1]), prog, name)
        popops.mulInPlace(self.shared.graph, scores, self.scale, prog, name)
        softmax = popnn.NonLinearityType.SOFTMAX_STABLE
        self.shares = popnn.nonLinearity(self.shared.graph, softmax, scores, prog, name)
        taken = self._product(self.shares, self.values, prog, name)
        return self.after.forward(self._rows(taken), prog)

    def backward(self, gradient, prog):
        graph, name = self.shared.graph, f"{self.name}/heads/backward"
        taken = self._heads(self.after.backward(gradient, prog).reshape([self.texts, TOKENS, HEADS, UNITS // HEADS]))
        values = self._product(self.shares.dimShuffle([0, 2, 1]), taken, prog, name)
        shares = self._product(taken, self.values.dimShuffle([0, 2, 1]), prog, name)
        softmax = popnn.NonLinearityType.SOFTMAX_STABLE
        scores = popnn.nonLinearityInputGradient(graph, softmax, self.shares, shares, prog, name)
        popops.mulInPlace(graph, scores, self.scale, prog, name)
        queries = self._product(scores, self.keys, prog, name)
        keys = self._product(scores.dimShuffle([0, 2, 1]), self.queries, prog, name)
        three = concat([self._rows(each) for each in (queries, keys, values)], 1)
        return self.before.backward(three, prog)

    def _product(self, left, right, prog, name):
        return poplin.matMulGrouped(self.shared.graph, left, right, prog, self.shared.type, name, {}, self.shared.plans)

    def _heads(self, x):
        """[texts x heads, tokens, units of a head] of [texts, tokens, heads, units of a head]."""
        return x.dimShuffle([0, 2, 1, 3]).reshape([self.texts * HEADS, TOKENS, UNITS // HEADS])

    def _rows(self, x):
        """[texts x tokens, units], what `_heads` takes apart."""
        return x.reshape([self.texts, HEADS, TOKENS, UNITS // HEADS]).dimShuffle([0, 2, 1, 3]).reshape([self.shared.batch, UNITS])


class FeedForward:
    """Two linear layers, with GELU between them, for each row by itself."""

    def __init__(self, shared, name):
        inner = 4 * UNITS
        self.layers = [
            Inner(shared, f"{name}/wide", shared.batch, UNITS, inner),
            NonLinearity(shared, popnn.NonLinearityType.GELU, f"{name}/gelu"),
            Inner(shared, f"{name}/narrow", shared.batch, inner, UNITS),
        ]

    def forward(self, x, prog):
        for layer in self.layers:
            x = layer.forward(x, prog)
        return x

    def backward(self, gradient, prog):
        for layer in reversed(self.layers):
            gradient = layer.backward(gradient, prog)
        return gradient


class Residual:
    """x + part(norm(x))."""

    def __init__(self, shared, name, part):
        self.shared, self.name, self.part = shared, name, part
        self.norm = LayerNorm(shared, f"{name}/norm")
        self.layers = [self.part, self.norm]

    def forward(self, x, prog):
        y = self.part.forward(self.norm.forward(x, prog), prog)
        return popops.add(self.shared.graph, x, y, prog, f"{self.name}/residual/forward")

    def backward(self, gradient, prog):
        branch = self.norm.backward(self.part.backward(gradient, prog), prog)
        return popops.add(self.shared.graph, gradient, branch, prog, f"{self.name}/residual/backward")


class Equal:
    """What equal layers do: it exists once, as a function for each pass, and they call it with tensors of their own."""

    def __init__(self, shared, name, part):
        """`part(shared, name)` makes what is between the norm and the sum."""
        self.graph, self.name, self.functions, self.gradients = shared.graph, name, {}, {}
        inside = Shared(shared.graph, shared.type, shared.batch, self)  # parameters are added and updated below
        inside.plans = shared.plans
        self.layer = Residual(inside, name, part(inside, name))
        self.parameters, self.kept = self._places(self.layer, "PARAMETERS"), self._places(self.layer, "KEPT")

    def _places(self, layer, kind):
        """Layers and their attributes that have a parameter, or what is kept, by its name."""
        places = {f"{layer.name}/{name}".removeprefix(f"{self.name}/"): (layer, name) for name in getattr(layer, kind, ())}
        for inner in getattr(layer, "layers", ()):
            places |= self._places(inner, kind)
        return places

    def add(self, name, value):
        """A parameter that no call has: those of the calls are made like it."""
        return value

    def update(self, name, gradient, prog):
        """Keep the gradient, which is a result of the backward pass."""
        self.gradients[name.removeprefix(f"{self.name}/")] = gradient

    def forward(self, x, parameters, prog, name):
        """y, and what is kept."""

        def build(x, *parameters, prog):
            self._use(self.parameters, parameters)
            return [self.layer.forward(x, prog), *(getattr(*place) for place in self.kept.values())]

        return self._call(build, [x, *parameters], 1 + len(self.kept), prog, name)

    def backward(self, gradient, parameters, kept, prog, name):
        """The gradient of x, and those of the parameters."""

        def build(gradient, *own, prog):
            self._use(self.parameters | self.kept, own)
            return [self.layer.backward(gradient, prog), *(self.gradients[name] for name in self.parameters)]

        return self._call(build, [gradient, *parameters, *kept], 1 + len(self.parameters), prog, name)

    def _use(self, places, tensors):
        for (layer, name), tensor in zip(places.values(), tensors, strict=True):
            setattr(layer, name, tensor)

    def _call(self, build, operands, count, prog, name):
        """`count` results of the function that `build` makes, which is built when it is called first."""
        direction = name.rpartition("/")[2]
        if direction not in self.functions:

            def body(args, prog):
                args[len(operands) :] = build(*args[: len(operands)], prog=prog)

            signature = [graphfn.input(operand) for operand in operands] + [graphfn.created()] * count
            self.functions[direction] = graphfn.VoidFunction(self.graph, signature, body)
        args = [*operands, *[None] * count]
        self.functions[direction](args, prog, name)
        return args[len(operands) :]


class Layer:
    """One of several that are equal: its parameters, and calls of what they do."""

    def __init__(self, shared, name, equal):
        self.shared, self.name, self.equal, self.parameters = shared, name, equal, {}
        for path, place in equal.parameters.items():
            value = shared.graph.clone(getattr(*place), f"{name}/{path}")
            self.parameters[path] = shared.parameters.add(f"{name}/{path}", value)

    def forward(self, x, prog):
        y, *self.kept = self.equal.forward(x, self.parameters.values(), prog, f"{self.name}/forward")
        return y

    def backward(self, gradient, prog):
        name = f"{self.name}/backward"
        back, *gradients = self.equal.backward(gradient, self.parameters.values(), self.kept, prog, name)
        for path, each in zip(self.parameters, gradients, strict=True):
            self.shared.parameters.update(f"{self.name}/{path}", each, prog)
        return back


def build(type, batch, steps, rate, tiles):
    """The compiled network with its training step and its test program, for so many texts a step."""
    device, graph = new_graph(tiles, popops, poplin, popnn)
    parameters = AdamW(graph, type, rate, 1 / (batch * HIDDEN))
    shared = Shared(graph, type, batch * TOKENS, parameters)  # each byte is a sample
    embedding = Embedding(shared, "embedding")
    kinds = [Equal(shared, "attention", Attention), Equal(shared, "feedforward", FeedForward)]
    layers = [Layer(shared, f"{kind.name}{number}", kind) for number in range(1, LAYERS + 1) for kind in kinds]
    layers += [LayerNorm(shared, "norm"), Linear(shared, "linear", shared.batch, UNITS, BYTES)]
    loss = CrossEntropy(shared, BYTES)

    forward = Sequence()
    x = embedding.forward(forward)
    for layer in layers:
        x = layer.forward(x, forward)
    loss.forward(x, forward)
    forward = graph.addFunction(forward)
    train = Sequence([Call(forward)])
    gradient = loss.gradient
    for layer in reversed(layers):
        gradient = layer.backward(gradient, train)
    embedding.backward(gradient, train)
    parameters.update_all(train)

    inputs = {"tokens": embedding.tokens, "labels": loss.labels}
    return Trainer(device, parameters, inputs, loss.outputs, train, Sequence([Call(forward)]), steps)


def initial(shapes, seed):
    """Weights and tables drawn from a normal distribution, 0.02 wide as BERT has it; gamma is 1, beta and biases are 0."""
    random = np.random.default_rng(seed)
    values = {}
    for name, shape in shapes.items():
        kind = name.rpartition("/")[2]
        drawn = random.normal(0, 0.02, shape) if kind in ("weights", "table", "places") else np.full(shape, kind == "gamma")
        values[name] = drawn.astype(np.float32)
    return values


def texts(path=None):
    """Stretches of TOKENS bytes of a file, or of pypoplar's documents, in two parts: to train on, and every sixth, kept aside."""
    prose = [file for file in resources.directory("docs").glob("*.md") if file.name != "library-calls.md"]  # which is half of all
    files = sorted(prose) if path is None else [Path(path)]
    try:
        data = np.frombuffer(b"".join(file.read_bytes() for file in files), np.uint8)
    except OSError as problem:
        raise FileLoadError(f"cannot read {problem.filename}: {problem.strerror}") from None
    rows = data[: len(data) // TOKENS * TOKENS].reshape(-1, TOKENS)
    if len(rows) < 6:
        raise FileLoadError(f"{path} has {len(data):,} bytes; at least {6 * TOKENS} are needed to train on some and test others")
    kept = np.arange(len(rows)) % 6 == 5
    return rows[~kept], rows[kept]


def masked(rows, random):
    """What goes into the network for rows of text, with HIDDEN bytes of each hidden, and labels: what these bytes were."""
    hidden = random.permuted(np.arange(rows.size).reshape(rows.shape) % TOKENS, axis=1) < HIDDEN
    rows = rows.astype(np.uint32)
    return np.where(hidden, 0, rows), np.where(hidden, rows, MASKED)


def epoch_of(trainer, program, batch, rows, random):
    """The mean loss of hidden bytes and the share of those that were found."""
    tokens, labels = masked(rows, random)
    return run_epoch(trainer, program, batch * TOKENS, labels.ravel(), tokens=tokens.ravel())


def learn(trainer, parts, epochs, batch, seed):
    """Train, each epoch in an order of its own and with other bytes hidden; print losses and what was found."""
    trained, kept = parts
    random = np.random.default_rng(seed)
    run = batch * trainer.steps
    often = np.bincount(trained.ravel(), minlength=BYTES)
    print(f"Always {chr(often.argmax())!r}: {np.mean(kept == often.argmax()):.1%} of bytes kept aside")
    for epoch in range(1, epochs + 1):
        order = random.permutation(len(trained))
        order = order[: max(len(order) // run, 1) * run]  # whole runs: the optimiser moves in steps without a text, too
        loss, right = epoch_of(trainer, trainer.TRAIN, batch, trained[order], random)
        other, found = epoch_of(trainer, trainer.TEST, batch, kept, np.random.default_rng(0))
        print(f"Epoch {epoch}: loss {loss:.3f}, found {right:.1%}; of text kept aside {other:.3f}, {found:.1%}", flush=True)


def arguments(given=None):
    parser = argparse.ArgumentParser(description="Train a transformer on a simulated IPU.")
    parser.add_argument("epochs", type=number(int, 0), nargs="?", default=4, help="rounds over the text (4)")
    parser.add_argument("--text", metavar="FILE", help="what to train on (pypoplar's documents)")
    parser.add_argument("--half", action="store_true", help="compute in half precision, with float master weights")
    parser.add_argument("--rate", type=number(float, 0), default=0.001, help="step of the optimiser (0.001)")
    parser.add_argument("--batch", type=number(int, 1), default=4, help="texts of a step (4)")
    parser.add_argument("--steps", type=number(int, 1), default=25, help="steps of a run of the program (25)")
    parser.add_argument("--tiles", type=number(int, 1), default=1472, help="tiles of the IPU (1,472)")
    parser.add_argument("--seed", type=number(int, 0), default=0, help="of the first weights, the order and the masks (0)")
    parser.add_argument("--page", metavar="FILE", help="write what a run cost as an HTML page")
    return parser.parse_args(given)


def main(given=None):
    chosen = arguments(given)
    try:
        parts = texts(chosen.text)
    except FileLoadError as problem:
        sys.exit(str(problem))
    type = HALF if chosen.half else FLOAT
    print(f"Training on {len(parts[0]):,} texts of {TOKENS} bytes with {chosen.tiles:,} tiles, in {type.spelling}")
    trainer = build(type, chosen.batch, chosen.steps, chosen.rate, chosen.tiles)
    trainer.write(initial({name: value.shape for name, value in trainer.read().items()}, chosen.seed))
    learn(trainer, parts, chosen.epochs, chosen.batch, chosen.seed)
    print_prediction(trainer, chosen.batch, chosen.page)


if __name__ == "__main__":
    main()
