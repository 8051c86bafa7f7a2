"""The other kinds of programs: what they keep, and what their arguments may be."""

import pytest

from pypoplar.device import IPUModel
from pypoplar.errors import ControlProgramError, InvalidTileMapping, PoplarTypeError, TensorShapeError, TensorWriteError
from pypoplar.graph.graph import Graph
from pypoplar.program import (
    Abort,
    AbortOnCondition,
    Call,
    Copy,
    CycleCount,
    CycleStamp,
    ErrorProgram,
    Execute,
    FloatingPointBehaviour,
    If,
    PrintTensor,
    Program,
    Repeat,
    RepeatWhileFalse,
    RepeatWhileTrue,
    Sequence,
    SetFloatingPointBehaviour,
    SetSeed,
    SetStochasticRounding,
    Switch,
    Sync,
    SyncType,
    WriteUndef,
    cycleCount,
    cycleStamp,
    setFloatingPointBehaviour,
    setSeed,
    setStochasticRounding,
)
from pypoplar.program.base import Nothing
from pypoplar.types import BOOL, FLOAT, INT, UNSIGNED_INT


@pytest.fixture
def graph():
    return Graph(IPUModel("tiny").createDevice())


@pytest.fixture
def x(graph):
    return graph.addVariable(FLOAT, [4], "x")


@pytest.fixture
def flag(graph):
    return graph.addVariable(BOOL, [], "flag")


@pytest.fixture
def step(graph):
    return Execute(graph.addComputeSet("compute"))


def test_a_sequence_takes_a_list_single_programs_and_add(step):
    sequence = Sequence([step, Sync(SyncType.INTERNAL)], "all")
    assert sequence.name == "all"
    sequence.add(step)
    assert [type(one).__name__ for one in sequence.programs] == ["Execute", "Sync", "Execute"]
    assert len(Sequence(step, step)) == 2
    assert not Sequence().programs
    assert Sequence(name="none").name == "none"
    assert bool(Sequence())


def test_a_sequence_is_taken_as_it_is_when_it_is_put_into_another_program(graph, step, flag):
    inner = Sequence([step])
    outer = [
        Sequence([inner]).programs[0],
        Repeat(2, inner).body,
        If(flag, inner, inner).then,
        RepeatWhileTrue(inner, flag, inner).condition,
        Switch(graph.addVariable(INT, []), [(0, inner)]).cases[0][1],
        graph.addFunction(inner).program,
    ]
    inner.add(step)
    assert len(inner) == 2
    assert [len(one) for one in outer] == [1] * 6


def test_a_program_cannot_hold_itself(graph, step, flag):
    sequence = Sequence([step], "all")
    switch = Switch(graph.addVariable(INT, [], "i"), name="cases")
    text = r"^<Sequence 'all' made at .*test_kinds\.py:\d+> cannot hold itself; make another Sequence, or a Repeat of what"
    with pytest.raises(ControlProgramError, match=text):
        sequence.add(sequence)
    with pytest.raises(ControlProgramError, match=r"^<Switch 'cases' .*> cannot hold itself; make another Switch"):
        switch.add(0, switch)
    text = r"^<Sequence 'all' .*> cannot hold <Repeat 'again' made at .*test_kinds\.py:\d+>, which holds it; make another Sequence"
    with pytest.raises(ControlProgramError, match=text):
        sequence.add(Repeat(2, If(flag, Sequence([step, sequence])), "again"))
    switch.add(0, sequence)
    with pytest.raises(ControlProgramError, match=r"cannot hold <Switch 'cases' .*>, which holds it"):
        sequence.add(switch)
    assert [len(sequence), len(switch.cases)] == [1, 1]
    sequence.add(Sequence([step, step]))
    sequence.add(Call(graph.addFunction(sequence)))  # a function is what it was made of
    outer = Sequence([sequence, sequence])
    outer.add(sequence)
    assert [len(sequence), len(outer)] == [3, 3]


def test_programs_know_the_users_line_and_their_name(step):
    with open(__file__, encoding="utf-8") as source:
        lines = source.read().splitlines()
    program = Repeat(3, step, "loop")
    assert program.location.file == __file__
    assert 'Repeat(3, step, "loop")' in lines[program.location.line - 1]
    assert repr(program).startswith(f"<Repeat 'loop' made at {__file__}:")
    with pytest.raises(PoplarTypeError, match="debug name"):
        Repeat(3, step, 5)


def test_the_users_line_is_not_in_the_constructor_of_a_kind_from_outside(step):
    class Twice(Repeat):
        def __init__(self, body):
            super().__init__(2, body)

    class Named(Twice):
        def __init__(self, body, name):
            super().__init__(body)
            self.name = name

    with open(__file__, encoding="utf-8") as source:
        lines = source.read().splitlines()
    for program in (Twice(step), Named(step, "two")):
        assert "Twice(step), Named(step" in lines[program.location.line - 1]


def test_programs_say_what_they_read_write_and_contain(graph, x, flag, step):
    inner = Sequence([Copy(x[0:2], x[2:4])])
    choice = Switch(graph.addVariable(INT, [], "i"), [(0, inner), (1, step)], inner)
    assert [one.getDebugStr() for one in choice.reads()] == ["i"]
    assert [one.name for one in choice.parts()] == ["case 0", "case 1", "default"]
    assert inner.reads() == inner.writes() == ()
    assert inner.programs[0].reads() == (x[0:2],)
    assert inner.programs[0].writes() == (x[2:4],)
    assert Execute(step.compute_set, flag).writes() == (flag,)
    assert [one.program for one in Repeat(2, step).parts()] == [step]
    function = graph.addFunction(inner)
    assert Call(function).parts() == ()
    assert Call(function).contains().function is function


def test_a_kind_that_leaves_out_what_it_reads_writes_or_contains_cannot_be_made():
    class Mute(Program):
        pass

    class Half(Program):
        def reads(self):
            return ()

        def contains(self):
            return Nothing()

    with pytest.raises(TypeError, match=r"(?s)Mute.*contains.*reads.*writes"):
        Mute()
    with pytest.raises(TypeError, match=r"Half.*writes"):
        Half()


def test_only_a_program_becomes_a_function(graph):
    with pytest.raises(PoplarTypeError, match="addFunction takes a program, got 5"):
        graph.addFunction(5)


def test_execute_takes_a_compute_set_and_a_place_for_the_and_of_the_results(graph, x, flag):
    compute = graph.addComputeSet()
    assert Execute(compute).result is None
    assert Execute(compute, flag, "name").result is flag
    assert Execute(compute, "name").name == "name"
    for wrong in (lambda: Execute("compute"), lambda: Execute(compute, x[0]), lambda: Execute(compute, 3)):
        with pytest.raises(PoplarTypeError):
            wrong()
    with pytest.raises(TensorShapeError):
        Execute(compute, graph.addVariable(BOOL, [2]))
    with pytest.raises(TensorWriteError):
        Execute(compute, graph.addConstant(BOOL, [1], True))


@pytest.mark.parametrize("wrong", [
    lambda step: Sequence([3]), lambda step: Sequence(step.compute_set), lambda step: Repeat(2, None),
    lambda step: Repeat(2.5, step), lambda step: Repeat("2", step), lambda step: Sequence().add("x"), lambda step: Sync("INTERNAL"),
])  # fmt: skip
def test_what_is_no_program_is_refused(step, wrong):
    with pytest.raises(PoplarTypeError):
        wrong(step)


def test_a_compute_set_in_a_sequence_gets_a_hint(graph):
    with pytest.raises(PoplarTypeError, match=r"Execute\(computeSet\) is a program"):
        Sequence([graph.addComputeSet()])


def test_a_count_is_not_negative(step):
    assert Repeat(0, step).count == 0
    with pytest.raises(ControlProgramError):
        Repeat(-1, step)


@pytest.mark.parametrize("make", [
    lambda p, s: If(p, s, s), lambda p, s: RepeatWhileTrue(s, p, s), lambda p, s: RepeatWhileFalse(s, p, s),
    lambda p, s: AbortOnCondition(p),
])  # fmt: skip
def test_a_predicate_is_one_integer_or_bool(graph, x, step, make):
    for type in (BOOL, INT, UNSIGNED_INT):
        assert make(graph.addVariable(type, [1]), step).predicate.elementType() is type
    with pytest.raises(PoplarTypeError, match=r"predicate of \w+ is of type BOOL or an integer type, got 'x' FLOAT \[\]"):
        make(x[0], step)
    with pytest.raises(TensorShapeError, match=r"predicate of \w+ has one element, got 'many' BOOL \[2\]"):
        make(graph.addVariable(BOOL, [2], "many"), step)
    with pytest.raises(PoplarTypeError, match="takes a tensor"):
        make(True, step)


def test_the_two_loops_are_of_different_kinds(flag, step):
    assert not isinstance(RepeatWhileFalse(step, flag, step), RepeatWhileTrue)
    assert isinstance(RepeatWhileFalse(step, flag, step), Program)


def test_an_if_without_an_else_does_nothing_else(flag, step):
    assert isinstance(If(flag, step).otherwise, Sequence)


def test_switch_has_each_case_once(graph, flag, step):
    index = graph.addVariable(UNSIGNED_INT, [], "index")
    switch = Switch(index, {0: step, 7: step})
    switch.add((1 << 32) - 1, step)
    assert [value for value, _ in switch.cases] == [0, 7, (1 << 32) - 1]
    assert switch.default is None
    kept = Sequence([switch]).programs[0]
    switch.add(8, step)
    assert len(kept.cases) == 3
    with pytest.raises(ControlProgramError, match="case 7 already"):
        switch.add(7, step)
    with pytest.raises(ControlProgramError, match="cannot have a case -1: its index is UNSIGNED_INT"):
        switch.add(-1, step)
    assert Switch(graph.addVariable(INT, []), [(-1, step)]).cases[0][0] == -1
    with pytest.raises(PoplarTypeError):
        switch.add(1.5, step)
    with pytest.raises(PoplarTypeError, match="INT or UNSIGNED_INT"):
        Switch(flag, [])


def test_call_checks_the_tensors_of_a_host_function(graph, x, step):
    function = graph.addFunction(step)
    assert Call(function).function is function
    host = graph.addHostFunction("f", [(FLOAT, 4)], [(FLOAT, 1)])
    call = Call(host, [x], [x[0]])
    assert (call.inputs, call.outputs) == ([x], [x[0]])
    with pytest.raises(PoplarTypeError, match="takes no tensors"):
        Call(function, [x])
    with pytest.raises(TensorShapeError, match="host function 'f' has 1 inputs, got 0"):
        Call(host)
    with pytest.raises(TensorShapeError, match="input 0 of host function 'f' has 4 elements"):
        Call(host, [x[0:2]], [x[0]])
    with pytest.raises(PoplarTypeError, match="output 0 of host function 'f' is of type FLOAT"):
        Call(host, [x], [graph.addVariable(INT, [1])])
    with pytest.raises(TensorWriteError, match="host function 'f' cannot write to"):
        Call(host, [x], [graph.addConstant(FLOAT, [1], 0)])
    with pytest.raises(PoplarTypeError):
        Call(step)


def test_print_takes_a_title_or_uses_the_tensors_name(x):
    assert (PrintTensor("title", x).title, PrintTensor("title", x).tensor) == ("title", x)
    assert (PrintTensor(x).title, PrintTensor(x).tensor) == ("x", x)
    assert PrintTensor(x, "title").title == "title"
    with pytest.raises(PoplarTypeError):
        PrintTensor("title")
    with pytest.raises(PoplarTypeError):
        PrintTensor("title", [1, 2])


def test_the_rest_keep_what_they_are_given(graph, x):
    assert Abort("enough").message == "enough"
    assert Abort().message == ""
    assert ErrorProgram("bad", x).tensor is x
    assert Sync(SyncType.GLOBAL).type is SyncType.GLOBAL
    assert WriteUndef(x).tensor is x
    with pytest.raises(TensorWriteError):
        WriteUndef(graph.addConstant(FLOAT, [1], 0))


def test_counting_cycles_wraps_what_the_sequence_holds_by_then(graph, step):
    sequence = Sequence([step, step], "body")
    cycles = cycleCount(graph, sequence, 3, SyncType.INTERNAL, "cycles")
    sequence.add(step)
    count, rest = sequence.programs
    assert isinstance(count, CycleCount)
    assert (count.result, count.tile, count.type, rest) == (cycles, 3, SyncType.INTERNAL, step)
    assert count.body.programs == [step, step]
    assert (cycles.elementType(), cycles.shape(), cycles.getDebugStr()) == (UNSIGNED_INT, [2], "cycles")
    assert len(graph.getTileMapping(cycles)[3]) == 1
    stamp = cycleStamp(graph, sequence, 4)
    assert isinstance(sequence.programs[-1], CycleStamp)
    assert sequence.programs[-1].result == stamp
    with pytest.raises(InvalidTileMapping):
        cycleCount(graph, sequence, 16)


def test_what_is_added_to_a_sequence_needs_one(graph, step):
    seed = graph.addVariable(UNSIGNED_INT, [2], "seed")
    for name, add in (
        ("cycleCount", lambda: cycleCount(graph, step, 0)),
        ("cycleStamp", lambda: cycleStamp(graph, step, 0)),
        ("setFloatingPointBehaviour", lambda: setFloatingPointBehaviour(graph, step, FloatingPointBehaviour())),
        ("setStochasticRounding", lambda: setStochasticRounding(graph, step, False)),
        ("setSeed", lambda: setSeed(graph, seed, 0, step)),
    ):
        with pytest.raises(PoplarTypeError, match=f"{name} takes the Sequence that it adds to, got <Execute"):
            add()


def test_settings_of_the_machine_are_steps(graph, x):
    sequence = Sequence()
    seed = graph.addVariable(UNSIGNED_INT, [2], "seed")
    setFloatingPointBehaviour(graph, sequence, FloatingPointBehaviour(oflo=False))
    setStochasticRounding(graph, sequence, True)
    setSeed(graph, seed, 7, sequence)
    floating, rounding, seeding = sequence.programs
    assert isinstance(floating, SetFloatingPointBehaviour)
    assert (floating.behaviour.inv, floating.behaviour.oflo) == (True, False)
    assert isinstance(rounding, SetStochasticRounding)
    assert rounding.enabled is True
    assert isinstance(seeding, SetSeed)
    assert (seeding.seed, seeding.modifier) == (seed, 7)
    with pytest.raises(PoplarTypeError):
        setFloatingPointBehaviour(graph, sequence, True)
    with pytest.raises(PoplarTypeError, match="setStochasticRounding takes True or False, got 'false'"):
        setStochasticRounding(graph, sequence, "false")
    with pytest.raises(PoplarTypeError, match="UNSIGNED_INT, got 'x'"):
        setSeed(graph, x, 7, sequence)
    with pytest.raises(TensorShapeError):
        setSeed(graph, seed[0], 7, sequence)
