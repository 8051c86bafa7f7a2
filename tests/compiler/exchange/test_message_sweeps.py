"""Sweeps over what is sent: as Python, as machine code, as NumPy, and as a few lines of plain Python say it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from sweeping import both, swept_at_once

from pypoplar.compiler.exchange.message_account import Transfers, account, joined_by_reach
from pypoplar.compiler.exchange.message_sweeps import join_messages

SPAN, SOURCES = 40, 3
TRANSFERS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 30), st.integers(1, 9), st.integers(0, 1)), max_size=14).map(
    sorted
)


def messages(transfers: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Destination, source, offset, bytes and variable of each."""
    made: list[list[int]] = []
    reach, before = 0, -1
    for group, offset, size, variable in transfers:
        begin = group * SPAN + offset
        if not made or begin > reach or variable != before:
            made.append([*divmod(group, SOURCES), offset, 0, variable])
        reach, before = max(reach, begin + size), variable
        made[-1][3] = reach - ((made[-1][0] * SOURCES + made[-1][1]) * SPAN + made[-1][2])
    return [tuple(row) for row in made]


@examples(200)
@given(TRANSFERS)
def test_transfers_of_one_variable_that_touch_are_one_message(transfers: list[tuple[int, ...]]) -> None:
    group, offset, size, variable = np.array(transfers, np.int64).reshape(-1, 4).T
    given = (group * SPAN + offset, size.copy(), variable.copy(), SPAN, SOURCES)
    for join in both(join_messages):
        outputs: list[Any] = [np.full(len(transfers), -99) for _ in range(5)]
        count = join(*given, *outputs)
        assert list(zip(*(column[:count].tolist() for column in outputs), strict=True)) == messages(transfers)
    if transfers:
        found = joined_by_reach(*given)
        columns = (found.destination, found.source, found.offset, found.bytes, found.variable)
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == messages(transfers)


def test_the_account_of_many_transfers_is_the_same_with_machine_code() -> None:
    random = np.random.default_rng(5)
    columns = [random.integers(0, most, 5000) for most in (16, 16, 3, 900)]
    transfers = Transfers(*columns, random.integers(1, 9, 5000))
    plain = account(8, transfers, 2)
    with swept_at_once(join_messages):
        swept = account(8, transfers, 2)
    assert plain.exchange.messages.tolist() == swept.exchange.messages.tolist()
    for name in ("bytes_sent", "bytes_received"):
        assert getattr(plain.exchange, name).tolist() == getattr(swept.exchange, name).tolist()
    assert plain.offset.tolist() == swept.offset.tolist()


def test_the_account_is_the_same_where_many_transfers_are_looked_at_receiver_by_receiver(monkeypatch: Any) -> None:
    random = np.random.default_rng(6)
    columns = [random.integers(0, most, 5000) for most in (16, 16, 3, 900)]
    transfers = Transfers(*columns, random.integers(1, 9, 5000))
    at_once = account(8, transfers, 2)
    monkeypatch.setattr("pypoplar.compiler.exchange.message_account.MANY", 40)
    by_receiver = account(8, transfers, 2)
    assert at_once.exchange.messages.tolist() == by_receiver.exchange.messages.tolist()
    assert at_once.exchange.messages.dtype == by_receiver.exchange.messages.dtype
    for name in ("bytes_sent", "bytes_received"):
        assert getattr(at_once.exchange, name).tolist() == getattr(by_receiver.exchange, name).tolist()
    assert at_once.offset.tolist() == by_receiver.offset.tolist()
    assert at_once.stretches.tolist() == by_receiver.stretches.tolist()
