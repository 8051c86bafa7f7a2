"""Runs and reports of an engine whose replicas are spread over instances."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from pypoplar.codelet.ir.terms import line_text
from pypoplar.engine.engine import Engine
from pypoplar.engine.processes.coming_together import gathered
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.location import caller_location
from pypoplar.tracebacks import public

if TYPE_CHECKING:
    from pypoplar.report.report import Report


@public
def run(engine: Engine, program: int = 0, name: str = "") -> None:
    """Run a program of an engine on all instances: `Engine.run`, where they have met before.

    Parameters
    ----------
    engine:
        One that all instances have made.
    program:
        The number of the program.
    name:
        Labels the run in reports.
    """
    _checked("run", engine).run(program, name)


@public
def getReport(engine: Engine, replica: int | None = None) -> Report | None:
    """The report of an engine as one process would have it that runs all replicas; all instances call it.

    Parameters
    ----------
    engine:
        One whose replicas are spread over the instances.
    replica:
        That of which the runs are told, as `Engine.getReport` takes it.

    Returns
    -------
    Report | None
        On instance 0; None on the others.

    Raises
    ------
    PoplarIndexError
        If there is no such replica.
    """
    spread = _checked("getReport", engine)._spread
    if spread is None:
        return engine.getReport(replica)
    chosen = engine.executable.options.replica_to_profile if replica is None else replica
    number = spread.checked_replica(0 if chosen is None else chosen)
    line = line_text(caller_location())
    history = engine._host.one(number, "getReport").runs.history() if number in spread.ours else None
    told = gathered(spread.peers, pickle.dumps(history), "popdist.getReport", lambda: f"popdist.getReport [{line}]")
    if spread.peers.rank != 0:
        return None
    return engine._report_maker(spread.common_options)(pickle.loads(told[spread.peers.shares.holder(number)]))


def _checked(call: str, engine: object) -> Engine:
    if not isinstance(engine, Engine):
        raise PoplarTypeError(f"popdist.{call} takes an Engine, got {engine!r}")
    return engine
