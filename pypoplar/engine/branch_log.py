"""The log of the values by which a replica decided what runs next, since it last met others: it tells where replicas parted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.interface.driver_records import BRANCH_HEAD_WORDS, BRANCH_WORDS, Branch, BranchLogHead

MOST_BRANCHES = 1 << 14  # entries; rounds of a loop that go on are one


@frozen
class BranchTaken:
    """A row of the program that decided by a value, several times in a row."""

    row: int
    value: int
    times: int


def empty_branch_log() -> Int64s:
    """A log for the driver, see `Slot.BRANCHES`."""
    log = np.zeros(BRANCH_HEAD_WORDS + BRANCH_WORDS * MOST_BRANCHES, np.int64)
    log[BranchLogHead.LIMIT] = MOST_BRANCHES
    return log


def forget_branches(log: Int64s) -> None:
    """Begin anew: replicas have met."""
    log[[BranchLogHead.COUNT, BranchLogHead.FULL]] = 0


def log_branch(log: Int64s, row: int, value: int) -> None:
    """Note the value by which a row decides, as the driver does."""
    count = int(log[BranchLogHead.COUNT])
    last = BRANCH_HEAD_WORDS + BRANCH_WORDS * (count - 1)
    if log[BranchLogHead.FULL]:
        return
    if count and log[last + Branch.ROW] == row and log[last + Branch.VALUE] == value:
        log[last + Branch.TIMES] += 1
    elif count == log[BranchLogHead.LIMIT]:
        log[BranchLogHead.FULL] = 1
    else:
        entry = last + BRANCH_WORDS
        log[BranchLogHead.COUNT] = count + 1
        log[[entry + Branch.ROW, entry + Branch.VALUE, entry + Branch.TIMES]] = row, value, 1


def decisions(log: Int64s) -> Iterator[BranchTaken]:
    """What has been logged, in order."""
    for number in range(int(log[BranchLogHead.COUNT])):
        entry = BRANCH_HEAD_WORDS + BRANCH_WORDS * number
        yield BranchTaken(*(int(log[entry + word]) for word in (Branch.ROW, Branch.VALUE, Branch.TIMES)))
