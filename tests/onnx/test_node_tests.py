"""ONNX's own tests run on the simulated IPU; what is left out of them has its reason in a list."""

import pytest
from onnx_node_tests import KINDS, check, eligible, excluded

LEAST = 1380  # node tests that pass
ALL = [(kind, name) for kind in KINDS for name in sorted(eligible(kind))]
STEP = 71  # the usual run takes every so many of the node tests that pass


def passing(kind):
    return [name for name in sorted(eligible(kind)) if name not in excluded()]


def test_every_exclusion_is_a_test_of_the_device_s_types_and_has_a_reason():
    known = {name for kind in KINDS for name in eligible(kind)}
    assert [name for name in excluded() if name not in known] == []
    assert all(len(reason.split()) > 3 and "wrong values" not in reason for reason in excluded().values())


def test_as_many_tests_pass_as_must():
    assert len(passing("node")) >= LEAST
    assert [len(eligible(kind)) - len(passing(kind)) for kind in KINDS[1:]] == [0, 0, 0]


@pytest.mark.parametrize("name", passing("node")[::STEP])
def test_a_sample_of_the_node_tests_passes(name):
    check(eligible("node")[name])


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in passing(kind)])
def test_every_test_passes_that_is_not_left_out(kind, name):
    check(eligible(kind)[name])
