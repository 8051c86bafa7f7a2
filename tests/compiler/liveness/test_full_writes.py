"""Outputs that a codelet is found to write in full: random codelets, run in their Python form, do store to every element."""

import random

import numpy as np
from codelet_rig import array, interpret, vertex
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar.codelet.codelet import Codelet
from pypoplar.compiler.liveness.full_writes import WORKER, surely_stored_fields

WORKERS = 6
FIELDS = """
x: Input[Vector[INT]]
out: Output[Vector[FLOAT]]
other: Output[Vector[FLOAT]]
one: Output[FLOAT]
rows: Output[VectorList[FLOAT]]
more: Output[VectorList[FLOAT]]
"""
HELPERS = """
def pick(left, right, condition):
    k = left
    if condition:
        return k
    k = right
    return k

def same(index):
    return index

def first(index, condition):
    for _ in range(3):
        if condition:
            return index
    return 0
"""
BEGINNING = ["i = 0", "j = 0", "k = 0", "n = 0", "rounds = 0", "a = self.rows[0]", "b = self.more[0]"]


class Body:
    """Random statements: loops and branches around stores by indices that may go over all elements, or may not."""

    def __init__(self, seed, multi):
        self.random, self.multi = random.Random(seed), multi

    def text(self):
        return "\n".join([*BEGINNING, *self.block(4, 0, False), *self.block(4, 0, False)])

    def index(self):
        names = [*"iiijjkk", "0", "n - 1", *(["worker"] if self.multi else [])]
        index = self.random.choice(names)
        calls = [f"pick({index}, {self.random.choice(names)}, {self.condition()})", f"same({index})"]
        return self.random.choice([*[index] * 20, *calls, f"first({index}, {self.condition()})"])

    def length(self):
        own = ["len(self.out)"] * 4 + ["len(self.rows)"] * 3 + ["len(a)"] * 4
        return self.random.choice([*own, "len(self.other)", "len(self.more)", "len(b)", "len(self.x)", "n", "k"])

    def condition(self):
        ways = ["self.x[0] > 0", "self.x[1] > 0", "i > 1", "k > 1"]
        return self.random.choice(ways + (["worker < 3", "worker == 0"] if self.multi else []))

    def range(self, length):
        ways = [f"range({length})"] * 5 + [f"range(1, {length})", f"range(0, {length}, 2)", f"range({self.index()}, {length})"]
        divided = [length, length.removeprefix("len(").removesuffix(")") if length.startswith("len(") else length]
        shares = [f"range(worker, {length}, {WORKERS})"] * 6 + [f"ipu.worker_range(worker, {what})" for what in divided * 3]
        return self.random.choice(ways + ([*shares, f"ipu.worker_range(k, {length})"] if self.multi else []))

    def block(self, depth, margin, loop):
        return [line for _ in range(self.random.randint(1, 3)) for line in self.statement(depth, " " * margin, margin + 4, loop)]

    def statement(self, depth, indent, inner, loop):
        choice = self.random.choice
        kinds = (
            ["store"] * 4 + ["local", "local", "row", "leave"] + (["for", "for", "if", "all", "rows", "while"] * 2 if depth else [])
        )
        match choice(kinds):
            case "for":
                return [f"{indent}for {choice('iijk')} in {self.range(self.length())}:", *self.block(depth - 1, inner, True)]
            case "all":
                name, field = choice("ij"), choice(["out", "other"])
                return [
                    f"{indent}for {name} in {self.range(f'len(self.{field})')}:",
                    *(self.block(depth - 1, inner, True) if self.random.random() < 0.4 else []),
                    f"{indent}    self.{field}[{name}] = 1.0",
                ]
            case "rows":
                row, field = choice("ab"), choice(["rows", "more"])
                return [
                    f"{indent}for i in {self.range(f'len(self.{field})')}:",
                    f"{indent}    {row} = self.{field}[i]",
                    *(self.block(0, inner, True) if self.random.random() < 0.2 else []),
                    f"{indent}    for j in {self.range(f'len({row})')}:",
                    f"{indent}        {row}[j] = 1.0",
                ]
            case "if":
                otherwise = [f"{indent}else:", *self.block(depth - 1, inner, loop)] if self.random.random() < 0.8 else []
                return [f"{indent}if {self.condition()}:", *self.block(depth - 1, inner, loop), *otherwise]
            case "while":
                head = [f"{indent}rounds = 0", f"{indent}while rounds < {self.length()}:", f"{indent}    rounds += 1"]
                return [*head, *self.block(depth - 1, inner, True)]
            case "leave":
                return [
                    indent
                    + choice(["break", "continue", "return", "pass"] if loop else ["pass", "pass", "self.one = 1.0", "return"])
                ]
            case "local":
                return [f"{indent}{choice('kknij')} = {choice([self.index, self.length])()}"]
            case "row":
                return [f"{indent}{choice('ab')} = {choice(['self.rows', 'self.more'])}[{self.index()}]"]
        target = choice(["self.out", "self.out", "self.other", "a", "a", "b", "self.rows[i]"])
        return [f"{indent}{target}[{self.index()}] = 1.0"]


def stores(codelet, numbers):
    """Whether each element of each Output is stored to, for random lengths and inputs; None if the codelet fails."""
    lengths = {name: numbers.randint(0, 7) for name in ("out", "other")} | {"x": numbers.randint(2, 5)}
    fields = {name: array("f32", np.zeros(lengths[name])) for name in ("out", "other")} | {"one": array("f32", [0.0])}
    for name in ("rows", "more"):
        fields[name] = [array("f32", np.zeros(numbers.randint(0, 8))) for _ in range(numbers.randint(1, 8))]
    x = array("i32", [numbers.randint(0, 1) for _ in range(lengths["x"])])
    ran = interpret(codelet, x=x, cycle_limit=20_000, **fields)
    if ran.fault:
        return None
    return lengths, {
        name: np.concatenate([np.ravel(one) for one in ran.fields[name]] or [[]]) != 0 for name in ("rows", "more")
    } | {name: np.ravel(ran.fields[name]) != 0 for name in ("out", "other", "one")}


@examples(50)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_fields_that_are_found_to_be_written_in_full_are(seed, multi):
    head = {"base": "MultiVertex", "head": "self, worker"} if multi else {}
    codelet = Codelet.of_class(vertex(Body(seed, multi).text(), fields=FIELDS, prelude=HELPERS, **head))
    found = surely_stored_fields(codelet.typed, WORKERS)
    for run in range(12 if found else 0):
        made = stores(codelet, random.Random(run))
        if made is None:
            continue
        lengths, stored = made
        for name, bound in found.items():
            longest = WORKERS if bound == WORKER else lengths[bound] if bound else None
            if longest is None or longest >= lengths[name]:
                assert stored[name].all(), name
