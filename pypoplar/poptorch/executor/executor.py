"""The wrapper of a module that users call: it compiles at the first call and keeps weights of host and device equal."""

from __future__ import annotations

from typing import Any

import torch
import torch.utils._pytree as pytree

from pypoplar.errors import InvalidOption, PoplarRuntimeError, PoplarTypeError, TensorShapeError
from pypoplar.poptorch.capture.capturing import unflatten
from pypoplar.poptorch.enums import OutputMode
from pypoplar.poptorch.executor.building import Built, build, describe
from pypoplar.poptorch.options import Options
from pypoplar.report.report import Report
from pypoplar.tracebacks import public


@public
class PoplarExecutor:
    """A module on the simulated IPU: what `trainingModel` and `inferenceModel` give. Call it as you would the module.

    After a training call the module has the new weights; weights that change on the host go to the device with the next call.
    """

    def __init__(
        self, model: torch.nn.Module, options: Options | None = None, optimizer: torch.optim.Optimizer | None = None
    ) -> None:
        """`optimizer` is None for inference."""
        if not isinstance(model, torch.nn.Module):
            raise PoplarTypeError(f"a model is a torch.nn.Module, got {model!r}")
        if not isinstance(options, Options | None):
            raise PoplarTypeError(f"options are poptorch.Options, got {options!r}")
        if not isinstance(optimizer, torch.optim.Optimizer | None):
            raise PoplarTypeError(f"an optimizer is one of torch.optim or poptorch.optim, got {optimizer!r}")
        chosen = Options() if options is None else options.clone()
        if chosen.defaultOutputMode():
            chosen.outputMode(OutputMode.All if optimizer is None else OutputMode.Final)
        if optimizer is None and chosen.Training.gradient_accumulation != 1:
            raise InvalidOption("gradientAccumulation is for training models; an inference model takes deviceIterations")
        chosen._freeze()
        self._module, self._options, self._optimizer = model, chosen, optimizer
        self._built: Built | None = None
        self._versions: dict[str, int] = {}

    @property
    def model(self) -> torch.nn.Module:
        """The module."""
        return self._module

    @property
    def options(self) -> Options:
        """What the model was made with."""
        return self._options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """One call: as many batches as `deviceIterations` and gradient accumulation say. The first one compiles."""
        if self._built is None:
            self.compile(*args, **kwargs)
        built = self._compiled("a call")
        self._check_arguments(built, args, kwargs)
        self._write_changed()
        outputs = built.compiled.run(pytree.tree_leaves((args, kwargs)))
        if built.update is not None:
            self.copyWeightsToHost()
        return unflatten(built.joint.structure, outputs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile for arguments like these, and run nothing."""
        self._built = build(self._module, args, kwargs, self._options, self._optimizer)
        self._versions = {}
        seed = self._options.random_seed if self._options.exists("random_seed") else torch.initial_seed()
        self._built.compiled.set_seed(seed)
        if self._optimizer is not None:
            self.setOptimizer(self._optimizer)

    def isCompiled(self) -> bool:
        """Whether there is an executable."""
        return self._built is not None

    def setOptimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Give the device an optimiser's numbers, such as another learning rate; nothing is compiled again."""
        if self._optimizer is None:
            raise InvalidOption("setOptimizer: an inference model has no optimizer")
        self._optimizer = optimizer
        if self._built is not None and self._built.update is not None:
            for handle, number in self._built.update.numbers(optimizer).items():
                self._built.compiled.write_number(handle, number)

    # weights

    def copyWeightsToDevice(self) -> None:
        """Give the device the module's parameters and buffers. A call does so where they changed."""
        self._compiled("copyWeightsToDevice").compiled.write(self._tensors())
        self._versions = self._host_versions()

    def copyWeightsToHost(self) -> None:
        """Give the module the parameters and buffers of the device. A training call does so."""
        self._compiled("copyWeightsToHost").compiled.read(self._tensors())
        self._versions = self._host_versions()

    def getReport(self) -> Report:
        """The report of the last call: cycles, memory, exchange, by modules and lines."""
        return self._compiled("getReport").compiled.engine.getReport()

    # within

    def _compiled(self, what: str) -> Built:
        if self._built is None:
            raise PoplarRuntimeError(f"{what}: the model is not compiled yet; call it, or its compile(), with a batch")
        return self._built

    def _check_arguments(self, built: Built, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        got = describe(args, kwargs)
        if got != built.arguments:
            raise TensorShapeError(f"the model was compiled for {built.arguments}, got {got}; make a new model for other shapes")

    def _tensors(self) -> dict[str, torch.Tensor]:
        named = [*self._module.named_parameters(remove_duplicate=False), *self._module.named_buffers(remove_duplicate=False)]
        return {name: tensor.detach() for name, tensor in named}

    def _host_versions(self) -> dict[str, int]:
        return {name: tensor._version for name, tensor in self._tensors().items()}

    def _write_changed(self) -> None:
        if self._host_versions() != self._versions:
            self.copyWeightsToDevice()
