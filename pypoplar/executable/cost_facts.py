"""What an executable of mode "cost" knows of its program besides: how control goes where data decide it."""

from __future__ import annotations

from attrs import frozen

from pypoplar.interface.layout import NOTHING

UNKNOWN, VALUE, ROUNDS, SHARE = "unknown", "value", "rounds", "share"
KNOWN_BY = (UNKNOWN, VALUE, ROUNDS, SHARE)


@frozen(eq=False)
class Decision:
    """A row of the control program at which data decide how it goes on, and what is known of that.

    `known` says what `number` is: the VALUE that is read there, the ROUNDS of the loop around, or the SHARE of the times that the
    value is not 0; of what is UNKNOWN it is nothing.
    """

    row: int  # of `Executable.program`: a branch, or the comparison of a Switch
    kind: str  # of the program: "If"
    made_at: str  # the user's line that made it
    tensor: str  # the name of what is read
    known: str = UNKNOWN
    number: float = 0.0
    assumption: int = NOTHING  # index into `CostFacts.assumptions` where the user said so


@frozen(eq=False)
class CostFacts:
    """Decisions in the order of their rows, and the user's assumptions in words."""

    decisions: tuple[Decision, ...]
    assumptions: tuple[str, ...]
