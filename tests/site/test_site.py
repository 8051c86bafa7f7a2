"""The site of the documents, as it is built: links lead somewhere, no other host is asked, and everybody can read it.

CI builds it and says where it is: ``PYPOPLAR_SITE=build/site pytest tests/site``.
"""

import os
from collections import Counter
from pathlib import Path

import pytest
from page_browser import browser
from site_pages import Site, elsewhere, styled

PLACE = os.environ.get("PYPOPLAR_SITE")
START_PAGE_BYTES = 300_000  # with all that it loads, as it lies on the disk

pytestmark = pytest.mark.skipif(not PLACE, reason="no built site: PYPOPLAR_SITE does not name its directory")


@pytest.fixture(scope="module")
def site():
    return Site(Path(PLACE))


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("chromium")) as window:
        yield window


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


def test_the_start_page_is_small_with_all_that_it_loads(site, window):
    window.files()
    for dark in (False, True):
        window.theme(dark=dark)
        window.visit(site.root / "index.html")
    sizes = {site.name(path): path.stat().st_size for path in sorted(set(window.files()))}
    assert {"index.html", "_static/styles/furo.css", "_static/keyboard.js"} <= sizes.keys()
    assert sum(sizes.values()) < START_PAGE_BYTES, sizes
