"""Runs of copies: those with nothing between that acts."""

import numpy as np
import pytest
from engine_builder import Bench

from pypoplar import FLOAT, SyncType, cycleCount
from pypoplar.compiler.control.copy_runs import CopyKind, copy_runs
from pypoplar.compiler.control.program_walk import operation_tree
from pypoplar.program import Call, Copy, If, PrintTensor, Repeat, RepeatWhileTrue, Sequence, Switch, Sync, WriteUndef


@pytest.fixture
def bench():
    bench = Bench()
    bench.x, bench.y = (bench.variable(name, np.zeros(4), tile) for tile, name in enumerate(("x", "y")))
    bench.flag = bench.variable("flag", 1)
    bench.log()
    return bench


def copy(bench, name):
    return Copy(bench.x, bench.y, name=name)


def runs(bench, *programs):
    """Kinds and names of all runs."""
    found = copy_runs(operation_tree(programs, bench.graph))
    return [(run.kind.name, [placed.copy.name for placed in run.copies]) for run in found]


def between_tensors(bench, *programs):
    kinds, names = zip(*runs(bench, *programs), strict=True)
    assert set(kinds) == {"TENSORS"}
    return list(names)


def test_sequences_in_sequences_are_one_row(bench):
    a, b, c, d, e = (copy(bench, name) for name in "abcde")
    inner = Sequence([b, Sequence([c], name="inner"), Sequence()], name="outer")
    assert between_tensors(bench, Sequence([a, inner, Sequence(), Sequence([d]), e])) == [list("abcde")]


def test_sequences_may_nest_deeper_than_pythons_stack(bench):
    program = copy(bench, "a")
    for _ in range(3000):
        program = Sequence([program], name="named")
    assert between_tensors(bench, Sequence([program, copy(bench, "b")])) == [["a", "b"]]


@pytest.mark.parametrize("between", [
    lambda bench: bench.enter(1),
    lambda bench: Sync(SyncType.INTERNAL),
    lambda bench: PrintTensor(bench.x),
    lambda bench: WriteUndef(bench.y[:2]),
    lambda bench: Repeat(0, Sequence()),
    lambda bench: If(bench.flag, Sequence()),
    lambda bench: Call(bench.graph.addFunction(Sequence())),
])  # fmt: skip
def test_a_run_ends_where_anything_else_stands(bench, between):
    assert between_tensors(bench, Sequence([copy(bench, "a"), between(bench), copy(bench, "b")])) == [["a"], ["b"]]
    inside = Sequence([copy(bench, "a"), Sequence([between(bench)], name="named"), copy(bench, "b")])
    assert between_tensors(bench, inside) == [["a"], ["b"]]


def test_what_is_counted_is_a_row_of_its_own(bench):
    counted = Sequence([copy(bench, "b"), copy(bench, "c")])
    cycleCount(bench.graph, counted, 0)
    assert between_tensors(bench, Sequence([copy(bench, "a"), counted, copy(bench, "d")])) == [["a"], ["b", "c"], ["d"]]


def test_parts_of_loops_and_branches_programs_and_functions_are_rows_of_their_own(bench):
    a, b, c, d, e, f, g, h = (copy(bench, name) for name in "abcdefgh")
    function = bench.graph.addFunction(Sequence([g, g]))
    first = Sequence([a, Repeat(2, Sequence([b, b])), If(bench.flag, c, d), e])
    second = Sequence([RepeatWhileTrue(Sequence([f]), bench.flag, h), Switch(bench.flag, [(0, a)], b), Call(function), a])
    found = between_tensors(bench, first, second)
    assert sorted(map("".join, found)) == sorted(["a", "bb", "c", "d", "e", "f", "h", "a", "b", "a", "gg"])


def test_copies_of_several_kinds_are_several_runs(bench):
    inward, outward = bench.graph.addHostToDeviceFIFO("in", FLOAT, 4), bench.graph.addDeviceToHostFIFO("out", FLOAT, 4)
    remote = bench.graph.addRemoteBuffer("remote", FLOAT, 4)
    ends = [(inward, bench.x), (inward, bench.y), (bench.x, outward), (remote, bench.x), (bench.x, remote), (bench.x, bench.y)]
    program = Sequence([Copy(*pair, name=str(number)) for number, pair in enumerate(ends)])
    expected = [("STREAM_IN", ["0", "1"]), ("STREAM_OUT", ["2"]), ("REMOTE", ["3", "4"]), ("TENSORS", ["5"])]
    assert runs(bench, program) == expected
    assert [kind for kind, _ in expected] == [CopyKind[kind].name for kind, _ in expected]


def test_what_is_made_of_copy_or_sequence_means_else(bench):
    class Odd(Copy):
        pass

    class Row(Sequence):
        pass

    a, b = copy(bench, "a"), copy(bench, "b")
    assert between_tensors(bench, Sequence([a, Odd(bench.x, bench.y, name="odd"), b])) == [["a"], ["b"]]
    assert between_tensors(bench, Sequence([a, Row([b], name="row"), a])) == [["a"], ["b"], ["a"]]


def test_a_copy_that_stands_in_several_places_is_in_a_run_at_each(bench):
    a = copy(bench, "a")
    tree = operation_tree([Sequence([a, a, Repeat(2, a)])], bench.graph)
    found = copy_runs(tree)
    assert [len(run.copies) for run in found] == [2, 1]
    positions = [placed.position for run in found for placed in run.copies]
    assert positions == sorted(set(positions))
