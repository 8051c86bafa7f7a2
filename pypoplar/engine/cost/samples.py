"""The values that a user gives to draw from, for codelets whose cycles depend on data."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from pypoplar.codelet.ir.deciding_loads import deciding_fields, faulting_fields
from pypoplar.engine.cost.class_runs import Samples
from pypoplar.errors import InvalidOption, PoplarTypeError
from pypoplar.executable.executable import Executable
from pypoplar.spelling import nearest_or_all
from pypoplar.types import ElementType


def check_samples(executable: Executable, samples: object) -> Samples:
    """`samples` by codelet and field; refused where they name what is not there, or give no values."""
    if samples is None:
        return {}
    if not isinstance(samples, Mapping):
        raise PoplarTypeError(f"sample: expected a dict of codelets, {{'Codelet': {{'field': (low, high)}}}}, got {samples!r}")
    codelets = {codelet.name: codelet for codelet in executable.codelets}
    checked: dict[str, dict[str, tuple[float, float]]] = {}
    for name, fields in samples.items():
        if name not in codelets:
            raise InvalidOption(f"sample: no codelet of the program is called {name!r}{nearest_or_all(str(name), list(codelets))}")
        if not isinstance(fields, Mapping):
            raise PoplarTypeError(f"sample[{name!r}]: expected a dict of fields, {{'field': (low, high)}}, got {fields!r}")
        known = {field.name: field for field in codelets[name].fields}
        checked[name] = {}
        for field, bounds in fields.items():
            where = f"sample[{name!r}]"
            if field not in known:
                raise InvalidOption(f"{where}: {name!r} has no field {field!r}{nearest_or_all(str(field), list(known))}")
            if field not in deciding_fields(codelets[name].typed) | faulting_fields(codelets[name].typed):
                raise InvalidOption(f"{where}: nothing that {name!r} does depends on the values of {field!r}: leave it out")
            checked[name][field] = _bounds(f"{where}[{field!r}]", bounds, known[field].type)
    return checked


def _bounds(where: str, bounds: Any, type: ElementType) -> tuple[float, float]:
    pair = list(bounds) if isinstance(bounds, list | tuple) else []
    if len(pair) != 2 or not all(isinstance(bound, Real) for bound in pair):
        raise PoplarTypeError(f"{where}: expected the least and the largest value, (low, high), got {bounds!r}")
    low, high = pair
    if type.dtype.kind != "f" and any(bound % 1 != 0 for bound in pair):
        raise PoplarTypeError(f"{where}: expected whole numbers, got ({low}, {high})")
    if not low <= high:
        raise InvalidOption(f"{where}: there is no value from {low} to {high}")
    least, most = _range(type.dtype)
    if not least <= low <= high <= most:
        raise InvalidOption(f"{where}: {type!r} has values from {least} to {most}, got {bounds!r}")
    return float(low), float(high)


def _range(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The least and the largest number that a type has and that can be drawn."""
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind == "f":
        return float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    most = 2**53  # what a float tells from its neighbours
    if dtype.kind not in "iu":
        return -most, most
    return max(-most, int(np.iinfo(dtype).min)), min(most, int(np.iinfo(dtype).max))
