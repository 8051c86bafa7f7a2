"""The pictures of the documents show what the program draws today, and pages show them rightly."""

import hashlib
import importlib.util
import json
import re
from html import unescape
from pathlib import Path

import pytest
from page_browser import missing

ROOT = Path(__file__).parents[2]
MOST_BYTES = 4_000_000  # of all pictures together
ANOTHER_FONT = 12  # of 255, mean over a coarse picture
EMBEDDED = re.compile(
    r'^<picture>\n<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)-dark\.webp">\n'
    r'<img src="([^"]+)-light\.webp" alt="([^"]+)" width="(\d+)" height="(\d+)">\n</picture>$',
    re.M,
)


def load(name):
    spec = importlib.util.spec_from_file_location(f"documents_{name}", ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PICTURES = load("pictures")
SHOWN = json.loads(PICTURES.SHOWN.read_text(encoding="utf-8"))
AGAIN = f"make the pictures again: {PICTURES.COMMAND}"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """What the pictures would show if they were made now, and how far they are from those that are there."""
    if missing():
        pytest.skip(missing())
    directory = tmp_path_factory.mktemp("pictures")
    return {
        PICTURES.key(one): (one.shown, PICTURES.apart(window, one.image, one.path.read_bytes()))
        for window, one in PICTURES.drawn(directory)
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SHOWN))
def test_a_picture_shows_what_the_program_draws(drawn, name):
    shown, apart = drawn[name]
    for what, now in shown.items():
        assert SHOWN[name][what] == now, f"the {what} of docs/pictures/{name}.webp are others now; {AGAIN}"
    assert apart["sizes"][0] == apart["sizes"][1], f"docs/pictures/{name}.webp has another size now; {AGAIN}"
    assert apart["mean"] < ANOTHER_FONT, f"docs/pictures/{name}.webp does not look like what is drawn now; {AGAIN}"


def test_the_record_is_of_the_files_that_are_there():
    there = {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in PICTURES.PLACE.glob("*.webp")}
    assert there == {name: record["file"] for name, record in SHOWN.items()}, AGAIN
    assert set(SHOWN) == {f"{picture.name}-{theme}" for picture in PICTURES.PICTURES for theme in PICTURES.THEMES}, AGAIN


def test_pictures_are_small():
    assert sum(path.stat().st_size for path in PICTURES.PLACE.iterdir()) < MOST_BYTES


def test_pages_show_every_picture_in_both_themes_with_its_size_and_its_text():
    shown = set()
    heights = {picture.name: picture.height for picture in PICTURES.PICTURES}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        found = EMBEDDED.findall(text)
        assert len(found) == text.count("<picture>"), f"a <picture> of {page.name} is not in the form of other pages"
        for dark, light, alt, width, height in found:
            assert dark == light
            name = Path(light).name
            assert (page.parent / f"{light}-light.webp").resolve() == PICTURES.PLACE / f"{name}-light.webp"
            assert (int(width), int(height)) == (PICTURES.WIDTH, heights[name])
            assert len(unescape(alt).split()) >= 8, f"{page.name}: the text of {name} says what is to be seen"
            shown.add(name)
    assert shown == set(heights)
