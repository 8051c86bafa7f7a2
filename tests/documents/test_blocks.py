"""Every block of every page is one that a test holds: nothing is shown that nobody runs or compares."""

import re

import pytest
from document_pages import PAGES, ROOT

FENCE = re.compile(r"^( *)```(\S*)\n(.*?)^\1```$", re.S | re.M)
RUN = {"python": "test_readme.py, or test_commands.py where it is a file", "sh": "test_commands.py"}
HELD = {  # what else a page may show, and the test that holds it; a page in a folder may be any of it
    "docs/command-line.md": {"text": "test_tables.py"},
    "docs/errors.md": {"py": "test_tables.py", "text": "the same"},
    "docs/library-calls.md": {"py": "test_tables.py", "pycon": "test_docstrings.py"},
    "docs/profile-file.md": {"sql": "tests/report/test_profile_file_schema.py"},
    "docs/how-to/processes.md": {"py": "tests/popdist/test_guide.py"},
    "docs/how-to/port.md": {"cpp": "the C++ that is ported, which nothing here compiles"},
    "docs/codelets.md": {"text": "test_codelet_document.py"},
    "docs/tutorials": {"py": "tests/tutorials/test_pages.py", "diff": "the same", "text": "the same"},
    "docs/gallery": {"py": "tests/tutorials/test_gallery.py", "diff": "the same"},
}
DIRECTIVES = {"{toctree}"}  # of the site's contents


def shown(page):
    """The kinds of blocks that a page shows, each with its first line; an output behind what is run is that of a run."""
    text = (ROOT / page).read_text(encoding="utf-8")
    end, before = 0, ""
    for match in FENCE.finditer(text):
        language = match[2]
        output = language == "text" and before in RUN and not text[end : match.start()].strip()
        if not output and language not in RUN:
            yield language, match[3].partition("\n")[0]
        end, before = match.end(), language


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_is_held_by_a_test(page):
    held = HELD.get(page, HELD.get(page.rpartition("/")[0], {}))
    untested = [(language, line) for language, line in shown(page) if language not in held and language not in DIRECTIVES]
    assert untested == [], "write the program or the command that prints it before it"


@pytest.mark.parametrize("place", HELD)
def test_what_is_held_elsewhere_is_still_shown(place):
    kinds = {language for page in PAGES if page.startswith(place) for language, _ in shown(page)}
    assert HELD[place].keys() <= kinds
