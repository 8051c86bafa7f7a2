"""The colours of everything that is drawn: of phases by their names, of other series by their places, of text and its ground.

Each colour has a light and a dark form. Text, and marks that say something by their colour, have a contrast of 4.5:1 or more with
the ground they stand on; phases can be told apart by people who do not see red, green or blue.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class Colour:
    """A colour on a light ground and on a dark one."""

    light: str
    dark: str


GROUNDS = {"paper": Colour("#ffffff", "#14181d"), "raised": Colour("#f6f7f9", "#1d232a")}
"""What text and marks stand on."""
LINES = {"line": Colour("#d9dee5", "#333c46")}
"""Borders and grids, which say nothing."""
TEXTS = {
    "ink": Colour("#1b2430", "#e4e9ef"),
    "muted": Colour("#566270", "#9aa6b3"),
    "accent": Colour("#1f5fbf", "#7fb2f5"),
    "warn": Colour("#b3261e", "#ff8a80"),
    "note": Colour("#8a5a00", "#e3b341"),
    "good": Colour("#1c6b49", "#4bb588"),
}
PHASES = {
    "compute": Colour("#2259f0", "#7da7e1"),
    "threads": Colour("#2259f0", "#7da7e1"),
    "exchange": Colour("#af5206", "#d26f41"),
    "copies": Colour("#323000", "#d8aa18"),
    "between": Colour("#51172e", "#f6d6e3"),
    "sync": Colour("#570080", "#cb4efe"),
    "host": Colour("#037747", "#3ff69c"),
    "waiting": Colour("#68727d", "#868a8e"),
}
SERIES = (
    Colour("#0b5cad", "#5aa9f2"),
    Colour("#9c4a00", "#f0932b"),
    Colour("#00664f", "#3fc49a"),
    Colour("#a3123f", "#ff7a9c"),
    Colour("#6c3fa0", "#b79af0"),
    Colour("#6b5e00", "#e8d24a"),
    Colour("#8a2a86", "#ee8fe0"),
    Colour("#5a6470", "#a9b4c0"),
    Colour("#3b6b00", "#9ccc4a"),
    Colour("#00657f", "#45c3e0"),
)
ALL = {**GROUNDS, **LINES, **TEXTS, **PHASES, **{f"series{place}": colour for place, colour in enumerate(SERIES)}}


def style() -> str:
    """The colours as properties of a style sheet, in the theme of the system; what is printed is light."""
    light, dark = (" ".join(f"--{name}: {getattr(colour, theme)};" for name, colour in ALL.items()) for theme in ("light", "dark"))
    return f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
