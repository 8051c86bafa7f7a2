"""Predictions: a Repeat's price, equal layers, a sweep in processes, and networks on four IPUs from script to prediction."""

from __future__ import annotations

import importlib.util
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from benchmarks.measure import ROOT, Figure, Row, in_new_process, seconds
from pypoplar import FLOAT, Engine, Graph, IPUModel, Prediction, poplin, popops, predict, sweep
from pypoplar.host_memory import available
from pypoplar.poputil import mapTensorLinearly
from pypoplar.program import Repeat, Sequence

ROUNDS, CASES = 10**6, 8
NEEDED = 22 * 10**9  # bytes that ResNet-50 takes, with room: more than its goal
NETWORKS = {
    "ResNet-50, micro-batch 4, 4 stages": ("resnet50.py", ["--stages", "4", "--batch", "4"]),
    "BERT-Large, 24 layers on 4 IPUs": ("bert_large.py", ["--layers", "24", "--stages", "4"]),
}
SMALL = {"BERT-tiny": ("bert_tiny.py", ["--tokens", "8"])}
LAYERS = "from benchmarks import predictions; predictions.report_layers({count}, {smoke})"
JOB = """
import json, time
begin = time.process_time()
from pathlib import Path
from benchmarks.measure import peak_bytes
from pypoplar.prediction.script_prediction import ScriptCase, predict_script
predict_script(ScriptCase(Path({path!r}), {arguments!r}))
print(json.dumps({{"seconds": time.process_time() - begin, "peak": peak_bytes()}}))
"""


def measure(smoke: bool) -> list[Figure]:
    figures = [Figure(f"run of a Repeat of {ROUNDS:,} rounds in cost mode", repeat_seconds(smoke) * 1e3, "ms", 1.0)]
    cases = [{"rows": 64 * (1 + case)} for case in range(2 if smoke else CASES)]
    function = one_product if smoke else products
    alone = seconds(lambda: sweep(function, cases), repeats=1)
    with ProcessPoolExecutor(2, get_context("spawn")) as executor:
        together = seconds(lambda: sweep(function, cases, executor), repeats=1)
    figures.append(Figure(f"sweep of {len(cases)} cases in 2 processes, against one after the other", together / alone, "x", 0.6))
    if importlib.util.find_spec("torch") is None:
        return [*figures, Figure("predictions of PyTorch models", 0, "", note="PyTorch is not installed")]
    with tempfile.TemporaryDirectory() as cache:
        one, eight = (layers_seconds(count, smoke, cache) for count in (1, 8))
        figures.append(Figure("8 equal transformer layers against 1: predict()", eight / one, "x", 1.4))
        if not smoke and (available() or 0) < NEEDED:
            return [
                *figures,
                Figure("networks: script to prediction", 0, "", note=f"less than {NEEDED // 10**9} GB of memory is available"),
            ]
        for what, (name, arguments) in (SMALL if smoke else NETWORKS).items():
            code = JOB.format(path=str(ROOT / "docs" / "jobs" / name), arguments=arguments)
            made = in_new_process(code, PYPOPLAR_CACHE_DIR=os.environ.get("PYPOPLAR_CACHE_DIR", cache))
            figures.append(Figure(f"{what}: script to prediction", made["seconds"], "s", 60.0))
            figures.append(Figure("  peak memory", made["peak"] / 1e9, "GB", 6.0))
    return figures


def repeat_seconds(smoke: bool) -> float:
    """A run of an engine that has priced nothing yet."""
    graph = Graph(IPUModel("tiny" if smoke else "bow").createDevice())
    popops.addCodelets(graph)
    x, body = graph.addVariable(FLOAT, [4096], "x"), Sequence()
    mapTensorLinearly(graph, x)
    popops.addInPlace(graph, x, x, body, "double")
    engine = Engine(graph, Repeat(ROUNDS, body), mode="cost")
    engine.load()
    begin = time.process_time()
    engine.run()
    return time.process_time() - begin


def one_product(rows: int) -> Prediction:
    """A product on 16 tiles."""
    return _product(rows, "tiny", 64)


def products(rows: int) -> Prediction:
    """A product on a Bow IPU."""
    return _product(rows, "bow", 1024)


def _product(rows: int, chip: str, width: int) -> Prediction:
    graph, program = Graph(IPUModel(chip).createDevice()), Sequence()
    poplin.addCodelets(graph)
    popops.addCodelets(graph)
    left = poplin.createMatMulInputLHS(graph, FLOAT, FLOAT, [rows, width], [width, width], "left")
    right = poplin.createMatMulInputRHS(graph, FLOAT, FLOAT, [rows, width], [width, width], "right")
    poplin.matMul(graph, left, right, program, FLOAT, "layer")
    return predict(graph, program, items=rows)


def layers_seconds(count: int, smoke: bool, cache: str) -> float:
    """Processor seconds of a prediction in a new process, with its codelets in the cache."""
    code = LAYERS.format(count=count, smoke=smoke)
    if not smoke:
        in_new_process(code, PYPOPLAR_CACHE_DIR=cache)
    return float(in_new_process(code, PYPOPLAR_CACHE_DIR=cache)["seconds"])


def report_layers(count: int, smoke: bool) -> None:
    """Predict a training step of equal layers, and print what it took, as JSON."""
    import json

    import torch

    from pypoplar import poptorch
    from pypoplar.poptorch.executor import building

    building.TILES = 16 if smoke else 1472
    units, tokens = (32, 8) if smoke else (256, 64)

    class WithLoss(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            made = (torch.nn.TransformerEncoderLayer(units, 4, 4 * units, 0.0, "gelu", batch_first=True) for _ in range(count))
            self.layers = torch.nn.Sequential(*made)

        def forward(self, x: Any) -> Any:
            return poptorch.identity_loss(self.layers(x) ** 2, "mean")

    with torch.device("meta"):
        model, x = WithLoss(), torch.empty(2, tokens, units)
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.01))
    begin = time.process_time()
    training.predict(x)
    print(json.dumps({"seconds": time.process_time() - begin}))


ROW = Row("predictions", measure)
