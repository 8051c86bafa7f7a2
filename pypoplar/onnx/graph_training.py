"""A model of ONNX whose initializers are trained."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from onnx import ModelProto
from torch import Tensor

from pypoplar.errors import PoplarTypeError, TensorShapeError
from pypoplar.onnx.graph_plan import Planner, ValuesOfWeights
from pypoplar.onnx.model import Model, Shapes, load
from pypoplar.onnx.model_problems import ModelError
from pypoplar.onnx.model_source import ModelSource
from pypoplar.onnx.plan_steps import GraphPlan
from pypoplar.onnx.planned_module import PlannedModule
from pypoplar.poptorch.executor import PoplarExecutor
from pypoplar.poptorch.models import trainingModel
from pypoplar.poptorch.operators import identity_loss
from pypoplar.poptorch.options import Options
from pypoplar.spelling import nearest_or_all

Loss = str | Callable[..., Tensor]
MakesOptimizer = Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer]
FIXED = {"BatchNormalization": (3, 4)}  # operands that are no weights


class TrainableGraph(PlannedModule):
    """A model's graph as a module: a call takes its inputs in their order, and what the loss takes, and gives outputs and loss."""

    def __init__(self, plan: GraphPlan, source: ModelSource, loss: Loss | None, blocks: Mapping[int, str] | None = None) -> None:
        super().__init__(plan, source.initializers, blocks)
        self._inputs, self._names = len(plan.inputs), list(plan.outputs)
        self._loss: Loss | None = None
        if isinstance(loss, torch.nn.Module):
            self._place(["loss"], loss)
        self._loss = loss

    def forward(self, *given: Tensor) -> Any:
        """The outputs in their order, and behind them the loss; outputs alone without one."""
        if self._loss is None and len(given) != self._inputs:
            raise PoplarTypeError(f"the model takes {self._inputs} inputs, got {len(given)}")
        outputs = super().forward(*given[: self._inputs])
        if self._loss is None:
            return outputs
        if isinstance(self._loss, str):
            place = self._names.index(self._loss)
            rest = [one for number, one in enumerate(outputs) if number != place]
            return (*rest, identity_loss(outputs[place], "mean"))
        return (*outputs, self._loss(*outputs, *given[self._inputs :]))


def training(
    model: str | os.PathLike[str] | ModelProto | bytes | Model,
    loss: Loss | None = None,
    optimizer: MakesOptimizer | None = None,
    shapes: Shapes | None = None,
    precision: str | None = None,
    options: Options | None = None,
) -> torch.nn.Module | PoplarExecutor:
    """A model of ONNX as a module whose initializers are parameters, for `poptorch.trainingModel`.

    Weights that are read as numbers, such as the mean and variance of a BatchNormalization or bounds of a Clip, are not trained.

    Parameters
    ----------
    model:
        As `load` takes it.
    loss:
        The name of the output that is the loss; or a function of the outputs and of what calls give behind the inputs, such as
        ``torch.nn.functional.cross_entropy``. None: a module that gives its outputs.
    optimizer:
        A function of parameters, such as ``lambda parameters: torch.optim.SGD(parameters, lr=0.1)``. With it the result is the
        `PoplarExecutor` that `poptorch.trainingModel` makes. None: the module.
    shapes:
        Of inputs and named dimensions, all that the model leaves open.
    precision:
        As of `load`.
    options:
        Of `poptorch.trainingModel`, where there is an optimizer.

    Returns
    -------
    torch.nn.Module or PoplarExecutor
        Parameters have the names of initializers.

    Raises
    ------
    ModelError
        For nodes that are wrong, and for a model without initializers that could be trained.
    PoplarTypeError
        For a loss that is no output.
    TensorShapeError
        For shapes that are left open.
    """
    read = model if isinstance(model, Model) else load(model, shapes, precision)
    source = read._source
    names = [one.name for one in source.graph.output]
    if isinstance(loss, str) and loss not in names:
        raise PoplarTypeError(f"training: {source.name} has no output {loss!r}{nearest_or_all(loss, names)}")
    given = {one.name: _meta(one.name, one.shape, read) for one in read.inputs}
    plan = plan_for_training(source, given)
    if not plan.weights:
        raise ModelError(f"{source.name} has no float initializer that could be trained")
    known = [name for name, value in plan.outputs.items() if value.known]
    if known:
        raise ModelError(f"{source.name}: the output {known[0]} does not depend on the inputs, and is not trained")
    module = TrainableGraph(plan, source, loss)
    return module if optimizer is None else trainingModel(module, options, optimizer(module.parameters()))


def _meta(name: str, shape: Any, model: Model) -> Tensor:
    if shape is None or not all(isinstance(one, int) for one in shape):
        raise TensorShapeError(f"training: the shape of the input {name} is open: give shapes=")
    return torch.empty(tuple(shape), dtype=model._dtypes[name], device="meta")


def plan_for_training(source: ModelSource, given: dict[str, Tensor], probed: Sequence[str] = ()) -> GraphPlan:
    """A plan in which all initializers of floats are trained that no node reads as numbers, with the gradients of others."""
    fixed = {node.input[place] for node in source.graph.node for place in FIXED.get(node.op_type, ()) if place < len(node.input)}
    while True:
        trained = [name for name, one in source.initializers.items() if one.is_floating_point() and name not in fixed]
        try:
            return Planner(source, given, trained, [name for name in probed if name not in trained]).plan()
        except ValuesOfWeights as read:
            fixed |= read.names
