"""What a program says of itself is asked once, and refused by its kind and line where it is not well-formed."""

import re

import pytest
from engine_builder import tiny

from pypoplar import FLOAT, ControlProgramError, Engine, Graph, PoplarTypeError, Tensor, compileGraph
from pypoplar.compiler.flattening.flatten import RULES
from pypoplar.compiler.flattening.rules import Leaf
from pypoplar.program import Copy, Program, Repeat, Sequence
from pypoplar.program.base import Calling, InTurn, Nothing, OneOf, Part, Rounds, Vertices

MADE = r"<Odd 'name' made at .*test_effects\.py:\d+>"


class Odd(Program):
    """Says what it is told to say."""

    def __init__(self, reads=(), writes=(), contents=None):
        super().__init__("name")
        self.asked = 0
        self.said = reads, writes, contents or Nothing()

    def reads(self):
        self.asked += 1
        return self.said[0]

    def writes(self):
        return self.said[1]

    def contains(self):
        return self.said[2]


@pytest.fixture
def graph():
    return Graph(tiny().getTarget())


@pytest.fixture
def x(graph):
    tensor = graph.addVariable(FLOAT, [4], "x")
    graph.setTileMapping(tensor, 0)
    return tensor


@pytest.fixture(autouse=True)
def rule(monkeypatch):
    monkeypatch.setitem(RULES, Odd, Leaf(lambda flattening, program: None))


FORMS = "Nothing(), Vertices(compute set), InTurn(parts), Rounds(head, body), OneOf(parts) or Calling(function)"
TUPLE = "expected a tuple of tensors, as in (self.x,)"


@pytest.mark.parametrize(("said", "text"), [
    (lambda x: None, f"gives None: {TUPLE}"),
    (lambda x: x, f"gives a Tensor: {TUPLE}"),
    (lambda x: [x], f"gives a list: {TUPLE}"),
    (lambda x: (tensor for tensor in [x]), f"gives a generator: {TUPLE}"),
    (lambda x: iter([x]), f"gives a list_iterator: {TUPLE}"),
    (lambda x: map(x.slice, [0], [1]), f"gives a map: {TUPLE}"),
    (lambda x: 7, f"gives an int: {TUPLE}"),
    (lambda x: ("x",), "names 'x': expected tensors of a graph"),
    (lambda x: (x, Tensor()), "names Tensor(): expected tensors of a graph"),
])  # fmt: skip
@pytest.mark.parametrize("method", ["reads", "writes"])
def test_what_is_read_and_written_is_a_tuple_of_tensors(graph, x, method, said, text):
    with pytest.raises(ControlProgramError, match=rf"{method}\(\) of {MADE} {re.escape(text)}"):
        compileGraph(graph, Repeat(2, Odd(**{method: said(x)})))


@pytest.mark.parametrize(("contents", "text"), [
    (lambda copy: [copy], f"gives a list: expected {FORMS}"),
    (lambda copy: Nothing, f"gives a type: expected {FORMS}"),
    (lambda copy: InTurn(copy), "gives InTurn of a Copy: expected a tuple of parts, as in (Part(self.body),)"),
    (lambda copy: OneOf(Part(part) for part in [copy]), "gives OneOf of a generator: expected a tuple of parts"),
    (lambda copy: InTurn((copy,)), "gives InTurn of a Copy: expected Part(program)"),
    (lambda copy: InTurn((Part(copy), Part(5))), "gives Part of an int: expected a program"),
    (lambda copy: OneOf((Part(None),)), "gives Part of None: expected a program"),
    (lambda copy: Rounds(None, copy), "gives Rounds of a Copy: expected Part(program)"),
    (lambda copy: Vertices(5), "gives Vertices of an int: expected a ComputeSet"),
    (lambda copy: Calling(copy), "gives Calling of a Copy: expected what graph.addFunction gave"),
])  # fmt: skip
def test_what_a_program_contains_has_one_of_the_forms(graph, x, contents, text):
    program = Odd(contents=contents(Copy(x[0:2], x[2:4])))
    with pytest.raises(ControlProgramError, match=rf"contains\(\) of {MADE} {re.escape(text)}"):
        compileGraph(graph, program)
    with pytest.raises(ControlProgramError, match=rf"contains\(\) of {MADE} {re.escape(text)}"):
        program.runs()


def test_a_forgotten_return_of_what_is_contained_is_refused(graph):
    class Mute(Odd):
        def contains(self):
            pass

    with pytest.raises(ControlProgramError, match=rf"contains\(\) of <Mute .*> gives None: expected {re.escape(FORMS)}"):
        compileGraph(graph, Mute())


def test_a_program_is_asked_once_wherever_it_stands(graph, x):
    program = Odd(reads=(x,))
    function = graph.addFunction(Sequence([program]))
    assert function.program.programs == [program]
    compileGraph(graph, [Sequence([program, Repeat(2, program)]), program])
    assert program.asked == 1


def test_a_constant_is_not_written(graph):
    with pytest.raises(ControlProgramError, match=rf"{MADE} writes to 'c' FLOAT \[4\]: it holds a constant"):
        compileGraph(graph, Odd(writes=(graph.addConstant(FLOAT, [4], 1.0, "c"),)))


def test_a_kind_whose_answers_are_no_methods_cannot_be_written():
    with pytest.raises(PoplarTypeError, match=r"Silent\.reads is a tuple: expected a method"):
        type("Silent", (Program,), {"reads": ()})


def test_a_kind_that_does_not_call_the_constructor_of_programs_is_refused_by_name(graph):
    class Bare(Odd):
        def __init__(self):
            pass

    with pytest.raises(ControlProgramError, match=r"a Bare is not made yet: its __init__ does not call super\(\).__init__\(name\)"):
        compileGraph(graph, Sequence([Bare()]))


def test_details_are_text(graph):
    class Numbered(Odd):
        def detail(self):
            return 7

    RULES[Numbered] = RULES[Odd]
    try:
        with pytest.raises(ControlProgramError, match=r"detail\(\) of <Numbered .*> gives 7: expected a text"):
            compileGraph(graph, Numbered())
    finally:
        del RULES[Numbered]


@pytest.mark.parametrize(("name", "method", "text"), [
    ("reads", lambda self: (self.x,), r"contains InTurn and reads or writes 'x' FLOAT \[4\]"),
    ("writes", lambda self: (self.x,), r"contains InTurn and reads or writes 'x' FLOAT \[4\]"),
    ("contains", lambda self: Nothing(), "contains Nothing and reads or writes nothing"),
    ("contains", lambda self: OneOf(tuple(map(Part, self.programs))), "contains OneOf and reads or writes nothing"),
])  # fmt: skip
@pytest.mark.parametrize("inside", [lambda program: program, lambda program: Repeat(2, program)])
def test_what_is_made_of_a_sequence_says_nothing_else_than_a_sequence(graph, x, name, method, text, inside):
    kind = type("Loud", (Sequence,), {name: method})
    program = kind([Copy(x[0:2], x[2:4])])
    program.x = x
    refused = (
        rf"<Loud made at .*test_effects\.py:\d+> is a Sequence, which runs its parts in turn and does nothing itself, but .* {text}"
    )
    with pytest.raises(ControlProgramError, match=refused):
        Engine(graph, inside(program))
