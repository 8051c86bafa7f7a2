"""Damage to streams, remote buffers, handles and services. Most is to one more of them, which nothing uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from damage import Damages, both, on, tried
from executable_checks import OFF
from executable_damage import Change, Opened, put_leaf

from pypoplar.executable.claims import LARGEST


def added(what: str, **values: Any) -> Change:
    """One stream, remote buffer or service more, like the first but for some values; nothing uses it."""

    def change(damaged: Opened) -> None:
        entries = damaged.tree[what]
        entries.append({**(entries[0] if what != "services" else {}), **values})

    return change


def stream(**values: Any) -> Change:
    return added("streams", **{"kind": "internal", "type": "INT", "elements": 2, **values})


def service(kind: str, **details: Any) -> Change:
    """One service more; a function gets the executable's tree and gives the detail."""

    def change(damaged: Opened) -> None:
        told = {name: value(damaged.tree) if callable(value) else value for name, value in details.items()}
        damaged.tree["services"].append({"kind": kind, **told})

    return change


def last_stream(tree: Any) -> int:
    return len(tree["streams"]) - 1


def users_stream(tree: Any) -> int:
    return next(number for number, plan in enumerate(tree["streams"]) if plan["kind"] == "to device")


def internal_stream(tree: Any) -> int:
    return next(int(entry["stream"]) for entry in tree["services"] if entry["kind"] == "print")


def lent_stream(tree: Any) -> int:
    return int(next(iter(tree["reads"].values()))["stream"])


def shape_of(choose: Callable[[Any], int]) -> Callable[[Any], list[int]]:
    return lambda tree: [tree["streams"][choose(tree)]["elements"]]


def fractional(choose: Callable[[Any], int]) -> Callable[[Any], float]:
    """The number of a stream, but not as a whole number."""
    return lambda tree: float(choose(tree))


def handle(**values: Any) -> Change:
    """Changes of the first handle for reading; a function gets the tree."""

    def change(damaged: Opened) -> None:
        first = next(iter(damaged.tree["reads"].values()))
        first.update({name: value(damaged.tree) if callable(value) else value for name, value in values.items()})

    return change


def like_the_handles(tree: Any) -> None:
    """The last stream carries what the first handle for reading does."""
    first = next(iter(tree["reads"].values()))
    tree["streams"][-1].update(type=first["type"], elements=int(np.prod(first["shape"])))


def handle_of_a_users_stream(damaged: Opened) -> None:
    stream(kind="to host")(damaged)
    like_the_handles(damaged.tree)
    handle(stream=last_stream)(damaged)


def judge(**details: Any) -> Change:
    return service("judge", **{"compute": 0, "name": "n", **details})


def remote(**details: Any) -> Change:
    """A service that reads two rows of a remote buffer into a stream of its own."""

    def change(damaged: Opened) -> None:
        buffer = damaged.tree["remotes"][0]
        stream()(damaged)
        offsets = last_stream(damaged.tree)
        stream(type=buffer["type"], elements=2 * buffer["elements"])(damaged)
        service("remote_read", **{"buffer": 0, "stream": last_stream, "offsets": offsets, **details})(damaged)

    return change


def rows_in(**values: Any) -> Change:
    """Changes of the stream that carries the numbers of rows for the service of `remote`."""
    return lambda damaged: damaged.tree["streams"][-2].update(values)


def host_function(**values: Any) -> Change:
    """A host function more, and a stream that it may use."""
    return both(stream(), service("host_function", **{"name": "", "inputs": [], "outputs": [], **values}))


def seed(**values: Any) -> Change:
    return both(stream(type="UNSIGNED_INT"), service("seed", **{"stream": last_stream, "modifier": 1, **values}))


def text(**values: Any) -> Change:
    return service("print", **{"title": "", "stream": internal_stream, "shape": shape_of(internal_stream), **values})


def last_stream_as(**values: Any) -> Change:
    return lambda damaged: damaged.tree["streams"][-1].update(values)


def handle_of_the_rows(damaged: Opened) -> None:
    """The first handle for reading is given what carries the rows' numbers."""
    handle(stream=len(damaged.tree["streams"]) - 2, type="INT", shape=[2])(damaged)


def exchange(**details: Any) -> Change:
    """A service more that brings four numbers of each replica to another."""

    def change(damaged: Opened) -> None:
        stream(elements=4)(damaged)
        stream(elements=4)(damaged)
        ends = {"sent": last_stream, "received": lambda tree: last_stream(tree) - 1}
        service("exchange", **{**ends, "receivers": [1, 2, 0], "step": 1, "name": "", "location": "", **details})(damaged)

    return change


OF_THE_HOST: Damages = {
    "streams.kind": on("transfers", stream(kind="sideways")),
    "streams.type": on("transfers", stream(type="BYTE")),
    "streams.elements low": on("transfers", stream(elements=-1)),
    "streams.elements high": on("transfers", stream(elements=LARGEST // 8)),
    "remotes.type": on("transfers", added("remotes", type="BYTE")),
    "remotes.elements low": on("transfers", added("remotes", elements=-1)),
    "remotes.elements high": on("transfers", added("remotes", elements=LARGEST // 8, repeats=0)),
    "remotes.repeats low": on("transfers", added("remotes", repeats=-1)),
    "remotes.repeats high": on("transfers", added("remotes", elements=0, repeats=LARGEST // 8)),
    "remotes size": on("transfers", added("remotes", elements=LARGEST // 16, repeats=2)),
    "handles.stream kind": on("transfers", handle_of_a_users_stream),
    "handles.type": on("control", put_leaf("reads", "n", "type", "FLOAT")),
    "handles.shape": on("control", put_leaf("reads", "n", "shape", [2])),
    "handles.entry": tried("control", [put_leaf("reads", "now", "entry", place) for place in range(49)]),
    "services.kind": on("transfers", service("__init__")),
    "services details": on("transfers", service("prints", colour="red")),
    "services.stream number": on("transfers", text(stream=fractional(internal_stream))),
    "services.stream kind": on("transfers", service("undefined", stream=users_stream)),
    "services.stream handle": on("transfers", service("undefined", stream=lent_stream)),
    "services.title text": on("transfers", text(title=5)),
    "services.shape": on("transfers", text(shape=[-1])),
    "services.message text": on("transfers", service("abort", message=5, location="")),
    "services.location text": on("transfers", service("abort", message="", location=5)),
    "services.name text": on("transfers", host_function(name=5)),
    **{
        f"services.{name} {what}": on("transfers", host_function(**{name: value}))
        for name in ("inputs", "outputs")
        for what, value in (
            ("list", ""),
            ("number", lambda tree: [float(last_stream(tree))]),
            ("low", [-1]),
            ("high", lambda tree: [last_stream(tree) + 1]),
            ("kind", lambda tree: [users_stream(tree)]),
            ("handle", lambda tree: [lent_stream(tree)]),
        )
    },
    **{
        f"services.{name} {what}": on("replicated", exchange(**{name: value}))
        for name in ("sent", "received")
        for what, value in (
            ("number", fractional(last_stream)),
            ("low", -1),
            ("high", lambda tree: last_stream(tree) + 1),
            ("kind", users_stream),
            ("handle", lent_stream),
        )
    },
    "services.received sent": on("replicated", both(exchange(), last_stream_as(type="FLOAT"))),
    "services.receivers": on("replicated", exchange(receivers=[0, 2, 1])),
    "services.step number": on("replicated", exchange(step=1.0)),
    "services.buffer number": on("transfers", remote(buffer=False)),
    "services.buffer type": on("transfers", both(remote(), last_stream_as(type="INT"))),
    "services.offsets number": on("transfers", remote(offsets=2.0)),
    "services.offsets low": on("transfers", remote(offsets=-2), OFF),  # -1 says that there are none
    "services.offsets kind": on("transfers", both(remote(), rows_in(kind="to device"))),
    "services.offsets handle": on("transfers", both(remote(), handle_of_the_rows)),
    "services.offsets type": on("transfers", both(remote(), rows_in(type="FLOAT"))),
    "services.stream rows": on("transfers", both(remote(), rows_in(elements=3))),
    "services.compute touches": on("vertices", judge()),
    "services.compute number": on("judged", judge(compute=False)),
    "services.modifier": on("transfers", seed(modifier=1.5)),
    "services.stream seed": on("transfers", both(seed(), last_stream_as(type="INT"))),
}
