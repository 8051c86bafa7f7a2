"""The page in headless Chromium: every view draws, nothing is loaded, nothing of the user's is executed."""

import json

import numpy as np
import pytest
from attrs import evolve
from page_browser import asked_by_pages, browser
from page_reports import compute, events, exchange, memory, messages, ran_without_steps, report, two_ipus, variables
from profile_reports import deepest_report
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from benchmarks.made_report import made_report
from pypoplar.report.escaping import escaped
from pypoplar.report.naming.differences import differences
from pypoplar.report.page import write_comparison, write_page
from pypoplar.report.page.document import asset
from pypoplar.report.page.page_views import COMPARISON, REPORT
from pypoplar.report.tile_vertices import FieldSizes, SizedVertices
from pypoplar.report.trace import RecordedTiles

VIEWS = tuple(view.name for view in REPORT.views)
NOT_RUN = {
    "memory": "No variables: this report does not say",
    "liveness": "No liveness: this report does not say",
    "programs": "No program tree",
    "exchange": "No exchange: ",
    "ipus": "The target has one IPU",
}
COMPARED = tuple(view.name for view in COMPARISON.views)
DRAWN_TWICE = ("operations",)  # of the comparison: compute sets and vertex types have one figure
HOSTILE = "</script><img src=x onerror=alert(1)> \"q\" 'q' \\u003c back\\slash <b>bold</b> %{x} $& é 漢字 \udc80 "
DRAWN = """
const shown = Array.from(document.querySelectorAll(`#panel-${arguments[0]} .plot[data-drawn=true]`));
const marks = '.plot path, .bars path, .hm image, .points path';
return shown.filter((one) => one.offsetHeight > 100 && one.querySelectorAll(marks).length).length;
"""
PIXELS = """
const canvas = document.querySelector('#panel-trace canvas');
const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
copy.drawImage(canvas, 0, 0);
"""
COLOURS = f"""{PIXELS}
const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
const found = new Set();
for (let at = 0; at < pixels.length; at += 4) found.add(pixels[at] * 65536 + pixels[at + 1] * 256 + pixels[at + 2]);
return found.size;
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("chromium")) as window:
        yield window


@pytest.fixture
def show(window, tmp_path):
    """Open the page of a report, or of two."""

    def call(*reports, fragment=""):
        path = tmp_path / "page.html"
        (write_page if len(reports) == 1 else write_comparison)(*reports, path)
        window.open(path, fragment)
        return window

    return call


def made_page(made):
    """A fixture: the file of a report's page."""

    @pytest.fixture(scope="module")
    def fixture(tmp_path_factory):
        path = tmp_path_factory.mktemp("page") / "page.html"
        write_page(made(), path)
        return path

    return fixture


page = made_page(lambda: made_report(tiles=80, ipus=2, events=2000))
hostile_page = made_page(
    lambda: made_report(tiles=8, ipus=2, steps=20, events=200, variables=30, rename=lambda name: HOSTILE + name)
)
bare_page = made_page(report)
empty_page = made_page(ran_without_steps)
deepest_page = made_page(deepest_report)


@pytest.fixture
def opened(window, page):
    window.open(page)
    return window


def figures(kind, view):
    """How many plots a view has: those of its script."""
    return asset(f"{kind.scripts}{view}.js").count("page.figure(")


def quiet(window):
    """Nothing in the console, nothing asked of the network."""
    assert window.console() == []
    assert window.requests() == []
    return True


def test_what_the_browser_asks_for_itself_is_told_from_what_a_page_asks_for(window, tmp_path):
    path = tmp_path / "asking.html"
    path.write_text("<img src='http://127.0.0.1:9/picture.png'><script>console.error('a word')</script>")
    for address in ("chrome://new-tab-page/", "chrome-untrusted://new-tab-page/one-google-bar?paramsencoded=", path.as_uri()):
        window.driver.get(address)
    log = window.log("performance")
    asking = {json.loads(entry["message"])["message"]["params"].get("documentURL", "").partition(":")[0] for entry in log}
    assert {"chrome", "chrome-untrusted", "file"} <= asking
    assert asked_by_pages(log) == [path.as_uri(), "http://127.0.0.1:9/picture.png"]
    said = {message.partition(" ")[0] for message in window.console()}
    assert said == {path.as_uri(), "http://127.0.0.1:9/picture.png"}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_draws_without_a_word_from_the_console_or_to_the_network(window, page, view):
    window.see(page, view)
    assert window.run(DRAWN, view) == figures(REPORT, view)
    assert len(window.text(f"#panel-{view}")) > 100
    assert "could not be drawn" not in window.text(f"#panel-{view}")
    assert window.console() == []
    assert window.requests() == []


@pytest.mark.parametrize("view", ["trace", "balance"])
def test_a_view_opens_by_its_address(window, page, view):
    window.open(page, f"#{view}")
    assert window.run("return document.querySelector('[role=tab][aria-selected=true]').id") == f"tab-{view}"
    assert window.run("return document.querySelectorAll('[role=tabpanel]:not([hidden])').length") == 1


@pytest.mark.parametrize("view", VIEWS)
def test_a_program_that_has_not_run_has_every_view_and_says_what_is_absent(window, bare_page, view):
    window.see(bare_page, view)
    text = window.text(f"#panel-{view}")
    assert NOT_RUN.get(view, "No execution: the program has not run") in text
    assert "could not be drawn" not in text
    assert quiet(window)


@pytest.mark.parametrize("view", VIEWS)
def test_a_program_without_steps_has_every_view(window, empty_page, view):
    window.see(empty_page, view)
    text = window.text(f"#panel-{view}")
    assert "could not be drawn" not in text
    assert "has not run" not in text
    if view in ("programs", "names", "trace"):
        assert "The program has run, and no step was executed: 0 cycles." in text
    assert quiet(window)


def test_a_run_without_trace_or_operations_says_how_to_get_them(show):
    window = show(report(compute("even", 0, [100] * 4)), fragment="#trace")
    assert "autoReport.executionProfileProgramRunCount" in window.text("#panel-trace")
    window.tab("roofline")
    assert "No FLOPs: set the engine option profiler.includeFlopEstimates" in window.text("#panel-roofline")
    window.tab("vertices")
    assert "No FLOPs" in window.text("#panel-vertices")


@pytest.mark.parametrize("view", VIEWS)
def test_names_that_look_like_markup_are_shown_as_they_are_and_do_nothing(window, hostile_page, view):
    window.see(hostile_page, view)
    assert window.run("return document.querySelectorAll('img, main b:not(.card b), script[src]').length") == 0
    for name in escaped(HOSTILE).split("/") if view == "names" else [escaped(HOSTILE)]:  # which are paths there
        assert " ".join(name.split()) in " ".join(window.text(f"#panel-{view}").split())
    assert quiet(window)


def test_plots_show_names_that_look_like_markup_as_they_are(show):
    report = made_report(tiles=16, steps=20, events=200, variables=30, rename=lambda name: "<b>&amp;</b>" + name)
    window = show(report, fragment="#vertices")
    labels = window.run("return Array.from(document.querySelectorAll('#panel-vertices .ytick text'), (one) => one.textContent)")
    assert "<b>&amp;</b>poputil::Transpose<half>" in labels
    assert any(name.startswith("<b>&amp;</b>conv") for name in labels)


VIEW = "['from', 'to', 'first', 'last'].map((one) => Number(document.querySelector('#panel-trace canvas').dataset[one]))"


def trace_view(window):
    return window.run(f"return {VIEW}")


def settle(window, before):
    """Wait until the trace shows something else than `before`."""
    window.until(f"JSON.stringify({VIEW}) !== JSON.stringify(arguments[0])", before)
    return trace_view(window)


WHEEL = """
const canvas = document.querySelector('#panel-trace canvas');
const bounds = canvas.getBoundingClientRect();
const [at, shift, turned] = arguments;
const place = { clientX: bounds.left + 62 + at * (bounds.width - 72), clientY: bounds.top + 200 };
canvas.dispatchEvent(new WheelEvent('wheel', { ...place, deltaY: turned, shiftKey: shift, bubbles: true, cancelable: true }));
"""


def test_the_trace_shows_many_colours_and_zooms_about_the_pointer(opened):
    opened.tab("trace")
    assert opened.run(COLOURS) > 20
    whole = trace_view(opened)
    opened.run(WHEEL, 0.25, False, -200)
    zoomed = settle(opened, whole)
    assert zoomed[1] - zoomed[0] < 0.7 * (whole[1] - whole[0])
    assert zoomed[0] + 0.25 * (zoomed[1] - zoomed[0]) == pytest.approx(0.25 * whole[1], rel=0.01)
    assert zoomed[2:] == whole[2:]
    opened.run(WHEEL, 0.25, True, -200)
    fewer = settle(opened, zoomed)
    assert fewer[:2] == zoomed[:2]
    assert fewer[3] - fewer[2] < whole[3] - whole[2]
    assert quiet(opened)


def test_the_trace_moves_by_dragging_and_shows_all_again_by_a_double_click(opened):
    opened.tab("trace")
    whole = trace_view(opened)
    canvas = opened.driver.find_element(By.CSS_SELECTOR, "#panel-trace canvas")
    opened.run(WHEEL, 0.5, False, -200)
    zoomed = settle(opened, whole)
    ActionChains(opened.driver).move_to_element(canvas).click_and_hold().move_by_offset(-200, 0).release().perform()
    moved = settle(opened, zoomed)
    assert moved[0] > zoomed[0]
    assert moved[1] - moved[0] == pytest.approx(zoomed[1] - zoomed[0])
    ActionChains(opened.driver).double_click(canvas).perform()
    assert settle(opened, moved) == whole


def test_the_trace_is_used_by_keys(opened):
    opened.tab("trace")
    whole = trace_view(opened)
    canvas = opened.driver.find_element(By.CSS_SELECTOR, "#panel-trace canvas")
    canvas.send_keys("+")
    zoomed = settle(opened, whole)
    assert zoomed[1] - zoomed[0] == pytest.approx(0.7 * whole[1])
    canvas.send_keys(Keys.ARROW_RIGHT)
    moved = settle(opened, zoomed)
    assert moved[0] > zoomed[0]
    canvas.send_keys("0")
    assert settle(opened, moved)[:2] == whole[:2]


# Where tile 1 of four is at a cycle of 0 to 200: 20 sync, then 100, 50, 0 and 25 of compute, then 30 sync, then exchange of 50.
# Its exchange takes 25 of the 50, and then its copies on the tile 10.
PHASES = {
    5: "sync",
    40: "compute",
    60: "compute",
    75: "waiting",
    110: "waiting",
    125: "sync",
    160: "exchange",
    179: "copies",
    190: "waiting",
}


def small_trace():
    work = compute("work", 0, [200, 100, 0, 50], times=2, sync=40)
    move = exchange("move", 1, [50, 25, 50, 0], [8, 8, 0, 0], [0, 8, 8, 0], sync=30)
    move = evolve(move, copy_cycles_by_tile=np.array([0, 10, 0, 50]))
    return report(work, move, trace=events((0, 120), (1, 80), (0, 120)))


trace_page = made_page(small_trace)


@pytest.mark.parametrize("cycle", list(PHASES))
def test_the_trace_has_the_colour_of_what_a_tile_does_at_a_cycle(window, trace_page, cycle):
    window.see(trace_page, "trace")
    pixel = f"""{PIXELS}
    const [width, height] = [canvas.width - 72, canvas.height - 22 - 46 - 40];
    const at = [62 + (arguments[0] / 320) * width, 68 + (1.5 / 4) * height];
    return Array.from(copy.getImageData(at[0], at[1], 1, 1).data.slice(0, 3));
    """
    assert window.run(pixel, cycle) == window.run("return page.rgb(arguments[0])", PHASES[cycle])


LOAD = """
const runs = page.traceRuns(page.data.execution).then((runs) => runs.load(0));
runs.then((model) => { window.model = model; arguments[0](); });
"""


def test_a_pixel_of_many_events_mixes_their_colours_by_their_time(show):
    work = compute("work", 0, [100_000, 40_000, 0, 100_000], times=1000)
    window = show(report(work, trace=events(*[(0, 100)] * 1000)), fragment="#trace")
    mixed = """
    const image = page.traceRaster(window.model)({ from: 0, to: 100000, first: 0, last: 4 }, 10, 4, {
      phases: PHASES.map(({ name }) => (name === "compute" ? [200, 100, 50] : [0, 0, 0])), idle: [0, 0, 250], blank: [9, 9, 9] });
    return [0, 1, 2, 3].map((row) => Array.from(image.data.slice(row * 40 + 20, row * 40 + 23)));
    """
    window.driver.execute_async_script(LOAD)
    assert window.run(mixed) == [[200, 100, 50], [80, 40, 170], [0, 0, 250], [200, 100, 50]]


def test_a_row_of_several_tiles_shows_the_slowest_of_them(show):
    work = compute("work", 0, [100, 40, 0, 60])
    move = evolve(exchange("move", 1, [50, 10, 0, 20], [8] * 4, [8] * 4), copy_cycles_by_tile=np.array([0, 40, 10, 30]))
    window = show(report(work, move, trace=events((0, 100), (1, 50))), fragment="#trace")
    shown = """
    const colours = { phases: PHASES.map(({ name }) => ({ compute: [200, 0, 0], exchange: [0, 200, 0], copies: [0, 0, 200] })[name]
      ?? [0, 0, 0]), idle: [9, 9, 9], blank: [0, 0, 0] };
    const image = page.traceRaster(window.model)({ from: 0, to: 150, first: 0, last: 4 }, 15, 2, colours);
    const hue = (at) => "irgb"[1 + [0, 1, 2].findIndex((one) => image.data[at + one] === 200)];
    return [0, 1].map((row) => Array.from({ length: 15 }, (_, column) => hue((row * 15 + column) * 4)).join(""));
    """
    window.driver.execute_async_script(LOAD)
    # tiles 0 and 1: tile 0 computes 100 and exchanges 50; tiles 2 and 3: tile 3 computes 60, exchanges 20 and copies 30
    assert window.run(shown) == ["r" * 10 + "g" * 5, "r" * 6 + "i" * 4 + "ggbbb"]


def test_the_slowest_tile_of_each_step_has_a_lane_and_is_said_in_words(show):
    work, other = compute("work", 0, [10, 0, 100, 0]), compute("other", 1, [100, 0, 0, 0])
    window = show(report(work, other, trace=events((0, 100), (1, 100))), fragment="#trace")
    window.until("document.querySelector('#panel-trace canvas').dataset.drawn === 'true'")
    lane = """
    const texts = [];
    const pen = new Proxy(new OffscreenCanvas(9, 9).getContext('2d'), {
      get: (one, name) => name === 'fillText' ? (text) => texts.push(text)
        : typeof one[name] === 'function' ? one[name].bind(one) : one[name],
      set: (one, name, value) => { one[name] = value; return true; },
    });
    page.drawCritical(pen, window.model, { from: 0, to: 200, first: 0, last: 4 }, { left: 0, top: 0, width: 600, height: 20 });
    return texts;
    """
    window.driver.execute_async_script(LOAD)
    assert window.run(lane) == ["tile 2", "tile 0"]


def test_insights_say_what_they_could_save_and_lead_to_what_shows_it(show):
    window = show(report(compute("work", 0, [1000, 0, 0, 0]), tile_memory=memory([900, 0, 0, 0])), fragment="#insights")
    findings = window.run("return Array.from(document.querySelectorAll('#panel-insights .insight'), (one) => one.innerText)")
    assert "grave, up to 75.0 % of all cycles" in findings[0]
    assert any("notable, up to 67.5 % of a tile's memory" in finding for finding in findings)
    window.run(
        "Array.from(document.querySelectorAll('#panel-insights .insight a')).find((one) => one.innerText === 'Show').click()"
    )
    window.until("location.hash.startsWith('#balance?step=0')")


def test_the_balance_names_the_slowest_tile(show):
    work = evolve(compute("work", 0, [10, 0, 100, 0]), number=0)
    ran = report(work)
    sized = {0: (SizedVertices("Work", 2, (FieldSizes("x", 8, 9),)),)}
    window = show(evolve(ran, execution=evolve(ran.execution, slowest_vertices=sized)), fragment="#balance")
    text = window.text("#panel-balance")
    assert "Slowest tile 2: 100 cycles against 28 of the mean tile, 2 vertices of Work (x 8 to 9)." in text
    row = window.run("return document.querySelector('#panel-balance tbody tr').innerText").split("\t")
    heads = window.run("return Array.from(document.querySelectorAll('#panel-balance thead th'), (one) => one.innerText.trim())")
    assert row[[head.split(" \u2195")[0] for head in heads].index("Slowest tile")] == "2"


def test_all_tiles_are_in_an_exchange_between_ipus(show):
    move = evolve(exchange("move", 0, [20, 10, 20, 0], [8] * 4, [8] * 4), global_exchange_cycles=80)
    window = show(report(move, trace=events((0, 100))), fragment="#trace")
    shares = """
    const phase = placeOfPhase(arguments[0]);
    return [0, 1, 2, 3].map((tile) => page.tileShare(window.model.steps[0], phase, tile));
    """
    window.driver.execute_async_script(LOAD)
    assert window.run(shares, "exchange") == [1, 0.5, 1, 0]
    assert window.run(shares, "between") == [1, 1, 1, 1]


def test_what_is_under_the_pointer_is_said_in_words(window, trace_page):
    window.see(trace_page, "trace")
    place = """
    const canvas = document.querySelector('#panel-trace canvas');
    const bounds = canvas.getBoundingClientRect();
    const [width, height] = [bounds.width - 72, bounds.height - 108];
    const at = { clientX: bounds.left + 62 + (60 / 320) * width, clientY: bounds.top + 68 + (1.5 / 4) * height };
    canvas.dispatchEvent(new PointerEvent('pointermove', { ...at, bubbles: true }));
    return document.querySelector('#panel-trace .tip').innerText;
    """
    words = window.run(place)
    assert "work" in words
    assert "OnTileExecute, step 0" in words
    assert "at cycle 0, 120 cycles, 120.00 µs" in words
    assert "tile 1: sync 20, compute 50" in words
    assert "slowest: tile 0" in words


def recorded_trace():
    """30 executions that take 100 cycles in the mean, of which the first took 300."""
    work = compute("work", 0, [3000, 1500, 0, 0], times=30)
    one = np.array([0])
    tiles = RecordedTiles(one.astype(np.int32), one.astype(np.int32), one, np.array([0, 2]), np.array([1, 2]), np.array([300, 60]))
    return report(work, trace=evolve(events((0, 300), *[(0, 93)] * 29), recorded=10, tiles=tiles))


def shared_addresses():
    """Three variables on tile 1, of which two share addresses at different times, with a gap before them."""
    placed = variables(("x", True, -1, -1), ("a", False, 0, 1), ("b", False, 1, 2), places=[{1: 20}, {1: 12}, {1: 8}])
    work = [compute(f"work{step}", step, [1] * 4) for step in range(2)]
    return report(*work, variables=evolve(placed, offset=np.array([0, 24, 24]), span=np.array([20, 12, 8])))


addresses_page = made_page(shared_addresses)


def test_memory_by_address_has_a_row_for_what_lies_there_and_for_gaps(window, addresses_page):
    window.see(addresses_page, "memory")
    window.run("location.hash = '#memory?tile=1'")
    window.until("document.querySelector('#panel-memory').innerText.includes('By address on tile 1')")
    rows = """
    const table = Array.from(document.querySelectorAll('#panel-memory table')).find((one) => one.innerText.includes('Shared with'));
    return Array.from(table.querySelectorAll('tbody tr'), (row) => Array.from(row.cells, (cell) => cell.innerText));
    """
    assert window.run(rows) == [
        ["0", "20", "20 B", "x", "always", "0"],
        ["20", "24", "4 B", "(no variable)", "", "0"],
        ["24", "36", "12 B", "a", "steps 0 to 0", "1"],
        ["24", "32", "8 B", "b", "steps 1 to 1", "1"],
    ]
    bars = "Array.from(document.querySelectorAll('#panel-memory .plot')).at(-1).data"
    window.until(bars)
    drawn = window.run(f"return {bars}[0]")
    assert (drawn["x"], drawn["width"], drawn["base"], drawn["y"]) == ([10, 30, 28], [20, 12, 8], [0, 0, 1], [2, 1, 1])


recorded_page = made_page(recorded_trace)


def test_recorded_executions_show_tiles_as_they_were_and_others_their_mean(window, recorded_page):
    window.see(recorded_page, "trace")
    assert "In the first 10 executions of a step in the run, and the last 10, each tile is shown as it was" in window.text(
        "#panel-trace"
    )
    for event, words in enumerate(
        ("tile 1: compute 300 (as it was)", "tile 1: compute 47 (as it was)", *[""] * 8, "tile 1: compute 47 (in the mean)")
    ):
        if words:
            window.run(f"location.hash = '#trace?event={event}&tile=1'")
            window.until(f"document.querySelector('#panel-trace .chosen').innerText.includes({words!r})")
    window.run("location.hash = '#trace?event=0&tile=2'")
    window.until("document.querySelector('#panel-trace .chosen').innerText.includes('tile 2: compute 60 (as it was)')")


def test_the_events_in_view_stand_in_a_table(window, trace_page):
    window.see(trace_page, "trace")
    rows = window.run("return Array.from(document.querySelectorAll('#panel-trace tbody tr'), (row) => row.innerText)")
    assert [row.split("\t")[:2] for row in rows] == [["0", "120"], ["120", "80"], ["200", "120"]]


def test_tabs_are_reached_by_arrow_keys(opened):
    opened.driver.find_element(By.ID, "tab-summary").send_keys(Keys.ARROW_RIGHT)
    opened.until("document.getElementById('panel-insights').dataset.drawn === 'true'")
    assert opened.run("return [location.hash, document.activeElement.id]") == ["#insights", "tab-insights"]
    opened.driver.switch_to.active_element.send_keys(Keys.END)
    opened.until("document.getElementById('panel-balance').dataset.drawn === 'true'")
    opened.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert opened.run("return document.activeElement.id") == "tab-summary"


def column(window, place):
    rows = "Array.from(document.querySelectorAll('#panel-summary tbody tr'), (row) => row.cells[arguments[0]].innerText)"
    return window.run(f"return {rows}", place)


def test_tables_sort_by_a_click_on_a_heading_and_filter_by_text(opened):
    cycles = [int(cell.replace(",", "")) for cell in column(opened, 4)]
    assert cycles == sorted(cycles, reverse=True)
    heading = opened.driver.find_elements(By.CSS_SELECTOR, "#panel-summary thead button")[4]
    heading.click()
    assert [int(cell.replace(",", "")) for cell in column(opened, 4)] == sorted(cycles)
    assert opened.run("return document.querySelectorAll('#panel-summary th')[4].getAttribute('aria-sort')") == "ascending"
    opened.driver.find_element(By.CSS_SELECTOR, "#panel-summary input[type=search]").send_keys("FC1/")
    assert {name.split("/")[0] for name in column(opened, 1)} == {"fc1"}


def test_the_tree_opens_and_closes_with_keys(opened):
    opened.tab("programs")
    lines = "return document.querySelectorAll('#panel-programs tbody tr').length"
    before = opened.run(lines)
    root = opened.driver.find_element(By.CSS_SELECTOR, "#panel-programs tbody tr")
    root.send_keys(Keys.ARROW_LEFT)
    assert opened.run(lines) == 1
    root.send_keys(Keys.ENTER)
    assert 1 < opened.run(lines) < before


def test_a_selected_tile_shows_its_memory_and_variables(show):
    held_variables = variables(("x", False, 0, 1), ("y", True, -1, -1), places=[{0: 30, 1: 2}, {2: 20}])
    small_report = report(compute("even", 0, [1] * 4), tile_memory=memory([30, 2, 1200, 0]), variables=held_variables)
    window = show(small_report, fragment="#memory")
    assert "1,200 B with gaps, 120.0 % of its memory, 200 B more than it has." in window.text("#panel-memory")
    window.tab("memory", "?tile=1")
    text = window.text("#panel-memory")
    assert "Tile 1" in text
    assert "x\t2 B\tsteps 0 to 0" in text


def test_a_selected_step_shows_what_lives_at_it_and_how_it_is_called(show):
    held_variables = variables(("x", False, 0, 1), ("y", True, -1, -1), ("z", False, 1, 2), places=[{0: 30}, {2: 20}, {3: 50}])
    small_report = report(compute("first", 0, [1] * 4), compute("second", 1, [1] * 4), variables=held_variables)
    window = show(small_report, fragment="#liveness?step=0")
    text = window.text("#panel-liveness")
    assert "30 B live here besides 20 B that always live." in text
    assert "x\t30 B" in text
    assert "z\t50 B" not in text
    path = window.run("return Array.from(document.querySelectorAll('.path li'), (one) => one.innerText)")
    assert path == ["Sequence · main", "OnTileExecute · first"]


def test_the_exchange_map_has_the_bytes_of_its_tiles_and_is_exact_when_zoomed_in(show):
    move = exchange("move", 0, [4] * 4, [8] * 4, [8] * 4, times=3)
    window = show(report(move, exchanges=(messages("move", 0, (0, 1, 8), (2, 3, 40)),)), fragment="#exchange")
    bins = "const {x0, y0, z} = document.querySelector('.map').data[0]; return [x0, y0, z];"
    assert window.run(bins) == [0, 0, [[0, 24, 0, 0], [0, 0, 0, 0], [0, 0, 0, 120], [0, 0, 0, 0]]]
    window.run("document.querySelector('#panel-exchange tbody tr').click()")
    window.until("document.querySelector('.map').data[0].z[2][3] === 40")
    zoomed = {"xaxis.range[0]": 2.5, "xaxis.range[1]": 3.5, "yaxis.range[0]": 2.5, "yaxis.range[1]": 1.5}
    window.run("Plotly.relayout(document.querySelector('.map'), arguments[0])", zoomed)
    window.until("document.querySelector('.map').data[0].z.length === 1")
    assert window.run(bins) == [3, 2, [[40]]]


def test_a_large_exchange_map_is_binned_and_exact_when_zoomed_in(show):
    window = show(made_report(tiles=800, steps=10, events=20, variables=3), fragment="#exchange")
    assert window.run("return Number(document.querySelector('.map').dataset.bin)") == 3
    total = window.run("return document.querySelector('.map').data[0].z.flat().reduce((one, other) => one + other, 0)")
    window.run("Plotly.relayout(document.querySelector('.map'), {'xaxis.range[0]': 99.5, 'xaxis.range[1]': 199.5})")
    window.run("Plotly.relayout(document.querySelector('.map'), {'yaxis.range[0]': 199.5, 'yaxis.range[1]': 99.5})")
    window.until("document.querySelector('.map').dataset.bin === '1'")
    assert 0 < window.run("return document.querySelector('.map').data[0].z.flat().reduce((one, other) => one + other, 0)") < total


def test_the_page_follows_the_theme(window, page):
    colours = "[getComputedStyle(document.body).backgroundColor, document.querySelector('#panel-memory .plot').layout.font.color]"
    window.open(page, "#memory")
    light = window.run(f"return {colours}")
    window.theme(dark=True)
    try:
        window.until(f"{colours}[1] !== arguments[0]", light[1])
        assert window.run(f"return {colours}")[0] != light[0]
    finally:
        window.theme(dark=False)


@pytest.mark.parametrize("width", [1400, 420])
def test_all_views_fit_the_width_of_their_window(window, page, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        window.open(page)
        for view in VIEWS:
            window.tab(view)
            assert window.run("return document.documentElement.scrollWidth <= window.innerWidth"), view
    finally:
        window.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_no_tab_is_cut_at_the_width_of_a_desktop(window, page):
    size = {"width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        window.open(page)
        last = "return Math.max(...[...document.querySelectorAll('#tabs a')].map((one) => one.getBoundingClientRect().right))"
        assert window.run(last) <= 1400
        assert window.run("const nav = document.querySelector('nav'); return nav.scrollWidth <= nav.clientWidth")
    finally:
        window.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_icons_of_a_plot_do_not_touch_on_a_phone(window, page):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        window.open(page)
        window.tab("memory")
        tops = "Array.from(document.querySelectorAll('#panel-memory .modebar-btn'), (one) => one.getBoundingClientRect())"
        apart = window.run(f"const all = {tops}; return all.slice(1).map((one, place) => one.top - all[place].bottom)")
        assert len(apart) > 2
        assert min(apart) >= 6
    finally:
        window.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_no_plot_offers_to_send_its_data_to_another_host(opened):
    opened.tab("memory")
    titles = opened.run("return [...document.querySelectorAll('.modebar-btn')].map((one) => one.dataset.title)")
    assert "Zoom in" in titles
    assert [title for title in titles if "share" in title.lower() or "cloud" in title.lower()] == []


def press(window, label):
    window.run(
        "[...document.querySelectorAll('#panel-trace button')].find((one) => one.textContent === arguments[0]).click()", label
    )


def sees(window, begin, end):
    drawn = "document.querySelector('#panel-trace canvas').dataset"
    window.until(f"Number({drawn}.from) === arguments[0] && Number({drawn}.to) === arguments[1]", begin, end)
    return True


@pytest.fixture
def looped(show):
    """Once a step, then three rounds of two, in which the last of them runs twice in the second round."""
    steps = [compute(name, number, [100] * 4, times=4) for number, name in enumerate(("once", "outer", "inner"))]
    return show(
        report(*steps, trace=events((0, 100), (1, 40), (2, 60), (1, 40), (2, 30), (2, 50), (1, 40), (2, 20))), fragment="#trace"
    )


def test_a_button_shows_one_iteration_of_a_loop_and_another_one_the_next(looped):
    press(looped, "One iteration")
    assert sees(looped, 100, 200)
    press(looped, "Next iteration")
    assert sees(looped, 200, 320)
    press(looped, "Next iteration")
    assert "This step is not executed again." in looped.text("#panel-trace .chosen")


def test_the_chosen_event_says_which_loop_an_iteration_is_of(looped):
    looped.tab("trace", "?event=4")
    press(looped, "One iteration")
    assert sees(looped, 240, 270)


def test_a_run_without_loops_says_so(show):
    steps = [compute(name, number, [100] * 4) for number, name in enumerate("ab")]
    window = show(report(*steps, trace=events((0, 100), (1, 100))), fragment="#trace")
    press(window, "One iteration")
    assert "No step in view is executed again." in window.text("#panel-trace .chosen")


def test_names_break_behind_separators(show):
    window = show(report(compute("layer1/conv_fwd", 0, [200] * 4)), fragment="#steps")
    cell = "return [...document.querySelectorAll('#panel-steps td')].find((one) => one.textContent === 'layer1/conv_fwd').innerHTML"
    assert window.run(cell) == "layer1/<wbr>conv_<wbr>fwd"


def test_an_exchange_that_is_all_alike_is_said_in_words(show):
    move = exchange("move", 0, [4] * 4, [8] * 4, [8] * 4)
    pairs = [(source, 2 + target, 8) for source in range(2) for target in range(2)]
    window = show(report(move, exchanges=(messages("move", 0, *pairs),)), fragment="#exchange")
    assert "All alike: from each of 2 tiles to each of 2 tiles go 8 B." in window.text("#panel-exchange")
    assert not window.run("return document.querySelector('#panel-exchange .map').checkVisibility()")
    other = show(report(move, exchanges=(messages("move", 0, *pairs[:-1], (1, 3, 9)),)), fragment="#exchange")
    assert "All alike" not in other.text("#panel-exchange")


def test_differences_of_a_comparison_have_the_look_of_their_size(show):
    steps = [compute(name, number, [1000] * 4) for number, name in enumerate(("much", "some", "little"))]
    later = {"much": 4220, "some": 1050, "little": 1001}
    after = [compute(name, number, [cycles] * 4) for number, (name, cycles) in enumerate(later.items())]
    window = show(report(*steps, name="before"), report(*after, name="after"), fragment="#steps")
    rows = "[...document.querySelectorAll('#panel-steps tbody tr')]"
    kinds = f"{rows}.map((row) => [row.cells[3].textContent, row.cells[7].className])"
    assert window.run(f"return Object.fromEntries({kinds})") == {
        "much": "number more strong",
        "some": "number more",
        "little": "number more slight",
    }


@pytest.fixture(scope="module")
def comparison_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "comparison.html"
    size = {"tiles": 60, "events": 600, "variables": 50}
    write_comparison(made_report(**size), made_report(**size, steps=66, seed=1, rename=lambda name: name + HOSTILE), path)
    return path


@pytest.fixture(scope="module")
def bare_comparison_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "comparison.html"
    write_comparison(report(compute("work", 0, [200] * 4)), report(), path)
    return path


@pytest.mark.parametrize("view", COMPARED)
def test_a_view_of_a_comparison_draws(window, comparison_page, view):
    window.see(comparison_page, view)
    assert window.run(DRAWN, view) == figures(COMPARISON, view) * (2 if view in DRAWN_TWICE else 1)
    assert "could not be drawn" not in window.text(f"#panel-{view}")
    assert len(window.text(f"#panel-{view}")) > 40
    assert window.run("return document.querySelectorAll('img, main b, script[src]').length") == 0
    assert quiet(window)


def test_a_comparison_shows_differences_in_numbers_and_percent(show):
    window = show(report(compute("work", 0, [200] * 4), name="before"), report(compute("work", 0, [150] * 4), name="after"))
    assert "Cycles\t200\t150\t-50 (-25.0 %)" in window.text("#panel-summary")
    window.tab("steps")
    assert "0\t0\tOnTileExecute\twork\t200\t150\t-50\t-25.0 %" in window.text("#panel-steps")


@pytest.mark.parametrize("view", COMPARED)
def test_a_comparison_with_a_program_that_has_not_run_says_so(window, bare_comparison_page, view):
    window.see(bare_comparison_page, view)
    text = window.text(f"#panel-{view}")
    assert "could not be drawn" not in text
    assert {"memory": "Category", "liveness": "no liveness"}.get(view, "not run") in text
    assert quiet(window)


@pytest.mark.parametrize("view", VIEWS)
def test_the_deepest_nest_of_programs_draws(window, deepest_page, view):
    window.see(deepest_page, view)
    assert "could not be drawn" not in window.text(f"#panel-{view}")
    assert quiet(window)


def layered():
    """A report with two layers, one of them unrolled, and a copy."""
    steps = [compute(f"layer/step{number}/fwd", number, [10 * (number + 1)] * 4, sync=2) for number in range(4)]
    move = exchange("other/move", 4, [30, 10, 0, 0], [8, 0, 0, 0], [0, 8, 0, 0])
    held = variables(("layer/weights", True, -1, -1), places=[{0: 300, 2: 20}])
    trace = events((0, 12), (1, 22), (2, 32), (3, 42), (4, 30), (0, 12))
    return report(*steps, move, variables=held, trace=trace, exchanges=(messages("other/move", 4, (0, 1, 8)),))


layered_page = made_page(layered)
FRAMES = """
return Array.from(document.querySelectorAll('#panel-names .frame'), (one) =>
  [one.dataset.at, Math.round(parseFloat(one.style.width) * 10) / 10]);
"""


def rows_of(window, panel):
    cells = "Array.from(row.cells, (cell) => cell.innerText.replace(/[\\u25b8\\u25be]/g, '').trim())"
    return window.run(f"return Array.from(document.querySelectorAll('#panel-{panel} tbody tr'), (row) => {cells})")


def back(window, condition, *arguments):
    window.driver.back()
    window.until(condition, *arguments)


def test_names_stand_in_a_tree_and_loops_fold(window, layered_page):
    window.open(layered_page, "#names")
    rows = {row[0]: row for row in rows_of(window, "names")}
    assert list(rows) == ["all", "layer", "step* (4)", "fwd (4)", "weights", "other", "move"]
    assert rows["all"][1:4] == ["138", "100.0 %", "5"]
    assert rows["step* (4)"][1:4] == ["108", "78.3 %", "4"]
    assert rows["move"][4] == "8 B"
    assert rows["weights"][7] == rows["layer"][7] == "320 B"
    assert window.run(FRAMES) == [
        *(["", 100], ["other", 21.7], ["other/move", 21.7]),
        *(["layer", 78.3], ["layer/step*", 78.3], ["layer/step*/fwd", 78.3]),
    ]
    window.run("document.querySelector('#panel-names input[type=checkbox]').click()")
    assert [row[0] for row in rows_of(window, "names")][2:6] == ["step3", "fwd", "step2", "fwd"]
    assert window.run("return location.hash") == "#names?fold=no"
    assert quiet(window)


def test_a_frame_is_zoomed_by_a_click_the_way_back_and_its_address(window, layered_page):
    window.open(layered_page, "#names")
    window.run("document.querySelector('.frame[data-at=\"layer/step*\"]').click()")
    window.until("document.querySelectorAll('#panel-names .frame').length === 2")
    assert window.run("return location.hash") == "#names?at=layer%2Fstep*"
    way = window.run("return Array.from(document.querySelector('.way').children, (one) => one.innerText)")
    assert way == ["all", "layer", "step* (4)"]
    back(window, "document.querySelectorAll('#panel-names .frame').length === 6")
    window.driver.forward()
    window.until("document.querySelectorAll('#panel-names .frame').length === 2")
    window.open(layered_page, "#names?at=layer%2Fstep*&by=cycles")
    assert len(window.run(FRAMES)) == 2
    window.tab("names", "?at=no/such/name&by=absent")
    assert len(window.run(FRAMES)) == 6
    window.tab("names", "?by=memory")
    assert window.run(FRAMES)[1] == ["layer", 100]


def test_names_are_shown_of_a_report_that_has_not_run(show):
    held = variables(("layer/weights", True, -1, -1), places=[{0: 300, 2: 20}])
    window = show(report(variables=held), fragment="#names")
    assert "No execution" in window.text("#panel-names")
    assert [row[0] for row in rows_of(window, "names")] == ["all", "layer", "weights"]


def test_a_step_shows_its_phases_and_the_ways_to_what_is_known_of_it(window, layered_page):
    window.open(layered_page, "#steps?step=4")
    text = window.text("#panel-steps")
    assert "Step 4: other/move" in text
    assert "Exchange 100.0 % (30 cycles)" in text
    assert "Tile 0 sends the most: 8 B" in text
    links = window.run("return Array.from(document.querySelectorAll('#panel-steps .links a'), (one) => one.getAttribute('href'))")
    assert links == ["#names?at=other%2Fmove&fold=no", "#trace?step=4", "#exchange?step=4", "#liveness?step=4"]
    for link in links:
        view, _, parameters = link[1:].partition("?")
        window.tab(view, f"?{parameters}")
        assert "could not be drawn" not in window.text(f"#panel-{view}")
    assert trace_view(window)[:2] == [60, 150]  # as much again around it, as far as the run goes
    window.open(layered_page, "#steps?step=99")
    assert "Step 99 has not run." in window.text("#panel-steps")
    assert quiet(window)


def test_rows_of_steps_lead_to_the_step(window, layered_page):
    window.open(layered_page, "#summary")
    window.run("document.querySelector('#panel-summary tbody a').click()")
    window.until("location.hash.startsWith('#steps?step=')")
    window.until("document.querySelector('#panel-steps h2') !== null")
    assert "Step 3" in window.text("#panel-steps h2")
    back(window, "!document.getElementById('panel-summary').hidden")


def clicked_in_trace(window, cycle, tile, length, tiles=4):
    place = """
    const canvas = document.querySelector('#panel-trace canvas');
    const bounds = canvas.getBoundingClientRect();
    const [width, height] = [bounds.width - 72, bounds.height - 108];
    const at = { clientX: bounds.left + 62 + arguments[0] * width, clientY: bounds.top + 68 + arguments[1] * height };
    for (const kind of ['pointerdown', 'pointerup'])
      canvas.dispatchEvent(new PointerEvent(kind, { ...at, pointerId: 1, button: 0, bubbles: true }));
    """
    window.run(place.replace("canvas.setPointerCapture", ""), cycle / length, (tile + 0.5) / tiles)


def test_an_event_of_the_trace_leads_to_its_step_and_its_tile(window, layered_page):
    window.open(layered_page, "#trace")
    window.run("HTMLCanvasElement.prototype.setPointerCapture = () => {}")
    clicked_in_trace(window, 20, 2, 150)
    assert window.text("#panel-trace .chosen") == "At cycle 12, 22 cycles: step 1, layer/step1/fwd; tile 2: sync 2, compute 20"
    assert window.run("return location.hash") == "#trace?event=1&tile=2"
    links = window.run("return Array.from(document.querySelectorAll('.chosen a'), (one) => one.getAttribute('href'))")
    assert links == ["#steps?step=1", "#memory?tile=2"]
    window.open(layered_page, "#trace?event=4&tile=0")
    assert "other/move; tile 0: exchange 30" in window.text("#panel-trace .chosen")
    window.open(layered_page, "#trace?event=900&tile=x")
    assert window.text("#panel-trace .chosen") == ""
    assert quiet(window)


def test_the_zoom_of_the_trace_is_in_the_address_and_the_way_back_leaves_it(window, layered_page):
    window.open(layered_page, "#trace")
    whole = trace_view(window)
    window.run("document.querySelector('#panel-trace canvas').dispatchEvent(new KeyboardEvent('keydown', { key: '+' }))")
    zoomed = settle(window, whole)
    window.until("location.hash.includes('from=')")
    address = window.run("return location.hash")
    back(window, "!location.hash.includes('from=')")
    assert settle(window, zoomed) == whole
    window.open(layered_page, address)
    assert trace_view(window) == [round(zoomed[0]), round(zoomed[1]), *zoomed[2:]]


@pytest.mark.parametrize("view", ["memory", "liveness", "balance"])
def test_the_zoom_of_a_plot_is_in_the_address_and_the_way_back_leaves_it(window, page, view):
    window.open(page, f"#{view}")
    shown = f"document.querySelector('#panel-{view} .plot').layout.xaxis.range"
    before = window.run(f"return {shown}")
    window.run(f"Plotly.relayout(document.querySelector('#panel-{view} .plot'), {{'xaxis.range[0]': 3.5, 'xaxis.range[1]': 20.5}})")
    window.until("location.hash.includes('from=3.5&to=20.5')")
    back(window, f"JSON.stringify({shown}) === JSON.stringify(arguments[0])", before)
    window.open(page, f"#{view}?from=3.5&to=20.5")
    assert window.run(f"return {shown}") == [3.5, 20.5]
    window.open(page, f"#{view}?from=nonsense&to=2")
    assert window.run(f"return {shown}") == before


def found(window, text):
    box = window.driver.find_element(By.CSS_SELECTOR, "#search input")
    box.clear()
    box.send_keys(text)
    window.until("document.getElementById('search').dataset.found === arguments[0]", text.lower())
    return window.run("return Array.from(document.querySelectorAll('#found li'), (one) => one.innerText.trim())")


def test_steps_variables_vertices_and_tiles_are_found_by_a_part_of_their_names(window, layered_page):
    window.open(layered_page)
    assert found(window, "MOVE") == ["Step 4 other/move \u00b7 DoExchange"]
    assert found(window, "weig") == ["Variable layer/weights"]
    assert found(window, "wor") == ["Vertex type Work"]
    assert found(window, "step3/fwd") == ["Step 3 layer/step3/fwd \u00b7 OnTileExecute", "Compute set layer/step3/fwd"]
    assert found(window, "tile 3") == ["Tile 3"]
    assert found(window, "nowhere") == ["nothing has this name"]
    box = window.driver.find_element(By.CSS_SELECTOR, "#search input")
    found(window, "weig")
    box.send_keys(Keys.ENTER)
    window.until("location.hash === '#liveness?variable=0'")
    window.until("document.getElementById('panel-liveness').dataset.drawn === 'true'")
    assert "layer/weights\n\n320 B, lives: always\n\ntile 0 300 B, tile 2 20 B, on 2 tiles in all" in window.text("#panel-liveness")
    assert quiet(window)


def test_what_is_found_beyond_a_few_of_a_kind_is_counted(show):
    window = show(report(*(compute(f"work{number}", number, [1] * 4) for number in range(20))))
    lines = found(window, "work")
    assert [line for line in lines if "more" in line] == ["Step: and 12 more", "Compute set: and 12 more"]
    assert len(lines) == 2 * 9 + 1


def test_what_is_found_is_reached_by_keys_and_left_by_escape(window, layered_page):
    window.open(layered_page)
    found(window, "fwd")
    active = window.driver.switch_to.active_element
    active.send_keys(Keys.ARROW_DOWN)
    assert window.run("return document.activeElement.getAttribute('href')").startswith("#steps")
    window.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert window.run("return document.getElementById('found').hidden")


def test_a_page_is_printed_light_without_what_one_clicks(window, page):
    window.open(page)
    window.theme(dark=True)
    window.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert window.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert window.run("return getComputedStyle(document.querySelector('nav')).display") == "none"
        assert window.run("return getComputedStyle(document.getElementById('search')).display") == "none"
        assert window.run("return getComputedStyle(document.querySelector('.bar')).printColorAdjust") == "exact"
    finally:
        window.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        window.theme(dark=False)


def small_sides(**names):
    steps = [compute("layer/work", 0, [200, 100, 0, 50], times=2, sync=40), exchange("halo", 1, [50, 25, 50, 0], [8] * 4, [8] * 4)]
    others = [compute("first", 0, [80] * 4), compute("layer/work", 1, [100] * 4), exchange("halo", 2, [20] * 4, [8] * 4, [8] * 4)]
    return (
        report(*steps, name="before", trace=events((0, 120), (1, 50), (0, 120))),
        report(*others, name="after", trace=events((0, 80), (1, 100), (2, 20))),
    )


@pytest.fixture(scope="module")
def sides_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "comparison.html"
    write_comparison(*small_sides(), path)
    return path


def test_a_comparison_says_first_in_words_what_differs(window, sides_page):
    window.open(sides_page)
    lines = window.run("return Array.from(document.querySelectorAll('.words li'), (one) => one.innerText)")
    assert lines == [difference.words for difference in differences(*small_sides())]
    assert lines[0] == "all cycles fell from 290 to 200 cycles (-31.0 %)"
    assert "exchange of 'halo' fell from 50 to 20 cycles (-60.0 %)" in lines
    assert quiet(window)


def test_bars_of_a_comparison_have_one_scale(window, sides_page):
    window.open(sides_page)
    widths = window.run("return Array.from(document.querySelectorAll('#panel-summary .bar'), (one) => one.offsetWidth)")
    assert widths[1] / widths[0] == pytest.approx(200 / 290, rel=0.01)
    assert widths[3] / widths[2] == pytest.approx(200 / 290, rel=0.01)


def test_a_comparison_shows_names_as_a_tree_what_changed_most_first(window, sides_page):
    window.open(sides_page, "#paths")
    rows = rows_of(window, "paths")
    assert [row[0] for row in rows] == ["all", "layer", "work", "first", "halo"]
    assert rows[0][2:6] == ["290", "200", "-90", "-31.0 %"]
    assert rows[3][2:6] == ["0", "80", "+80", "new"]
    window.run("document.querySelector('#panel-paths input[type=checkbox]').click()")
    assert window.run("return location.hash") == "#paths?fold=no"


def both_views(window):
    views = "Array.from(document.querySelectorAll('#panel-trace canvas'), ({ dataset }) => [dataset.from, dataset.to].map(Number))"
    return window.run(f"return {views}")


def test_the_traces_of_a_comparison_have_one_scale_and_move_together(window, sides_page):
    window.open(sides_page, "#trace")
    assert both_views(window) == [[0, 290], [0, 290]]
    assert "A takes 290 cycles, B 200." in window.text("#panel-trace")
    window.run("document.querySelector('#panel-trace canvas').dispatchEvent(new KeyboardEvent('keydown', { key: '+' }))")
    views = "Array.from(document.querySelectorAll('#panel-trace canvas'), ({ dataset }) => dataset.to)"
    window.until(f"{views}.every((to) => to !== '290')")
    window.until(f"new Set({views}).size === 1")
    window.until("location.hash.includes('from=')")
    first, second = both_views(window)
    assert first == pytest.approx(second, abs=1)
    window.open(sides_page, "#trace?from=30&to=100")
    assert both_views(window) == [[30, 100], [30, 100]]
    assert quiet(window)


def test_the_traces_of_a_comparison_are_aligned_at_a_step_that_both_have(window, sides_page):
    window.open(sides_page, "#trace?at=layer%2Fwork")
    assert "Both begin with layer/work at cycle 80 of this picture; in A that is cycle 0 of the run, in B 80." in window.text(
        "#panel-trace"
    )
    assert both_views(window) == [[0, 370], [0, 370]]
    options = window.run("return Array.from(document.querySelectorAll('#panel-trace option'), (one) => one.value)")
    assert options == ["", "layer/work", "halo"]
    choice = window.driver.find_element(By.CSS_SELECTOR, "#panel-trace select")
    choice.send_keys("halo")
    window.until("location.hash.includes('at=halo')")
    assert "at cycle 180 of this picture; in A that is cycle 120 of the run, in B 180" in window.text("#panel-trace")
    window.tab("trace", "?at=absent")
    assert both_views(window) == [[0, 290], [0, 290]]


def test_a_comparison_of_other_targets_says_so_first(show):
    ran = report(compute("work", 0, [200] * 4))
    other = evolve(ran, compilation=evolve(ran.compilation, target=evolve(ran.compilation.target, bytesPerTile=5)))
    window = show(ran, other)
    assert window.text("#panel-summary .notice").startswith("the targets differ: 1,000 B a tile in A, 5 B a tile in B")
    assert "no difference in cycles or memory" in window.text("#panel-summary")


def test_ipus_have_an_overview_and_a_matrix_with_the_use_of_their_links(show):
    window = show(two_ipus(), fragment="#ipus")
    rows = rows_of(window, "ipus")
    assert rows[0][-3:] == ["8 B", "80 B", "20 B"]
    assert rows[1][:4] == ["1", "700 B", "400 B", "3"]
    assert [" ".join(cell.split()) for cell in rows[2]] == ["IPU 0", "within", "80 B 100.0 %"]
    assert [" ".join(cell.split()) for cell in rows[3]] == ["IPU 1", "20 B 25.0 %", "within"]
    assert rows[4] == ["0", "over", "2", "50 B", "40", "IPU 0 to IPU 1", "100.0 %"]
    assert "A link carries 2.000 B per cycle each way; IPUs are wired as a ladder, and bytes" in window.text("#panel-ipus")
    assert quiet(window)


@pytest.mark.parametrize(
    "asked", ["tile=x&step=x", "tile=-1&step=-1", "tile=99999&step=99999", "tile=1.5&step=", "tile=%&step=NaN"]
)
def test_an_address_that_asks_for_what_is_not_there_shows_what_is_usual(window, layered_page, asked):
    window.open(layered_page)
    for view in ("memory", "liveness"):
        window.tab(view)
        usual = window.text(f"#panel-{view} h2")
        window.tab(view, f"?{asked}")
        assert window.text(f"#panel-{view} h2") == usual
    assert quiet(window)


@pytest.mark.parametrize("view", VIEWS)
def test_any_address_of_a_view_is_drawn(window, page, view):
    window.open(page)
    for words in (
        "at=__proto__&by=constructor",
        "from=9&to=1&first=-5&last=1e99",
        "run=7&event=99999&tile=-1",
        "step=4&from=NaN&to=0-9",
    ):
        window.tab(view, f"?{words}")
        assert "could not be drawn" not in window.text(f"#panel-{view}")
    assert quiet(window)
