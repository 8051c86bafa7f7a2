"""Models of ONNX: what reading one costs beside the module that it was exported from, and what a call adds to the engine's run."""

from __future__ import annotations

import importlib.util
import io
import time
import warnings
from typing import Any

import numpy as np

from benchmarks.measure import Figure, Row, alternate
from benchmarks.networks import convolutional

CALLS = 50


def measure(smoke: bool) -> list[Figure]:
    missing = [name for name in ("torch", "onnx") if importlib.util.find_spec(name) is None]
    if missing:
        return [Figure("models of ONNX", 0, "", note=f"{' and '.join(missing)} not installed")]
    import torch

    from pypoplar.poptorch.executor import building

    building.TILES = 16 if smoke else 1472
    torch.manual_seed(0)
    cnn, small = convolutional(torch).eval(), torch.randn(1, 1, 28, 28)
    resnet, image = resnet18(torch, 8 if smoke else 64).eval(), torch.randn(1, 3, *([32, 32] if smoke else [224, 224]))
    figures = [
        *capture_figures("CNN", cnn, small, 1 if smoke else 5),
        *capture_figures("ResNet-18", resnet, image, 1 if smoke else 3),
        *call_figures(cnn, small, 3 if smoke else CALLS),
    ]
    return [*figures, *compile_figures("ResNet-18 at batch 1", resnet, image)]


def exported(module: Any, x: Any) -> bytes:
    """A module as a file of ONNX has it; its norms stay nodes of their own."""
    import torch

    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter without dynamo, which needs no further package
        kept = {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
        torch.onnx.export(module, (x,), file, dynamo=False, input_names=["x"], **kept)
    return file.getvalue()


def capture_figures(name: str, module: Any, x: Any, repeats: int) -> list[Figure]:
    """Reading, planning and capturing a model, against capturing the module."""
    import torch

    from pypoplar.onnx.graph_plan import Planner
    from pypoplar.onnx.model_source import ModelSource
    from pypoplar.onnx.onnx_types import Precision
    from pypoplar.onnx.planned_module import PlannedModule
    from pypoplar.poptorch.capture import capture

    data = exported(module, x)

    def read() -> None:
        source = ModelSource.read(data, Precision())
        planned = PlannedModule(Planner(source, {"x": torch.empty(x.shape, device="meta")}).plan(), source.initializers)
        capture(planned.eval(), (x,), {}, False)

    own, theirs = alternate([read, lambda: capture(module, (x,), {}, False)], repeats=repeats)
    return [
        Figure(f"{name}: reading and capture", own, "s"),
        Figure("  against capture of the module", own / theirs, "x", 1.5),
    ]


def call_figures(module: Any, x: Any, calls: int) -> list[Figure]:
    """What a call of the same shapes takes beside the engine's run."""
    import pypoplar.onnx
    from pypoplar import Engine

    model, array = pypoplar.onnx.load(exported(module, x)), x.numpy()
    model(x=array)
    within: list[float] = []
    run = Engine.run

    def timed(self: Engine, *arguments: Any, **named: Any) -> None:
        begin = time.perf_counter()
        run(self, *arguments, **named)
        within.append(time.perf_counter() - begin)

    overheads = []
    Engine.run = timed  # type: ignore[method-assign]
    try:
        for _ in range(calls):
            within.clear()
            begin = time.perf_counter()
            model(x=array)
            overheads.append(time.perf_counter() - begin - sum(within))
    finally:
        Engine.run = run  # type: ignore[method-assign]
    return [Figure("CNN: a call beside the engine's run", float(np.median(overheads)) * 1e3, "ms", 2.0)]


def compile_figures(name: str, module: Any, x: Any) -> list[Figure]:
    """Reading and compiling a model, against compiling the module: processor time, of each when codelets were compiled before."""
    import pypoplar.onnx
    from pypoplar import poptorch

    data = exported(module, x)
    works = [lambda: pypoplar.onnx.load(data).compile(x=x.numpy()), lambda: poptorch.inferenceModel(module).compile(x)]
    own, theirs = alternate(works, repeats=1, warm=1, clock=time.process_time)
    return [
        Figure(f"{name}: reading and compile, processor time", own, "s"),
        Figure("  against compile of the module", own / theirs, "x", 1.3),
    ]


def resnet18(torch: Any, width: int) -> Any:
    """ResNet-18 of 1,000 classes, whose first layers have so many channels: 64."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, channels: int, wanted: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(channels, wanted, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(wanted, wanted, 3, 1, 1, bias=False)
            self.bn1, self.bn2 = nn.BatchNorm2d(wanted), nn.BatchNorm2d(wanted)
            other = nn.Sequential(nn.Conv2d(channels, wanted, 1, stride, bias=False), nn.BatchNorm2d(wanted))
            self.shortcut = nn.Identity() if stride == 1 else other

        def forward(self, x: Any) -> Any:
            y = torch.relu(self.bn1(self.conv1(x)))
            return torch.relu(self.bn2(self.conv2(y)) + self.shortcut(x))

    first = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    blocks = [first]
    for before, channels in ((width, width), (width, 2 * width), (2 * width, 4 * width), (4 * width, 8 * width)):
        blocks += [Block(before, channels, 1 if before == channels else 2), Block(channels, channels, 1)]
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, 1000))


ROW = Row("onnx_models", measure)
