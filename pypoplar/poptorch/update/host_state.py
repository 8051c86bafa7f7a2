"""The states of a device's optimiser, as the host has them: in PyTorch's optimisers by parameter, in PopTorch's by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pypoplar.engine.engine import Engine
from pypoplar.errors import InvalidOption
from pypoplar.poptorch.optim import Optimizer
from pypoplar.poptorch.update.gradient_descent import VELOCITY
from pypoplar.poptorch.update.optimizer import DeviceOptimizer, DeviceState

Array = npt.NDArray[Any]
STEP = "step"
HOLDER = "_device_states"  # the attribute of an optimiser object that says whose states it has


class HostState:
    """Keeps an optimiser object and the device's states together.

    The object gets the device's states when its `state_dict` is asked for. The device gets the object's before a call, if the
    object has loaded some, or was given some otherwise; an object without states leaves the device's as they are.
    """

    def __init__(self, update: DeviceOptimizer, engine: Engine) -> None:
        """For an engine that is loaded."""
        self.update, self.engine = update, engine
        self.ahead = False  # whether the device has made steps that the object does not have
        self.loaded = False
        self.optimizer: torch.optim.Optimizer | None = None
        self._hooks: list[Any] = []
        self._seen: list[tuple[torch.Tensor, int]] = []

    def attach(self, optimizer: torch.optim.Optimizer) -> None:
        """Let an optimiser object have the states. Those that it has of another model, it gets from that first."""
        if optimizer is self.optimizer:
            return
        self.detach()
        other = getattr(optimizer, HOLDER, None)
        if other is not None:
            other.detach()
            if isinstance(optimizer, Optimizer):
                optimizer.ipu_state_is_dirty = optimizer.has_state()
        self.optimizer = optimizer
        setattr(optimizer, HOLDER, self)

        def after_loading(_: Any) -> None:
            self.loaded, self.ahead = True, False

        self._hooks = [
            optimizer.register_state_dict_pre_hook(lambda _: self.fetch()),
            optimizer.register_load_state_dict_post_hook(after_loading),
        ]

    def detach(self) -> None:
        """Give the object the states, and leave it."""
        if self.optimizer is not None:
            self.fetch()
            delattr(self.optimizer, HOLDER)
        for hook in self._hooks:
            hook.remove()
        self.optimizer, self._hooks = None, []

    def stepped(self) -> None:
        """The device has made steps."""
        self.ahead = True
        if isinstance(self.optimizer, Optimizer):
            self.optimizer.host_state_is_dirty = True

    # to the host

    def fetch(self) -> None:
        """Give the object the device's states, if it does not have them."""
        if not self.ahead or self.optimizer is None:
            return
        self.ahead = False
        if isinstance(self.optimizer, Optimizer):
            named = {f"{state.name}/{name}": part for state in self.update.states for name, part in self._parts(state)}
            counts = {count.handle: torch.tensor(self._count(count.handle)) for count in self.update.counts}
            self.optimizer._state_dict = {"ipu_state": named, "ipu_param": counts}
            self.optimizer.host_state_is_dirty = False
            return
        for state in self.update.states:
            for name, part in self._parts(state):
                self.optimizer.state[self.update.parameters[name]][state.name] = part
        for count in self.update.counts:
            for name in count.parameters if self.update.kind != "SGD" else ():  # which counts none in PyTorch
                self.optimizer.state[self.update.parameters[name]][STEP] = torch.tensor(self._count(count.handle))
        self._seen = list(self._tensors())

    def _parts(self, state: DeviceState) -> Iterator[tuple[str, torch.Tensor]]:
        """A state of each parameter."""
        whole, begin = torch.from_numpy(np.array(self.engine.readTensor(state.handle))).reshape(-1), 0
        for name, shape in state.parameters:
            elements = int(np.prod(shape))
            yield name, whole[begin : begin + elements].reshape(shape).clone()
            begin += elements

    def _count(self, handle: str) -> float:
        return float(np.asarray(self.engine.readTensor(handle)).reshape(-1)[0])

    # to the device

    def write_changed(self, optimizer: torch.optim.Optimizer) -> None:
        """Give the device an object's states, if it has other ones than it had."""
        self.attach(optimizer)
        loaded, self.loaded = self.loaded, False
        if isinstance(optimizer, Optimizer) and optimizer.ipu_state_is_dirty:
            optimizer.ipu_state_is_dirty = False
            if optimizer.has_state():
                self._write_named(optimizer._state_dict)
                self._seen = list(self._tensors())
                return
        now = list(self._tensors())
        before, self._seen = self._seen, now
        same = len(now) == len(before) and all(
            one is other and version == then for (one, version), (other, then) in zip(now, before, strict=True)
        )
        if loaded or (now and not same):
            self._write()

    def _tensors(self) -> Iterator[tuple[torch.Tensor, int]]:
        """The states of the object, with the number of changes that each has seen."""
        assert self.optimizer is not None
        names = {state.name for state in self.update.states}
        for tensor in self.update.parameters.values():
            for name, one in self.optimizer.state.get(tensor, {}).items():
                if name in names and isinstance(one, torch.Tensor):
                    yield one, one._version

    def _write(self) -> None:
        assert self.optimizer is not None
        given = {name: self.optimizer.state.get(tensor, {}) for name, tensor in self.update.parameters.items()}
        for state in self.update.states:
            self._write_state(state, {name: given[name].get(state.name) for name, _ in state.parameters})
        for count in self.update.counts:
            steps = {float(_steps(given[name])) for name in count.parameters}
            if len(steps) > 1:
                raise InvalidOption(
                    f"{type(self.optimizer).__name__}: parameters of one group have made {sorted(steps)} steps; on the device a "
                    "group's parameters step together"
                )
            self.engine.writeTensor(count.handle, np.float32(steps.pop()))

    def _write_named(self, states: Mapping[str, Any]) -> None:
        """Take over what another model's optimiser had."""
        named, counts = states["ipu_state"], states["ipu_param"]
        wanted = {f"{state.name}/{name}" for state in self.update.states for name, _ in state.parameters}
        if set(named) != wanted or set(counts) != {count.handle for count in self.update.counts}:
            other = sorted(set(named) ^ wanted) or sorted(counts)
            raise InvalidOption(f"the state is that of another model's optimiser: it differs in {', '.join(other[:4])}")
        for state in self.update.states:
            self._write_state(state, {name: named[f"{state.name}/{name}"] for name, _ in state.parameters})
        for count in self.update.counts:
            self.engine.writeTensor(count.handle, np.float32(counts[count.handle]))

    def _write_state(self, state: DeviceState, given: Mapping[str, torch.Tensor | None]) -> None:
        parts = []
        for name, shape in state.parameters:
            one = given[name]
            if one is None:
                parts.append(np.full(shape, state.initial, state.type.dtype))
            elif tuple(one.shape) != shape:
                raise InvalidOption(f"the optimiser's {state.name} of {name} has shape {tuple(one.shape)}, the parameter {shape}")
            else:
                parts.append(one.detach().cpu().float().numpy().astype(state.type.dtype))
        self.engine.writeTensor(state.handle, np.concatenate([part.reshape(-1) for part in parts]))


def _steps(given: Mapping[str, Any]) -> Any:
    """How many steps a parameter has made; of SGD, which counts none, whether it has made one."""
    return given.get(STEP, 1.0 if given.get(VELOCITY) is not None else 0.0)
