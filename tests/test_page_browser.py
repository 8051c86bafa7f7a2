"""The page in headless Chromium: every view draws, nothing is loaded, nothing of the user's is executed."""

import pytest
from page_browser import browser

from benchmarks.made_report import made_report
from pypoplar.profile.page import write_page

VIEWS = ("summary", "insights", "memory", "liveness", "programs", "trace", "vertices", "exchange", "roofline", "balance")
PLOTS = {"memory": 1, "liveness": 1, "vertices": 2, "exchange": 2, "roofline": 1, "balance": 2}


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("chromium")) as made:
        yield made


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_page(made_report(tiles=160, events=2000), path)
    return path


@pytest.fixture
def opened(window, page):
    window.open(page)
    return window


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_draws_without_a_word_from_the_console(opened, view):
    opened.tab(view)
    assert opened.console() == []
    assert opened.requests() == []
    assert opened.run(
        "return document.querySelectorAll('#panel-' + arguments[0] + ' .plot[data-drawn=true] .main-svg').length > 0", view
    ) is (view in PLOTS)
    assert opened.run(
        "return document.querySelectorAll('#panel-' + arguments[0] + ' .plot[data-drawn=true]').length", view
    ) == PLOTS.get(view, 0)
    assert len(opened.text(f"#panel-{view}")) > 100
    assert "could not be drawn" not in opened.text(f"#panel-{view}")
