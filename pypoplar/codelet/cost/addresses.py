"""Addresses of accesses: what the instruction adds by itself, what is added once in front of a loop, and what a loop steps.

A load or store adds a base, a distance and a constant that is not negative, in elements; or a base and an index in elements. In a
loop, accesses whose index moves with the loop's variable share a pointer if they differ by constants alone. How the loop moves
its pointers is decided when its body is known (`pypoplar.codelet.cost.loop_steps`).
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field, frozen

from pypoplar.codelet.cost.affine_index import AffineIndex, Terms
from pypoplar.codelet.cost.instructions import Instruction, MemoryPlace, Pipe, Register
from pypoplar.codelet.cost.numbering import Numbering


@frozen(eq=False)
class SpanValue:
    """Where a span, or a list of rows, begins and how long it is: made where it is used first, for the user's line there."""

    base: object  # equal for spans that begin at the same place but for `first`
    pointer: Callable[[int], Register | None]  # None for the stack, which has a register of its own
    first: AffineIndex  # bytes
    length: Callable[[int], Register | int]


@define(eq=False)
class PointerGroup:
    """Accesses of a loop's body that one pointer serves: their byte offsets, in the order of the text."""

    pointer: Register
    factor: int  # bytes that it moves with the loop's variable
    accesses: list[tuple[int, Instruction]] = field(factory=list)


@define(eq=False)
class Stepping:
    """A counted loop's variable, and the pointers that move with it."""

    variable: Register
    depth: int  # of the loop's body
    groups: dict[object, PointerGroup] = field(factory=dict)


@frozen(eq=False)
class Address:
    """A place, the registers that an access of it reads, and the pointer that serves it if a loop moves that."""

    place: MemoryPlace
    reads: tuple[Register, ...]
    group: PointerGroup | None = None

    def serve(self, instruction: Instruction) -> None:
        """An instruction has become an access of this address."""
        if self.group is not None:
            self.group.accesses.append((self.place.offset, instruction))


@define(eq=False)
class Addresses:
    """Addresses of elements in a run: constants are folded into instructions, and pointers of loops are moved by their accesses."""

    numbering: Numbering
    steppings: list[Stepping] = field(factory=list)  # of the counted loops around

    def of(self, span: SpanValue, index: AffineIndex, size: int, where: int) -> Address:
        """The address of the element, of `size` bytes, at an index."""
        total = span.first + index.times(size)
        place = MemoryPlace(span.base, total.terms, total.constant)
        pointer = span.pointer(where)
        reads = () if pointer is None else (pointer,)
        if not total.terms:
            return Address(place, reads)
        stepping = self.steppings[-1] if self.steppings else None
        if stepping is not None and stepping.depth == len(self.numbering.loops):
            factor, rest = total.factor(stepping.variable), total.without(stepping.variable)
            if factor and all(register.depth < stepping.depth for register in (*reads, *dict(rest))):
                group = _group(stepping, (span.base, factor, rest), [*reads, *dict(rest)], factor)
                return Address(place, (group.pointer,), group)
        return Address(place, (*reads, self._distance(total, size, where)))

    def _distance(self, total: AffineIndex, size: int, where: int) -> Register:
        """The register of a sum of terms; an instruction scales an index by itself, but adds no constant to it then."""
        scaled = all(factor % size == 0 for _, factor in total.terms)
        terms = frozenset((register, factor // size) for register, factor in total.terms) if scaled else total.terms
        index = self._sum(terms, where)
        if not scaled or size == 1 or not total.constant:
            return index
        return self._made(("distance", index, size), "shl", (index,), where)

    def _sum(self, terms: Terms, where: int) -> Register:
        known = self.numbering.known[-1].values.get(("sum", terms, 0))
        if known is not None:
            return known
        total: Register | None = None
        for register, factor in AffineIndex(terms).in_order():
            product = register
            if factor not in (1, -1):
                product = self._made(("times", register, factor), "mul", (register,), where)
            name = "sub" if factor < 0 else "add"
            total = product if total is None else self._made((name, total, product), name, (total, product), where)
        assert total is not None
        return total

    def _made(self, key: object, name: str, reads: tuple[Register, ...], where: int) -> Register:
        return self.numbering.value(key, Instruction(name, Pipe.MAIN, where, reads=reads), Pipe.MAIN)


def _group(stepping: Stepping, key: object, sources: list[Register], factor: int) -> PointerGroup:
    group = stepping.groups.get(key)
    if group is None:
        group = stepping.groups[key] = PointerGroup(Register(Pipe.MAIN, 1, stepping.depth, sources), factor)
    return group
