"""What the pricing pass asks of prices, and what it asks of those of supervisor code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from attrs import frozen

from pypoplar.codelet.ir.typed import Block, RoundsPrice, Statement, Straight


class Unpriced(LookupError):
    """A statement that has no price: why, and the number of its location in the codelet."""

    def __init__(self, reason: str, where: int) -> None:
        super().__init__(reason)
        self.where = where


Shares = Sequence[tuple[int, int]]
"""Locations, and the slots of a block that belong there."""


class BlockPrices(Protocol):
    """What blocks cost. Pricing asks for whole blocks, in the order of the text, for these may be scheduled as well as added up.

    A statement that has no price is `Unpriced`.
    """

    @property
    def entry_and_exit(self) -> int:
        """Slots of a vertex beside those of its code."""

    @property
    def bound_of_entry(self) -> int:
        """The bound of those; 0 where no bounds are known."""

    @property
    def branch(self) -> int:
        """Slots of a branch, taken or not."""

    @property
    def loop_start(self) -> int:
        """Slots of a counted loop before its first round."""

    @property
    def loop_round(self) -> int:
        """Slots of a counted loop's round that is no hardware repeat, beside those of its body."""

    def run(self, statements: Sequence[Straight]) -> tuple[int, int]:
        """Slots of a straight run of statements, and their bound, see `pypoplar.codelet.ir.typed.Price`."""

    def shares(self, statements: Sequence[Straight]) -> tuple[Shares, int]:
        """The locations that the slots of a straight run belong to, and its bound. It is asked for in the place of `run`."""

    def round(self, body: Block, bound: Statement | None) -> int:
        """Slots of a counted loop's round beside those of its body. `bound` has just computed where it ends, if anything has."""

    def rounds(self) -> RoundsPrice | None:
        """The price of the next counted loop's rounds together, in the order of the text; None if its blocks have prices."""

    def shares_of_rounds(self) -> tuple[Shares, Shares]:
        """The locations that the slots of the loop belong to whose price was asked for last: of several rounds, of one."""


@frozen
class SupervisorPrices:
    """Blocks of supervisor code: the `BlockPrices` of a target in cycles, for a supervisor's slot is a cycle.

    The supervisor runs one instruction after the other, each for `Target.supervisor_instruction_cycles`, and has no hardware
    repeat. Being called and returning cost nothing: measured compute sets of a SupervisorVertex leave no more than what starts a
    compute set, `Target.compute_set_start_cycles`.
    """

    instructions: BlockPrices  # what the blocks of a worker cost, one instruction after the other
    cycles: int  # of an instruction
    entry_and_exit: int = 0  # M: no more than what starts a compute set

    @property
    def bound_of_entry(self) -> int:
        return self.entry_and_exit if self.instructions.bound_of_entry else 0

    @property
    def branch(self) -> int:
        return self.instructions.branch * self.cycles

    @property
    def loop_start(self) -> int:
        return self.instructions.loop_start * self.cycles

    @property
    def loop_round(self) -> int:
        return self.instructions.loop_round * self.cycles

    def run(self, statements: Sequence[Straight]) -> tuple[int, int]:
        slots, bound = self.instructions.run(statements)
        return slots * self.cycles, bound * self.cycles

    def shares(self, statements: Sequence[Straight]) -> tuple[Shares, int]:
        shares, bound = self.instructions.shares(statements)
        return [(where, slots * self.cycles) for where, slots in shares], bound * self.cycles

    def round(self, body: Block, bound: Statement | None) -> int:
        return max(self.instructions.round(body, bound), self.instructions.loop_round) * self.cycles

    def rounds(self) -> RoundsPrice | None:
        together = self.instructions.rounds()
        assert together is None, "supervisor code has no vectors"
        return None

    def shares_of_rounds(self) -> tuple[Shares, Shares]:
        raise AssertionError("supervisor code has no vectors")
