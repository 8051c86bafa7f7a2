"""Draw the rooms of the house: ``python docs/rooms.py`` makes `pictures/rooms.svg` from the drawing in `how-it-works.md`."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from attrs import define, field

HERE = Path(__file__).parent
PAGE = HERE / "how-it-works.md"
PICTURE = HERE / "pictures" / "rooms.svg"
WIDTH, LEFT, BOXES, LINE, GAP = 960, 16, 500, 19, 6  # pixels: all, margin, the house, a line of text, between floors
COLOURS = ("#2f6db5", "#b35c00", "#2e7d4f", "#8a3f97")  # as in overview.svg
INK, QUIET = "#1f2933", "#52606d"


@define
class Floor:
    """A row of the drawing: rooms side by side, each with lines of its text, and a word about every line."""

    rooms: list[list[str]]
    words: list[str] = field(factory=list)


def drawing() -> tuple[str, list[Floor]]:
    """The line above the roof, and the floors from the top."""
    text = PAGE.read_text(encoding="utf-8").partition("## The floors")[2]
    found = re.search(r"((?:^    .*\n)+)", text[text.index("    +--") - 200 :], re.M)
    assert found, "how-it-works.md has no drawing"
    roof, *lines = [line[4:] for line in found[1].splitlines()]
    floors: list[Floor] = []
    for line in lines:
        if line.startswith("+"):
            floors.append(Floor([]))
            continue
        _, *cells, words = line.split("|")
        floor = floors[-1]
        floor.rooms = floor.rooms or [[] for _ in cells]
        for room, cell in zip(floor.rooms, cells, strict=True):
            room.append(cell.rstrip())
        floor.words.append(words.strip())
    return roof, [floor for floor in floors if floor.rooms]


def text(x: float, y: float, words: str, colour: str = INK, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}"{more}>{escape(words)}</text>'


def floor_elements(floor: Floor, top: float, colour: str) -> list[str]:
    """A floor whose first line is at `top`: its rooms, what is in them, and what they are for."""
    height, wide = LINE * len(floor.words) + 10, BOXES / len(floor.rooms)
    made = []
    for number, room in enumerate(floor.rooms):
        left = LEFT + number * wide
        box = f'x="{left:g}" y="{top:g}" width="{wide - (GAP if number + 1 < len(floor.rooms) else 0):g}" height="{height}"'
        made.append(f'<rect {box} rx="4" fill="{colour}" fill-opacity=".12" stroke="{colour}"/>')
        for at, words in enumerate(room):
            name, inside = words.strip(), words.startswith("   ")
            if name:
                weight = "" if inside else ' font-weight="600"'
                made.append(
                    text(left + (28 if inside else 12), top + LINE * (at + 1), ", ".join(re.split(" {2,}", name)), INK, weight)
                )
    made += [text(LEFT + BOXES + 16, top + LINE * (at + 1), words, QUIET) for at, words in enumerate(floor.words) if words]
    return made


def picture() -> str:
    roof, floors = drawing()
    *users, words = re.split(" {3,}", roof.strip())
    top, elements = 62.0, [text(LEFT, 26, " · ".join(users), INK, ' font-weight="600"'), text(LEFT, 46, words, QUIET)]
    for number, floor in enumerate(floors):
        elements += floor_elements(floor, top, COLOURS[number % len(COLOURS)])
        top += LINE * len(floor.words) + 10 + GAP
    names = ", ".join(" and ".join(room[0].strip() for room in floor.rooms) for floor in reversed(floors))
    described = f"Floors from the ground up: {names}; above them {words}: {', '.join(users)}. Each imports what stands below it."
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top + 8:g}" role="img" aria-labelledby="title desc" '
            'font-family="system-ui, sans-serif" font-size="13">',
            '<title id="title">The rooms of pypoplar</title>',
            f'<desc id="desc">{escape(described)}</desc>',
            f'<rect width="{WIDTH}" height="{top + 8:g}" rx="14" fill="#ffffff" stroke="#c9d1da"/>',
            *elements,
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
