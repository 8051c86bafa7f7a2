"""Colours are readable, and phases can be told apart by everyone."""

import itertools
import re
from colorsys import rgb_to_hls

import numpy as np
import pytest

from pypoplar.report import palette
from pypoplar.report.page.document import ASSETS, asset

LEAST = 4.5  # contrast of text and marks with what they stand on
APART = 20.0  # least distance of two phases, as the eye sees it; 2.3 is just noticeable
THEMES = ("light", "dark")
SIGHTS = {  # on linear red, green and blue, without one kind of cone: Machado, Oliveira and Fernandes 2009
    "all": np.eye(3),
    "no red": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "no green": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "no blue": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}


def linear(colour):
    values = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def luminance(colour):
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    """WCAG 2: from 1, the same, to 21, black on white."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def lab(colour, sight):
    """CIELAB of a colour as it is seen."""
    seen = np.clip(sight @ linear(colour), 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen / [0.9505, 1, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def marks():
    series = {f"series{place}": colour for place, colour in enumerate(palette.SERIES)}
    return {**palette.TEXTS, **palette.PHASES, **series}


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("ground", palette.GROUNDS)
@pytest.mark.parametrize("name", marks())
def test_text_and_marks_stand_out_from_their_ground(theme, ground, name):
    assert contrast(getattr(marks()[name], theme), getattr(palette.GROUNDS[ground], theme)) >= LEAST


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("sight", SIGHTS)
def test_phases_can_be_told_apart_by_all_kinds_of_sight(theme, sight):
    phases = {name: getattr(colour, theme) for name, colour in palette.PHASES.items() if name != "threads"}  # has stripes
    for one, other in itertools.combinations(phases, 2):
        assert np.linalg.norm(lab(phases[one], SIGHTS[sight]) - lab(phases[other], SIGHTS[sight])) >= APART, (one, other)


@pytest.mark.parametrize("theme", THEMES)
def test_waiting_is_grey_and_nothing_else_of_the_phases_is(theme):
    for name, colour in palette.PHASES.items():
        red, green, blue = (int(getattr(colour, theme)[place : place + 2], 16) / 255 for place in (1, 3, 5))
        assert (rgb_to_hls(red, green, blue)[2] < 0.2) == (name == "waiting"), name


def test_the_style_sheet_has_every_colour_in_both_themes_and_prints_the_light_ones():
    light, dark = palette.style().split("@media screen and (prefers-color-scheme: dark)")
    for name, colour in palette.ALL.items():
        assert f"--{name}: {colour.light};" in light
        assert f"--{name}: {colour.dark};" in dark


def test_nothing_else_has_a_colour_of_its_own():
    """But for the ground of plots that a dark screen prints: they are drawn for it."""
    colour = re.compile(r"#(?:[0-9a-f]{6}|[0-9a-f]{3})(?![0-9a-zA-Z_-])", re.IGNORECASE)
    for path in ASSETS.iterdir():
        assert set(colour.findall(asset(path.name))) <= {palette.GROUNDS["paper"].dark}, path.name


def test_every_colour_that_is_asked_for_is_there():
    names = set()
    for path in ASSETS.iterdir():
        text = asset(path.name)
        names |= set(re.findall(r"var\(--(\w+)\)", text)) | set(re.findall(r'page\.(?:colour|rgb)\("(\w+)"\)', text))
    assert len(names) > 8
    assert names <= set(palette.ALL)
