"""What an executable of mode "cost" knows of its program besides: how control goes where data decide it."""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.dtypes import Bytes, Int64s
from pypoplar.interface.layout import NOTHING

UNKNOWN, VALUE, ROUNDS, SHARE, COMPUTED = "unknown", "value", "rounds", "share", "computed"
KNOWN_BY = (UNKNOWN, VALUE, ROUNDS, SHARE, COMPUTED)


@frozen(eq=False)
class Decision:
    """A row of the control program at which data decide how it goes on, and what is known of that.

    `known` says what `number` is: the VALUE that is read there, the ROUNDS of the loop around, the SHARE of the times that the
    value is not 0, or which host read of `CostFacts.control` gives what is COMPUTED; of what is UNKNOWN it is nothing.
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
    """Decisions in the order of their rows, the user's assumptions in words, and a program that computes what can be known.

    `control` is the file of an executable whose programs are the copies and compute sets that compute it, each by itself: where the
    program that is priced comes to a row of `computing`, one of them is run.
    """

    decisions: tuple[Decision, ...]
    assumptions: tuple[str, ...]
    control: Bytes  # empty where nothing is computed
    computing: Int64s  # [operations, 2]: row of the program that is priced, program of `control`
