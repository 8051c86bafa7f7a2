"""The program of a call: batches from the host, the model, updates, results to the host, in the device's loops."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from attrs import define, field, frozen
from torch import fx

from pypoplar import popops, poputil
from pypoplar.errors import InvalidOption, MissingFeature
from pypoplar.graph.host_links import DataStream
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.enums import OutputMode
from pypoplar.poptorch.executor.batches import CallLoops
from pypoplar.poptorch.executor.common_rounding import rounded_alike
from pypoplar.poptorch.executor.model_settings import SYNTHETIC_RANDOM, Anchor, ModelSettings
from pypoplar.poptorch.executor.tensor_names import UPDATED, named_tensors, tensor_named
from pypoplar.poptorch.lowering.walks.model_walk import LoweredGraph
from pypoplar.poptorch.pipelines.finished_segments import SegmentOfCycle
from pypoplar.poptorch.pipelines.streamed_weights import StreamedRow
from pypoplar.poptorch.update.accumulation import PartOf
from pypoplar.poptorch.update.parameter_step import TrainedParameter, WeightHomes
from pypoplar.program import Copy, Repeat, Sequence
from pypoplar.types import FLOAT, HALF


class Update(Protocol):
    """How parameters change."""

    ahead: Sequence  # of the batches of a step, once it is built

    def named(self) -> dict[str, Tensor]:
        """Tensors of the update that can be anchored, by name."""
        ...

    def build(
        self,
        trained: SequenceOf[TrainedParameter],
        batch: Sequence,
        accumulated: int,
        part_of: PartOf | None = None,
        homes: WeightHomes | None = None,
    ) -> Sequence:
        """What comes behind so many batches; what each of them does, or parts of it, is extended by sums of gradients."""
        ...


@frozen(eq=False)
class ModelOutput:
    """One of the flattened outputs, or an anchor: the stream `name` with its host memory, or a `known` value.

    Memory has, of each replica, so many `batches`.
    """

    name: str
    shape: list[int]
    batches: int
    buffer: npt.NDArray[Any] | None = None
    known: Any = None


@frozen(eq=False)
class OutputCopy:
    """A tensor that goes to the host."""

    tensor: Tensor
    stream: DataStream
    name: str
    mode: OutputMode


@define(eq=False)
class StepProgram:
    """Builds the program of a call from a graph that has been lowered."""

    lowered: LoweredGraph
    settings: ModelSettings
    update: Update | None
    inputs: dict[str, npt.NDArray[Any]] = field(factory=dict)  # host memory by stream
    outputs: list[ModelOutput] = field(factory=list)
    changed: dict[str, ModelOutput] = field(factory=dict)  # arguments, by name
    anchors: dict[str, ModelOutput] = field(factory=dict)
    _copies: list[OutputCopy] = field(factory=list)
    cycle: tuple[SegmentOfCycle, ...] = field(init=False, default=())  # of a pipeline, where stages overlap
    rows: tuple[StreamedRow, ...] = field(init=False, default=())  # where weights are between phases

    def build(self) -> Sequence:
        """The program. `inputs`, `outputs`, `changed` and `anchors` are known afterwards."""
        lowered, settings = self.lowered, self.settings
        before = self._input_copies()
        mode = settings.batches.mode
        self.outputs = [
            self._output(f"output/{number}", node, mode, settings.batches.period)
            for number, node in enumerate(lowered.joint.outputs)
        ]
        for name, node in ({} if settings.synthetic else lowered.joint.changed).items():
            self.changed[name] = self._output(f"changed/{name}", node, OutputMode.All, 1)  # of all batches: rows of the caller's
        named, own = named_tensors(lowered.joint), self._of_update() if settings.anchors else {}
        for anchor in settings.anchors:
            if anchor.tensor in own:
                self.anchors[anchor.name] = self._anchor_of_update(anchor, own[anchor.tensor])
                continue
            node = tensor_named(named, anchor.tensor, own)
            self.anchors[anchor.name] = self._output(f"anchor/{anchor.name}", node, anchor.mode, anchor.period)
        return Sequence([settings.prologue(lowered.graph), self._program(before)])

    def _of_update(self) -> dict[str, Tensor]:
        """What an update makes that can be anchored, by name."""
        if self.update is None:
            return {}
        inputs = {one.name: one.node for one in self.lowered.joint.inputs}
        weights = {f"{UPDATED}{name}": self.lowered.tensor(inputs[name]) for name in self.lowered.joint.gradients}
        return {**weights, **self.update.named()}

    def _anchor_of_update(self, anchor: Anchor, tensor: Tensor) -> ModelOutput:
        """The stream of what there is behind an update."""
        if anchor.mode not in (OutputMode.Final, OutputMode.EveryN):
            raise MissingFeature(
                f"anchorTensor: {anchor.tensor} is there behind a step, for OutputMode.Final and OutputMode.EveryN; pypoplar does "
                f"not have it with OutputMode.{anchor.mode.name} yet"
            )
        name, batches = f"anchor/{anchor.name}", self.settings.batches.returned(anchor.mode, anchor.period)
        stream = self.lowered.graph.addDeviceToHostFIFO(name, tensor.elementType(), tensor.numElements())
        self._copies.append(OutputCopy(tensor, stream, f"{name}/update", anchor.mode))
        return ModelOutput(name, list(tensor.shape()), batches, self._memory(batches, tensor))

    @property
    def loops(self) -> CallLoops:
        """The loops of the call."""
        return call_loops(self.settings)

    def _program(self, before: Sequence) -> Sequence:
        """The program but for what it sets; `before` brings a batch from the host."""
        lowered = self.lowered
        batch = Sequence([before, self._next_seed(), self._passes(), self._buffer_updates()])
        behind = Sequence() if self.update is None else self._updates(batch)
        if self.update is not None and self.settings.stochastic_rounding:
            behind = rounded_alike(lowered.graph, behind)
        return self._looped(batch, behind)

    def _passes(self) -> Sequence:
        """What the model computes for a batch, forward and backward."""
        return self.lowered.program

    def _parts(self) -> PartOf | None:
        """Which part of a batch makes the gradient of a parameter; None where it is one."""
        return None

    def _homes(self) -> WeightHomes | None:
        """Where weights are between updates; None where all are on tiles."""
        return None

    def _input_copies(self) -> Sequence:
        lowered, prog = self.lowered, Sequence()
        for one in lowered.joint.arguments():
            if one.node not in lowered.variables or not one.node.users:
                continue
            variable = lowered.variables[one.node]
            tensor = lowered.tensor(one.node)
            if self.settings.synthetic:
                self._make_data(tensor)
                continue
            stream = lowered.graph.addHostToDeviceFIFO(f"input/{one.name}", variable.type, tensor.numElements())
            prog.add(Copy(stream, tensor, name=f"{one.name}/forward"))
            self.inputs[one.name] = self._memory(self.settings.batches.count, tensor)
        return prog

    def _make_data(self, tensor: Tensor) -> None:
        """Data in the place of the host's: normal numbers, or zeros; integers are 0, which every table has."""
        type, values = tensor.elementType(), np.zeros(tensor.shape())
        if self.settings.synthetic == SYNTHETIC_RANDOM and type in (FLOAT, HALF):
            values = np.random.default_rng(0).standard_normal(tensor.shape())
        self.lowered.graph.setInitialValue(tensor, values.astype(type.dtype))

    def _next_seed(self) -> Sequence:
        """Every batch draws other random numbers."""
        prog, seed = Sequence(), self.lowered.seed
        if seed is not None:
            popops.addInPlace(self.lowered.graph, seed.slice(1, 2), 1, prog, "seed/forward")
        return prog

    def _buffer_updates(self) -> Sequence:
        """Buffers get their new values, all at once: they may be computed from each other."""
        prog, copies = Sequence(), Sequence()
        for name, (_, old, new) in self._new_buffers().items():
            if self._shows_buffers(new):
                new = poputil.duplicate(self.lowered.graph, new, prog, f"{name}/update")
            copies.add(Copy(new, old, name=f"{name.replace('.', '/')}/update"))
        prog.add(copies)
        return prog

    def _new_buffers(self) -> dict[str, tuple[fx.Node, Tensor, Tensor]]:
        """By name what makes the new value of a buffer, the buffer and its new value; without those that stay as they are."""
        lowered, joint = self.lowered, self.lowered.joint
        known = {one.name: one.node for one in joint.inputs}
        buffers = {name: (node, lowered.tensor(known[name]), lowered.tensor(node)) for name, node in joint.buffers.items()}
        return {name: (node, old, new) for name, (node, old, new) in buffers.items() if not bool(old == new)}

    def _shows_buffers(self, new: Tensor) -> bool:
        """Whether a new value is a view of a buffer that gets a new value, too."""
        known = {one.name: one.node for one in self.lowered.joint.inputs}
        changed = {number for name in self.lowered.joint.buffers for number in self.lowered.tensor(known[name]).variable_numbers()}
        return not changed.isdisjoint(new.variable_numbers())

    def _updates(self, batch: Sequence) -> Sequence:
        """What comes behind accumulated batches: updates, by sums of gradients, to which `batch` adds, if there are several."""
        lowered = self.lowered
        assert self.update is not None
        known = {one.name: one.node for one in lowered.joint.inputs}
        trained = [
            TrainedParameter(name, lowered.tensor(known[name]), lowered.tensor(node))
            for name, node in lowered.joint.gradients.items()
        ]
        return self.update.build(trained, batch, self.settings.batches.accumulated, self._parts(), self._homes())

    def _looped(self, batch: Sequence, behind: Sequence) -> Sequence:
        """The loops of a call; results are copied where their output mode says."""
        loops = self.loops
        batch = Sequence([batch, copied(self._of(OutputMode.All))])
        sums = self._sums(batch)
        ahead = Sequence() if self.update is None else self.update.ahead
        step = Sequence([ahead, Repeat(loops.accumulated, batch) if loops.accumulated > 1 else batch, behind])
        every = self._of(OutputMode.EveryN)
        if loops.period > 1 or every:
            step = Sequence([Repeat(loops.period, step) if loops.period > 1 else step, copied(every)])
        return Sequence([Repeat(loops.times, step) if loops.times > 1 else step, copied(self._of(OutputMode.Final)), sums])

    def _of(self, mode: OutputMode) -> list[OutputCopy]:
        return [copy for copy in self._copies if copy.mode is mode]

    def _sums(self, batch: Sequence) -> Sequence:
        """Let `batch` add up outputs; gives the copies of the sums, which start at 0 for the next call."""
        return Sequence([self._summed(copy, batch) for copy in self._of(OutputMode.Sum)])

    def _summed(self, copy: OutputCopy, batch: Sequence) -> Sequence:
        graph, out = self.lowered.graph, Sequence()
        total = graph.clone(copy.tensor, f"{copy.name}/sum")
        popops.addInPlace(graph, total, copy.tensor, batch, copy.name)
        graph.setInitialValue(total, np.zeros(total.shape(), total.elementType().dtype))
        out.add(Copy(total, copy.stream, name=copy.name))
        popops.zero(graph, total, out, copy.name)
        return out

    def _output(self, name: str, node: Any, mode: OutputMode, period: int) -> ModelOutput:
        """The stream of an output, or the value that it always has."""
        lowered = self.lowered
        returned = self.settings.batches.returned(mode, period)
        if not isinstance(node, fx.Node) or not isinstance(node.meta.get("val"), torch.Tensor):
            return ModelOutput(name, [], returned, known=lowered.value(node))
        shape, constant = list(node.meta["val"].shape), lowered.constant(node)
        if mode is OutputMode.Sum and node.meta["val"].dtype is torch.bool:
            raise InvalidOption(f"OutputMode.Sum: {name} is of type torch.bool, which has no sum; return it as numbers")
        if constant is not None:
            known = torch.from_numpy(np.array(constant.array))
            return ModelOutput(
                name, shape, returned, known=known * self.settings.batches.count if mode is OutputMode.Sum else known
            )
        tensor = self._apart(lowered.tensor(node), name)
        if self.settings.synthetic:
            return ModelOutput(name, shape, returned, known=torch.from_numpy(np.zeros(shape, tensor.elementType().dtype)))
        stream = lowered.graph.addDeviceToHostFIFO(name, tensor.elementType(), tensor.numElements())
        self._copies.append(OutputCopy(tensor, stream, f"{name}/forward", mode))
        return ModelOutput(name, shape, returned, self._memory(returned, tensor))

    def _memory(self, batches: int, like: Tensor) -> npt.NDArray[Any]:
        """The host's memory of so many batches of a tensor for each replica."""
        return np.zeros((self.settings.batches.groups.replicas, batches, *like.shape()), like.elementType().dtype)

    def _apart(self, tensor: Tensor, name: str) -> Tensor:
        """A tensor that updates do not change: a copy of what a parameter or buffer is before them."""
        lowered = self.lowered
        kept = {number for one in lowered.variables.values() if one.tensor is not None for number in one.tensor.variable_numbers()}
        if kept.isdisjoint(tensor.variable_numbers()):
            return tensor
        return poputil.duplicate(lowered.graph, tensor, lowered.program, f"{name}/forward")


def copied(copies: list[OutputCopy]) -> Sequence:
    """The copies of tensors to the host."""
    return Sequence([Copy(copy.tensor, copy.stream, name=copy.name) for copy in copies])


def call_loops(settings: ModelSettings) -> CallLoops:
    """The loops of a call's program. `MissingFeature` unless all outputs that have a period have the same one."""
    batches = settings.batches
    returned: list[Any] = [batches, *settings.anchors]
    periods = sorted({one.period for one in returned if one.mode is OutputMode.EveryN}) or [1]
    if len(periods) > 1:
        raise MissingFeature(f"outputs and anchors of OutputMode.EveryN have one period, got {periods}")
    return CallLoops(batches.iterations // periods[0], periods[0], batches.accumulated)
