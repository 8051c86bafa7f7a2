"""ONNX's own tests, those whose types the device has, and what running one of them gives."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

from pypoplar.onnx import backend

LIST = Path(__file__).parents[1] / "onnx" / "excluded_node_tests.toml"
ON_THE_DEVICE = {
    TensorProto.FLOAT,
    TensorProto.FLOAT16,
    TensorProto.BOOL,
    TensorProto.INT8,
    TensorProto.INT16,
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.UINT8,
}
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


def excluded() -> dict[str, str]:
    """The reason of each test that is left out."""
    groups = tomllib.loads(LIST.read_text(encoding="utf-8"))
    return {name: group["reason"] for group in groups.values() for name in group["tests"]}


@cache
def eligible(kind: str) -> dict[str, Any]:
    """The tests of a kind whose inputs and outputs have types of the device, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numbers of ONNX's tests overflow on purpose
        return {test.name: test for test in load_model_tests(kind=kind) if _fits(model_of(test))}


def model_of(test: Any) -> onnx.ModelProto:
    """A test's model, which it has or a file has."""
    return test.model if test.model is not None else onnx.load(Path(test.model_dir) / "model.onnx")


def _fits(model: onnx.ModelProto) -> bool:
    values = [*model.graph.input, *model.graph.output]
    return all(one.type.HasField("tensor_type") and one.type.tensor_type.elem_type in ON_THE_DEVICE for one in values)


def data_sets(test: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """Inputs and expected outputs of a test."""
    if test.model is not None:
        for given, wanted in test.data_sets:
            yield [_array(one) for one in given], [_array(one) for one in wanted]
        return
    for folder in sorted(Path(test.model_dir).glob("test_data_set_*")):
        yield _read(folder, "input"), _read(folder, "output")


def _read(folder: Path, kind: str) -> list[Any]:
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(re.findall(r"\d+", path.name)[-1]))
    return [numpy_helper.to_array(TensorProto.FromString(file.read_bytes())) for file in files]


def _array(one: Any) -> Any:
    return np.asarray(numpy_helper.to_array(one) if isinstance(one, TensorProto) else one)


def check(test: Any) -> None:
    """Run a test on the simulated IPU as ONNX's runner does, and compare types, shapes and values."""
    prepared = backend.prepare(model_of(test))
    for given, wanted in data_sets(test):
        results = prepared.run(given)
        assert len(results) == len(wanted)
        for result, expected in zip(results, wanted, strict=True):
            assert result.dtype == expected.dtype
            assert result.shape == expected.shape
            np.testing.assert_allclose(result, expected, rtol=test.rtol, atol=test.atol)
