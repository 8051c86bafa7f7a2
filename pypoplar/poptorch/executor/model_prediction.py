"""What a step of a model would cost, from its module, arguments and options alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.utils._pytree as pytree
from attrs import evolve

from pypoplar.arrays.freed_memory import keeping_all
from pypoplar.engine.cost.class_runs import Samples
from pypoplar.engine.engine import compileGraph
from pypoplar.executable.executable import Executable
from pypoplar.options import EngineOptions
from pypoplar.poptorch.capture.meta_tensors import standing_for_meta
from pypoplar.poptorch.executor.building import captured_model
from pypoplar.poptorch.executor.model_settings import ModelSettings
from pypoplar.poptorch.executor.stages import CompilationStages
from pypoplar.prediction.predicting import prediction_by
from pypoplar.prediction.prediction import Prediction
from pypoplar.program.assumptions import Assumption


def predicted(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    settings: ModelSettings,
    optimizer: torch.optim.Optimizer | None,
    sample: Samples | None = None,
    assumptions: Iterable[Assumption] = (),
) -> Prediction:
    """The prediction of one call with arguments like these; it trains if there is an optimiser."""
    with keeping_all():  # no decorator: the user's line is looked for above its frame
        stages = CompilationStages(type(module).__name__, settings.engine)
        parameters = dict(module.named_parameters(remove_duplicate=False))  # those that the optimiser has
        with standing_for_meta(module, args, kwargs) as (given, named):
            model = evolve(captured_model(module, given, named, settings, optimizer, stages), parameters=parameters)
            graph, lowered, _ = model.lowered(settings.batches.groups.replicas, stages)

        def compiled(options: EngineOptions) -> Executable:
            return compileGraph(graph, [lowered.program], options, name=settings.name, mode="cost", assumptions=assumptions)

        with stages.stage("pricing", own_bar=False):
            items = items_of_call(settings, args, kwargs)
            return prediction_by(compiled, items, name=settings.name, sample=sample, options=settings.engine)


def items_of_call(settings: ModelSettings, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """How many items a call treats: the rows of the first argument that has some, of all of its batches together."""
    sizes = [leaf.shape[0] for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor) and leaf.dim()]
    return max(1, sizes[0] if sizes else settings.batches.count)
