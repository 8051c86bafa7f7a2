"""Assertions on exchange, on exchanges made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from pypoplar.testing.exchanges import assert_exchange, assert_exchange_at_most, assert_no_exchange, exchanged


def exchange(name, phase, *rows):
    messages = np.array(
        [(a, b, n, "x") for a, b, n in rows],
        [("source", np.int32), ("destination", np.int32), ("bytes", np.int64), ("variable", "<U1")],
    )
    sent = np.zeros(4, np.int64)
    for a, _, n in rows:
        sent[a] = max(sent[a], n) if name == "multicast" else sent[a] + n
    return SimpleNamespace(name=name, phase=phase, messages=messages, bytes_sent=sent)


ENGINE = SimpleNamespace(
    executable=SimpleNamespace(
        exchanges=[
            exchange("scale", "before", (0, 1, 16), (0, 1, 8), (2, 1, 4)),
            exchange("scale", "after", (1, 0, 16)),
            exchange("multicast", "copy", (3, 0, 100), (3, 1, 100)),
            exchange("local", "before"),
        ]
    )
)


def test_bytes_are_summed_by_pair():
    assert exchanged(ENGINE, "scale", "before") == {(0, 1): 24, (2, 1): 4}
    assert exchanged(ENGINE, "scale") == {(0, 1): 24, (1, 0): 16, (2, 1): 4}
    assert exchanged(ENGINE, phase="copy") == {(3, 0): 100, (3, 1): 100}
    assert len(exchanged(ENGINE)) == 5


def test_the_expected_exchange_passes():
    assert_exchange(ENGINE, "scale", {(2, 1): 4, (0, 1): 24}, "before")
    assert_no_exchange(ENGINE, "local")
    assert_no_exchange(ENGINE, "scale", "copy")
    assert_exchange_at_most(ENGINE, 24 + 4 + 16 + 100)


def test_executables_and_results_do_for_engines():
    assert_no_exchange(ENGINE.executable, "local")
    assert_no_exchange(SimpleNamespace(engine=ENGINE), "local")


def test_another_exchange_fails_with_every_difference():
    with pytest.raises(AssertionError) as failure:
        assert_exchange(ENGINE, "scale", {(0, 1): 20, (1, 0): 16, (0, 3): 8})
    assert str(failure.value).splitlines() == [
        "the exchange of 'scale' is not as expected:",
        "  tile 0 to tile 1: 24 bytes, expected 20",
        "  tile 0 to tile 3: 0 bytes, expected 8",
        "  tile 2 to tile 1: 4 bytes, expected 0",
    ]


def test_exchange_where_there_should_be_none_fails():
    with pytest.raises(AssertionError, match=r"the exchange is not as expected"):
        assert_no_exchange(ENGINE)


def test_too_much_exchange_fails_with_the_largest():
    with pytest.raises(AssertionError, match=r"sends 144 bytes, more than 143:\n  multicast \(copy\): 100 bytes\n  scale"):
        assert_exchange_at_most(ENGINE, 143)


def test_an_unknown_name_fails_with_the_nearest():
    with pytest.raises(AssertionError, match="did you mean 'scale'"):
        assert_no_exchange(ENGINE, "scales")


def test_an_unknown_phase_is_refused():
    with pytest.raises(ValueError, match="'before', 'after' or 'copy'"):
        assert_no_exchange(ENGINE, "scale", "during")
