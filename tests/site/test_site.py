"""The site of the documents, as it is built: links lead somewhere, no other host is asked, and everybody can read it.

CI builds it and says where it is: ``PYPOPLAR_SITE=build/site pytest tests/site``.
"""

import json
import os
from collections import Counter
from pathlib import Path

import accessibility
import pytest
from attrs import frozen
from page_browser import browser
from site_pages import Site, elsewhere, styled
from site_search import SiteSearch

PLACE = os.environ.get("PYPOPLAR_SITE")
PHONE, DESKTOP = (390, 844), (1400, 1000)
SOME = (
    *("index.html", "start.html", "bsp.html", "gallery.html", "tutorials/tut1_variables.html", "how-to/slow-program.html"),
    *("report.html", "codelets.html", "api/engine.html", "search.html"),
)
START_PAGE_BYTES = 300_000  # with all that it loads, as it lies on the disk


@frozen
class Walk:
    """What was found on all pages."""

    widths: dict[str, int]  # pixels, on a phone
    found: list[str]  # by axe
    asked: list[str]  # addresses of other hosts


pytestmark = pytest.mark.skipif(not PLACE, reason="no built site: PYPOPLAR_SITE does not name its directory")


@pytest.fixture(scope="module")
def site():
    return Site(Path(PLACE))


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("chromium")) as window:
        yield window


@pytest.fixture(scope="module")
def search():
    return SiteSearch(Path(PLACE))


@pytest.fixture
def axe(window):
    script = accessibility.source()
    if script is None:
        pytest.skip("no axe here: install selenium-axe-python")
    axe = accessibility.Axe(window, script)
    yield axe
    axe.close()


def test_every_link_leads_to_a_page_and_a_place_in_it(site):
    broken = [
        f"{site.name(page.path)}: {link}"
        for page in site.pages.values()
        for link in [*page.links, *page.loads]
        if not elsewhere(link) and not link.startswith(("data:", "mailto:")) and site.leads_nowhere(page, link)
    ]
    assert len(site.pages) > 40
    assert sum(len(page.links) for page in site.pages.values()) > 5000
    assert broken == []


def test_no_page_has_two_elements_of_one_id(site):
    twice = {site.name(page.path): [one for one, count in Counter(page.ids).items() if count > 1] for page in site.pages.values()}
    assert {name: ids for name, ids in twice.items() if ids} == {}


def test_pages_and_styles_name_no_other_host_to_load_from(site):
    loaded = [(site.name(page.path), address) for page in site.pages.values() for address in page.loads]
    loaded += [
        (site.name(path), address) for path in site.root.rglob("*.css") for address in styled(path.read_text(encoding="utf-8"))
    ]
    assert [one for one in loaded if elsewhere(one[1])] == []


@pytest.mark.slow
def test_the_start_page_is_small_with_all_that_it_loads(site, window):
    window.files()
    for dark in (False, True):
        window.theme(dark=dark)
        window.visit(site.root / "index.html")
    sizes = {site.name(path): path.stat().st_size for path in sorted(set(window.files()))}
    assert {"index.html", "_static/styles/furo.css", "_static/keyboard.js"} <= sizes.keys()
    assert sum(sizes.values()) < START_PAGE_BYTES, sizes


@pytest.fixture(scope="module")
def walk(site, window):
    """What is found on all pages, each of which is opened once: their widths on a phone, what axe says, who is asked."""
    script = accessibility.source()
    axe = accessibility.Axe(window, script) if script else None
    window.theme(dark=False)
    window.asked()
    widths, found = {}, []
    for path in site.paths:
        window.resize(*PHONE)
        window.visit(path)
        widths[site.name(path)] = window.run("return document.documentElement.scrollWidth")
        window.resize(*DESKTOP)
        if axe:
            axe.thin_out()
            found += [f"{site.name(path)}: {one}" for one in axe.violations()]
    if axe:
        axe.close()
    return Walk(widths, found, window.requests())


@pytest.mark.slow
def test_axe_finds_nothing_on_any_page(walk):
    if accessibility.source() is None:
        pytest.skip("no axe here: install selenium-axe-python")
    assert walk.found == []


@pytest.mark.slow
def test_pages_do_not_scroll_sideways_on_a_phone(walk):
    assert len(walk.widths) > 40
    assert {name: width for name, width in walk.widths.items() if width > PHONE[0]} == {}


@pytest.mark.slow
def test_no_page_asks_another_host_for_anything(walk):
    assert walk.asked == []


REACHABLE = """[...document.querySelectorAll("pre, .table-wrapper")].every(
    (one) => one.scrollWidth <= one.clientWidth || one.tabIndex === 0)"""  # as keyboard.js makes it after a resize


@pytest.mark.slow
def test_axe_finds_nothing_in_the_dark_and_on_a_phone(site, window, axe):
    found = []
    for name in SOME:
        window.visit(site.root / name)
        axe.thin_out()
        for size, dark in ((DESKTOP, True), (PHONE, True), (PHONE, False)):
            window.resize(*size)
            window.theme(dark=dark)
            window.until(REACHABLE)
            found += [f"{name} {size} dark={dark}: {one}" for one in axe.violations(contrasts=size == DESKTOP)]
    assert found == []


@pytest.mark.slow
def test_the_search_finds_without_a_network(site, window):
    window.resize(*DESKTOP)
    window.asked()
    window.driver.get((site.root / "search.html").as_uri() + "?q=addVertex")
    window.until("document.querySelectorAll('#search-results li a').length > 0")
    assert window.requests() == []


@pytest.mark.slow
def test_results_have_excerpts_from_the_disk_too(site, window):
    window.resize(*DESKTOP)
    window.driver.get((site.root / "search.html").as_uri() + "?q=undefined")
    window.until("document.querySelectorAll('#search-results li p.context').length > 0")


QUESTIONS = {
    "half precision": "codelets",
    "load weights": "how-to/save-and-load",
    "how do I see exchange": "report",
    "out of memory": "how-to/out-of-memory",
    "replicated": "how-to/several-ipus",
    "install": "install",
    "NaN": "how-to/nan",
    "race condition": "how-to/debug",
    "multiple IPUs": "how-to/several-ipus",
    "unit test": "how-to/test-a-program",
    "Jupyter": "how-to/notebooks",
    "cycle estimate": "model",
    "environment variables": "command-line",
    "SQLite": "profile-file",
    "random numbers": "api/poprand",
    "save a model": "how-to/save-and-load",
    "matrix multiplication": "how-to/use-the-libraries",
    "vectorize": "how-to/fast-codelet",
    "idle threads": "how-to/slow-program",
    "custom operation": "how-to/add-an-operation",
    "perfetto": "how-to/read-a-profile",
    "float16": "codelets",
    "remote buffer": "how-to/streams",
    "GitHub Actions": "how-to/continuous-integration",
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_finds_its_page_first(search, question):
    assert search.pages(question)[0] == QUESTIONS[question]


def test_words_of_the_text_find_pages_too(search):
    assert "how-to/out-of-memory" in search.pages("exchange buffers")
    assert "api/graph" in search.pages("addVertex")
    assert search.pages("xyzzy") == []


def test_every_page_has_a_text_for_excerpts(site, search):
    script = (site.root / "_static" / "page_texts.js").read_text(encoding="utf-8")
    texts = json.loads(script.removeprefix("const PAGE_TEXTS = ").rstrip().removesuffix(";"))
    assert set(texts) == set(search.index["docnames"])
    assert "exchange buffers" in texts["how-to/out-of-memory"]
    assert all(texts.values())
