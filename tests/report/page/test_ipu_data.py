"""What goes between IPUs, and how far it uses their links."""

import numpy as np
import pytest
from attrs import evolve
from page_reports import exchange, messages, report, two_ipus

from pypoplar import FLOAT, Engine, Graph, IPUModel
from pypoplar.program import Copy, Repeat, Sequence
from pypoplar.report.insights.ranking import biggest_exchange
from pypoplar.report.ipu_links import BetweenIpus, Crossing, between_ipus, bytes_between, links_of
from pypoplar.report.page.ipu_data import ipu_data, of_pairs
from pypoplar.report.text.summary import summary
from pypoplar.report.text.summary_values import summary_values


def six_ipus(**links):
    return evolve(report().compilation.target, numIPUs=6, **links)


def test_one_ipu_has_no_matrix():
    assert ipu_data(report()) is None


def test_bytes_go_from_ipu_to_ipu_and_use_the_link_each_way_by_itself():
    data = ipu_data(two_ipus())
    assert data["bytes"] == [[8, 80], [20, 0]]
    assert data["use"] == [[0, 1.0], [0.25, 0]]  # 80 and 20 of 80 B
    assert [row["within"] for row in data["rows"]] == [8, 0]
    assert [(row["sent"], row["received"]) for row in data["rows"]] == [(80, 20), (20, 80)]
    assert [(row["step"], row["bytes"], row["cycles"], row["use"], row["pair"]) for row in data["steps"]] == [
        (0, 50, 40, 1.0, "IPU 0 to IPU 1")
    ]


def test_exchanges_beyond_what_a_page_lists_are_counted(monkeypatch):
    made = two_ipus()
    others = (messages("more", 1, (1, 3, 6)), messages("own", 2, (0, 1, 6)))
    more = evolve(made.compilation, exchanges=(*made.compilation.exchanges, *others))
    monkeypatch.setattr("pypoplar.report.page.ipu_data.MOST_STEPS", 1)
    data = ipu_data(evolve(made, compilation=more))
    assert ([row["name"] for row in data["steps"]], data["more"]) == (["over"], 1)


def test_a_link_that_is_not_known_has_no_use():
    made = two_ipus()
    older = evolve(made.compilation.target, link_bytes_per_cycle=0.0)
    data = ipu_data(evolve(made, compilation=evolve(made.compilation, target=older)))
    assert (data["use"], data["steps"][0]["use"]) == (None, None)


def test_a_program_that_has_not_run_has_the_bytes_of_one_execution():
    data = ipu_data(evolve(two_ipus(), execution=None))
    assert (data["ran"], data["bytes"], data["use"]) == (False, [[4, 40], [10, 0]], None)


def test_what_several_tiles_of_an_ipu_receive_alike_crosses_once():
    told = messages("tell", 0, (0, 2, 40), (0, 3, 40))
    step = exchange("tell", 0, [10, 0, 10, 10], [40, 0, 0, 0], [0, 0, 40, 40])
    assert bytes_between(told, step, 2, 2).tolist() == [[0, 40], [0, 0]]
    assert bytes_between(told, None, 2, 2).tolist() == [[0, 80], [0, 0]]


def test_copies_that_go_together_count_the_cycles_of_their_step_once():
    made = two_ipus()
    twice = evolve(made.compilation, exchanges=(*made.compilation.exchanges, messages("more", 0, (1, 3, 6))))
    data = ipu_data(evolve(made, compilation=twice))
    assert data["cycles"] == 40
    assert len(data["steps"]) == 1


@pytest.mark.parametrize("size", [10_000, 50_000])
def test_a_copy_that_the_link_limits_uses_all_of_it(size):
    model = IPUModel("bow")
    model.numIPUs, model.tilesPerIPU = 3, 8
    device = model.createDevice()
    graph = Graph(device.getTarget())
    x, y = (graph.addVariable(FLOAT, [8, size // 8], name) for name in "xy")
    for tile in range(8):
        graph.setTileMapping(x[tile], tile)
        graph.setTileMapping(y[tile], 16 + tile)
    graph.setInitialValue(x, np.zeros((8, size // 8), np.float32))
    engine = Engine(graph, Repeat(3, Sequence([Copy(x, y)])))
    engine.loadAndRun(device)
    data = ipu_data(engine.getReport())
    assert data["bytes"] == [[0, 0, 3 * 4 * size], [0, 0, 0], [0, 0, 0]]
    link = data["steps"][0]["use"]
    assert data["use"] == [[0, 0, link], [0, 0, 0], [0, 0, 0]]
    ports = 4 * size / 8 / graph.getTarget().getExchangeBytesPerCycle()
    rate = 4 * size / (data["link_bytes_per_cycle"] / 2)
    assert link == pytest.approx(min(1.0, rate / max(ports, rate)), rel=0.01)


def test_the_busiest_link_and_port_of_an_exchange_between_ipus_are_named():
    assert between_ipus(report()) == {}
    ran = two_ipus()  # 40 B over a link of 2 B a cycle each way, in 20 cycles
    found = between_ipus(ran)
    assert found == {0: BetweenIpus((0, 1), ("IPU 0", "IPU 1"), 1.0, 0, 40, 0, 1)}  # tile 2 receives as much
    told = "limited by the link from IPU 0 to IPU 1; busiest port: tile 0 (1 other moves as much), 40 B sent, 0 B received"
    assert found[0].told() == told
    assert f"  Between IPUs: {told}" in summary(ran, {"showExecutionSteps": "true"})
    assert summary_values(ran)["execution"]["steps"][0]["between_ipus"]["link"] == (0, 1)
    finding = biggest_exchange(ran)
    assert finding.text.endswith(f" 40 of its cycles go between IPUs, {told}.")
    assert "sends much more" in finding.advice


def test_what_goes_on_to_a_farther_ipu_is_on_each_link_of_its_way():
    """From 0 to 4 by 2: the link from 2 to 4 has the bytes of both, though the pair of 2 and 4 has fewer than that of 0 and 4."""
    flows = np.zeros((6, 6), np.int64)
    flows[0, 4], flows[2, 4] = 100, 10
    target = six_ipus(link_bytes_per_cycle=2.0)
    crossing = Crossing(0, "far", 2, 220, flows, links_of(target))
    assert crossing.places(crossing.busiest(target)) == (2, 4)
    use = of_pairs(crossing, target)
    assert {pair: use[pair] for pair in [(0, 2), (2, 4), (0, 4), (4, 2)]} == {
        (0, 2): pytest.approx(100 / 110), (2, 4): 1.0, (0, 4): 0.0, (4, 2): 0.0
    }  # fmt: skip


def test_a_torus_and_gateways_carry_what_goes_over_them():
    flows = np.zeros((6, 6), np.int64)
    flows[0, 4] = 100
    torus = six_ipus(link_bytes_per_cycle=2.0, link_topology="torus")
    crossing = Crossing(0, "far", 1, 100, flows, links_of(torus))
    assert crossing.places(crossing.busiest(torus)) == (0, 4)
    slow = {"gateway_bytes_per_cycle": 4.0, "gateway_link_bytes_per_cycle": 1.0}
    domains = six_ipus(link_bytes_per_cycle=2.0, link_domain_size=4, **slow)
    crossing = Crossing(0, "far", 1, 250, flows, links_of(domains))
    busiest = crossing.busiest(domains)
    assert crossing.ends(busiest) == ("gateway 0", "gateway 1")
    assert crossing.use(domains)[busiest] == pytest.approx(100 / (0.5 * 250))
    assert not of_pairs(crossing, domains).any(), "no IPU-Link has any of it"


def test_a_link_that_is_full_is_the_limit_and_equal_ports_are_counted():
    between = BetweenIpus((1, 3), ("IPU 1", "IPU 3"), 1.0, 5, 8, 8, 2)
    assert between.told() == (
        "limited by the link from IPU 1 to IPU 3; busiest port: tile 5 (2 others move as much), 8 B sent, 8 B received"
    )
    assert evolve(between, use=None).told().startswith("busiest link: from IPU 1 to IPU 3; busiest port: tile 5 (2 others")
