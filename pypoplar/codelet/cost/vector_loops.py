"""Loops on vectors: which innermost loops over floats the compiler runs by two FLOATs, or four HALFs, at once, and what that takes.

As LLVM's loop vectoriser decides it for the vendor's machine: all rounds are independent, elements are consecutive, and
where nothing says that memory does not overlap, checks in front of the loop do, eight comparisons at most. A field that is read in
the loop counts as memory like a vector. Sums of floats keep their order, so they stay as they are. What is left over of the
rounds runs one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import combinations

from attrs import field, frozen

from pypoplar.codelet.cost.addresses import PointerGroup
from pypoplar.codelet.cost.control_code import BRANCHES, CountedLoop
from pypoplar.codelet.cost.instructions import Instruction, LoopKind, MachineRun, MemoryAccess, Pipe, Register, may_alias
from pypoplar.codelet.cost.memory_code import VERTEX
from pypoplar.codelet.cost.needed_code import NeededCode
from pypoplar.codelet.ir.typed import Literal, TypedCodelet
from pypoplar.codelet.operations.table import OPERATIONS

WIDTHS = {"float": 2, "half": 4}
BYTES = {"float": 4, "half": 2}
MOST_COMPARISONS = 8  # LLVM's limit
NOBODYS = ("table", "array")  # bases of memory that nothing else reaches
FLOAT_NAMES = ("_f32", "_f16")  # ends of the names of operations on floats
ALIGNED = 8  # bytes of the widest load


class Scalar(Exception):
    """The loop is not run on vectors; the text says why."""


@frozen(eq=False)
class LoopFacts:
    """What decides whether a loop runs on vectors."""

    loop: CountedLoop
    codelet: TypedCodelet
    architecture: str
    needed: NeededCode
    roots: Mapping[object, str]  # the field that a base is a piece of
    overlapping: frozenset[frozenset[str]]  # fields that are one tensor in some vertex
    repeat_limit: int
    groups: Mapping[Register, PointerGroup] = field(init=False)
    served: Mapping[Instruction, PointerGroup] = field(init=False)  # the moving pointer of an access

    @groups.default
    def _groups(self) -> Mapping[Register, PointerGroup]:
        return {group.pointer: group for group in self.loop.stepping.groups.values()}

    @served.default
    def _served(self) -> Mapping[Instruction, PointerGroup]:
        return {access: group for group in self.loop.stepping.groups.values() for _, access in group.accesses}


@frozen(eq=False)
class VectorLoop:
    """A loop on vectors: its body for `width` rounds, and what comes in front of it.

    `bound` are the slots of those rounds by hand: the busier pipe, with every access aligned, without what counts the rounds.
    """

    width: int
    body: MachineRun
    before: Sequence[Instruction]
    bound: int


def vectorised(facts: LoopFacts) -> VectorLoop:
    """The loop on vectors; `Scalar` says why there is none. Its body is complete, what moves its pointers included."""
    loop = facts.loop
    if loop.code.kind is LoopKind.COMPARED or len(loop.body) != 1:
        raise Scalar(loop.code.reason)
    if not isinstance(loop.step, Literal) or loop.step.value != 1:
        raise Scalar("its elements do not follow each other")
    run = loop.body[0]
    alias = _element(facts, run)
    if loop.rounds is not None and loop.rounds < WIDTHS[alias]:
        raise Scalar(f"a vector takes {WIDTHS[alias]} rounds, and there are {loop.rounds}")
    _judge_registers(facts, run)
    _judge_order(facts, run, WIDTHS[alias])
    comparisons = _comparisons(facts, run)
    body = _vector_body(facts, run, alias)
    return VectorLoop(WIDTHS[alias], body, list(_before(facts, comparisons)), _bound(body))


def by_hand(facts: LoopFacts) -> tuple[int, int] | None:
    """Rounds that run at once where a loop is written otherwise, and their bound; None where vectors cannot do what it does.

    Branches may become choices, what might overlap be read in front of the loop, and functions of software be called for one
    element after the other; the arithmetic is the same.
    """
    loop = facts.loop
    branches = len(loop.body) > 1
    if loop.code.kind is LoopKind.COMPARED or (branches and loop.code.reason != BRANCHES):
        return None
    if not isinstance(loop.step, Literal) or loop.step.value != 1:
        return None
    run = MachineRun(loop.body[0].depth, [instruction for part in loop.body for instruction in part.instructions])
    try:
        alias = _element(facts, run)
        _judge_registers(facts, run, calls=True)
        _judge_order(facts, run, WIDTHS[alias])
    except Scalar:
        return None
    return WIDTHS[alias], _bound(_vector_body(facts, run, alias))


def _accesses(run: MachineRun) -> Iterator[tuple[Instruction, MemoryAccess]]:
    return ((instruction, instruction.access) for instruction in run.instructions if instruction.access is not None)


def _element(facts: LoopFacts, run: MachineRun) -> str:
    """The alias class of the elements that the loop goes along."""
    if any(instruction.on_vectors for instruction in run.instructions):
        raise Scalar("it is written with vectors of the hardware")
    moving = {access.alias for instruction, access in _accesses(run) if instruction in facts.served}
    if not moving:
        raise Scalar("it goes along no vector")
    if len(moving) > 1 or not moving <= WIDTHS.keys():
        raise Scalar("the elements that it goes along are not all FLOAT, or all HALF")
    (alias,) = moving
    for instruction, access in _accesses(run):
        group = facts.served.get(instruction)
        if group is not None and group.factor != BYTES[alias]:
            raise Scalar("its elements do not follow each other")
        if group is None and (instruction.stores or _changes(facts, instruction)):
            raise Scalar("it stores to one place in every round" if instruction.stores else "it loads from places that it computes")
        if group is None and access.alias not in WIDTHS and access.place.base == VERTEX:
            raise Scalar("it reads an integer in every round")
    return alias


def _changes(facts: LoopFacts, instruction: Instruction) -> bool:
    """Whether an access's address changes from round to round."""
    return any(register.depth >= facts.loop.code.depth for register in instruction.reads)


def _judge_registers(facts: LoopFacts, run: MachineRun, *, calls: bool = False) -> None:
    """Rounds are independent, and what they compute is floats; whether with `calls` of software."""
    made = {instruction.result for instruction in run.instructions}
    if facts.loop.stepping.variable in facts.needed.registers:
        raise Scalar("it computes with its variable")
    for instruction in run.instructions:
        for register in instruction.reads:
            outside = register.depth < facts.loop.code.depth or register in facts.groups
            carried = not outside and not _is_made(register, made)
            if carried and instruction.name in OPERATIONS:
                raise Scalar("it takes a value from round to round, such as a sum")
        if calls and instruction.call and instruction.name.endswith(FLOAT_NAMES):
            continue
        if instruction.call and not (instruction.stores and instruction in facts.served):
            raise Scalar(f"there is a software function in it: {instruction.name.removeprefix('call ')}")
        if instruction.pipe is Pipe.MAIN and instruction.name in OPERATIONS:
            raise Scalar(f"{instruction.name} has no vectors")


def _is_made(register: Register, made: Set[Register | None], seen: frozenset[Register] = frozenset()) -> bool:
    """Whether a round makes a register itself: on one of its ways, or on each of them."""
    if register in made:
        return True
    ways = [source for source in register.sources if source not in seen]
    return len(ways) == len(register.sources) > 1 and all(_is_made(way, made, seen | {register}) for way in ways)


def _judge_order(facts: LoopFacts, run: MachineRun, width: int) -> None:
    """No round needs what one before it stored, as far as both would run at once."""
    order = {instruction: number for number, instruction in enumerate(run.instructions)}
    for group in facts.groups.values():
        accesses = [(offset // group.factor, access) for offset, access in group.accesses if access in order]
        for (place, first), (other, second) in combinations(accesses, 2):
            if not (first.stores or second.stores) or place == other or abs(place - other) >= width:
                continue
            store_first = order[first] < order[second] if first.stores else order[second] < order[first]
            stored, loaded = (place, other) if first.stores else (other, place)
            if (first.stores and second.stores) or stored > loaded or store_first:
                raise Scalar("a round uses what the round before it stored")


def _comparisons(facts: LoopFacts, run: MachineRun) -> int:
    """How many comparisons tell before the loop that nothing overlaps."""
    bases: dict[object, tuple[bool, str]] = {}
    for instruction, access in _accesses(run):
        if isinstance(access.place.base, tuple) and access.place.base[0] in NOBODYS:
            continue
        base = access.place.base if access.place.base != VERTEX else (VERTEX, access.place.distance)
        stores = bases.get(base, (False, ""))[0] or instruction.stores
        bases[base] = (stores, access.alias)
    count = 0
    for (base, (stores, alias)), (other, (other_stores, other_alias)) in combinations(bases.items(), 2):
        if not (stores or other_stores) or not may_alias(alias, other_alias):
            continue
        fields = frozenset(facts.roots[one] for one in (base, other) if one in facts.roots)
        if len(fields) == 2 and any(fields == frozenset(pair) for pair in facts.codelet.distinct):
            continue
        if fields in facts.overlapping:
            raise Scalar(f"{' and '.join(sorted(fields))} are one tensor in some vertex, so its checks fail")
        count += 1
    if count > MOST_COMPARISONS:
        raise Scalar(f"to tell that nothing overlaps takes {count} comparisons, more than {MOST_COMPARISONS}")
    return count


# The loop on vectors


def _bound(body: MachineRun) -> int:
    """Slots of a body by hand, with every access aligned, so that none takes two instructions."""
    halves = [instruction for instruction in body.instructions if instruction.name in ("ld32", "st32")]
    second = set(halves[1::2])
    straight = MachineRun(body.depth, [instruction for instruction in body.instructions if instruction not in second])
    return straight.bound()


def _vector_body(facts: LoopFacts, run: MachineRun, alias: str) -> MachineRun:
    """The body of `width` rounds."""
    width = WIDTHS[alias]
    wide: dict[Register, Register] = {}
    body = MachineRun(run.depth)

    def register(old: Register) -> Register:
        if old.file is Pipe.MAIN:
            return old
        if old not in wide:
            wide[old] = Register(old.file, 2, old.depth)
        return wide[old]

    for instruction in run.instructions:
        group = facts.served.get(instruction)
        if (instruction.pipe is Pipe.AUXILIARY and not instruction.reads) or (group is None and instruction.access is not None):
            continue  # a constant, or what its checks have shown to stay as it is: both halves of a pair, made in front of the loop
        reads = tuple(register(read) for read in instruction.reads)
        result = None if instruction.result is None else register(instruction.result)
        if group is not None:
            pieces = 1 if _is_aligned(facts, group, instruction) else 2
            name = ("st" if instruction.stores else "ld") + ("64" if pieces == 1 else "32")
            body.instructions += [_copy(instruction, name, reads, result) for _ in range(pieces)]
            continue
        lanes = width
        if instruction.name in OPERATIONS:
            lanes = OPERATIONS[instruction.name].price(facts.architecture).lanes
        for _ in range(max(1, width // lanes)):
            copied = _copy(instruction, instruction.name, reads, result, instruction.slots)
            copied.call = instruction.call
            body.instructions.append(copied)
    repeats = facts.loop.most_rounds is not None and facts.loop.most_rounds // width <= facts.repeat_limit
    body.ending = [] if repeats else list(run.ending)
    return body


def _copy(instruction: Instruction, name: str, reads: Sequence[Register], result: Register | None, slots: int = 1) -> Instruction:
    return Instruction(
        name, instruction.pipe, instruction.where, result, reads, slots, instruction.access, instruction.stores, needed=True
    )


def _is_aligned(facts: LoopFacts, group: PointerGroup, instruction: Instruction) -> bool:
    """Whether an access begins at a multiple of eight bytes in every round of the loop on vectors."""
    access = instruction.access
    assert access is not None
    name = facts.roots.get(access.place.base)
    alignment = next((one.alignment for one in facts.codelet.fields if one.name == name), 0)
    start = facts.loop.start
    offset = next(offset for offset, one in group.accesses if one is instruction)
    fixed = isinstance(start, Literal) and len(group.pointer.sources) == 1
    return fixed and alignment >= ALIGNED and (int(start.value) * group.factor + offset) % ALIGNED == 0  # type: ignore[union-attr]


def _before(facts: LoopFacts, comparisons: int) -> Iterator[Instruction]:
    """What comes in front of a loop on vectors, beside what comes in front of any: checks, the count of rounds and of the rest."""
    loop = facts.loop
    names = ["add", "cmpult", "cmpult", "and"] * comparisons
    names += ["shl", "brnz"] if comparisons else []
    if loop.rounds is None:
        names += ["cmpult", "brnz"]  # too few rounds
        names += ["and", "shr", "add"]  # rounds on vectors
        names += ["sub", "cmpeq", "brnz"]  # the rest
    return (Instruction(name, Pipe.MAIN, loop.code.where, needed=True) for name in names)
