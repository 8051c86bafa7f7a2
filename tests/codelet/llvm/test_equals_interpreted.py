"""Native code and the Python form of random codelets: the same results, slots and faults."""

import pytest
from both_forms import compare_forms
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from typed_strategies import alike, codelets, sums, vertices

from pypoplar.interface.fault_codes import FloatingPoint
from pypoplar.interface.layout import mask


@pytest.fixture(autouse=True, scope="module")
def directory(tmp_path_factory):
    """Random codelets are not worth keeping."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@examples(50)
@given(st.data())
def test_random_codelets_do_the_same_in_both_engines(data):
    codelet = data.draw(codelets())
    options = {"flops": data.draw(st.booleans()), "mask": data.draw(st.sampled_from([0, FloatingPoint.STOCHASTIC]))}
    compare_forms(codelet, data.draw(vertices(codelet)), cycle_limit=300, clock=10**12, random=[1, 2, 3, 2**64 - 4], **options)


@examples(50)
@given(st.data())
def test_random_codelets_with_every_check_do_the_same_in_both_engines(data):
    codelet = data.draw(codelets())
    options = data.draw(
        st.fixed_dictionaries(
            {
                "touches": st.booleans(),
                "unwritten": st.booleans(),
                "mask": st.integers(0, mask(FloatingPoint)),
                "flops": st.booleans(),
            }
        )
    )
    compare_forms(codelet, data.draw(vertices(codelet)), cycle_limit=300, **options)


@examples(50)
@given(st.data())
def test_random_sums_do_the_same_in_both_engines(data):
    codelet = data.draw(sums())
    options = {"flops": data.draw(st.booleans()), "mask": data.draw(st.sampled_from([0, FloatingPoint.STOCHASTIC]))}
    compare_forms(codelet, data.draw(alike(codelet)), cycle_limit=10**6, **options)
