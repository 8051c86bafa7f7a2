"""From a module and its options to a compiled model."""

from __future__ import annotations

from typing import Any

import torch
import torch.utils._pytree as pytree
from attrs import frozen
from torch import fx
from torch.export import ExportedProgram

from pypoplar import poplin, popnn, popops, poprand
from pypoplar.arrays.garbage import made_to_stay, searched_later
from pypoplar.arrays.number_ranges import counted
from pypoplar.device import Device, IPUModel
from pypoplar.engine.engine import compileGraph
from pypoplar.engine.processes.coming_together import gathered
from pypoplar.engine.processes.instance_peers import instance_peers
from pypoplar.engine.processes.spread_replicas import spread
from pypoplar.errors import FileLoadError, TensorShapeError
from pypoplar.executable.executable import Executable
from pypoplar.graph.graph import Graph
from pypoplar.poptorch.capture import CaptureError, JointGraph
from pypoplar.poptorch.capture.capturing import capture_unless
from pypoplar.poptorch.executor import kept_model
from pypoplar.poptorch.executor.compiled import CompiledModel, LoweredModel, handles_of_update, lower_model
from pypoplar.poptorch.executor.index_ranges import ranges_of_indices
from pypoplar.poptorch.executor.kept_model import KeptModel
from pypoplar.poptorch.executor.known_graphs.captured_facts import GraphFacts
from pypoplar.poptorch.executor.known_graphs.graph_memory import GraphMemory
from pypoplar.poptorch.executor.model_interface import ModelInterface
from pypoplar.poptorch.executor.model_key import digest, model_key
from pypoplar.poptorch.executor.model_settings import ModelSettings
from pypoplar.poptorch.executor.stages import CompilationStages
from pypoplar.poptorch.executor.tensor_names import named_tensors, names_for_anchors
from pypoplar.poptorch.lowering import whole_table  # noqa: F401 (the table's entries)
from pypoplar.poptorch.lowering.ipu_placement import stages_of
from pypoplar.poptorch.lowering.support import told_doubles, unsupported
from pypoplar.poptorch.lowering.walks.model_walk import Outline, WalkOf, lower_graph
from pypoplar.poptorch.operators import name_calls
from pypoplar.poptorch.options.execution_strategies import PhasedExecution
from pypoplar.poptorch.outlining.outlined_runs import Outlining
from pypoplar.poptorch.pipelines.checkpoints import KeptOperations, checkpoints_of
from pypoplar.poptorch.pipelines.phase_walk import PhaseWalk, phases_of_nodes
from pypoplar.poptorch.pipelines.stage_segments import NotPipelined, check_order, stage_segments
from pypoplar.poptorch.pipelines.stage_walk import StageWalk
from pypoplar.poptorch.update.host_optimizer import HostOptimizer
from pypoplar.poptorch.update.host_state import HostState
from pypoplar.poptorch.update.optimizer import DeviceOptimizer
from pypoplar.poptorch.user_log import logger, say_once
from pypoplar.program import Sequence

TILES = 1472  # of a Bow
OTHER_MODEL = "the executable was saved for another model, batch, optimizer or options, or by another pypoplar, PyTorch or operator"


@frozen(eq=False)
class Built:
    """A compiled model, what its optimiser does, and what it was compiled for."""

    compiled: CompiledModel
    kept: KeptModel  # what files have of it
    update: HostOptimizer | None
    states: HostState | None  # of the optimiser
    facts: GraphFacts
    names: list[str]  # of tensors that can be anchored


def build(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    settings: ModelSettings,
    optimizer: torch.optim.Optimizer | None,
    saved: KeptModel | None = None,
) -> Built:
    """Compile a module for arguments like these; it trains if there is an optimiser.

    What was `saved`, or is kept in the cache, is neither lowered nor compiled. `FileLoadError` if another model was saved.
    """
    if saved is not None:
        try:
            _first_batch(settings, args, kwargs)
        except TensorShapeError as problem:
            raise FileLoadError(OTHER_MODEL) from problem
    stages = CompilationStages(type(module).__name__, settings.engine)
    with searched_later():
        model = captured_model(module, args, kwargs, settings, optimizer, stages, remembers=True)
    facts, device = model.facts, model.device
    made_for = model_key(facts.operations, settings, model.described(), device.getTarget())
    if saved is not None and saved.made_for != made_for:
        raise FileLoadError(OTHER_MODEL)
    path = None if settings.cache is None else settings.cache / f"{digest(made_for, facts.lines)}.poptorch"
    with made_to_stay():
        found = saved if saved is not None or path is None else kept_model.find(path, made_for)
    if path is not None and not all_have(found is not None, settings.batches.processes):
        found = saved  # all instances compile, or none
    if found is not None and found.interface is not None:
        logger.info("%s is neither lowered nor compiled: %s has it", type(module).__name__, "the file" if saved else path)
        interface, update = ModelInterface.of_json(found.interface, facts), model.optimizer_of(found)
    else:
        if model.captured is None:  # the executable is not there any more
            with searched_later():
                model = captured_model(module, args, kwargs, settings, optimizer, stages)
        graph, lowered, update = model.lowered(settings.batches.all_replicas, stages)
        interface = lowered.interface
        if found is None:
            with stages.stage("compiling", own_bar=False) as stage:
                executable = compile_shared(graph, [lowered.program], settings)
                stage.result = counted(executable.counts.vertices, "vertex", "vertices")
            found = KeptModel(executable, made_for, interface.to_json(), None if update is None else update.to_json())
            if path is not None:
                kept_model.keep(path, found)
    with stages.stage("making an engine for"), made_to_stay():
        compiled = CompiledModel(facts, device, settings, interface, found.executable)
    states = None if update is None else HostState(update, compiled.engine, settings.batches.iterations, compiled.write_number)
    return Built(compiled, found, update, states, facts, names_for_anchors(facts.named, facts.gradients, settings))


def compile_shared(graph: Graph, programs: list[Sequence], settings: ModelSettings) -> Executable:
    """The executable; where replicas are spread over processes the first one compiles for all."""

    def compile() -> Executable:
        return compileGraph(graph, programs, settings.engine, name=settings.name)

    shared = spread(None, settings.batches.all_replicas, settings.engine) if settings.batches.processes > 1 else None
    return compile() if shared is None else shared.compiled(graph, programs, settings.engine, compile)


def all_have(found: bool, processes: int) -> bool:
    """Whether all processes have found what each looks for."""
    peers = instance_peers() if processes > 1 else None
    return found if peers is None else all(gathered(peers, found, "models", lambda: "the search for a compiled model"))


def captured_model(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    settings: ModelSettings,
    optimizer: torch.optim.Optimizer | None,
    stages: CompilationStages,
    *,
    remembers: bool = False,
) -> CapturedModel:
    """A module, captured for the first batch of arguments like these, and the chips that it takes.

    If it `remembers`, and has the facts of a graph of such a program, there is no graph.
    """
    training = optimizer is not None
    memory = GraphMemory(module, training, settings) if remembers and settings.cache is not None else None
    first_args, first_kwargs = _first_batch(settings, args, kwargs)
    try:
        with stages.stage("capturing") as stage:
            found = capture_unless(
                module, first_args, first_kwargs, training, settings.strategy, _no_facts if memory is None else memory.find
            )
            if isinstance(found, JointGraph):
                stage.result = counted(len(found.graph.nodes), "node")
    except CaptureError as problem:
        raise problem.and_also([] if problem.rest is None else unsupported(problem.rest)) from problem.__cause__
    joint = found if isinstance(found, JointGraph) else None
    facts = found if isinstance(found, GraphFacts) else _facts(found, settings, training, memory)
    settings.check_buffers(module)
    settings.check_pipeline(facts.stages, training)
    ipus = facts.ipus
    for ipu in settings.plans.proportions:
        if ipu >= ipus:
            say_once(f"Options.setAvailableMemoryProportion: IPU{ipu} changes nothing; the model takes {ipus}, from IPU0 on")
    settings.check_replicas(facts.changed, facts.buffers, ipus)
    device = make_device(ipus * settings.batches.all_replicas, settings.chip)
    parameters: dict[str, torch.Tensor] = dict(module.named_parameters(remove_duplicate=False))
    return CapturedModel(joint, facts, settings, device, optimizer, parameters)


def _no_facts(_: ExportedProgram) -> GraphFacts | None:
    return None


def _facts(joint: JointGraph, settings: ModelSettings, training: bool, memory: GraphMemory | None) -> GraphFacts:
    """Those of a graph that has been captured, which memory keeps where nothing had to be told of it."""
    name_calls(joint.graph)
    doubles = told_doubles(joint)
    if doubles is not None:
        logger.warning(doubles)
    if settings.strategy is not None and settings.strategy.overlaps and settings.strategy.stages:
        check_order(joint)
    facts = GraphFacts.of(joint, settings.rounds)
    if memory is not None and doubles is None and (facts.gradients or not training):
        memory.keep(facts)
    return facts


def _first_batch(settings: ModelSettings, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Arguments of one batch of those of a call; `TensorShapeError` where they cannot be shared out."""
    return pytree.tree_map(
        lambda leaf: settings.batches.first(leaf, "an argument") if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs)
    )


@frozen(eq=False)
class CapturedModel:
    """A captured model with all that its program depends on."""

    captured: JointGraph | None  # None where its facts do
    facts: GraphFacts
    settings: ModelSettings
    device: Device
    optimizer: torch.optim.Optimizer | None
    parameters: dict[str, torch.Tensor]  # by all of their names

    @property
    def joint(self) -> JointGraph:
        """The graph, which has been captured."""
        assert self.captured is not None
        return self.captured

    def described(self) -> str:
        """What the optimiser does, in words; nothing without one."""
        update = self._host_optimizer()
        return "" if update is None else update.described()

    def lowered(self, replicas: int, stages: CompilationStages) -> tuple[Graph, LoweredModel, HostOptimizer | None]:
        """A graph of so many replicas, the model's program on it, and how it trains.

        Stages of a `PipelinedExecution` overlap; where they cannot, they run in turn, and a warning says why.
        """
        strategy = self.settings.strategy
        if strategy is not None and strategy.overlaps and stages_of(self.joint) > 1:
            graph = new_graph(self.device, replicas)
            try:
                through = StageWalk.through_segments(stage_segments(self.joint), self._checkpoints())
                return graph, *self._lowered(graph, stages, through)
            except NotPipelined as reason:
                logger.warning("poptorch.PipelinedExecution: the model's stages run in turn, not at the same time: %s", reason)
        graph = new_graph(self.device, replicas)
        walk_of = None
        if isinstance(strategy, PhasedExecution):
            walk_of = PhaseWalk.through_phases(phases_of_nodes(self.joint, strategy))
        return graph, *self._lowered(graph, stages, walk_of)

    def _lowered(
        self, graph: Graph, stages: CompilationStages, walk_of: WalkOf | None
    ) -> tuple[LoweredModel, HostOptimizer | None]:
        settings, host = self.settings, self._host_optimizer()
        update = None if host is None else DeviceOptimizer(graph, host)
        scaling = 1.0 if update is None else update.loss_scaling(self._loss_type())
        with stages.stage("lowering", "operations") as stage:
            lowered = lower_graph(
                graph,
                self.joint,
                update is not None,
                settings.plans,
                stable_norms=settings.stable_norms,
                loss_gradient=scaling,
                ranges=ranges_of_indices(self.joint),
                progress=stage.at,
                outline=self._outline(),
                walk_of=walk_of,
            )
            stage.result = counted(graph.numVertices(), "vertex", "vertices")
        with stages.stage("building the program of"):
            return lower_model(lowered, settings, update), host

    def _outline(self) -> Outline | None:
        """What makes functions of operations that repeat, each on one IPU."""
        threshold, prunes = self.settings.outline_threshold, self.settings.outline_prunes
        if threshold is None or isinstance(self.settings.strategy, PhasedExecution):
            return None
        joint, named = self.joint, named_tensors(self.joint)
        anchors = [named[one.tensor] for one in self.settings.anchors if one.tensor in named]
        news = *joint.buffers.values(), *joint.changed.values(), *joint.gradients.values()
        results = [*joint.outputs, joint.loss, *news, *anchors]
        needed = frozenset(node for node in results if isinstance(node, fx.Node))
        checkpoints = self._checkpoints()
        apart = frozenset[fx.Node]() if checkpoints is None else checkpoints.apart
        return lambda walk, nodes: Outlining.of(walk, nodes, needed, threshold, apart, prunes=prunes).lower

    def _checkpoints(self) -> KeptOperations | None:
        """What stages put aside where they are computed again."""
        strategy = self.settings.strategy
        overlaps = strategy is not None and strategy.overlaps and stages_of(self.joint) > 1 and self.optimizer is not None
        return checkpoints_of(self.joint, self.settings.recomputation) if overlaps else None

    def optimizer_of(self, kept: KeptModel) -> HostOptimizer | None:
        """How the model trains, where its program is kept; `FileLoadError` if what is kept does not say so."""
        host = self._host_optimizer()
        if host is not None:
            host.add_program(kept.optimizer or "", handles_of_update(kept.executable, self.facts.state))
        return host

    def _host_optimizer(self) -> HostOptimizer | None:
        if self.optimizer is None:
            return None
        return HostOptimizer.read(self.optimizer, self.parameters, self.settings.reduction, self.settings.loss_scaling)

    def _loss_type(self) -> torch.dtype:
        assert self.joint.loss is not None
        dtype: torch.dtype = self.joint.loss.meta["val"].dtype
        return torch.float32 if dtype is torch.float64 else dtype


def make_device(ipus: int, chip: str = "bow") -> Device:
    """So many chips of a kind, of no more tiles each than a Bow."""
    model = IPUModel(chip)
    model.numIPUs, model.tilesPerIPU = ipus, min(TILES, model.tilesPerIPU)
    return model.createDevice()


def new_graph(device: Device, replicas: int = 1) -> Graph:
    """A graph for a device, or for each of the replicas that share it, with the device code of the libraries."""
    graph = Graph(device.getTarget(), replicas)
    for library in (popops, poplin, popnn, poprand):
        library.addCodelets(graph)
    return graph
