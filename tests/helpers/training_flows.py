"""Drawn flows of training: calls, calls that fail, steps and edits on the host, files, other models; beside them PyTorch alone.

A flow is drawn from a `random.Random`. By hand, so many flows from a seed on, each of them told if it goes wrong:

    python tests/helpers/training_flows.py 0 500
"""

from __future__ import annotations

import copy
import io
import math
import random
import signal
import sys
import tempfile
import traceback
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from attrs import define, field, frozen
from torch import nn

from pypoplar import poptorch
from pypoplar.errors import CodeletRuntimeError
from pypoplar.poptorch.executor import PoplarExecutor, building, compiled

TILES, SAMPLES, WIDTH = 2, 4, 4
TOLERANCE: dict[str, float] = {"rtol": 2e-4, "atol": 2e-5}


class Enough(Exception):
    """What a function of the host fails with."""


@frozen
class Network:
    """What a drawn module has."""

    norm: bool
    counts: bool  # buffers that its forward pass changes in place
    chain: bool  # of changes in place
    loop: str  # a key of LOOPS
    tied: bool
    frozen: bool


def _doubled(y: torch.Tensor) -> torch.Tensor:
    return y * 0.5 + 1


def _turned(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
    return [b, a * 0.5 + b.sum() * 0.125]


def _raised(y: torch.Tensor) -> torch.Tensor:
    y += 1
    return y


def _gathered(z: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    z += y.sum() * 0.125
    return [z, y]


def _in_columns(y: torch.Tensor) -> torch.Tensor:
    y[:, 1] *= 0.5
    first = y[:, 0]
    first += y[:, 1]
    return y.tanh_()


def _nested(y: torch.Tensor) -> torch.Tensor:
    y.mul_(0.5)
    return poptorch.for_loop(2, _raised, [y])[0].sub_(y)


def _normed(model: Any, y: torch.Tensor) -> torch.Tensor:
    """Running statistics and a buffer that change in each round."""

    def body(y: torch.Tensor) -> torch.Tensor:
        model.rounds += 1
        y += torch.linspace(-1, 1, SAMPLES)[:, None] * (1.5 + torch.sin(model.rounds))  # so that no variance is small
        return model.within(y)

    return poptorch.for_loop(3, body, [y])[0]


def _chosen(model: Any, y: torch.Tensor) -> torch.Tensor:
    """A loop that one of two bodies has; both change a buffer."""

    def then(y: torch.Tensor) -> torch.Tensor:
        model.rounds += 1
        return poptorch.for_loop(2, _in_columns, [y])[0]

    def otherwise(y: torch.Tensor) -> torch.Tensor:
        model.rounds *= 0.5
        return y * 1

    return poptorch.cond(y.sum() > 0, then, [y], otherwise, [y])[0]


# Of a module and what flows through it; some bodies change their arguments in place, or buffers.
LOOPS: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    "": lambda model, y: y,
    "doubled": lambda model, y: poptorch.for_loop(3, _doubled, [y])[0],
    "turned": lambda model, y: poptorch.for_loop(2, _turned, [y, y + 1])[1],
    "raised": lambda model, y: poptorch.for_loop(3, _raised, [y])[0],
    "gathered": lambda model, y: poptorch.for_loop(2, _gathered, [y * 2, y])[0],
    "in columns": lambda model, y: poptorch.for_loop(3, _in_columns, [y])[0],
    "nested": lambda model, y: poptorch.for_loop(2, _nested, [y])[0],
    "normed": _normed,
    "chosen": _chosen,
}


class Flowing(nn.Module):  # type: ignore[misc]
    """A small network with its loss, and a function of the host in the middle of each batch, which can be told to fail."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.network = network
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        if network.tied:
            self.second.weight = self.first.weight
        if network.frozen:
            self.second.bias.requires_grad_(False)
        self.norm = nn.BatchNorm1d(WIDTH) if network.norm else nn.Identity()
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))
        self.register_buffer("total", torch.zeros(WIDTH))
        self.register_buffer("rounds", torch.zeros(()))
        self.within = nn.BatchNorm1d(WIDTH, affine=False)
        self.host = poptorch.CPU(self.watch, "watch")
        self.left = -1
        self.problem: type[BaseException] = Enough

    def watch(self, x: torch.Tensor) -> torch.Tensor:
        """Twice its argument, or the failure that was asked for."""
        self.left -= 1
        if self.left == 0:
            if self.problem is KeyboardInterrupt:
                signal.raise_signal(signal.SIGINT)
            raise self.problem("enough")
        return x * 2

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> Any:
        y = self.norm(self.first(x))
        if self.network.chain:
            y = y.clone()
            y += 0.5
            y[:, 1] *= 2
            y.tanh_()
        else:
            y = torch.tanh(y)
        if self.network.counts:
            self.batches += 1
            self.total.mul_(0.5).add_(y.detach().sum(0))
        y = self.second(y)
        watched = self.host(LOOPS[self.network.loop](self, y.detach()))
        return watched, nn.functional.cross_entropy(y, labels)


OPTIMIZERS: dict[str, Callable[[Any, list[Any]], torch.optim.Optimizer]] = {
    "plain": lambda optim, groups: optim.SGD(groups, lr=0.1),
    "decayed": lambda optim, groups: optim.SGD(groups, lr=0.1, weight_decay=0.125),
    "momentum": lambda optim, groups: optim.SGD(groups, lr=0.05, momentum=0.75),
    "dampened": lambda optim, groups: optim.SGD(groups, lr=0.1, momentum=0.75, dampening=0.25),
    "nesterov": lambda optim, groups: optim.SGD(groups, lr=0.05, momentum=0.5, nesterov=True),
    "Adam": lambda optim, groups: optim.Adam(groups, lr=0.02, eps=1e-2),
    "amsgrad": lambda optim, groups: torch.optim.Adam(groups, lr=0.02, eps=1e-2, amsgrad=True),
    "AdamW": lambda optim, groups: optim.AdamW(groups, lr=0.02, eps=1e-2, weight_decay=0.125),
    "RMSprop": lambda optim, groups: optim.RMSprop(groups, lr=0.01, eps=1e-1, momentum=0.5),
    "centered": lambda optim, groups: optim.RMSprop(groups, lr=0.01, eps=1e-1, centered=True),
}


@frozen
class Setup:
    """What a flow is about."""

    network: Network
    optimizer: str
    named: bool  # an optimiser of poptorch.optim
    groups: int
    iterations: int
    accumulated: int
    mode: str
    looks: bool  # whether states are compared after each action, and not at the end alone

    def make_optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """The optimiser of one of the sides."""
        trained = [one for one in model.parameters() if one.requires_grad]
        groups = [trained] if self.groups == 1 else [trained[:1], trained[1:]]
        given = [{"params": one} for one in groups]
        return OPTIMIZERS[self.optimizer](poptorch.optim if self.named else torch.optim, given)

    def options(self) -> poptorch.Options:
        """The options of the first model."""
        options = poptorch.Options().deviceIterations(self.iterations).outputMode(poptorch.OutputMode[self.mode])
        options.Training.gradientAccumulation(self.accumulated)
        options.Precision.enableFloatingPointExceptions(True)
        return options


@frozen
class Action:
    """A step of a flow, with the numbers that it takes."""

    name: str
    seed: int
    kind: str = ""


FAILURES: dict[str, type[BaseException]] = {
    "host": Enough,
    "interrupt": KeyboardInterrupt,
    "fault": CodeletRuntimeError,
    "reading": KeyboardInterrupt,  # while the module gets its weights
    "end": KeyboardInterrupt,  # when all is done
}
STATE_EDITS = ("cleared", "replaced", "deleted", "emptied", "zeroed", "halved", "numpy", "one", "counted", "loaded")
WEIGHT_EDITS = ("added", "data", "numpy", "loaded", "buffers")
# Names, how likely they are, and the kinds of which one is drawn.
ACTIONS: dict[str, tuple[int, tuple[str, ...]]] = {
    "call": (8, ("",)),
    "fail": (6, tuple(FAILURES)),
    "step_on_host": (3, ("",)),
    "edit_states": (4, STATE_EDITS),
    "edit_weights": (3, WEIGHT_EDITS),
    "change_rate": (1, ("",)),
    "remember": (1, ("",)),
    "go_back": (2, ("",)),
    "through_file": (1, ("",)),
    "evaluate": (3, ("", "fails")),
    "train_elsewhere": (2, ("own", "shared")),
    "let_go": (1, ("detach", "to device", "to host", "fresh")),
}
MOST_ACTIONS = 12


@frozen
class Flow:
    """A drawn flow."""

    setup: Setup
    actions: tuple[Action, ...]


def drawn_flow(draws: random.Random) -> Flow:
    """A flow of whatever a generator draws."""
    yes = [draws.random() < 0.5 for _ in range(7)]
    network = Network(yes[0], yes[1], yes[2], draws.choice(list(LOOPS)), yes[3], yes[4])
    optimizer = draws.choice(sorted(OPTIMIZERS))
    setup = Setup(
        network,
        optimizer,
        yes[5] and optimizer != "amsgrad",
        draws.choice((1, 1, 2)),
        draws.choice((1, 2, 3)),
        draws.choice((1, 1, 2, 3)),
        draws.choice(("All", "Final", "Sum")),
        yes[6],
    )
    names = list(ACTIONS)
    weights = [ACTIONS[name][0] for name in names]
    chosen = draws.choices(names, weights, k=draws.randint(3, MOST_ACTIONS))
    actions = [Action(name, draws.randrange(1000), draws.choice(ACTIONS[name][1])) for name in (*chosen, "call")]
    return Flow(setup, tuple(actions))


@define(eq=False)
class Side:
    """A module with its optimisers, on the device or in PyTorch alone."""

    model: Flowing
    optimizer: torch.optim.Optimizer
    other: torch.optim.Optimizer  # of the second model

    @staticmethod
    def of(setup: Setup) -> Side:
        model = Flowing(setup.network)
        return Side(model, setup.make_optimizer(model), _other_optimizer(model))


def _other_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.05, momentum=0.5)


def samples(seed: int, batches: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and labels of so many batches."""
    generator = torch.Generator().manual_seed(seed)
    count = batches * SAMPLES
    return torch.randn(count, WIDTH, generator=generator), torch.randint(0, WIDTH, (count,), generator=generator)


def steps_of_pytorch(side: Side, optimizer: torch.optim.Optimizer, seed: int, steps: int, accumulated: int) -> tuple[Any, Any]:
    """What a call does, in PyTorch: all outputs and losses."""
    x, labels = samples(seed, steps * accumulated)
    outputs, losses = [], []
    for number, (some, wanted) in enumerate(zip(x.split(SAMPLES), labels.split(SAMPLES), strict=True), 1):
        output, loss = side.model(some, wanted)
        (loss / accumulated).backward()
        if number % accumulated == 0:
            optimizer.step()
            optimizer.zero_grad()
        outputs.append(output.detach())
        losses.append(loss.detach())
    return outputs, losses


@define(eq=False)
class Run:
    """A flow that goes on, on the device and beside it."""

    flow: Flow
    mine: Side = field(init=False)
    wanted: Side = field(init=False)
    training: PoplarExecutor = field(init=False)
    inference: PoplarExecutor | None = None
    elsewhere: PoplarExecutor | None = None
    remembered: list[Any] = field(factory=list)  # of both sides

    def __attrs_post_init__(self) -> None:
        setup = self.flow.setup
        self.mine, self.wanted = Side.of(setup), Side.of(setup)
        self.training = poptorch.trainingModel(self.mine.model, setup.options(), self.mine.optimizer)

    def go(self) -> None:
        """Do everything, and compare; `AssertionError` names the action."""
        for number, action in enumerate(self.flow.actions):
            try:
                getattr(self, action.name)(action)
                self.compare(states=self.flow.setup.looks or number == len(self.flow.actions) - 1)
            except Exception as problem:
                problem.add_note(f"action {number}: {action}\n{self.flow}")
                raise

    def compare(self, *, states: bool) -> None:
        """Weights, buffers and, if asked for, states are PyTorch's."""
        _close(dict(self.mine.model.state_dict()), dict(self.wanted.model.state_dict()), "weights")
        if states:
            for mine, wanted in ((self.mine.optimizer, self.wanted.optimizer), (self.mine.other, self.wanted.other)):
                _close(_plain(mine.state_dict()["state"]), _plain(wanted.state_dict()["state"]), "states")

    def _both(self, change: Callable[[Side], None]) -> None:
        change(self.mine)
        change(self.wanted)

    # calls

    def call(self, action: Action) -> None:
        setup = self.flow.setup
        outputs, loss = self.training(*samples(action.seed, setup.iterations * setup.accumulated))
        wanted, losses = steps_of_pytorch(self.wanted, self.wanted.optimizer, action.seed, setup.iterations, setup.accumulated)
        match setup.mode:
            case "All":
                _close(outputs, torch.cat(wanted), "outputs")
                _close(loss.reshape(-1), torch.stack(losses), "losses")
            case "Final":
                _close(outputs, wanted[-1], "outputs")
                _close(loss, losses[-1], "loss")
            case _:
                _close(outputs, torch.stack(wanted).sum(0), "outputs")
                _close(loss, torch.stack(losses).sum(), "loss")

    def fail(self, action: Action) -> None:
        """A call that fails in some batch, and changes nothing."""
        setup = self.flow.setup
        batches = setup.iterations * setup.accumulated
        x, labels = samples(action.seed + 1, batches)
        failing = action.seed % batches
        if not self.training.isCompiled():
            self.training.compile(x, labels)
        note, problem = f"batch {failing + 1} of {batches}", FAILURES[action.kind]
        match action.kind:
            case "host" | "interrupt":
                self.mine.model.left, self.mine.model.problem = failing + 1, problem
            case "fault":
                x[failing * SAMPLES] = torch.tensor([math.inf, -math.inf] * (WIDTH // 2))
            case _:
                note = "failed in batch"
        with _interrupted(action.kind, action.seed):
            told = _failure(lambda: self.training(x, labels), problem)
        assert note in told, f"{note!r} is not in {told!r}"
        self.mine.model.left = -1

    def evaluate(self, action: Action) -> None:
        """An inference model of the same module."""
        x, labels = samples(action.seed, 2)
        self._both(lambda side: side.model.eval())
        self.inference = self.inference or poptorch.inferenceModel(self.mine.model, poptorch.Options().deviceIterations(2))
        if action.kind == "fails":
            if not self.inference.isCompiled():
                self.inference.compile(x, labels)
            self.mine.model.left, self.mine.model.problem = 1 + action.seed % 2, Enough
            inference = self.inference
            _failure(lambda: inference(*samples(action.seed + 1, 2)), Enough)
            self.mine.model.left = -1
        outputs, losses = self.inference(x, labels)
        with torch.no_grad():
            wanted = [self.wanted.model(*one) for one in zip(x.split(SAMPLES), labels.split(SAMPLES), strict=True)]
        self._both(lambda side: side.model.train())
        _close(outputs, torch.cat([one for one, _ in wanted]), "outputs of inference")
        _close(losses, torch.stack([one for _, one in wanted]), "losses of inference")

    def train_elsewhere(self, action: Action) -> None:
        """A second training model of the same module, with an optimiser of its own, or with the first one's."""
        shared = action.kind == "shared"
        mine, wanted = (self.mine.optimizer, self.wanted.optimizer) if shared else (self.mine.other, self.wanted.other)
        model = poptorch.trainingModel(self.mine.model, optimizer=mine) if shared else self.elsewhere
        model = model or poptorch.trainingModel(self.mine.model, optimizer=mine)
        self.elsewhere = self.elsewhere if shared else model
        outputs, loss = model(*samples(action.seed, 1))
        expected, losses = steps_of_pytorch(self.wanted, wanted, action.seed, 1, 1)
        _close(outputs, expected[0], "outputs of the second model")
        _close(loss, losses[0], "loss of the second model")

    # the host

    def step_on_host(self, action: Action) -> None:
        self._both(lambda side: _host_step(side, action.seed))

    def edit_states(self, action: Action) -> None:
        self._both(lambda side: EDITS_OF_STATES[action.kind](side.optimizer, action.seed))

    def edit_weights(self, action: Action) -> None:
        self._both(lambda side: EDITS_OF_WEIGHTS[action.kind](side.model, action.seed))

    def change_rate(self, action: Action) -> None:
        for side in (self.mine, self.wanted):
            for group in side.optimizer.param_groups:
                group["lr"] *= 0.5
        self.training.setOptimizer(self.mine.optimizer)

    # files

    def remember(self, action: Action) -> None:
        """Both state_dicts, through a file of PyTorch's."""
        self.remembered = [
            _through_torch((side.model.state_dict(), side.optimizer.state_dict())) for side in (self.mine, self.wanted)
        ]

    def go_back(self, action: Action) -> None:
        for side, saved in zip((self.mine, self.wanted), self.remembered, strict=False):
            weights, states = copy.deepcopy(saved)
            rates = [group["lr"] for group in side.optimizer.param_groups]
            side.model.load_state_dict(weights)
            side.optimizer.load_state_dict(states)
            for group, rate in zip(side.optimizer.param_groups, rates, strict=True):
                group["lr"] = rate

    def through_file(self, action: Action) -> None:
        """`save` and `poptorch.load`: the flow goes on with what was read."""
        if not self.training.isCompiled():
            return
        with tempfile.TemporaryDirectory() as folder:
            self.training.save(Path(folder) / "model")
            self.training.destroy()
            self.training = poptorch.load(Path(folder) / "model", run_code_of_file=True)
        model, optimizer = self.training.model, self.training._optimizer
        assert isinstance(model, Flowing)
        assert optimizer is not None
        self.mine = Side(model, optimizer, _other_optimizer(model))
        self.wanted = Side(self.wanted.model, self.wanted.optimizer, _other_optimizer(self.wanted.model))
        self.inference = self.elsewhere = None

    # devices

    def let_go(self, action: Action) -> None:
        if not self.training.isCompiled():
            return
        match action.kind:
            case "detach":
                if self.training.isAttachedToDevice():
                    self.training.detachFromDevice()
            case "to device":
                self.training.copyWeightsToDevice()
            case "to host":
                self.training.copyWeightsToDevice()
                self.training.copyWeightsToHost()
            case _:
                self.training = poptorch.trainingModel(self.mine.model, self.flow.setup.options(), self.mine.optimizer)


def _failure(call: Callable[[], Any], problem: type[BaseException]) -> str:
    """The notes of the error that a call ends in."""
    try:
        call()
    except problem as raised:
        return "\n".join(raised.__notes__)
    raise AssertionError("a call that is to fail did not")


class _Stops:
    """Calls a function, and is interrupted at some call."""

    def __init__(self, function: Callable[..., Any], left: int) -> None:
        self.function, self.left = function, left

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return self.function(*arguments, **keywords)


def _interrupted(kind: str, seed: int) -> Any:
    """Ctrl-C while a module gets its weights, or while the device's part is over."""
    if kind == "reading":
        stops = _Stops(torch.Tensor.copy_, 1 + seed % 3)
        return patch.object(torch.Tensor, "copy_", lambda *arguments: stops(*arguments))
    if kind == "end":
        stops = _Stops(compiled.CompiledModel.end, 1)
        return patch.object(compiled.CompiledModel, "end", lambda model: stops(model))
    return patch.dict({})


def _host_step(side: Side, seed: int) -> None:
    side.optimizer.zero_grad()
    x, labels = samples(seed, 1)
    side.model(x, labels)[1].backward()
    side.optimizer.step()
    side.optimizer.zero_grad()


# What hosts do to states.


def _each(change: Callable[[torch.Tensor], None]) -> Callable[[torch.optim.Optimizer, int], None]:
    def edit(optimizer: torch.optim.Optimizer, seed: int) -> None:
        for states in optimizer.state.values():
            for name, state in states.items():
                if name != "step" and isinstance(state, torch.Tensor):
                    change(state)

    return edit


def _times(factor: float) -> Callable[[torch.Tensor], None]:
    def change(state: torch.Tensor) -> None:
        state.numpy()[...] *= factor

    return change


def _halve(state: torch.Tensor) -> None:
    state.data.mul_(0.5)


def _zero(state: torch.Tensor) -> None:
    state.zero_()


def _clear(optimizer: torch.optim.Optimizer, seed: int) -> None:
    optimizer.state.clear()


def _replace(optimizer: torch.optim.Optimizer, seed: int) -> None:
    optimizer.state = defaultdict(dict)


def _delete(optimizer: torch.optim.Optimizer, seed: int) -> None:
    for parameter in list(optimizer.state):
        del optimizer.state[parameter]


def _empty(optimizer: torch.optim.Optimizer, seed: int) -> None:
    for states in optimizer.state.values():
        states.clear()


def _change_one(optimizer: torch.optim.Optimizer, seed: int) -> None:
    """Another tensor in the place of one state."""
    for parameter in optimizer.param_groups[-1]["params"][-1:]:
        states = optimizer.state.get(parameter, {})
        for name in [name for name in states if name != "step"][:1]:
            states[name] = torch.rand(parameter.shape, generator=torch.Generator().manual_seed(seed)) * 0.0625 + 0.25


def _count(optimizer: torch.optim.Optimizer, seed: int) -> None:
    for states in optimizer.state.values():
        if "step" in states:
            states["step"] += seed % 4


def _load_halved(optimizer: torch.optim.Optimizer, seed: int) -> None:
    saved = copy.deepcopy(optimizer.state_dict())
    for states in saved["state"].values():
        for name, state in states.items():
            if name != "step" and isinstance(state, torch.Tensor):
                state.mul_(0.5)
    optimizer.load_state_dict(saved)


EDITS_OF_STATES: dict[str, Callable[[torch.optim.Optimizer, int], None]] = {
    "cleared": _clear,
    "replaced": _replace,
    "deleted": _delete,
    "emptied": _empty,
    "zeroed": _each(_zero),
    "halved": _each(_halve),
    "numpy": _each(_times(0.75)),
    "one": _change_one,
    "counted": _count,
    "loaded": _load_halved,
}


# What hosts do to weights.


def _add(model: nn.Module, seed: int) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.0625 * (1 + seed % 3))


def _other_data(model: nn.Module, seed: int) -> None:
    parameter = next(model.parameters())
    parameter.data = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed))


def _by_numpy(model: nn.Module, seed: int) -> None:
    parameter = list(model.parameters())[seed % 3]
    parameter.detach().numpy().reshape(-1)[0] += 0.25


def _load(model: nn.Module, seed: int) -> None:
    model.load_state_dict(
        {name: tensor * 0.5 if tensor.is_floating_point() else tensor for name, tensor in model.state_dict().items()}
    )


def _buffers(model: Any, seed: int) -> None:
    model.total = torch.full((WIDTH,), float(seed % 5))
    model.batches += seed


EDITS_OF_WEIGHTS: dict[str, Callable[[Any, int], None]] = {
    "added": _add,
    "data": _other_data,
    "numpy": _by_numpy,
    "loaded": _load,
    "buffers": _buffers,
}


def _through_torch(value: Any) -> Any:
    stream = io.BytesIO()
    torch.save(value, stream)
    stream.seek(0)
    return torch.load(stream, weights_only=True)


def _plain(states: dict[int, dict[str, Any]]) -> dict[str, torch.Tensor]:
    """States by one name each; SGD's of PyTorch may be None, and a parameter's may be empty."""
    named = {f"{number} {name}": value for number, each in states.items() for name, value in each.items()}
    return {name: torch.as_tensor(value, dtype=torch.float32) for name, value in named.items() if value is not None}


def _close(got: Any, wanted: Any, what: str) -> None:
    if isinstance(got, dict):
        assert got.keys() == wanted.keys(), f"{what}: {sorted(got)} for {sorted(wanted)}"
        for name, one in got.items():
            _close(one, wanted[name], f"{what}: {name}")
        return
    torch.testing.assert_close(got, wanted, **TOLERANCE, msg=lambda told: f"{what}: {told}")


def check_flow(flow: Flow) -> None:
    """Run a flow on a machine of few tiles; `AssertionError` where it is not PyTorch's."""
    with patch.object(building, "TILES", TILES):
        Run(flow).go()


def main(first: int, count: int) -> int:
    """So many flows from a seed on; how many went wrong."""
    wrong = 0
    for seed in range(first, first + count):
        try:
            check_flow(drawn_flow(random.Random(seed)))
        except Exception:
            wrong += 1
            print(f"--- seed {seed}", traceback.format_exc(limit=-4), flush=True)
    print(f"{count} flows from seed {first}: {wrong} went wrong", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
