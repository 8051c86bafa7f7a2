"""Eight vertices, or eight rounds of a loop, side by side: the code for what `pypoplar.codelet.ir.eight_lanes_plan` finds.

In the loop a local is a vector with a lane for each of the eight. The elements that eight rounds of it need for one lane lie side
by side in memory, those of one round in eight places: they are loaded four at a time and transposed. It is done where the loops of
all eight run equally often and their checks (`pypoplar.codelet.ir.loop_checks`) pass; else they run one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from attrs import define, field
from llvmlite import ir

from pypoplar.codelet.ir.eight_lanes_plan import LanesPlan, plan_rounds
from pypoplar.codelet.ir.loop_limits import most_slots, round_slots, stretch
from pypoplar.codelet.ir.memory_types import REGISTERS_OF
from pypoplar.codelet.ir.proven_accesses import AccessLine, PlannedBlock, PlannedStatement, ProvenLoad
from pypoplar.codelet.ir.typed import (
    Apply,
    Binding,
    Breakpoint,
    For,
    Load,
    Local,
    Span,
    SpanList,
    Store,
)
from pypoplar.codelet.ir.walk import assigned, operands, sets, walk
from pypoplar.codelet.llvm import halves
from pypoplar.codelet.llvm.arithmetic import REGISTER_FORMS
from pypoplar.codelet.llvm.emitter_state import CodeletFunction, Emit, EmitterState, ForRounds, LoopBlocks
from pypoplar.codelet.llvm.loop_rounds import (
    LARGEST_ROUND,
    count_rounds,
    in_stretches,
    line_offset,
    line_pointer,
    prepare_lines,
    running_lines,
    set_variable,
    spends_at_most,
)
from pypoplar.codelet.llvm.memory_access import element, load, store
from pypoplar.codelet.llvm.memory_forms import BOOL, INT, WORD, alignment, word
from pypoplar.codelet.llvm.vertex_life import begin_vertex, end_vertex
from pypoplar.interface.context_words import CallArgument

LANES = 8
FEWEST = 4  # vertices for which it is worth while: lanes that are left over do again what the last one does
_CHUNK = 4  # elements that are loaded at a time
_CHUNKED = {"f32": ir.FloatType(), "f16": ir.IntType(16), "i32": INT, "u32": INT}
_LARGEST_STRIDE = 4


@define(eq=False)
class Lanes:
    """What runs side by side: a state for each, and what is loaded for all of them."""

    plan: LanesPlan
    states: Sequence[EmitterState]
    shared: AccessLine | None = None  # a line that all have in common
    columns: dict[tuple[AccessLine, int], Any] = field(factory=dict)  # a line's element, by its distance from the round's first
    place: int | None = None  # of the round that is written, within a block whose elements are loaded

    def wide_state(self) -> EmitterState:
        """A state whose locals have all the lanes."""
        function = self.states[0].function
        return EmitterState(function, self.emit, None, None, None, None, None, {}, lanes=LANES, holds_back=True)

    def emit(self, wide: EmitterState, statement: PlannedStatement) -> None:
        """Write a statement of the loop for all lanes."""
        match statement:
            case ProvenLoad():
                wide.assign(statement.target, _lane_elements(self, statement))
            case Apply() | Load() | Store() | Breakpoint():
                self.states[0].emit(wide, statement)
            case _:
                raise NotImplementedError(f"no lanes for statements of the kind {type(statement).__name__}")


def emit_eight_vertices(
    function: CodeletFunction, emit: Emit, plan: LanesPlan, number: Any, otherwise: Any, following: Any
) -> None:
    """Run the vertices from row `number` on, then go to `following`; go to `otherwise` if they must run one by one.

    At least `FEWEST` are left. Where they are less than eight, the last one has the lanes that are left over, and ends once.
    """
    builder = function.builder
    last = builder.sub(function.arguments[CallArgument.COUNT], word(1))
    rows = [builder.add(number, word(lane)) for lane in range(LANES)]
    exists = [builder.icmp_signed("<=", row, last) for row in rows]
    numbers = [builder.select(exists[lane], rows[lane], last) if lane >= FEWEST else rows[lane] for lane in range(LANES)]
    states = [begin_vertex(function, emit, row, builder.append_basic_block()) for row in numbers]
    for state in states:
        state.holds_back = True
    _side_by_side(plan, states, otherwise, lambda count: spends_at_most(states[0], plan.loop, count, states[0].limit()))
    for lane, state in enumerate(states):
        if lane >= FEWEST:
            ending = builder.append_basic_block("lane.ends")
            builder.cbranch(exists[lane], ending, following)
            builder.position_at_end(ending)
        state.holds_back = False
        for span in plan.stored:
            store(state, span, element(state, span, word(0)), builder.load(state.scalars[span.name]))
        state.emit_block(plan.after)
        end_vertex(state)
    builder.branch(following)


def emit_eight_rounds(
    state: EmitterState, loop: For, rounds: ForRounds, number: Any, end: Any, top: Any, done: Any, after: Any
) -> None:
    """Where eight rounds of a loop are left that may run side by side, run them; else go on here.

    They are the rounds from `number` on; behind them it goes on at `top`, or at `done` if the next one were `end`. ``break`` goes
    to `after`.
    """
    codelet = state.function.codelet
    plan = plan_rounds(loop, codelet, state.checks)
    if plan is None or round_slots(plan.loop) > LARGEST_ROUND:
        return
    builder = state.builder
    eight, single = builder.append_basic_block("eight"), builder.append_basic_block("one")
    upcoming = builder.add(number, word(LANES))
    builder.cbranch(builder.icmp_unsigned("<=", upcoming, end), eight, single)
    builder.position_at_end(eight)
    for local in _locals_in(codelet.body):
        state.slot(local)
    changing = assigned(loop.body) | {loop.variable.name}
    states = [_round_state(state, changing) for _ in range(LANES)]
    for lane, of_round in enumerate(states):
        set_variable(of_round, loop, rounds, builder.add(number, word(lane)))
    _side_by_side(plan, states, single, None if state.judged else lambda count: _rounds_fit(state, plan, count))
    for lane, of_round in enumerate(states):
        _take_over(state, of_round)
        set_variable(state, loop, rounds, builder.add(number, word(lane)))
        following = builder.append_basic_block("eight.next")
        state.loops.append(LoopBlocks(after, following))
        state.emit_block(plan.after)
        state.loops.pop()
        state.go(following)
        builder.position_at_end(following)
    number.add_incoming(upcoming, builder.block)
    builder.cbranch(builder.icmp_unsigned("!=", upcoming, end), top, done)
    builder.position_at_end(single)


def _rounds_fit(state: EmitterState, plan: LanesPlan, count: Any) -> Any:
    """Whether eight rounds of a vertex, each with `count` rounds of the loop within, end below the cycle limit."""
    builder = state.builder
    around = [most_slots(block) for block in (plan.before, plan.after)]
    most = builder.add(builder.mul(count, word(round_slots(plan.loop))), word(sum(slots for slots in around if slots is not None)))
    return builder.icmp_signed("<=", builder.add(builder.load(state.slots), builder.mul(most, word(LANES))), state.limit())


def _round_state(state: EmitterState, changing: set[str]) -> EmitterState:
    """A state for one round: what it sets is its own, all else the vertex's."""
    kept = {name: slot for name, slot in state.locals.items() if name not in changing}
    spans = {name: place for name, place in state.spans.items() if name not in changing}
    return state.counting_anew(end=None, failed=None, locals=kept, spans=spans, lines=None)


def _take_over(state: EmitterState, of_round: EmitterState) -> None:
    """Let a vertex's state have what a round has set."""
    builder = state.builder
    for counter, counted in zip(state.counters, of_round.counters, strict=True):
        state.add_to(counter, builder.load(counted))
    for block, counter in of_round.blocks.items():
        state.count_block(block, builder.load(counter))
    for name, slot in of_round.locals.items():
        if slot is not state.locals.get(name, slot):
            builder.store(builder.load(slot), state.locals[name])
    for span in _spans_in(state.function.codelet.body):
        if span.name in of_round.spans and of_round.spans[span.name] is not state.spans.get(span.name):
            state.bind(span, of_round.place(span))


def _side_by_side(plan: LanesPlan, states: Sequence[EmitterState], otherwise: Any, fits: Callable[[Any], Any] | None) -> None:
    """Run what comes before a loop, and the loop, for eight states; go to `otherwise` if they must run one by one.

    ``fits(count)`` says whether none of them comes to the cycle limit with so many rounds; None where that is known.
    """
    builder = states[0].builder
    for state in states:
        state.otherwise = otherwise
        for span in plan.stored:
            if span.name not in state.scalars:
                state.scalars[span.name] = state.function.allocate(REGISTER_FORMS[REGISTERS_OF[span.element]])
        state.emit_block(plan.before)
    rounds = [count_rounds(state, plan.loop) for state in states]
    count = rounds[0].count
    states[0].require(builder.icmp_unsigned("!=", count, word(0)), otherwise)
    for state, of_state in zip(states[1:], rounds[1:], strict=True):
        state.require(builder.icmp_unsigned("==", of_state.count, count), otherwise)
    if fits is not None:
        states[0].require(fits(count), otherwise)
    for state, of_state in zip(states, rounds, strict=True):
        state.lines = prepare_lines(state, plan.loop_plan, of_state, otherwise)
    _run_loop(Lanes(plan, states), count, stops=fits is not None)
    for state in states:
        state.lines = state.otherwise = None
        state.spend(plan.loop_plan.price, count)
        state.count_block(plan.loop.rounds_of, count)


# Locals with lanes


def _run_loop(lanes: Lanes, count: Any, *, stops: bool) -> None:
    """The loop, written for each line that all may have in common and for the case that they have none.

    With `stops` it looks now and then whether the run has been stopped.
    """
    plan, states, wide = lanes.plan, lanes.states, lanes.wide_state()
    builder = wide.builder
    for local in _locals_in(plan.body):
        if local.name in plan.taken:
            wide.assign(local, _gathered(builder, (state.value(local) for state in states)))
    for name in states[0].scalars:
        values = [builder.load(state.scalars[name]) for state in states]
        wide.scalars[name] = wide.function.allocate(ir.VectorType(values[0].type, LANES))
        builder.store(_gathered(builder, values), wide.scalars[name])
    done = builder.append_basic_block("lanes.end")
    length = stretch(plan.loop, round_slots(plan.loop), wide.function.short, plan.loop_plan) if stops else None

    def run_stretches() -> None:
        in_stretches(builder, count, length, done, lambda begin, end, block: _run_blocks(lanes, wide, (begin, end), block), look)

    def look() -> None:
        state = states[0]
        state.require(builder.icmp_signed("<=", builder.load(state.slots), state.limit()), state.otherwise)

    for line in plan.common:
        common, apart = builder.append_basic_block("lanes.common"), builder.append_basic_block("lanes.apart")
        builder.cbranch(_is_common(builder, states, line), common, apart)
        builder.position_at_end(common)
        lanes.shared = line
        run_stretches()
        builder.position_at_end(apart)
    lanes.shared = None
    run_stretches()
    builder.position_at_end(done)
    for state in states:
        set_variable(state, plan.loop, running_lines(state).rounds, builder.sub(count, word(1)))
    for local in _locals_in(plan.body):
        if local.name in plan.left:
            _scatter(builder, builder.load(wide.slot(local)), [state.slot(local) for state in states])
    for name, slot in wide.scalars.items():
        _scatter(builder, builder.load(slot), [state.scalars[name] for state in states])


def _is_common(builder: Any, states: Sequence[EmitterState], line: AccessLine) -> Any:
    """Whether a line begins at the same address for all."""
    first, *others = (builder.ptrtoint(running_lines(state).bases[line], WORD) for state in states)
    same = BOOL(1)
    for other in others:
        same = builder.and_(same, builder.icmp_unsigned("==", other, first))
    return same


def _gathered(builder: Any, values: Iterable[Any]) -> Any:
    """A vector of the lanes' values."""
    vector = None
    for lane, value in enumerate(values):
        if vector is None:
            vector = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
        vector = builder.insert_element(vector, value, INT(lane))
    return vector


def _scatter(builder: Any, vector: Any, slots: list[Any]) -> None:
    for lane, slot in enumerate(slots):
        builder.store(builder.extract_element(vector, INT(lane)), slot)


# The loop


def _run_blocks(lanes: Lanes, wide: EmitterState, some: tuple[Any, Any], done: Any) -> None:
    """Some rounds, from the first up to an end: as many blocks as there are, then the rest one by one; then go to `done`."""
    builder, (begin, end) = wide.builder, some
    rest = builder.append_basic_block("lanes.rest")
    start = begin
    if _in_blocks(lanes.plan):
        start = builder.add(begin, builder.and_(builder.sub(end, begin), word(-LANES)))
        before, blocks, after = builder.block, builder.append_basic_block("lanes.block"), builder.append_basic_block()
        builder.cbranch(builder.icmp_unsigned("!=", start, begin), blocks, after)
        builder.position_at_end(blocks)
        first = builder.phi(WORD)
        first.add_incoming(begin, before)
        _load_block(lanes, builder, first)
        for place in range(LANES):
            _run_round(lanes, wide, builder.add(first, word(place)), place)
        upcoming = builder.add(first, word(LANES), flags=("nuw",))
        first.add_incoming(upcoming, builder.block)
        builder.cbranch(builder.icmp_unsigned("<", upcoming, start), blocks, after)
        builder.position_at_end(after)
    before = builder.block
    builder.cbranch(builder.icmp_unsigned("<", start, end), rest, done)
    builder.position_at_end(rest)
    number = builder.phi(WORD)
    number.add_incoming(start, before)
    _run_round(lanes, wide, number, None)
    upcoming = builder.add(number, word(1), flags=("nuw",))
    number.add_incoming(upcoming, builder.block)
    builder.cbranch(builder.icmp_unsigned("!=", upcoming, end), rest, done)


def _in_blocks(plan: LanesPlan) -> bool:
    """Whether the elements of eight rounds lie side by side."""
    loads = [statement for statement in plan.body if isinstance(statement, ProvenLoad)]
    return all(load.span.element in _CHUNKED and 0 < load.index.scale * plan.step <= _LARGEST_STRIDE for load in loads)


def _run_round(lanes: Lanes, wide: EmitterState, number: Any, place: int | None) -> None:
    """One round; `place` is its number within a block whose elements are loaded."""
    lanes.place = place
    loop = lanes.plan.loop
    for state in lanes.states:
        running_lines(state).round = number
    if loop.variable.name in lanes.plan.taken:
        for state in lanes.states:
            set_variable(state, loop, running_lines(state).rounds, number)
        wide.assign(loop.variable, _gathered(wide.builder, (state.value(loop.variable) for state in lanes.states)))
    wide.emit_block(lanes.plan.body)


def _lane_elements(lanes: Lanes, statement: ProvenLoad) -> Any:
    """The element that each lane reads in a round."""
    span, index, first = statement.span, statement.index, lanes.states[0]
    line = AccessLine.of(span, index)
    if line != lanes.shared and lanes.place is not None:
        return lanes.columns[line, index.scale * lanes.plan.step * lanes.place + index.constant]
    offset = line_offset(first, index)
    if line == lanes.shared:
        return _gathered(first.builder, [load(first, span, line_pointer(first, span, index, offset))] * LANES)
    return _gathered(first.builder, (load(state, span, line_pointer(state, span, index, offset)) for state in lanes.states))


# Blocks of eight rounds


def _load_block(lanes: Lanes, builder: Any, first: Any) -> None:
    """Load what eight rounds from round `first` on need, as vectors with a lane for each state."""
    lanes.columns.clear()
    wanted: dict[AccessLine, tuple[Span, set[int]]] = {}
    for statement in lanes.plan.body:
        if isinstance(statement, ProvenLoad) and (line := AccessLine.of(statement.span, statement.index)) != lanes.shared:
            step = statement.index.scale * lanes.plan.step
            places = {step * place + statement.index.constant for place in range(LANES)}
            wanted.setdefault(line, (statement.span, set()))[1].update(places)
    for line, (span, places) in wanted.items():
        last = max(places) - _CHUNK + 1
        for place in sorted(places):
            if (line, place) not in lanes.columns:
                begin = min(place, last)
                offset = builder.add(builder.mul(first, word(line.scale * lanes.plan.step)), word(begin))
                for i, column in enumerate(_transposed(builder, _load_chunks(lanes, span, line, offset))):
                    lanes.columns[line, begin + i] = column


def _load_chunks(lanes: Lanes, span: Span, line: AccessLine, offset: Any) -> list[Any]:
    """Four elements of each lane, as a vector each."""
    memory = _CHUNKED[span.element]
    chunks = []
    for state in lanes.states:
        pointer = state.builder.gep(running_lines(state).bases[line], [offset], source_etype=memory)
        chunk = state.builder.load(pointer, align=alignment(span.element), typ=ir.VectorType(memory, _CHUNK))
        state.function.scopes.mark(chunk, span.name)
        chunks.append(halves.from_half(state.builder, chunk) if span.element == "f16" else chunk)
    return chunks


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Eight vectors of four elements as four vectors of eight, in steps that are single instructions of the common processors."""

    def shuffled(a: Any, b: Any, lanes: list[int]) -> Any:
        return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(INT, len(lanes)), lanes))

    pairs = [shuffled(rows[i], rows[i + 4], [0, 1, 2, 3, 4, 5, 6, 7]) for i in range(4)]
    low = [0, 8, 1, 9, 4, 12, 5, 13]
    high = [2, 10, 3, 11, 6, 14, 7, 15]
    a, b = shuffled(pairs[0], pairs[1], low), shuffled(pairs[2], pairs[3], low)
    c, d = shuffled(pairs[0], pairs[1], high), shuffled(pairs[2], pairs[3], high)
    first, second = [0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]
    return [shuffled(a, b, first), shuffled(a, b, second), shuffled(c, d, first), shuffled(c, d, second)]


# What a block names


def _locals_in(block: PlannedBlock) -> list[Local]:
    """The locals that the statements of a block read or set."""
    names = [name for statement in walk(block) for name in (sets(statement), *operands(statement))]
    return list(dict.fromkeys(name for name in names if isinstance(name, Local)))


def _spans_in(block: PlannedBlock) -> list[Span | SpanList]:
    """The spans and rows that the statements of a block bind."""
    return list(dict.fromkeys(statement.target for statement in walk(block) if isinstance(statement, Binding)))
