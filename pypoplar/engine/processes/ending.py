"""How all processes end where one of them fails: its message once, then none is left."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from pypoplar.engine.processes import instance_environment
from pypoplar.engine.processes.peers import ENDED, FAILED, Peers
from pypoplar.engine.processes.shares import Shares
from pypoplar.engine.replicas.meeting import AGREED
from pypoplar.errors import PoplarError

ELECTION = 0.15  # seconds in which others may say that they have failed before
FAREWELL = 1.0  # seconds in which the first one to fail ends this process
PASSING_ON = 0.3  # seconds in which the launcher passes on what was printed, before it ends all
GUARD = "POPRUN_GUARD"  # the process that poprun has started this one by
BETWEEN = 0.001  # seconds between looks at who has ended
STATUS = 1  # of processes that fail
INTERRUPTED = 130


def end_together(peers: Peers) -> None:
    """Let an error that nobody catches end all processes, and let others know when this one ends."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        try:
            _end_all(peers, error)
        except Exception:  # MPI itself has failed
            before(kind, error, trace)
            os._exit(STATUS)

    sys.excepthook = hook
    _hear_status()
    atexit.register(_leave, peers)  # before mpi4py ends MPI, as it is registered later


_status: list[int] = []  # with which a script that `python -m mpi4py` runs ends, as mpi4py hears of it
_heard: list[bool] = []  # whether it tells us


def _hear_status() -> None:
    """Learn of `sys.exit(3)`, by which mpi4py ends all processes: no hook of Python's tells of it."""
    from mpi4py import MPI

    known = getattr(MPI, "_set_abort_status", None)
    if known is None or _heard:
        return

    def take(status: int) -> None:
        _status[:] = [status]
        known(status)

    MPI._set_abort_status = take
    _heard.append(True)


def _leave(peers: Peers) -> None:
    """Let the others know that this process ends; one that ends by a status is to end them, who wait for that."""
    with contextlib.suppress(Exception):
        if _status and _status[0]:
            sys.stderr.write(f"{peers.name()}: ended with exit status {_status[0]}\n")
            sys.stdout.flush()
            sys.stderr.flush()
            time.sleep(PASSING_ON)
            return
        peers.say(ENDED, peers.number)
        while not peers.all_ended():  # MPI ends for all at once, and complains of messages that nobody has taken
            time.sleep(BETWEEN)


def _end_all(peers: Peers, error: BaseException) -> None:
    """Print what the first process to fail has raised, and end all."""
    owner = vars(error).get(AGREED, peers.rank)
    when = time.time() if owner == peers.rank else float("inf")
    status = INTERRUPTED if isinstance(error, KeyboardInterrupt) else STATUS
    peers.say(FAILED, when)
    if _is_first(peers, when):
        print_error(peers.name(), error)
        if _is_guarded():
            os._exit(status)
        time.sleep(PASSING_ON)
    else:
        time.sleep(FAREWELL)
    peers.comm.Abort(status)


def _is_guarded() -> bool:
    """Whether the parent is the guard of poprun: it passes on what was printed, tells how this one ended, and ends the others."""
    return os.environ.get(GUARD) == str(os.getppid())


def _is_first(peers: Peers, when: float) -> bool:
    """Whether no other process has failed before; none may say so after all."""
    deadline = time.perf_counter() + (ELECTION if when < float("inf") else FAREWELL)
    while time.perf_counter() < deadline:
        peers.listen()
        if any((other, process) < (when, peers.rank) for process, other in peers.failed.items()):
            return False
        time.sleep(0.005)
    return True


def users_part(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without what stands above the user's script: Python's and mpi4py's ways to run it."""
    while trace is not None and trace.tb_next is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith("<frozen") and f"{os.sep}mpi4py{os.sep}" not in file:
            break
        trace = trace.tb_next
    return trace


def name_errors() -> None:
    """Under poprun, let an error that ends this process begin with the instance's name, before it has met others."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        try:
            shares = Shares(instance_environment.TOTAL_REPLICAS.value(), instance_environment.instances())
            print_error(shares.name(instance_environment.instance()), error)
        except PoplarError:  # the environment is no poprun's
            before(kind, error, trace)

    sys.excepthook = hook


def print_error(name: str, error: BaseException, write: Callable[[str], Any] | None = None) -> None:
    """Print an error with its traceback; what it says begins with the name of the process."""
    text = traceback.TracebackException(type(error), error, users_part(error.__traceback__))
    only, whole = list(text.format_exception_only()), list(text.format())
    lines = "".join([*whole[: len(whole) - len(only)], f"{name}: ", *only])
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    (write or sys.stderr.write)(lines)
    with contextlib.suppress(Exception):
        sys.stderr.flush()
