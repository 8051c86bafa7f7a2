"""The page of a profile: how long it takes to write, how large it is, how soon it opens in a headless Chromium."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.made_report import made_report
from benchmarks.measure import Figure, Row
from pypoplar.report.page import write_page
from pypoplar.report.report import Report

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
OPENS = 5
HEAVIEST = ("trace", "exchange", "memory", "names", "steps")  # views


def measure(smoke: bool) -> list[Figure]:
    tiles = 64 if smoke else 1472
    events = 200 if smoke else 10_000
    figures = page_figures("10,000 steps run", made_report(tiles=tiles, events=events), most=6.0)
    figures += page_figures("10,000 steps of code", made_report(tiles=tiles, steps=60 if smoke else 10_000, events=2 * events))
    return figures


def page_figures(what: str, report: Report, most: float | None = None) -> list[Figure]:
    """Writing and size, `most` megabytes, and opening where there is a Chromium."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "page.html"
        begin = time.perf_counter()
        write_page(report, path)
        written = time.perf_counter() - begin
        title = f"page of {report.compilation.target.numTiles} tiles, {what}"
        figures = [Figure(f"{title}: writing", written, "s"), Figure(f"{title}: size", path.stat().st_size / 1e6, "MB", most)]
        if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
            return [*figures, Figure(f"{title}: opening", float("nan"), "s", note="no Chromium here")]
        opened = opening(path, Path(directory) / "chromium")
        slowest = {view: round(seconds, 3) for view, seconds in opened["views"].items()}
        figures.append(Figure(f"{title}: opening", max(opened["first"]), "s", 1.0, details=opened))
        figures.append(Figure(f"{title}: slowest view", max(slowest.values()), "s", 2.0, details=slowest))
    return figures


def opening(path: Path, profile: Path) -> dict[str, Any]:
    """Seconds from the address to the first view with all scripts run, several times, and from its tab to each heavy view."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in (*FLAGS, f"--user-data-dir={profile}", "--window-size=1400,1000"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    ready = "return document.readyState === 'complete' && document.documentElement.dataset.ready === 'true'"
    first, views = [], {}
    try:
        for _ in range(OPENS):
            driver.get("about:blank")
            begin = time.perf_counter()
            driver.get(path.as_uri())
            while not driver.execute_script(ready):
                time.sleep(0.005)
            first.append(time.perf_counter() - begin)
        for view in HEAVIEST:
            begin = time.perf_counter()
            driver.execute_script("location.hash = arguments[0]", view)
            while not driver.execute_script(f"return document.getElementById('panel-{view}').dataset.drawn === 'true'"):
                time.sleep(0.005)
            views[view] = time.perf_counter() - begin
    finally:
        driver.quit()
    return {"first": first, "views": views}


ROW = Row("page", measure)
