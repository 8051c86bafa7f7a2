"""Layers that the networks of several tutorials have: each has a forward and a backward pass, and updates its parameters."""

from _training import Parameters

from pypoplar import FLOAT, poplin, popnn, popops


class Shared:
    """What all layers share: the graph, the type of activations, the batch, the parameters that are trained, and plans."""

    def __init__(self, graph, type, batch, step):
        """`step` is how a parameter changes, see `Parameters`."""
        self.graph, self.type, self.batch = graph, type, batch
        self.plans = poplin.PlanningCache()
        self.parameters = Parameters(graph, type, step)


class NonLinearity:
    """A function of each element."""

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

    def __init__(self, shared, name, rows, inputs, outputs):
        self.shared, self.name = shared, name
        graph, type, plans = shared.graph, shared.type, shared.plans
        shapes = [rows, inputs], [inputs, outputs]
        weights = poplin.createMatMulInputRHS(graph, type, type, *shapes, f"{name}/weights", {}, plans)
        self.weights = shared.parameters.add(f"{name}/weights", weights)
        self.biases = None

    def forward(self, x, prog):
        graph, name = self.shared.graph, f"{self.name}/forward"
        self.shape, self.x = x.shape(), x.flatten(1, x.rank())
        y = poplin.matMul(graph, self.x, self.weights, prog, name, {}, self.shared.plans)
        if self.biases is None:
            self.biases = self.shared.parameters.add(f"{self.name}/biases", poplin.createBiases(graph, y, f"{self.name}/biases"))
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
