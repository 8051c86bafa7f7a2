"""What the tests of engines stand on; their `mode` is the fixture of pypoplar's pytest plugin."""

import pytest
from engine_builder import Bench


@pytest.fixture
def bench():
    return Bench()
