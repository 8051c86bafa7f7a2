"""Routes over IPU-Links and gateways, and what each link carries."""

import heapq
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import Target
from pypoplar.compiler.exchange.exchange_costs import link_cycles
from pypoplar.errors import InvalidOption
from pypoplar.executable.pod_links import LinkKind, Wiring


def route(links, source, destination):
    """The links from one IPU to another, in order."""
    found = []
    while source != destination:
        found.append(links.first[source, destination])
        source = links.destination[found[-1]]
    return found


def carried(links, flows):
    """The bytes of flows that the link from one place to another carries, by both."""
    bytes = np.zeros((len(links.first), len(links.first)), np.int64)
    bytes[links.source, links.destination] = links.loads(flows)
    return bytes


def ways(ipus, source, destination):
    links = Wiring(ipus).links()
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
    links = Wiring(6).links()
    assert links.loads(flows).max() == 110
    between = carried(links, flows)
    assert {pair: between[pair] for pair in [(0, 2), (2, 4), (4, 2), (0, 4)]} == {(0, 2): 100, (2, 4): 110, (4, 2): 105, (0, 4): 0}
    assert between.sum() == 315


@given(st.integers(2, 64), st.data())
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
    links = Wiring(ipus).links()
    sums = np.zeros(len(links.source), np.int64)
    for source in range(ipus):
        for destination in range(ipus):
            sums[route(links, source, destination)] += flows[source, destination]
    assert links.loads(flows).tolist() == sums.tolist()
    more = flows.copy()
    more[data.draw(st.integers(0, ipus - 1)), data.draw(st.integers(0, ipus - 1))] += 7
    assert (links.loads(more) >= sums).all()


@given(st.integers(2, 32).map(lambda half: 2 * half), st.integers(0, 2**32 - 1))
def test_a_ladder_turned_by_its_ends_or_its_rails_has_the_same_loads(ipus, seed):
    flows = np.random.default_rng(seed).integers(0, 1000, (ipus, ipus))
    links, here = Wiring(ipus).links(), np.arange(ipus)
    for turned in (here ^ 1, ipus - 2 - (here & ~1) + here % 2):
        assert sorted(links.loads(flows[np.ix_(turned, turned)])) == sorted(links.loads(flows))


def names(wiring, source, destination):
    """The places on the way from one IPU to another."""
    links = wiring.links()
    way = route(links, source, destination)
    return [links.place_name(source), *(links.place_name(int(links.destination[link])) for link in way)]


def test_a_torus_leads_round_the_shorter_way():
    assert names(Wiring(16, torus=True), 1, 15) == ["IPU 1", "IPU 15"]
    assert names(Wiring(16, torus=True), 0, 13) == ["IPU 0", "IPU 14", "IPU 12", "IPU 13"]
    assert names(Wiring(16), 1, 15) == [f"IPU {ipu}" for ipu in range(1, 16, 2)]
    assert len(Wiring(4, torus=True).links().source) == len(Wiring(4).links().source), "two rungs are joined already"


@given(st.integers(3, 32), st.data())
def test_ways_through_a_torus_are_as_short_as_its_rings_have_them(rungs, data):
    source, destination = (data.draw(st.integers(0, 2 * rungs - 1)) for _ in range(2))
    way = names(Wiring(2 * rungs, torus=True), source, destination)
    along = abs(source // 2 - destination // 2)
    assert len(way) - 1 == min(along, rungs - along) + abs(source % 2 - destination % 2)


def test_a_ring_on_a_torus_takes_half_the_time_of_one_on_a_ladder():
    """Each IPU of a rail sends to the next, and the last to the first: round the end, or all the way back."""
    flows = np.zeros((16, 16), np.int64)
    for rung in range(8):
        flows[2 * rung, 2 * (rung + 1) % 16] = 1000
    assert Wiring(16).links().loads(flows).max() == 1000
    assert carried(Wiring(16).links(), flows).sum() == 14000
    assert carried(Wiring(16, torus=True).links(), flows).sum() == 8000


def test_gateways_lead_from_domain_to_domain():
    wiring = Wiring(32, domain=8)
    assert names(wiring, 1, 9) == ["IPU 1", "gateway 0", "gateway 2", "IPU 9"]
    assert names(wiring, 5, 9)[-1] == "IPU 9"
    assert names(wiring, 0, 31)[1:4] == ["IPU 2", "IPU 4", "gateway 1"], "IPU-Links come first"
    assert [place for place in names(wiring, 0, 31) if place.startswith("gateway")] == [
        f"gateway {number}" for number in (1, 3, 5, 7)
    ]
    assert names(wiring, 0, 6) == ["IPU 0", "IPU 2", "IPU 4", "IPU 6"], "not by a gateway within a domain"


@given(st.sampled_from([4, 8, 16]), st.integers(2, 4), st.booleans(), st.data())
def test_ways_between_domains_take_as_few_gateways_as_there_are_and_reach_their_end(domain, domains, torus, data):
    wiring = Wiring(domain * domains, domain, torus)
    source, destination = (data.draw(st.integers(0, wiring.ipus - 1)) for _ in range(2))
    links = wiring.links()
    kinds = links.kind[np.array(route(links, source, destination), np.int64)] if source != destination else np.zeros(0)
    apart = abs(source // domain - destination // domain)
    assert np.count_nonzero(kinds == LinkKind.GATEWAY_LINK) == apart
    assert np.count_nonzero(kinds == LinkKind.TO_GATEWAY) == 2 * (apart > 0)


def test_a_phase_takes_as_long_as_its_busiest_link_of_whatever_kind():
    target = Target.createIPUTarget(16, "bow", opts={"ipuLinkDomainSize": "8"})
    second = target.getTileClockFrequency()
    flows = np.zeros((16, 16), np.int64)
    flows[0, 1] = 529_000
    assert link_cycles(target, flows) == -(-529_000 * second // (52.9e9 / 2))
    flows[0, 8] = flows[1, 9] = 100_000  # both by gateways 0 and 2: a link of 100 Gb/s each way
    assert link_cycles(target, flows) == pytest.approx(max(529_000 / 26.45e9, 200_000 / 12.5e9) * second, abs=1)
    flows[1, 9] = 0
    flows[0, 8] = 1_000_000
    assert link_cycles(target, flows) == pytest.approx(1_000_000 / 12.5e9 * second, abs=1)
    assert link_cycles(target.evolve(gateway_bytes_per_second=10e9), flows) == pytest.approx(1_000_000 / 5e9 * second, abs=1)


@pytest.mark.parametrize(
    ("opts", "told"),
    [
        ({"ipuLinkTopology": "tores"}, "ipuLinkTopology is 'mesh' or 'torus', got 'tores'; did you mean 'torus'"),
        (
            {"ipuLinkDomainSize": "8", "gatewayMode": "false"},
            "IPU 8 cannot be reached from IPU 0: of 16 IPUs .* 8 by .*gatewayMode is off",
        ),
        ({"ipuLinkDomainSize": "6"}, "IPU 6 cannot be reached from IPU 0: .*gateways join machines of 4 IPUs"),
        ({"ipuLinkDomainSize": "128"}, "ipuLinkDomainSize is at most 64, got 128"),
        ({"ipuLinkDomainSize": "0"}, "ipuLinkDomainSize must be an integer of at least 1"),
        ({"ipuLinkDomainSize": "all"}, "ipuLinkDomainSize is the number of IPUs of a domain, got 'all'"),
        ({"gatewayMode": "maybe"}, "gatewayMode is 'true' or 'false', got 'maybe'"),
    ],
)
def test_a_wiring_that_cannot_be_is_told(opts, told):
    with pytest.raises(InvalidOption, match=told):
        Target.createIPUTarget(16, "bow", opts=opts)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"gateway_mode": "off"}, "gateway_mode must be True or False, got 'off'"),
        ({"gateway_mode": 0}, "gateway_mode must be True or False, got 0"),
        ({"global_exchange_constraints": 1}, "global_exchange_constraints must be a list of GlobalExchangeConstraint, got 1"),
        ({"global_exchange_constraints": [1.0]}, r"must be a list of GlobalExchangeConstraint, got \[1.0\]"),
        ({"links": 0}, "ipu_link_bytes_per_second must be a number of B/s, at least 1, got 0"),
    ],
)
def test_links_that_cannot_be_are_told(changed, told):
    with pytest.raises(InvalidOption, match=told):
        Target.createIPUTarget(16, "bow").evolve(**changed)


@pytest.mark.parametrize(
    ("ipus", "domain", "told"),
    [(3, 64, "got 3 IPUs"), (11, 8, "got a domain of 3 of 11 IPUs"), (70, 64, None), (1, 64, None), (8, 8, None), (9, 8, None)],
)
def test_a_torus_of_which_one_rail_is_longer_is_refused(ipus, domain, told):
    opts = {"ipuLinkTopology": "torus", "ipuLinkDomainSize": str(domain)}
    with nullcontext() if told is None else pytest.raises(InvalidOption, match=f"joins the ends of pairs of IPUs, {told}; 'mesh'"):
        assert Target.createIPUTarget(ipus, 4, "bow", opts=opts).getIpuLinkTopology() == "torus"
    Target.createIPUTarget(ipus, 4, "bow", opts={**opts, "ipuLinkTopology": "mesh"})


def test_a_part_of_a_torus_may_be_odd():
    part = Target.createIPUTarget(6, 4, "bow", opts={"ipuLinkTopology": "torus"}).createVirtualTarget(3, 4)
    assert len(Wiring.of(part).links().source) == len(Wiring(3).links().source)


def test_a_target_says_how_it_is_wired():
    opts = {"ipuLinkTopology": "torus", "ipuLinkDomainSize": "64", "ipuLinkConfiguration": "slidingWindow", "gatewayMode": "true"}
    target = Target.createIPUTarget(16, "bow", opts={**opts, "instanceSize": "64"})
    assert (target.getIpuLinkTopology(), target.getIpuLinkDomainSize(), target.getGatewayMode()) == ("torus", 64, True)
    assert Target.createIPUTarget(16, "bow").getIpuLinkTopology() == "mesh"
    assert Wiring.of(target) == Wiring(16, 64, torus=True)
    with pytest.raises(InvalidOption, match="IPU 64 cannot be reached"):
        Target.createIPUTarget(128, "bow", opts={"gatewayMode": "false"})


def lengths_from(start, ipus, domain, torus):
    """By place, how far it is from a start, gateways' links before IPU-Links: Dijkstra's way, on a pod told place by place."""
    gateways = -(-ipus // 4) if ipus > domain else 0

    def joined(one, other):
        low, high = sorted((one, other))
        if high < ipus:
            if low // domain != high // domain:
                return None
            begin = low // domain * domain
            size, low, high = min(domain, ipus - begin), low - begin, high - begin
            round_the_end = torus and size > 4 and size % 2 == 0 and high - low == size - 2
            rung = low // 2 == high // 2
            return (0, 1) if rung or high - low == 2 or round_the_end else None
        if low < ipus:
            return (1, 0) if high - ipus == low // 4 else None
        return (1, 0) if high - low == domain // 4 else None

    known, waiting = {}, [((0, 0), start)]
    while waiting:
        length, place = heapq.heappop(waiting)
        if place not in known:
            known[place] = length
            for other in range(ipus + gateways):
                step = joined(place, other) if other not in known and other != place else None
                if step is not None:
                    heapq.heappush(waiting, ((length[0] + step[0], length[1] + step[1]), other))
    return known, joined


@examples(40)
@given(st.integers(2, 28), st.sampled_from([4, 8, 12, 16, 64]), st.booleans(), st.integers(0, 2**32 - 1))
def test_any_pod_has_ways_of_joined_places_as_short_as_there_are_and_a_phase_takes_what_its_fullest_link_does(
    ipus, domain, torus, seed
):
    drawn = np.random.default_rng(seed)
    torus = torus and not any(size % 2 for size in (min(ipus, domain), ipus % domain) if size > 1)
    opts = {"ipuLinkTopology": "torus" if torus else "mesh", "ipuLinkDomainSize": str(domain)}
    rates = {name: float(drawn.integers(1, 9)) * 1e9 for name in RATES}
    target = Target.createIPUTarget(ipus, "bow", opts=opts).evolve(**rates)
    links, flows = Wiring.of(target).links(), drawn.integers(0, 1000, (ipus, ipus)) * (drawn.random((ipus, ipus)) < 0.3)
    np.fill_diagonal(flows, 0)
    carried_by = {}
    for source in range(ipus):
        far, joined = lengths_from(source, ipus, domain, torus)
        for destination in set(range(ipus)) - {source}:
            places = [source, *(int(links.destination[link]) for link in route(links, source, destination))]
            steps = [joined(*pair) for pair in pairwise(places)]
            assert None not in steps, "each of its links is there"
            assert (sum(step[0] for step in steps), sum(step[1] for step in steps)) == far[destination]
            for one, other in pairwise(places):
                carried_by[one, other] = carried_by.get((one, other), 0) + int(flows[source, destination])
    seconds = [bytes / (target_rate(target, ipus, *ends) / 2) for ends, bytes in carried_by.items()]
    assert link_cycles(target, flows) == int(np.ceil(max(seconds) * target.getTileClockFrequency()))


RATES = ("ipu_link_bytes_per_second", "gateway_bytes_per_second", "gateway_link_bytes_per_second")


def target_rate(target, ipus, one, other):
    """What a link carries in a second, both ways together."""
    return getattr(target, RATES[(one >= ipus) + (other >= ipus)])
