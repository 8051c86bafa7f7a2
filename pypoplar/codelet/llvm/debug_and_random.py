"""What a vertex has besides memory and arithmetic: the debug buffer and its tile's random numbers, as LLVM instructions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llvmlite import ir

from pypoplar.codelet.llvm.emitter_state import Writer
from pypoplar.codelet.llvm.memory_access import INT, WORD, word
from pypoplar.interface.context_words import RANDOM_WORDS, Context


def debug_recorder(writer: Writer, record: Mapping[int, Any], size: int) -> None:
    """Append a record of `size` words, given by place, to the debug buffer if it fits; the words used count on in any case."""
    builder = writer.builder
    buffer, capacity = writer.load_context(Context.DEBUG), writer.load_context(Context.DEBUG_WORDS)
    used = writer.load_context(Context.DEBUG_USED)
    after = builder.add(used, word(size))
    fits = builder.and_(builder.icmp_signed("!=", buffer, word(0)), builder.icmp_signed("<=", after, capacity))
    with builder.if_then(fits):
        words = builder.inttoptr(buffer, WORD.as_pointer())
        for place, value in record.items():
            builder.store(value, builder.gep(words, [builder.add(used, word(place))], source_etype=WORD), align=8)
    writer.store_context(Context.DEBUG_USED, after)


def random_generator(module: Any) -> Any:
    """``next_random(state) -> u32``: xoshiro128** on the four words at an address."""
    known = module.globals.get("next_random")
    if known is not None:
        return known
    function = ir.Function(module, ir.FunctionType(INT, [WORD]), "next_random")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    first = builder.inttoptr(function.args[0], INT.as_pointer())
    pointers = [builder.gep(first, [word(i)], source_etype=INT) for i in range(RANDOM_WORDS)]
    s0, s1, s2, s3 = (builder.load(one) for one in pointers)

    def rotated(value: Any, bits: int) -> Any:
        return builder.or_(builder.shl(value, INT(bits)), builder.lshr(value, INT(32 - bits)))

    result = builder.mul(rotated(builder.mul(s1, INT(5)), 7), INT(9))
    shifted = builder.shl(s1, INT(9))
    s2, s3 = builder.xor(s2, s0), builder.xor(s3, s1)
    s1, s0 = builder.xor(s1, s2), builder.xor(s0, s3)
    s2, s3 = builder.xor(s2, shifted), rotated(s3, 11)
    for value, pointer in zip((s0, s1, s2, s3), pointers, strict=True):
        builder.store(value, pointer)
    builder.ret(result)
    return function
