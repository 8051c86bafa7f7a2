"""Codelets in C++ beside their twins of ours: what both compute and cost, in both engines, and what is ported of them."""

import re
from typing import Any

import numpy as np
from codelet_rig import module_from, run

from pypoplar.codelet.cpp.porting import _Module


def check_twin(ours: Any, twin: Any, values: dict[str, Any]) -> None:
    """Assert that a codelet, its twin in C++ and the Python that this becomes have the same fields, results and slots."""
    assert {(field.name, field.access, field.form, field.type) for field in twin.fields} == {
        (field.name, field.access, field.form, field.type) for field in ours.fields
    }
    first, second = run(ours, **values), run(twin, **values)
    assert first.fault is second.fault is None
    for field in values:
        np.testing.assert_equal(second[field], first[field])
    assert first.slots == second.slots
    module = _Module()
    module.add([twin])
    ported = run(module_from(module.text(["test.cpp"]))[re.sub(r"\W+", "_", twin.name).strip("_")], **values)
    for field in values:
        np.testing.assert_equal(ported[field], first[field])
    assert ported.slots == first.slots
