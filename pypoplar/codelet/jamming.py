"""Several vertices side by side: a sum in the order written waits for its last addition, so eight vertices' sums are run together.

Each vertex keeps its own order of operations, so nothing changes but the time. It is done for codelets that are some straight code,
one loop that carries a floating-point value from round to round, and some more code, in groups of vertices whose loops run equally
often and where the checks before the loop (`pypoplar.codelet.hoisting`) pass. All of that is tried out first without writing to the
vertices' memory; where it fails, they run one by one.

In the loop a local is a vector with a lane for each vertex. The elements that eight rounds need of a vertex lie side by side in
memory, those of one round in eight places: they are loaded four at a time and transposed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import define, field, frozen
from llvmlite import ir

from pypoplar.codelet import arithmetic, halves
from pypoplar.codelet import memory_access as access
from pypoplar.codelet.frame import Checks, Frame, Line, Rounds
from pypoplar.codelet.hoisting import LoopPlan, ProvenLoad, assigned, never_faults, plan_loop, read_first, reads, walk
from pypoplar.codelet.memory_access import INT, WORD, span_roots, stored_fields, word
from pypoplar.codelet.operations import FLOATS
from pypoplar.codelet.typed import (
    Apply,
    Block,
    For,
    HostCall,
    Length,
    Literal,
    Load,
    Local,
    Price,
    Span,
    Statement,
    Store,
    TypedCodelet,
    While,
)
from pypoplar.codelet.vertex_code import VertexCode

TOGETHER = 8
_CHUNK = 4  # elements that are loaded at a time
_CHUNKED = {"f32": ir.FloatType(), "f16": ir.HalfType(), "i32": INT, "u32": INT}
_MOST_COMMON_LINES = 2
_LONGEST_ENDING = 40  # statements; it is written once for each vertex
_LARGEST_STRIDE = 4


@frozen
class Jam:
    """A codelet of the shape that is run several vertices at a time."""

    before: Block
    loop: For
    plan: LoopPlan
    after: Block
    body: Block  # the plan's, without what only computed indices
    taken: frozenset[str]  # locals that the loop finds set
    left: frozenset[str]  # locals that the loop sets for `after`
    stored: tuple[Span, ...]  # scalar fields that are written before `after`
    common: tuple[Line, ...]  # lines of elements that the vertices may have in common


def plan_jam(codelet: TypedCodelet, checks: Checks) -> Jam | None:
    """The shape of a codelet for running several vertices at a time, if it has it and gains by it."""
    if codelet.kind == "multi" or checks != Checks():
        return None
    places = [i for i, one in enumerate(codelet.body) if isinstance(one, For)]
    if not places:
        return None
    before, loop, after = codelet.body[: places[0]], codelet.body[places[0]], codelet.body[places[0] + 1 :]
    assert isinstance(loop, For)
    endings = list(walk(after))
    if len(endings) > _LONGEST_ENDING or any(isinstance(one, For | While) for one in endings):
        return None
    stored = stored_fields(codelet)
    plan = plan_loop(loop, stored)
    if plan is None or not plan.straight or not isinstance(loop.step, Literal) or loop.step.value == 0:
        return None
    body = _without_unused(plan.body, read_first(after))
    if not all(map(_is_plain, before)) or not all(map(_has_lanes, body)) or not _carries_float(body):
        return None
    spans = dict.fromkeys(one.span for one in before + body if isinstance(one, Store))
    taken, left = frozenset(read_first(body)), frozenset(read_first(after) & assigned(body))
    return Jam(before, loop, plan, after, body, taken, left, tuple(spans), _common_lines(plan, codelet, stored))


def _without_unused(body: Block, wanted: set[str]) -> Block:
    """A loop's body without the operations whose results nobody reads: many only computed an index that has been proven."""
    while True:
        read = wanted.union(*map(reads, body))
        kept = tuple(one for one in body if not isinstance(one, Apply) or one.target.name in read)
        if len(kept) == len(body):
            return body
        body = kept


def _is_plain(statement: Statement) -> bool:
    """Whether a statement only computes, or reads and writes scalar fields."""
    match statement:
        case Price() | Length() | HostCall():
            return True
        case Apply():
            return never_faults(statement)
        case Load(checked=checked) | Store(checked=checked):
            return not checked
    return False


def _has_lanes(statement: Statement) -> bool:
    """Whether a statement of the loop can be done for all vertices at once."""
    match statement:
        case ProvenLoad() | HostCall():
            return True
        case Apply(operation=operation):
            return never_faults(statement) and arithmetic.is_lanewise(operation)
        case Load(span=span, checked=False) | Store(span=span, checked=False):
            return access.SIZES[span.element] >= 4 or span.element == "f16"
    return False


def _carries_float(body: Block) -> bool:
    """Whether a round needs a float that an earlier one has made."""
    made: set[str] = set()
    changing = assigned(body)
    written = {one.span.name for one in body if isinstance(one, Store)}
    for statement in body:
        match statement:
            case Apply(target=target, arguments=arguments):
                names = {one.name for one in arguments if isinstance(one, Local) and one.type in FLOATS}
                if names & (changing - made):
                    return True
                made.add(target.name)
            case ProvenLoad(target=target):
                made.add(target.name)
            case Load(target=target, span=span):
                if span.name in written and target.type in FLOATS:
                    return True
                made.add(target.name)
    return False


def _common_lines(plan: LoopPlan, codelet: TypedCodelet, stored: frozenset[str]) -> tuple[Line, ...]:
    """The lines of elements that are only read; several vertices often read the same one."""
    roots = span_roots(codelet)
    found: dict[Line, None] = {}
    for one in plan.body:
        if isinstance(one, ProvenLoad) and not roots.get(one.span.name.partition("~")[0], frozenset()) & stored:
            found[Line.of(one.span, one.index)] = None
    return tuple(found) if len(found) <= _MOST_COMMON_LINES else ()


@define(eq=False)
class Lanes:
    """The vertices that run together: a frame for each, one whose locals have all their lanes, and what is loaded."""

    frames: list[Frame]
    wide: Frame
    shared: Line | None = None  # a line that all have in common
    columns: dict[tuple[Line, int], Any] = field(factory=dict)  # a line's element, by its distance from the round's first


class JammedCode(VertexCode):
    """Runs of vertices, on top of single ones."""

    lanes: Lanes | None = None

    def together(self, jam: Jam, number: Any, otherwise: Any, following: Any) -> None:
        """Run the vertices from row `number` on, then go to `following`; go to `otherwise` if they must run one by one."""
        builder = self.builder
        frames = [self.begin(builder.add(number, word(j)), builder.append_basic_block()) for j in range(TOGETHER)]
        for frame in frames:
            frame.holds_back = True
            self.block(frame, jam.before)
        rounds = [self.rounds(frame, jam.loop) for frame in frames]
        self.require(builder.icmp_unsigned("!=", rounds[0].count, word(0)), otherwise)
        for one in rounds[1:]:
            self.require(builder.icmp_unsigned("==", one.count, rounds[0].count), otherwise)
        for frame, one in zip(frames, rounds, strict=True):
            frame.lines = self.prepare(frame, jam.plan, one, otherwise)
        self.run_rounds(jam, frames, rounds[0])
        for frame in frames:
            frame.holds_back, frame.lines = False, None
            self.spend(frame, builder.mul(rounds[0].count, word(jam.plan.slots)))
            for span in jam.stored:
                self.store(span, self.element(frame, span, word(0)), builder.load(frame.scalars[span.name]))
            self.block(frame, jam.after)
            self.finish(frame)
        builder.branch(following)

    def finish(self, frame: Frame) -> None:
        raise NotImplementedError

    # Locals with lanes

    def run_rounds(self, jam: Jam, frames: list[Frame], rounds: Rounds) -> None:
        """The loop, written once for each line that all vertices may have in common and once for the case that they have none."""
        builder = self.builder
        wide = Frame(None, None, None, None, None, {}, lanes=TOGETHER, holds_back=True)
        self.lanes = Lanes(frames, wide)
        for local in self.locals_of(jam):
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
        for local in self.locals_of(jam):
            if local.name in jam.left:
                self.scatter(builder.load(self.local(wide, local)), [self.local(frame, local) for frame in frames])
        for name, slot in wide.scalars.items():
            self.scatter(builder.load(slot), [frame.scalars[name] for frame in frames])

    @staticmethod
    def locals_of(jam: Jam) -> list[Local]:
        """The locals that the loop's body sets or reads."""
        found: dict[Local, None] = {}
        for one in jam.body:
            match one:
                case Apply(target=target, arguments=arguments):
                    found |= dict.fromkeys((target, *(each for each in arguments if isinstance(each, Local))))
                case Load(target=target) | ProvenLoad(target=target):
                    found[target] = None
                case Store(value=Local() as value):
                    found[value] = None
        return list(found)

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

    def run_blocks(self, jam: Jam, rounds: Rounds, done: Any) -> None:
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

    def in_blocks(self, jam: Jam, stride: int) -> bool:
        """Whether the elements of eight rounds lie side by side."""
        loads = [one for one in jam.body if isinstance(one, ProvenLoad)]
        return all(one.span.element in _CHUNKED and 0 < one.index.scale * stride <= _LARGEST_STRIDE for one in loads)

    def run_round(self, jam: Jam, number: Any, place: int | None) -> None:
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

    def set_lane_variable(self, jam: Jam, number: Any) -> None:
        assert self.lanes is not None
        variable = jam.loop.variable
        if variable.name not in jam.taken:
            return
        for frame in self.lanes.frames:
            assert frame.lines is not None
            self.set_variable(frame, jam.loop, frame.lines.rounds, number)
        self.assign(self.lanes.wide, variable, self.gathered(self.value(frame, variable) for frame in self.lanes.frames))

    def lane_elements(self, jam: Jam, statement: ProvenLoad, place: int | None) -> Any:
        """The element that each vertex reads in a round."""
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

    def load_block(self, jam: Jam, stride: int, first: Any) -> None:
        """Load what eight rounds from round `first` on need, as vectors with a lane for each vertex."""
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
        """Four elements of each vertex, transposed: four vectors with a lane for each vertex."""
        assert self.lanes is not None
        builder = self.builder
        memory, vector = access.memory_form(span.element), ir.VectorType(_CHUNKED[span.element], _CHUNK)
        offset = builder.add(builder.mul(first, word(line.scale * stride)), word(begin))
        chunks = []
        for frame in self.lanes.frames:
            assert frame.lines is not None
            pointer = builder.gep(frame.lines.bases[line], [offset], source_etype=memory)
            load = builder.load(pointer, align=access.alignment(span.element), typ=vector)
            self.scopes.mark(load, span.name)
            chunks.append(builder.fpext(load, halves.alike(vector, halves.FLOAT)) if span.element == "f16" else load)
        return transposed(builder, chunks)


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
