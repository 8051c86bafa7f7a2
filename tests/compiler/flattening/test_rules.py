"""Rules are open to kinds from outside: each is held to what its program says, and appends only what an engine can run."""

import re

import numpy as np
import pytest
from engine_builder import Add, Bench, everywhere

from pypoplar import BOOL, FLOAT, INT, UNSIGNED_INT, ControlProgramError, PoplarTypeError, compileGraph
from pypoplar.compiler.flattening.flatten import RULES
from pypoplar.compiler.flattening.places import Places
from pypoplar.compiler.flattening.rules import Around, Leaf
from pypoplar.interface.opcodes import (
    BranchOperand,
    CallOperand,
    ComputeOperand,
    JumpOperand,
    MoveOperand,
    Opcode,
    RepeatEndOperand,
    RepeatOperand,
    ServiceOperand,
    StreamOperand,
    SyncOperand,
)
from pypoplar.program import Copy, Execute, Program, Sequence
from pypoplar.program.base import Calling, InTurn, Nothing, OneOf, Part, Rounds, Vertices

MADE = r"<Odd made at .*test_rules\.py:\d+>"


class Odd(Program):
    """Says what it is told to say."""

    def __init__(self, reads=(), writes=(), contents=None):
        super().__init__()
        self.said = reads, writes, contents or Nothing()

    def reads(self):
        return self.said[0]

    def writes(self):
        return self.said[1]

    def contains(self):
        return self.said[2]


class World(Bench):
    """Variables x and y [4], a flag, clocks, compute sets, a stream and a function."""

    def __init__(self):
        super().__init__()
        self.x, self.y = (self.variable(name, np.arange(4.0)) for name in "xy")
        self.flag, self.index, self.clock = (
            self.variable("flag", False, type=BOOL),
            self.variable("index", 0),
            self.clocks("clock", 0),
        )
        self.run, self.other = (self.execute(Add, value=self.index, amount=1).compute_set for _ in range(2))
        self.function = self.graph.addFunction(Sequence())
        self.stream = self.graph.addHostToDeviceFIFO("stream", FLOAT, 4)

    def clocks(self, name, tile):
        return self.variable(name, [0, 0], tile, UNSIGNED_INT)


@pytest.fixture
def world():
    return World()


@pytest.fixture
def refused(world, monkeypatch):
    """Checks what is said when a rule lowers a program; the rule is given the world, too."""

    def check(text, rule, reads=(), writes=(), contents=None):
        around = isinstance(contents, InTurn | OneOf | Rounds)
        leaf = Leaf(lambda flattening, _: rule(flattening, world))
        monkeypatch.setitem(RULES, Odd, Around(lambda flattening, _, parts: rule(flattening, world, parts)) if around else leaf)
        with pytest.raises(ControlProgramError, match=text if text.startswith("^") else rf"^the rule of {MADE} {text}"):
            compileGraph(world.graph, Sequence([Execute(world.run), Odd(reads, writes, contents)]))

    return check


def accepted(world, monkeypatch, rule, **said):
    monkeypatch.setitem(RULES, Odd, rule)
    return compileGraph(world.graph, Sequence([Execute(world.run), Odd(**said)]))


# What programs read and write


@pytest.mark.parametrize("rule", [
    lambda flattening, world: flattening.fetch(world.x),
    lambda flattening, world: flattening.transfer(flattening.internal_stream(FLOAT, 4), world.x, inward=False),
    lambda flattening, world: flattening.planned_copy(Copy(world.x, world.y)),
])  # fmt: skip
def test_a_rule_reads_what_its_program_names(world, refused, rule):
    refused(r"reads 'x' FLOAT \[4\], but its reads\(\) names nothing", rule, writes=(world.y,))
    refused(r"reads 'x' FLOAT \[4\], but its reads\(\) names 'x' FLOAT \[2\]", rule, (world.x[0:2],), (world.y,))
    refused(r"reads 'x' FLOAT \[4\], but its reads\(\) names 'y' FLOAT \[4\]", rule, (world.y,), (world.x,))


def test_a_value_that_decides_is_read(world, refused):
    refused(r"reads 'flag' BOOL \[\], but its reads\(\) names nothing", lambda flattening, world: flattening.branch(world.flag))
    refused(
        r"reads 'index' INT \[\], but its reads\(\) names",
        lambda flattening, world: flattening.value_place(world.index),
        (world.flag,),
    )


@pytest.mark.parametrize("rule", [
    lambda flattening, world: flattening.transfer(flattening.internal_stream(FLOAT, 4), world.y, inward=True),
    lambda flattening, world: flattening.planned_copy(Copy(world.x, world.y)),
])  # fmt: skip
def test_a_rule_writes_what_its_program_names(world, refused, rule):
    refused(r"writes 'y' FLOAT \[4\], but its writes\(\) names nothing", rule, (world.x,))
    refused(r"writes 'y' FLOAT \[4\], but its writes\(\) names 'y' FLOAT \[3\]", rule, (world.x,), (world.y[1:4],))


def test_results_and_clocks_are_written(world, refused):
    result = lambda flattening, world: flattening.execute(world.run, world.flag)  # noqa: E731
    refused(r"writes 'flag' BOOL \[\], but its writes\(\) names nothing", result, contents=Vertices(world.run))
    clock = lambda flattening, world: flattening.clock_place(world.clock)  # noqa: E731
    refused(r"writes 'clock' UNSIGNED_INT \[2\], but its writes\(\) names nothing", clock)


def test_a_rule_may_name_the_elements_in_other_ways(world, monkeypatch):
    x = world.x
    rules = Leaf(lambda flattening, program: [flattening.fetch(view) for view in (x, x[1:3], x.reverse(0))] and None)
    for reads in ((x,), (x.slice(0, 4),), (x[0:2], x[2:4]), (x.reshape([2, 2]),)):
        moved = [
            stream.elements for stream in accepted(world, monkeypatch, rules, reads=reads).streams if stream.kind == "internal"
        ]
        assert moved[:3] == [4, 2, 4]


def test_a_rule_writes_all_that_its_program_names(world, refused):
    def write(begin, end):
        return lambda flattening, world: flattening.transfer(
            flattening.internal_stream(FLOAT, end - begin), world.y[begin:end], inward=True
        )

    refused(r"does not write 'y' FLOAT \[4\], which its writes\(\) names", lambda flattening, world: None, writes=(world.y,))
    refused(r"does not write 'y' FLOAT \[4\], which its writes\(\) names", write(0, 3), writes=(world.y,))
    refused(r"does not write 'x' FLOAT \[4\], which its writes\(\) names", write(0, 4), writes=(world.y, world.x))


def test_values_and_clocks_lie_in_one_piece(world, refused):
    apart, pairs, three = (
        world.clocks("apart", [0, 1]),
        world.clocks("pairs", 0),
        world.variable("three", [0, 0, 0], type=UNSIGNED_INT),
    )
    for tensor, text in (
        (apart, "'apart' .*, which is on several tiles"),
        (three, "'three' "),
        (pairs.reverse(0), "'pairs' "),
        (three[0:1], "'three' "),
    ):
        refused(
            f"needs 8 bytes in one piece, got {text}",
            lambda flattening, world, tensor=tensor: flattening.clock_place(tensor),
            writes=(tensor,),
        )
    refused("needs 4 bytes in one piece, got 'pairs'", lambda flattening, world: flattening.branch(pairs), reads=(pairs,))


# Compute sets and functions


def test_a_rule_executes_the_compute_set_of_its_program(world, refused):
    execute = lambda flattening, world: flattening.execute(world.run, None)  # noqa: E731
    refused(r"executes <ComputeSet 'Add'>, but its contains\(\) is Nothing\(\): expected Vertices\(compute set\)", execute)
    refused(
        r"executes <ComputeSet 'Add'>, but its contains\(\) is Vertices\(compute_set=<ComputeSet 'Add_1'>\)",
        execute,
        contents=Vertices(world.other),
    )
    refused("does not execute <ComputeSet 'Add'>, which its contains", lambda flattening, world: None, contents=Vertices(world.run))


def test_a_rule_calls_the_function_of_its_program(world, refused):
    call = lambda flattening, world: flattening.call(world.function)  # noqa: E731
    refused(r"calls a function, but its contains\(\) is Nothing\(\): expected Calling\(function\)", call)
    refused(r"calls a function, but its contains\(\) is Calling\(", call, contents=Calling(world.graph.addFunction(Sequence())))
    refused(
        r"does not call the function that its contains\(\) names", lambda flattening, world: None, contents=Calling(world.function)
    )


# Rows


def row(operation, kind, *values):
    """A rule that appends a row."""
    return lambda flattening, world: flattening.row(operation, dict(zip(kind, values, strict=False)))


@pytest.mark.parametrize(("rule", "text"), [
    (row(99, ()), "appends what is no row: there is no operation 99"),
    (row(Opcode.JUMP, JumpOperand), r"appends what is no row: JUMP has other operands than none"),
    (row(Opcode.JUMP, CallOperand, 1), r"appends what is no row: JUMP has other operands than"),
    (row(Opcode.JUMP, JumpOperand, 1.0), "appends what is no row: 'float' object cannot be interpreted as an integer"),
    (row(Opcode.JUMP, JumpOperand, None), "appends what is no row: 'NoneType' object"),
    (lambda flattening, world: flattening.jump(), "leaves JUMP open: fill in the row to which it goes"),
    (lambda flattening, world: flattening.jump(10**7), "appends JUMP to row 10000000: expected 1 to 2, its own rows or the next"),
    (lambda flattening, world: flattening.jump(0), "appends JUMP to row 0: expected 1 to 2"),
    (lambda flattening, world: flattening.jump(-2), "appends JUMP to row -2: expected 1 to 2"),
    (row(Opcode.REPEAT_END, RepeatEndOperand, 0, 9), "appends REPEAT_END to row 9: expected 1 to 2"),
    (row(Opcode.END, ()), "appends END: programs and functions are ended and called for it"),
    (row(Opcode.RETURN, ()), "appends RETURN: programs and functions are ended and called for it"),
    (row(Opcode.CALL, CallOperand, 0), "appends CALL: programs and functions are ended and called for it"),
    (row(Opcode.COMPUTE, ComputeOperand, 7, -1, 0, -1), "appends the row COMPUTE 7 .*: the step is not the compute set's"),
    (row(Opcode.COMPUTE, ComputeOperand, 0, -1, 0, -1), "appends the row COMPUTE 0 .*: the step is not the compute set's"),
    (row(Opcode.SYNC, SyncOperand, 50), "appends the row SYNC 50 .*: operand 0 is no step"),
    (row(Opcode.MOVE, MoveOperand, 50, 0), "appends the row MOVE 50 .*: operand 0 is no move"),
    (row(Opcode.SERVICE, ServiceOperand, 999), "appends the row SERVICE 999 .*: operand 0 is no service"),
    (row(Opcode.STREAM_OUT, StreamOperand, 999, 0, 0), "appends the row STREAM_OUT 999 .*: operand 0 is no stream"),
])  # fmt: skip
def test_rows_name_what_is_there_and_stay_in_their_program(refused, rule, text):
    refused(text, rule)


def test_a_loop_counts_with_a_counter_that_is_there(world, refused):
    def loop(flattening, world, parts):
        flattening.row(
            Opcode.REPEAT, {RepeatOperand.COUNTER: 3, RepeatOperand.TIMES: 2, RepeatOperand.AFTER: flattening.next_row() + 3}
        )
        yield from parts
        flattening.row(Opcode.REPEAT_END, {RepeatEndOperand.COUNTER: 3, RepeatEndOperand.BODY: flattening.next_row() - 1})

    refused("^.*", loop, contents=Rounds(Part(Copy(world.x, world.y)), None))


UNDONE = r"asks for a service that nobody can do: services\[0\]"


@pytest.mark.parametrize(("service", "text"), [
    (("sing", {}), "asks for what is no service: 'sing' is not a valid ServiceKind"),
    (("print", {}), "asks for what is no service: the service print: shape, stream, title surplus or missing"),
    (("abort", {"message": "m", "location": "l", "x": 1}), "asks for what is no service: the service abort: x surplus"),
    (("print", {"title": "t", "stream": 999, "shape": [4]}), rf"{UNDONE}\.stream is 999: expected"),
    (("print", {"title": 5, "stream": 1, "shape": [4]}), rf"{UNDONE}\.title is not a text"),
    (("judge", {"compute": 0, "name": "n"}), rf"{UNDONE}: there is nothing to judge by"),
])  # fmt: skip
def test_services_are_of_a_kind_and_can_be_done(refused, service, text):
    kind, details = service
    refused(text, lambda flattening, world: flattening.serve(kind, **details))


def test_a_tensor_goes_over_a_stream_of_its_own_size_and_type(world, refused):
    def out(elements, type):
        return lambda flattening, world: flattening.transfer(flattening.internal_stream(type, elements), world.x, inward=False)

    refused(r"moves 'x' FLOAT \[4\] over a stream of FLOAT \[3\]", out(3, FLOAT), reads=(world.x,))
    refused(r"moves 'x' FLOAT \[4\] over a stream of INT \[4\]", out(4, INT), reads=(world.x,))
    refused(
        r"moves 'x' FLOAT \[4\] over stream 99: expected 0 to 0",
        lambda flattening, world: flattening.transfer(99, world.x, inward=False),
        reads=(world.x,),
    )
    users = lambda flattening, world: flattening.transfer(flattening.add_stream(world.stream), world.x, inward=False)  # noqa: E731
    refused(r"appends the row STREAM_OUT .*: the stream has the other direction", users, reads=(world.x,))


def test_moves_stay_in_the_tiles_memories(refused):
    def move(flattening, world):
        place, beyond = Places(np.zeros(1, int), np.zeros(1, int)), Places(np.zeros(1, int), np.full(1, 1 << 40))
        flattening.row(
            Opcode.MOVE,
            {MoveOperand.MOVE: flattening.moves.add(place, beyond, np.full(1, 4), np.zeros(1, int)), MoveOperand.STEP: 0},
        )

    refused(r"^what the rules of Execute, Odd append does not fit together: the end of moves\.target in list", move)


# Parts


def copies(world, count=2):
    return tuple(Part(Copy(world.x, world.y)) for _ in range(count))


@pytest.mark.parametrize(("rule", "text"), [
    (lambda flattening, world, parts: iter(parts[::-1]), "yields part 1: expected each of its 2 parts once, in order"),
    (lambda flattening, world, parts: iter((*parts, parts[0])), "yields part 0: expected each of its 2 parts once, in order"),
    (lambda flattening, world, parts: iter([5]), "yields an int: expected each of its 2 parts once, in order"),
    (lambda flattening, world, parts: None, "gives None: expected its 2 parts, yielded one after the other"),
])  # fmt: skip
def test_a_rule_lowers_each_part_once_and_in_order(world, refused, rule, text):
    refused(text, rule, contents=InTurn(copies(world)))


def skipping(flattening, world, parts):
    """Runs the first part, and the second if the flag is set."""
    yield parts[0]
    branch = flattening.branch(world.flag)
    yield parts[1]
    flattening.rows[branch][BranchOperand.ROW] = flattening.next_row()


def choosing(flattening, world, parts):
    """Runs one of two parts."""
    branch = flattening.branch(world.flag)
    yield parts[0]
    jump = flattening.jump()
    flattening.rows[branch][BranchOperand.ROW] = flattening.next_row()
    yield parts[1]
    flattening.rows[jump][JumpOperand.ROW] = flattening.next_row()


def returning(flattening, world, parts):
    """Runs the first part, then the second and the first as often as the flag is set."""
    begin = flattening.next_row()
    yield parts[0]
    branch = flattening.branch(world.flag)
    yield parts[1]
    flattening.jump(begin)
    flattening.rows[branch][BranchOperand.ROW] = flattening.next_row()


def plain(flattening, world, parts):
    yield from parts


WAYS = {
    "in turn": (InTurn, "each, in order, of its 2 parts"), "one": (OneOf, "one of its 2 parts"),
    "one or none": (lambda parts: OneOf(parts, always=False), "one or none of its 2 parts"),
    "rounds": (lambda parts: Rounds(*parts), "the head, and the body and the head again as often as wanted, of its 2 parts"),
}  # fmt: skip
FITTING = {("in turn", plain), ("one", choosing), ("one or none", choosing), ("rounds", returning)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("rule", "shown"), [
    (plain, "parts 0, 1 one after the other"), (skipping, "parts 0.*"), (choosing, "parts .*"), (returning, "parts 0.*"),
])  # fmt: skip
def test_control_goes_through_parts_as_the_program_says(world, refused, monkeypatch, way, rule, shown):
    form, text = WAYS[way]
    contents = form(copies(world))
    if (way, rule) in FITTING:
        flatten = Around(lambda flattening, _, parts: rule(flattening, world, parts))
        assert accepted(world, monkeypatch, flatten, reads=(world.flag,), contents=contents)
    else:
        refused(rf"can run ({shown}): its contains\(\) says {text}", rule, reads=(world.flag,), contents=contents)


def test_parts_without_rows_may_be_left_out(world, monkeypatch):
    empty, copy = Part(Sequence()), Part(Copy(world.x, world.y))
    for contents in (OneOf((copy, empty)), InTurn((empty, copy)), Rounds(copy, empty), Rounds(empty, copy)):
        rule = {OneOf: choosing, InTurn: plain, Rounds: returning}[type(contents)]
        flatten = Around(lambda flattening, _, parts, rule=rule: rule(flattening, world, parts))
        assert accepted(world, monkeypatch, flatten, reads=(world.flag,), contents=contents)


def test_a_row_goes_to_the_beginning_of_a_part_only(world, refused):
    def jump_in(flattening, world, parts):
        flattening.jump(flattening.next_row() + 2)
        yield from parts

    two = Part(Sequence([Copy(world.x, world.y), Copy(world.y, world.x)]))
    refused("appends JUMP to row 3, which is within a part: expected the first row of a part", jump_in, contents=InTurn((two,)))


def test_rules_are_rules(world, monkeypatch):
    def yields(flattening, program):
        yield

    with pytest.raises(PoplarTypeError, match=r"the rule .*yields yields, so it is Around: nothing of it would run as a Leaf"):
        Leaf(yields)
    monkeypatch.setitem(RULES, Odd, "print")
    with pytest.raises(ControlProgramError, match=rf"{MADE} is lowered by 'print': expected a rule, Leaf or Around"):
        compileGraph(world.graph, Odd())


def test_what_a_rule_reads_keeps_its_value_until_then(world, monkeypatch):
    """x and y share memory where nobody reads x behind the second copy."""

    def print_tensor(flattening, program):
        (tensor,) = program.reads()
        flattening.serve("print", title="peek", stream=flattening.fetch(tensor), shape=[4])

    monkeypatch.setitem(RULES, Odd, Leaf(print_tensor))

    def run(mode, options):
        world = World()
        x, y = (world.graph.addVariable(FLOAT, [4], name) for name in ("first", "second"))
        for tensor in (x, y):
            world.graph.setTileMapping(tensor, 0)
        printed = []
        copied = Sequence([Copy(world.x, x), Copy(world.y, y), Copy(y, world.y), Odd(reads=(x,))])
        engine = world.engine(copied, mode, options)
        engine.writeTensor("x", np.full(4, 7, np.float32))
        engine.setPrintStream(type("Out", (), {"write": lambda self, text: printed.append(text)})())
        engine.run()
        return "".join(printed)

    assert re.findall(r"\d\.\d", everywhere(run)) == ["7.0"] * 4
