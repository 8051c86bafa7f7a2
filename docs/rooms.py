"""Draw the rooms from their imports: ``python docs/rooms.py`` makes `pictures/rooms.svg`, and its text in `how-it-works.md`.

A room stands on the floor above all that it imports; of these it names those that the others do not stand on themselves.
"""

from __future__ import annotations

import sys
import textwrap
from functools import cache
from html import escape
from pathlib import Path

from attrs import frozen

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "helpers"))

from floors import FLOOR, LATE, House, room  # noqa: E402 (what the tests hold)

HOUSE = House(HERE.parent / "pypoplar")  # what it imports is read once
PAGE = HERE / "how-it-works.md"
PICTURE = HERE / "pictures" / "rooms.svg"
BEGINNING, END = "<!-- Made by docs/rooms.py from the imports; a test compares them. -->\n", "<!-- The end of what is made. -->\n"
WIDTH, EDGE, LINE, GAP, LETTER = 960, 16, 18, 8, 6.7  # pixels: all, margin, a line of text, between boxes, a letter at most
COLOURS = ("#2f6db5", "#b35c00", "#2e7d4f", "#8a3f97")  # as in overview.svg
INK, QUIET = "#1f2933", "#52606d"

VALUES = "shared values"  # rooms that are no packages: values that all others know
JOINED = {"__main__": "cli", "profile": "pva", "": "pypoplar"}  # small rooms, drawn with others or by another name
WORDS = {
    "interface": "the numbers between generated code, driver and tables",
    VALUES: "types, errors, targets, options, intervals; the host's machine code and where it is kept",
    "codelet": "the device language: operations, typed form, prices, and the two forms that run",
    "graph": "variables, views, mappings, vertices",
    "program": "the kinds of programs",
    "executable": "what the driver needs, as arrays; its file and its checks",
    "compiler": "makes an executable",
    "report": "says what it costs",
    "engine": "runs an executable, in plain Python or as machine code",
    "popdist": "what instances of a program ask and do",
    "prediction": "what a program would cost, in short",
    "poputil": "what libraries are made with",
    "popops": "operations on elements, reductions, slices",
    "poprand": "random numbers",
    "gcl": "collectives of replicas",
    "poplin": "products, convolutions, norms",
    "popnn": "layers, losses",
    "poptorch": "models of PyTorch",
    "onnx": "models of ONNX",
    "popart": "PopART's builder and sessions of them",
    "keras": "models of Keras, and IPU Keras' names",
    "testing": "runs a function, compares engines",
    "poprun": "starts a program in several instances",
    "documents": "finds and makes the documents",
    "pva": "profiles, read and written",
    "cli": "the command",
    "pypoplar": "the public names",
}
INNER_WORDS = {  # of the rooms of a package that has a floor to itself
    "codelet.operations": "the operations of the device, a row for each",
    "codelet.ir": "the typed form, analyses of loops",
    "codelet.cost": "its prices: what the vendor's compiler makes of it",
    "codelet.language": "fields, declarations, sources",
    "codelet.backend": "what makes machine code is given, and must deliver",
    "codelet.python": "the form that is interpreted",
    "codelet.frontend": "from Python to the typed form",
    "codelet.llvm": "machine code",
    "codelet.codelet": "a codelet with its typed form",
    "codelet.backend.native_codelet": "its machine code, made once and kept",
    "codelet.registry": "those that a graph knows",
    "codelet.listing": "what the lines of a codelet become",
}


@frozen
class Group:
    """A box: a package with the rooms within, those that stand on nothing else there first."""

    name: str
    floors: tuple[tuple[str, ...], ...]
    stands_on: tuple[str, ...]

    @property
    def words(self) -> str:
        return WORDS[self.name]


def group_of(name: str) -> str:
    """The box in which a room is drawn: its package's."""
    package = name.partition(".")[0]
    alone = package and not any(other.startswith(f"{package}.") for other in FLOOR) and package not in WORDS
    return JOINED.get(package) or (VALUES if alone else package)


def levels(below: dict[str, set[str]]) -> dict[str, int]:
    """How high each stands: one above the highest of what it imports."""

    @cache
    def level(name: str) -> int:
        return 1 + max((level(other) for other in below[name]), default=-1)

    return {name: level(name) for name in below}


def rows(below: dict[str, set[str]]) -> list[list[str]]:
    """Names by their levels, the lowest first, in the order of the table of floors."""
    high = levels(below)
    return [[name for name in below if high[name] == number] for number in range(max(high.values(), default=-1) + 1)]


def imports() -> dict[str, set[str]]:
    """What each room imports of others; methods that hand their object up are no floors."""
    below: dict[str, set[str]] = {name: set() for name in FLOOR}
    for module, target, _ in HOUSE.arrows:
        upper, lower = room(module), room(target)
        if (module, target) not in LATE and upper != lower and upper is not None and lower is not None:
            below[upper].add(lower)
    return below


def drawing() -> list[list[Group]]:
    """The boxes, by floors from the ground."""
    below = imports()
    groups: dict[str, set[str]] = {group_of(name): set() for name in FLOOR}
    for upper, lowers in below.items():
        groups[group_of(upper)] |= {group_of(lower) for lower in lowers} - {group_of(upper)}

    @cache
    def reached(name: str) -> frozenset[str]:
        return frozenset(groups[name]).union(*(reached(other) for other in groups[name]))

    def box(name: str) -> Group:
        within = [other for other in FLOOR if group_of(other) == name]
        inner = rows({other: below[other] & set(within) for other in within})
        plain = tuple(tuple(shown(other, name) for other in floor if other != name and shown(other, name)) for floor in inner)
        direct = [other for other in groups if other in groups[name]]
        needed = tuple(other for other in direct if not any(other in reached(one) for one in direct))
        return Group(name, tuple(floor for floor in plain if floor), needed)

    return [[box(name) for name in floor] for floor in rows(groups)]


def shown(name: str, group: str) -> str:
    """A room's name within its box; empty for what the box's own name says."""
    if group == VALUES or name == "profile":
        return name
    return name.removeprefix(f"{group}.") if name.startswith(f"{group}.") else ""


def text(x: float, y: float, words: str, colour: str = INK, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}"{more}>{escape(words)}</text>'


def told(group: Group, name: str) -> str:
    """A room within a box, with what it is where that is said."""
    words = INNER_WORDS.get(f"{group.name}.{name}")
    return f"{name} ({words})" if words else name


def lines(group: Group, wide: float) -> list[tuple[str, str, str]]:
    """The lines of a box, with colour and what else they have: its name, what it is, rooms from the top, what it stands on."""
    room_for = int((wide - 24) / LETTER)
    made = [(group.name, INK, ' font-weight="600"')]
    made += [(line, QUIET, "") for line in textwrap.wrap(group.words, room_for)]
    for floor in reversed(group.floors):
        made += [(line, INK, "") for line in textwrap.wrap(", ".join(told(group, name) for name in floor), room_for)]
    if group.stands_on:
        made += [(line, QUIET, ' font-style="italic"') for line in textwrap.wrap("on " + ", ".join(group.stands_on), room_for)]
    return made


def names(floors: list[list[Group]]) -> str:
    """The floors in one line, from the ground."""
    return "; ".join(" and ".join(group.name for group in floor) for floor in floors)


def picture(floors: list[list[Group]]) -> str:
    elements, top = [], float(EDGE)
    for number, floor in reversed(list(enumerate(floors))):
        wide = (WIDTH - 2 * EDGE - GAP * (len(floor) - 1)) / len(floor)
        written = [lines(group, wide) for group in floor]
        height = LINE * max(map(len, written)) + 12
        colour = COLOURS[number % len(COLOURS)]
        for place, box in enumerate(written):
            left = EDGE + place * (wide + GAP)
            size = f'width="{wide:g}" height="{height}"'
            elements.append(f'<rect x="{left:g}" y="{top:g}" {size} rx="4" fill="{colour}" fill-opacity=".12" stroke="{colour}"/>')
            elements += [text(left + 12, top + LINE * (at + 1), *line) for at, line in enumerate(box)]
        top += height + GAP
    high = top - GAP + EDGE
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high:g}" role="img" aria-labelledby="title desc" '
            'font-family="system-ui, sans-serif" font-size="13">',
            '<title id="title">The rooms of pypoplar</title>',
            f'<desc id="desc">Floors from the ground up: {escape(names(floors))}. Each imports what stands below it.</desc>',
            f'<rect width="{WIDTH}" height="{high:g}" rx="14" fill="#ffffff" stroke="#c9d1da"/>',
            *elements,
            "</svg>",
            "",
        ]
    )


def table(floors: list[list[Group]]) -> str:
    """The same as text, from the top."""
    made = ["| floor | package | what it is | rooms within, from the top | stands on |", "| --- | --- | --- | --- | --- |"]
    for number, floor in reversed(list(enumerate(floors, 1))):
        for group in floor:
            within = "; ".join(", ".join(told(group, name) for name in inner) for inner in reversed(group.floors))
            made.append(f"| {number} | {group.name} | {group.words} | {within} | {', '.join(group.stands_on)} |")
    return "\n".join(made) + "\n"


def page(floors: list[list[Group]]) -> str:
    """The page with the picture and the table of today."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGINNING)
    shown = f"![The floors of the house from the ground up: {names(floors)}; as in the table below]({PICTURE.relative_to(HERE)})"
    return f"{before}{BEGINNING}\n{shown}\n\n{table(floors)}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    today = drawing()
    PAGE.write_text(page(today), encoding="utf-8")
    PICTURE.write_text(picture(today), encoding="utf-8")
