"""A headless Chromium for the tests of pages: it opens files, notes what the console says and what is asked of the network."""

import contextlib
import json
import os
import shutil
import time

import pytest

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
WAIT = 60  # seconds for a page to come to rest; a slow machine is not an error


def missing():
    """Why there can be no browser here; empty if there can."""
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        return "no Chromium here: install chromium and chromium-driver"
    return ""


class Browser:
    """A window. `open(path)` waits until the page's first view is drawn."""

    def __init__(self, profile_directory, *, width=1400, height=1000, dark=False):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in (*FLAGS, f"--window-size={width},{height}", f"--user-data-dir={profile_directory}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.theme(dark=dark)

    def theme(self, *, dark):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def until(self, condition, *arguments):
        """Wait until the JavaScript expression holds."""
        end = time.monotonic() + WAIT
        while not (value := self.run(f"return {condition}", *arguments)):
            if time.monotonic() > end:
                raise AssertionError(f"the page has not come to {condition!r}; its console: {self.console()}")
            time.sleep(0.02)
        return value

    def open(self, path, fragment=""):
        self.driver.get("about:blank")  # a change of the fragment alone would not load the file
        self.driver.get(path.resolve().as_uri() + fragment)
        self.until("document.documentElement.dataset.ready === 'true'")

    def see(self, path, view):
        """Open a view of a page; the page is loaded only if it is not there already."""
        if self.run("return location.href").split("#")[0] != path.resolve().as_uri():
            self.open(path)
        self.tab(view)

    def tab(self, name, parameters=""):
        """Open a view as a click on its tab does."""
        self.run("location.hash = arguments[0]", name + parameters)
        self.until(
            f"document.getElementById('panel-{name}').dataset.drawn === 'true' && !document.getElementById('panel-{name}').hidden"
        )

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def console(self):
        """What the console has said since the last call."""
        return [one["message"] for one in self.driver.get_log("browser")]

    def requests(self):
        """Addresses that were asked for since the last call, but for those of the page itself."""
        events = [json.loads(one["message"])["message"] for one in self.driver.get_log("performance")]
        asked = [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]
        return [one for one in asked if not one.startswith(("file:", "data:", "blob:", "about:", "chrome:"))]


@contextlib.contextmanager
def browser(directory, **settings):
    """A browser with an empty profile in `directory`. Its own log lines and sockets are not this process's business."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    os.environ.setdefault("SE_AVOID_STATS", "true")
    made = Browser(directory, **settings)
    try:
        yield made
    finally:
        made.driver.quit()
