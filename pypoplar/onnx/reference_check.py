"""Comparison of a model's outputs with those of ONNX's reference evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from pypoplar.errors import PoplarRuntimeError
from pypoplar.onnx.model import Array

RELATIVE = {"half": 2e-2, None: 1e-3, "float": 1e-3}  # as ONNX's own tests have it, by precision
ABSOLUTE = {"half": 2e-2, None: 1e-5, "float": 1e-5}


def check_outputs(
    file: Path, batch: dict[str, Array], results: dict[str, Array], batches: int, precision: str | None
) -> tuple[bool, list[str]]:
    """Whether outputs differ, with a line for each."""
    model = onnx.load(file)
    types = {one.name: onnx.helper.tensor_dtype_to_np_dtype(one.type.tensor_type.elem_type) for one in model.graph.input}
    try:
        evaluator: Any = ReferenceEvaluator(model)
        expected = evaluator.run(list(results), {name: array.astype(types[name]) for name, array in batch.items()})
    except Exception as problem:
        raise PoplarRuntimeError(f"--check: ONNX's reference evaluator fails: {type(problem).__name__}: {problem}") from problem
    lines, differ = ["", "compared with ONNX's reference evaluator"], False
    for (name, array), one in zip(results.items(), expected, strict=True):
        wanted = np.asarray(one)
        if batches > 1 and wanted.ndim:
            wanted = np.concatenate([wanted] * batches)
        same, told = _compared(array, wanted, precision)
        differ |= not same
        lines.append(f"  {name}: {told}")
    return differ, lines


def _compared(array: Array, wanted: Array, precision: str | None) -> tuple[bool, str]:
    if array.shape != wanted.shape:
        return False, f"DIFFERS: shape {list(array.shape)}, expected {list(wanted.shape)}"
    if not array.size:
        return True, "no elements"
    one, other = array.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(invalid="ignore"):
        gap = np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0.0, np.abs(one - other))
    gap = np.where(np.isnan(gap), np.inf, gap)
    half = array.dtype == np.float16 or precision == "half"
    key = "half" if half else None
    bound = ABSOLUTE[key] + RELATIVE[key] * np.where(np.isfinite(other), np.abs(other), 0.0)
    same = bool((gap <= bound).all())
    worst = np.unravel_index(int((gap - bound).argmax()), gap.shape)
    at = f" at {[int(place) for place in worst]}: {one[worst]:.6g}, expected {other[worst]:.6g}" if not same else ""
    return same, f"{'equal' if same else 'DIFFERS'}, largest difference {gap.max():.3g}{at}"
