"""Which copies are one step, held against sets of bytes."""

import random
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from copy_programs import CopyProgram
from engine_builder import tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from passes_builder import Builder, all_used

from pypoplar import FLOAT, HALF, Graph, compileGraph
from pypoplar.compiler import compile as compiler
from pypoplar.compiler.control.copy_runs import CopyKind, copy_runs
from pypoplar.compiler.exchange import merged_copies
from pypoplar.compiler.exchange.merged_copies import merge_copies
from pypoplar.compiler.memory.placement import place_variables
from pypoplar.graph.host_links import DataStream
from pypoplar.graph.tensor import Tensor
from pypoplar.options import EngineOptions
from pypoplar.program import Copy, Sequence

SEEDS = st.integers(0, 2**32 - 1)


def bytes_of(homes, end):
    """The bytes of a tensor as (tile, offset); nothing of a stream."""
    found = set()
    for element in end.flatten()._ids().tolist() if isinstance(end, Tensor) else ():
        home = int(np.searchsorted(homes.begin, element, "right")) - 1
        width = int(homes.width[home])
        begin = int(homes.offset[home]) + (element - int(homes.begin[home])) * width
        found |= {(int(homes.tile[home]), place) for place in range(begin, begin + width)}
    return found


def depends(homes, one, other):
    (reads, writes), (other_reads, other_writes) = (
        (bytes_of(homes, copy.source), bytes_of(homes, copy.destination)) for copy in (one, other)
    )
    return bool(writes & (other_reads | other_writes) or reads & other_writes)


def stream_and_bytes(copy):
    stream = next((end for end in (copy.source, copy.destination) if isinstance(end, DataStream)), None)
    tensor = copy.destination if isinstance(copy.destination, Tensor) else copy.source
    return stream and stream.handle(), tensor.numElements() * tensor.elementType().size


def cut_by_hand(homes, run, limit):
    """The steps of a run, copy by copy and byte by byte."""
    steps = []
    for placed in run.copies:
        copy, step = placed.copy, steps[-1] if steps else []
        stream, size = stream_and_bytes(copy)
        total = size + sum(stream_and_bytes(other)[1] for other in step)
        apart = run.kind is CopyKind.REMOTE or any(depends(homes, copy, other) for other in step)
        if stream is not None:
            apart |= total > limit or any(stream_and_bytes(other)[0] == stream for other in step)
        if step and not apart:
            step.append(copy)
        else:
            steps.append([copy])
    return steps


def merged(graph, programs, options):
    """The steps of what is compiled, with the operations and homes that they are made of."""
    with patch.object(compiler, "merge_copies", wraps=merge_copies) as merging:
        compileGraph(graph, programs, options)
    tree, homes, parsed = merging.call_args.args
    return merge_copies(tree, homes, parsed), tree, homes


@pytest.mark.parametrize("at_once", [1, 40, 1 << 20])
@examples(40)
@given(seed=SEEDS, limit=st.sampled_from([0, 4, 16, "unlimited"]))
def test_a_run_is_cut_where_a_copy_depends_on_one_of_its_step(at_once, seed, limit):
    program = CopyProgram(random.Random(seed), tiny(4))
    with patch.object(merged_copies, "MOST_ELEMENTS", at_once):
        steps, tree, homes = merged(program.graph, program.programs, {"opt.maxCopyMergeSize": limit})
    most = float("inf") if limit == "unlimited" else limit
    expected = [step for run in copy_runs(tree) for step in cut_by_hand(homes, run, most)]
    assert [[placed.copy for placed in step.copies] for step in steps] == expected
    single = merge_copies(tree, homes, EngineOptions.parse({"pypoplar.merge_copies": False}, {}))
    assert [[placed.copy for placed in step.copies] for step in single] == [[copy] for step in expected for copy in step]


class World:
    """A graph of four tiles; `steps` compiles copies in a row."""

    def __init__(self):
        self.device = tiny(4)
        self.graph = Graph(self.device)

    def variable(self, name, size, tile=0, type=FLOAT, shown=True):
        tensor = self.graph.addVariable(type, [size], name)
        self.graph.setTileMapping(tensor, tile)
        if shown:
            self.graph.createHostRead(name, tensor)
        return tensor

    def steps(self, *copies, **options):
        """Names of the copies that are a step, step by step."""
        for number, copy in enumerate(copies):
            copy.name = "abcdefgh"[number]
        chosen = {name.replace("__", "."): value for name, value in options.items()}
        steps, *_ = merged(self.graph, Sequence(copies), chosen)
        return ["".join(placed.copy.name for placed in step.copies) for step in steps]


@pytest.fixture
def world():
    return World()


def test_rows_are_one_step_and_what_reads_what_they_write_the_next(world):
    x, y, z = (world.variable(name, 8, tile) for tile, name in enumerate("xyz"))
    assert world.steps(Copy(x[0:4], y[0:4]), Copy(x[4:8], y[4:8]), Copy(y, z)) == ["ab", "c"]


def test_reading_one_element_twice_is_no_dependence_and_writing_it_twice_is(world):
    x, y, z = (world.variable(name, 4, tile) for tile, name in enumerate("xyz"))
    assert world.steps(Copy(x, y), Copy(x, z)) == ["ab"]
    assert world.steps(Copy(x, z), Copy(y, z)) == ["a", "b"]
    assert world.steps(Copy(x, z), Copy(x, z)) == ["a", "b"]  # the same values: it is not asked what is written


def test_what_overwrites_what_an_earlier_copy_reads_is_the_next_step(world):
    x, y, z = (world.variable(name, 4, tile) for tile, name in enumerate("xyz"))
    assert world.steps(Copy(x, y), Copy(z, x)) == ["a", "b"]
    assert world.steps(Copy(x[:2], y[:2]), Copy(z[2:], x[2:])) == ["ab"]


def test_the_last_element_of_one_copy_and_the_first_of_the_next_are_apart(world):
    """The first copy writes the last elements of all, the second the first of all, which the third reads or writes."""
    first, source, result, last = (world.variable(name, 4, tile) for tile, name in enumerate(("first", "source", "result", "last")))
    assert world.steps(Copy(source, last), Copy(source, first), Copy(first, result)) == ["ab", "c"]
    assert world.steps(Copy(source, last), Copy(source, first), Copy(result, first)) == ["ab", "c"]
    assert world.steps(Copy(last, result[:4]), Copy(first, source), Copy(result, first)) == ["ab", "c"]


@pytest.mark.parametrize("turned", [False, True])
def test_copies_that_meet_in_one_element_at_an_end_depend_on_each_other(world, turned):
    """However the elements of the first are gone through: in turn, backwards, or by strides."""
    x, y, z = (world.variable(name, 8, tile) for tile, name in enumerate("xyz"))
    z = z.reverse(0) if turned else z
    strided = z.reshape([4, 2]).slice(0, 1, 1).flatten()  # the elements 0, 2, 4 and 6 of z
    for end in (z[0], z[3]):
        assert world.steps(Copy(x[:4], z[:4]), Copy(y[:1], end.flatten())) == ["a", "b"]
    for end in (z[0], z[6]):
        assert world.steps(Copy(x[:4], strided), Copy(y[:1], end.flatten())) == ["a", "b"]
    assert world.steps(Copy(x[:4], z[:4]), Copy(y[:1], z[4:5])) == ["ab"]
    assert world.steps(Copy(x[:4], strided), Copy(y[:1], z[7:])) == ["ab"]


def test_copies_between_whose_strides_others_write_are_one_step(world):
    x, y, z = (world.variable(name, 8, tile) for tile, name in enumerate("xyz"))
    even, odd = (z.reshape([4, 2]).slice(place, place + 1, 1).flatten() for place in (0, 1))
    assert world.steps(Copy(x[:4], even), Copy(y[:4], odd), Copy(x[4:], even[:4])) == ["ab", "c"]


def test_a_step_goes_as_far_as_it_may(world):
    """A copy depends on its step only: not on one further back, and not on one that comes."""
    x, y, z = (world.variable(name, 4, tile) for tile, name in enumerate("xyz"))
    rows = [Copy(x[0], y[0]), Copy(x[1], y[1]), Copy(y[0], z[0]), Copy(x[2], y[2]), Copy(x[3], z[1]), Copy(y[2], z[2])]
    assert world.steps(*rows) == ["ab", "cde", "f"]


def test_variables_that_share_memory_depend_on_each_other(world):
    """The second is written where the first was read: two tensors, and the same bytes."""
    source, result = world.variable("source", 4, 0), world.variable("result", 8, 1)
    first, second = (world.variable(name, 4, 2, shown=False) for name in ("first", "second"))
    through = [Copy(source, first), Copy(first, result[:4]), Copy(source, second), Copy(second, result[4:])]
    assert world.steps(*through) == ["a", "b", "c", "d"]
    apart = World()
    source, result = apart.variable("source", 4, 0), apart.variable("result", 8, 1)
    first, second = (apart.variable(name, 4, 2 + number, shown=False) for number, name in enumerate(("first", "second")))
    through = [Copy(source, first), Copy(first, result[:4]), Copy(source, second), Copy(second, result[4:])]
    assert apart.steps(*through) == ["a", "bc", "d"]


def test_bytes_of_one_word_are_no_dependence(world):
    x, y = world.variable("x", 4, 0, HALF), world.variable("y", 4, 1, HALF)
    assert world.steps(Copy(x[0:1], y[0:1]), Copy(x[1:2], y[1:2])) == ["ab"]


def test_copies_of_nothing_and_copies_on_the_tile_join(world):
    x, y, z = world.variable("x", 8, 0), world.variable("y", 8, 0), world.variable("z", 8, 1)
    assert world.steps(Copy(x[:0], y[:0]), Copy(x, y), Copy(x[:0], z[:0]), Copy(x, z)) == ["abcd"]


def test_an_element_that_is_copied_to_itself_counts_as_written(world):
    x, y = world.variable("x", 4, 0), world.variable("y", 4, 1)
    assert world.steps(Copy(x, x), Copy(x, y)) == ["a", "b"]


def test_constants_are_sources_like_others(world):
    x = world.variable("x", 4, 1)
    one = world.graph.addConstant(FLOAT, [2], [1, 2])
    world.graph.setTileMapping(one, 0)
    assert world.steps(Copy(one, x[:2]), Copy(one, x[2:])) == ["ab"]


def test_the_option_leaves_every_copy_alone(world):
    x, y = world.variable("x", 8, 0), world.variable("y", 8, 1)
    stream, other = (world.graph.addHostToDeviceFIFO(name, FLOAT, 8) for name in ("in", "other"))
    copies = [Copy(x[0:4], y[0:4]), Copy(x[4:8], y[4:8]), Copy(stream, x), Copy(other, y)]
    assert world.steps(*copies) == ["ab", "cd"]
    assert world.steps(*copies, pypoplar__merge_copies=False) == ["a", "b", "c", "d"]


def test_streams_share_a_step_if_they_are_several_of_one_direction(world):
    x, y = world.variable("x", 4, 0), world.variable("y", 4, 1)
    first, second = (world.graph.addHostToDeviceFIFO(name, FLOAT, 4) for name in ("first", "second"))
    out, back = (world.graph.addDeviceToHostFIFO(name, FLOAT, 4) for name in ("out", "back"))
    assert world.steps(Copy(first, x), Copy(second, y)) == ["ab"]
    assert world.steps(Copy(x, out), Copy(x, back)) == ["ab"]
    assert world.steps(Copy(first, x), Copy(first, y)) == ["a", "b"]
    assert world.steps(Copy(x, out), Copy(y, out)) == ["a", "b"]
    assert world.steps(Copy(first, x), Copy(second, x)) == ["a", "b"]
    assert world.steps(Copy(first, x), Copy(y, out)) == ["a", "b"]
    assert world.steps(Copy(first, x), Copy(x, y), Copy(second, x)) == ["a", "b", "c"]


@pytest.mark.parametrize(("limit", "expected"), [
    (0, ["a", "b", "c", "d"]), (31, ["a", "b", "c", "d"]), (32, ["ab", "cd"]), (47, ["ab", "cd"]), (48, ["abc", "d"]),
    (63, ["abc", "d"]), (64, ["abcd"]), ("unlimited", ["abcd"]),
])  # fmt: skip
def test_streams_share_a_step_up_to_a_size(world, limit, expected):
    tensors = [world.variable(f"x{number}", 4, number) for number in range(4)]
    copies = [Copy(world.graph.addHostToDeviceFIFO(f"in{number}", FLOAT, 4), tensor) for number, tensor in enumerate(tensors)]
    assert world.steps(*copies, opt__maxCopyMergeSize=limit) == expected


def test_the_size_is_no_limit_for_copies_between_tensors(world):
    x, y = world.variable("x", 8, 0), world.variable("y", 8, 1)
    assert world.steps(Copy(x[0:4], y[0:4]), Copy(x[4:8], y[4:8]), opt__maxCopyMergeSize=0) == ["ab"]


def test_a_stream_larger_than_the_limit_stands_alone(world):
    sizes = [1, 8, 1, 1]
    tensors = [world.variable(f"x{number}", size, number) for number, size in enumerate(sizes)]
    streams = [world.graph.addHostToDeviceFIFO(f"in{number}", FLOAT, size) for number, size in enumerate(sizes)]
    copies = [Copy(stream, tensor) for stream, tensor in zip(streams, tensors, strict=True)]
    assert world.steps(*copies, opt__maxCopyMergeSize=16) == ["a", "b", "cd"]


def test_remote_buffers_are_steps_of_their_own(world):
    x, y = world.variable("x", 4, 0), world.variable("y", 4, 1)
    remote = world.graph.addRemoteBuffer("remote", FLOAT, 4)
    assert world.steps(Copy(remote, x), Copy(remote, y), Copy(x, remote)) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("elements", "most", "ends"),
    [
        ([4, 6, 1, 10, 11, 0, 3], 100, [0, 2, 3, 4, 5, 7]),  # ten elements at most, or one copy
        ([5, 5, 5, 5], 100, [0, 2, 4]),
        ([1, 1, 1, 1, 1], 2, [0, 2, 4, 5]),
        ([0], 1, [0, 1]),
        ([], 1, [0]),
    ],
)
def test_copies_are_looked_at_in_portions(elements, most, ends):
    with patch.object(merged_copies, "MOST_ELEMENTS", 10):
        portions = list(merged_copies._portions(elements, most))
    assert portions == [slice(begin, end) for begin, end in pairwise(ends)]


def test_memories_of_any_size_are_told_apart():
    """Places are numbered by 64 bits: of copies whose places would need more, fewer are looked at together."""
    builder = Builder(tiles=2)
    builder.variable(1 << 10, 0)
    homes = place_variables(builder.freeze(), all_used(builder.freeze()))
    places = merged_copies._Places(homes, 1 << 59)
    assert places.most * places.all < 1 << 63
    assert places.most >= 1
