"""In which parts of the program the executed steps stand: Repeat, If, Call and the like over a sequence of steps."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pypoplar.report.program_nodes import Program
from pypoplar.report.program_table import ProgramTable

ITERATION = "iteration"
LOOPS = ("Repeat", "RepeatWhileTrue", "RepeatWhileFalse")


@frozen
class Level:
    """A program that events `first` to `last` stand in; `title` is None for a step itself.

    `iteration` is the number of the round of the loop that it stands in, from 1 on; 0 for what is not right inside a loop.
    """

    first: int
    last: int
    title: str | None
    iteration: int = 0

    def told(self, step: str) -> str:
        """The title, or what the step is called, with the number of the iteration."""
        name = step if self.title is None else self.title
        if name == ITERATION:
            return f"{name} {self.iteration:,}"
        return f"{name} (iteration {self.iteration:,})" if self.iteration else name


class Nesting:
    """The programs around each static step, as far as they can be told.

    A part of the program that several Calls share is there once, so no one knows from which Call a step in it runs. What is on
    every way from the engine's programs to the step is certain: its dominators in the graph of programs.
    """

    def __init__(self, roots: Sequence[Program], steps: Sequence[Program]) -> None:
        table = ProgramTable()
        tops, self._leaves = [table.add(root) for root in roots], [table.add(step) for step in steps]
        self._rows = list(table.programs)
        self._above = _parents([row[-1] for row in self._rows], tops)
        self._dominator, self._depth = _dominators(self._above)
        self._place = _places([row[-1] for row in self._rows], tops)

    def levels(self, runs: Sequence[int], steps: Sequence[int]) -> list[Level]:
        """The levels over the events: event i is static step ``steps[i]`` in run ``runs[i]``. Parents come before children.

        The body of a loop, or what several Calls share, begins anew where the steps go backwards in it. A loop that is run several
        times with nothing between is one level.
        """
        paths = {step: self._path(step) for step in set(steps)}
        levels: list[Level] = []
        opened: list[int] = []  # programs, outermost first
        places: list[int] = []  # of their levels in `levels`
        rounds: list[int] = []  # that each of them has begun, where it is a loop

        def close(depth: int, last: int) -> None:
            while len(opened) > depth:
                level = levels[place := places.pop()]
                levels[place] = Level(level.first, last, self._title(opened.pop()), level.iteration)
                rounds.pop()

        def entered_round() -> int:
            """The number of the round that begins in the innermost loop, 0 outside of loops."""
            if not opened or not self._is_loop(opened[-1]):
                return 0
            rounds[-1] += 1
            return rounds[-1]

        for event, step in enumerate(steps):
            path, depth = paths[step], 0
            if event and runs[event] == runs[event - 1]:
                depth = _shared(path, opened)
                if self._order(step) <= self._order(steps[event - 1]):
                    depth = self._entered(path[:depth])
            close(depth, event - 1)
            for program in path[depth:]:
                levels.append(Level(event, event, None, entered_round()))
                opened.append(program)
                places.append(len(levels) - 1)
                rounds.append(0)
            levels.append(Level(event, event, None, entered_round()))
        close(0, len(steps) - 1)
        return levels

    def _path(self, step: int) -> list[int]:
        """The programs that are on every way to a step, outermost first.

        ``~loop`` after a loop is one iteration of it, where nothing else says so: the loop has several parts.
        """
        path: list[int] = []
        program = self._dominator[self._leaves[step]] if step < len(self._leaves) else -1
        while program >= 0:
            if self._is_loop(program) and len(self._rows[program][-1]) > 1:
                path.append(~program)
            path.append(program)
            program = self._dominator[program]
        return path[::-1]

    def _is_loop(self, program: int) -> bool:
        return program >= 0 and self._rows[program][1] in LOOPS

    def _order(self, step: int) -> int:
        """Where a step stands in the text of the program."""
        return self._place.get(self._leaves[step], -1) if step < len(self._leaves) else -1

    def _entered(self, path: Sequence[int]) -> int:
        """How many of the programs have not been left where steps go backwards: all up to a loop, or up to what Calls share."""
        for place in range(len(path) - 1, -1, -1):
            if self._is_loop(path[place]):
                return place + 1
            if path[place] >= 0 and len(self._above[path[place]]) > 1:
                return place
        return len(path)

    def _title(self, program: int) -> str:
        if program < 0:
            return ITERATION
        name, kind, _, detail, *_ = self._rows[program]
        return " ".join(word for word in (kind, name, f"({detail})" if detail else "") if word)


def _shared(path: Sequence[int], other: Sequence[int]) -> int:
    """How many programs at the beginning of two paths are the same."""
    most = min(len(path), len(other))
    return next((place for place in range(most) if path[place] != other[place]), most)


def _parents(children: Sequence[Sequence[int]], tops: Sequence[int]) -> list[list[int]]:
    """By program: the programs that it is directly a part of, -1 for one of the engine's."""
    above: list[list[int]] = [[] for _ in children]
    for program in tops:
        above[program].append(-1)
    for program, parts in enumerate(children):
        for part in parts:
            above[part].append(program)
    return above


def _dominators(above: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """By program: the lowest program that is on every way to it, -1 for none, and how many there are above."""
    dominator, depth = [-1] * len(above), [0] * len(above)
    for program in reversed(range(len(above))):  # parents have higher numbers
        if not above[program]:
            continue
        nearest, *others = above[program]
        for other in others:
            while nearest != other:
                if nearest >= 0 and (other < 0 or depth[nearest] >= depth[other]):
                    nearest = dominator[nearest]
                else:
                    other = dominator[other]
        dominator[program] = nearest
        depth[program] = depth[nearest] + 1 if nearest >= 0 else 0
    return dominator, depth


def _places(children: Sequence[Sequence[int]], tops: Sequence[int]) -> dict[int, int]:
    """By program: its place among all in the order in which they are first met."""
    place: dict[int, int] = {}
    pending = list(reversed(tops))
    while pending:
        program = pending.pop()
        if program not in place:
            place[program] = len(place)
            pending.extend(reversed(children[program]))
    return place
