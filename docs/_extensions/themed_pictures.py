"""Pictures that are there in light and dark, as the reader's theme is.

In Markdown they are `<picture>` elements with a source for dark schemes, which code hosts show by themselves. The site has a
switch of its own, so each becomes two images, one of which the theme hides; browsers load what is hidden when it is shown.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>[^"]+)">\s*'
    r'<img src="(?P<light>[^"]+)" alt="(?P<alt>[^"]+)" width="(?P<width>\d+)" height="(?P<height>\d+)">\s*</picture>'
)


class ThemedPictures(SphinxTransform):
    """Replaces a `<picture>` by an image for each theme."""

    default_priority = 200  # before images are collected

    def apply(self, **kwargs: Any) -> None:
        for raw in [*self.document.findall(nodes.raw)]:
            text = raw.astext().strip()
            if "<picture" not in text:
                continue
            found = PICTURE.fullmatch(text)
            if found is None:
                raise ValueError(f"{self.env.docname}: a picture is not in the form of docs/_extensions/themed_pictures.py: {text}")
            both = [image(found, theme) for theme in ("light", "dark")]
            raw.replace_self(nodes.paragraph("", "", *both))


def image(found: re.Match[str], theme: str) -> nodes.image:
    made = nodes.image(uri=found[theme], alt=unescape(found["alt"]), loading="lazy", classes=[f"only-{theme}"])
    made["width"], made["height"] = found["width"], found["height"]
    return made


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(ThemedPictures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
