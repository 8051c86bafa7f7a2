"""For the unit tests of programs that use pypoplar.

A test of a vertex::

    from pypoplar import testing

    def test_scale_doubles():
        result = testing.run_vertex(Scale, {"x": [1, 2, 3], "y": [0, 0, 0], "factor": 2.0})
        assert result["y"].tolist() == [2, 4, 6]

`run` and `run_vertex` run in both engines and compare them bit for bit; the assertions on exchange say who sends what to
whom. `pypoplar.testing.strategies` (needs hypothesis) draws views, mappings and small graphs. With pytest come the fixtures
``ipu`` and ``mode`` and the option ``--pypoplar-mode``.
"""

from pypoplar.testing.comparing import assert_same_bits
from pypoplar.testing.exchanges import assert_exchange, assert_exchange_at_most, assert_no_exchange, exchanged
from pypoplar.testing.running import MODES, Result, run
from pypoplar.testing.single_vertex import run_vertex

__all__ = [
    "MODES",
    "Result",
    "assert_exchange",
    "assert_exchange_at_most",
    "assert_no_exchange",
    "assert_same_bits",
    "exchanged",
    "run",
    "run_vertex",
]
