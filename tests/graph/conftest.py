"""What the tests of graphs stand on."""

import pytest
from small_graphs import new_graph


@pytest.fixture
def graph():
    return new_graph()
