"""The states of a device's optimiser, as the host has them: in PyTorch's optimisers by parameter, in PopTorch's by name, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pypoplar.engine.engine import Engine
from pypoplar.errors import InvalidOption
from pypoplar.poptorch.optim import Optimizer
from pypoplar.poptorch.update.automatic_loss_scaling import FACTOR
from pypoplar.poptorch.update.device_states import DeviceStates
from pypoplar.poptorch.update.gradient_descent import VELOCITY
from pypoplar.poptorch.update.host_optimizer import DeviceState, HostOptimizer
from pypoplar.poptorch.update.popart_names import STEP as STEPS
from pypoplar.poptorch.update.popart_names import state_name
from pypoplar.poptorch.user_log import logger

Array = npt.NDArray[Any]
Values = dict[tuple[str, str], torch.Tensor]  # by the names of a state and of a parameter
STEP = "step"
UNCOUNTED = ("SGD",)  # kinds whose states have no count of steps in PyTorch
VALUE = "value"  # of a state that no parameter has
HOLDER = "_device_states"  # the attribute of an optimiser object that says whose states it has


def of_first_replica(engine: Engine, handle: str) -> Array:
    """What the device has under a handle; of several replicas what the first has."""
    values = engine.readTensor(handle)
    return values if engine.executable.replicas == 1 else values[0, ...]  # an array, of one element too


class HostState:
    """Keeps an optimiser object and the device's states together.

    The object's `state` is the device's: whoever looks at it gets what the device has, and what the host has changed since goes to
    the device before the next call, as with weights. An object that comes without states leaves the device's as they are.
    """

    def __init__(self, update: HostOptimizer, engine: Engine, steps: int, write_number: Callable[[str, float], None]) -> None:
        """For an engine that is loaded; a call makes so many `steps`. Numbers get there by `write_number`."""
        self.update, self.engine, self.steps, self.write_number = update, engine, steps, write_number
        self.optimizer: torch.optim.Optimizer | None = None
        self._states = DeviceStates()  # of the object
        self.settle: Callable[[], None] = _nothing  # called before the device is read
        self._last: torch.optim.Optimizer | None = None  # the object that had the states most recently
        self._hooks: list[Any] = []
        self._seen: Values | None = None  # what the object has of the device's; None while nobody has looked since the last call
        self._differs = False  # whether the device is to get what the object has, whatever was seen
        self._numbers: dict[str, Any] | None = None  # by PopART's names, which a loaded state has and the device does not yet
        self._made: dict[str, float] | None = None  # steps of each parameter; None before the device has states
        self._made_before: dict[str, float] | None = None  # the same when the call began that runs, or the last one

    # whose states they are

    def attach(self, optimizer: torch.optim.Optimizer) -> None:
        """Let an optimiser object have the states. Those that it has of another model, it gets from that first."""
        if optimizer is self.optimizer:
            return
        self.detach()
        other = getattr(optimizer, HOLDER, None)
        if other is not None:
            other.detach()
        self.optimizer = optimizer
        setattr(optimizer, HOLDER, self)
        self._take_states()
        self._seen, self._differs = None, optimizer is self._last or bool(self._given())
        self._last = optimizer
        self._hooks = [
            optimizer.register_state_dict_pre_hook(lambda _: self.fetch()),
            optimizer.register_load_state_dict_post_hook(lambda _: self._take_states()),
        ]

    def detach(self) -> None:
        """Give the object the states, and leave it."""
        if self.optimizer is None:
            return
        self.fetch()
        for hook in self._hooks:
            hook.remove()
        delattr(self.optimizer, HOLDER)
        self.optimizer, self._states.look = None, None

    def _take_states(self) -> None:
        """Watch the object's states. A dictionary that took the place of the one that was watched is for the device."""
        assert self.optimizer is not None
        given = self.optimizer.state
        if given is not self._states:
            self._states.look = None
            self._states = given if isinstance(given, DeviceStates) else DeviceStates(given)
            self.optimizer.state = self._states
            self._seen, self._differs = None, True
        self._states.look = self.look

    # calls

    def begin(self) -> None:
        """A call begins."""
        self._made_before = self._made

    def stepped(self) -> None:
        """The device has made the steps of a call."""
        made = self._made or {}
        self._made = {name: made.get(name, 0.0) + self.steps for name in self._trained()}
        self._seen = None
        if isinstance(self.optimizer, Optimizer):
            self.optimizer.host_state_is_dirty = True

    def undo(self) -> None:
        """The device is as it was when the call began. What the host had, it has still, or looks at anew."""
        self._made = self._made_before

    def leave_numbers(self, optimizer: torch.optim.Optimizer) -> None:
        """Forget the numbers of a state that an object has loaded: those of its groups are on the device."""
        if optimizer is self.optimizer:
            self.look()
        elif isinstance(optimizer, Optimizer) and optimizer.ipu_state_is_dirty and optimizer.has_state():
            states, _ = self._renamed(optimizer._state_dict)
            optimizer._state_dict = {"ipu_state": states, "ipu_param": {}}
        self._numbers = None

    def in_parts(self, optimizer: torch.optim.Optimizer) -> dict[str, dict[str, Any]] | None:
        """The whole state by name, if it has been given to the object, and parameters of one group have numbers of their own."""
        given_by_name = isinstance(optimizer, Optimizer) and (optimizer.ipu_state_is_dirty or self._numbers is not None)
        if optimizer is not self.optimizer or not given_by_name:
            return None
        self.look()
        given = self._given()
        named = {self._named_by_popart(state, name): part for state in self.update.states for name, part in _parts(state, given)}
        counted = [name for count in self.update.counts for name in count.parameters]
        named |= {f"{STEPS}{name}": torch.tensor(self._steps_of((name,), given)) for name in counted}
        if self.update.automatic is not None:
            named[FACTOR] = torch.as_tensor(given.get((VALUE, FACTOR), 1.0))
        whole = {"ipu_state": named, "ipu_param": {**self.update.named_numbers(), **(self._numbers or {})}}
        return whole if self.update.are_parts(whole) else None

    # to the host

    def look(self) -> None:
        """Give the object the device's states, if it does not have them."""
        optimizer: Any = self.optimizer
        if optimizer is None:
            return
        if isinstance(optimizer, Optimizer) and optimizer.ipu_state_is_dirty and optimizer.has_state():
            states, numbers = self._renamed(optimizer._state_dict)
            values = self._named(states)
            self._numbers = numbers
            self._drop()
            self._put(values)
            optimizer.ipu_state_is_dirty, self._differs = False, True
        if self._seen is not None or self._differs or optimizer.state is not self._states:
            return
        self.settle()
        if self._made is not None:
            self._put(self._device_values())
        self._seen = _copied(self._given())

    def fetch(self) -> None:
        """Give the object the device's states, those of `poptorch.optim` by name as well."""
        optimizer = self.optimizer
        if optimizer is None:
            return
        if isinstance(optimizer, Optimizer) and optimizer.ipu_state_is_dirty:
            return  # it has been given some by name, and nobody has looked since
        self._take_states()
        self.look()
        if isinstance(optimizer, Optimizer):
            given = self._given()
            parts = {
                self._named_by_popart(state, name): part for state in self.update.states for name, part in _parts(state, given)
            }
            if self.update.automatic is not None:
                parts[FACTOR] = torch.as_tensor(given.get((VALUE, FACTOR), 1.0))
            for count in self.update.counts:
                steps = self._steps_of(count.parameters, given)
                parts |= {f"{STEPS}{name}": torch.tensor(steps) for name in count.parameters}
            optimizer._state_dict = {"ipu_state": parts, "ipu_param": {**self.update.named_numbers(), **(self._numbers or {})}}
            optimizer.host_state_is_dirty = False

    def _device_values(self) -> Values:
        """What the device has."""
        values: Values = {}
        if self.update.automatic is not None:
            values[VALUE, FACTOR] = torch.tensor(float(of_first_replica(self.engine, FACTOR).item()))
        for state in self.update.states:
            whole = torch.from_numpy(np.array(of_first_replica(self.engine, state.handle))).reshape(-1)
            begin = 0
            for name, shape in state.parameters:
                end = begin + int(np.prod(shape))
                part, of = whole[begin:end].reshape(shape), self.update.parameters[name]
                values[state.name, name] = part.double() if of.dtype is torch.float64 else part.clone()  # as PyTorch's steps ask
                begin = end
        if self.update.kind not in UNCOUNTED:
            made = dict(self._made or {})
            for count in self.update.counts:
                made.update(dict.fromkeys(count.parameters, float(of_first_replica(self.engine, count.handle).item())))
            values |= {(STEP, name): torch.tensor(made.get(name, 0.0)) for name in self._trained()}
        return values

    def _put(self, values: Values) -> None:
        """Let the object have states. What it has beside them stays."""
        news: dict[str, dict[str, Any]] = {}
        for (state, name), value in values.items():
            news.setdefault(name, {})[state] = value
        for name, new in news.items():
            key = self._key(name)
            self._states.set_unseen(key, {**self._states.unseen(key), **new})

    def _drop(self) -> None:
        """Let the object have none of the device's states."""
        for state, name in self._given():
            key = self._key(name)
            self._states.set_unseen(key, {kept: value for kept, value in self._states.unseen(key).items() if kept != state})

    def _key(self, name: str) -> Any:
        """By what the object has states: the parameter of a name; for what is of none, the name, which PyTorch keeps as it is."""
        return FACTOR if name == FACTOR else self.update.parameters[name]

    def _given(self) -> Values:
        """What the object has of the device's states, and numbers of steps."""
        assert self.optimizer is not None
        known = {state.name for state in self.update.states} | {STEP, VALUE}
        names = [*self._trained(), *([] if self.update.automatic is None else [FACTOR])]
        return {
            (state, name): value if isinstance(value, torch.Tensor) else torch.tensor(float(value))
            for name in names
            for state, value in self._states.unseen(self._key(name)).items()
            if state in known and value is not None
        }

    def _trained(self) -> Iterator[str]:
        """The names of the parameters that have states on the device, or whose steps are counted there."""
        counted = [name for count in self.update.counts for name in count.parameters]
        yield from dict.fromkeys([*(name for state in self.update.states for name, _ in state.parameters), *counted])

    # to the device

    def write_changed(self, optimizer: torch.optim.Optimizer) -> None:
        """Give the device an object's states, if it has other ones than it had."""
        self.attach(optimizer)
        self._take_states()
        if isinstance(optimizer, Optimizer) and optimizer.ipu_state_is_dirty:
            self.look()
            optimizer.ipu_state_is_dirty = False
        if self._numbers is not None:
            for handle, number in self.update.numbers_from_names(optimizer, self._numbers).items():
                self.write_number(handle, number)
            self._numbers = None
        if self._seen is None and not self._differs:
            return
        given = self._given()
        if not self._differs and _same(given, self._seen or {}):
            return
        self._differs = True  # until all of them are there
        self._write(given)
        self._made = {name: float(given.get((STEP, name), torch.tensor(0.0))) for name in self._trained()} if given else None
        self._seen, self._differs = _copied(given), False

    def _write(self, given: Values) -> None:
        arrays = {state.handle: _array(state, given) for state in self.update.states}
        arrays |= {count.handle: np.array(self._steps_of(count.parameters, given), np.float32) for count in self.update.counts}
        if self.update.automatic is not None:
            arrays[FACTOR] = np.array(float(given.get((VALUE, FACTOR), 1.0)), np.float32)
        for handle, array in arrays.items():
            self.engine.writeTensor(handle, array)

    def _steps_of(self, parameters: tuple[str, ...], given: Values) -> float:
        """How many steps a group has made; of SGD, which counts none, whether it has made one."""
        counted = self.update.kind not in UNCOUNTED
        steps = {float(given.get((STEP, name), 0.0)) if counted else float((VELOCITY, name) in given) for name in parameters}
        if len(steps) > 1:
            raise InvalidOption(
                f"{type(self.optimizer).__name__}: parameters of one group have made {sorted(steps)} steps; on the device a "
                "group's parameters step together"
            )
        return steps.pop()

    def _named(self, states: Mapping[str, Any]) -> Values:
        """What another model's optimiser had, by its names. What is not among them stays as the device has it, with a warning."""
        named = dict(states)
        wanted = {
            self._named_by_popart(state, name): (state.name, name) for state in self.update.states for name, _ in state.parameters
        }
        wanted |= {f"{STEPS}{name}": (STEP, name) for count in self.update.counts for name in count.parameters}
        wanted |= {} if self.update.automatic is None else {FACTOR: (VALUE, FACTOR)}
        if other := sorted(set(named) - set(wanted)):
            raise InvalidOption(f"the state is that of another model's optimiser: it differs in {', '.join(other[:4])}")
        if missing := sorted(set(wanted) - set(named)):
            logger.warning("the optimiser's state lacks %s; the device keeps what it has", ", ".join(missing[:4]))
            named |= {one: self._kept(*wanted[one]) for one in missing}
        values = {wanted[one]: torch.as_tensor(value) for one, value in named.items()}
        unmade = {
            name for count in self.update.counts for name in count.parameters if float(named[f"{STEPS}{name}"]) == 0
        }  # as before the first step
        if self.update.kind in UNCOUNTED:
            values = {key: value for key, value in values.items() if key[0] != STEP}
        else:
            given = self._given()  # of steps that no name stands for
            for name in self._trained():
                steps = float(values.get((STEP, name), given.get((STEP, name), 0.0)))
                values[STEP, name] = torch.tensor(steps)  # one each: steps change them in place
        return {(state, name): value for (state, name), value in values.items() if name not in unmade}

    def _kept(self, state: str, parameter: str) -> torch.Tensor:
        """What the device has of a state of a parameter."""
        if state == STEP:
            return torch.tensor((self._made or {}).get(parameter, 0.0))
        return self._device_values()[state, parameter]

    def _renamed(self, states: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """States and numbers by PopART's names, where an older pypoplar has saved them by its own."""
        named, numbers = dict(states["ipu_state"]), dict(states["ipu_param"])
        for state in self.update.states:
            for name, _ in state.parameters:
                old = f"{state.name}/{name}"
                if old in named:
                    named[self._named_by_popart(state, name)] = named.pop(old)
        for count in self.update.counts:
            if count.handle in numbers:
                steps = numbers.pop(count.handle)
                named |= {f"{STEPS}{name}": steps for name in count.parameters}
        return named, numbers

    def _named_by_popart(self, state: DeviceState, parameter: str) -> str:
        return state_name(self.update.compiled[self.update.groups[parameter]], state.name, parameter)


def _parts(state: DeviceState, given: Values) -> Iterator[tuple[str, torch.Tensor]]:
    """A state of each parameter, which is as before the first step where none is given."""
    for name, shape in state.parameters:
        one = given.get((state.name, name))
        if one is None:
            one = torch.from_numpy(np.full(shape, state.initial, state.type.dtype))
        elif tuple(one.shape) != shape:
            raise InvalidOption(f"the optimiser's {state.name} of {name} has shape {tuple(one.shape)}, the parameter {shape}")
        yield name, one


def _array(state: DeviceState, given: Values) -> Array:
    parts = [part.detach().cpu().float().numpy().astype(state.type.dtype) for _, part in _parts(state, given)]
    return np.concatenate([part.reshape(-1) for part in parts])


def _copied(values: Values) -> Values:
    return {name: value.detach().clone() for name, value in values.items()}


def _same(some: Values, others: Values) -> bool:
    return some.keys() == others.keys() and all(
        one.dtype == others[name].dtype and torch.equal(one, others[name]) for name, one in some.items()
    )


def _nothing() -> None:
    """Nothing is to be settled."""
