"""Routes over the IPU-Links of a ladder, and what each link carries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypoplar.executable.pod_links import ladder_links


def route(links, source, destination):
    """The links from one IPU to another, in order."""
    found = []
    while source != destination:
        found.append(links.first[source, destination])
        source = links.destination[found[-1]]
    return found


def ways(ipus, source, destination):
    links = ladder_links(ipus)
    return [(int(links.source[link]), int(links.destination[link])) for link in route(links, source, destination)]


@pytest.mark.parametrize(
    ("ipus", "source", "destination", "way"),
    [
        (2, 0, 1, [(0, 1)]),
        (4, 0, 3, [(0, 2), (2, 3)]),
        (4, 3, 0, [(3, 1), (1, 0)]),
        (8, 1, 7, [(1, 3), (3, 5), (5, 7)]),
        (3, 1, 2, [(1, 0), (0, 2)]),  # the rail of 1 ends: no IPU 3
    ],
)
def test_ways_by_hand(ipus, source, destination, way):
    assert ways(ipus, source, destination) == way


def test_fullest_link_by_hand():
    """What goes from 0 and 2 to 4 meets on the rail from 2 to 4."""
    flows = np.zeros((6, 6), np.int64)
    flows[0, 4], flows[2, 4], flows[4, 2] = 100, 10, 105
    links = ladder_links(6)
    assert links.loads(flows).max() == 110
    carried = links.carried(flows)
    assert {pair: carried[pair] for pair in [(0, 2), (2, 4), (4, 2), (0, 4)]} == {(0, 2): 100, (2, 4): 110, (4, 2): 105, (0, 4): 0}
    assert carried.sum() == 315


@given(st.integers(2, 66), st.data())
def test_ways_are_chains_of_links_as_short_as_the_ladder_has_them(ipus, data):
    source, destination = (data.draw(st.integers(0, ipus - 1)) for _ in range(2))
    way = ways(ipus, source, destination)
    places = [source, *(end for _, end in way)]
    assert [begin for begin, _ in way] == places[:-1]
    assert places[-1] == destination
    assert len(way) == abs(source // 2 - destination // 2) + abs(source % 2 - destination % 2)


@given(st.integers(2, 20), st.integers(0, 2**32 - 1), st.data())
def test_loads_are_the_sums_over_all_ways_and_no_less_for_more_bytes(ipus, seed, data):
    flows = np.random.default_rng(seed).integers(0, 1000, (ipus, ipus))
    links = ladder_links(ipus)
    sums = np.zeros(len(links.source), np.int64)
    for source in range(ipus):
        for destination in range(ipus):
            sums[route(links, source, destination)] += flows[source, destination]
    assert links.loads(flows).tolist() == sums.tolist()
    more = flows.copy()
    more[data.draw(st.integers(0, ipus - 1)), data.draw(st.integers(0, ipus - 1))] += 7
    assert (links.loads(more) >= sums).all()


@given(st.integers(2, 40).map(lambda half: 2 * half), st.integers(0, 2**32 - 1))
def test_a_ladder_turned_by_its_ends_or_its_rails_has_the_same_loads(ipus, seed):
    flows = np.random.default_rng(seed).integers(0, 1000, (ipus, ipus))
    links, here = ladder_links(ipus), np.arange(ipus)
    for turned in (here ^ 1, ipus - 2 - (here & ~1) + here % 2):
        assert sorted(links.loads(flows[np.ix_(turned, turned)])) == sorted(links.loads(flows))
