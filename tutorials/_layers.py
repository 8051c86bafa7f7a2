"""Parts that the networks of several tutorials have: layers, each with a forward and a backward pass, and the loss.

PARAMETERS and KEPT name a layer's attributes: what is trained, and what its forward pass keeps for the backward pass.
"""

from pypoplar import FLOAT, UNSIGNED_INT, Graph, IPUModel, poplin, popnn, popops, poputil


def new_graph(tiles, *libraries):
    """A Bow with so many tiles, and a graph for it with the device code of libraries."""
    model = IPUModel("bow")
    model.numIPUs, model.tilesPerIPU = 1, tiles
    device = model.createDevice()
    graph = Graph(device.getTarget())
    for library in libraries:
        library.addCodelets(graph)
    return device, graph


def variable(graph, type, shape, name):
    """A new tensor, spread over the tiles."""
    tensor = graph.addVariable(type, shape, name)
    poputil.mapTensorLinearly(graph, tensor)
    return tensor


class Shared:
    """What all layers share: the graph, the type of activations, the batch, the parameters that are trained, and plans."""

    def __init__(self, graph, type, batch, parameters):
        """`batch` is the number of samples of a step, each with a label; `parameters` those of `_training`, still without any."""
        self.graph, self.type, self.batch, self.parameters = graph, type, batch, parameters
        self.plans = poplin.PlanningCache()


class NonLinearity:
    """A function of each element."""

    KEPT = ("kept",)

    def __init__(self, shared, type, name):
        self.shared, self.type, self.name = shared, type, name

    def forward(self, x, prog):
        y = popnn.nonLinearity(self.shared.graph, self.type, x, prog, f"{self.name}/forward")
        self.kept = x if self.type is popnn.NonLinearityType.GELU else y  # what the gradient is a function of
        return y

    def backward(self, gradient, prog):
        return popnn.nonLinearityInputGradient(self.shared.graph, self.type, self.kept, gradient, prog, f"{self.name}/backward")


class Linear:
    """x W + b for rows x; the elements of a sample of several dimensions are a row."""

    PARAMETERS, KEPT = ("weights", "biases"), ("x",)

    def __init__(self, shared, name, rows, inputs, outputs):
        self.shared, self.name = shared, name
        graph, type, plans = shared.graph, shared.type, shared.plans
        shapes = [rows, inputs], [inputs, outputs]
        weights = poplin.createMatMulInputRHS(graph, type, type, *shapes, f"{name}/weights", {}, plans)
        self.weights = shared.parameters.add(f"{name}/weights", weights)
        self.biases = None

    def add_biases(self, y):
        """Biases that lie where they are added to y, what the layer computes."""
        name = f"{self.name}/biases"
        self.biases = self.shared.parameters.add(name, poplin.createBiases(self.shared.graph, y, name))

    def forward(self, x, prog):
        graph, name = self.shared.graph, f"{self.name}/forward"
        self.shape, self.x = x.shape(), x.flatten(1, x.rank())
        y = poplin.matMul(graph, self.x, self.weights, prog, name, {}, self.shared.plans)
        if self.biases is None:
            self.add_biases(y)
        popops.addInPlace(graph, y, self.biases.expand([0]), prog, name)
        return y

    def backward(self, gradient, prog):
        graph, plans, name = self.shared.graph, self.shared.plans, f"{self.name}/backward"
        back = poplin.matMul(graph, gradient, self.weights.transpose(), prog, name, {}, plans)
        name = f"{self.name}/update"
        weights = poplin.matMul(graph, self.x.transpose(), gradient, prog, name, {}, plans)
        biases = popops.reduce(graph, gradient, FLOAT, [0], popops.ReduceParams(popops.Operation.ADD), prog, name)
        self.shared.parameters.update(f"{self.name}/weights", weights, prog)
        self.shared.parameters.update(f"{self.name}/biases", biases, prog)
        return back.reshape(self.shape)


class CrossEntropy:
    """What is behind the last layer: a softmax, the loss of each sample and their sum, right answers, and the gradient."""

    def __init__(self, shared, classes):
        self.graph, batch, type = shared.graph, shared.batch, shared.type
        self.labels = variable(self.graph, UNSIGNED_INT, [batch], "labels")
        self.numCorrect = variable(self.graph, UNSIGNED_INT, [1], "numCorrect")
        self.losses, self.total = variable(self.graph, type, [batch], "losses"), variable(self.graph, FLOAT, [1], "loss")
        self.gradient = variable(self.graph, type, [batch, classes], "gradient")

    def forward(self, logits, prog):
        graph, softmax = self.graph, popnn.NonLinearityType.SOFTMAX_STABLE
        probabilities = popnn.nonLinearity(graph, softmax, logits, prog, "softmax/forward")
        results = self.losses, self.gradient, self.numCorrect
        entropy = popnn.LossType.CROSS_ENTROPY_LOSS
        prog.add(popnn.calcLoss(graph, probabilities, self.labels, *results, entropy, "loss/forward"))
        popops.reduceWithOutput(graph, self.losses, self.total.reshape([]), [0], popops.Operation.ADD, prog, "loss/forward")

    @property
    def outputs(self):
        """What goes to the host after a batch."""
        return {"loss": self.total, "correct": self.numCorrect}
