"""A headless Chromium for the tests of pages: it opens files, notes what the console says and what is asked of the network."""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
OF_THE_BROWSER = ("chrome:", "chrome-extension:", "chrome-untrusted:", "devtools:")  # pages of its own, such as that of a new tab
WAIT = 300  # seconds for a page to come to rest; a slow machine is not an error


def missing() -> str:
    """Why there can be no browser here; empty if there can."""
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        return "no Chromium here: install chromium and chromium-driver"
    return ""


def asked_by_pages(log: list[dict[str, Any]]) -> list[str]:
    """The addresses in a log of what was asked for; not what the browser's own pages ask for."""
    events = [json.loads(entry["message"])["message"] for entry in log]
    sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    addresses: list[str] = [one["request"]["url"] for one in sent if not one["documentURL"].startswith(OF_THE_BROWSER)]
    return [address for address in addresses if not address.startswith(OF_THE_BROWSER)]


class Browser:
    """A window. `open(path)` waits until the page's first view is drawn.

    It shows all pages at one address: there Chromium compiles their scripts, which are large, once.
    """

    def __init__(self, profile_directory: Path, *, width: int = 1400, height: int = 1000, dark: bool = False) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for flag in (*FLAGS, f"--window-size={width},{height}", f"--user-data-dir={profile_directory}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_script_timeout(WAIT)
        self.theme(dark=dark)
        self.shown = profile_directory / "page.html"
        self.source: Path | None = None  # of what is shown

    def theme(self, *, dark: bool) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def resize(self, width: int, height: int, scale: float = 1) -> None:
        """Make pages as large as a screen of so many pixels, with scroll bars that take no room, as on a phone."""
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def until(self, condition: str, *arguments: object) -> Any:
        """Wait until the JavaScript expression holds."""
        end = time.monotonic() + WAIT
        while not (value := self.run(f"return {condition}", *arguments)):
            if time.monotonic() > end:
                raise AssertionError(f"the page has not come to {condition!r}; its console: {self.console()}")
            time.sleep(0.02)
        return value

    def open(self, path: Path, fragment: str = "") -> None:
        self.driver.get("about:blank")  # a change of the fragment alone would not load the file
        shutil.copy(path, self.shown)
        self.source = path
        self.driver.get(self.shown.resolve().as_uri() + fragment)
        self.until("document.documentElement.dataset.ready === 'true'")

    def visit(self, path: Path) -> None:
        """Open a page where it lies, with what lies beside it, and wait until it is loaded."""
        self.source = None
        self.driver.get(path.resolve().as_uri())
        self.until("document.readyState === 'complete'")

    def see(self, path: Path, view: str, parameters: str = "") -> None:
        """Open a view of a page; the page is loaded only if it is not there already."""
        if self.source != path:
            self.open(path)
        self.tab(view, parameters)

    def tab(self, name: str, parameters: str = "") -> None:
        """Open a view as a click on its tab does."""
        self.run("location.hash = arguments[0]", name + parameters)
        self.until(
            f"document.getElementById('panel-{name}').dataset.drawn === 'true' && !document.getElementById('panel-{name}').hidden"
        )

    def text(self, selector: str) -> str:
        text: str = self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)
        return text

    def log(self, kind: str) -> list[dict[str, Any]]:
        """The entries of one of the browser's logs since the last call."""
        entries: list[dict[str, Any]] = self.driver.get_log(kind)  # type: ignore[no-untyped-call]
        return entries

    def console(self) -> list[str]:
        """What the console has said since the last call of pages that were opened."""
        messages: list[str] = [entry["message"] for entry in self.log("browser")]
        return [message for message in messages if not message.startswith(OF_THE_BROWSER)]  # it begins with the page's address

    def asked(self) -> list[str]:
        """All addresses that pages which were opened have asked for since the last call."""
        return asked_by_pages(self.log("performance"))

    def requests(self) -> list[str]:
        """Addresses of other hosts that pages have asked for since the last call."""
        return [address for address in self.asked() if not address.startswith(("file:", "data:", "blob:", "about:"))]

    def files(self) -> list[Path]:
        """Files that were read since the last call."""
        return [Path(unquote(urlsplit(address).path)) for address in self.asked() if address.startswith("file:")]


@contextlib.contextmanager
def browser(directory: Path, **settings: Any) -> Iterator[Browser]:
    """A browser with an empty profile in `directory`. Its own log lines and sockets are not this process's business."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    os.environ.setdefault("SE_AVOID_STATS", "true")
    window = Browser(directory, **settings)
    try:
        yield window
    finally:
        window.driver.quit()
