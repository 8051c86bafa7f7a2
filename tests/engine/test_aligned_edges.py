"""Vectors and rows that are demanded to be aligned lie so in every vertex; results stay, and copies are priced and counted."""

import io
import random
from typing import Annotated

import numpy as np
import pytest
from demanding_codelets import check_aligned, check_apart, demanding, drawn_alignments, drawn_constraints
from engine_builder import Bench, everywhere, shown, tiny
from engine_outcome import outcome
from engine_random import PURE, RandomProgram
from hypothesis import given, reject
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import (
    FLOAT,
    HALF,
    LONGLONG,
    Aligned,
    AtomicStoreError,
    Executable,
    FileLoadError,
    InOut,
    Input,
    MultiVertex,
    Output,
    Record,
    Vector,
    VectorList,
    Vertex,
    compileGraph,
)
from pypoplar.executable.verify.executable_claims import verify
from pypoplar.interface.edge_rows import RowEntry
from pypoplar.program import Copy, Execute, Sequence

ELEMENTS = {"pypoplar.races": "elements"}
COPY = 35 * 6  # cycles of a vertex that copies, beside the bytes


@examples(15)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.sampled_from([1, 2, 5]), st.sampled_from([{}, ELEMENTS]))
def test_random_programs_do_the_same_with_and_without_demands(seed, steps, tiles, options):
    numbers = random.Random(seed)
    demands = [(drawn_alignments(codelet, numbers), drawn_constraints(codelet, numbers)) for codelet in PURE]
    aligned = [demanding(codelet, *demanded) for codelet, demanded in zip(PURE, demands, strict=True)]
    outcomes = []
    for codelets in (PURE, aligned):
        program = RandomProgram(random.Random(seed), tiny(tiles), codelets, steps, clock=False)
        try:
            executable = compileGraph(program.graph, program.programs, options)
        except AtomicStoreError:  # what one layout has in one word another has not
            reject()
        outcomes += [outcome(program, executable, mode, options) for mode in ("native", "interpret")]
    check_aligned(executable)
    check_apart(executable)
    for name in ("values", "arrays", "printed", "errors"):
        for other in outcomes[1:]:
            assert shown(other[name], nan_bits=False) == shown(outcomes[0][name], nan_bits=False), name
    for native, interpreted in (outcomes[:2], outcomes[2:]):
        assert shown(native["account"], nan_bits=False) == shown(interpreted["account"], nan_bits=False)


class Scale(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = self.x[i] * 2.0


class Increase(Vertex):
    y: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] += 1.0


class Sums(Vertex):
    rows: Input[VectorList[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for r in range(len(self.rows)):
            total = 0.0
            for value in self.rows[r]:
                total += value
            self.y[r] = total


def scaled(codelet, slices, tile=0, homes=(0, 0), size=33):
    """The executable of vertices on a tile that each scale a slice of x into that of y."""
    bench = Bench()
    x, y = bench.variable("x", np.arange(float(size)), homes[0]), bench.variable("y", np.zeros(size), homes[1])
    compute_set = bench.graph.addComputeSet("scale")
    for begin, end in slices:
        bench.vertex(compute_set, codelet, tile, x=x[begin:end], y=y[begin:end])
    return compileGraph(bench.graph, Execute(compute_set))


def moved(executable):
    """Cycles of the copies on tile 0, before and after the compute set."""
    return [int(step.rearrange_cycles[0]) for step in executable.steps if len(step.rearrange_cycles)]


def extra(executable, plain):
    """What one executable takes of tile 0's memory beyond the other, by category."""
    grown = {name: int(getattr(executable.memory, name)[0] - getattr(plain.memory, name)[0]) for name in MEMORY}
    return {name: size for name, size in grown.items() if size}


MEMORY = ("variables", "exchange_buffers", "vertex_state", "edge_pointers", "code", "stack", "gaps")
EIGHT = demanding(Scale, {"x": 8, "y": 8})


def test_a_whole_variable_lies_aligned_and_nothing_is_copied():
    for bytes in (8, 16, 32):
        codelet = demanding(Scale, {"x": bytes, "y": bytes})
        executable, plain = scaled(codelet, [(0, 33)]), scaled(Scale, [(0, 33)])
        assert check_aligned(executable) == 2
        assert moved(executable) == moved(plain) == []
        rounded = -(-132 // bytes) * bytes  # of each variable
        assert extra(executable, plain) in ({}, {"gaps": 2 * (rounded - 136)})


def test_a_variable_is_moved_so_that_a_slice_lies_aligned():
    """Nothing else is demanded of it."""
    executable = scaled(EIGHT, [(1, 33)])
    assert check_aligned(executable) == 2
    assert moved(executable) == []
    assert extra(executable, scaled(Scale, [(1, 33)])) == {}  # four bytes before it are empty in place of those behind it


def test_of_slices_that_cannot_all_lie_aligned_the_fewest_bytes_are_copied():
    """Elements 1 to 9 lie as those from 9 on, and those from 18 on do not."""
    slices = [(1, 9), (9, 18), (18, 33)]
    executable = scaled(EIGHT, slices)
    assert check_aligned(executable) == 6
    assert moved(executable) == [15 + COPY, 15 + COPY]  # 60 bytes, which lie at a multiple of four, by the word
    assert extra(executable, scaled(Scale, slices)) == {"exchange_buffers": 2 * 64}
    slices = [(1, 9), (18, 33)]
    assert moved(scaled(EIGHT, slices)) == [8 + COPY, 8 + COPY]  # what is smaller


def test_an_inout_is_copied_there_and_back_and_an_input_there():
    def copies(codelet, field):
        bench = Bench()
        y = bench.variable("y", np.arange(33.0))
        compute_set = bench.graph.addComputeSet("both")
        other = {"x": y[0:8], "y": bench.variable("z", np.zeros(8), 1)} if field == "x" else {"y": y[0:8]}
        bench.vertex(compute_set, codelet, **other)
        fields = {"x": y[9:14], "y": bench.variable("w", np.zeros(5), 1)} if field == "x" else {"y": y[9:14]}
        bench.vertex(compute_set, codelet, **fields)
        return moved(compileGraph(bench.graph, Execute(compute_set)))

    assert copies(demanding(Increase, {"y": 8}), "y") == [5 + COPY, 5 + COPY]
    assert copies(demanding(Scale, {"x": 8}), "x") == [5 + COPY, 0]


@pytest.mark.parametrize("width", [8, 9])
def test_rows_of_even_length_lie_aligned_and_every_other_of_an_odd_length_is_copied(width):
    def executable(codelet):
        bench = Bench()
        rows, y = bench.variable("rows", np.zeros((6, width))), bench.variable("y", np.zeros(6))
        return compileGraph(bench.graph, bench.execute(codelet, rows=rows, y=y))

    aligned = executable(demanding(Sums, {"rows": 8}))
    assert check_aligned(aligned) == 6
    copied = 3 if width % 2 else 0
    assert moved(aligned) == ([copied * width + COPY] if copied else [])
    assert extra(aligned, executable(Sums)) == ({"exchange_buffers": copied * 40} if copied else {})


def test_what_arrives_is_written_to_an_aligned_place():
    """It costs what it costs to receive two pieces in place of one."""
    slices = [(1, 8), (8, 18)]
    aligned, plain = (scaled(codelet, slices, tile=1) for codelet in (EIGHT, Scale))
    assert check_aligned(aligned) == 4
    assert moved(aligned) == moved(plain) == [0, 0]
    for step, other in zip(aligned.steps, plain.steps, strict=True):
        assert step.exchange_cycles.tolist() == other.exchange_cycles.tolist()
    assert [one.account.bytes_received.tolist() for one in aligned.exchanges] == [
        one.account.bytes_received.tolist() for one in plain.exchanges
    ]


def test_a_halo_is_laid_around_a_block_that_lies_as_it_is_demanded():
    """Two elements arrive before the block: then it begins as far from a multiple of 16 as they are long."""

    def executable(codelet):
        bench = Bench()
        x, y = bench.variable("x", np.zeros(40), [1] * 2 + [0] * 38), bench.variable("y", np.zeros(40))
        return compileGraph(bench.graph, bench.execute(codelet, x=x, y=y))

    aligned = executable(demanding(Scale, {"x": 16}))
    assert check_aligned(aligned) == 1
    assert moved(aligned) == moved(executable(Scale)) == [0]


def test_a_halo_around_a_block_that_others_want_elsewhere_is_copied():
    def executable(codelet):
        bench = Bench()
        x, y = bench.variable("x", np.zeros(41), [1] + [0] * 40), bench.variable("y", np.zeros(81))
        compute_set = bench.graph.addComputeSet("both")
        bench.vertex(compute_set, codelet, x=x, y=y[0:41])
        bench.vertex(compute_set, codelet, x=x[1:41], y=y[41:81])
        return compileGraph(bench.graph, Execute(compute_set))

    assert moved(executable(Scale)) == [0]
    assert moved(executable(demanding(Scale, {"x": 8}))) == [40 + COPY]  # by the word


def test_exchange_buffers_lie_as_the_widest_demand_wants_it():
    class Wide(Vertex):
        x: Input[Annotated[Vector[LONGLONG], Aligned(32)]]
        y: Output[LONGLONG]

        def compute(self):
            self.y = self.x[0]

    bench = Bench()
    x, y = bench.variable("x", np.arange(7), 1, LONGLONG), bench.variable("y", np.zeros(3, np.int64), 0, LONGLONG)
    compute_set = bench.graph.addComputeSet("wide")
    for number in range(3):
        bench.vertex(compute_set, Wide, x=x[number : number + 3], y=y[number])
    executable = compileGraph(bench.graph, Execute(compute_set))
    assert check_aligned(executable) == 3
    memory = executable.memory
    assert (memory.always_live + memory.not_always_live == memory.total() - memory.gaps).all()
    engine = bench.engine(Execute(compute_set))
    engine.run()
    assert engine.readTensor("y").tolist() == [0, 1, 2]


def test_variables_that_share_memory_lie_aligned():
    codelet = demanding(Scale, {"x": 32, "y": 16})
    bench = Bench()
    names = [bench.graph.addVariable(FLOAT, [size], f"v{size}") for size in (5, 9, 5, 17, 3, 33)]
    for tensor in names:
        bench.graph.setTileMapping(tensor, 0)
    x = bench.variable("x", np.arange(40.0))
    steps = []
    for source, target in zip([x, *names], [*names, x], strict=True):
        size = min(source.numElements(), target.numElements())
        steps.append(bench.execute(codelet, x=source[0:size], y=target[0:size]))
    executable = compileGraph(bench.graph, Sequence(steps))
    assert executable.shares_memory
    assert check_aligned(executable) == 2 * len(steps)
    assert moved(executable) == []


class Row(Record):
    first: FLOAT
    second: HALF


class OfRecords(Vertex):
    rows: InOut[Annotated[Vector[Row], Aligned(16)]]

    def compute(self):
        for row in self.rows:
            row.first += 1.0


def test_records_are_aligned_too():
    def work(mode, options):
        bench = Bench()
        rows = bench.variable("rows", np.arange(72, dtype=np.uint8))
        compute_set = bench.graph.addComputeSet("records")
        for begin in (0, 8, 24):
            bench.vertex(compute_set, OfRecords, rows=rows[begin + 8 : begin + 16])
        engine = bench.engine(Execute(compute_set), mode, options)
        assert check_aligned(engine.executable) == 3
        engine.run()
        return engine.readTensor("rows")

    expected = np.arange(72, dtype=np.uint8)
    for begin in (8, 16, 32):
        expected[begin : begin + 4].view(np.float32)[:] += 1
    assert everywhere(work).tolist() == expected.tolist()


def test_an_input_and_an_output_that_are_one_tensor_lie_as_both_demand():
    codelet = demanding(Scale, {"x": 8, "y": 16})

    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.arange(30.0))
        compute_set = bench.graph.addComputeSet("in place")
        for begin, end in ((1, 6), (6, 13), (13, 30)):
            bench.vertex(compute_set, codelet, x=x[begin:end], y=x[begin:end])
        engine = bench.engine(Execute(compute_set), mode, options)
        assert check_aligned(engine.executable) == 6
        assert engine.executable.in_place.tolist() == [[0, 0, 1]]
        engine.run()
        return engine.readTensor("x")

    assert everywhere(work).tolist() == [0, *range(2, 60, 2)]
    assert everywhere(work, ELEMENTS).tolist() == [0, *range(2, 60, 2)]


class Shares(MultiVertex):
    x: InOut[Annotated[Vector[HALF], Aligned(8)]]

    def compute(self, worker):
        for begin in range(2 * worker, len(self.x), 12):
            for i in range(begin, min(begin + 2, len(self.x))):
                self.x[i] *= 2.0


def test_workers_share_what_was_copied_to_an_aligned_place():
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.arange(50.0), type=HALF)
        compute_set = bench.graph.addComputeSet("halves")
        for begin, end in ((1, 7), (7, 23), (24, 49)):
            bench.vertex(compute_set, Shares, x=x[begin:end])
        engine = bench.engine(Execute(compute_set), mode, options)
        assert check_aligned(engine.executable) == 3
        engine.run()
        return engine.readTensor("x")

    expected = np.arange(50) * 2
    expected[[0, 23, 49]] //= 2
    assert everywhere(work).tolist() == expected.tolist()


def test_elements_that_a_copied_output_leaves_unwritten_keep_their_value():
    class First(Vertex):
        y: Output[Annotated[Vector[FLOAT], Aligned(16)]]

        def compute(self):
            self.y[0] = 7.0

    def work(mode, options):
        bench = Bench()
        y = bench.variable("y", np.arange(12.0))
        compute_set = bench.graph.addComputeSet("first")
        for begin in (0, 3, 7):
            bench.vertex(compute_set, First, y=y[begin : begin + 3])
        engine = bench.engine(Execute(compute_set), mode, options)
        assert check_aligned(engine.executable) == 3
        engine.run()
        return engine.readTensor("y")

    assert everywhere(work).tolist() == [7, 1, 2, 7, 4, 5, 6, 7, 8, 9, 10, 11]
    assert everywhere(work, ELEMENTS).tolist() == [7, 1, 2, 7, 4, 5, 6, 7, 8, 9, 10, 11]


def test_empty_vectors_and_rows_of_none_meet_every_demand():
    bench = Bench()
    x, y = bench.variable("x", np.zeros(3)), bench.variable("y", np.zeros(3))
    codelet = demanding(Sums, {"rows": 32, "y": 32})
    program = Sequence([bench.execute(codelet, rows=[x[1:1], x[1:3]], y=y[1:3]), bench.execute(codelet, rows=[], y=y[0:0])])
    executable = compileGraph(bench.graph, program)
    assert check_aligned(executable) == 4


def test_demands_are_saved_with_the_executable_and_hold_when_it_is_loaded():
    executable = scaled(EIGHT, [(1, 9), (9, 18), (18, 33)])
    file = io.BytesIO()
    executable.save(file)
    file.seek(0)
    loaded = Executable.load(file)
    assert check_aligned(loaded) == 6
    assert [field.alignment for field in loaded.codelets[0].typed.fields] == [8, 8]


@pytest.mark.parametrize("codelet", [EIGHT, demanding(Sums, {"rows": 8})], ids=["vector", "rows"])
def test_a_file_whose_addresses_are_not_as_demanded_is_refused(codelet):
    bench = Bench()
    x, y = bench.variable("x", np.zeros((2, 4))), bench.variable("y", np.zeros(8))
    fields = {"x": x.flatten()} if codelet is EIGHT else {"rows": x}
    executable = compileGraph(bench.graph, bench.execute(codelet, **fields, y=y))
    table = (executable.computes.words, 0) if codelet is EIGHT else (executable.computes.row_table, RowEntry.ADDRESS)
    verify(executable)
    table[0][table[1]] += 4
    with pytest.raises(FileLoadError, match=rf"the memory of .*{codelet.__name__}: vertex.*is not aligned"):
        verify(executable)


def test_other_compute_sets_and_copies_find_a_moved_variable():
    def work(mode, options):
        bench = Bench(tiny(3))
        x, y = bench.variable("x", np.arange(33.0)), bench.variable("y", np.zeros(33), 2)
        program = Sequence([bench.execute(EIGHT, 0, x=x[1:33], y=y[0:32]), Copy(y, x), bench.execute(Increase, 1, y=x)])
        engine = bench.engine(program, mode, options)
        engine.run()
        return engine.readTensor("x")

    assert everywhere(work).tolist() == [*(2.0 * i + 1 for i in range(1, 33)), 1.0]
