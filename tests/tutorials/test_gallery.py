"""The gallery's scripts agree with NumPy or a closed form, draw their pictures and cost about what they say."""

import re
import runpy
import struct
import zlib
from xml.etree import ElementTree

import numpy as np
import pytest
from tutorial_modules import gallery_pages, printed, tutorial_pages

from pypoplar import resources

PAGE = resources.directory("docs") / "gallery.md"
GALLERY = {name: one for name, one in resources.tutorials().items() if name.startswith("gallery/")}


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Runs a script of the gallery with a picture: the lines that it prints, and the file of the picture."""

    def run(name, *arguments, picture):
        path = tmp_path / picture
        return printed(capsys, monkeypatch, f"gallery/{name}", *arguments, "--picture", path), path

    return run


def png(path):
    """The pixels of a PNG without filters, whose checksums hold."""
    data, chunks = path.read_bytes(), []
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place = 8
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        assert struct.unpack_from(">I", data, place + 8 + length) == (zlib.crc32(kind + body),)
        chunks.append((kind, body))
        place += length + 12
    assert [kind for kind, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"]
    columns, rows, depth, colour = struct.unpack_from(">IIBB", chunks[0][1])
    assert depth == 8
    lines = np.frombuffer(zlib.decompress(chunks[1][1]), np.uint8).reshape(rows, -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape((rows, columns, 3) if colour == 2 else (rows, columns))


def svg(path):
    """The elements of an SVG, which is well-formed and has no numbers that are none."""
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\b(nan|inf)\b", text)
    return ElementTree.fromstring(text).iter()


def costs(lines):
    """Cycles of each superstep by name, [sync, exchange, copies, compute], and those of a round, as printed."""
    (head,) = [place for place, line in enumerate(lines) if line.startswith("superstep, cycles each time")]
    steps = {}
    for line in lines[head + 1 :]:
        row = re.match(r"  (\S.*?) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+)(?: +\d+%)?$", line)
        if row:
            steps[row[1]] = [int(cell.replace(",", "")) for cell in row.groups()[2:]]
    (total,) = re.findall(r"^an? [^:]*: ([\d,]+) cycles, .* us on a Bow", "\n".join(lines), re.M)
    return steps, int(total.replace(",", ""))


def near(cycles):
    """About as many cycles: the figures are those of docstrings, which say "about"."""
    return pytest.approx(cycles, rel=0.1, abs=5)


def test_every_script_is_listed_and_short_enough_to_be_read():
    assert list(GALLERY) == sorted(f"gallery/{name}" for name in SCRIPTS)
    for one in GALLERY.values():
        text = one.path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 250, one.name
        assert f"pypoplar tutorial {one.name} --picture " in text
        assert "\nWhat it costs: " in text


def test_the_overview_has_a_row_a_section_and_a_picture_of_every_script():
    text = PAGE.read_text(encoding="utf-8")
    assert sorted(gallery_pages().names()) == [*GALLERY]
    for name in SCRIPTS:
        assert (
            len(re.findall(rf"^\[!\[[^]]+\]\(pictures/gallery-{name}\.(?:png|svg)\)\]\(gallery/{name}\.md\)$", text, re.M)) == 1
        ), name
    assert len(re.findall(r"^## ", text, re.M)) == len(SCRIPTS)
    pictures = sorted((PAGE.parent / "pictures").glob("gallery-*"))
    assert [picture.stem.removeprefix("gallery-") for picture in pictures] == sorted(SCRIPTS)
    assert sum(picture.stat().st_size for picture in pictures) <= 1_500_000
    for picture in pictures:
        (png if picture.suffix == ".png" else svg)(picture)


def commands():
    """The commands of every page: the name of the script, and the command's number."""
    return [(name, number) for name in GALLERY for number in range(len(tutorial_pages().record(name).runs))]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), commands())
def test_a_script_of_the_usual_size_prints_what_its_page_shows(name, number):
    pages = tutorial_pages()
    record = pages.record(name)
    run = record.runs[number]
    output = record.run(run)
    assert pages.agrees(run.printed, output), f"run: python docs/gallery_pages.py {name}\nprinted:\n{output}"


@pytest.mark.parametrize("name", GALLERY)
def test_every_block_of_a_record_is_run(name):
    record = tutorial_pages().record(name)
    kinds = re.findall(r"^```(\w+)\n", record.text, re.M)
    assert set(kinds) <= {"sh", "text", "diff"}
    assert len(record.runs) == kinds.count("sh") == kinds.count("text")
    changes = re.findall(r"^```diff\n(.*?)^```\n", record.text, re.S | re.M)
    assert {change for run in record.runs for change in run.changes} == set(changes)


def test_three_scripts_are_optimised_by_what_their_reports_say():
    """The first run has the insight, the last one the change, which gains what the text says, and less than is promised."""
    pages = tutorial_pages()
    optimised = {name: record for name in GALLERY if (record := pages.record(name)).runs[1:]}
    assert len(optimised) >= 3
    for name, record in optimised.items():
        assert f"## {gallery_pages().OPTIMISED}" in gallery_pages().page(name)
        before, insight, after = record.runs[0].printed, record.runs[1].printed, record.runs[-1].printed
        first, last = costs(before.splitlines())[1], costs(after.splitlines())[1]
        promised = [float(share) for share in re.findall(r", ([\d.]+)% of all cycles at most\)", insight)]
        gain = (first - last) / first * 100
        assert 5 < gain < sum(promised)
        assert f"{first:,} to {last:,} cycles, by {gain:.1f}%" in " ".join(record.parts[1].split())


@pytest.mark.parametrize("name", GALLERY)
def test_a_page_has_all_of_its_script(name):
    code = re.findall(r"^```py\n(.*?)^```\n", gallery_pages().page(name), re.S | re.M)
    lines = [line for part in code for line in part.splitlines() if line]
    source = GALLERY[name].path.read_text(encoding="utf-8").split('"""\n', 1)[1]
    assert lines == [line for line in source.splitlines() if line]


def test_the_game_of_life_is_numpys(run):
    lines, picture = run("game_of_life", 24, 3, 20, "--tiles", 24, picture="life.png")
    assert lines[0] == "24 x 96 cells on 24 tiles, 20 generations"
    assert lines[2] == "check against NumPy: 0 cells differ"
    steps, generation = costs(lines)
    assert steps["from the even grid"] == [126, 6, 0, near(1122)]
    assert generation == near(1254)
    assert set(np.unique(png(picture))) == {30, 250}


def test_odd_even_sort_is_numpys(run):
    lines, picture = run("odd_even_sort", 10, 13, picture="sort.png")
    assert lines[:2] == ["130 keys on 10 tiles, 10 phases", "check against numpy.sort: 0 keys differ"]
    steps, _ = costs(lines)
    assert steps["odd phase"] == [126, 13, 0, near(870)]
    assert png(picture).shape[1:] == (10, 3)


def test_n_body_has_numpys_forces_and_keeps_its_energy(run):
    lines, picture = run("n_body", 12, 20, picture="stars.png")
    assert lines[0] == "72 stars on 12 tiles, 20 steps of 0.0125"
    (check,) = re.findall(
        r"^check against NumPy: forces differ by (\S+) of the largest; energy by (\S+), momentum (\S+)$", lines[1]
    )
    assert all(float(value) < limit for value, limit in zip(check, (1e-5, 1e-3, 1e-6), strict=True))
    steps, _ = costs(lines)
    assert steps["forces"][3] == near(72 * 156 + 1100)
    assert png(picture).shape == (600, 600, 3)


def test_k_means_is_numpys_to_the_last_point(run):
    lines, picture = run("k_means", 8, 30, 4, picture="clusters.svg")
    assert lines[:2] == [
        "240 points on 8 tiles, 4 clusters: 10 rounds",
        "check against NumPy: 10 rounds, 0 points in other clusters, centres differ by 0",
    ]
    steps, _ = costs(lines)
    assert steps["assign"] == [126, 8, 0, near(3100)]
    assert sum(element.tag.endswith("circle") for element in svg(picture)) == 4


def test_conjugate_gradients_find_the_solution_by_sine_transforms(run):
    lines, picture = run("conjugate_gradients", 12, 8, 10, picture="residual.svg")
    assert re.fullmatch(r"12 x 8 x 10 points on 16 tiles: 3[0-2] iterations", lines[0])
    residual, error = re.findall(r"\d\.\de-\d\d", lines[1])
    assert float(residual) < 1.1e-5
    assert float(error) < 1e-4
    steps, iteration = costs(lines)
    assert steps["stencil"] == [126, 100, 0, near(1182)]
    assert iteration == near(5340)
    assert sum(element.tag.endswith("polyline") for element in svg(picture)) == 1


def test_the_fft_is_numpys(run):
    lines, picture = run("fft", 4, picture="spectrum.svg")
    assert lines[0] == "256 points on 16 tiles"
    assert float(lines[1].removeprefix("check against numpy.fft: differs by ")) < 3e-7
    steps, transform = costs(lines)
    assert steps["last transposition"] == [126, 45, 211, 0]
    assert transform == near(6360)
    assert any(element.tag.endswith("polyline") for element in svg(picture))


def test_lattice_boltzmanns_vortices_decay_as_taylor_and_green_say(run):
    lines, picture = run("lattice_boltzmann", 48, 40, 200, picture="flow.png")
    assert lines[0] == "48 x 40 places on 48 tiles, 200 steps"
    assert float(lines[1].removeprefix("check against Taylor and Green: velocities differ by ")) < 5e-3
    steps, _ = costs(lines)
    assert steps["from the odd grid"] == [126, 240, 0, near(18_430)]
    assert png(picture).shape == (96, 80, 3)


def test_pagerank_is_numpys_power_iteration(run):
    lines, picture = run("pagerank", 200, 20, "--tiles", 16, picture="ranks.svg")
    assert lines[0] == "200 pages, 1,436 links, at most 85 to a page, 20 rounds on 16 tiles"
    check = re.fullmatch(r"check against NumPy: ranks differ by (\S+) of themselves, the first ten are the same", lines[1])
    assert float(check[1]) < 1e-6
    steps, together = costs(lines)
    assert together == near(2530)
    assert sum(element.tag.endswith("circle") for element in svg(picture)) > 40
    whole, _ = run("pagerank", 200, 20, "--tiles", 16, "--piece", 1000, picture="whole.svg")
    assert costs(whole)[0]["gather"][3] > 1.5 * steps["gather"][3]


def test_particles_are_where_they_fly_to(run):
    lines, picture = run("particles", 12, 8, 5, 40, picture="caustics.png")
    assert lines[0].startswith("480 particles in 12 x 8 cells on 16 tiles, 40 steps; fullest cell ")
    assert lines[1] == "check against free flight: 0 in other places, 0 lost, all the others there once"
    steps, _ = costs(lines)
    assert steps["across"][1:3] == [726, 0]
    assert png(picture).min() < 200


def test_particles_that_find_no_room_are_told(capsys, monkeypatch):
    path = GALLERY["gallery/particles"].path
    monkeypatch.syspath_prepend(str(path.parent))
    assert not runpy.run_path(str(path))["main"](12, 8, 5, 40, capacity=14)
    lines = capsys.readouterr().out.splitlines()
    check = re.fullmatch(r"check against free flight: 0 in other places, (\d+) lost, all the others there once", lines[1])
    assert int(check[1]) > 0
    assert lines[2] == "cells or buffers overflowed: give them more room with --capacity and --room"


def test_a_size_that_a_bow_has_no_room_for_is_told(capsys, monkeypatch):
    with pytest.raises(pytest.fail.Exception, match="this size needs 1,474 tiles, and a Bow has 1,472"):
        printed(capsys, monkeypatch, "gallery/odd_even_sort", 1474)


def test_the_path_tracers_light_is_that_of_the_closed_form(run):
    lines, picture = run("path_tracer", 20, 32, 16, "--tiles", 16, picture="spheres.png")
    assert lines[0] == "32 x 20 pixels, 16 paths through each, on 16 tiles"
    check = re.fullmatch(
        r"check against the closed form: light differs by (\S+) in the mean, by (\S+) from pixel to pixel", lines[1]
    )
    assert float(check[1]) < 0.01
    assert float(check[2]) < 0.03
    steps, _ = costs(lines)
    assert steps["trace"][:3] == [126, 48, 0]
    colours = png(picture)
    assert colours.shape == (20, 32, 3)
    assert np.ptp(colours.astype(int), axis=(0, 1)).min() > 80
    blocks, _ = run("path_tracer", 20, 32, 16, "--tiles", 16, "--blocks", picture="blocks.png")
    assert costs(blocks)[0]["trace"][3] > 1.2 * steps["trace"][3]


SCRIPTS = (
    *("conjugate_gradients", "fft", "game_of_life", "k_means", "lattice_boltzmann"),
    *("n_body", "odd_even_sort", "pagerank", "particles", "path_tracer"),
)
