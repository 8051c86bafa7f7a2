"""What a vertex has besides memory and arithmetic: debug prints, the cycle counter and its worker's random numbers."""

from __future__ import annotations

from typing import Any

from attrs import frozen
from llvmlite import ir

from pypoplar.codelet.ir.typed import DebugPrint, Special
from pypoplar.codelet.llvm import halves
from pypoplar.codelet.llvm.arithmetic import REGISTER_FORMS
from pypoplar.codelet.llvm.emitter_state import EmitterState
from pypoplar.codelet.llvm.memory_forms import WORD, widened, word
from pypoplar.codelet.operations.registers import FLOATS
from pypoplar.codelet.operations.tile_readings import reading
from pypoplar.interface.context_words import RANDOM_BYTES, RANDOM_WORDS, Context
from pypoplar.interface.debug_records import RECORD_WORDS, VALUE_WORDS, PrintRecord, Value, ValueType


def emit_debug_print(state: EmitterState, statement: DebugPrint) -> None:
    """Append a record to the debug buffer if it fits; the words used count on in any case."""
    builder, function = state.builder, state.function
    record = _record(state, statement)
    buffer, capacity = function.load_context(Context.DEBUG), function.load_context(Context.DEBUG_WORDS)
    used = function.load_context(Context.DEBUG_USED)
    size = RECORD_WORDS + VALUE_WORDS * len(statement.arguments)
    after = builder.add(used, word(size))
    fits = builder.and_(builder.icmp_signed("!=", buffer, word(0)), builder.icmp_signed("<=", after, capacity))
    with builder.if_then(fits):
        words = builder.inttoptr(buffer, WORD.as_pointer())
        for place, value in record.items():
            builder.store(value, builder.gep(words, [builder.add(used, word(place))], source_etype=WORD), align=8)
    function.store_context(Context.DEBUG_USED, after)


def _record(state: EmitterState, statement: DebugPrint) -> dict[int, Any]:
    """The words of a record, by place."""
    builder = state.builder
    words: dict[int, Any] = {
        PrintRecord.VERTEX: state.number,
        PrintRecord.LOCATION: word(statement.where),
        PrintRecord.TEXT: word(statement.text),
        PrintRecord.VALUES: word(len(statement.arguments)),
    }
    for position, argument in enumerate(statement.arguments):
        value = state.value(argument)
        if argument.type in FLOATS:
            bits = builder.bitcast(builder.fpext(value, ir.DoubleType()), WORD)
        else:
            bits = widened(builder, value, argument.type)
        place = RECORD_WORDS + VALUE_WORDS * position
        words[place + Value.TYPE] = word(ValueType[argument.type])
        words[place + Value.BITS] = bits
    return words


def emit_special(state: EmitterState, statement: Special) -> None:
    state.assign(statement.target, reading(statement.name).llvm(LlvmReadingEmitter(state)))


@frozen(eq=False)
class LlvmReadingEmitter:
    """The `ReadingEmitter` of recipes."""

    state: EmitterState

    @property
    def builder(self) -> Any:
        return self.state.builder

    @property
    def clock(self) -> Any:
        return self.state.function.load_context(Context.CLOCK)

    @property
    def slots(self) -> Any:
        return self.builder.load(self.state.slots)

    @property
    def slot_cycles(self) -> Any:
        """A worker issues a slot in turn with the others; a supervisor's is a cycle."""
        function = self.state.function
        return word(1) if function.codelet.kind == "supervisor" else function.load_context(Context.WORKERS)

    @property
    def workers(self) -> Any:
        """They are as many for the whole call, so that what depends on them alone is computed once for all workers."""
        count = self.state.function.load_context(Context.WORKERS)
        count.set_metadata("invariant.load", self.builder.module.add_metadata([]))
        return count

    def next_random(self) -> Any:
        first = self.state.function.load_context(Context.RANDOM)
        state = self.builder.add(first, self.builder.mul(self._generator(), word(RANDOM_BYTES)))
        return self.builder.call(random_generator(self.builder.module), [state])

    def _generator(self) -> Any:
        """The worker whose generator it is: vertices of a group take them in turn, a supervisor takes the first."""
        if self.state.worker is not None:
            return self.state.worker
        if self.state.function.codelet.kind == "supervisor":
            return word(0)
        return self.builder.urem(self.state.number, self.workers)

    def register(self, type: str) -> Any:
        return REGISTER_FORMS[type]

    def constant(self, like: Any, value: float) -> Any:
        return halves.constant(like.type, value)


def random_generator(module: Any) -> Any:
    """``next_random(state) -> u64``: xoroshiro128aox on the two words at an address."""
    known = module.globals.get("next_random")
    if known is not None:
        return known
    function = ir.Function(module, ir.FunctionType(WORD, [WORD]), "next_random")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    first = builder.inttoptr(function.args[0], WORD.as_pointer())
    pointers = [builder.gep(first, [word(i)], source_etype=WORD) for i in range(RANDOM_WORDS)]
    s0, s1 = (builder.load(pointer) for pointer in pointers)

    def rotated(value: Any, bits: int) -> Any:
        return builder.or_(builder.shl(value, word(bits)), builder.lshr(value, word(64 - bits)))

    either, both = builder.xor(s0, s1), builder.and_(s0, s1)
    s0 = builder.xor(builder.xor(rotated(s0, 55), either), builder.shl(either, word(14)))
    for value, pointer in zip((s0, rotated(either, 36)), pointers, strict=True):
        builder.store(value, pointer)
    builder.ret(builder.xor(either, builder.or_(rotated(both, 1), rotated(both, 2))))
    return function
