"""Assertions on exchange: who sends what to whom, no exchange at all, at most so many bytes.

An exchange is a static step of the compiled program: a loop counts once, and what is asserted is known before anything runs.
All functions take an `Engine`, an `Executable` or a `pypoplar.testing.Result`. `name` is the debug name of the compute set or
copy, `phase` is "before" or "after" a compute set or "copy"; None stands for all. The rearrangement of a stream is none of them.
Copies that are one exchange together are found by the name of each, with what it moves as if it were alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s, StructuredArray
from pypoplar.braces import ordered
from pypoplar.errors import PoplarTypeError
from pypoplar.executable.exchange_account import ExchangeShare
from pypoplar.spelling import nearest
from pypoplar.tracebacks import public

if TYPE_CHECKING:
    from pypoplar.engine.engine import Engine
    from pypoplar.executable.executable import Executable
    from pypoplar.testing.running import Result

Compiled: TypeAlias = "Engine | Executable | Result"
Pairs = dict[tuple[int, int], int]


@public
def exchanged(engine: Compiled, name: str | None = None, phase: str | None = None) -> Pairs:
    """Who sends how much to whom.

    Parameters
    ----------
    engine:
        What has the program.
    name:
        The debug name of a compute set or copy; None: all.
    phase:
        "before" or "after" a compute set, or "copy"; None: all.

    Returns
    -------
    Pairs
        Bytes by (source tile, destination tile), in that order; every receiver of a multicast has its own entry.

    Raises
    ------
    AssertionError
        If the program has no exchange of that name.
    PoplarTypeError
        If `engine` has no program.
    ValueError
        For another phase.

    Examples
    --------
    >>> from pypoplar import FLOAT, Engine, Graph, IPUModel, testing
    >>> from pypoplar.program import Copy
    >>> graph = Graph(IPUModel("tiny").createDevice())
    >>> x, y = (graph.addVariable(FLOAT, [4], name) for name in "xy")
    >>> graph.setTileMapping(x, 0)
    >>> graph.setTileMapping(y, 1)
    >>> engine = Engine(graph, Copy(x, y, "move"))
    >>> testing.exchanged(engine, "move")
    {(0, 1): 16}
    >>> testing.assert_exchange(engine, "move", {(0, 1): 16})
    """
    pairs: Counter[tuple[int, int]] = Counter()
    for exchange in _chosen(engine, name, phase):
        for message in exchange.messages:
            pairs[int(message["source"]), int(message["destination"])] += int(message["bytes"])
    return dict(sorted(pairs.items()))


@public
def assert_exchange(engine: Compiled, name: str | None, expected: Mapping[tuple[int, int], int], phase: str | None = None) -> None:
    """Fail unless exactly these bytes go from tile to tile.

    Parameters
    ----------
    engine:
        What has the program.
    name:
        The debug name of a compute set or copy; None: all.
    expected:
        Bytes by (source tile, destination tile), as `exchanged` gives them.
    phase:
        "before" or "after" a compute set, or "copy"; None: all.

    Raises
    ------
    AssertionError
        If they differ; the message shows each pair of tiles where they do.
    """
    __tracebackhide__ = True  # pytest ends in the line of the test
    ordered(expected, "the expected exchange", "{(0, 1): 16}")
    got = exchanged(engine, name, phase)
    if got == dict(expected):
        return
    lines = [f"the exchange{_of(name, phase)} is not as expected:"]
    for pair in sorted({*got, *expected}):
        sent, wanted = got.get(pair, 0), expected.get(pair, 0)
        if sent != wanted:
            lines.append(f"  tile {pair[0]} to tile {pair[1]}: {sent} bytes, expected {wanted}")
    raise AssertionError("\n".join(lines))


@public
def assert_no_exchange(engine: Compiled, name: str | None = None, phase: str | None = None) -> None:
    """Fail if anything goes from one tile to another.

    Parameters
    ----------
    engine:
        What has the program.
    name:
        The debug name of a compute set or copy; None: all.
    phase:
        "before" or "after" a compute set, or "copy"; None: all.

    Raises
    ------
    AssertionError
        If something does.
    """
    __tracebackhide__ = True  # pytest ends in the line of the test
    assert_exchange(engine, name, {}, phase)


@public
def assert_exchange_at_most(engine: Compiled, bytes: int, name: str | None = None, phase: str | None = None) -> None:
    """Fail if tiles send more than so many bytes in all; a multicast counts once.

    Parameters
    ----------
    engine:
        What has the program.
    bytes:
        The most that may be sent.
    name:
        The debug name of a compute set or copy; None: all.
    phase:
        "before" or "after" a compute set, or "copy"; None: all.

    Raises
    ------
    AssertionError
        If it is more; the message shows the largest exchanges.
    """
    __tracebackhide__ = True  # pytest ends in the line of the test
    sent = {(exchange.name, exchange.phase): int(exchange.bytes_sent.sum()) for exchange in _chosen(engine, name, phase)}
    total = sum(sent.values())
    if total > bytes:
        largest = sorted(sent.items(), key=lambda pair: -pair[1])[:5]
        lines = [f"  {step} ({when}): {count} bytes" for (step, when), count in largest if count]
        raise AssertionError("\n".join([f"the exchange{_of(name, phase)} sends {total} bytes, more than {bytes}:", *lines]))


def _of(name: str | None, phase: str | None) -> str:
    return (f" of {name!r}" if name is not None else "") + (f" ({phase})" if phase is not None else "")


def _chosen(engine: Any, name: str | None, phase: str | None) -> list[Any]:
    owner = getattr(engine, "engine", engine)
    every = getattr(getattr(owner, "executable", owner), "exchanges", None)
    if every is None:
        raise PoplarTypeError(f"exchange is that of an Engine, an Executable or a Result, got {engine!r}")
    exchanges = [exchange for exchange in every if exchange.phase != "stream"]
    if phase not in (None, "before", "after", "copy"):
        raise ValueError(f"a phase is 'before', 'after' or 'copy', got {phase!r}")
    chosen = exchanges if name is None else [part for exchange in exchanges for part in _called(exchange, name)]
    if name is not None and not chosen:
        names = sorted({part for exchange in exchanges for part in (exchange.name, *_shares(exchange))})
        listed = ", ".join(names) or "none"
        raise AssertionError(f"the program has no exchange called {name!r}: it has {listed}{nearest(name, names)}")
    return [exchange for exchange in chosen if phase in (None, exchange.phase)]


@frozen(eq=False)
class _Part:
    """What the copies of one name have in an exchange of several."""

    name: str
    phase: str
    messages: StructuredArray
    bytes_sent: Int64s  # of all tiles together


def _shares(exchange: Any) -> dict[str, ExchangeShare]:
    return {share.name: share for share in getattr(exchange, "shares", ())}


def _called(exchange: Any, name: str) -> list[Any]:
    """What of an exchange is called `name`: all of it, or a part."""
    share = _shares(exchange).get(name)
    if share is not None:
        return [_Part(name, exchange.phase, exchange.messages_of(name), np.array([share.bytes_sent]))]
    return [exchange] if name == exchange.name else []
