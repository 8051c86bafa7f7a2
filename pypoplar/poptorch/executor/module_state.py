"""What a compiled model knows of its module: the parameters and buffers as they are on the device, and what may not change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch
from attrs import frozen

from pypoplar.errors import PoplarRuntimeError
from pypoplar.poptorch.user_log import say_once

INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by their size
AGAIN = "since the model was compiled; make a new model"


@frozen(eq=False)
class ModuleState:
    """A module as it was when it was compiled."""

    tensors: Mapping[str, tuple[torch.Size, torch.dtype]]
    trained: Mapping[str, bool]  # whether a parameter has requires_grad, for training models
    updated: Mapping[str, torch.Tensor]  # the parameters that an optimiser has
    modes: Mapping[str, bool]  # whether layers are in training mode, by path

    @classmethod
    def of(cls, module: torch.nn.Module, names: Sequence[str], updated: Iterable[str] | None) -> ModuleState:
        """The state of a module of which a graph uses the parameters and buffers of these names.

        In training an optimiser has the parameters that are `updated`.
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
            {path: layer.training for path, layer in module.named_modules()},
        )

    def check(self, module: torch.nn.Module) -> None:
        """`PoplarRuntimeError` for what has changed since and would be ignored; modes of layers are told."""
        self.check_tensors(module)
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


def tensors_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by all of their names."""
    named = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    return {name: tensor.detach() for name, tensor in named}


def changed_values(now: Mapping[str, torch.Tensor], before: Mapping[str, torch.Tensor]) -> set[str] | None:
    """The names of tensors with other elements than before, zeros of one sign; None where there are other names."""
    if now.keys() != before.keys():
        return None
    return {name for name, one in now.items() if not torch.equal(_bits(one), _bits(before[name]))}


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor's elements as integers of their size, where they are floats."""
    return tensor.view(INTEGERS[tensor.element_size()]) if tensor.is_floating_point() else tensor
