"""The page's view of lines: codelets' text with what lines cost, and the ways that lead there."""

import pytest
from attrs import evolve
from page_browser import browser
from page_reports import compute, report
from profile_reports import full_lines, full_report

from benchmarks.made_report import made_report
from pypoplar.report.insights.ranking import insights
from pypoplar.report.line_profile import VertexGroup
from pypoplar.report.page import write_page
from pypoplar.report.page.line_data import MOST_SETS, line_data

CELLS = """
return Array.from(document.querySelectorAll('#panel-lines .source tbody tr')).map(
    (row) => Array.from(row.cells).map((cell) => cell.textContent.trim()));
"""


def with_lines(profile):
    whole = full_report()
    return evolve(whole, execution=evolve(whole.execution, lines=profile))


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("chromium")) as window:
        yield window


@pytest.fixture
def show(window, tmp_path):
    def call(shown, fragment="#lines"):
        write_page(shown, tmp_path / "page.html")
        window.open(tmp_path / "page.html", fragment)
        return window

    return call


def quiet(window):
    return window.console() == [] and window.requests() == []


@pytest.mark.slow
def test_lines_show_slots_share_compiled_bound_and_runs(show):
    window = show(full_report())
    assert window.run(CELLS) == [
        ["compute, codelets/multiply.py"],
        ["1,728", "19.2 %", "1,728", "1,728", "144", "7", "def compute(self):"],
        ["2,250", "25.0 %", "2,250", "288", "1,674", "8", "for i in range(len(self.x)):"],
        ["5,022", "55.8 %", "5,022", "3,348", "1,674", "9", "self.x[i] *= self.k"],
    ]
    widths = (
        "return Array.from(document.querySelectorAll('#panel-lines .source .share i')).map((bar) => parseFloat(bar.style.width))"
    )
    assert window.run(widths) == [pytest.approx(19.2), pytest.approx(25), pytest.approx(55.8)]
    text = window.text("#panel-lines")
    assert "x 93, rows 12 in 3 rows" in text
    assert quiet(window)


@pytest.mark.slow
def test_a_row_opens_its_codelet_and_the_address_keeps_it(show):
    window = show(full_report())
    window.run("document.querySelectorAll('#panel-lines tbody tr.pick')[1].click()")
    assert window.text("#panel-lines h2") == "Zero"
    assert window.run(CELLS)[1][:3] == ["7", "100.0 %", "324"]  # six workers take 3 slots 18 times
    assert window.run("return location.hash") == "#lines?type=Zero"
    window.run("history.back()")
    window.until("document.querySelector('#panel-lines h2').textContent.startsWith('Multiply')")
    assert quiet(window)


@pytest.mark.slow
def test_lines_of_one_compute_set_are_a_choice(show):
    profile = full_lines()
    more = VertexGroup("again", "Multiply<float>", 8, 100, (0, 0, 25))
    window = show(with_lines(evolve(profile, groups=(*profile.groups, more))), "#lines?type=Multiply%3Cfloat%3E&set=again")
    assert [row[0] for row in window.run(CELLS)[1:]] == ["", "25", "75"]
    window.run("""
        const select = document.querySelector('#panel-lines select');
        select.value = '-1';
        select.dispatchEvent(new Event('change'));
    """)
    assert [row[0] for row in window.run(CELLS)[1:]] == ["1,728", "2,275", "5,097"]
    assert quiet(window)


@pytest.mark.slow
def test_a_compute_set_without_a_name_is_one_of_them(show):
    profile = full_lines()
    more = VertexGroup("", "Multiply<float>", 8, 100, (0, 0, 25))
    window = show(with_lines(evolve(profile, groups=(*profile.groups, more))))
    assert window.run(CELLS)[2][0] == "2,275"
    window.run("""
        const select = document.querySelector('#panel-lines select');
        select.value = '1';
        select.dispatchEvent(new Event('change'));
    """)
    assert [row[0] for row in window.run(CELLS)[1:]] == ["", "25", "75"]
    assert "(no name)" in window.text("#panel-lines select")
    assert quiet(window)


@pytest.mark.slow
def test_scalar_prices_have_no_columns_of_compiled_code(show):
    window = show(with_lines(evolve(full_lines(), compiled=False)))
    assert "Bound" not in window.text("#panel-lines")
    assert window.run(CELLS)[1] == ["1,728", "19.2 %", "144", "7", "def compute(self):"]


@pytest.mark.slow
def test_steps_vertex_types_and_insights_lead_to_their_lines(show):
    shown = full_report()
    window = show(shown, "#steps?step=1")
    links = """
        return Array.from(document.querySelectorAll(arguments[0] + ' a'))
            .map((link) => link.hash).filter((hash) => hash.startsWith('#lines'));
    """
    assert window.run(links, "#panel-steps") == ["#lines?set=multiply"]
    window.tab("vertices")
    assert "#lines?type=Multiply%3Cfloat%3E" in window.run(links, "#panel-vertices")
    window.tab("insights")
    found = window.run(links, "#panel-insights")
    assert "#lines?type=Multiply%3Cfloat%3E" in found
    assert "#lines?set=multiply" in found
    for place in found:
        window.run("location.hash = arguments[0]", place)
        window.until("!document.getElementById('panel-lines').hidden")
        assert window.text("#panel-lines h2") == "Multiply<float>"
    assert quiet(window)


def test_insights_have_no_way_to_lines_that_are_not_known():
    whole = full_report()
    without = evolve(whole, execution=evolve(whole.execution, lines=None))
    assert any(insight.lines for insight in insights(whole))
    assert not any(insight.lines for insight in insights(without))


@pytest.mark.slow
def test_a_run_without_lines_says_how_to_get_them(show):
    window = show(report(compute("even", 0, [100] * 4)))
    assert "No cycles by source line: set the engine option autoReport.all" in window.text("#panel-lines")


@pytest.mark.slow
def test_a_type_that_did_not_run_is_said(show):
    window = show(full_report(), "#lines?type=None")
    assert "No vertex of the type None was executed" in window.text("#panel-lines")
    assert window.text("#panel-lines h2") == "Multiply<float>"


def test_compute_sets_beyond_the_most_are_only_in_the_sum():
    profile = full_lines()
    groups = [VertexGroup(f"step{number}", "Multiply<float>", 8, 100, (0, 0, 25)) for number in range(MOST_SETS + 5)]
    data = line_data(with_lines(evolve(profile, groups=tuple(groups))))
    (multiply,) = (one for one in data["types"])
    assert (multiply["sets"], len(multiply["by_set"])) == (MOST_SETS + 5, MOST_SETS)
    assert sum(multiply["costs"]["slots"]) == 100 * (MOST_SETS + 5)


@pytest.mark.slow
def test_names_and_code_are_text_and_nothing_more(show):
    hostile = "</script><img src=x onerror=alert(1)> \"q\" 'q' & <b>bold</b> \udc80 "
    window = show(made_report(tiles=16, steps=20, events=200, variables=30, rename=lambda name: hostile + name))
    assert "<img src=x onerror=alert(1)>" in window.text("#panel-lines .source")
    assert quiet(window)
