"""Eight vertices, or eight rounds of a loop, side by side: the code for what `pypoplar.codelet.ir.eight_lanes_plan` finds.

In the loop a local is a vector with a lane for each of the eight. The elements that eight rounds of it need for one lane lie side
by side in memory, those of one round in eight places: they are loaded four at a time and transposed. It is done where the loops of
all eight run equally often and their checks (`pypoplar.codelet.ir.loop_checks`) pass; else they run one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from attrs import define, field, fields_dict
from llvmlite import ir

from pypoplar.codelet.ir.eight_lanes_plan import LanesPlan, plan_rounds
from pypoplar.codelet.ir.memory_types import REGISTERS_OF
from pypoplar.codelet.ir.proven_accesses import Line, PlannedBlock, PlannedStatement, ProvenLoad
from pypoplar.codelet.ir.typed import For, Literal, Local, Row, Slice, Span
from pypoplar.codelet.ir.walk import assigned, walk
from pypoplar.codelet.llvm import halves
from pypoplar.codelet.llvm import memory_access as access
from pypoplar.codelet.llvm.arithmetic import REGISTER_FORMS, is_lanewise
from pypoplar.codelet.llvm.emitter_state import Frame, Rounds
from pypoplar.codelet.llvm.memory_access import INT, WORD, word
from pypoplar.codelet.llvm.vertex_code import VertexCode

TOGETHER = 8
_CHUNK = 4  # elements that are loaded at a time
_CHUNKED = {"f32": ir.FloatType(), "f16": ir.IntType(16), "i32": INT, "u32": INT}
_LARGEST_STRIDE = 4


@define(eq=False)
class Lanes:
    """What runs side by side: a frame for each, one whose locals have all their lanes, and what is loaded."""

    frames: list[Frame]
    wide: Frame
    shared: Line | None = None  # a line that all have in common
    columns: dict[tuple[Line, int], Any] = field(factory=dict)  # a line's element, by its distance from the round's first


class JammedCode(VertexCode):
    """Vertices and rounds side by side, on top of single ones."""

    lanes: Lanes | None = None

    def vertices(self, jam: LanesPlan, number: Any, otherwise: Any, following: Any) -> None:
        """Run the vertices from row `number` on, then go to `following`; go to `otherwise` if they must run one by one."""
        builder = self.builder
        frames = [self.begin(builder.add(number, word(j)), builder.append_basic_block()) for j in range(TOGETHER)]
        for frame in frames:
            frame.holds_back = True
        self.side_by_side(jam, frames, otherwise)
        for frame in frames:
            frame.holds_back = False
            for span in jam.stored:
                self.store(span, self.element(frame, span, word(0)), builder.load(frame.scalars[span.name]))
            self.block(frame, jam.after)
            self.finish(frame)
        builder.branch(following)

    def run_eight(self, frame: Frame, loop: For, rounds: Rounds, number: Any, top: Any, after: Any) -> None:
        """Where eight rounds of a loop are left that may run side by side, run them and go on at `top`; else go on here."""
        jam = plan_rounds(loop, self.codelet, self.checks, is_lanewise)
        if jam is None:
            return
        builder = self.builder
        eight, single = builder.append_basic_block("eight"), builder.append_basic_block("one")
        upcoming = builder.add(number, word(TOGETHER))
        builder.cbranch(builder.icmp_unsigned("<=", upcoming, rounds.count), eight, single)
        builder.position_at_end(eight)
        for local in locals_in(self.codelet.body):
            self.local(frame, local)
        changing = assigned(loop.body) | {loop.variable.name}
        lanes = [self.lane(frame, changing) for _ in range(TOGETHER)]
        for j, lane in enumerate(lanes):
            self.set_variable(lane, loop, rounds, builder.add(number, word(j)))
        self.side_by_side(jam, lanes, single)
        for j, lane in enumerate(lanes):
            self.take_over(frame, lane)
            self.set_variable(frame, loop, rounds, builder.add(number, word(j)))
            following = builder.append_basic_block("eight.next")
            self.loops.append((after, following))
            self.block(frame, jam.after)
            self.loops.pop()
            self.go(following)
            builder.position_at_end(following)
        number.add_incoming(upcoming, builder.block)
        builder.cbranch(builder.icmp_unsigned("!=", upcoming, rounds.count), top, after)
        builder.position_at_end(single)

    def lane(self, frame: Frame, changing: set[str]) -> Frame:
        """A frame for one round: what it sets is its own, all else the vertex's."""
        kept = {name: slot for name, slot in frame.locals.items() if name not in changing}
        spans = {name: place for name, place in frame.spans.items() if name not in changing}
        made = Frame(
            *(frame.number, None, None, self.allocate(WORD), frame.result, frame.fields, kept, spans, frame.scalars),
            work=self.allocate_work(),
        )
        self.begin_counting(made)
        return made

    def take_over(self, frame: Frame, lane: Frame) -> None:
        """Let a vertex's frame have what a round has set."""
        for counted, of_lane in zip((frame.slots, *frame.work), (lane.slots, *lane.work), strict=True):
            self.add_to(counted, self.builder.load(of_lane))
        for name, slot in lane.locals.items():
            if slot is not frame.locals.get(name, slot):
                self.builder.store(self.builder.load(slot), frame.locals[name])
        for span in {one for one in spans_in(self.codelet.body) if one.name in lane.spans}:
            if lane.spans[span.name] is not frame.spans.get(span.name):
                self.bind(frame, span, self.place(lane, span))

    def side_by_side(self, jam: LanesPlan, frames: list[Frame], otherwise: Any) -> None:
        """Run what comes before a loop, and the loop, for eight frames; go to `otherwise` if they must run one by one."""
        builder = self.builder
        for frame in frames:
            frame.otherwise = otherwise
            for span in jam.stored:
                if span.name not in frame.scalars:
                    frame.scalars[span.name] = self.allocate(REGISTER_FORMS[REGISTERS_OF[span.element]])
            self.block(frame, jam.before)
        rounds = [self.rounds(frame, jam.loop) for frame in frames]
        self.require(builder.icmp_unsigned("!=", rounds[0].count, word(0)), otherwise)
        for one in rounds[1:]:
            self.require(builder.icmp_unsigned("==", one.count, rounds[0].count), otherwise)
        for frame, one in zip(frames, rounds, strict=True):
            frame.lines = self.prepare(frame, jam.plan, one, otherwise)
        self.run_rounds(jam, frames, rounds[0])
        for frame in frames:
            frame.lines = frame.otherwise = None
            self.spend(frame, jam.plan.price, rounds[0].count)

    def finish(self, frame: Frame) -> None:
        raise NotImplementedError

    # Locals with lanes

    def run_rounds(self, jam: LanesPlan, frames: list[Frame], rounds: Rounds) -> None:
        """The loop, written for each line that all may have in common and for the case that they have none."""
        builder = self.builder
        wide = Frame(None, None, None, None, None, {}, lanes=TOGETHER, holds_back=True)
        self.lanes = Lanes(frames, wide)
        for local in locals_in(jam.body):
            if local.name in jam.taken:
                self.assign(wide, local, self.gathered(self.value(frame, local) for frame in frames))
        for name in frames[0].scalars:
            values = [builder.load(frame.scalars[name]) for frame in frames]
            wide.scalars[name] = self.allocate(ir.VectorType(values[0].type, TOGETHER))
            builder.store(self.gathered(values), wide.scalars[name])
        done = builder.append_basic_block("jam.end")
        for line in jam.common:
            common, apart = builder.append_basic_block("jam.common"), builder.append_basic_block("jam.apart")
            builder.cbranch(self.is_common(frames, line), common, apart)
            builder.position_at_end(common)
            self.lanes.shared = line
            self.run_blocks(jam, rounds, done)
            builder.position_at_end(apart)
        self.lanes.shared = None
        self.run_blocks(jam, rounds, done)
        builder.position_at_end(done)
        for frame in frames:
            assert frame.lines is not None
            self.set_variable(frame, jam.loop, frame.lines.rounds, builder.sub(rounds.count, word(1)))
        for local in locals_in(jam.body):
            if local.name in jam.left:
                self.scatter(builder.load(self.local(wide, local)), [self.local(frame, local) for frame in frames])
        for name, slot in wide.scalars.items():
            self.scatter(builder.load(slot), [frame.scalars[name] for frame in frames])

    def is_common(self, frames: list[Frame], line: Line) -> Any:
        builder = self.builder
        bases = [builder.ptrtoint(frame.lines.bases[line], WORD) for frame in frames if frame.lines is not None]
        same = ir.Constant(ir.IntType(1), 1)
        for one in bases[1:]:
            same = builder.and_(same, builder.icmp_unsigned("==", one, bases[0]))
        return same

    def gathered(self, values: Iterable[Any]) -> Any:
        """A vector of the lanes' values."""
        vector = None
        for lane, value in enumerate(values):
            if vector is None:
                vector = ir.Constant(ir.VectorType(value.type, TOGETHER), ir.Undefined)
            vector = self.builder.insert_element(vector, value, INT(lane))
        return vector

    def scatter(self, vector: Any, slots: list[Any]) -> None:
        for lane, slot in enumerate(slots):
            self.builder.store(self.builder.extract_element(vector, INT(lane)), slot)

    # The loop

    def run_blocks(self, jam: LanesPlan, rounds: Rounds, done: Any) -> None:
        """As many blocks of rounds as there are, then the rest round by round."""
        builder = self.builder
        stride = int(jam.loop.step.value) if isinstance(jam.loop.step, Literal) else 0
        rest = builder.append_basic_block("jam.rest")
        start = word(0)
        if self.in_blocks(jam, stride):
            start = builder.and_(rounds.count, word(-TOGETHER))
            before, blocks, after = builder.block, builder.append_basic_block("jam.block"), builder.append_basic_block()
            builder.cbranch(builder.icmp_unsigned("!=", start, word(0)), blocks, after)
            builder.position_at_end(blocks)
            first = builder.phi(WORD)
            first.add_incoming(word(0), before)
            self.load_block(jam, stride, first)
            for r in range(TOGETHER):
                self.run_round(jam, builder.add(first, word(r)), r)
            upcoming = builder.add(first, word(TOGETHER), flags=("nuw",))
            first.add_incoming(upcoming, builder.block)
            builder.cbranch(builder.icmp_unsigned("<", upcoming, start), blocks, after)
            builder.position_at_end(after)
        before = builder.block
        builder.cbranch(builder.icmp_unsigned("<", start, rounds.count), rest, done)
        builder.position_at_end(rest)
        number = builder.phi(WORD)
        number.add_incoming(start, before)
        self.run_round(jam, number, None)
        upcoming = builder.add(number, word(1), flags=("nuw",))
        number.add_incoming(upcoming, builder.block)
        builder.cbranch(builder.icmp_unsigned("!=", upcoming, rounds.count), rest, done)

    def in_blocks(self, jam: LanesPlan, stride: int) -> bool:
        """Whether the elements of eight rounds lie side by side."""
        loads = [one for one in jam.body if isinstance(one, ProvenLoad)]
        return all(one.span.element in _CHUNKED and 0 < one.index.scale * stride <= _LARGEST_STRIDE for one in loads)

    def run_round(self, jam: LanesPlan, number: Any, place: int | None) -> None:
        """One round; `place` is its number within a block whose elements are loaded."""
        assert self.lanes is not None
        wide, frames = self.lanes.wide, self.lanes.frames
        for frame in frames:
            assert frame.lines is not None
            frame.lines.round = number
        self.set_lane_variable(jam, number)
        for statement in jam.body:
            if isinstance(statement, ProvenLoad):
                self.assign(wide, statement.target, self.lane_elements(jam, statement, place))
            else:
                self.simple(wide, statement)

    def set_lane_variable(self, jam: LanesPlan, number: Any) -> None:
        assert self.lanes is not None
        variable = jam.loop.variable
        if variable.name not in jam.taken:
            return
        for frame in self.lanes.frames:
            assert frame.lines is not None
            self.set_variable(frame, jam.loop, frame.lines.rounds, number)
        self.assign(self.lanes.wide, variable, self.gathered(self.value(frame, variable) for frame in self.lanes.frames))

    def lane_elements(self, jam: LanesPlan, statement: ProvenLoad, place: int | None) -> Any:
        """The element that each frame reads in a round."""
        assert self.lanes is not None
        span, index, frames = statement.span, statement.index, self.lanes.frames
        line = Line.of(span, index)
        if line != self.lanes.shared and place is not None:
            stride = index.scale * int(jam.loop.step.value) if isinstance(jam.loop.step, Literal) else 0
            return self.lanes.columns[line, stride * place + index.constant]
        offset = self.offset(frames[0], index)
        if line == self.lanes.shared:
            return self.gathered([self.load(span, self.proven(frames[0], span, index, offset))] * TOGETHER)
        return self.gathered(self.load(span, self.proven(frame, span, index, offset)) for frame in frames)

    # Blocks of eight rounds

    def load_block(self, jam: LanesPlan, stride: int, first: Any) -> None:
        """Load what eight rounds from round `first` on need, as vectors with a lane for each frame."""
        assert self.lanes is not None
        self.lanes.columns.clear()
        wanted: dict[Line, tuple[Span, set[int]]] = {}
        for one in jam.body:
            if isinstance(one, ProvenLoad) and (line := Line.of(one.span, one.index)) != self.lanes.shared:
                step = one.index.scale * stride
                places = {step * r + one.index.constant for r in range(TOGETHER)}
                wanted.setdefault(line, (one.span, set()))[1].update(places)
        for line, (span, places) in wanted.items():
            last = max(places) - _CHUNK + 1
            for place in sorted(places):
                if (line, place) not in self.lanes.columns:
                    begin = min(place, last)
                    for i, column in enumerate(self.load_chunks(span, line, first, begin, stride)):
                        self.lanes.columns[line, begin + i] = column

    def load_chunks(self, span: Span, line: Line, first: Any, begin: int, stride: int) -> list[Any]:
        """Four elements of each frame, transposed: four vectors with a lane for each frame."""
        assert self.lanes is not None
        builder = self.builder
        memory, vector = _CHUNKED[span.element], ir.VectorType(_CHUNKED[span.element], _CHUNK)
        offset = builder.add(builder.mul(first, word(line.scale * stride)), word(begin))
        chunks = []
        for frame in self.lanes.frames:
            assert frame.lines is not None
            pointer = builder.gep(frame.lines.bases[line], [offset], source_etype=memory)
            load = builder.load(pointer, align=access.alignment(span.element), typ=vector)
            self.scopes.mark(load, span.name)
            chunks.append(halves.from_half(builder, load) if span.element == "f16" else load)
        return transposed(builder, chunks)


def locals_in(block: PlannedBlock) -> list[Local]:
    """The locals that the statements of a block read or set."""
    found: dict[Local, None] = {}
    for statement in walk(block):
        for one in _parts(statement):
            if isinstance(one, Local):
                found[one] = None
    return list(found)


def spans_in(block: PlannedBlock) -> list[Span]:
    """The spans that the statements of a block bind."""
    return list(dict.fromkeys(one.target for one in walk(block) if isinstance(one, Row | Slice)))


def _parts(statement: PlannedStatement) -> Iterator[object]:
    for name in fields_dict(type(statement)):
        value = getattr(statement, name)
        yield from value if isinstance(value, tuple) else (value,)


def transposed(builder: Any, rows: list[Any]) -> list[Any]:
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
