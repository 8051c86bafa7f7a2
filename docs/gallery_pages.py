"""The pages of the gallery: what a script says of itself, its picture, its code, and what it prints at its usual size.

The outputs are recorded as those of the tutorials are, in ``tutorials/solutions/gallery/NAME.md``; pictures and what they show are
on ``docs/gallery.md``. Some have there, behind a second heading, what the report of the script says and what is changed then, with
changes of lines as solutions of exercises have them. ``python docs/gallery_pages.py [NAME ...]`` runs the scripts and writes
what they print.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path

import tutorial_pages  # beside this file
from attrs import frozen

from pypoplar import resources

HERE = Path(__file__).parent
GALLERY = "gallery/"
OPTIMISED = "Optimised by what the report says"


@frozen
class Text:
    """What a script of the gallery says of itself, in parts, as Markdown."""

    title: str
    idea: str
    costs: str
    exercises: list[str]

    @classmethod
    def of(cls, name: str) -> Text:
        title, _, text = resources.tutorial(name).text().partition("\n")
        idea, costs, exercises = re.split(r"^    pypoplar tutorial .*\n\nWhat it costs: |^Exercises\n", text.strip(), flags=re.M)
        numbered = re.split(r"^\d+\. ", exercises, flags=re.M)[1:]
        return cls(title.rstrip("."), idea.strip(), _sentence(costs), [_sentence(one) for one in numbered])


def _sentence(text: str) -> str:
    whole = inspect.cleandoc(text)
    return whole[0].upper() + whole[1:]


def names() -> list[str]:
    """The gallery's programs in the order of its page."""
    overview = (HERE / "gallery.md").read_text(encoding="utf-8")
    return [GALLERY + name for name in re.findall(rf"^\| \[[^]]+\]\({GALLERY}(\w+)\.md\)", overview, re.M)]


def picture(name: str) -> str:
    """The picture of a program with its alternative text, as the overview has it, for a page one folder further down."""
    overview = (HERE / "gallery.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"(!\[[^]]+\]\()(pictures/gallery-{name.removeprefix(GALLERY)}\.\w+\))", overview)
    return f"{found[0]}../{found[1]}"


def page(name: str) -> str:
    """The whole page of a program."""
    text, record = Text.of(name), tutorial_pages.record(name)
    code = "\n".join(f"### {heading}\n\n```py\n{lines}```\n" for heading, lines in tutorial_pages.sections(name))
    exercises = "\n".join(f"{number}. {exercise}" for number, exercise in enumerate(text.exercises, 1))
    return f"""# {text.title}

<!-- Made by docs/tables.py from tutorials/{name}.py and tutorials/solutions/{name}.md; a test compares them. -->

{picture(name)}

{text.idea}

## What it costs

{text.costs}

{record.output}
{_optimised(record)}
## The script

`pypoplar tutorial {name} --picture FILE` draws the picture, and `--help` tells the sizes; `--copy DIRECTORY` in place of
both gives you the script.

{code}
## Exercises

{exercises}

---

{_neighbours(name)}
"""


def _optimised(record: tutorial_pages.Record) -> str:
    """The section that goes on from what the report says, if there is one."""
    return "".join(f"\n## {OPTIMISED}\n\n{part}\n" for part in record.parts[1:])


def _neighbours(name: str) -> str:
    known = names()
    place = known.index(name)
    links = [(before, "Before") for before in known[:place][-1:]] + [(after, "Next") for after in known[place + 1 :][:1]]
    told = [f"{word}: [{Text.of(other).title.partition(':')[0]}]({other.removeprefix(GALLERY)}.md)" for other, word in links]
    return " · ".join([*told, "[the gallery](../gallery.md)"])


def pages() -> dict[str, Callable[[], str]]:
    """What makes each page, by the page's name."""
    return {f"docs/{name}.md": lambda name=name: page(name) for name in names()}


if __name__ == "__main__":
    for name in [GALLERY + one for one in sys.argv[1:]] or names():
        place = HERE.parent / "tutorials" / "solutions" / f"{name}.md"
        place.write_text(tutorial_pages.record(name).refreshed(), encoding="utf-8")
        (HERE / f"{name}.md").write_text(page(name), encoding="utf-8")
