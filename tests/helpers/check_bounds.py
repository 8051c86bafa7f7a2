"""The bounds of the verifier's checks once more: the least and the largest number that passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pypoplar import Executable
from pypoplar.interface.fault_codes import FloatingPoint
from pypoplar.interface.opcodes import CallOperand, Opcode, ProgramRow

ADDRESSES = 1 << 48

LEAST: Mapping[int, str] = {  # of all others it is 0
    -1: """
        vertex_names.tile steps.compute steps.exchange moves.source_ipu moves.target_ipu moves.source_list moves.target_list
        computes.moves computes.result_tile computes.estimate computes.flops tree.step COMPUTE-BEFORE COMPUTE-AFTER
    """,
    1: "moves.bytes moves.count computes.group_count lives.range_begin touches.edge_width touches.home_width",
    2: "moves.source_list-count moves.target_list-count replication.factor",
    -ADDRESSES: "moves.source_step moves.target_step touches.run_step",
}

Size = Callable[[Executable], int]

LARGEST: Mapping[Size, str] = {
    lambda executable: ADDRESSES - 1: """
        tile_bytes-total touch_bytes memory.variables memory.constants memory.exchange_buffers memory.vertex_state
        memory.constant_tables
        memory.edge_pointers memory.code memory.stack memory.gaps memory.always_live memory.not_always_live image.offset
        exchanges.bytes_sent exchanges.bytes_received exchanges.messages.bytes exchanges.shares.bytes_sent
        exchanges.shares.messages.bytes steps.sync_cycles steps.host_bytes
        steps.host_cycles steps.global_exchange_cycles steps.depth steps.exchange_cycles steps.rearrange_cycles
        steps.exchange_pieces moves.source moves.target moves.bytes moves.count moves.source_step moves.target_step
        computes.buffer_bytes computes.estimate computes.flops
        computes.cost lives.bytes lives.offset lives.span field-address row-address BRANCH-OFFSET UNLESS_EQUAL-OFFSET ELAPSED-OFFSET
        CLOCK-OFFSET touches.run_count-total touches.edge_offset touches.edge_touch touches.first_element-end touches.run_step
        touches.home_begin
    """,
    lambda executable: ADDRESSES // 8 - 1: """
        streams.elements remotes.elements remotes.repeats remotes-size field-length row-length
    """,
    lambda executable: 0: "touch_bytes-without-marks program-begin lives.always-times",
    lambda executable: 4: "moves.source_list-bytes moves.target_list-bytes",
    lambda executable: 1 << 16: "replication.factor",
    lambda executable: 8: "touches.edge_width touches.home_width",
    lambda executable: (1 << 40) - 1: "computes-workers",
    lambda executable: (1 << 63) - 2: "REPEAT-TIMES",
    lambda executable: max(Opcode): "program-operations",
    lambda executable: sum(FloatingPoint): "FLOATING_POINT-KEPT FLOATING_POINT-SET",
    lambda executable: executable.target.getNumTiles() - 1: """
        image.tile vertex_names.tile exchanges.messages.source exchanges.messages.destination moves.tile computes.buffer_tile
        exchanges.shares.messages.source exchanges.shares.messages.destination
        computes.active_tile computes.result_tile lives.tile BRANCH-TILE UNLESS_EQUAL-TILE ELAPSED-TILE CLOCK-TILE touches.edge_tile
        touches.home_tile replication.index
    """,
    lambda executable: executable.target.getNumIPUs() - 1: "moves.source_ipu moves.target_ipu",
    lambda executable: executable.target.getBytesPerTile(): "memory",
    lambda executable: len(executable.image.data): "image.bytes",
    lambda executable: len(executable.codelets) - 1: "computes.group_codelet touches.vertex_codelet",
    lambda executable: len(executable.vertex_names.location): "priced_by",
    lambda executable: len(executable.vertex_names.location) - 1: "computes.vertex touches.edge_vertex",
    lambda executable: len(executable.vertex_names.locations) - 1: "vertex_names.location",
    lambda executable: len(executable.variable_names) - 1: "exchanges.messages.variable exchanges.shares.messages.variable",
    lambda executable: len(executable.exchanges) - 1: "steps.exchange",
    lambda executable: len(executable.steps): "lives.range_end",
    lambda executable: len(executable.steps) - 1: """
        tree.step MOVE-STEP STREAM_IN-STEP STREAM_OUT-STEP SYNC-STEP COMPUTE-BEFORE COMPUTE-STEP COMPUTE-AFTER services.step
    """,
    lambda executable: len(executable.streams) - 1: """
        handles.stream services.stream services.offsets services.inputs services.outputs STREAM_IN-STREAM STREAM_OUT-STREAM
        entry_streams services.sent services.received replication.broadcast
    """,
    lambda executable: len(executable.remotes) - 1: "services.buffer",
    lambda executable: len(executable.services) - 1: "SERVICE-SERVICE CALLBACK-SERVICE",
    lambda executable: len(executable.computes.result_tile) - 1: "steps.compute services.compute",
    lambda executable: len(executable.computes.words): "computes.group_row computes.group_row-end",
    lambda executable: _list_rows(executable): "list-first list-end list-shared",
    lambda executable: len(executable.moves.first_list) - 2: "computes.moves MOVE-MOVE STREAM_IN-MOVE STREAM_OUT-MOVE",
    lambda executable: len(executable.moves.places): "moves.source_list-end moves.target_list-end",
    lambda executable: len(executable.moves.places) - 1: "moves.source_list moves.target_list",
    lambda executable: executable.touch_bytes: "field-marks field-marks-end row-marks row-marks-end touches.edge_touch-reach",
    lambda executable: len(executable.program): "counters clocks",
    lambda executable: len(executable.program) - 1: """
        entries REPEAT-AFTER REPEAT_END-BODY JUMP-ROW BRANCH-ROW UNLESS_EQUAL-ROW CALL-ROW replication.branches
    """,
    lambda executable: executable.counters - 1: "REPEAT-COUNTER REPEAT_END-COUNTER",
    lambda executable: executable.clocks - 1: "STAMP-CLOCK ELAPSED-CLOCK",
    lambda executable: executable.call_depth: "calls",
    lambda executable: _blocks(executable): "call_depth",
    lambda executable: len(executable.tree) - 1: "tree.root",
    lambda executable: int(executable.touches.first_element[-1]) - 1 if executable.touches else 0: "touches.run_start",
}


def _list_rows(executable: Executable) -> int:
    return len(executable.computes.row_table) // (2 if executable.touches is None else 3)


def _blocks(executable: Executable) -> int:
    """Rows where a program, a handle's or a function begins."""
    program = executable.program
    handles = [handle.entry for handle in (*executable.writes.values(), *executable.reads.values())]
    called = program[program[:, ProgramRow.OPERATION] == Opcode.CALL, CallOperand.ROW]
    return len({*executable.entries.tolist(), *handles, *called.tolist()})


def expected_bound(check: str, side: int, executable: Executable) -> int:
    """The least (`side` -1) or the largest number (1) that passes a check."""
    parts = [part for part in check.split(" ") if part not in ("low", "high", "least", "most")]
    name = "-".join(parts[1:] if parts[0] == "program" and parts[1] in Opcode.__members__ else parts)
    if side < 0:
        return next((bound for bound, names in LEAST.items() if name in names.split()), 0)
    return next(size(executable) for size, names in LARGEST.items() if name in names.split())
