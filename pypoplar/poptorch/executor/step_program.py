"""The program of a call: batches from the host, the model, updates, results to the host, in the device's loops."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from attrs import define, field, frozen
from torch import fx

from pypoplar import popops, poputil
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.enums import OutputMode
from pypoplar.poptorch.executor.batches import Batches
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.values import Constant
from pypoplar.program import Copy, Repeat, Sequence
from pypoplar.types import FLOAT


class Update(Protocol):
    """How parameters change."""

    def add(self, parameter: str, weight: Tensor, gradient: Tensor, prog: Sequence) -> None:
        """Extend `prog` by the update of one parameter."""
        ...


@frozen(eq=False)
class ModelOutput:
    """One of the flattened outputs: the stream `name` with its host memory, or a value that is `known`."""

    name: str
    shape: list[int]
    buffer: npt.NDArray[Any] | None = None
    known: Any = None


@define(eq=False)
class StepProgram:
    """Builds the program of a call from a lowering that has run."""

    lowering: GraphLowering
    batches: Batches
    update: Update | None
    mean: bool  # whether accumulated gradients are averaged, or summed
    inputs: dict[str, npt.NDArray[Any]] = field(factory=dict)  # host memory by stream
    outputs: list[ModelOutput] = field(factory=list)
    _copies: list[tuple[Tensor, Any, str]] = field(factory=list)

    def build(self) -> Sequence:
        """The program. `inputs` and `outputs` are known afterwards."""
        before = self._input_copies()
        self.outputs = [self._output(number, node) for number, node in enumerate(self.lowering.joint.outputs)]
        batch = Sequence([before, self._next_seed(), self.lowering.program, self._buffer_updates()])
        if self.update is None:
            return self._looped(batch, Sequence())
        return self._looped(*self._with_updates(batch))

    def _input_copies(self) -> Sequence:
        lowering, prog = self.lowering, Sequence()
        for one in lowering.joint.arguments():
            if one.node not in lowering.variables or not one.node.users:
                continue
            variable = lowering.variables[one.node]
            tensor = lowering.tensor(one.node)
            stream = lowering.graph.addHostToDeviceFIFO(f"input/{one.name}", variable.type, tensor.numElements())
            prog.add(Copy(stream, tensor, name=f"{one.name}/forward"))
            self.inputs[one.name] = np.zeros((self.batches.count, *tensor.shape()), variable.type.dtype)
        return prog

    def _next_seed(self) -> Sequence:
        """Every batch draws other random numbers."""
        prog, seed = Sequence(), self.lowering.seed
        if seed is not None:
            popops.addInPlace(self.lowering.graph, seed.slice(1, 2), 1, prog, "seed/forward")
        return prog

    def _buffer_updates(self) -> Sequence:
        """Buffers get their new values, all at once: they may be computed from each other."""
        lowering, prog = self.lowering, Sequence()
        joint = lowering.joint
        known = {one.name: one.node for one in joint.inputs}
        news = {name: lowering.tensor(node) for name, node in joint.buffers.items()}
        for name, new in news.items():
            old = lowering.tensor(known[name])
            if old.variable_numbers() != new.variable_numbers():
                prog.add(Copy(new, old, name=f"{name.replace('.', '/')}/update"))
        return prog

    def _with_updates(self, batch: Sequence) -> tuple[Sequence, Sequence]:
        """What each batch does, and what comes behind the accumulated ones: updates, by sums of gradients if there are several."""
        lowering, graph = self.lowering, self.lowering.graph
        assert self.update is not None
        known = {one.name: one.node for one in lowering.joint.inputs}
        behind, zero = Sequence(), Sequence()
        for name, node in lowering.joint.gradients.items():
            gradient, weight = lowering.tensor(node), lowering.tensor(known[name])
            if self.batches.accumulated > 1:
                path = f"{name.replace('.', '/')}/update"
                total = graph.clone(FLOAT, weight, f"{path}/accumulated")
                popops.scaledAddTo(graph, total, gradient, 1 / self.batches.accumulated if self.mean else 1.0, batch, path)
                self.update.add(name, weight, total, behind)
                graph.setInitialValue(total, np.zeros(total.shape(), np.float32))
                popops.zero(graph, total, zero, path)  # for the next sum
                gradient = total
            else:
                self.update.add(name, weight, gradient, behind)
        return batch, Sequence([behind, zero])

    def _looped(self, batch: Sequence, behind: Sequence) -> Sequence:
        """The loops of a call; results are copied where the output mode says."""
        batches = self.batches
        out = Sequence([Copy(tensor, stream, name=name) for tensor, stream, name in self._copies])
        if batches.mode is OutputMode.All:
            batch = Sequence([batch, out])
        if batches.mode is OutputMode.Sum:
            batch, out = self._summed(batch)
        inner = Sequence([Repeat(batches.accumulated, batch) if batches.accumulated > 1 else batch, behind])
        if batches.mode is OutputMode.EveryN:
            period = Sequence([Repeat(batches.period, inner), out])
            return Sequence([Repeat(batches.iterations // batches.period, period)])
        loop = Sequence([Repeat(batches.iterations, inner) if batches.iterations > 1 else inner])
        return loop if batches.mode is OutputMode.All else Sequence([loop, out])

    def _summed(self, batch: Sequence) -> tuple[Sequence, Sequence]:
        """Batches whose outputs are added up, and the copies of the sums, which start at 0 for the next call."""
        graph, out = self.lowering.graph, Sequence()
        batch = Sequence([batch])
        for tensor, stream, name in self._copies:
            total = graph.clone(tensor, f"{name}/sum")
            popops.addInPlace(graph, total, tensor, batch, name)
            graph.setInitialValue(total, np.zeros(tensor.shape(), tensor.elementType().dtype))
            out.add(Copy(total, stream, name=name))
            popops.zero(graph, total, out, name)
        return batch, out

    def _output(self, number: int, node: Any) -> ModelOutput:
        """The stream of an output, or the value that it always has."""
        lowering, name = self.lowering, f"output/{number}"
        if not isinstance(node, fx.Node) or not isinstance(node.meta.get("val"), torch.Tensor):
            return ModelOutput(name, [], known=lowering.value(node))
        shape = lowering.shape_of(node)
        if isinstance(lowering.values[node], Constant):
            return ModelOutput(name, shape, known=torch.from_numpy(np.array(lowering.values[node].array)))
        tensor = self._apart(lowering.tensor(node), name)
        stream = lowering.graph.addDeviceToHostFIFO(name, tensor.elementType(), tensor.numElements())
        self._copies.append((tensor, stream, f"{name}/forward"))
        return ModelOutput(name, shape, np.zeros((self.batches.returned, *shape), tensor.elementType().dtype))

    def _apart(self, tensor: Tensor, name: str) -> Tensor:
        """A tensor that updates do not change: a copy of what a parameter or buffer is before them."""
        lowering = self.lowering
        kept = {number for one in lowering.variables.values() if one.tensor is not None for number in one.tensor.variable_numbers()}
        if kept.isdisjoint(tensor.variable_numbers()):
            return tensor
        return poputil.duplicate(lowering.graph, tensor, lowering.program, f"{name}/forward")
