"""What a counted loop does beside its body: counting its rounds, moving its pointers, and getting ready before the first.

Loop strength reduction of the vendor's compiler (LLVM's) looks for the fewest registers: each pointer is moved by its own accesses
(post-increment), for nothing. It tries all combinations as long as there are at most 65,535, of about four forms for each pointer
and for the count; beyond that it takes what serves most accesses: all pointers share one distance, an addition a round. Then an
access before that for which its pointer was made needs an addition more, for no instruction takes a negative constant. The
published listing of Aliev-Panfilov, with seven pointers, shows both.
"""

from __future__ import annotations

from collections.abc import Sequence

from pypoplar.codelet.cost.addresses import PointerGroup
from pypoplar.codelet.cost.control_code import CountedLoop
from pypoplar.codelet.cost.instructions import Instruction, LoopKind, Pipe, Register
from pypoplar.codelet.cost.needed_code import NeededCode
from pypoplar.codelet.ir.typed import Literal

FORMS = 4  # I: that the compiler tries for a pointer
COMBINATIONS = 65_535  # LLVM's limit of complexity


def settle_kind(loop: CountedLoop, repeat_limit: int, *, hardware_loops: bool) -> None:
    """Decide how a loop goes round. A repeat needs a count that is sure to fit its register."""
    code = loop.code
    if not hardware_loops:
        code.kind, code.reason = LoopKind.COMPARED, "supervisor code has no hardware loops"
    elif code.kind is LoopKind.REPEAT:
        call = next((instruction for run in loop.body for instruction in run.instructions if instruction.call), None)
        if call is not None:
            code.kind, code.reason = LoopKind.COUNTED, f"there is a software function in it: {call.name.removeprefix('call ')}"
        elif loop.most_rounds is None:
            code.kind, code.reason = LoopKind.COUNTED, f"nothing says that it has at most {repeat_limit:,} rounds"
        elif loop.most_rounds > repeat_limit:
            code.kind, code.reason = LoopKind.COUNTED, f"it may have {loop.most_rounds:,} rounds, a repeat at most {repeat_limit:,}"
    if code.kind is LoopKind.COUNTED and loop.rounds is None and _division(loop) is None:
        code.kind, code.reason = LoopKind.COMPARED, "counting its rounds takes a division"


def add_steps(loop: CountedLoop, needed: NeededCode) -> None:
    """Add the instructions of a loop beside its body; `needed` knows which of its body's stay."""
    latch = _moved_pointers(loop, needed)
    if loop.code.kind is LoopKind.COMPARED or loop.stepping.variable in needed.registers:
        latch.append(_main(loop, "add", [loop.stepping.variable]))
        loop.before.instructions.append(_main(loop, "mov"))
    latch += _turn(loop)
    run = loop.body[0]
    if len(loop.body) == 1:
        run.instructions += [instruction for instruction in latch if not instruction.control]
        run.ending += [instruction for instruction in latch if instruction.control]
    else:
        run.apart += latch
    _get_ready(loop)


def _main(
    loop: CountedLoop, name: str, reads: Sequence[Register] = (), result: Register | None = None, *, control: bool = False
) -> Instruction:
    return Instruction(name, Pipe.MAIN, loop.code.where, result, reads, control=control, needed=True)


def _division(loop: CountedLoop) -> int | None:
    """Instructions that divide by a loop's step; None if it is no constant, or no power of two."""
    if not isinstance(loop.step, Literal):
        return None
    step = abs(int(loop.step.value))
    return {1: 0}.get(step, 2) if step & (step - 1) == 0 else None


def _turn(loop: CountedLoop) -> list[Instruction]:
    """What ends a round."""
    if loop.code.kind is LoopKind.REPEAT:
        return []
    if loop.code.kind is LoopKind.COUNTED:
        return [_main(loop, "brnzdec", control=True)]
    compared = Register(Pipe.MAIN, 1, loop.code.depth)
    read = [_main(loop, "ld32")] if loop.reads_stop else []
    return [*read, _main(loop, "cmp", [loop.stepping.variable], compared), _main(loop, "brnz", [compared], control=True)]


def _get_ready(loop: CountedLoop) -> None:
    """Pass over a loop without rounds, and count the rounds."""
    before, bounds = loop.before, loop.bounds
    if loop.rounds is None:
        compared = Register(Pipe.MAIN, 1, before.depth)
        before.instructions.append(_main(loop, "cmp", bounds, compared))
        before.ending.append(_main(loop, "brz", [compared], control=True))
    if loop.code.kind is LoopKind.COMPARED:
        return
    if loop.rounds is None and not loop.begins_at_zero:
        before.instructions.append(_main(loop, "sub", bounds))
    for _ in range(_division(loop) or 0 if loop.rounds is None else 0):
        before.instructions.append(_main(loop, "shr"))
    before.instructions.append(_main(loop, "rpt" if loop.code.kind is LoopKind.REPEAT else "add", bounds))


# Pointers


def _moved_pointers(loop: CountedLoop, needed: NeededCode) -> list[Instruction]:
    """What moves the pointers, where their accesses do not."""
    groups = [group for group in loop.stepping.groups.values() if any(access in needed for _, access in group.accesses)]
    for group in groups:
        _point(loop, group)
    if FORMS ** (len(groups) + 1) <= COMBINATIONS:
        last = set(loop.body[-1].instructions)
        return [_main(loop, "add", [group.pointer]) for group in groups if last.isdisjoint(access for _, access in group.accesses)]
    factors = dict.fromkeys(group.factor for group in groups)
    return [_shared(loop, [group for group in groups if group.factor == factor]) for factor in factors]


def _point(loop: CountedLoop, group: PointerGroup) -> None:
    """Set a pointer in front of the loop, if it does not begin where the vector does."""
    if loop.begins_at_zero and len(group.pointer.sources) == 1:
        return
    if isinstance(loop.start, Register):
        loop.before.instructions.append(_main(loop, "shl", [loop.start]))
    loop.before.instructions.append(_main(loop, "add", group.pointer.sources))


def _shared(loop: CountedLoop, groups: Sequence[PointerGroup]) -> Instruction:
    """Let the accesses of pointers add one distance, which the instruction that comes back moves."""
    distance = Register(Pipe.MAIN, 1, loop.code.depth)
    loop.before.instructions.append(_main(loop, "mov"))
    number_of = {instruction: number for number, run in enumerate(loop.body) for instruction in run.instructions}
    for group in groups:
        first = group.accesses[0][0]
        sums: dict[int, Register] = {}  # of pointer and distance, by the run in which it is made
        for offset, access in group.accesses:
            number = number_of.get(access)
            if number is None:
                continue
            if offset >= first:
                access.reads = [*access.reads, distance]
                continue
            if number not in sums:
                sums[number] = Register(Pipe.MAIN, 1, loop.code.depth)
                addition = _main(loop, "add", [group.pointer, distance], sums[number])
                instructions = loop.body[number].instructions
                instructions.insert(instructions.index(access), addition)
            access.reads = [sums[number] if register is group.pointer else register for register in access.reads]
    return _main(loop, "add", [distance])
