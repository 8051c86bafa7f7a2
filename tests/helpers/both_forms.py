"""Compares native code and the Python form of a codelet."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from native_rig import Array, Fields, run_interpreted, run_native

from pypoplar.codelet.ir.typed import PricedCodelet
from pypoplar.interface.fault_codes import EXCEPTIONS


def same_bits(one: Array, other: Array) -> bool:
    """Equal as bits, except that a NaN has no sign and no payload."""
    if one.dtype.kind == "f":
        if not np.array_equal(np.isnan(one), np.isnan(other)):
            return False
        one, other = one[~np.isnan(one)], other[~np.isnan(other)]
    return one.tobytes() == other.tobytes()


def compare_forms(codelet: PricedCodelet, group: Sequence[Fields], **options: Any) -> None:
    """Run a group of vertices in both: results, slots, faults, touches and work have to be the same."""
    native_options = {
        "record_touches": options.pop("touches", False),
        "uninitialised_checks": options.pop("unwritten", False),
        "floating_point_checks": options.get("mask", 0) & EXCEPTIONS != 0,
        "count_flops": options.pop("flops", False),
    }
    native = run_native(codelet, group, **options, **native_options)
    python = run_interpreted(
        codelet, group, **options, touches=native_options["record_touches"], unwritten=native_options["uninitialised_checks"],
        flops=native_options["count_flops"],
    )  # fmt: skip
    assert native.fault == python.fault
    for got, wanted in zip(native.fields, python.fields, strict=True):
        for name, array in wanted.items():
            pairs = zip(got[name], array, strict=True) if isinstance(array, list) else [(got[name], array)]
            for one, other in pairs:
                assert same_bits(one, other), (name, one, other)
    workers = 6 if codelet.kind == "multi" else 1
    for i, result in enumerate(python.results):
        slots = native.slots[i * workers : (i + 1) * workers]
        if result is not None:
            assert bool(native.results[i]) is result
            assert max(slots) == python.slots[i]
        elif workers == 1:
            assert slots == [python.slots[i]]
    assert native.random == python.random
    assert native.touched == python.touched
    if native.work is not None and python.work is not None:
        for result, own, other in zip(python.results, native.work, python.work, strict=True):
            counted = 2 if result is None and workers > 1 else 4  # it is not told what workers before the one that faulted spent
            assert own[:counted] == other[:counted]
            assert own[3] <= own[2]
