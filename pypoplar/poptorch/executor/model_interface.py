"""What the host knows of a compiled model's program beside its executable: what goes in and what comes out."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from attrs import field, frozen
from torch import fx

from pypoplar.errors import FileLoadError
from pypoplar.poptorch.executor.known_graphs.captured_facts import GraphFacts, PlainResult
from pypoplar.poptorch.executor.step_program import ModelOutput
from pypoplar.poptorch.pipelines.finished_segments import SegmentOfCycle
from pypoplar.poptorch.pipelines.streamed_weights import StreamedRow

DTYPES = {np.dtype(kind).name: np.dtype(kind) for kind in "?bBhHiIlLqQefd"}


@frozen(eq=False)
class ModelInterface:
    """The streams of a program with their host memory, results that are known beforehand, and functions that it calls."""

    inputs: Mapping[str, npt.NDArray[Any]]  # host memory by argument
    outputs: tuple[ModelOutput, ...]
    changed: Mapping[str, ModelOutput]  # arguments that a call changes, by name
    anchors: Mapping[str, ModelOutput]
    seeded: bool  # whether it draws random numbers
    functions: Mapping[str, Callable[..., None]] = field(factory=dict)  # of the host, by handle
    segments: tuple[SegmentOfCycle, ...] = ()  # of a pipeline's cycle, where stages work on different batches at the same time
    rows: tuple[StreamedRow, ...] = ()  # where weights are that are in streaming memory between phases

    def results(self) -> list[ModelOutput]:
        """All that comes out."""
        return [*self.outputs, *self.changed.values(), *self.anchors.values()]

    def to_json(self) -> str | None:
        """What `of_json` makes an equal one of; None where something has no such form."""
        if self.functions or any(_plain_or_array(one) is None for one in self.results()):
            return None
        told = {
            "inputs": {name: [array.dtype.name, list(array.shape)] for name, array in self.inputs.items()},
            "outputs": [_plain_or_array(one) for one in self.outputs],
            "changed": {name: _plain_or_array(one) for name, one in self.changed.items()},
            "anchors": {name: _plain_or_array(one) for name, one in self.anchors.items()},
            "seeded": self.seeded,
            "segments": [[one.name, one.offset] for one in self.segments],
            "rows": [[one.handle, one.dtype, one.parameters, one.also] for one in self.rows],
        }
        return json.dumps(told)

    @classmethod
    def of_json(cls, text: str, facts: GraphFacts) -> ModelInterface:
        """That of a model with a graph like this; `FileLoadError` for what is no such text."""
        try:
            told = json.loads(text)
            inputs = {str(name): _memory(*form) for name, form in told["inputs"].items()}
            outputs = tuple(_output(one, plain) for one, plain in zip(told["outputs"], facts.results, strict=True))
            changed, anchors = (
                {str(name): _output(one, None) for name, one in told[kind].items()} for kind in ("changed", "anchors")
            )
            if not changed.keys() <= set(facts.changed):
                raise ValueError(f"arguments that a call changes are {sorted(changed)}")
            segments = tuple(SegmentOfCycle(str(name), int(offset)) for name, offset in told["segments"])
            rows = tuple(_row(*form) for form in told["rows"])
            return cls(inputs, outputs, changed, anchors, bool(told["seeded"]), segments=segments, rows=rows)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            raise FileLoadError(f"damaged: what goes in and comes out of the model is not there: {problem!r}") from problem


def _plain_or_array(output: ModelOutput) -> list[Any] | None:
    """An output as JSON; None where its known value has no such form."""
    common = [output.name, output.shape, output.batches]
    if output.buffer is not None:
        return [*common, "stream", output.buffer.dtype.name, list(output.buffer.shape)]
    if not isinstance(output.known, torch.Tensor):
        return None if isinstance(output.known, fx.Node) else [*common, "plain"]
    array = output.known.numpy()
    if array.dtype.name not in DTYPES:
        return None
    return [*common, "known", array.dtype.name, list(array.shape), base64.b64encode(array.tobytes()).decode()]


def _output(told: list[Any], plain: PlainResult | None) -> ModelOutput:
    """What `_plain_or_array` told of an output; what is no tensor is as the graph has it."""
    name, shape, batches, kind, *form = told
    if type(name) is not str or type(batches) is not int or not all(type(size) is int for size in shape):
        raise ValueError(f"{told[:3]} is no output")
    match kind:
        case "stream":
            return ModelOutput(name, shape, batches, _memory(*form))
        case "known":
            dtype, sizes, content = form
            array = np.frombuffer(base64.b64decode(content, validate=True), DTYPES[dtype]).reshape(sizes)
            return ModelOutput(name, shape, batches, known=torch.from_numpy(array.copy()))
        case "plain" if plain is not None:
            return ModelOutput(name, shape, batches, known=plain.value)
    raise ValueError(f"an output is {kind!r}")


def _row(handle: str, dtype: str, parameters: list[tuple[str, list[int]]], also: Iterable[tuple[str, str]] = ()) -> StreamedRow:
    shapes = tuple((str(name), tuple(map(int, shape))) for name, shape in parameters)
    return StreamedRow(str(handle), DTYPES[dtype].name, shapes, tuple((str(other), str(name)) for other, name in also))


def _memory(dtype: str, shape: list[int]) -> npt.NDArray[Any]:
    return np.zeros(shape, DTYPES[dtype])
