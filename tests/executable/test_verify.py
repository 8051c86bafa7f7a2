"""No number of a foreign executable makes an engine touch what is not its own."""

import contextlib
import functools
import io

import numpy as np
import pytest
from executable_damage import Opened, Worker, array_places, leaves, more, own, put, put_leaf, put_row, reshaped, saved
from executable_programs import PROGRAMS
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import Executable, FileLoadError, Graph, IPUModel, compileGraph
from pypoplar.executable.verify.executable_claims import verify
from pypoplar.executable.verify.host_claims import CHECKS
from pypoplar.executable.verify.program_claims import KINDS
from pypoplar.interface.header_slots import HOST
from pypoplar.interface.opcodes import (
    OPERANDS,
    BranchOperand,
    CallbackOperand,
    CallOperand,
    ClockOperand,
    ComputeOperand,
    ElapsedOperand,
    FloatingPointOperand,
    JumpOperand,
    MoveOperand,
    Opcode,
    ProgramRow,
    RepeatOperand,
    ServiceOperand,
    StreamOperand,
    SyncOperand,
    UnlessEqualOperand,
)
from pypoplar.interface.service_kinds import DETAILS

BUSY = ("transfers", "vertices", "shuffled", "control", "judged", "several_ipus")
FAR = 1 << 40


@functools.cache
def content_of(name):
    return saved(PROGRAMS[name]())


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    made = Worker(tmp_path_factory.mktemp("executables"))
    yield made
    made.close()


def load(content):
    return Executable.load(io.BytesIO(content))


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_compiler_makes_passes(name):
    verify(PROGRAMS[name]())


def compute_a_streams_move(opened):
    """The compute set does what the last handle moves."""
    opened.array("computes", "moves")[0, 0] = len(opened.array("moves", "first_list")) - 2


CASES = [
    ("in_place", put("in_place", (0, 0), 1), "in_place[0] is no input of its codelet"),
    ("in_place", put("in_place", (0, 1), 1), "in_place[0] is no input of its codelet"),
    ("in_place", put("in_place", (0, 2), 0), "in_place[0] is no output of its codelet"),
    ("in_place", put("in_place", (0, 2), -1), "in_place[0] is no output of its codelet"),
    ("control", put_row(Opcode.END, ProgramRow.OPERATION, 19), "the operations of the program: row[23] is 19: expected 0 to 18"),
    ("control", put_row(Opcode.JUMP, JumpOperand.ROW, -1), "row 4 of the program, JUMP -1 0 0 0 0: operand 0 is no row"),
    ("control", put_row(Opcode.JUMP, JumpOperand.ROW, FAR), "operand 0 is no row"),
    ("control", put_row(Opcode.JUMP, JumpOperand.ROW, lambda row, old: 40), "the jump leaves its program or function"),
    ("control", put_row(Opcode.END, ProgramRow.OPERATION, Opcode.SYNC), "the program or function does not end here"),
    ("control", put_row(Opcode.END, ProgramRow.OPERATION, Opcode.RETURN), "nothing has called what returns here"),
    ("control", put_row(Opcode.RETURN, ProgramRow.OPERATION, Opcode.END), "a function does not end the program"),
    ("control", put_row(Opcode.CALL, CallOperand.ROW, own), "a function does not end the program"),
    ("control", put_row(Opcode.CALL, CallOperand.ROW, own, which=2), "calls nest deeper than call_depth, which is 2"),
    ("control", put_row(Opcode.CALL, CallOperand.ROW, 0), "a function is also a program's entry"),
    ("control", put_leaf("call_depth", 1), "calls nest deeper than call_depth, which is 1"),
    ("control", put_leaf("call_depth", FAR), "call_depth is 1099511627776"),
    ("control", put_leaf("counters", 0), "operand 0 is no counter"),
    ("control", put_leaf("counters", FAR), "counters is 1099511627776"),
    ("control", put_leaf("clocks", 0), "operand 0 is no clock"),
    ("control", put_row(Opcode.REPEAT, RepeatOperand.TIMES, -3), "operand 1 is no times"),
    ("control", put_row(Opcode.BRANCH, BranchOperand.OFFSET, FAR), "the value is not in the tile's memory"),
    ("control", put_row(Opcode.BRANCH, BranchOperand.OFFSET, -4), "operand 1 is no offset"),
    ("control", put_row(Opcode.BRANCH, BranchOperand.BYTES, 3), "no value has that many bytes"),
    ("control", put_row(Opcode.UNLESS_EQUAL, UnlessEqualOperand.OFFSET, lambda row, old: old + 1), "is not in the tile's memory"),
    ("control", put_row(Opcode.UNLESS_EQUAL, UnlessEqualOperand.TILE, 16), "operand 0 is no tile"),
    ("control", put_row(Opcode.CLOCK, ClockOperand.TILE, -1), "operand 0 is no tile"),
    ("control", put_row(Opcode.BRANCH, BranchOperand.OFFSET, 1 << 16), "is not in the tile's memory"),
    ("control", put_row(Opcode.ELAPSED, ElapsedOperand.OFFSET, FAR), "the clock's place is not in the tile's memory"),
    ("control", put_row(Opcode.CLOCK, ClockOperand.OFFSET, 2), "the clock's place is not in the tile's memory"),
    ("control", put_row(Opcode.FLOATING_POINT, FloatingPointOperand.KEPT, 16), "operand 0 is no mask"),
    ("control", put_row(Opcode.FLOATING_POINT, FloatingPointOperand.SET, -1), "operand 1 is no mask"),
    ("control", put_row(Opcode.SYNC, SyncOperand.STEP, 99), "operand 0 is no step"),
    ("control", put_row(Opcode.MOVE, MoveOperand.MOVE, -1), "operand 0 is no move"),
    ("control", put_row(Opcode.COMPUTE, ComputeOperand.COMPUTE, -1), "operand 0 is no compute"),
    ("control", put_row(Opcode.COMPUTE, ComputeOperand.COMPUTE, 5), "the step is not the compute set's"),
    ("control", put_row(Opcode.COMPUTE, ComputeOperand.STEP, 1), "the step is not the compute set's"),
    ("control", put_row(Opcode.STREAM_IN, StreamOperand.STREAM, 99), "operand 0 is no stream"),
    ("control", put_row(Opcode.CALLBACK, CallbackOperand.SERVICE, 99), "operand 1 is no service"),
    ("control", put_row(Opcode.SERVICE, ServiceOperand.SERVICE, 1), "the service is a callback's"),
    ("control", put_leaf("entry_streams", 0, []), "entry_streams[0] leaves out streams that the program uses"),
    ("control", put_leaf("entry_streams", 0, [99]), "entry_streams[0] is 99"),
    ("control", put("entries", 0, 1), "row 0 of the program is not the start of anything"),
    ("control", put("entries", 0, -1), "entries, with those of handles[0] is -1"),
    ("control", put_leaf("reads", "n", "entry", 0), "row 0 of the program, of a handle, needs a stream of the user's"),
    ("shuffled", put_leaf("writes", "x", "entry", 7), "row 7 of the program, of a handle, needs the stream of another handle"),
    ("transfers", put_row(Opcode.STREAM_OUT, StreamOperand.STREAM, 11), "entries[0] uses the stream of a handle"),
    ("transfers", put_leaf("services", 1, "stream", 11), "services[1].stream is the stream of a handle"),
    ("control", put_leaf("reads", "n", "stream", 0), "reads['n'].stream is 0, a stream of the user's"),
    ("control", put_leaf("reads", "n", "type", "FLOAT"), "reads['n'] is of type FLOAT, its stream of type INT"),
    ("control", put_leaf("reads", "n", "shape", [2]), "reads['n'].shape is (2,): expected the shape of 1 elements"),
    ("transfers", put_row(Opcode.STREAM_IN, StreamOperand.MOVE, 0), "the move"),
    ("transfers", put_row(Opcode.STREAM_OUT, StreamOperand.STREAM, 0), "the stream has the other direction"),
    ("transfers", put_row(Opcode.CALLBACK, CallbackOperand.STREAM, 1), "the service is not the callback of the stream"),
    ("transfers", put_leaf("streams", 0, "elements", 11), "the move does not end with the stream's chunk"),
    ("transfers", put_leaf("streams", 0, "type", "CHAR"), "the move does not end with the stream's chunk"),
    ("transfers", put_leaf("streams", 0, "type", "BYTE"), "streams[0]: there is no type 'BYTE'"),
    ("transfers", put_leaf("streams", 0, "kind", "sideways"), "streams[0]: there are no streams 'sideways'"),
    ("transfers", put_leaf("remotes", 0, "elements", FAR), "services[3]: the stream does not carry 2 rows of the remote buffer"),
    ("transfers", put_leaf("remotes", 0, "repeats", 1 << 46), "remotes[0].repeats is 70368744177664"),
    ("transfers", put_leaf("remotes", 0, "type", "INT"), "the stream carries FLOAT, the remote buffer holds INT"),
    ("transfers", put("moves.first_list", 1, -1), "moves.first_list[0] goes backwards"),
    ("transfers", put("moves.first_list", -1, 0), "moves.first_list goes from 0 to 0: expected 0 to"),
    ("transfers", put("moves.source_ipu", 0, 1), "moves.source_ipu[0] is 1: expected -1 to 0"),
    ("transfers", put("moves.target_ipu", 0, -2), "moves.target_ipu[0] is -2: expected -1 to 0"),
    ("transfers", put("moves.source_ipu", 0, HOST), "the move is one of a stream"),
    ("transfers", put("moves.source_ipu", slice(None), 0), "not all of the move is with the host, in this direction"),
    ("several_ipus", put("moves.target_ipu", slice(None), HOST), "leads from the host to the host"),
    ("several_ipus", put("moves.source_ipu", slice(None), HOST), "leads from the host to the host"),
    ("several_ipus", compute_a_streams_move, "computes.moves[0] is a move of a stream"),
    ("several_ipus", put("moves.source", 0, 1 << 20), "lies beyond the memory of the IPU"),
    ("several_ipus", put("computes.result_offset", 0, 1 << 16), "computes.result_offset[0] reaches beyond the tile"),
    ("several_ipus", put("computes.result_tile", 0, 8), "computes.result_tile[0] is 8: expected -1 to 7"),
    ("transfers", put("moves.first", 1, -1), "moves.first[0] goes backwards"),
    ("transfers", put("moves.first", -1, 0), "moves.first goes from 0 to 0: expected 0 to"),
    ("transfers", put("moves.source", 0, -1), "moves.source[0] is -1"),
    ("transfers", put("moves.target", 0, FAR), "the end of moves.target in list[0] lies beyond the memory of the IPU"),
    ("transfers", put("moves.bytes", 0, 0), "moves.bytes[0] is 0"),
    ("transfers", put("moves.bytes", 0, FAR), "the end of moves.source in list[0] lies beyond the memory of the IPU"),
    ("transfers", put("moves.count", 0, 1 << 47), "moves.target_step[0] is 0, for several pieces"),
    ("transfers", put("moves.source_step", slice(None), -(1 << 63)), "moves.source_step[0] is -9223372036854775808"),
    ("transfers", put("moves.source_list", 0, 3), "moves.source_list[0] is 3"),
    ("transfers", put("moves.tile", slice(None), lambda old: old[::-1]), "is followed by a lower one in its list"),
    ("transfers", put("moves.tile", 0, 16), "moves.tile[0] is 16: expected 0 to 15"),
    ("shuffled", put("moves.places", slice(None), (1 << 32) - 1), "end"),
    ("shuffled", put("moves.source_list", slice(None), lambda old: np.where(old >= 0, old + 1000, old)), "moves.source_list"),
    ("shuffled", put("moves.target_list", slice(None), lambda old: np.where(old >= 0, 1000, old)), "moves.target_list"),
    ("transfers", put("image.offset", 0, FAR), "image.offset[0] reaches beyond the tile"),
    ("transfers", put("image.bytes", 0, more), "image.data has"),
    ("transfers", put("image.tile", 0, 16), "image.tile[0] is 16: expected 0 to 15"),
    ("transfers", put("image.offset", 0, -4), "image.offset[0] is -4"),
    ("transfers", put("tile_bytes", -1, FAR), "tile_bytes[15] is more memory than the tile needs"),
    ("transfers", put("tile_bytes", 3, -64), "tile_bytes[3] is -64"),
    ("transfers", put("tile_bytes", 3, more), "tile_bytes[3] is no multiple of 64"),
    ("transfers", put("memory.code", 3, 1 << 30), "a tile holds"),
    ("transfers", put_leaf("target", "tiles_per_ipu", 15), "tile_bytes has the shape [16]: expected [15]"),
    ("transfers", put_leaf("target", "architecture", "ipu9"), "target.architecture is 'ipu9': expected ipu1, ipu2, cpu"),
    ("control", put_leaf("target", "architecture", ""), "target.architecture is ''"),
    ("transfers", put_leaf("services", 0, "kind", "__init__"), "services[0]: there is no service '__init__'"),
    ("transfers", put_leaf("services", 0, {"kind": "print", "stream": 0}), "services[0]: shape, title surplus or missing"),
    ("transfers", put_leaf("services", 0, "stream", 1.5), "services[0].stream is 1.5: expected a whole number"),
    ("transfers", put_leaf("services", 1, "stream", 0), "services[1].stream is a stream to device"),
    ("transfers", put_leaf("services", 1, "shape", [-1]), "services[1].shape is [-1]: expected the shape of 10 elements"),
    ("vertices", put_leaf("steps", 1, "kind", "rest"), "steps[1].kind is 'rest'"),
    ("vertices", put_leaf("steps", 1, "sync_cycles", -1), "steps[1].sync_cycles is -1"),
    ("vertices", put_leaf("steps", 1, "exchange", 99), "steps[1].exchange is 99"),
    ("vertices", put_leaf("steps", 1, "compute", 0), "steps[1].compute is 0, of a step 'exchange'"),
    ("vertices", reshaped("steps", 1, "exchange_cycles", [1, 16]), "steps[1].exchange_cycles has the shape [1, 16]: expected [16]"),
    ("vertices", reshaped("steps", 1, "rearrange_cycles", [0, 5]), "steps[1].rearrange_cycles has the shape [0, 5]: expected [0]"),
    ("vertices", put_leaf("exchanges", 0, "phase", "during"), "exchanges[0].phase is 'during'"),
    ("vertices", put("computes.first_active", 1, more), "is not followed by a higher one in its compute set"),
    ("vertices", put("computes.active_tile", 0, 16), "computes.active_tile[0] is 16: expected 0 to 15"),
    ("vertices", put("computes.active_tile", 1, 0), "computes.active_tile[0] is not followed by a higher one in its compute set"),
    ("vertices", put("computes.first_group", 1, 0), "computes.first_group[0] is an active tile without vertices"),
    ("vertices", put("computes.first_group", 1, 2**63 - 1), "computes.first_group[1] is an active tile without vertices"),
    ("vertices", put("computes.group_codelet", 0, 9), "computes.group_codelet[0] is 9"),
    ("vertices", put("computes.group_kind", 0, 1), "computes.group_kind[0] is not the codelet's kind"),
    ("vertices", put("computes.group_count", 0, 0), "computes.group_count[0] is 0"),
    ("vertices", put("computes.group_count", -1, more), "computes.vertex has another length than the groups together"),
    ("vertices", put("computes.group_position", 0, more), "computes.group_position[0] does not follow the group before"),
    ("vertices", put("computes.group_row", 0, -8), "computes.group_row[0] is -8"),
    ("vertices", put("computes.group_row", -1, more), "leaves no room for the group's edge rows"),
    ("vertices", put("computes.vertex", 0, 1000), "computes.vertex[0] is 1000"),
    ("vertices", put("computes.list_order", 0, 1000), "computes.list_order[0] is not on the tile"),
    ("vertices", put("computes.list_order", slice(None), 0), "leaves out a vertex of the tile"),
    ("vertices", put("computes.codelet_words", 0, 1), "computes.codelet_words[0] is not the size of the codelet's edge rows"),
    ("vertices", put("computes.moves", (0, 0), 99), "computes.moves[0] is 99"),
    ("control", put("computes.result_tile", 0, FAR), "computes.result_tile[0] is 1099511627776"),
    ("vertices", put("computes.estimate", 0, -2), "computes.estimate[0] is -2"),
    ("vertices", put("computes.words", 0, FAR), "the memory of field 'x' of Scale: vertex[0] reaches beyond its tile"),
    ("vertices", put("computes.words", 0, lambda old: old + 1), "the memory of field 'x' of Scale: vertex[0]"),
    ("vertices", put("computes.words", 1, -1), "the length of field 'x' of Scale: vertex[0] is -1"),
    ("vertices", put("computes.words", 1, 1 << 60), "the length of field 'x' of Scale: vertex[0] is 1152921504606846976"),
    ("vertices", put("computes.row_table", 0, FAR), "the memory of a row of field 'rows' of SumRows: vertex[0]"),
    ("vertices", put("computes.row_table", 1, 1 << 40), "the memory of a row of field 'rows' of SumRows: vertex[0]"),
    ("vertices", put("vertex_names.location", 0, 1000), "vertex_names.location[0] is 1000"),
    ("judged", put("computes.words", 2, -1), "the marks of field 'x' of Touch: place[0] is -1"),
    ("judged", put("computes.row_table", 2, FAR), "the marks of a row of field 'rows' of Touch"),
    ("judged", put_row(Opcode.COMPUTE, ProgramRow.OPERATION, Opcode.END), "computes.first_buffer[0] has exchange buffers"),
    ("judged", put_leaf("touches", None), "surplus arrays: touches.edge_field"),
    ("judged", put_leaf("options", {}), "touches are surplus: see the option pypoplar.races"),
    ("judged", put("touches.edge_field", 0, 3), "touches.edge_field[0] is no field of its codelet"),
    ("judged", put("touches.run_step", 0, FAR), "touches.run_st"),
    ("judged", put("touches.edge_touch", 1, more), "touches.edge_touch[0] is not followed by the next edge's"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "text"), CASES, ids=[f"{i}-{one[2][:40]}" for i, one in enumerate(CASES)])
def test_a_wrong_number_is_refused_by_name(name, change, text):
    opened = Opened(content_of(name))
    change(opened)
    with pytest.raises(FileLoadError) as caught:
        load(opened.content())
    assert text in str(caught.value)


@pytest.mark.parametrize("at_once", [1, 3, 1 << 18])
def test_moves_are_judged_alike_however_many_records_are_looked_at_together(at_once, monkeypatch):
    monkeypatch.setattr("pypoplar.executable.verify.move_claims.AT_ONCE", at_once)
    load(content_of("transfers"))
    opened = Opened(content_of("transfers"))
    moves = opened.executable().moves
    last = np.flatnonzero((moves.count > 1) & (moves.target_list < 0))[-1]
    assert last > 3
    opened.array("moves", "target_step")[last] = FAR << 7
    with pytest.raises(FileLoadError, match=rf"^the file: moves\.target_step\[{last}\] goes too far"):
        load(opened.content())


def move_of_a_stream(opened, operation):
    """The number of the first list of the first move for a stream, and that of its last record."""
    program = opened.array("program")
    move = program[program[:, ProgramRow.OPERATION] == operation, StreamOperand.MOVE][0]
    entry = opened.array("moves", "first_list")[move]
    return entry, opened.array("moves", "first")[entry + 1] - 1


@pytest.mark.parametrize("beyond", [*range(1, 9), 64, FAR])
@pytest.mark.parametrize(("operation", "side"), [(Opcode.STREAM_IN, "target"), (Opcode.STREAM_OUT, "source")])
@pytest.mark.parametrize("name", ["transfers", "several_ipus"])
def test_a_list_of_a_stream_that_ends_beyond_the_memory_is_refused(name, operation, side, beyond):
    opened = Opened(content_of(name))
    entry, record = move_of_a_stream(opened, operation)
    moves = opened.executable().moves
    size = opened.executable().layout.ipu_bytes[getattr(moves, f"{side}_ipu")[entry]]
    first = getattr(moves, f"{side}_of")(record, 0)
    last = max(getattr(moves, f"{side}_of")(record, piece) for piece in range(moves.count[record]))
    opened.array("moves", side)[record] += size - (last + moves.bytes[record]) + beyond
    assert first >= 0
    with pytest.raises(FileLoadError, match=rf"the end of moves\.{side} in list\[{entry}\] lies beyond the memory of the IPU"):
        load(opened.content())


def test_memories_that_are_together_too_large_for_an_address_are_refused():
    """Their sum would go round, and an engine make room for little."""
    model = IPUModel("pod64")
    graph = Graph(model.createDevice().getTarget())
    opened = Opened(compileGraph(graph, [], {"pypoplar.run_out_of_memory": True}).serialize())
    tiles = len(opened.arrays["tile_bytes"])
    each = ((1 << 64) // tiles // 64 + 1) * 64
    for name in ("tile_bytes", "memory.code", "memory.always_live"):
        opened.arrays[name][:] = each
    with pytest.raises(FileLoadError, match=f"the tiles have {each * tiles} bytes of memory: expected less than {1 << 48}"):
        verify(opened.executable())


@pytest.mark.parametrize("name", ["control", "judged"])
def test_an_array_of_another_rank_is_refused(name):
    content = content_of(name)
    places = {
        tuple(key if isinstance(key, str) else 0 for key in path): (path, size) for path, size in array_places(Opened(content).tree)
    }
    for path, size in places.values():  # of steps and exchanges the last that have some
        opened = Opened(content)
        reshaped(*path, [1, 1, size])(opened)
        with pytest.raises(FileLoadError):
            load(opened.content())


def test_the_verifier_knows_what_every_operand_is():
    told = {(operation, operand.name) for operation, operands in KINDS.items() for operand in operands}
    there = {(operation, operand.name) for operation, operands in OPERANDS.items() for operand in operands}
    assert there - told == {(Opcode.UNLESS_EQUAL, "VALUE")}  # any number is a value to compare with
    assert KINDS.keys() == set(Opcode)


def test_the_verifier_knows_what_every_detail_of_a_service_is():
    assert CHECKS.keys() == set().union(*DETAILS.values())


# Random damage

LARGE = (1 << 31, 1 << 32, FAR, 1 << 62, (1 << 63) - 1)
numbers = st.one_of(
    st.integers(-9, 9).map(lambda value: lambda old: old + value),
    st.integers(-2, 300).map(lambda value: lambda old: value),
    st.sampled_from([sign * one for one in LARGE for sign in (1, -1)]).map(lambda value: lambda old: value),
    st.sampled_from([8, 64, 1024, -64, 1 << 20]).map(lambda value: lambda old: old + value),
)
odd_leaves = st.sampled_from([None, True, "", "INT", 1.5, -1, 0, 1, 2, 7, [], [0], {}])


class Damaged:
    """A damaged file, shown as what was done to it."""

    def __init__(self, name):
        self.opened, self.changes = Opened(content_of(name)), [name]

    def __repr__(self):
        return "; ".join(self.changes)


@st.composite
def damaged(draw):
    """A file with one or two wrong numbers in its arrays, sometimes with a wrong value in its tree."""
    made = Damaged(draw(st.sampled_from(BUSY)))
    opened = made.opened
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(sorted(name for name, one in opened.arrays.items() if one.size)))
        kind = opened.arrays[name].dtype
        flat = opened.arrays[name].view("i4" if kind.names else "u1" if kind.kind == "b" else kind)
        place = draw(st.integers(0, flat.size - 1))
        value = draw(numbers)(int(flat[place]))
        limits = np.iinfo(flat.dtype)
        flat[place] = min(max(value, int(limits.min)), int(limits.max))
        made.changes.append(f"{name}[{place}] = {flat[place]}")
    if draw(st.integers(0, 4)) == 0:
        path = draw(st.sampled_from([one for one in leaves(opened.tree) if one[0] != "target"]))
        value = draw(odd_leaves)
        put_leaf(*path, value)(opened)
        made.changes.append(f"{path} = {value!r}")
    return made


@given(damaged())
def test_damage_is_refused_with_one_kind_of_error_or_not_at_all(file):
    with contextlib.suppress(FileLoadError):
        load(file.opened.content())


@given(file=damaged(), mode=st.sampled_from(["native", "native", "parallel", "interpret"]))
@examples(150)
def test_an_engine_survives_whatever_is_loaded(file, mode, worker):
    answer = worker.ask(file.opened.content(), mode, seconds=1.0)
    assert answer.keys() <= {"refused", "failed", "stopped", "ran"}, answer


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("moves.source", "moves.target"),
        ("moves.first", "moves.source"),
        ("computes.words", "computes.vertex"),
        ("computes.group_row", "computes.group_position"),
        ("computes.vertex", "computes.list_order"),
        ("image.offset", "image.bytes"),
        ("memory.variables", "memory.stack"),
    ],
)
@pytest.mark.parametrize("name", BUSY)
def test_swapped_members_are_refused_or_harmless(name, first, second, worker):
    opened = Opened(content_of(name))
    opened.arrays[first], opened.arrays[second] = opened.arrays[second], opened.arrays[first]
    answer = worker.ask(opened.content(), seconds=2.0)
    assert answer.keys() <= {"refused", "failed", "stopped", "ran"}, answer
