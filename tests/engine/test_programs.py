"""Control flow: what runs, how often, and in which order."""

import numpy as np
import pytest
from engine_builder import Add, Less, logged, ran

from pypoplar import (
    BOOL,
    INT,
    UNSIGNED_INT,
    ApplicationRuntimeError,
    ControlProgramError,
    Engine,
    InOut,
    Input,
    PoplarIndexError,
    Vector,
    Vertex,
)
from pypoplar.program import (
    Call,
    Execute,
    If,
    Repeat,
    RepeatWhileFalse,
    RepeatWhileTrue,
    Sequence,
    Switch,
    Sync,
    SyncType,
    WriteUndef,
)


class AllPositive(Vertex):
    values: Input[Vector[INT]]

    def compute(self):
        for value in self.values:  # noqa: SIM110  # device code
            if value <= 0:
                return False
        return True


class AnyLeft(Vertex):
    """Counts down and says whether there is more to do."""

    left: InOut[INT]

    def compute(self):
        self.left -= 1
        return self.left >= 0


@pytest.fixture
def bench(bench):
    bench.log()
    return bench


def test_a_sequence_runs_in_order(bench, mode):
    one, two = bench.enter(1), bench.enter(2)
    assert ran(bench, Sequence([two, Sequence([one, two]), Sequence()]), mode) == [2, 1, 2]


def test_an_empty_program_runs(bench, mode):
    assert ran(bench, Sequence(), mode) == []


def test_sequences_nest_to_any_depth(bench, mode):
    program = bench.enter(0)
    for number in range(1, 4000):
        program = Sequence([program, bench.enter(9)] if number == 3000 else [Sequence(), program])
    assert ran(bench, program, mode) == [0, 9]


def test_a_repeat_runs_its_body_count_times(bench, mode):
    inner = Repeat(2, bench.enter(2))
    program = Repeat(3, Sequence([bench.enter(1), inner, Repeat(0, bench.enter(9))]))
    assert ran(bench, Sequence([program, Repeat(0, inner), inner]), mode) == [1, 2, 2] * 3 + [2, 2]


def test_repeat_while_true_tests_once_more_than_it_runs_its_body(bench, mode):
    value, flag = bench.variable("value", 0), bench.variable("flag", True)
    condition = Sequence([bench.enter(7), bench.execute(Less, value=value, out=flag, limit=3)])
    body = Sequence([bench.execute(Add, value=value, amount=1), bench.enter(1)])
    assert ran(bench, RepeatWhileTrue(condition, flag, body), mode) == [7, 1, 7, 1, 7, 1, 7]


def test_repeat_while_false_runs_until_the_predicate_is_true(bench, mode):
    value, flag = bench.variable("value", 5), bench.variable("flag", False)
    condition = bench.execute(Less, value=value, out=flag, limit=3)
    body = Sequence([bench.execute(Add, value=value, amount=-1), bench.enter(4)])
    assert ran(bench, RepeatWhileFalse(condition, flag, body), mode) == [4, 4, 4]


def test_a_loop_whose_predicate_ends_it_at_once_runs_no_body(bench, mode):
    flag = bench.variable("flag", False)
    program = Sequence(
        [RepeatWhileTrue(Sequence(), flag, bench.enter(1)), RepeatWhileFalse(bench.enter(2), flag, WriteUndef(flag))]
    )
    assert ran(bench, program, mode) == [2, 2]  # WriteUndef leaves all bits set


@pytest.mark.parametrize(
    ("type", "value", "taken"),
    [(BOOL, True, 1), (BOOL, False, 2), (INT, -7, 1), (INT, 0, 2), (INT, 1 << 16, 1), (UNSIGNED_INT, 1 << 31, 1)],
)
def test_if_takes_whatever_is_not_zero_for_true(bench, mode, type, value, taken):
    predicate = bench.variable("predicate", np.array(value, type.dtype), 3)
    assert ran(bench, If(predicate, bench.enter(1), bench.enter(2)), mode) == [taken]


def test_if_without_an_else_goes_on(bench, mode):
    flag = bench.variable("flag", False)
    assert ran(bench, Sequence([If(flag, bench.enter(1)), bench.enter(3)]), mode) == [3]


@pytest.mark.parametrize(("value", "taken"), [(-2, 1), (0, 2), (2**31 - 1, 3), (5, 9), (-(2**31), 9)])
def test_switch_takes_the_case_of_its_index_or_the_default(bench, mode, value, taken):
    index = bench.variable("index", value, 2)
    switch = Switch(index, [(-2, bench.enter(1)), (0, bench.enter(2)), (2**31 - 1, bench.enter(3))], bench.enter(9))
    assert ran(bench, Sequence([switch, bench.enter(4)]), mode) == [taken, 4]


@pytest.mark.parametrize(("value", "taken"), [(2**32 - 1, [1]), (7, [])])
def test_a_switch_of_unsigned_ints_without_a_match_does_nothing(bench, mode, value, taken):
    index = bench.variable("index", np.uint32(value))
    switch = Switch(index)
    switch.add(2**32 - 1, bench.enter(1))
    switch.add(0, bench.enter(2))
    assert ran(bench, switch, mode) == taken


def test_a_switch_with_an_unreachable_default_stops_where_its_index_has_the_value_of_no_case(bench, mode):
    index = bench.variable("index", 1)
    switch = Switch.switchWithUnreachableDefault(index, [(0, bench.enter(1)), (1, bench.enter(2))], "choice")
    switch.add(5, bench.enter(3))
    assert (switch.name, len(switch.cases)) == ("choice", 3)
    engine = bench.engine(switch, mode)
    for value in (1, 0, 5):
        engine.writeTensor("index", value)
        engine.run()
    assert logged(engine) == [2, 1, 3]
    engine.writeTensor("index", 7)
    text = r"the index of a Switch has the value of no case: 7 \[.*test_programs\.py:\d+\]"
    with pytest.raises(ApplicationRuntimeError, match=text):
        engine.run()
    assert logged(engine) == [2, 1, 3]


@pytest.mark.parametrize(("values", "agreed"), [([[1, 2], [3, 4]], True), ([[1, 2], [0, 4]], False), ([[-1, 2], [3, 4]], False)])
def test_the_result_of_execute_is_the_and_over_its_vertices(bench, mode, values, agreed):
    result = bench.variable("result", not agreed, 9)
    given = bench.variable("given", values, 2)
    compute_set = bench.graph.addComputeSet("all positive")
    for tile in range(2):
        bench.vertex(compute_set, AllPositive, 4 * tile, values=given[tile])
    engine = bench.engine(Execute(compute_set, result), mode)
    engine.run()
    assert engine.readTensor("result") == agreed


def test_a_compute_set_may_tell_several_places_and_moves_its_data_for_each(bench, mode):
    results = [bench.variable(f"result {number}", False, number) for number in range(3)]
    given = bench.variable("given", [[1, 2], [3, 4]], 2)
    compute_set = bench.graph.addComputeSet("all positive")
    for tile in range(2):
        bench.vertex(compute_set, AllPositive, 4 * tile, values=given[tile])
    engine = bench.engine(
        Sequence([Execute(compute_set, results[0]), Execute(compute_set, results[1]), Execute(compute_set)]), mode
    )
    for values in ([[1, 2], [3, 4]], [[1, 2], [3, 0]]):
        engine.writeTensor("given", values)
        engine.run()
        told = [bool(engine.readTensor(f"result {number}")) for number in range(3)]
        assert told == [min(min(row) for row in values) > 0] * 2 + [False]
    moves = engine.executable.computes.moves.reshape(3, -1)
    assert (moves == moves[0]).all()


def test_the_and_over_no_vertices_is_true(bench, mode):
    result = bench.variable("result", False)
    engine = bench.engine(Execute(bench.graph.addComputeSet("nothing"), result), mode)
    engine.run()
    assert engine.readTensor("result")


def test_a_vertex_decides_when_a_loop_ends(bench, mode):
    left, more = bench.variable("left", 3, 5), bench.variable("more", True)
    assert ran(bench, RepeatWhileTrue(bench.execute(AnyLeft, 5, more, left=left), more, bench.enter(1)), mode) == [1, 1, 1]


def test_one_compute_set_may_put_its_result_into_several_places(bench, mode):
    given = bench.variable("given", [1, 1])
    compute_set = bench.graph.addComputeSet("all positive")
    bench.vertex(compute_set, AllPositive, values=given)
    first, second = bench.variable("first", False), bench.variable("second", False, 3)
    change = bench.execute(Add, value=given[1], amount=-1)
    engine = bench.engine(Sequence([Execute(compute_set, first), change, Execute(compute_set, second), Execute(compute_set)]), mode)
    engine.run()
    assert (engine.readTensor("first"), engine.readTensor("second")) == (True, False)


def test_a_function_is_called_from_several_places_and_from_functions(bench, mode):
    inner = bench.graph.addFunction(bench.enter(1))
    outer = bench.graph.addFunction(Sequence([Call(inner), bench.enter(2), Repeat(2, Call(inner))]))
    program = Sequence([Call(outer), Repeat(2, Call(inner)), Call(outer)])
    assert ran(bench, program, mode) == [1, 2, 1, 1, 1, 1, 1, 2, 1, 1]


def test_calls_nest_deeply(bench, mode):
    function = bench.graph.addFunction(bench.enter(0))
    for number in range(1, 30):
        function = bench.graph.addFunction(Sequence([bench.enter(number), Call(function)]))
    assert ran(bench, Call(function), mode) == [*range(29, 0, -1), 0]


def test_waiting_and_forgetting_change_nothing_else(bench, mode):
    scratch = bench.variable("scratch", [1, 2, 3, 4], tile=[0, 1, 2, 0])
    syncs = [Sync(one) for one in SyncType]
    assert ran(bench, Sequence([bench.enter(1), *syncs, WriteUndef(scratch[1:3]), bench.enter(2)]), mode) == [1, 2]
    engine = bench.engine(WriteUndef(scratch[1:3]), mode)
    engine.run()
    assert engine.readTensor("scratch").tolist() == [1, -1, -1, 4]


def test_an_engine_runs_any_of_its_programs(bench, mode):
    shared = bench.enter(3)
    engine = bench.engine([bench.enter(1), Sequence([bench.enter(2), shared]), shared], mode)
    for number in (2, 0, 1, 1):
        engine.run(number)
    assert logged(engine) == [3, 1, 2, 3, 2, 3]
    engine.load()
    engine.run()
    assert logged(engine) == [1]


@pytest.mark.parametrize("number", [-1, 2])
def test_a_program_that_is_not_there_is_out_of_range(bench, mode, number):
    engine = bench.engine([Sequence(), Sequence()], mode)
    with pytest.raises(PoplarIndexError, match=f"program {number} is out of range: the engine has 2"):
        engine.run(number)


def test_one_program_serves_two_engines(bench, mode):
    program = Repeat(2, bench.enter(1))
    first, second = bench.engine(program, mode), bench.engine(Sequence([program, bench.enter(2)]), mode)
    first.run()
    second.run()
    first.run()
    assert logged(first) == [1] * 4
    assert logged(second) == [1, 1, 2]


def test_a_graph_may_grow_after_an_engine_was_made_of_it(bench, mode):
    first = bench.engine(bench.enter(1), mode)
    second = bench.engine(Sequence([bench.enter(2), bench.enter(3)]), mode)
    first.run()
    second.run()
    assert (logged(first), logged(second)) == ([1], [2, 3])


def test_functions_that_call_each_other_in_a_circle_are_refused(bench):
    body = Sequence()
    function = bench.graph.addFunction(body)
    function.program.programs.append(Call(function))
    with pytest.raises(ControlProgramError, match=r"test_programs\.py:\d+ calls itself"):
        Engine(bench.graph, Call(function))
