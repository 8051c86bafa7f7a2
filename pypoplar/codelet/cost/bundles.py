"""Bundles: which instructions of a straight run are issued together.

As in the vendor's backend, each pipe takes its instructions in the order of the text as far as they are ready. An instruction waits
for the bundle after that which makes what it reads: loads and arithmetic have one slot of latency alike. A branch can
only be last, and what takes several slots holds up the whole worker.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from pypoplar.codelet.cost.instructions import Instruction, MemoryAccess, Pipe, Register, may_alias


@frozen(eq=False)
class Bundle:
    """Instructions that are issued together: one, or one for each pipe."""

    instructions: tuple[Instruction, ...]

    @property
    def slots(self) -> int:
        return max(instruction.slots for instruction in self.instructions)

    @property
    def where(self) -> int:
        """The location that it belongs to: that of its instruction for the main pipe, if it has one."""
        return min(self.instructions, key=lambda instruction: instruction.pipe).where


def bundled(instructions: Sequence[Instruction], ending: Sequence[Instruction] = (), *, paired: bool = True) -> list[Bundle]:
    """The bundles of a straight run; `ending` comes last. Without `paired`, one for each instruction, as supervisor code has."""
    if not paired:
        return [Bundle((instruction,)) for instruction in (*instructions, *ending)]
    pieces = [*_between_calls(instructions)]
    if pieces and not pieces[-1][0].call:
        pieces[-1] += ending
    elif ending:
        pieces.append([*ending])
    return [bundle for piece in pieces for bundle in _scheduled(piece)]


def _between_calls(instructions: Sequence[Instruction]) -> Iterator[list[Instruction]]:
    """The stretches without a call, and each call by itself."""
    piece: list[Instruction] = []
    for instruction in instructions:
        if not instruction.call:
            piece.append(instruction)
            continue
        if piece:
            yield piece
        yield [instruction]
        piece = []
    if piece:
        yield piece


def _scheduled(instructions: Sequence[Instruction]) -> Iterator[Bundle]:
    waits, followers = _dependences(instructions)
    ready: list[list[int]] = [[] for _ in Pipe]
    for number, instruction in enumerate(instructions):
        if not waits[number]:
            heapq.heappush(ready[instruction.pipe], number)
    straight = sum(not instruction.control for instruction in instructions)
    main, auxiliary = ready
    while main or auxiliary:
        issued = []
        for heap in (auxiliary, main):
            if heap and (straight == 0 or not instructions[heap[0]].control):
                issued.append(heapq.heappop(heap))
                straight -= not instructions[issued[-1]].control
        yield Bundle(tuple(instructions[number] for number in sorted(issued)))
        for number in issued:
            for follower in followers.get(number, ()):
                waits[follower] -= 1
                if not waits[follower]:
                    heapq.heappush(ready[instructions[follower].pipe], follower)


def _dependences(instructions: Sequence[Instruction]) -> tuple[list[int], Mapping[int, list[int]]]:
    """For each instruction how many others it waits for, and which wait for it."""
    waits = [0] * len(instructions)
    followers: dict[int, list[int]] = {}
    makers: dict[Register, int] = {}
    order = _MemoryOrder()
    for number, instruction in enumerate(instructions):
        before = {makers[register] for register in instruction.reads if register in makers}
        if instruction.access is not None:
            before |= order.before(instruction.access, number, stores=instruction.stores)
        for earlier in before:
            followers.setdefault(earlier, []).append(number)
        waits[number] = len(before)
        if instruction.result is not None:
            makers[instruction.result] = number
    return waits, followers


class _MemoryOrder:
    """The accesses of a stretch of code, by alias class, base and distance, and offset: which of them keep their order."""

    def __init__(self) -> None:
        self._loads: _Accesses = {}
        self._stores: _Accesses = {}

    def before(self, access: MemoryAccess, number: int, *, stores: bool) -> set[int]:
        """Put an access behind those before it, and say for which it waits: none of two loads waits for the other."""
        waits = _meeting(self._stores, access)
        if stores:
            waits |= _meeting(self._loads, access)
        of_line = (self._stores if stores else self._loads).setdefault(access.alias, {}).setdefault(access.place.line, {})
        of_line.setdefault(access.place.offset, []).append(number)
        return waits


_Accesses = dict[str, dict[tuple[object, object], dict[int, list[int]]]]


def _meeting(accesses: _Accesses, access: MemoryAccess) -> set[int]:
    """Which of some accesses the compiler takes for the same memory: not those at another constant offset."""
    meeting: set[int] = set()
    for alias, lines in accesses.items():
        if may_alias(alias, access.alias):
            for line, offsets in lines.items():
                of_line = [offsets.get(access.place.offset, [])] if line == access.place.line else offsets.values()
                for numbers in of_line:
                    meeting.update(numbers)
    return meeting
