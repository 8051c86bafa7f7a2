"""The pages of the tutorials: a script with its text, what it prints, and its exercises with solutions.

What a page has beside its script stands in ``tutorials/solutions/NAME.md``, and is tested. Behind a title come runs: commands in a
block ``sh``, and what they print in a block ``text``. Then each exercise has a heading, and its solution: text, runs, and blocks
``diff`` that say how the script is changed for the runs behind them, ``pypoplar run NAME.py``. A change before the exercises holds
for all of them. A diff has no line numbers: its lines are found in the script, where they must stand once. ``@@`` begins another
place; behind ``--- FILE`` another file than the script is changed, and behind ``+++ FILE`` stands a new one. A line ``...`` of an
output stands for any lines.

``python docs/tutorial_pages.py [NAME ...]`` runs all commands, of the tutorials that are named, and writes what they print.
"""

from __future__ import annotations

import inspect
import io
import linecache
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import cache
from pathlib import Path

from attrs import field, frozen

from pypoplar import cli, resources

HERE = Path(__file__).parent
ORDER = (
    *("tut1_variables", "tut2_operations", "tut3_vertices", "tut4_profiling", "tut5_matrix_vector", "tut6_matrix_vector_opt"),
    *("mnist_regression", "mnist_cnn", "digits_lstm", "transformer", "poptorch_lstm", "poptorch_bert"),
    *("poptorch_replicas", "poptorch_instances", "poptorch_pipeline", "poptorch_predict", "keras_digits"),
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.S | re.M)
ELISION = "..."
ROUNDING = r"\d\.\d+e-\d\d"  # an error of a comparison


@cache
def tutorial(name: str) -> resources.Tutorial:
    return resources.tutorial(name)


@frozen
class Run:
    """Commands, the changes of the script that they are given for, and what they print."""

    commands: str
    changes: tuple[str, ...]
    printed: str
    place: slice  # of what is printed, in the record


@frozen
class Record:
    """What ``tutorials/solutions/NAME.md`` has: the text before the exercises, and the solution of each by its number."""

    name: str
    text: str
    runs: list[Run] = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "runs", [*_runs(self.text)])

    @property
    def parts(self) -> list[str]:
        """The text between headings, without the title."""
        return [part.strip() for part in re.split(r"^#+ .*\n", self.text, flags=re.M)[1:]]

    @property
    def output(self) -> str:
        return self.parts[0]

    @property
    def solutions(self) -> dict[int, str]:
        numbers = re.findall(r"^## Exercise (\d+)$", self.text, re.M)
        return dict(zip(map(int, numbers), self.parts[1:], strict=True))

    def run(self, run: Run) -> str:
        """What the commands print now, of the script as it is changed for them, in a directory of their own."""
        with tempfile.TemporaryDirectory() as place:
            directory = Path(place).resolve()
            if run.changes:
                script = tutorial(self.name)
                for path in script.files():
                    copy = directory / path.relative_to(script.path.parent)
                    copy.parent.mkdir(exist_ok=True)
                    copy.write_bytes(path.read_bytes())
                for change in run.changes:
                    apply(change, directory, script.path.name)
            return "".join(_printed(command, directory) for command in run.commands.splitlines())

    def refreshed(self) -> str:
        """The text with what the commands print now."""
        text = self.text
        for run in reversed(self.runs):
            text = text[: run.place.start] + refreshed(run.printed, self.run(run)) + text[run.place.stop :]
        return text


def record(name: str) -> Record:
    """What is recorded of a tutorial."""
    return Record(name, _place(name).read_text(encoding="utf-8"))


def recorded() -> list[str]:
    """The tutorials that have a page, in their order."""
    return [name for name in ORDER if _place(name).is_file()]


def _place(name: str) -> Path:
    return HERE.parent / "tutorials" / "solutions" / f"{name}.md"


def _runs(text: str) -> Iterator[Run]:
    starts = [heading.start() for heading in re.finditer(r"^#+ ", text, re.M)]
    always: tuple[str, ...] = ()
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        changes: list[str] = []
        commands, fresh = "", True
        for block in BLOCK.finditer(text, start, end):
            kind, content = block.groups()
            if kind == "diff":
                changes = [content] if fresh else [*changes, content]
            elif kind == "sh":
                commands = content
            elif kind == "text" and commands:
                changed = any(line.startswith("pypoplar run ") for line in commands.splitlines())
                yield Run(commands, (*always, *changes) if changed else (), content, slice(block.start(2), block.end(2)))
                commands = ""
            fresh = kind != "diff"
        if start == starts[0]:
            always = tuple(changes)


def apply(change: str, directory: Path, script: str) -> None:
    """Change files as a diff says, each of whose places must be there once."""
    name = script
    for part in re.split(r"^(?:@@\n|(?=(?:---|\+\+\+) ))", change, flags=re.M):
        lines = part.splitlines()
        if lines and (header := re.match(r"(---|\+\+\+) (.*)", lines[0])):
            name = header[2]
            lines.pop(0)
            if header[1] == "+++":
                (directory / name).write_text("")
        if not lines:
            continue
        before, after = ("".join(f"{line[1:]}\n" for line in lines if line[:1] != left) for left in "+-")
        text = (directory / name).read_text(encoding="utf-8")
        if text.count(before) != 1:
            raise ValueError(f"{name} has {text.count(before)} times:\n{before}")
        (directory / name).write_text(text.replace(before, after), encoding="utf-8")


def _printed(command: str, directory: Path) -> str:
    """What a command prints, errors included, in a directory; those of `pypoplar` run in this process."""
    program, *arguments = shlex.split(command)
    if program != "pypoplar":
        done = subprocess.run(["sh", "-c", command], cwd=directory, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr
    script = directory / arguments[1]
    given = [arguments[0], str(script) if script.is_file() else arguments[1], *arguments[2:]]
    printed = io.StringIO()
    with _alone(directory), redirect_stdout(printed), redirect_stderr(printed), suppress(SystemExit):
        cli.main(given)
    text = printed.getvalue().replace(f"{directory}/", "").replace(f"{resources.directory('tutorials').parent}/", "")
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Go to a directory; modules and lines of files that are read meanwhile are forgotten."""
    before, place = set(sys.modules), Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(place)
        read = str(directory), str(resources.directory("tutorials"))
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(read):
                del sys.modules[name]
        for name in [*linecache.cache]:
            if name.startswith(read):
                del linecache.cache[name]


def _pattern(line: str) -> str:
    parts = re.split(ROUNDING, f"{line}\n")
    return ROUNDING.join(map(re.escape, parts))


def agrees(shown: str, printed: str) -> bool:
    """Whether an output is what is shown, where `ELISION` stands for any lines.

    Rounding errors, as 1.8e-07, may differ: they are of a comparison with NumPy, which adds in another order on other processors.
    """
    lines = ["(?:.*\n)*?" if line.strip() == ELISION else _pattern(line) for line in shown.splitlines()]
    return re.fullmatch("".join(lines), printed) is not None


def refreshed(shown: str, printed: str) -> str:
    """An output with as much left out as before: lines are found again though their numbers changed."""
    if ELISION not in map(str.strip, shown.splitlines()):
        return printed
    rest, lines = printed.splitlines(), []
    for line in shown.splitlines():
        if line.strip() != ELISION:
            same = [new for new in rest if new == line] or [new for new in rest if _shape(new) == _shape(line)]
            if not same:
                raise ValueError(f"this line is not printed any more:\n{line}\nin:\n{printed}")
            line = same[0]
            rest = rest[rest.index(line) + 1 :]
        lines.append(line)
    text = "".join(f"{line}\n" for line in lines)
    if not agrees(text, printed):
        raise ValueError(f"lines are new that no {ELISION} stands for, behind those of:\n{text}\nin:\n{printed}")
    return text


def _shape(line: str) -> str:
    return " ".join(re.sub(r"[\d.,]+", "#", line).split())


@frozen
class Text:
    """What a script says of itself, in parts, as Markdown."""

    title: str
    about: str
    look: str
    exercises: list[str]
    rest: str

    @classmethod
    def of(cls, name: str) -> Text:
        title, _, text = tutorial(name).text().partition("\n")
        about, look, behind = re.split(r"^(?:What to look at|Exercises)\n", text, flags=re.M)
        exercises, _, rest = behind.strip().partition("\n\n")
        numbered = re.split(r"^\d+\. ", exercises, flags=re.M)[1:]
        about = re.sub(r"(?m)^((?:    .*\n?)+)", lambda found: f"```text\n{inspect.cleandoc(found[1])}\n```\n", about)
        return cls(title.rstrip("."), about.strip(), look.strip(), [inspect.cleandoc(one) for one in numbered], rest.strip())


def sections(name: str) -> list[tuple[str, str]]:
    """The code of a script behind its docstring, cut at classes and functions: pairs of a heading and lines of code."""
    source = tutorial(name).path.read_text(encoding="utf-8").split('"""\n', 1)[1].strip("\n")
    starts = [match.start() for match in re.finditer(r"^(?:@|class |def |if __name__)", source, re.M)]
    starts = [start for start in starts if not re.search(r"^@.*\n\Z", source[:start], re.M)]
    ends = [*starts[1:], len(source)]
    constants = re.search(r"^\w+ = ", source[: starts[0]], re.M)
    parts = [("Imports and constants" if constants else "Imports", source[: starts[0]])]
    for start, end in zip(starts, ends, strict=True):
        named = re.search(r"^(?:class|def) (\w+)", source[start:end], re.M)
        parts.append((f"`{named[1]}`" if named else "As a script", source[start:end]))
    return [(heading, f"{code.strip()}\n") for heading, code in parts]


def page(name: str) -> str:
    """The whole page of a tutorial."""
    text, kept = Text.of(name), record(name)
    code = "\n".join(f"### {heading}\n\n```py\n{code}```\n" for heading, code in sections(name))
    exercises = "\n".join(
        f"### Exercise {number}\n\n{exercise}\n\n<details>\n<summary>Solution</summary>\n\n{kept.solutions[number]}\n\n</details>\n"
        for number, exercise in enumerate(text.exercises, 1)
    )
    rest = f"\n{text.rest}\n" if text.rest else ""
    return f"""# {text.title}

<!-- Made by docs/tables.py from tutorials/{name}.py and tutorials/solutions/{name}.md; a test compares them. -->

{text.about}

## What to look at

{text.look}

## The script

{code}
## What it prints

{kept.output}

## Exercises

`pypoplar tutorial {name} --copy .` gives you the script to change. A solution says which of its lines change, and what it
prints then; a line `...` stands for some that are left out.

{exercises}{rest}
---

{_neighbours(name)}
"""


def _neighbours(name: str) -> str:
    known = recorded()
    place = known.index(name)
    before, after = known[:place][-1:], known[place + 1 :][:1]
    links = [("Before", *before), ("Next", *after)]
    shown = [f"{word}: [{tutorial(other).summary}]({other}.md)" for word, *others in links for other in others]
    return " · ".join([*shown, "[All tutorials](../tutorials.md)"])


def pages() -> dict[str, Callable[[], str]]:
    """What makes each page, by the page's name."""
    return {f"docs/tutorials/{name}.md": lambda name=name: page(name) for name in recorded()}


if __name__ == "__main__":
    for name in sys.argv[1:] or recorded():
        _place(name).write_text(record(name).refreshed(), encoding="utf-8")
        (HERE / "tutorials" / f"{name}.md").write_text(page(name), encoding="utf-8")
