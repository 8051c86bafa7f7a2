"""A second start with PyTorch: what a process takes until its first call returns, where the cache has the executable.

Importing PyTorch itself with what its `torch.export` imports when it is called, and making the model, do not count: all are the
same without pypoplar.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from benchmarks.measure import Figure, Row, in_new_process
from benchmarks.networks import convolutional
from benchmarks.torch_models import images, trained

GOAL = 3.0
NEEDS = {
    "CNN": "torch",
    "ResNet-18": "torchvision",
    "ResNet-18 eval": "torchvision",
    "BERT-tiny": "transformers",
    "GPT2-tiny": "transformers",
}
STARTED = "from benchmarks import second_starts; second_starts.start({name!r}, {cache!r}, {tiles})"


def measure(smoke: bool) -> list[Figure]:
    if find_spec("torch") is None:
        return [Figure("second starts of PyTorch's models", 0, "", note="PyTorch is not installed")]
    figures = []
    for name in ("CNN",) if smoke else NEEDS:
        what = f"{name}: a second start, beyond importing PyTorch"
        if find_spec(NEEDS[name]) is None:
            figures.append(Figure(what, 0, "", note=f"{NEEDS[name]} is not installed"))
            continue
        with tempfile.TemporaryDirectory() as cache:
            code = STARTED.format(name=name, cache=cache, tiles=16 if smoke else 1472)
            first, *again = (in_new_process(code) for _ in range(2 if smoke else 4))
        quickest = min(again, key=lambda told: told["seconds"])
        figures.append(Figure(what, quickest["seconds"], "s", GOAL, details={"first": first, "again": again}))
    return figures


def start(name: str, cache: str, tiles: int) -> None:
    """The first call of a model in this process; prints the seconds of the processor, and those of its parts."""
    import torch
    import torch.export._trace

    begin = time.process_time()
    from pypoplar import poptorch
    from pypoplar.poptorch.executor import building

    imported = time.process_time()
    building.TILES = tiles
    torch.manual_seed(0)
    model, given = made(torch, name)
    ready = time.process_time()
    options = poptorch.Options().enableExecutableCaching(cache)
    if name.endswith("eval"):
        called = poptorch.inferenceModel(model, options)
    else:
        called = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.01))
    called(*given)
    parts = {"importing": imported - begin, "calling": time.process_time() - ready}
    print(json.dumps({"seconds": sum(parts.values()), **parts}))


def made(torch: Any, name: str) -> tuple[Any, tuple[Any, ...]]:
    """A model of random weights, and arguments of a call."""
    if name == "CNN":
        return trained(torch, convolutional(torch)), images(torch, 4, 10)
    if name.startswith("ResNet-18"):
        network = torchvision().models.resnet18()
        if name.endswith("eval"):
            return network.half().eval(), (torch.randn(1, 3, 224, 224).half(),)
        return trained(torch, network), (torch.randn(2, 3, 64, 64), torch.tensor([1, 2]))
    words = torch.randint(0, 1000, (2, 32))
    torchvision()  # of which Transformers import some
    import transformers

    if name == "BERT-tiny":
        bert = transformers.BertConfig(
            hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512,
            hidden_dropout_prob=0, attention_probs_dropout_prob=0,
        )  # fmt: skip
        return with_its_loss(torch, transformers.BertForSequenceClassification(bert)), (words, torch.tensor([0, 1]))
    gpt2 = transformers.GPT2Config(n_embd=128, n_layer=2, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    return with_its_loss(torch, transformers.GPT2LMHeadModel(gpt2)), (words, words)


def torchvision() -> Any:
    """Torchvision; where its operators do not fit this PyTorch, without them: its networks need none."""
    if find_spec("torchvision") is None:
        return None
    try:
        import torchvision
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        sys.modules["torchvision._meta_registrations"] = ModuleType("operators")
        import torchvision
    return torchvision


def with_its_loss(torch: Any, network: Any) -> Any:
    """A network of Transformers, which computes its loss itself."""
    from pypoplar import poptorch

    class WithItsLoss(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, words: Any, labels: Any) -> Any:
            return poptorch.identity_loss(self.network(input_ids=words, labels=labels).loss, "none")

    return WithItsLoss()


ROW = Row("second_starts", measure)
