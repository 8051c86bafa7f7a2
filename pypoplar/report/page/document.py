"""Puts a page together: one HTML file with its data, its scripts and Plotly in it, which loads nothing and may load nothing."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

from pypoplar.errors import MissingFeature
from pypoplar.extras import install_command
from pypoplar.files import written_whole
from pypoplar.report import palette
from pypoplar.report.escaping import escaped
from pypoplar.report.page.blocks import json_text

BASE = (
    "core",
    "format",
    "controls",
    "table",
    "plot",
    "facts",
    "tabs",
    "variables",
    "tree",
    "tree_table",
    "name_tree",
    "search",
    "trace_model",
    "trace_raster",
    "trace_critical",
    "trace_input",
    "trace_canvas",
)
ASSETS = files(__package__).joinpath("assets")


def write_document(
    path: Path, title: str, subtitle: str, views: Iterable[str], data: Mapping[str, Any], blocks: Sequence[str]
) -> None:
    """Write the page of `data`, drawn by the scripts named in `views`. The file appears whole or not at all."""
    scripts = "\n".join(asset(f"{name}.js") for name in (*BASE, *views, "start"))
    plotly = plotly_script()
    pieces = {
        "policy": policy(scripts, plotly),
        "version": html.escape(metadata.version("pypoplar")),
        "title": html.escape(title),
        "heading": html.escape(title),
        "subtitle": html.escape(subtitle),
        "palette": palette.style(),
        "style": asset("page.css"),
        "data": "\n".join(data_elements(data, blocks)),
        "scripts": scripts,
        "plotly": packed(plotly),
        "notices": html.escape(notices(plotly)),
    }
    # One pass over the template: what is put in is not looked at again.
    text = re.sub(r"{{(\w+)}}", lambda match: pieces[match[1]], asset("page.html"))
    with written_whole(path) as part:
        part.write_bytes(escaped(text).encode("utf-8"))


def data_elements(data: Mapping[str, Any], blocks: Sequence[str]) -> list[str]:
    """The script elements that hold data: they are text to the browser, not code."""
    first = f'<script type="application/json" id="data">{script_text(data)}</script>'
    return [first, *(f'<script type="text/plain" id="block{number}">{text}</script>' for number, text in enumerate(blocks))]


def script_text(value: Any) -> str:
    """JSON that may stand in a script element: nothing in it can end the element or begin another."""
    return json_text(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def policy(*scripts: str) -> str:
    """A Content-Security-Policy: just these scripts run, also when one is made of text later on, and nothing is loaded."""
    digests = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts)
    rest = "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {digests}; {rest}"


@cache
def asset(name: str) -> str:
    """A file of this package's own."""
    return ASSETS.joinpath(name).read_text(encoding="utf-8")


@cache
def plotly_script() -> str:
    """plotly.min.js, as the package plotly brings it."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise MissingFeature(f"the page needs plotly: {install_command('report')}") from None
    return str(get_plotlyjs()).replace("\r", "")


@cache
def packed(script: str) -> str:
    """A script as the text of an element, a third as large; the page unpacks it before it runs."""
    return base64.b64encode(zlib.compress(script.encode(), 9)).decode("ascii")


def notices(script: str) -> str:
    """The copyright and licence that a script begins with, which must be readable in the page."""
    match = re.match(r"\s*/\*.*?\*/", script, re.DOTALL)
    return match[0].strip() if match else ""
