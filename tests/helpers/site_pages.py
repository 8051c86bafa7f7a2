"""The built site of the documents, as files: what its pages link to, what they load, and the ids that links lead to."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADING = ("src", "srcset", "data", "poster", "background", "xlink:href")
STYLED = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


class Page(HTMLParser):
    """A page of the site."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.ids: list[str] = []
        self.links: list[str] = []  # what a click leads to
        self.loads: list[str] = []  # what the browser asks for by itself
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.ids.append(values["id"])
        if "href" in values:
            (self.links if tag in ("a", "area") else self.loads).append(values["href"])
        if "action" in values:
            self.links.append(values["action"])
        self.loads += [part.split()[0] for name in LOADING if name in values for part in values[name].split(",") if part.strip()]
        self.loads += styled(values.get("style", ""))


def styled(text: str) -> list[str]:
    """The addresses in a style sheet."""
    return [first or second for first, second in STYLED.findall(text)]


def elsewhere(address: str) -> bool:
    """Whether an address is that of another host; data within a page are not."""
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data", "mailto")


class Site:
    """All pages of a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.paths = sorted(self.root.rglob("*.html"))
        self.pages = {path: Page(path) for path in self.paths}
        self._ids = {path: frozenset(page.ids) for path, page in self.pages.items()}

    def name(self, path: Path) -> str:
        return str(path.relative_to(self.root))

    def leads_nowhere(self, page: Page, link: str) -> bool:
        """Whether a link of a page leads to a file that is not there, or to a place that the file does not have."""
        parts = urlsplit(link)
        path = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
        if not path.is_file():
            return True
        return bool(parts.fragment) and path in self._ids and unquote(parts.fragment) not in self._ids[path]
