"""Make the pictures of the page of a profile and of notebooks: ``python docs/pictures.py`` draws them anew, light and dark.

A program of the gallery runs on all tiles of a Bow; headless Chromium shows its profile. Beside the pictures lies `shown.json`,
which says what was to be seen: texts, marks, colours and a sum of the numbers that are plotted. CI draws again and compares
these, since pixels differ with fonts and versions of Chromium.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from attrs import frozen

from pypoplar import FLOAT, Graph, IPUModel, pva

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "helpers"))

from page_browser import Browser, browser  # noqa: E402 (the tests of pages have it)

PLACE = HERE / "pictures"
SHOWN = PLACE / "shown.json"
WIDTH = 1200
SCALE = 1.5  # pixels of a picture for one of the page, so that text is sharp
QUALITY = 80
COMMAND = "python docs/pictures.py"
PROGRAM = ("gallery/conjugate_gradients", "96", "92", "16")  # all 1,472 tiles, 141,312 points
THEMES = ("light", "dark")


@frozen
class Picture:
    """One view, in both themes."""

    name: str
    address: str  # in the page of the profile: the view and what is selected; empty for the notebook
    height: int = 780
    middle: str = ""  # the element that stands in the middle; empty to begin at the top


PICTURES = (
    Picture("page", "summary"),
    Picture("trace", "trace?from=16000&to=24000"),
    Picture("exchange", "exchange", middle="#panel-exchange .plot"),
    Picture("memory", "memory"),
    Picture("notebook", "", height=450),
)

WHAT_IS_SHOWN = """
const sum = (text) => {
  let low = 0x811c9dc5, high = 0x1b873593;
  for (let at = 0; at < text.length; at++) {
    low = Math.imul(low ^ text.charCodeAt(at), 0x01000193);
    high = Math.imul(high ^ text.charCodeAt(at), 0x85ebca6b);
  }
  return [low, high].map((part) => (part >>> 0).toString(16).padStart(8, '0')).join('');
};
const seen = (one) => one.checkVisibility() && !one.closest('.xtick, .ytick, tbody tr:nth-child(n+11), script, style');
const all = Array.from(document.body.querySelectorAll('*')).filter(seen);
const words = (one) => Array.from(one.childNodes).filter((node) => node.nodeType === 3).map((node) => node.data.trim());
const texts = all.flatMap(words).filter((text) => text);
const marks = {};
const beside = '.gridlayer, .xtick, .ytick, .modebar, defs';
for (const one of all)
  if (one.matches('svg *, canvas, tr, button') && !one.matches('g') && !one.closest(beside))
    marks[one.localName] = (marks[one.localName] ?? 0) + 1;
const colours = new Set();
for (const one of all) {
  const style = getComputedStyle(one), inside = one instanceof SVGElement;
  for (const name of inside ? ['fill', 'stroke'] : ['color', 'backgroundColor'])
    if (/^rgb/.test(style[name]) && !/, 0\\)$/.test(style[name])) colours.add(style[name]);
}
for (const canvas of all.filter((one) => one.localName === 'canvas' && one.width && one.height)) {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d');
  copy.drawImage(canvas, 0, 0);
  const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data, counts = new Map();
  for (let at = 0; at < pixels.length; at += 4) {
    const pixel = `canvas ${pixels[at]}, ${pixels[at + 1]}, ${pixels[at + 2]}`;
    counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  }
  for (const [pixel, count] of counts) if (count > pixels.length / 400) colours.add(pixel);
}
const plots = all.filter((one) => one.classList.contains('js-plotly-plot'));
const flat = (key, value) => ArrayBuffer.isView(value) ? Array.from(value) : value;
const plotted = plots.map((one) => sum(JSON.stringify(one.data, flat)));
const undated = texts.map((text) => text.replace(/^[-0-9]+ [:0-9]+ UTC · pypoplar \\S+/, ''));
return { texts: undated, marks, colours: [...colours].sort(), plotted };
"""

COARSE = """
const [first, second, done] = arguments;
const grid = async (data) => {
  const image = new Image();
  image.src = data;
  await image.decode();
  const small = new OffscreenCanvas(24, 16).getContext('2d');
  small.imageSmoothingQuality = 'high';
  small.drawImage(image, 0, 0, 24, 16);
  return { size: [image.naturalWidth, image.naturalHeight], pixels: small.getImageData(0, 0, 24, 16).data };
};
Promise.all([grid(first), grid(second)]).then(([one, other]) => {
  const apart = Array.from(one.pixels, (value, at) => Math.abs(value - other.pixels[at]));
  done({ sizes: [one.size, other.size], mean: apart.reduce((a, b) => a + b, 0) / apart.length, most: Math.max(...apart) });
}, (error) => done({ error: String(error) }));
"""

CELL = """<!doctype html><html lang="en"><meta charset="utf-8"><title>notebook</title><style>
:root { color-scheme: light dark; --paper: #fff; --ink: #111; --code: #f5f5f5; --edge: #ddd; --quiet: #616161 }
@media (prefers-color-scheme: dark) { :root { --paper: #111; --ink: #eee; --code: #212121; --edge: #444; --quiet: #aaa } }
body { margin: 0; padding: 16px 24px; background: var(--paper); color: var(--ink); font-family: sans-serif }
.cell { display: grid; grid-template-columns: 60px 1fr; gap: 4px 8px; margin-bottom: 16px }
.cell > span { font: 12px monospace; color: var(--quiet); padding-top: 8px }
pre { margin: 0; padding: 8px; background: var(--code); border: 1px solid var(--edge); font: 13px monospace }
</style><body>"""


def profile(directory: Path) -> Path:
    """Run the program in a process of its own; the profile that it wrote."""
    options = {"autoReport.all": "true", "autoReport.directory": "."}  # the page names it
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "POPLAR_ENGINE_OPTIONS": json.dumps(options)}
    command = [sys.executable, "-m", "pypoplar", "tutorial", *PROGRAM]
    subprocess.run(command, cwd=directory, env=environment, capture_output=True, check=True)
    return directory / "profile.pop"


def notebook(report: pva.Report) -> str:
    """What a notebook shows of a tensor and of a report, in cells as notebooks draw them."""
    graph = Graph(IPUModel().createDevice().getTarget())
    x = graph.addVariable(FLOAT, [800, 96], "x")
    for row in range(len(x)):
        graph.setTileMapping(x[row], row)
    cells = (("x", x), ("engine.getReport()", report))
    return CELL + "".join(
        f'<div class="cell"><span>[{number}]:</span><pre>{escape(code)}</pre><span></span><div>{shown._repr_html_()}</div></div>'
        for number, (code, shown) in enumerate(cells, 1)
    )


@frozen
class Drawn:
    """A picture in one theme, with what the page says of itself."""

    picture: Picture
    theme: str
    shown: dict[str, Any]
    image: bytes

    @property
    def path(self) -> Path:
        return PLACE / f"{self.picture.name}-{self.theme}.webp"


def drawn(directory: Path) -> Iterator[tuple[Browser, Drawn]]:
    """Draw all pictures, in both themes, with files in `directory`."""
    report = pva.openReport(profile(directory))
    page, cells = directory / "page.html", directory / "notebook.html"
    pva.write_page(report, page)
    cells.write_text(notebook(report), encoding="utf-8")
    with browser(directory / "chromium") as window:
        for theme in THEMES:
            window.theme(dark=theme == "dark")
            for picture in PICTURES:
                window.resize(WIDTH, picture.height, scale=SCALE)
                if picture.address:
                    view, _, parameters = picture.address.partition("?")
                    window.see(page, view, f"?{parameters}" if parameters else "")
                else:
                    window.visit(cells)
                window.run("scrollTo(0, 0)")
                if picture.middle:
                    window.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", picture.middle)
                shown = window.run(WHAT_IS_SHOWN)
                yield window, Drawn(picture, theme, shown, photograph(window))


def photograph(window: Browser) -> bytes:
    """What stands in the window, as WebP."""
    taken = window.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    return base64.b64decode(taken["data"])


def apart(window: Browser, first: bytes, second: bytes) -> dict[str, Any]:
    """How two pictures differ when they are made as coarse as 24 x 16 pixels: their sizes, mean and most, of 255."""
    data = [f"data:image/webp;base64,{base64.b64encode(image).decode()}" for image in (first, second)]
    found: dict[str, Any] = window.driver.execute_async_script(COARSE, *data)
    return found


def key(one: Drawn) -> str:
    return f"{one.picture.name}-{one.theme}"


def record(one: Drawn) -> dict[str, Any]:
    """What `shown.json` has of a picture."""
    return {**one.shown, "file": hashlib.sha256(one.image).hexdigest()}


def main() -> None:
    records = {}
    with tempfile.TemporaryDirectory() as directory:
        for _, one in drawn(Path(directory)):
            one.path.write_bytes(one.image)
            records[key(one)] = record(one)
    SHOWN.write_text(json.dumps(records, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
