"""The table of views: a view is a row of it, a script, and what makes its data; nothing else knows its name."""

import json
import re
import shutil
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from attrs import evolve
from page_browser import browser
from page_reports import compute, ran_without_steps, report

from benchmarks.made_report import made_report
from pypoplar.report import page
from pypoplar.report.insights.ranking import insights
from pypoplar.report.page import document
from pypoplar.report.page.blocks import Blocks
from pypoplar.report.page.comparison import Sides
from pypoplar.report.page.page_views import COMPARISON, REPORT, PageView
from pypoplar.report.report import Report

KINDS = (REPORT, COMPARISON)
DEFINITION = re.compile(r"^page\.(\w+) = ", re.MULTILINE)


@pytest.fixture(scope="module")
def guide():
    """What CONTRIBUTING.md adds: the function that makes the data, the script, the entry of the part, and the view's row."""
    text = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## Add a view of the page")[2].partition("\n## ")[0]
    data, script, rows = (dedent(block) for _, block in re.findall(r"```(python|js)\n(.*?)```", section, re.DOTALL))
    names = {"Any": Any, "Report": Report, "PageView": PageView}
    exec(data, names)
    part, _, row = rows.partition("...\n")
    return eval(f"{{{part}}}", names), script, eval(row.strip().rstrip(","), names)


@pytest.fixture
def with_slowest(tmp_path, monkeypatch, guide):
    """Writes pages with the view that CONTRIBUTING.md adds: its script among the assets, its data, and its row in the table."""
    parts, script, row = guide
    assets = shutil.copytree(document.ASSETS, tmp_path / "assets")
    (assets / "view_slowest.js").write_text(script, encoding="utf-8")
    monkeypatch.setattr(document, "ASSETS", assets)
    document.asset.cache_clear()
    monkeypatch.setattr(page, "REPORT", evolve(REPORT, parts={**REPORT.parts, **parts}, views=(*REPORT.views, row)))

    def write(given):
        page.write_page(given, tmp_path / "page.html")
        return tmp_path / "page.html"

    yield write
    document.asset.cache_clear()


def two_steps():
    return report(compute("work", 0, [200, 0, 0, 0]), compute("rest", 1, [7, 7, 7, 7]))


SLOWEST = [{"name": "work", "cycles": 200}, {"name": "rest", "cycles": 7}]


@pytest.mark.parametrize(("made", "data"), [(two_steps, SLOWEST), (report, None), (ran_without_steps, [])])
def test_a_view_is_a_row_a_script_and_its_data(with_slowest, guide, made, data):
    _, script, row = guide
    assert (row.name, row.reads) == ("slowest", ("slowest",))
    text = with_slowest(made()).read_text(encoding="utf-8")
    assert json.loads(re.search(r'id="data">([^<]*)</script>', text)[1])["slowest"] == data
    assert script in text


@pytest.mark.slow
def test_a_view_that_is_added_is_drawn_in_a_tab_of_its_own(with_slowest, tmp_path):
    with browser(tmp_path / "chromium") as window:
        window.open(with_slowest(two_steps()), "#slowest")
        assert window.text("#tab-slowest") == "Slowest steps"
        assert window.text("#panel-slowest").split()[-4:] == ["200", "work", "7", "rest"]
        for made, text in ((report, "No execution: the program has not run"), (ran_without_steps, "No step was executed.")):
            window.open(with_slowest(made()), "#slowest")
            assert text in window.text("#panel-slowest")


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
    titles = {view.name: REPORT.title(view) for view in REPORT.views}
    assert (titles["summary"], titles["programs"], titles["trace"]) == ("Summary", "Program tree", "Execution trace")


def test_a_script_that_makes_another_view_is_an_error(with_slowest):
    kind = evolve(REPORT, scripts="view_slow")
    with pytest.raises(KeyError, match=r"view_slowest\.js makes no view 'est'"):
        kind.title(PageView("est", (), ""))


def test_a_comparison_has_both_sides_of_every_part():
    data = COMPARISON.data(Sides(report(compute("work", 0, [1] * 4)), report()), Blocks())
    assert data["kind"] == "comparison"
    for part in ("names", "ran", "machine", "mean_tile", "memory", "liveness"):
        assert len(data[part]) == 2, part
