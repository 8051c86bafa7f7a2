"""The pages of documents by their blocks: programs, files, commands and the outputs behind them."""

import re
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    *(f"docs/{path.relative_to(ROOT / 'docs')}" for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent.name != "api"),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.S | re.M)
FILE = re.compile(r"# ([\w/]+\.\w+)\n")


@frozen
class Block:
    """A block of a page, and the output behind it."""

    language: str
    text: str
    output: str | None
    output_place: tuple[int, int]  # where it stands in the page

    @property
    def file(self) -> str | None:
        """The file that a block is, if its first line names one."""
        named = FILE.match(self.text) if self.language == "python" else None
        return named[1] if named else None


def blocks(page: str, *languages: str) -> list[Block]:
    """The blocks of a page in some languages, in their order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = [Block(match[1], match[2], match[3], match.span(3)) for match in BLOCK.finditer(text)]
    return [block for block in found if block.language in languages]


def programs(page: str) -> list[Block]:
    """The Python of a page that is no file of its own."""
    return [block for block in blocks(page, "python") if block.file is None]
