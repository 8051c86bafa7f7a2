"""What a compiled model knows of its module: the parameters and buffers as they are on the device, and what may not change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import torch
from attrs import frozen

from pypoplar.errors import PoplarRuntimeError
from pypoplar.poptorch.capture.meta_tensors import has_values
from pypoplar.poptorch.user_log import say_once

INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by their size
AGAIN = "since the model was compiled; make a new model"


@frozen(eq=False)
class ModuleState:
    """A module as it was when it was compiled."""

    tensors: Mapping[str, tuple[torch.Size, torch.dtype]]
    trained: Mapping[str, bool]  # whether a parameter has requires_grad, for training models
    updated: Mapping[str, torch.Tensor]  # the parameters that an optimiser has
    changed: frozenset[str]  # the parameters and buffers that a call changes
    modes: Mapping[str, bool]  # whether layers are in training mode, by path

    @classmethod
    def of(
        cls, module: torch.nn.Module, names: Sequence[str], updated: Collection[str] | None, buffers: Iterable[str]
    ) -> ModuleState:
        """The state of a module of which a graph uses the parameters and buffers of these names.

        In training an optimiser has the parameters that are `updated`; the forward pass changes the `buffers`.
        """
        known = tensors_of(module)
        lost = [name for name in names if name not in known]
        if lost:
            raise PoplarRuntimeError(
                f"Buffer {lost[0]} is removed from the model when calling the forward method. Leave it there: a graph reads it"
            )
        parameters = dict(module.named_parameters(remove_duplicate=False)) if updated is not None else {}
        return cls(
            {name: (known[name].shape, known[name].dtype) for name in names},
            {name: one.requires_grad for name, one in parameters.items()},
            {name: parameters[name] for name in updated or ()},
            frozenset((*(updated or ()), *buffers)),
            {path: layer.training for path, layer in module.named_modules()},
        )

    def check(self, module: torch.nn.Module) -> None:
        """`PoplarRuntimeError` for what has changed since and would be ignored; modes of layers are told."""
        self.check_tensors(module)
        self._check_memory(module)
        for name, one in module.named_parameters(remove_duplicate=False):
            if self.trained.get(name, one.requires_grad) != one.requires_grad:
                raise PoplarRuntimeError(f"requires_grad of {name} has changed to {one.requires_grad} {AGAIN}")
            if self.updated.get(name, one) is not one:
                raise PoplarRuntimeError(f"{name} has become another parameter, which the optimizer does not have, {AGAIN}")
        changed = [path for path, layer in module.named_modules() if layer.training != self.modes.get(path, layer.training)]
        if changed:
            mode = "train()" if self.modes[changed[0]] else "eval()"
            say_once(
                f"train() or eval() of {changed[0] or 'the module'} was called since the model was compiled; that changes nothing: "
                f"it stays as compiled, after {mode}; make a new model for the other mode"
            )

    def _check_memory(self, module: torch.nn.Module) -> None:
        """`PoplarRuntimeError` for a tensor that a call changes, of which another one has elements: the device has each alone."""
        tensors = {name: one for name, one in _named(module) if name in self.tensors}
        changed = {id(tensors[name]) for name in self.changed if name in tensors}
        for pair in _sharing(tensors):
            for name in pair:
                if id(tensors[name]) in changed:
                    raise PoplarRuntimeError(
                        f"{' and '.join(sorted(pair))} share memory, and a call changes {name}: on the device each has its own; "
                        "clone() one of them, or let both names be one tensor"
                    )

    def check_tensors(self, module: torch.nn.Module) -> None:
        """`PoplarRuntimeError` if parameters or buffers are not there any more, or have other shapes or types."""
        known = tensors_of(module)
        for name, (shape, dtype) in self.tensors.items():
            if name not in known:
                raise PoplarRuntimeError(f"the module has lost {name} {AGAIN}")
            if (known[name].shape, known[name].dtype) != (shape, dtype):
                was, now = _told(shape, dtype), _told(known[name].shape, known[name].dtype)
                raise PoplarRuntimeError(f"{name} has changed from {was} to {now} {AGAIN}")


def _told(shape: torch.Size, dtype: torch.dtype) -> str:
    return f"{tuple(shape)} of {str(dtype).removeprefix('torch.')}"


def _named(module: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]


def tensors_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by all of their names."""
    return {name: tensor.detach() for name, tensor in _named(module)}


def _sharing(tensors: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, str]]:
    """The names of each two tensors that have an element in common, and are not one tensor by two names."""
    first = {id(one): name for name, one in reversed(list(tensors.items())) if has_values(one) and one.numel()}
    ends = {name: _end(tensors[name]) for name in first.values()}
    before: list[str] = []
    for name in sorted(ends, key=lambda name: tensors[name].data_ptr()):
        before = [other for other in before if ends[other] > tensors[name].data_ptr()]
        yield from ((other, name) for other in before if _have_in_common(tensors[other], tensors[name]))
        before.append(name)


def _end(tensor: torch.Tensor) -> int:
    """The address behind a tensor's last element."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr() + (last + 1) * tensor.element_size()


def _have_in_common(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether tensors, of which the second begins within the first, have an element in common; columns of one matrix have none."""
    size, begin = one.element_size(), one.data_ptr()
    if other.element_size() != size or (other.data_ptr() - begin) % size:
        return True
    taken = torch.zeros((max(_end(one), _end(other)) - begin) // size, dtype=torch.bool)
    taken.as_strided(one.shape, one.stride()).fill_(True)
    return bool(taken.as_strided(other.shape, other.stride(), (other.data_ptr() - begin) // size).any())


def changed_values(now: Mapping[str, torch.Tensor], before: Mapping[str, torch.Tensor]) -> set[str] | None:
    """The names of tensors with other elements than before, zeros of one sign; None where there are other names."""
    if now.keys() != before.keys():
        return None
    return {name for name, one in now.items() if not torch.equal(_bits(one), _bits(before[name]))}


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor's elements as integers of their size, where they are floats."""
    return tensor.view(INTEGERS[tensor.element_size()]) if tensor.is_floating_point() else tensor
