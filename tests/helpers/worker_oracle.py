"""Random MultiVertex codelets, and what Python itself says of their workers: every access is logged, one after the other."""

import random
import textwrap
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import define, field
from codelet_rig import PRELUDE, module_from
from engine_builder import Bench

from pypoplar import CHAR, INT, SHORT

WORKERS = 6
FIELDS = """
x: Input[Vector[INT]]
y: InOut[Vector[INT]]
chars: InOut[Vector[CHAR]]
rows: InOut[VectorList[INT]]
halves: InOut[VectorList[SHORT]]
total: InOut[INT]
n: INT
count: INT
"""
NARROW = {"chars": 1, "halves": 2}  # bytes of an element
TYPES = {"chars": CHAR, "halves": SHORT}
PLAIN = ("n", "count")
HELPERS = """
def pick(limit, value):
    if value < limit:
        return value
    return limit - 1


def mark(part, value):
    if len(part) == 0:
        return
    part[len(part) - 1] = value


def root(limit):
    for i in range(6):
        if i * i >= limit:
            return i
    return 6


def first(part, value):
    i = 0
    for element in part:
        if element == value:
            return i
        i += 1
    return i
"""


@define
class Log:
    """What workers have touched; the first race that there is."""

    worker: int = 0
    first: dict[tuple[str, int, int], int] = field(factory=dict)  # which worker came first to a field's row and element
    written: dict[tuple[str, int, int], int] = field(factory=dict)  # by which worker
    race: tuple[str, int, int, int, int] | None = None  # field, row, index, the worker, the earlier one

    def touch(self, place: tuple[str, int, int], *, write: bool) -> None:
        earlier = self.first.setdefault(place, self.worker)
        if earlier != self.worker and (write or place in self.written) and self.race is None:
            self.race = (*place, self.worker, earlier)
        if write:
            self.written.setdefault(place, self.worker)

    @property
    def shared_word(self) -> bool:
        """Whether two workers have stored into one 32-bit word."""
        writers: dict[tuple[str, int, int], set[int]] = {}
        for (name, row, index), worker in self.written.items():
            if name in NARROW:
                writers.setdefault((name, row, index * NARROW[name] // 4), set()).add(worker)
        return any(len(workers) > 1 for workers in writers.values())

    @property
    def verdict(self) -> str:
        """``race``, ``word`` or nothing."""
        return "race" if self.race else "word" if self.shared_word else ""


@define
class LoggedVector:
    """A vector, or a slice of one."""

    log: Log
    name: str
    row: int
    values: list[int]
    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin

    def _place(self, index: int) -> int:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.begin + index

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            begin, end = index.start or 0, len(self) if index.stop is None else index.stop
            if not 0 <= begin <= end <= len(self):
                raise IndexError(index)
            return LoggedVector(self.log, self.name, self.row, self.values, self.begin + begin, self.begin + end)
        place = self._place(index)
        self.log.touch((self.name, self.row, place), write=False)
        return self.values[place]

    def __setitem__(self, index: int, value: int) -> None:
        place = self._place(index)
        self.log.touch((self.name, self.row, place), write=True)
        bits = 8 * NARROW.get(self.name, 4)
        self.values[place] = (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


class LoggedVertex:
    """``self``, whose accesses are logged."""

    def __init__(self, log: Log, values: Mapping[str, Any]) -> None:
        views: dict[str, Any] = {}
        for name, value in values.items():
            if isinstance(value, int):
                views[name] = LoggedVector(log, name, 0, [value], 0, 1)
            elif name in ("rows", "halves"):
                views[name] = [LoggedVector(log, name, number, list(row), 0, len(row)) for number, row in enumerate(value)]
            else:
                views[name] = LoggedVector(log, name, 0, list(value), 0, len(value))
        self.__dict__.update(views=views, scalars={name for name, value in values.items() if isinstance(value, int)})

    def __getattr__(self, name: str) -> Any:
        return self.views[name][0] if name in self.scalars else self.views[name]

    def __setattr__(self, name: str, value: int) -> None:
        self.views[name][0] = value


@define
class WorkerCodelet:
    """A codelet and its text. `settled` is one whose accesses depend on no data."""

    text: str
    settled: bool

    def codelet(self) -> Any:
        return self._names()["Test"]

    def _names(self) -> dict[str, Any]:
        fields = textwrap.indent(FIELDS.strip(), "    ")
        compute = textwrap.indent(f"def compute(self, worker):\n{textwrap.indent(self.text, '    ')}", "    ")
        return module_from(f"{PRELUDE}\n{HELPERS}\n\nclass Test(MultiVertex):\n{fields}\n\n{compute}\n")

    def log(self, values: Mapping[str, Any]) -> tuple[Log, dict[str, Any] | None]:
        """Let all workers run in Python: what they touched, and the values that they leave; None if one stopped with an error."""
        compute, log = self._names()["Test"].compute, Log()
        vertex = LoggedVertex(log, values)
        try:
            for log.worker in range(WORKERS):
                compute(vertex, log.worker)
        except (IndexError, ZeroDivisionError):
            return log, None
        left = {
            name: [row.values for row in view] if isinstance(view, list) else view.values for name, view in vertex.views.items()
        }
        return log, left


@define
class Writer:
    """Writes random device code."""

    draw: random.Random
    settled: bool
    locals: list[str] = field(factory=list)  # small numbers from 0 on
    depth: int = 0
    loops: int = 0
    names: int = 0

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def number(self) -> str:
        """An expression whose value is small, and not negative."""
        draw = self.draw
        leaves = ["worker", "worker", str(draw.randint(0, 9)), "len(self.y)", "self.n", *self.locals, *self.locals]
        if not self.settled:
            leaves += ["self.x[worker]", "self.count", "self.total % 8", f"self.x[{draw.randint(0, 5)}]", "root(worker)"]
            leaves += ["first(self.x, worker)", *(f"root({name})" for name in self.locals)]
        first, second = draw.choice(leaves), draw.choice(leaves)
        forms = [
            "{a}",
            "{a}",
            "{a} + {b}",
            "{a} * {c} + {b}",
            "{a} // {c}",
            "{a} % {c}",
            "min({a}, {b})",
            "max({a}, {b})",
            "abs({a} - {b})",
        ]
        forms += ["({a} << 1) & 7", "pick({c}, {a})", "{a} ^ 1"]
        return draw.choice(forms).format(a=first, b=second, c=draw.randint(1, 6))

    def condition(self) -> str:
        draw = self.draw
        forms = [
            "{a} == worker",
            "worker < {c}",
            "{a} % 6 == worker",
            "worker == {c}",
            "{a} < {b}",
            "not worker > {c}",
            "worker // 2 == {a}",
        ]
        if not self.settled:
            forms += ["self.x[{a} % len(self.x)] > {c}", "self.count == {c}"]
        single = draw.choice(forms).format(a=self.number(), b=self.number(), c=draw.randint(0, 5))
        if draw.random() < 0.2:
            other = draw.choice(forms).format(a=self.number(), b=self.number(), c=draw.randint(0, 5))
            return f"{single} {draw.choice(['and', 'or'])} {other}"
        return single

    def target(self) -> str:
        """An element that can be written; most often one that is there."""
        draw = self.draw
        vector = draw.choice(["self.y", "self.y", "self.y", "self.chars", "row", "half"])
        if vector in ("row", "half"):
            vector = f"self.{'rows' if vector == 'row' else 'halves'}[{self.number()} % {draw.randint(1, 3)}]"
        if draw.random() < 0.2:
            vector = f"{vector}[{draw.randint(0, 2)}:]"
        if draw.random() < 0.15:
            return f"{vector}[{self.number()}]"
        return f"{vector}[({self.number()}) % len({vector})]"

    def statements(self) -> list[str]:
        draw, lines = self.draw, []
        for _ in range(draw.randint(1, 3)):
            lines += self.statement()
        return lines or ["pass"]

    def block(self, head: str, *, adds: str | None = None) -> list[str]:
        self.depth += 1
        self.loops += not head.startswith(("if", "else"))
        before = list(self.locals)
        if adds:
            self.locals.append(adds)
        lines = self.statements()
        self.locals, self.depth = before, self.depth - 1
        self.loops -= not head.startswith(("if", "else"))
        return [head, *("    " + line for line in lines)]

    def statement(self) -> list[str]:
        draw = self.draw
        loops = [] if self.settled else ["while"]  # whose rounds carry something on
        kind = draw.choice([*loops, *["store"] * 4, "load", "local", "if", "if", "for", "for", "own", "leave", "mark", "state"])
        if self.depth > 2 and kind in ("if", "for", "while", "own"):
            kind = "store"
        if kind == "store":
            return [f"{self.target()} = {self.number()}"]
        if kind == "load":
            name = self.name()
            return [f"{name} = {self.target()}", f"{self.target()} = {name} + 1"]
        if kind == "local":
            name, text = self.name(), self.number()
            self.locals.append(name)
            return [f"{name} = {text}"]
        if kind == "if":
            return self.block(f"if {self.condition()}:") + (self.block("else:") if draw.random() < 0.4 else [])
        if kind == "for":
            name = self.name()
            bounds = draw.choice(
                ["{c}", "worker, {c}, 6", "worker, len(self.y), 6", "{a}", "{c}, worker, -1", "2 * worker, len(self.chars), 12"]
            )
            return self.block(f"for {name} in range({bounds.format(a=self.number(), c=draw.randint(0, 9))}):", adds=name)
        if kind == "own":
            name = self.name()
            where = draw.choice(["y", "chars", "halves[1]", "rows[0]"])
            step = draw.choice([1, 1, 2, 4])
            inside = f"{name} // {step} % 6 == worker" if step > 1 else f"{name} % 6 == worker"
            return [f"for {name} in range(len(self.{where})):", f"    if {inside}:", f"        self.{where}[{name}] += worker"]
        if kind == "while":
            name = self.name()
            lines = self.block(f"while {name} < {draw.randint(0, 3)}:")
            return [f"{name} = {draw.choice(['0', 'worker'])}", lines[0], f"    {name} += 1", *lines[1:]]
        if kind == "mark":
            vector = draw.choice(["self.y", "self.rows[worker % 3]", "self.rows[1]", f"self.y[{draw.randint(0, 2)}:worker + 2]"])
            return [f"mark({vector}, {self.number()})"]
        if kind == "state":
            text = draw.choice(["self.count = {a}", "self.total = {a}", "self.total += {a}"]).format(a=self.number())
            return [text] if draw.random() < 0.3 else []
        return [f"if {self.condition()}:", f"    {draw.choice(['return', *(['break', 'continue'] if self.loops else [])])}"]


def worker_codelet(seed: int, *, settled: bool = False) -> WorkerCodelet:
    """A random codelet."""
    writer = Writer(random.Random(seed), settled)
    lines = writer.statements()
    while len(lines) < 4:
        lines += writer.statements()
    return WorkerCodelet("\n".join(lines), settled)


def worker_values(seed: int) -> dict[str, Any]:
    """Values of the fields. The lengths are the same for all seeds."""
    draw = random.Random(seed)
    return {
        "x": [draw.randint(0, 7) for _ in range(8)],
        "y": [draw.randint(0, 9) for _ in range(14)],
        "chars": [draw.randint(0, 9) for _ in range(26)],
        "rows": [[draw.randint(0, 9) for _ in range(length)] for length in (7, 3, 12)],
        "halves": [[draw.randint(0, 9) for _ in range(length)] for length in (13, 25, 1)],
        "total": draw.randint(0, 9),
        "n": 7,
        "count": draw.randint(0, 5),
    }


def connected(bench: Bench, values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an oracle's codelet, as variables with these values, and as values."""
    fields: dict[str, Any] = {}
    for name, value in values.items():
        if name in PLAIN:
            fields[name] = value
        elif name in ("rows", "halves"):
            flat = bench.variable(name, np.concatenate([np.array(row) for row in value]), 3, TYPES.get(name, INT))
            bounds = np.cumsum([0, *map(len, value)]).tolist()
            fields[name] = [flat[begin:end] for begin, end in pairwise(bounds)]
        else:
            fields[name] = bench.variable(name, value, 3, TYPES.get(name, INT))
    return fields
