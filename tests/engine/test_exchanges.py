"""The account of exchange, and that what it says has happened: data moved from tile to tile."""

import io
import random

import numpy as np
import pytest
from engine_builder import Add, Bench, shown, tiny
from engine_random import ALL, PURE, RandomProgram
from hypothesis import given, reject
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import FLOAT, INT, AtomicStoreError, Engine, InOut, Input, Output, Vector, Vertex, compileGraph, concat, testing
from pypoplar.interface.edge_rows import edge_row, entry_words
from pypoplar.program import Copy, Execute, If, Repeat, Sequence


class Sum(Vertex):
    x: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        self.out = 0.0
        for value in self.x:
            self.out += value


class Double(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] *= 2.0


def reading(bench, pieces, tiles, name="sum"):
    """A compute set of `Sum` vertices that read the pieces, their sums with them on these tiles."""
    out = bench.variable(f"{name} out", np.zeros(len(pieces)), tiles)
    compute_set = bench.graph.addComputeSet(name)
    for number, (piece, tile) in enumerate(zip(pieces, tiles, strict=True)):
        bench.vertex(compute_set, Sum, tile, x=piece, out=out[number])
    return Execute(compute_set)


def floats(bench, name, size, tile):
    return bench.variable(name, np.arange(1.0, size + 1), tile)


def messages(exchange):
    return [tuple(row) for row in exchange.messages.tolist()]


def test_a_piece_from_elsewhere_is_one_row_before_the_compute_set():
    bench = Bench()
    x = floats(bench, "x", 8, 3)
    engine = bench.engine(reading(bench, [x[2:6]], [5]))
    before, after = engine.executable.exchanges
    assert (before.name, before.phase, after.name, after.phase) == ("sum", "before", "sum", "after")
    assert messages(before) == [(3, 5, 16, "x")]
    assert messages(after) == []
    assert before.bytes_sent.tolist() == [16 if tile == 3 else 0 for tile in range(16)]
    assert before.bytes_received.tolist() == [16 if tile == 5 else 0 for tile in range(16)]
    assert before.messages.dtype.names == ("source", "destination", "bytes", "variable")


def test_what_is_written_elsewhere_moves_after_and_is_not_brought_before():
    bench = Bench()
    x, out = floats(bench, "x", 4, 3), bench.variable("out", 0.0, 9)
    engine = bench.engine(bench.execute(Sum, 3, x=x, out=out))
    testing.assert_exchange(engine, "Sum", {}, "before")
    testing.assert_exchange(engine, "Sum", {(3, 9): 4}, "after")


def test_an_inout_moves_both_ways():
    bench = Bench()
    x = floats(bench, "x", 6, [1, 1, 2, 2, 2, 3])
    engine = bench.engine(bench.execute(Double, 2, x=x))
    testing.assert_exchange(engine, "Double", {(1, 2): 8, (3, 2): 4}, "before")
    testing.assert_exchange(engine, "Double", {(2, 1): 8, (2, 3): 4}, "after")
    engine.run()
    assert engine.readTensor("x").tolist() == [2, 4, 6, 8, 10, 12]


def test_nothing_local_moves():
    bench = Bench()
    x, y = floats(bench, "x", 6, 4), floats(bench, "y", 6, 4)
    program = Sequence([reading(bench, [x.reverse(0), concat([y[3:5], x[0:2]])], [4, 4]), Copy(x.reverse(0), y)])
    testing.assert_no_exchange(bench.engine(program))


def test_a_region_that_several_vertices_of_a_tile_read_arrives_once():
    bench = Bench()
    x = floats(bench, "x", 8, 3)
    engine = bench.engine(reading(bench, [x[0:5], x[2:8], x[3:4], x.reverse(0)], [5, 5, 5, 5]))
    testing.assert_exchange(engine, "sum", {(3, 5): 32}, "before")


def test_a_multicast_has_a_row_for_each_receiver_and_is_sent_once():
    bench = Bench()
    x = floats(bench, "x", 4, 3)
    engine = bench.engine(reading(bench, [x, x, x[1:3], x], [0, 5, 9, 3]))
    before = engine.executable.exchanges[0]
    assert messages(before) == [(3, 0, 16, "x"), (3, 5, 16, "x"), (3, 9, 8, "x")]
    assert before.bytes_sent.sum() == 16
    assert before.bytes_received.sum() == 40


def test_rows_are_pieces_that_are_contiguous_in_the_source_and_of_one_variable():
    bench = Bench()
    x, y = floats(bench, "x", 12, 3), floats(bench, "y", 2, 3)
    view = concat([x[0:2], x[2:4], x[6:8], y, x[8:12].reverse(0)])
    before = bench.engine(reading(bench, [view], [5])).executable.exchanges[0]
    assert sorted(messages(before)) == [(3, 5, 8, "y"), (3, 5, 16, "x"), (3, 5, 24, "x")]
    assert before.bytes_sent[3] == 48


def test_steps_are_listed_in_program_order_loops_and_branches_once_and_empty_ones_kept():
    bench = Bench()
    x = floats(bench, "x", 4, 3)
    y = bench.variable("y", np.zeros(4), 7)
    flag = bench.variable("flag", True)
    sums = reading(bench, [x], [3], "local")
    program = Sequence(
        [
            Copy(x, y, name="first"),
            Repeat(5, Sequence([sums, Copy(y, x, name="second")])),
            If(flag, Copy(x, x, name="third"), reading(bench, [y], [1], "other")),
            sums,
        ]
    )
    engine = bench.engine(program)
    found = [(one.name, one.phase, int(one.bytes_sent.sum())) for one in engine.executable.exchanges]
    assert found == [
        *(("first", "copy", 16), ("local", "before", 0), ("local", "after", 0), ("second", "copy", 16), ("third", "copy", 0)),
        *(("other", "before", 16), ("other", "after", 0), ("local", "before", 0), ("local", "after", 0)),
    ]


def test_a_copy_counts_each_element_once_for_each_receiver():
    bench = Bench()
    x, y = floats(bench, "x", 2, [3, 4]), bench.variable("y", np.zeros(8), [3, 3, 5, 5, 5, 5, 6, 4])
    engine = bench.engine(Copy(x.broadcast(4, 0), y, name="spread"))
    testing.assert_exchange(engine, "spread", {(3, 5): 4, (3, 6): 4, (4, 3): 4, (4, 5): 4})
    engine.run()
    assert engine.readTensor("y").tolist() == [1, 2] * 4


def test_streams_and_handles_are_no_exchange_between_tiles():
    bench = Bench()
    x = floats(bench, "x", 4, 3)
    engine = bench.engine(Copy(bench.graph.addHostToDeviceFIFO("in", FLOAT, 4), x))
    assert engine.executable.exchanges == []


def test_a_stream_in_another_order_than_its_tiles_is_an_exchange_of_its_own():
    bench = Bench()
    x = floats(bench, "x", 4, [1, 2, 1, 2])
    engine = bench.engine(Copy(bench.graph.addHostToDeviceFIFO("in", FLOAT, 4), x))
    (rearranged,) = engine.executable.exchanges
    assert (rearranged.name, rearranged.phase) == ("in", "stream")
    assert rearranged.messages.tolist() == [(2, 1, 4, "x"), (1, 2, 4, "x")]
    testing.assert_no_exchange(engine)


# Laws

SEEDS = st.integers(0, 2**32 - 1)


def compiled(made):
    try:
        return compileGraph(made.graph, made.programs)
    except AtomicStoreError:
        reject()


def totals(executable):
    """Of compute sets and copies: a stream lands in parts in the order of the tiles' numbers."""
    own = [one for one in executable.exchanges if one.phase != "stream"]
    return [(one.name, one.phase, one.bytes_sent, one.bytes_received, one.messages) for one in own]


@examples(40)
@given(SEEDS)
def test_what_is_received_is_what_the_rows_say_and_what_is_sent_no_more(seed):
    for _, _, sent, received, rows in totals(compiled(RandomProgram(random.Random(seed), tiny(5), ALL, 4))):
        assert (rows["source"] != rows["destination"]).all()
        assert (rows["bytes"] > 0).all()
        by_receiver = np.bincount(rows["destination"], rows["bytes"], len(received))
        np.testing.assert_array_equal(by_receiver, received)
        by_sender = np.bincount(rows["source"], rows["bytes"], len(sent))
        assert (sent <= by_sender).all()
        if len(rows) and all(len(np.unique(rows["destination"][rows["source"] == one])) == 1 for one in rows["source"]):
            np.testing.assert_array_equal(by_sender, sent)  # no multicast


@examples(25)
@given(SEEDS, st.permutations(range(6)))
def test_renumbering_the_tiles_permutes_the_account_and_changes_no_result(seed, numbers):
    first, second = (
        RandomProgram(random.Random(seed), tiny(6), PURE, 4, clock=False, tiles=one) for one in (list(range(6)), list(numbers))
    )
    one, other = compiled(first), compiled(second)
    places = np.array(numbers)
    for (name, phase, sent, received, rows), (*other_name, other_sent, other_received, other_rows) in zip(
        totals(one), totals(other), strict=True
    ):
        assert [name, phase] == other_name
        np.testing.assert_array_equal(other_sent[places], sent)
        np.testing.assert_array_equal(other_received[places], received)
        moved = sorted((places[row["source"]], places[row["destination"]], row["bytes"], row["variable"]) for row in rows)
        assert moved == sorted((row["source"], row["destination"], row["bytes"], row["variable"]) for row in other_rows)
    assert values_of(first, one) == values_of(second, other)


def values_of(made, executable):
    engine = Engine(executable)
    engine.load()
    engine.setPrintStream(io.StringIO())
    made.connect(engine)
    engine.run()
    return {name: shown(engine.readTensor(name), nan_bits=False) for name in made.variables}


def scattered(factor, mapping):
    """A program whose tensors have `factor` elements in the place of each one."""
    bench = Bench()
    tiles = np.repeat(mapping, factor)
    x = floats(bench, "x", len(tiles), tiles)
    y = bench.variable("y", np.zeros(len(tiles)), tiles[::-1])
    half = len(mapping) // 2 * factor
    steps = [reading(bench, [x[:half], x, x[half:]], [2, 4, 2]), Copy(x.reverse(0), y), bench.execute(Double, 1, x=y)]
    return compileGraph(bench.graph, Sequence(steps))


@examples(25)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_doubling_the_data_doubles_the_bytes(mapping):
    for one, other in zip(scattered(1, mapping).exchanges, scattered(2, mapping).exchanges, strict=True):
        np.testing.assert_array_equal(other.bytes_sent, 2 * one.bytes_sent)
        np.testing.assert_array_equal(other.bytes_received, 2 * one.bytes_received)


# What really happens


def edges(executable):
    """Tile, offset in its memory and bytes of all that vertices can reach."""
    computes = executable.computes
    for active, tile in enumerate(computes.active_tile):
        for group in range(computes.first_group[active], computes.first_group[active + 1]):
            codelet = executable.codelets[computes.group_codelet[group]]
            layout = edge_row(codelet.fields, record_touches=False)
            for vertex in range(computes.group_count[group]):
                row = computes.group_row[group] + vertex * layout.words
                for field, words in zip(codelet.fields, layout.fields, strict=True):
                    first = computes.words[row + words.start]
                    count = computes.words[row + words.extent] if field.form != "scalar" else 1
                    table = computes.row_table.reshape(-1, entry_words(record_touches=False))
                    for offset, length in table[first : first + count] if field.form == "list" else [(first, count)]:
                        yield int(tile), int(offset), int(length) * field.type.size


@examples(30)
@given(SEEDS)
def test_a_vertex_reaches_nothing_but_the_memory_of_its_tile(seed):
    executable = compiled(RandomProgram(random.Random(seed), tiny(4), ALL, 4))
    for tile, offset, size in edges(executable):
        assert offset >= 0
        assert offset + size <= executable.tile_bytes[tile]


def test_what_a_vertex_reads_from_elsewhere_is_in_its_tiles_memory_only_after_the_exchange(mode):
    bench = Bench()
    values = np.array([1.5, 2.25, -7.0, 1e9], np.float32)
    x = bench.variable("x", values, 3)
    engine = bench.engine(reading(bench, [x], [5]), mode)
    size = engine.executable.tile_bytes

    def tiles_with_the_values():
        memory = engine._state.memory
        return [tile for tile in range(16) if values.tobytes() in memory.from_tile(tile)[: size[tile]].tobytes()]

    assert tiles_with_the_values() == [3]
    engine.run()
    assert tiles_with_the_values() == [3, 5]
    assert engine.readTensor("sum out")[0] == values.sum(dtype=np.float32)


def test_old_values_of_an_output_come_along_without_exchange(mode):
    bench = Bench()
    x = bench.variable("x", [7, 8, 9], [1, 2, 3])

    class Never(Vertex):
        out: Output[Vector[INT]]

        def compute(self):
            if len(self.out) > 3:
                self.out[0] = 1

    engine = bench.engine(bench.execute(Never, 9, out=x), mode)
    testing.assert_no_exchange(engine, phase="before")
    engine.run()
    assert engine.readTensor("x").tolist() == [7, 8, 9]


@pytest.mark.parametrize("tile", [0, 7])
def test_only_what_a_vertex_may_write_comes_back(mode, tile):
    bench = Bench()
    x = bench.variable("x", np.arange(8), [1, 1, 2, 2, 1, 1, 2, 2])
    engine = bench.engine(Repeat(2, bench.execute(Add, tile, value=x[3], amount=100)), mode)
    engine.run()
    assert engine.readTensor("x").tolist() == [0, 1, 2, 203, 4, 5, 6, 7]
