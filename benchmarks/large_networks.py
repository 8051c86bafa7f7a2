"""Parts of networks of real size on 1,472 tiles: what building them takes, in processor time and memory."""

from __future__ import annotations

import importlib.util
import json
import tempfile
import time
from collections.abc import Callable
from typing import Any

from attrs import frozen

from benchmarks import transformer
from benchmarks.measure import Figure, Row, in_new_process, peak_bytes
from benchmarks.networks import tutorial
from pypoplar import FLOAT, HALF, Engine, Graph, IPUModel, poplin, popops, poputil
from pypoplar.program import Copy, Sequence

FIELD, BATCH = 56, 4


@frozen
class Part:
    """What is built: by a function of this module, which gets whether it is to be small; its goals in seconds and bytes."""

    what: str
    build: str
    goal: float
    most_bytes: float | None = None
    torch: bool = False


PARTS = (
    Part("ResNet-50 block: compile()", "one_block", 25, 1.5e9, torch=True),
    Part("BERT-Base layer: compile()", "bert_layer", 20, 1.6e9, torch=True),
    Part("tutorial's CNN: graph and Engine", "tutorial_cnn", 4),
    Part("tutorial's transformer: graph and Engine", "tutorial_transformer", 20, 1.5e9),
    Part("3x3 convolution 64 to 64 on 56x56, three passes: graph and Engine", "convolution", 4),
    Part("Copy of a transposed 2048 x 2048: Engine", "transposed", 1),
    Part("Linear(2000, 2000) on a vector: first training step", "linear", 4, torch=True),
)


def measure(smoke: bool) -> list[Figure]:
    torch = importlib.util.find_spec("torch") is not None
    figures = []
    with tempfile.TemporaryDirectory() as cache:
        for part in PARTS:
            if part.torch and not torch:
                figures.append(Figure(part.what, 0, "", note="PyTorch is not installed"))
                continue
            figures += figures_of(part, smoke, cache)
        if torch:
            one, two = (measured(build, smoke, cache)["library"] for build in ("one_block", "two_blocks"))
            figures.append(Figure("two ResNet-50 blocks against one: until the Engine", two / one, "x", 2.0))
            one, eight = (measured(build, smoke, cache)["seconds"] for build in ("one_layer", "eight_layers"))
            figures.append(Figure("8 equal transformer layers against 1: compile()", eight / one, "x", 1.6))
    return figures


def figures_of(part: Part, smoke: bool, cache: str) -> list[Figure]:
    """The time of a part, and its memory if that has a goal."""
    if not smoke:
        measured(part.build, smoke, cache)  # compiles its codelets
    made = measured(part.build, smoke, cache)
    figures = [Figure(part.what, made["seconds"], "s", part.goal)]
    if part.most_bytes is not None:
        figures.append(Figure("  peak memory", made["peak"] / 1e9, "GB", part.most_bytes / 1e9))
    return figures


def measured(build: str, smoke: bool, cache: str) -> dict[str, Any]:
    """Processor seconds of a build in a new process, those until its Engine was begun, and the most bytes that it held."""
    code = f"from benchmarks import large_networks; large_networks.report(large_networks.{build}, {smoke})"
    return in_new_process(code) if smoke else in_new_process(code, PYPOPLAR_CACHE_DIR=cache)


def report(build: Callable[[bool], Callable[[], object]], smoke: bool) -> None:
    """Build, and print what it took, as JSON; what `build` itself does is preparation."""
    from pypoplar.compiler import compile as compiling

    work = build(smoke)
    begun = [0.0]
    compile_graph = compiling.compile_graph

    def noted(*given: Any, **named: Any) -> Any:
        begun[0] = begun[0] or time.process_time()
        return compile_graph(*given, **named)

    compiling.compile_graph = noted
    begin = time.process_time()
    work()
    end = time.process_time()
    print(json.dumps({"seconds": end - begin, "library": (begun[0] or end) - begin, "peak": peak_bytes()}))


def one_block(smoke: bool) -> Callable[[], object]:
    return _blocks(smoke, 1)


def two_blocks(smoke: bool) -> Callable[[], object]:
    return _blocks(smoke, 2)


def _blocks(smoke: bool, count: int) -> Callable[[], object]:
    import torch

    class Block(torch.nn.Module):
        def __init__(self, wide: int, narrow: int) -> None:
            super().__init__()
            sizes = ((wide, narrow, 1), (narrow, narrow, 3), (narrow, wide, 1))
            self.convolutions = torch.nn.ModuleList(torch.nn.Conv2d(a, b, k, padding=k // 2, bias=False) for a, b, k in sizes)
            self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(size) for size in (narrow, narrow, wide))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x
            for number, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
                y = norm(convolution(y))
                if number < 2:
                    y = torch.relu(y)
            return torch.relu(x + y)

    wide, field = (16, 4) if smoke else (256, FIELD)
    network = torch.nn.Sequential(*(Block(wide, wide // 4) for _ in range(count)))
    return _compiled(network, torch.randn(BATCH, wide, field, field), smoke)


def bert_layer(smoke: bool) -> Callable[[], object]:
    import torch

    units, heads, tokens = (32, 2, 8) if smoke else (768, 12, 128)
    layer = torch.nn.TransformerEncoderLayer(units, heads, 4 * units, 0.1, "gelu", batch_first=True)
    return _compiled(layer, torch.randn(2, tokens, units), smoke)


def one_layer(smoke: bool) -> Callable[[], object]:
    return _layers(smoke, 1)


def eight_layers(smoke: bool) -> Callable[[], object]:
    return _layers(smoke, 8)


def _layers(smoke: bool, count: int) -> Callable[[], object]:
    import torch

    units, tokens = (32, 8) if smoke else (256, 64)
    layers = (torch.nn.TransformerEncoderLayer(units, 4, 4 * units, 0.0, "gelu", batch_first=True) for _ in range(count))
    return _compiled(torch.nn.Sequential(*layers), torch.randn(2, tokens, units), smoke)


def _compiled(network: Any, given: Any, smoke: bool) -> Callable[[], object]:
    """`compile()` of a training model of a network in half, with the sum of squares as its loss."""
    import torch

    from pypoplar import poptorch
    from pypoplar.poptorch.executor import building

    class WithLoss(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return poptorch.identity_loss((self.network(x) ** 2).float(), "mean")

    building.TILES = 16 if smoke else 1472
    model = WithLoss().half()
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.01))
    return lambda: training.compile(given.half())


def tutorial_cnn(smoke: bool) -> Callable[[], object]:
    script = tutorial("mnist_cnn")
    return lambda: script.build(FLOAT, 8, 25, 0.03, 16 if smoke else 1472)


def tutorial_transformer(smoke: bool) -> Callable[[], object]:
    script = tutorial("transformer")
    if smoke:
        transformer.small(script)
    return lambda: script.build(FLOAT, transformer.BATCH, 25, transformer.RATE, 16 if smoke else 1472)


def convolution(smoke: bool) -> Callable[[], object]:
    tiles, channels, field = (16, 4, 6) if smoke else (1472, 64, FIELD)

    def build() -> object:
        model = IPUModel()
        model.tilesPerIPU = tiles
        graph = Graph(model.createDevice())
        poplin.addCodelets(graph)
        popops.addCodelets(graph)
        prog = Sequence()
        params = poplin.ConvParams(HALF, BATCH, [field, field], [3, 3], channels, channels, 1)
        params.inputTransform.paddingLower = params.inputTransform.paddingUpper = [1, 1]
        x, weights = poplin.createInput(graph, params, "x"), poplin.createWeights(graph, params, "weights")
        y = poplin.convolution(graph, x, weights, params, False, prog, "forward")
        poplin.convolution(graph, y, weights, poplin.getGradientParams(params), True, prog, "backward")
        poplin.calculateWeightDeltas(graph, y, x, params, prog, "update")
        return Engine(graph, prog)

    return build


def transposed(smoke: bool) -> Callable[[], object]:
    graph = Graph(IPUModel().createDevice())
    source, target = (graph.addVariable(FLOAT, [64 if smoke else 2048] * 2, name) for name in ("source", "target"))
    for tensor in (source, target):
        poputil.mapTensorLinearly(graph, tensor)
    copy = Copy(source.transpose(), target)
    return lambda: Engine(graph, copy)


def linear(smoke: bool) -> Callable[[], object]:
    import torch

    from pypoplar import poptorch
    from pypoplar.poptorch.executor import building

    building.TILES, size = (16, 20) if smoke else (1472, 2000)
    layer = torch.nn.Linear(size, size)

    class WithLoss(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return poptorch.identity_loss(self.layer(x) ** 2, "mean")

    training = poptorch.trainingModel(WithLoss(), optimizer=torch.optim.SGD(layer.parameters(), lr=0.01))
    x = torch.randn(size)
    return lambda: training(x)


ROW = Row("large_networks", measure)
