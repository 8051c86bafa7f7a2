"""A captured model, compiled: what a call gives it and takes from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from pypoplar.device import Device
from pypoplar.engine.engine import Engine
from pypoplar.errors import TensorIOStateError
from pypoplar.poptorch.capture import InputKind
from pypoplar.poptorch.executor.batches import Batches
from pypoplar.poptorch.executor.step_program import StepProgram, Update
from pypoplar.poptorch.lowering.lowering import GraphLowering


class CompiledModel:
    """An engine whose one program is a call of the model."""

    def __init__(self, lowering: GraphLowering, device: Device, batches: Batches, update: Update | None, mean: bool) -> None:
        """`lowering` has run. `update` trains parameters, with the mean or the sum of accumulated gradients."""
        self.batches, joint = batches, lowering.joint
        step = StepProgram(lowering, batches, update, mean)
        program = step.build()
        self.inputs, self.outputs = step.inputs, step.outputs
        self.arguments = [one.name for one in joint.arguments()]
        self.state = [one for one in joint.inputs if one.kind in (InputKind.PARAMETER, InputKind.BUFFER)]
        graph = lowering.graph
        for one in self.state:
            tensor = lowering.tensor(one.node)
            graph.createHostWrite(one.name, tensor)
            graph.createHostRead(one.name, tensor)
        self.seeded = lowering.seed is not None
        if lowering.seed is not None:
            graph.createHostWrite("seed", lowering.seed)
        self.engine = Engine(graph, [program])
        self.engine.load(device)
        for name, buffer in self.inputs.items():
            self.engine.connectStream(f"input/{name}", buffer)
        for output in self.outputs:
            if output.buffer is not None:
                self.engine.connectStream(output.name, output.buffer)

    def run(self, values: Iterable[Any]) -> list[Any]:
        """One call: the flattened outputs for the flattened arguments."""
        for name, value in zip(self.arguments, values, strict=True):
            if name in self.inputs:
                buffer = self.inputs[name]
                np.copyto(buffer.reshape(-1), elements(value, name).reshape(-1), casting="same_kind")
        self.engine.resetExecutionProfile()
        self.engine.run()
        return [self._result(output) for output in self.outputs]

    def _result(self, output: Any) -> Any:
        if output.buffer is not None:
            return self.batches.joined(output.buffer, output.shape)
        if isinstance(output.known, torch.Tensor) and self.batches.returned > 1:
            return self.batches.joined(np.stack([output.known.numpy()] * self.batches.returned), output.shape)
        return output.known

    def write(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Give parameters and buffers, by name, their values."""
        for one in self.state:
            self.engine.writeTensor(one.name, elements(tensors[one.name], one.name))

    def read(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Give the module's tensors the values that parameters and buffers have on the device."""
        with torch.no_grad():
            for one in self.state:
                tensors[one.name].copy_(torch.from_numpy(self.engine.readTensor(one.name)).reshape(tensors[one.name].shape))

    def set_seed(self, seed: int) -> None:
        """Start the random numbers again."""
        if self.seeded:
            self.engine.writeTensor("seed", np.array([seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF], np.uint32))

    def write_number(self, handle: str, number: float) -> None:
        """Give an optimiser's number a value."""
        self.engine.writeTensor(handle, np.array(number, np.float32))


def elements(tensor: torch.Tensor, name: str) -> np.ndarray[Any, Any]:
    """A tensor's elements as the device takes them: integers of 64 bits have to fit into 32."""
    array = tensor.detach().cpu().contiguous().numpy()
    if array.dtype != np.int64:
        return array
    narrow = array.astype(np.int32)
    if not np.array_equal(narrow, array):
        raise TensorIOStateError(f"{name} has values from {array.min()} to {array.max()}; integers on the IPU are 32 bits wide")
    return narrow
