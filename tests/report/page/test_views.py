"""The table of views: a view is a row of it, a script, and what makes its data; nothing else knows its name."""

import json
import re
import shutil

import pytest
from attrs import evolve
from page_browser import browser
from page_reports import compute, report

from benchmarks.made_report import made_report
from pypoplar.report import page
from pypoplar.report.page import document
from pypoplar.report.page.blocks import Blocks
from pypoplar.report.page.comparison import Sides
from pypoplar.report.page.insights import insights
from pypoplar.report.page.page_views import COMPARISON, REPORT, PageView

KINDS = (REPORT, COMPARISON)
DEFINITION = re.compile(r"^page\.(\w+) = ", re.MULTILINE)
SCRIPT = """
page.view("slowest", "Slowest step", (panel) => {
  panel.append(page.element("p", {}, `${page.data.slowest.name} takes ${page.format(page.data.slowest.cycles, "cycles")}`));
});
"""


def slowest_data(report, blocks):
    """What the view "slowest" draws: a part as a module of its own would make it."""
    step = max(report.execution.steps, key=lambda step: step.cycles)
    return {"name": step.name, "cycles": step.cycles}


@pytest.fixture
def slowest(tmp_path, monkeypatch):
    """The page with one more view: its script among the assets, its data, and its row in the table."""
    assets = shutil.copytree(document.ASSETS, tmp_path / "assets")
    (assets / "view_slowest.js").write_text(SCRIPT, encoding="utf-8")
    monkeypatch.setattr(document, "ASSETS", assets)
    row = PageView("slowest", ("slowest",), "the step that takes the most cycles")
    kind = evolve(REPORT, parts={**REPORT.parts, "slowest": slowest_data}, views=(*REPORT.views, row))
    monkeypatch.setattr(page, "REPORT", kind)
    path = tmp_path / "page.html"
    page.write_page(report(compute("work", 0, [200, 0, 0, 0]), compute("rest", 1, [7, 7, 7, 7])), path)
    yield path
    document.asset.cache_clear()


def test_a_view_is_a_row_a_script_and_its_data(slowest):
    text = slowest.read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data">([^<]*)</script>', text)[1])
    assert data["slowest"] == {"name": "work", "cycles": 200}
    assert SCRIPT in text


def test_a_view_that_is_added_is_drawn_in_a_tab_of_its_own(slowest, tmp_path):
    with browser(tmp_path / "chromium") as window:
        window.open(slowest, "#slowest")
        assert window.text("#tab-slowest") == "Slowest step"
        assert window.text("#panel-slowest") == "work takes 200"


def test_a_view_that_reads_what_nobody_makes_is_refused_by_name():
    kind = evolve(REPORT, views=(*REPORT.views, PageView("absent", ("tree", "absent"), "")))
    with pytest.raises(KeyError, match="views of a report read what is no part of its data: absent"):
        kind.data(report(), Blocks())


def test_what_no_view_reads_is_not_in_the_page():
    kind = evolve(REPORT, views=(REPORT.views[0],))
    assert list(kind.data(report(), Blocks())) == ["kind", "summary"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_part_is_read_by_a_view(kind):
    assert {part for view in kind.views for part in view.reads} == set(kind.parts)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_view_has_its_script_and_every_script_its_view(kind):
    scripts = {path.name.removesuffix(".js") for path in document.ASSETS.iterdir() if path.name.startswith("view_")}
    compared = {name for name in scripts if name.startswith(COMPARISON.scripts)}
    assert {kind.script(view) for view in kind.views} == (compared if kind is COMPARISON else scripts - compared)
    for view in kind.views:
        text = document.asset(f"{kind.script(view)}.js")
        assert re.findall(r'page\.view\("(\w+)", "[^"]+"', text) == [view.name]
        assert kind.title(view)


def definitions(scripts):
    """What scripts define for each other, ``page.NAME = ...``, each with all the text up to the next definition."""
    shared = {}
    for script in scripts:
        _, *parts = DEFINITION.split(document.asset(f"{script}.js"))
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            # What is around a definition in its script belongs to it: `page.tree` reads in a function below it.
            shared[name] = document.asset(f"{script}.js") if script in ("tree", "variables", "trace_model") else body
    return shared


def reads(text, shared):
    """The parts of the page's data that a script reads, itself or through what other scripts define."""
    parts, seen, pending = set(), set(), [text]
    while pending:
        body = pending.pop()
        parts.update(re.findall(r"page\.data\.(\w+)", body))
        if "const data = page.data;" in body:
            parts.update(re.findall(r"(?<![\w.])data\.(\w+)", body))
        for name in set(re.findall(r"page\.(\w+)", body)) & shared.keys() - seen:
            seen.add(name)
            pending.append(shared[name])
    return parts - {"kind"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_row_names_just_what_its_script_reads(kind):
    shared = definitions((*document.BASE, *map(kind.script, kind.views)))
    for view in kind.views:
        assert reads(document.asset(f"{kind.script(view)}.js"), shared) == set(view.reads), view.name


def test_the_table_is_the_only_list_of_the_views():
    names = {view.name for view in REPORT.views}
    for path in (*document.ASSETS.iterdir(), *document.ASSETS.parent.glob("*.py")):
        listed = names & set(re.findall(r'"(\w+)"', path.read_text(encoding="utf-8")))
        assert (listed == names) == (path.name == "page_views.py"), (path.name, listed)


def test_what_links_to_a_view_links_to_one_of_the_table():
    links = {finding.link.split("?")[0] for finding in insights(made_report(tiles=16, events=100))}
    assert links
    assert links <= {view.name for view in REPORT.views}


def test_a_title_is_what_the_script_says():
    assert [REPORT.title(view) for view in REPORT.views][:5] == ["Summary", "Insights", "Memory", "Liveness", "Program tree"]


def test_a_script_that_makes_another_view_is_an_error(slowest):
    kind = evolve(REPORT, scripts="view_slow")
    with pytest.raises(KeyError, match=r"view_slowest\.js makes no view 'est'"):
        kind.title(PageView("est", (), ""))


def test_a_comparison_has_both_sides_of_every_part():
    data = COMPARISON.data(Sides(report(compute("work", 0, [1] * 4)), report()), Blocks())
    assert data["kind"] == "comparison"
    for part in ("names", "ran", "machine", "mean_tile", "memory", "liveness"):
        assert len(data[part]) == 2, part
