"""A kind of program that is added from outside: what it says is what the compiler believes, and it needs a rule."""

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from engine_builder import Bench, ran

from pypoplar import BOOL, FLOAT, ControlProgramError, Engine, Graph, IPUModel, compileGraph
from pypoplar.compiler.check.connected_regions import collect_regions
from pypoplar.compiler.control.operation_tree import Line
from pypoplar.compiler.control.program_walk import operation_tree
from pypoplar.compiler.control.usage import find_usage, used_variables
from pypoplar.compiler.flattening.flatten import RULES
from pypoplar.compiler.flattening.flattening_state import Flattening
from pypoplar.compiler.flattening.rules import Around, Leaf
from pypoplar.compiler.liveness.liveness import find_liveness
from pypoplar.graph.operands import check_one_element
from pypoplar.graph.tensor import Tensor
from pypoplar.interface.opcodes import BranchOperand, JumpOperand
from pypoplar.program import Copy, Program, Repeat, Sequence
from pypoplar.program.base import InTurn, Nothing, OneOf, Part, Rounds, part_program


class Peek(Program):
    """Looks at a tensor: a kind that pypoplar does not have."""

    def __init__(self, tensor, *, honest=True):
        super().__init__()
        self.tensor = tensor
        self.honest = honest

    def reads(self):
        return (self.tensor,) if self.honest else ()

    def writes(self):
        return ()

    def contains(self):
        return Nothing()


class Around2(Program):
    """Runs two programs as `contents` says, reading a flag and writing a tensor."""

    def __init__(self, contents, flag, tensor, *parts):
        super().__init__()
        self.contents, self.flag, self.tensor, self.inner = contents, flag, tensor, parts

    def reads(self):
        return (self.flag,)

    def writes(self):
        return (self.tensor,)

    def contains(self):
        parts = tuple(map(Part, self.inner))
        if self.contents is Rounds:
            return Rounds(*parts)
        return self.contents(parts)


@pytest.fixture
def graph():
    return Graph(IPUModel("tiny").createDevice())


@pytest.fixture
def tensors(graph):
    """Tensors on tile 0 by name; a and b have values."""
    made = {}
    for name in ("a", "b", "x", "y", "z", "flag"):
        made[name] = graph.addVariable(BOOL if name == "flag" else FLOAT, [] if name == "flag" else [4], name)
        graph.setTileMapping(made[name], 0)
    for name in "ab":
        graph.setInitialValue(made[name], np.ones(4, np.float32))
    graph.setInitialValue(made["flag"], True)
    return made


def lives(graph, program):
    """By name of a variable: the positions of its life, or "always"."""
    tree = operation_tree([program], graph)
    usage, frozen = find_usage(tree, []), graph.freeze()
    regions = collect_regions(frozen, list(usage.compute_sets))
    liveness = find_liveness(frozen, 6, tree, usage, regions, [], used_variables(frozen, usage))
    ranges = {}
    for number, name in enumerate(frozen.variables.names):
        rows = slice(liveness.first[number], liveness.first[number + 1])
        positions = set()
        for begin, end in zip(liveness.begin[rows].tolist(), liveness.end[rows].tolist(), strict=True):
            positions |= set(range(begin, end))
        ranges[name] = "always" if liveness.always[number] else positions
    return ranges


def test_what_a_new_kind_reads_lives_until_then(graph, tensors):
    a, b, x, y = (tensors[name] for name in "abxy")

    def program(*, honest):
        return Sequence([Copy(a, x), Copy(b, y), Copy(y, b), Peek(x, honest=honest)])

    honest, lying = lives(graph, program(honest=True)), lives(graph, program(honest=False))
    assert honest["x"] & honest["y"]
    assert not lying["x"] & lying["y"]


@pytest.mark.parametrize("contents", [InTurn, OneOf, Rounds])
def test_what_a_new_kind_writes_is_written_when_its_parts_are_done(graph, tensors, contents):
    a, b, x, y, z, flag = (tensors[name] for name in ("a", "b", "x", "y", "z", "flag"))
    around = Around2(contents, flag, x, Copy(a, y), Copy(y, b) if contents is InTurn else Copy(a, z))
    found = lives(graph, Sequence([around, Copy(x, b)]))
    assert found["flag"] == "always"
    assert found["x"] != "always"
    assert min(found["x"]) > max(found["y"])
    assert len(found["x"]) == 2


def test_what_a_new_kind_reads_between_its_rounds_lives_all_over_them(graph, tensors):
    a, b, x, z = (tensors[name] for name in "abxz")
    flag = graph.addVariable(BOOL, [], "written")
    graph.setTileMapping(flag, 0)
    again = Around2(Rounds, flag, z, Copy(a, x), Copy(x, b))
    found = lives(graph, Sequence([Copy(tensors["flag"], flag), again, Copy(z, a)]))
    assert found["written"] >= found["x"]
    assert not found["written"] & found["z"]


@pytest.mark.parametrize("inside", [lambda one: one, lambda one: Sequence([Repeat(2, Sequence([one], name="deep"))])])
def test_a_kind_without_a_rule_is_refused_by_name_before_anything_else(graph, tensors, inside):
    unmapped = graph.addVariable(FLOAT, [4], "unmapped")
    program = inside(Peek(unmapped))
    with pytest.raises(
        ControlProgramError, match=rf"<Peek made at {__file__}:\d+> is not a kind of program that an Engine can run"
    ):
        compileGraph(graph, program)


def test_what_is_made_of_a_kind_is_another_kind_but_a_sequence_stays_one(graph, tensors):
    class OwnCopy(Copy):
        pass

    class OwnSequence(Sequence):
        pass

    with pytest.raises(ControlProgramError, match="OwnCopy made at"):
        compileGraph(graph, OwnCopy(tensors["a"], tensors["x"]))
    plain, own = (compileGraph(graph, kind([Copy(tensors["a"], tensors["x"])], name="name")) for kind in (Sequence, OwnSequence))
    assert plain.program.tolist() == own.program.tolist()
    assert plain.tree.type == own.tree.type


def test_a_kind_with_a_rule_is_lowered(graph, tensors, monkeypatch):
    looked = []

    def flatten_peek(flattening, peek):
        looked.append(peek.tensor.getDebugStr())
        flattening.serve("print", title="peek", stream=flattening.fetch(peek.tensor), shape=[4])

    monkeypatch.setitem(RULES, Peek, Leaf(flatten_peek))
    executable = compileGraph(graph, Repeat(2, Peek(tensors["a"])))
    assert looked == ["a"]
    assert [service["kind"] for service in executable.services] == ["print"]
    assert "Peek" in executable.tree.type


def test_copies_of_a_rule_are_steps_of_their_own(graph, tensors, monkeypatch, mode):
    """A kind may flatten copies as Copy does; they stand nowhere, so nothing is one step with them."""

    class Swap(Program):
        def __init__(self, copies):
            super().__init__()
            self.copies = copies

        def reads(self):
            return tuple(copy.source for copy in self.copies if isinstance(copy.source, Tensor))

        def writes(self):
            return tuple(copy.destination for copy in self.copies)

        def contains(self):
            return Nothing()

    def flatten_swap(flattening, swap):
        for copy in swap.copies:
            RULES[Copy].flatten(flattening, copy)

    monkeypatch.setitem(RULES, Swap, Leaf(flatten_swap))
    stream = graph.addHostToDeviceFIFO("stream", FLOAT, 4)
    swap = Swap([Copy(stream, tensors["x"]), Copy(tensors["x"], tensors["y"]), Copy(tensors["x"], tensors["z"])])
    graph.createHostRead("y", tensors["y"])
    graph.createHostRead("z", tensors["z"])
    engine = Engine(graph, Sequence([Copy(tensors["a"], tensors["b"]), swap, Copy(tensors["a"], tensors["b"])]), mode=mode)
    assert [step.kind for step in engine.executable.steps[1:]] == ["copy", "stream", "copy", "copy", "copy"]
    engine.load()
    engine.connectStream("stream", np.arange(4, dtype=np.float32))
    engine.run()
    assert engine.readTensor("y").tolist() == engine.readTensor("z").tolist() == [0, 1, 2, 3]


def test_a_rule_lowers_the_parts_that_its_kind_has(graph, tensors, monkeypatch):
    def first_part_only(flattening, program, parts):
        yield parts[0]

    program = Around2(InTurn, tensors["flag"], tensors["x"], Copy(tensors["a"], tensors["y"]), Copy(tensors["a"], tensors["z"]))
    monkeypatch.setitem(RULES, Around2, Around(first_part_only))
    with pytest.raises(ControlProgramError, match=r"Around2 made at .* has 2 parts: its kind is lowered with 1"):
        compileGraph(graph, program)
    monkeypatch.setitem(RULES, Around2, Leaf(lambda flattening, program: None))
    with pytest.raises(ControlProgramError, match=r"Around2 made at .* has parts: its kind is lowered without parts"):
        compileGraph(graph, program)
    monkeypatch.setitem(RULES, Peek, Around(first_part_only))
    with pytest.raises(ControlProgramError, match=r"Peek made at .* has no parts: its kind is lowered around parts"):
        compileGraph(graph, Peek(tensors["a"]))


def test_every_kind_has_a_rule():
    import pypoplar.program as kinds

    known = {kind for kind in vars(kinds).values() if isinstance(kind, type) and issubclass(kind, Program)} - {Program}
    assert known == set(RULES)


RECIPE_NAMES = (BranchOperand, Iterator, JumpOperand, Line, Flattening, OneOf, Part, Program, Repeat, Tensor, check_one_element,
                part_program, ran)  # fmt: skip


@pytest.mark.parametrize("value", [0, 1, 5])
def test_the_contributors_guide_adds_a_kind_with_its_test(monkeypatch, mode, value):
    guide = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = guide.partition("## Add a kind of program")[2].partition("\n## ")[0]
    kind, rule, test = (dedent(block) for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL))
    names = {known.__name__: known for known in RECIPE_NAMES} | {"pytest": pytest}
    flattening, _, row = rule.partition("RULES: Rules = {")
    for part in (kind, flattening, test):
        exec(part, names)
    monkeypatch.setitem(RULES, names["Unless"], eval(row.partition("Unless:")[2].partition(",\n")[0], names | {"Around": Around}))
    bench = Bench()
    bench.log()
    names["test_unless_runs_its_body_if_the_predicate_is_zero"](bench, mode, value)
