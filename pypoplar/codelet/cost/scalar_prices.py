"""What blocks cost by the sum of their statements, in worker issue slots.

Prices stand for scalar code as a C++ compiler for the machine makes it. Those of operations stand in their rows
(`pypoplar.codelet.operations`), those of the typed form's other statements here, each with its mark: **D** vendor documentation,
**S** a constant or formula in PopLibs' source, **M** measured and published, **I** inferred. The published sources do not tell the
architectures apart here, so all have the same figures.

What the figures mean, where that was a choice:

- Copies, and the wrapping of integers as they are narrowed for a store, cost nothing: registers are renamed, and a store
  takes the low bits.
- An address costs nothing where the index is at hand, for loads and stores step their pointers; arithmetic on the index is
  paid as such.
- A scalar field is loaded and stored at every use, like an element: the compiler may not keep it in a register across stores.
- The length of a vector is in a register: 0. The pointer and length of a row come with one 64-bit load and an address: 2. A
  slice is an addition: 1. A scratch array lies on the stack, at a distance from its pointer that is known: 0. A record of
  several, at an index, is a multiplication and an addition: 2; its fields are loaded and stored like elements, their place in
  it is in the instruction.
- A branch costs 1, taken or not: once for each `if`, each test of a `while` and each short circuit. break, continue and return
  are the targets of such branches and cost nothing more.
- A counted loop whose body is a straight run, without branches and software functions, is a zero-overhead repeat: 2 to set it
  up, nothing per round. The hardware counts to 4095; longer loops repeat in strips, whose few slots per 4095 rounds are left
  out. Every other counted loop pays 3 per round: add, compare, branch.
- A loop that stores 32-bit integers and runs to a length or a field is not such a repeat: the store may change the bound, which
  the compiler has to load again. It pays 4 per round, as in the published listing of ``data[i] += 1``. A bound in a variable of
  the codelet is not affected.
- A reading of the cycle counter ends a straight run: what comes after it is not in the reading.
- Helper functions are inlined by the C++ compiler as well: a call costs nothing.
- Entry and exit of a vertex: 12, the middle of 10 to 14.
- HALF one by one costs what FLOAT does, but for stores; division, roots and the functions that the machine has only in FLOAT
  add the two conversions. debug_print, print and breakpoint are the simulator's and cost nothing; ipu.check is a branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from attrs import field, frozen

from pypoplar.codelet.cost.block_prices import Shares, Unpriced
from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.typed import (
    Apply,
    Block,
    Breakpoint,
    Check,
    DebugPrint,
    Length,
    Literal,
    Load,
    Member,
    RoundsPrice,
    Row,
    Scratch,
    Slice,
    Special,
    Statement,
    Store,
    Straight,
    ViewAs,
)
from pypoplar.codelet.ir.walk import together
from pypoplar.codelet.operations.device_operation import ARCHITECTURES, IssueSlots
from pypoplar.codelet.operations.table import typed_operation
from pypoplar.codelet.operations.tile_readings import reading
from pypoplar.errors import InvalidOption
from pypoplar.target import Target

ALIASES = ("i32", "u32")  # M: what a store of these writes may be a length or a field
WORD = 8  # bytes that are loaded and stored at once
NARROW = ("i8", "u8", "i16", "u16", "f16", "bool")


@frozen
class StatementPrices:
    """Slots of statements that are no operations."""

    entry_and_exit: int = 12  # I: 10 to 14
    branch: int = 1  # I
    loop_start: int = 2  # I: count and repeat instruction
    loop_round: int = 3  # I: add, compare, branch
    load: int = 1  # D S
    store: int = 1  # D S
    narrow_store: int = 5  # S: 8 and 16 bits are read, modified and written: about 4 more
    row: int = 2  # I
    slice: int = 1  # I
    record: int = 2  # I


@frozen
class AddedPrices:
    """Blocks that cost the sum of their statements: the `BlockPrices` of an architecture."""

    architecture: str
    statements: StatementPrices = field(factory=StatementPrices)

    @property
    def entry_and_exit(self) -> int:
        return self.statements.entry_and_exit

    @property
    def bound_of_entry(self) -> int:
        return 0

    @property
    def branch(self) -> int:
        return self.statements.branch

    @property
    def loop_start(self) -> int:
        return self.statements.loop_start

    @property
    def loop_round(self) -> int:
        return self.statements.loop_round

    def run(self, statements: Sequence[Straight]) -> tuple[int, int]:
        return sum(slots for _, slots in self._shared(statements)), 0

    def shares(self, statements: Sequence[Straight]) -> tuple[Shares, int]:
        return list(self._shared(statements)), 0

    def _shared(self, statements: Sequence[Straight]) -> Iterator[tuple[int, int]]:
        """Locations and slots; an instruction on a vector of the hardware is paid with its first element."""
        number = 0
        while number < len(statements):
            vector = together(statements, number)
            number += len(vector)
            yield vector[0].where, self._slots(vector[0]) if len(vector) == 1 else self._slots_together(vector)

    def _slots_together(self, vector: Sequence[Straight]) -> int:
        first, count = vector[0], len(vector)
        if isinstance(first, Apply):
            price = self._price(first)
            return -(-count // price.lanes) * price.slots
        assert isinstance(first, Load | Store)
        times = -(-count * SIZES[first.span.element] // WORD)
        return times * (self.statements.load if isinstance(first, Load) else self.statements.store)

    def round(self, body: Block, bound: Statement | None) -> int:
        if not all(map(self._repeats, body)):
            return self.statements.loop_round
        stored = any(isinstance(statement, Store) and statement.span.element in ALIASES for statement in body)
        reloads = stored and isinstance(bound, Length | Load)
        return self.statements.loop_round + self.statements.load if reloads else 0

    def rounds(self) -> RoundsPrice | None:
        return None

    def shares_of_rounds(self) -> tuple[Shares, Shares]:
        raise AssertionError("no rounds are paid for together")

    def _slots(self, statement: Straight) -> int:
        prices = self.statements
        match statement:
            case Apply():
                return self._price(statement).slots
            case Load():
                return prices.load
            case Store():
                return prices.narrow_store if statement.span.element in NARROW else prices.store
            case Row():
                return prices.row
            case Slice():
                return prices.slice
            case Member(index=index):
                return 0 if isinstance(index, Literal) else prices.record
            case Special():
                try:
                    return reading(statement.name).slots(self.architecture)
                except LookupError as problem:
                    raise Unpriced(str(problem), statement.where) from problem
            case Check():
                return prices.branch
            case Length() | ViewAs() | Scratch() | DebugPrint() | Breakpoint():
                return 0
            case _:
                assert_never(statement)

    def _price(self, statement: Apply) -> IssueSlots:
        try:
            return typed_operation(statement.operation).price(self.architecture)
        except LookupError as problem:
            raise Unpriced(str(problem), statement.where) from problem

    def _repeats(self, statement: Statement) -> bool:
        """Whether a zero-overhead repeat may hold this statement: no branch, no call."""
        if isinstance(statement, Apply):
            return not self._price(statement).software
        return isinstance(statement, Straight) and not isinstance(statement, Check)


PRICES: dict[str, AddedPrices] = {architecture: AddedPrices(architecture) for architecture in ARCHITECTURES}
"""Prices by architecture."""


def prices_of(target: Target) -> AddedPrices:
    """The prices of a target's architecture; `InvalidOption` if nobody knows them."""
    if target.architecture not in PRICES:
        known = ", ".join(PRICES)
        raise InvalidOption(f"no prices are known for the architecture '{target.architecture}'; there are prices for {known}")
    return PRICES[target.architecture]
