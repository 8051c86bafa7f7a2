"""The page's file: it holds all it needs, loads nothing, and user text in it stays text."""

import html
import json
import re
import zlib
from base64 import b64decode, b64encode
from hashlib import sha256
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.made_report import made_report
from pypoplar.report.escaping import escaped
from pypoplar.report.page import write_page
from pypoplar.report.page.blocks import Blocks, TileRows, json_text
from pypoplar.report.page.document import notices, script_text

HOSTILE = "</script><img src=x onerror=alert(1)> \"quoted\" 'single' back\\slash {{data}} $& <b>bold</b> %{x} \u2028 é 漢字 \ud800"


class Elements(HTMLParser):
    """The elements of a document with their attributes, and the text of its scripts."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.scripts = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    def write(**settings):
        path = tmp_path_factory.mktemp("page") / "page.html"
        write_page(made_report(tiles=16, steps=20, events=200, variables=30, **settings), path)
        return path.read_text(encoding="utf-8")

    return write


def unpacked(text, reference):
    match = re.search(rf'<script type="text/plain" id="block{reference["block"]}">([^<]*)</script>', text)
    data = zlib.decompress(b64decode(match[1]))
    return json.loads(data) if reference["type"] == "json" else np.frombuffer(data, f"<{reference['type']}")


def test_no_element_of_the_page_names_anything_outside_it(page):
    for tag, attributes in Elements(page()).found:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            assert attributes.get(name, "data:,").startswith("data:"), (tag, attributes)


def test_the_policy_allows_just_the_pages_own_scripts_and_no_address(page):
    elements = Elements(page())
    (policy,) = (
        attributes["content"] for tag, attributes in elements.found if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    scripts = [attributes for tag, attributes in elements.found if tag == "script"]
    code = [text for text, given in zip(elements.scripts, scripts, strict=True) if "type" not in given]
    code += [
        zlib.decompress(b64decode(text)).decode()
        for text, given in zip(elements.scripts, scripts, strict=True)
        if given.get("id") == "plotly"
    ]
    assert len(code) == 2
    for text in code:
        assert f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe-eval" not in policy
    assert "http" not in policy


def test_the_licence_of_what_is_packed_is_in_the_page_in_plain_text(page):
    text = page()
    assert "Copyright 2012-" in text
    assert "Licensed under the MIT license" in text
    assert notices("/* a */ b /* c */") == "/* a */"
    assert notices("b /* c */") == ""


def test_names_that_look_like_markup_make_no_elements(page):
    plain, hostile = Elements(page()), Elements(page(rename=lambda name: HOSTILE + name))
    assert [tag for tag, _ in hostile.found] == [tag for tag, _ in plain.found]
    assert "onerror" not in {name for _, attributes in hostile.found for name in attributes}


def test_names_that_look_like_markup_come_back_from_the_data_as_they_were(page):
    text = page(rename=lambda name: HOSTILE + name)
    data = json.loads(re.search(r'id="data">([^<]*)</script>', text)[1])
    assert data["summary"]["name"] == escaped(HOSTILE) + "digits"
    assert unpacked(text, data["variables"]["names"])[0] == escaped(HOSTILE) + "conv1/variable0"


@given(
    st.recursive(
        st.text(st.characters(exclude_categories=())),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=())), inner),
    )
)
def test_json_of_a_page_spells_lone_surrogates_out_and_nothing_else(value):
    def spelled(value):
        if isinstance(value, str):
            return escaped(value)
        if isinstance(value, list):
            return [spelled(part) for part in value]
        return {escaped(key): spelled(part) for key, part in value.items()}

    assert json.loads(json_text(value)) == spelled(value)
    assert json_text(value).isascii()


def test_the_title_shows_the_reports_name(page):
    assert f"<title>{html.escape('a<b>&digits')}</title>" in page(rename=lambda name: "a<b>&" + name)


def test_the_same_report_makes_the_same_file(page):
    assert page() == page()


def test_a_page_that_cannot_be_written_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("before")

    def fail(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="no space left"):
        write_page(made_report(tiles=4, steps=6, events=12, variables=3), path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_in_a_script_is_the_same_value_and_holds_no_markup(value):
    text = script_text(value)
    assert json.loads(text) == value
    assert not set("<>&\u2028\u2029") & set(text)


@given(st.lists(st.integers(-(2**31), 2**53)))
def test_arrays_come_back_from_their_blocks_as_they_were(values):
    blocks = Blocks()
    reference = blocks.array(np.array(values, np.int64))
    read = np.frombuffer(zlib.decompress(b64decode(blocks.texts[reference["block"]])), f"<{reference['type']}")
    assert read.tolist() == values
    assert reference["length"] == len(values)


@pytest.mark.parametrize(
    ("most", "name"), [(255, "u1"), (256, "u2"), (65_535, "u2"), (65_536, "u4"), (2**32 - 1, "u4"), (2**32, "f8")]
)
def test_arrays_take_the_fewest_bytes_that_hold_them(most, name):
    assert Blocks().array(np.array([0, most]))["type"] == name


def test_equal_rows_of_tiles_are_kept_once():
    rows = TileRows(Blocks(), 3)
    assert [rows.add(np.array(row)) for row in ([1, 2, 3], [4, 5, 6], [1, 2, 3], [])] == [0, 1, 0, -1]
    assert len(rows.data()["chunks"]) == 1


def test_rows_of_tiles_beyond_what_a_page_can_hold_are_left_out_and_counted(monkeypatch):
    monkeypatch.setattr("pypoplar.report.page.blocks.MOST_CELLS", 6)
    rows = TileRows(Blocks(), 3)
    assert [rows.add(np.array(row)) for row in ([1, 2, 3], [4, 5, 6], [7, 8, 9], [4, 5, 6])] == [0, 1, -1, 1]
    assert rows.data()["left_out"] == 1
