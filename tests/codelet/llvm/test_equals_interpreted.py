"""Native code and the Python form of random codelets: the same results, slots and faults."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from native_rig import run_interpreted, run_native
from typed_strategies import alike, codelets, sums, vertices


@pytest.fixture(autouse=True, scope="module")
def directory(tmp_path_factory):
    """Random codelets are not worth keeping."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def same_bits(one, other):
    """Equal as bits, except that a NaN has no sign and no payload."""
    if one.dtype.kind == "f":
        if not np.array_equal(np.isnan(one), np.isnan(other)):
            return False
        one, other = one[~np.isnan(one)], other[~np.isnan(other)]
    return one.tobytes() == other.tobytes()


def check(codelet, group, **options):
    native_options = {
        "record_touches": options.pop("touches", False),
        "uninitialised_checks": options.pop("unwritten", False),
        "floating_point_checks": bool(options.get("mask", 0)),
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
    assert native.work == python.work


@given(st.data())
def test_random_codelets_do_the_same_in_both_engines(data):
    codelet = data.draw(codelets())
    flops = data.draw(st.booleans())
    check(codelet, data.draw(vertices(codelet)), cycle_limit=300, clock=10**12, random=[1, 2, 3, 2**32 - 4], flops=flops)


@given(st.data())
def test_random_codelets_with_every_check_do_the_same_in_both_engines(data):
    codelet = data.draw(codelets())
    options = data.draw(
        st.fixed_dictionaries(
            {"touches": st.booleans(), "unwritten": st.booleans(), "mask": st.integers(0, 7), "flops": st.booleans()}
        )
    )
    check(codelet, data.draw(vertices(codelet)), cycle_limit=300, **options)


@given(st.data())
def test_random_sums_do_the_same_in_both_engines(data):
    codelet = data.draw(sums())
    check(codelet, data.draw(alike(codelet)), cycle_limit=10**6, flops=data.draw(st.booleans()))
