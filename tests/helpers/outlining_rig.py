"""Networks of layers that repeat, and what runs of them give with functions and without."""

from typing import Any

import torch

from pypoplar import poptorch

WIDTH, ROWS = 16, 6


class Attention(torch.nn.Module):  # type: ignore[misc]
    """A layer with a norm, products, a softmax, a mask that all layers hold, and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.queries = torch.nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.tril(torch.ones(ROWS, ROWS)))

    def forward(self, x: Any) -> Any:
        keys = self.queries(self.norm(x))
        scores = torch.bmm(keys, keys.transpose(1, 2)) / 4 - (1 - self.mask) * 8
        return x + torch.bmm(torch.softmax(scores, -1), keys)


class Convolved(torch.nn.Module):  # type: ignore[misc]
    """A layer with a batch norm, whose statistics change."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = torch.nn.Conv1d(ROWS, ROWS, 3, padding=1), torch.nn.BatchNorm1d(ROWS)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.norm(self.conv(x))) + x


class Dropped(torch.nn.Module):  # type: ignore[misc]
    """A layer that draws numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.dropout = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Dropout(0.4)

    def forward(self, x: Any) -> Any:
        return self.dropout(torch.tanh(self.linear(x)))


class Noisy(torch.nn.Module):  # type: ignore[misc]
    """A layer that draws numbers of three kinds, and a mask within an attention."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)
        self.attention = torch.nn.MultiheadAttention(WIDTH, 2, dropout=0.3, batch_first=True)

    def forward(self, x: Any) -> Any:
        x = x + self.attention(x, x, x, need_weights=False)[0]
        x = torch.nn.functional.rrelu(self.linear(x), 0.1, 0.4, self.training)
        return x + torch.randn_like(x) * torch.bernoulli(torch.full_like(x, 0.6))


class Pooled(torch.nn.Module):  # type: ignore[misc]
    """A layer whose gradient knows the places of the largest."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        return torch.nn.functional.max_pool1d(self.linear(x), 3, 1, 1) * 0.5


class Joined(torch.nn.Module):  # type: ignore[misc]
    """A layer that draws numbers for what it puts together of two values, from places that it swaps."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.linspace(0.2, 1.4, WIDTH))

    def forward(self, x: Any) -> Any:
        first, second = torch.softmax(x, -1), torch.cumsum(x, 1) * 0.1
        x = torch.cat([second[:, :2], first[:, :2], second[:, 4:].flip(1)], 1)
        x = x + torch.tanh(x * self.scale)
        return torch.nn.functional.dropout(torch.tanh(x), 0.25, self.training) + x


class Network(torch.nn.Module):  # type: ignore[misc]
    """Layers of a kind, with what lies between them as results beside the loss."""

    def __init__(self, kind: Any, count: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([kind() for _ in range(count)])

    def forward(self, x: Any, target: Any) -> Any:
        inner = []
        for layer in self.layers:
            x = layer(x)
            inner.append(x)
        return x, inner[1], poptorch.identity_loss(((x - target) ** 2).mean(), "none")


def options_of(outline: bool, **more: Any) -> Any:
    """Options with functions, of anything that repeats, or without; `more` are setters and their arguments."""
    options = poptorch.Options()
    options.randomSeed(3)
    options._Popart.set(enableOutlining=outline, outlineThreshold=0.0, enableOutliningCopyCostPruning=False)
    for name, value in more.items():
        getattr(options, name)(*value)
    return options


def run_of(make: Any, outline: bool, *, training: bool = True, calls: int = 2, **more: Any) -> tuple[Any, Any, Any]:
    """Results of some calls, the module's state behind them, and the report."""
    torch.manual_seed(1)
    module = make()
    options = options_of(outline, **more)
    if training:
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
        model = poptorch.trainingModel(module, options, optimizer=optimizer)
    else:
        model = poptorch.inferenceModel(module.eval(), options)
    torch.manual_seed(2)
    given = torch.randn(2, ROWS, WIDTH), torch.randn(2, ROWS, WIDTH)
    results = [value for _ in range(calls) for value in model(*given)]
    return results, dict(module.state_dict()), model


def calls_of(model: Any) -> list[str]:
    """Names of the compute sets and steps that are functions', each with how often it runs."""
    return [step.program.name for step in model.getReport().execution.steps if "outlined" in step.program.name]


def assert_equal(one: Any, other: Any) -> None:
    """Results and state of two runs are the same bits."""
    for value, with_it in zip(one[0], other[0], strict=True):
        torch.testing.assert_close(value, with_it, rtol=0, atol=0)
    for name, value in one[1].items():
        torch.testing.assert_close(value, other[1][name], rtol=0, atol=0)
