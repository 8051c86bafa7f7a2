"""When variables live: what the pass finds, held against programs that are run."""

import functools
import random
from unittest.mock import patch

import numpy as np
import pytest
from engine_builder import tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import (
    BOOL,
    FLOAT,
    INT,
    UNSIGNED_INT,
    Engine,
    Graph,
    InOut,
    Input,
    MultiVertex,
    Output,
    Vector,
    VectorList,
    Vertex,
    compileGraph,
    cycleStamp,
    ipu,
    popops,
)
from pypoplar.codelet.codelet import Codelet
from pypoplar.compiler.compile import compile_graph
from pypoplar.compiler.liveness import atoms
from pypoplar.compiler.liveness.full_writes import WORKER, surely_stored_fields
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import (
    AbortOnCondition,
    Call,
    Copy,
    Execute,
    If,
    PrintTensor,
    Repeat,
    RepeatWhileFalse,
    RepeatWhileTrue,
    Sequence,
    Switch,
    WriteUndef,
)

SEEDS = st.integers(0, 2**32 - 1)


class Chaos:
    """Random programs of copies and control flow on a few hidden variables; a stream takes what they hold."""

    def __init__(self, seed, programs=(1, 1, 2), functions=(0, 1, 2, 3), passing=0):
        self.random = random.Random(seed)
        self.passing = passing  # how often values are made and used up on the spot, for each other step
        self.device = tiny(2)
        self.graph = Graph(self.device)
        self.hidden = [self._variable(f"h{number}", self.random.choice([1, 2, 2, 3])) for number in range(7)]
        self.bits = {name: self.graph.addHostToDeviceFIFO(name, INT, 1) for name in ("index", "more", "stop")}
        self.streams = {size: self.graph.addDeviceToHostFIFO(f"taken{size}", INT, size) for size in (1, 2, 3)}
        self.values = 100
        self.kept = self._variable("kept", 3)
        self.graph.createHostRead("kept", self.kept)
        self.functions = []
        for _ in range(self.random.choice(functions)):
            self.functions.append(self.graph.addFunction(self._sequence(2)))
        self.programs = [self._sequence(3) for _ in range(self.random.choice(programs))]

    def _variable(self, name, size):
        tensor = self.graph.addVariable(INT, [size], name)
        for element in range(size):
            self.graph.setTileMapping(tensor[element], 1 if self.random.random() < 0.2 else 0)
        return tensor

    def _sequence(self, depth):
        made = [self._fill(depth, whole=True) for _ in range(0 if self.passing else self.random.choice([0, 0, 1, 3]))]
        return Sequence([*made, *(self._step(depth) for _ in range(self.random.randint(1, 5)))])

    def _step(self, depth):
        kinds = [self._fill] * 4 + [self._copy] * 2 + [self._keep] + [self._take] * 4 + [self._undefined]
        kinds += [self._repeat, self._while, self._if, self._switch, self._call, self._call] if depth else []
        kinds += [self._pass] * (self.passing * len(kinds))
        return self.random.choice(kinds)(depth)

    def _part(self, tensor):
        """A tensor, or a part of it."""
        size = tensor.numElements()
        begin = self.random.randint(0, size - 1) if self.random.random() < 0.25 else 0
        return tensor[begin : self.random.randint(begin + 1, size) if self.random.random() < 0.25 else size]

    def _fill(self, depth, whole=False):
        part = self.random.choice(self.hidden)
        return self._fill_part(part if whole else self._part(part))

    def _fill_part(self, part):
        self.values += part.numElements()
        values = np.arange(self.values, self.values + part.numElements())
        constant = self.graph.addConstant(INT, part.shape(), values)
        self.graph.setTileMapping(constant, 1)
        return Copy(constant, part)

    def _copy(self, depth):
        source, target = self.random.sample(self.hidden, 2)
        size = min(source.numElements(), target.numElements())
        return Copy(source[:size], target[:size])

    def _pass(self, depth):
        """Values that are there from here to here, in whole variables or in all their parts."""
        chosen = self.random.sample(self.hidden, self.random.randint(1, 3))
        parts = [part for one in chosen for part in ([one] if self.random.random() < 0.6 else [one[:1], one[1:]])]
        made = [self._fill_part(part) for part in parts if part.numElements()]
        return Sequence([*made, *(Copy(one, self.streams[one.numElements()]) for one in chosen)])

    def _keep(self, depth):
        source = self.random.choice(self.hidden)
        return Copy(source, self.kept[: source.numElements()])

    def _take(self, depth):
        part = self._part(self.random.choice(self.hidden))
        return Copy(part, self.streams[part.numElements()])

    def _undefined(self, depth):
        return WriteUndef(self._part(self.random.choice(self.hidden)))

    def _predicate(self, name):
        """One element of a hidden variable, and the program that gets it from the host."""
        tensor = self.random.choice(self.hidden)
        return tensor[0], Copy(self.bits[name], tensor[0:1])

    def _repeat(self, depth):
        return Repeat(self.random.choice([0, 1, 2, 2, 3]), self._sequence(depth - 1))

    def _while(self, depth):
        kind, name = self.random.choice([(RepeatWhileTrue, "more"), (RepeatWhileFalse, "stop")])
        predicate, get = self._predicate(name)
        before = self._sequence(0) if self.random.random() < 0.5 else Sequence()
        return kind(Sequence([before, get]), predicate, self._sequence(depth - 1))

    def _if(self, depth):
        predicate, get = self._predicate("more")
        otherwise = self._sequence(depth - 1) if self.random.random() < 0.6 else None
        return Sequence([get, If(predicate, self._sequence(depth - 1), otherwise)])

    def _switch(self, depth):
        index, get = self._predicate("index")
        default = self._sequence(depth - 1) if self.random.random() < 0.5 else None
        return Sequence([get, Switch(index, [(0, self._sequence(depth - 1)), (1, self._sequence(depth - 1))], default)])

    def _call(self, depth):
        return Call(self.random.choice(self.functions)) if self.functions else Sequence()

    def taken(self, share, seed):
        """What the streams took and the handle showed in some runs of an executable with or without shared memory."""
        executable = compile_graph(self.graph, self.programs, share_memory=share)
        engine = Engine(executable, mode="interpret")
        numbers, taken = random.Random(seed), []
        left = [60]

        def give(name, array):
            left[0] -= 1
            if name == "index":
                array[:] = numbers.randrange(3)
            else:
                array[:] = (numbers.random() < 0.5 and left[0] > 0) == (name == "more")

        for name in self.bits:
            engine.connectStreamToCallback(name, functools.partial(give, name))
        for size in self.streams:
            engine.connectStreamToCallback(f"taken{size}", lambda array: taken.append(array.tolist()))
        engine.load(self.device)
        for number in [numbers.randrange(len(self.programs)) for _ in range(4 + len(self.programs))]:
            left[0] = 60
            engine.run(number)
            if numbers.random() < 0.5:
                taken.append(engine.readTensor("kept").tolist())
        return taken, executable


@examples(100)
@given(SEEDS, SEEDS)
def test_what_programs_hold_with_shared_memory_is_what_they_hold_without(seed, run):
    made = Chaos(seed)
    (shared, executable), (apart, _) = (made.taken(share, run) for share in (True, False))
    assert shared == apart
    for tile in range(2):
        needed = executable.lives.live_bytes(len(executable.steps), tile).max()
        assert needed <= executable.memory.not_always_live[tile] - executable.memory.exchange_buffers[tile]


@examples(40)
@given(SEEDS, SEEDS)
def test_many_programs_and_functions_hold_with_shared_memory_what_they_hold_without(seed, run):
    made = Chaos(seed, programs=range(3, 13), functions=range(3, 13), passing=3)
    (shared, _), (apart, _) = (made.taken(share, run) for share in (True, False))
    assert shared == apart


@examples(60)
@given(SEEDS, SEEDS, st.integers(0, 3))
def test_variables_too_finely_cut_to_be_divided_hold_with_shared_memory_what_they_hold_without(seed, run, parts):
    made = Chaos(seed, passing=2)
    with patch.object(atoms, "MOST_PARTS", parts):
        (shared, _), (apart, _) = (made.taken(share, run) for share in (True, False))
    assert shared == apart


@examples(40)
@given(SEEDS, st.integers(1, 5))
def test_what_programs_read_and_write_is_the_same_looked_at_part_by_part(seed, at_once):
    made = Chaos(seed, programs=range(1, 5), functions=range(5))
    whole = compileGraph(made.graph, made.programs)
    with patch.object(atoms, "AT_ONCE", at_once):
        parts = compileGraph(made.graph, made.programs)
    for column in ("always", "first_range", "range_begin", "range_end", "first", "tile", "bytes", "offset", "span"):
        np.testing.assert_array_equal(getattr(parts.lives, column), getattr(whole.lives, column))


def test_a_life_in_many_programs_covers_them_all(bench):
    """Program 0 needs x and y at once; five more use them one after the other."""
    graph = bench.graph
    x, y = bench.variable("x"), bench.variable("y")
    other = bench.variable("other")
    graph.setInitialValue(other, 2)
    programs = [Sequence([bench.write(x), Copy(other, y), bench.read(x)])]
    programs += [Sequence([bench.write(x), bench.read(x), bench.write(y), bench.read(y)]) for _ in range(5)]
    executable = compileGraph(graph, programs)
    assert executable.shares_memory is False
    engine = Engine(executable, mode="interpret")
    engine.load(bench.device)
    engine.run(0)
    assert engine.readTensor("sink").tolist() == [1, 1, 1, 1]


class Copies(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = self.x[i]


class Adds(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] += 1.0


class Marks(Vertex):
    """Stores only if there is something to mark."""

    x: Input[Vector[FLOAT]]
    y: Output[FLOAT]

    def compute(self):
        if self.x[0] > 1.0:
            self.y = 1.0


class Bench:
    """A graph with a source that is always live, and what makes programs of it short to write."""

    def __init__(self):
        self.device = tiny(4)
        self.graph = Graph(self.device)
        self.source = self.variable("source", 4)
        self.graph.setInitialValue(self.source, 1)
        self.sink = self.variable("sink", 4)
        self.graph.createHostRead("sink", self.sink)

    def variable(self, name, size=4, type=FLOAT, tile=0):
        tensor = self.graph.addVariable(type, [size], name)
        self.graph.setTileMapping(tensor, tile)
        return tensor

    def write(self, tensor):
        return Copy(self.source[: tensor.numElements()], tensor)

    def read(self, tensor):
        return Copy(tensor, self.sink[: tensor.numElements()])

    def vertex(self, *vertices):
        compute_set = self.graph.addComputeSet("set")
        for codelet, fields in vertices:
            self.graph.setTileMapping(self.graph.addVertex(compute_set, codelet, fields), 0)
        return Execute(compute_set)

    def life(self, programs, name):
        """ "always", "unused", or the ranges of a variable's life as names of steps, where every copy is a step."""
        options = {"pypoplar.run_out_of_memory": True, "pypoplar.merge_copies": False}
        executable = compileGraph(self.graph, programs, options)
        lives, number = executable.lives, executable.variable_names.index(name)
        if lives.always[number]:
            return "always"
        ranges = range(lives.first_range[number], lives.first_range[number + 1])
        return [(int(lives.range_begin[one]), int(lives.range_end[one])) for one in ranges] or "unused"


@pytest.fixture
def bench():
    return Bench()


def test_a_variable_lives_from_its_definition_to_its_last_use(bench):
    x, y = bench.variable("x"), bench.variable("y")
    program = Sequence([bench.write(bench.sink), bench.write(x), Copy(x, y), bench.write(bench.sink), bench.read(y)])
    assert bench.life(program, "x") == [(2, 4)]
    assert bench.life(program, "y") == [(3, 6)]
    assert bench.life(program, "source") == bench.life(program, "sink") == "always"


def test_what_no_program_uses_does_not_live(bench):
    bench.variable("x")
    assert bench.life(bench.write(bench.sink), "x") == "unused"


def test_what_is_read_before_it_is_written_in_full_is_always_live(bench):
    x = bench.variable("x")
    assert bench.life(bench.read(x), "x") == "always"
    assert bench.life(Sequence([bench.write(x[:3]), bench.read(x), bench.write(x)]), "x") == "always"
    assert bench.life(Sequence([bench.write(x[:3]), bench.read(x[:3])]), "x") != "always"


def test_parts_that_cover_a_variable_define_it(bench):
    x = bench.variable("x")
    assert bench.life(Sequence([bench.write(x[2:]), bench.write(x[:1]), bench.write(x[1:2]), bench.read(x)]), "x") == [(1, 5)]


def test_a_partial_write_does_not_define_a_variable_that_is_cut_into_too_many_parts_to_be_divided(bench, monkeypatch):
    monkeypatch.setattr(atoms, "MOST_PARTS", 50)
    count = 2 * (atoms.MOST_PARTS + 1)
    x = bench.variable("x", count)
    every_second = x.subSample(2, 0)
    ones = bench.graph.addConstant(FLOAT, [1], 1)
    bench.graph.setTileMapping(ones, 0)
    partial = Copy(ones.broadcast(count // 2, 0), every_second)
    assert bench.life(Sequence([partial, bench.read(x[:4])]), "x") == "always"
    assert bench.life(Sequence([partial, bench.read(every_second[:4])]), "x") == "always"
    assert bench.life(Sequence([Copy(ones.broadcast(count, 0), x), partial, bench.read(x[:4])]), "x") == [(1, 4)]


def test_a_variable_of_few_parts_is_divided_beside_one_that_is_cut_into_many(bench, monkeypatch):
    monkeypatch.setattr(atoms, "MOST_PARTS", 50)
    fine, x = bench.variable("fine", 200), bench.variable("x")
    ones = bench.graph.addConstant(FLOAT, [1], 1)
    bench.graph.setTileMapping(ones, 0)
    cut = Copy(ones.broadcast(100, 0), fine.subSample(2, 0))
    assert bench.life(Sequence([cut, bench.write(x[:2]), bench.write(x[2:]), bench.read(x)]), "x") == [(2, 5)]


def test_outputs_that_cover_a_variable_define_it(bench):
    x = bench.variable("x")
    halves = [(Copies, {"x": bench.source[:2], "y": x[begin : begin + 2]}) for begin in (0, 2)]
    assert bench.life(Sequence([bench.vertex(*halves), bench.read(x)]), "x") == [(1, 3)]
    assert bench.life(Sequence([bench.vertex(halves[0]), bench.read(x)]), "x") == "always"


def test_an_inout_and_an_output_that_may_not_be_written_are_read(bench):
    x, y = bench.variable("x"), bench.variable("y", 1)
    assert bench.life(Sequence([bench.vertex((Adds, {"x": x})), bench.read(x)]), "x") == "always"
    marks = bench.vertex((Marks, {"x": bench.source, "y": y[0]}))
    assert bench.life(Sequence([marks, bench.read(y)]), "y") == "always"
    assert bench.life(Sequence([bench.write(y), marks, bench.read(y)]), "y") == [(1, 4)]


def test_what_a_named_sequence_writes_is_written_before_what_follows_it(bench):
    x = bench.variable("x")
    program = Sequence([Sequence([bench.write(bench.sink), bench.write(x)], name="inner"), bench.write(bench.sink), bench.read(x)])
    assert bench.life(program, "x") == [(2, 5)]


def test_a_life_over_the_back_edge_covers_the_loop(bench):
    x, y = bench.variable("x"), bench.variable("y")
    step = Sequence(
        [bench.write(bench.sink), bench.write(y), bench.read(y), bench.read(x), bench.write(x), bench.write(bench.sink)]
    )
    program = Sequence([bench.write(x), Repeat(3, step), bench.write(bench.sink)])
    assert bench.life(program, "x") == [(1, 8)]
    assert bench.life(program, "y") == [(3, 5)]


def test_what_a_loop_leaves_behind_lives_over_its_condition(bench):
    x, flag = bench.variable("x"), bench.variable("flag", 1, INT)
    stream = bench.graph.addHostToDeviceFIFO("flag", INT, 1)
    get = Copy(stream, flag)
    loop = RepeatWhileTrue(Sequence([get, bench.write(bench.sink)]), flag[0], bench.write(x))
    assert bench.life(Sequence([loop, bench.read(x)]), "x") == "always"
    assert bench.life(Sequence([bench.write(x), loop, bench.read(x)]), "x") == [(1, 6)]
    assert bench.life(Sequence([bench.write(x), loop, bench.read(x)]), "flag") == [(2, 4)]


def test_a_repeat_that_may_be_for_nothing_defines_nothing(bench):
    x = bench.variable("x")
    assert bench.life(Sequence([Repeat(0, bench.write(x)), bench.read(x)]), "x") == "always"
    assert bench.life(Sequence([Repeat(1, bench.write(x)), bench.read(x)]), "x") == [(1, 3)]


@pytest.mark.parametrize("where", ["flat", "loop", "function"])
def test_all_branches_have_to_define(bench, where):
    x, flag = bench.variable("x"), bench.variable("flag", 1, INT)
    bench.graph.setInitialValue(flag, 1)

    def life(choice):
        inner = Sequence([choice, bench.read(x)])
        wrapped = {
            "flat": lambda: inner,
            "loop": lambda: Repeat(2, inner),
            "function": lambda: Call(bench.graph.addFunction(inner)),
        }
        return bench.life(wrapped[where](), "x")

    write, other = bench.write(x), bench.write(bench.sink)
    assert life(If(flag[0], write, bench.write(x))) != "always"
    assert life(If(flag[0], write, other)) == "always"
    assert life(If(flag[0], write)) == "always"
    assert life(Switch(flag[0], [(0, write), (1, bench.write(x))], bench.write(x))) != "always"
    assert life(Switch(flag[0], [(0, write), (1, bench.write(x))])) == "always"
    assert life(Switch(flag[0], [(0, write), (1, other)], bench.write(x))) == "always"


@pytest.mark.parametrize("inner", ["branch", "loop", "function"])
def test_what_a_round_writes_before_it_is_read_within_does_not_live_from_round_to_round(bench, inner):
    x, flag = bench.variable("x"), bench.variable("flag", 1, INT)
    bench.graph.setInitialValue(flag, 1)
    reads = {
        "branch": lambda: If(flag[0], bench.read(x), bench.write(bench.sink)),
        "loop": lambda: Repeat(2, bench.read(x)),
        "function": lambda: Call(bench.graph.addFunction(bench.read(x))),
    }[inner]
    assert bench.life(Repeat(2, Sequence([bench.write(x), reads()])), "x") != "always"
    assert bench.life(Repeat(2, Sequence([reads(), bench.write(x)])), "x") == "always"


def test_what_lives_over_a_call_lives_in_the_function(bench):
    x, y = bench.variable("x"), bench.variable("y")
    inner = bench.graph.addFunction(bench.write(bench.sink))
    function = bench.graph.addFunction(Sequence([bench.write(y), Call(inner), bench.read(y)]))
    program = Sequence([bench.write(x), Call(function), bench.read(x), Call(function)])
    assert bench.life(program, "x") == [(1, 3), (3, 5), (5, 6)]
    assert bench.life(program, "y") == [(3, 5), (5, 6)]


def test_what_a_function_leaves_behind_lives_to_its_end(bench):
    x = bench.variable("x")
    function = bench.graph.addFunction(Sequence([bench.write(bench.sink), bench.write(x), bench.write(bench.sink)]))
    assert bench.life(Sequence([Call(function), bench.read(x)]), "x") == [(1, 2), (3, 5)]
    assert bench.life(Call(function), "x") == [(2, 3)]
    reads = bench.graph.addFunction(Sequence([bench.write(bench.sink), bench.read(x), bench.write(bench.sink)]))
    assert bench.life(Sequence([bench.write(x), Call(reads)]), "x") == [(1, 2), (2, 4)]


def test_what_lives_through_a_condition_lives_in_the_function_that_it_calls(bench):
    x, flag = bench.variable("x"), bench.variable("flag", 1, INT)
    get = Copy(bench.graph.addHostToDeviceFIFO("flag", INT, 1), flag)
    function = bench.graph.addFunction(bench.write(bench.sink))

    def lives(*, before=(), first=(), head=(), body=(), after=()):
        """Whether x lives in the function, which the condition calls behind `first`; what is called has a range of its own."""
        condition = Sequence([get, *first, Call(function), *head])
        loop = RepeatWhileTrue(condition, flag[0], Sequence([bench.write(bench.sink), *body]))
        return len(bench.life(Sequence([*before, loop, *after]), "x")) > 1

    write, read = bench.write(x), bench.read(x)
    again = bench.write(x)
    assert lives(before=[write], after=[read])
    assert lives(before=[write], body=[read])
    assert lives(before=[write], head=[read])
    assert lives(before=[write], first=[read])  # the condition's next round reads it
    assert lives(before=[write], body=[again], after=[read])  # the body may not run
    assert lives(before=[write], body=[again], head=[read])
    assert lives(before=[write], body=[read, again])
    assert not lives(before=[write], first=[read], body=[again])
    assert not lives(before=[write, read])
    assert not lives(head=[write, read])
    assert not lives(body=[write, read])
    assert not lives(body=[write, read], head=[again, bench.read(x)])


def test_what_a_function_reads_lives_up_to_its_call(bench):
    x = bench.variable("x")
    other = bench.write(bench.sink)
    reads = bench.graph.addFunction(Sequence([other, bench.read(x)]))
    assert bench.life(Sequence([bench.write(x), other, other, Call(reads)]), "x") == [(1, 4), (4, 6)]
    assert bench.life(Sequence([other, Call(reads)]), "x") == "always"


def test_what_a_function_writes_does_not_live_before_its_call(bench):
    x = bench.variable("x")
    other = bench.write(bench.sink)
    writes = bench.graph.addFunction(Sequence([other, bench.write(x)]))
    program = Sequence([bench.write(x), bench.read(x), other, other, Call(writes), other, bench.read(x)])
    assert bench.life(program, "x") == [(1, 7), (8, 9)]
    assert bench.life(Sequence([other, other, Call(writes), other, bench.read(x)]), "x") == [(3, 5), (6, 7)]


def test_what_passes_from_program_to_program_is_always_live(bench):
    x = bench.variable("x")
    assert bench.life([bench.write(x), bench.read(x)], "x") == "always"
    assert bench.life([Sequence([bench.write(x), bench.read(x)]), Sequence([bench.write(x), bench.read(x)])], "x") == [
        (1, 3),
        (3, 5),
    ]


def test_predicates_results_clocks_prints_and_undefined_values(bench):
    flag, clock_program = bench.variable("flag", 1, BOOL), Sequence()
    clock = cycleStamp(bench.graph, clock_program, 0, name="clock")
    compute = bench.graph.addComputeSet("none")
    abort = Sequence([Execute(compute, flag[0]), bench.write(bench.sink), AbortOnCondition(flag[0])])
    assert bench.life(abort, "flag") == [(1, 3)]
    assert bench.life(AbortOnCondition(flag[0]), "flag") == "always"
    prints = Sequence([bench.write(bench.sink), clock_program, bench.write(bench.sink), PrintTensor(clock)])
    assert bench.life(prints, "clock") == [(2, 3)]
    x = bench.variable("x")
    assert bench.life(Sequence([bench.write(x), bench.read(x), bench.write(bench.sink), WriteUndef(x)]), "x") == [(1, 4)]
    assert bench.life(Sequence([WriteUndef(x), bench.write(bench.sink), bench.read(x)]), "x") == [(1, 3)]


def test_the_host_and_remote_buffers_read_and_write(bench):
    x, y, row = bench.variable("x"), bench.variable("y"), bench.variable("row", 1, UNSIGNED_INT)
    reverse = bench.graph.addHostFunction("reverse", [(FLOAT, 4)], [(FLOAT, 4)])
    rows = bench.graph.addRemoteBuffer("rows", FLOAT, 4, 2)
    number = bench.graph.addHostToDeviceFIFO("number", UNSIGNED_INT, 1)
    called = Sequence([bench.write(x), Call(reverse, [x], [y]), bench.write(bench.sink), bench.read(y)])
    assert bench.life(called, "x") == [(1, 2)]
    assert bench.life(called, "y") == [(2, 4)]
    remote = Sequence([Copy(number, row), Copy(rows, x, row), Copy(x, rows, row)])
    assert bench.life(remote, "x") == [(2, 4)]
    assert bench.life(remote, "row") == [(1, 4)]
    assert bench.life(Copy(rows, x, row), "row") == "always"


class Fields(MultiVertex):
    """Outputs of which each is stored to, or not, in another way."""

    x: Input[Vector[FLOAT]]
    always: Output[FLOAT]
    either: Output[FLOAT]
    one_way: Output[FLOAT]
    after_return: Output[FLOAT]
    shared: Output[Vector[FLOAT]]
    other_share: Output[Vector[FLOAT]]
    worker: Output[Vector[FLOAT]]
    own: Output[Vector[FLOAT]]
    others: Output[Vector[FLOAT]]
    renamed: Output[Vector[FLOAT]]
    every_second: Output[Vector[FLOAT]]
    not_the_first: Output[Vector[FLOAT]]
    conditional: Output[Vector[FLOAT]]
    both_ways: Output[Vector[FLOAT]]
    one_element: Output[Vector[FLOAT]]
    found: Output[Vector[FLOAT]]
    broken: Output[Vector[FLOAT]]
    in_vain: Output[Vector[FLOAT]]
    moved: Output[Vector[FLOAT]]
    rows: Output[VectorList[FLOAT]]
    row: Output[VectorList[FLOAT]]
    ragged: Output[VectorList[FLOAT]]
    slice: Output[Vector[FLOAT]]

    def compute(self, worker):  # noqa: C901, PLR0912 - a loop for each field
        self.always = 1.0
        self.either = 1.0 if self.x[0] > 0.0 else 2.0
        if self.x[1] > 0.0:
            self.one_way = 1.0
        for i in range(worker, len(self.shared), 6):
            self.shared[i] = 1.0
        for i in range(worker, len(self.other_share), 5):
            self.other_share[i] = 1.0
        self.worker[worker] = 1.0
        for i in range(len(self.own)):
            self.own[i] = 1.0
        n = len(self.x)
        for i in range(len(self.x)):
            self.others[i] = self.x[i]
        for i in range(n):
            total = 0.0
            for j in range(i):
                total += self.x[j]
            k = i
            self.renamed[k] = total
        for i in range(len(self.every_second)):
            self.every_second[2 * i] = 1.0
        for i in range(1, len(self.not_the_first)):
            self.not_the_first[i] = 1.0
        for i in range(len(self.conditional)):
            if self.x[i] > 0.0:
                self.conditional[i] = 1.0
        for i in range(len(self.both_ways)):
            if self.x[i] > 0.0:
                self.both_ways[i] = 1.0
            else:
                self.both_ways[i] = 2.0
        self.one_element[0] = 1.0
        for i in range(len(self.x)):
            self.found[int(self.x[i])] = 1.0
        for i in range(len(self.broken)):
            self.broken[i] = 1.0
            if self.x[i] > 0.0:
                break
        for _ in range(len(self.x)):
            for i in range(len(self.in_vain)):
                self.in_vain[i] = 1.0
        for i in range(len(self.moved)):
            i += 1
            self.moved[i] = 1.0
        for r in range(len(self.rows)):
            row = self.rows[r]
            for i in range(len(row)):
                row[i] = 1.0
        first = self.row[0]
        for i in range(len(first)):
            first[i] = 1.0
        for r in range(len(self.ragged)):
            part = self.ragged[r]
            for i in range(len(self.x)):
                part[i] = 1.0
        piece = self.slice[1:3]
        for i in range(len(piece)):
            piece[i] = 1.0
        if self.x[2] > 0.0:
            return
        self.after_return = 1.0


def test_the_fields_that_a_codelet_stores_to_whatever_happens():
    itself = dict.fromkeys(("always", "either", "rows"), "")
    own = {name: name for name in ("shared", "own", "both_ways")}
    others = {"others": "x", "renamed": "x", "worker": WORKER}
    assert surely_stored_fields(Codelet.of_class(Fields).typed, 6) == itself | own | others


def start(i, high):
    """An index, or the first: what is known of `k` where it returns early is not so at its end."""
    k = i
    if high:
        return k
    k = 0
    return k


class ChangedIndex(Vertex):
    """Outputs whose index is another one where it is used than where it was set."""

    x: Input[Vector[FLOAT]]
    in_a_branch: Output[Vector[FLOAT]]
    in_a_loop: Output[Vector[FLOAT]]
    behind_its_loop: Output[Vector[FLOAT]]
    as_it_was: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.in_a_branch)):
            k = i
            if self.x[0] > 0.0:
                k = 0
            self.in_a_branch[k] = 1.0
        for i in range(len(self.in_a_loop)):
            k = i
            while k > 2:
                k -= 1
            self.in_a_loop[k] = 1.0
        last = 0
        for last in range(len(self.x)):
            for last in range(len(self.behind_its_loop)):
                self.in_a_loop[0] = self.x[last]
            self.behind_its_loop[last] = 1.0
        for i in range(len(self.as_it_was)):
            k = i
            if self.x[0] > 0.0:
                self.in_a_loop[0] = 1.0
            self.as_it_was[k] = 1.0


def test_an_index_that_was_changed_since_is_not_taken_for_all():
    assert surely_stored_fields(Codelet.of_class(ChangedIndex).typed, 6) == {"as_it_was": "as_it_was"}


class Filled(Vertex):
    """What a method with two returns stores to before and behind the first."""

    x: Input[Vector[FLOAT]]
    before: Output[Vector[FLOAT]]
    behind: Output[Vector[FLOAT]]
    later: Output[FLOAT]

    def compute(self):
        self.later = self.fill()

    def fill(self):
        for i in range(len(self.before)):
            self.before[i] = 1.0
        if self.x[0] > 0.0:
            return 1.0
        for i in range(len(self.behind)):
            self.behind[i] = 1.0
        return 2.0


def test_what_a_function_stores_to_before_it_may_return_is_stored_to():
    assert surely_stored_fields(Codelet.of_class(Filled).typed, 6) == {"before": "before", "later": ""}


class OneOf(MultiVertex):
    """Outputs that some way, or some worker, leaves in part as they are."""

    x: Input[Vector[FLOAT]]
    index_of_one_branch: Output[Vector[FLOAT]]
    length_of_one_branch: Output[Vector[FLOAT]]
    started: Output[Vector[FLOAT]]
    shared_twice: Output[VectorList[FLOAT]]
    shared_by_row: Output[VectorList[FLOAT]]
    shared_by_element: Output[VectorList[FLOAT]]
    shared_in_two_ways: Output[VectorList[FLOAT]]

    def compute(self, worker):  # noqa: C901, PLR0912 - a loop for each field
        high = self.x[0] > 0.0
        for i in range(len(self.index_of_one_branch)):
            k = 0
            if high:
                k = i
                self.index_of_one_branch[k] = 1.0
            else:
                self.index_of_one_branch[k] = 2.0
        n = 0
        if high:
            n = len(self.length_of_one_branch)
            for i in range(n):
                self.length_of_one_branch[i] = 1.0
        else:
            for i in range(n):
                self.length_of_one_branch[i] = 2.0
        for i in range(len(self.started)):
            self.started[start(i, high)] = 1.0
        for r in range(worker, len(self.shared_twice), 6):
            row = self.shared_twice[r]
            for i in range(worker, len(row), 6):
                row[i] = 1.0
        for r in range(worker, len(self.shared_by_row), 6):
            row = self.shared_by_row[r]
            for i in range(len(row)):
                row[i] = 1.0
        for r in range(len(self.shared_by_element)):
            row = self.shared_by_element[r]
            for i in range(worker, len(row), 6):
                row[i] = 1.0
        if worker < 3:
            for r in range(worker, len(self.shared_in_two_ways), 6):
                row = self.shared_in_two_ways[r]
                for i in range(len(row)):
                    row[i] = 1.0
        else:
            for r in range(len(self.shared_in_two_ways)):
                row = self.shared_in_two_ways[r]
                for i in range(worker, len(row), 6):
                    row[i] = 1.0


def test_what_one_branch_or_one_worker_stores_to_is_not_taken_for_what_all_do():
    assert surely_stored_fields(Codelet.of_class(OneOf).typed, 6) == {"shared_by_row": "", "shared_by_element": ""}


class StoredAgain(MultiVertex):
    """Outputs that are stored to by an index or through a row that means something else by then, or only on the way to an end."""

    x: Input[Vector[FLOAT]]
    one_again: Output[Vector[FLOAT]]
    of_rows: Output[Vector[FLOAT]]
    row_of_before: Output[VectorList[FLOAT]]
    changed_row: Output[VectorList[FLOAT]]
    shared_by_two_rules: Output[VectorList[FLOAT]]
    behind_the_end: Output[FLOAT]

    def compute(self, worker):  # noqa: C901, PLR0912 - a loop for each field
        for i in range(len(self.one_again)):
            self.one_again[i] = 1.0
        self.one_again[0] = 2.0
        for r in range(len(self.row_of_before)):
            self.of_rows[r] = 1.0
        row = self.row_of_before[0]
        for r in range(len(self.row_of_before)):
            row = self.row_of_before[r]
        for r in range(len(self.row_of_before)):  # noqa: B007 - its variable is that of the loop before
            for i in range(len(row)):
                row[i] = 1.0
        for r in range(len(self.changed_row)):
            row = self.changed_row[r]
            for i in range(len(row)):
                row[i] = 1.0
                row = self.changed_row[0]
        if worker < 3:
            for r in range(worker, len(self.shared_by_two_rules), 6):
                row = self.shared_by_two_rules[r]
                for i in range(len(row)):
                    row[i] = 1.0
        else:
            for r in ipu.worker_range(worker, len(self.shared_by_two_rules)):
                row = self.shared_by_two_rules[r]
                for i in range(len(row)):
                    row[i] = 1.0
        if self.x[0] > 0.0:
            self.one_again[0] = 3.0
        else:
            return
        self.behind_the_end = 1.0


def test_what_an_index_or_a_row_was_before_and_what_comes_behind_an_end_counts_for_nothing():
    assert surely_stored_fields(Codelet.of_class(StoredAgain).typed, 6) == {"one_again": "one_again"}


class Ramp(Vertex):
    """As many elements as `x` has get a value; what `out` has beyond is left alone."""

    x: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.out[i] = self.x[i] + 1.0


class Own(Vertex, name="popops::Own"):
    """In a library's namespace, but nobody's but the user's."""

    x: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]

    def compute(self):
        if self.x[0] > 1.0:
            self.out[0] = 1.0


class Promising(Vertex, writes_all="out"):
    """The same stores, but the class says that they are all that is needed."""

    x: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]

    def compute(self):
        if self.x[0] > 1.0:
            self.out[0] = 1.0


def test_a_librarys_workers_write_all_of_what_they_divide(bench):
    popops.addCodelets(bench.graph)
    total = bench.variable("total")
    add = templateVertex("popops::BinaryOp1D", "ADD", FLOAT)
    vertex = bench.vertex((add, {"in1": bench.source, "in2": bench.source, "out": total}))
    assert bench.life(Sequence([bench.write(bench.sink), vertex, bench.read(total)]), "total") == [(2, 4)]


def test_what_is_promised_to_be_written_in_full_need_not_be_kept(bench):
    out, total = bench.variable("out"), bench.variable("total")
    vertices = [(Own, {"x": bench.source, "out": out}), (Promising, {"x": bench.source, "out": total})]
    program = Sequence([bench.vertex(*vertices), bench.read(out), bench.read(total)])
    assert bench.life(program, "out") == "always"
    assert bench.life(program, "total") == [(1, 4)]


@pytest.mark.parametrize("length", [3, 4])
def test_what_an_output_leaves_alone_keeps_its_value_from_run_to_run(bench, length):
    out, other = bench.variable("out"), bench.variable("other")
    ramp = bench.vertex((Ramp, {"x": bench.source[:length], "out": out}))
    programs = [bench.write(out), Sequence([ramp, bench.read(out)]), Sequence([bench.write(other), bench.read(other)])]
    life = bench.life(programs, "out")
    assert (life == "always") == (length < 4)
    engine = Engine(bench.graph, programs)
    engine.load()
    for program in (0, 2, 1):
        engine.run(program)
    assert engine.readTensor("sink").tolist() == [2.0] * length + [1.0] * (4 - length)
