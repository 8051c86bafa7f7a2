"""A captured model, compiled: what a call gives it and takes from it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from attrs import frozen

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.device import Device
from pypoplar.engine.engine import Engine
from pypoplar.errors import TensorIOStateError
from pypoplar.executable.executable import Executable
from pypoplar.executable.host_plans import HostTensor
from pypoplar.poptorch.executor.batches import joined_results
from pypoplar.poptorch.executor.common_rounding import HANDLE
from pypoplar.poptorch.executor.instance_weights import InstanceWeights
from pypoplar.poptorch.executor.known_graphs.captured_facts import STATES, GraphFacts, StateTensor
from pypoplar.poptorch.executor.model_interface import ModelInterface
from pypoplar.poptorch.executor.model_settings import ModelSettings
from pypoplar.poptorch.executor.phased_step import PhasedStep
from pypoplar.poptorch.executor.pipelined_step import PipelinedStep
from pypoplar.poptorch.executor.step_program import ModelOutput, StepProgram, Update, call_loops
from pypoplar.poptorch.lowering.walks.model_walk import LoweredGraph
from pypoplar.poptorch.pipelines.finished_segments import next_segment
from pypoplar.poptorch.pipelines.phase_walk import PhasedGraph
from pypoplar.poptorch.pipelines.stage_walk import StagedGraph
from pypoplar.poptorch.pipelines.streamed_weights import StreamedRow
from pypoplar.poptorch.update.host_state import of_first_replica
from pypoplar.program import Sequence

SEED = "seed"  # its handle
NEXT_SEED = 0x9E3779B1  # what the first word of a replica's seed has more than that of the replica before it


@frozen(eq=False)
class LoweredModel:
    """The program of a call, and what the host has to know of it."""

    program: Sequence
    interface: ModelInterface


def lower_model(lowered: LoweredGraph, settings: ModelSettings, update: Update | None) -> LoweredModel:
    """The program of a graph that has been lowered; `update` trains parameters."""
    graph = lowered.graph
    kind = PipelinedStep if isinstance(lowered, StagedGraph) else PhasedStep if isinstance(lowered, PhasedGraph) else StepProgram
    step = kind(lowered, settings, update)
    program = step.build()
    streamed = _streamed(step.rows)
    for one in lowered.joint.inputs:
        if one.kind not in STATES or one.name in streamed:
            continue
        tensor = lowered.tensor(one.node)
        graph.createHostWrite(one.name, tensor)
        graph.createHostRead(one.name, tensor)
    if lowered.seed is not None:
        graph.createHostWrite(SEED, graph.getNonReplicatedTensor(lowered.seed))
        graph.createHostRead(SEED, lowered.seed)
    functions = lowered.host_functions
    seeded, outputs = lowered.seed is not None, tuple(step.outputs)
    results = step.inputs, outputs, step.changed, step.anchors
    return LoweredModel(program, ModelInterface(*results, seeded, functions, step.cycle, step.rows))


def handles_of_update(executable: Executable, state: Iterable[StateTensor]) -> dict[str, HostTensor]:
    """What the host writes of an optimiser: all that are neither parameters and buffers nor random numbers'."""
    others = {SEED, HANDLE, *(one.name for one in state)}
    return {handle: tensor for handle, tensor in executable.writes.items() if handle not in others}


class CompiledModel:
    """An engine whose one program is a call of the model."""

    def __init__(
        self, facts: GraphFacts, device: Device, settings: ModelSettings, interface: ModelInterface, executable: Executable
    ) -> None:
        """`executable` and `interface` were made for this graph, device and settings."""
        self.inputs, self.outputs, self.anchors = interface.inputs, interface.outputs, interface.anchors
        self.changed = interface.changed
        self.arguments = list(facts.arguments)
        self.batches = settings.batches
        self.indices = [one for one in facts.indices if all(name in self.inputs for name in one.arguments.values())]
        self.state, self.rows = facts.state, interface.rows
        streamed = _streamed(self.rows)
        self.on_tiles = [one for one in self.state if one.name not in streamed]
        self.kept_rows: list[tuple[StreamedRow, int, AnyArray]] = []  # of a call, where the host cannot write them anew
        self.seeded, self.segments = interface.seeded, interface.segments
        self.engine = Engine(executable, name=settings.name)
        self.engine.load(device)
        for handle, function in interface.functions.items():
            self.engine.connectHostFunction(handle, function)
        for name, buffer in self.inputs.items():
            self.engine.connectStream(f"input/{name}", buffer)
        for output in interface.results():
            if output.buffer is not None:
                self.engine.connectStream(output.name, output.buffer)
        self.parted = executable.replicas > 1 and bool(facts.buffers)  # whether replicas have buffers of their own
        named = set() if self.parted else {one.name for one in self.state}
        self.weights = InstanceWeights.of(self.engine, self.state, facts.buffers)
        self.checkpoint = self.engine._checkpoint(handle for handle in executable.writes if handle not in named)
        self.loops = call_loops(settings)
        self.begun = False  # whether a call has begun that neither ended nor was undone

    def run(self, values: Iterable[Any]) -> list[Any]:
        """One call: the flattened outputs for the flattened arguments. Indices among them are checked before.

        The call goes on until `end`. If it fails, `restore` is for what was `begun`.
        """
        given = dict(zip(self.arguments, values, strict=True))
        for index in self.indices:
            index.check(given, self.batches)
        for name, value in given.items():
            if name in self.inputs:
                buffer = self.inputs[name]
                of_each = self.batches.of_each(elements(value, name), buffer.shape[2:])
                np.copyto(buffer, of_each, casting="same_kind")
        self.checkpoint.take()
        replicas = range(self.batches.groups.replicas if self.parted else 0)
        self.kept_rows = [(row, replica, row.whole(self.engine, replica)) for row in self.rows for replica in replicas]
        self.begun = True
        self.engine.resetExecutionProfile()
        self.engine.run()
        return [_result(output, self.batches.groups.replicas) for output in self.outputs]

    def end(self) -> None:
        """What is on the device is what the next call goes on from."""
        self.begun = False

    def restore(self) -> None:
        """Make the device what it was when the call began, but for parameters and buffers, which are to be written anew.

        Where replicas have buffers of their own, they and the parameters are as they were, too.
        """
        self.engine._return_to(self.checkpoint)
        for row, replica, whole in self.kept_rows:
            self.engine.copyToRemoteBuffer(whole, row.handle, 0, replica)

    def where(self) -> str:
        """How far the call has come that has begun."""
        if self.segments:
            return self._where_in_pipeline()
        return self.loops.place(self.checkpoint.loops_left(0, self.loops.count))

    def _where_in_pipeline(self) -> str:
        failed = self.engine.getReport().failed_runs
        executions = {step.number: step.executions for step in failed[-1].steps} if failed else {}
        found = next_segment(self.engine.executable.tree, executions, self.segments, self.loops.in_pipeline) if failed else None
        if found is not None and found.batch < self.batches.count:
            return f"{self.loops.place_of(found.batch)}, in {found.name}"
        return self.loops.place_in_pipeline(self.checkpoint.loops_left(0, self.loops.steps.count))

    def change(self, values: Iterable[Any]) -> None:
        """Give the arguments of the last call, flattened, what the model made of them in place."""
        given = dict(zip(self.arguments, values, strict=True))
        with torch.no_grad():
            for name, output in self.changed.items():
                given[name].copy_(_result(output, self.batches.groups.replicas))

    def anchored(self) -> dict[str, Any]:
        """What anchors were in the last call."""
        return {name: _result(output, self.batches.groups.replicas) for name, output in self.anchors.items()}

    def write(self, tensors: Mapping[str, torch.Tensor], changed: Container[str] | None = None) -> None:
        """Give parameters and buffers, by name, their values; those alone that have `changed`, where one device has all."""
        if changed is None or self.parted or self.rows or self.weights is not None:
            changed = tensors
        arrays = {one.name: elements(tensors[one.name], one.name) for one in self.state if one.name in changed}
        for one in self.on_tiles:
            if one.name in arrays:
                self.engine.writeTensor(one.name, arrays[one.name])
        for row in self.rows:
            row.write(self.engine, arrays, self.batches.groups.replicas)
        if self.weights is not None:
            self.weights.written(arrays)

    def read(self) -> dict[str, torch.Tensor]:
        """The values that parameters and buffers have on the device, by name; of several replicas on the first."""
        arrays = {one.name: of_first_replica(self.engine, one.name) for one in self.on_tiles}
        for row in self.rows:
            arrays |= row.read(self.engine)
        return {one.name: torch.from_numpy(arrays[one.name]) for one in self.state}

    def give(self, values: Mapping[str, torch.Tensor], tensors: Mapping[str, torch.Tensor]) -> None:
        """Give the module's tensors these values of parameters and buffers."""
        with torch.no_grad():
            for one in self.state:
                tensors[one.name].copy_(values[one.name])

    @property
    def random_state(self) -> list[int]:
        """The seed's two words; nothing without random operations. Those of the first replica say what the others have."""
        if not self.seeded:
            return []
        seed, count = (int(word) for word in of_first_replica(self.engine, SEED))
        return [(seed - self.batches.first_replica * NEXT_SEED) & 0xFFFFFFFF, count]

    @random_state.setter
    def random_state(self, words: list[int]) -> None:
        if self.seeded:
            seed, count = words
            first = self.batches.first_replica
            seeds = [(seed + replica * NEXT_SEED, count) for replica in range(first, first + self.batches.groups.replicas)]
            written = np.array(seeds) & 0xFFFFFFFF
            self.engine.writeTensor(SEED, written.astype(np.uint32).reshape(-1))

    def write_number(self, handle: str, number: float) -> None:
        """Give an optimiser's number a value."""
        self.engine.writeTensor(handle, np.array(number, np.float32))
        if self.weights is not None:
            self.weights.number_written(handle, number)


def _result(output: ModelOutput, replicas: int) -> Any:
    if output.buffer is not None:
        return joined_results(output.buffer, output.shape)
    if isinstance(output.known, torch.Tensor):
        known = output.known.numpy()
        return joined_results(np.broadcast_to(known, (replicas, output.batches, *known.shape)), output.shape)
    return output.known


def _streamed(rows: tuple[StreamedRow, ...]) -> set[str]:
    """The names of parameters and buffers that are in streaming memory between phases, not on tiles."""
    return {name for row in rows for name in row.names}


def elements(tensor: torch.Tensor, name: str) -> np.ndarray[Any, Any]:
    """A tensor's elements as the device takes them: numbers of 64 bits have to fit into 32."""
    array = tensor.detach().cpu().contiguous().numpy()
    if array.dtype == np.float64:
        return _floats(array, name)
    if array.dtype != np.int64:
        return array
    narrow = array.astype(np.int32)
    if not np.array_equal(narrow, array):
        raise TensorIOStateError(f"{name} has values from {array.min()} to {array.max()}; integers on the IPU are 32 bits wide")
    return narrow


def _floats(array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    if np.isinf(narrow).sum() != np.isinf(array).sum():
        finite = array[np.isfinite(array)]
        raise TensorIOStateError(f"{name} has values from {finite.min()} to {finite.max()}; floats on the IPU are 32 bits wide")
    return narrow
