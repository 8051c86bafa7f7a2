"""What lets instances talk with each other: MPI, which is started when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pypoplar.braces import ordered
from pypoplar.codelet.ir.terms import line_text
from pypoplar.engine.processes import instance_environment
from pypoplar.engine.processes.coming_together import gathered
from pypoplar.engine.processes.instance_peers import instance_peers
from pypoplar.engine.processes.peers import Peers, together
from pypoplar.errors import InvalidOption, PoplarIndexError, PoplarTypeError
from pypoplar.graph.location import caller_location
from pypoplar.tracebacks import public

_started: list[bool] = []
_communicators: dict[int, tuple[int, ...]] = {}


def initializeBackend() -> None:
    """Start MPI, if there are several instances; all of them call it. Collectives and engines do so where it was not called."""
    instance_peers()
    _started[:] = [True]


def init() -> None:
    """The same: MPI ends with the program."""
    initializeBackend()


def isBackendInitialized() -> bool:
    """Whether `init` or `initializeBackend` was called, and `finalizeBackend` was not."""
    return bool(_started)


def finalizeBackend() -> None:
    """The end of what `initializeBackend` began; MPI itself ends with the program."""
    _started.clear()


@public
def registerCommunicator(participants: Iterable[int], id: int) -> None:
    """Give a number to a part of the instances, which collectives take; all instances call it.

    Parameters
    ----------
    participants:
        The numbers of the instances.
    id:
        The number that the communicator gets, 1 or more; 0 is that of all instances.

    Raises
    ------
    PoplarIndexError
        If there is no such instance.
    InvalidOption
        If there are none, or the number is taken.
    """
    given: object = id
    if isinstance(given, bool) or not isinstance(given, int) or given < 1 or given in _communicators:
        raise InvalidOption(f"popdist.registerCommunicator: id is a whole number from 1 on that is not taken, got {id!r}")
    members = tuple(sorted({_instance("registerCommunicator", one) for one in _listed("registerCommunicator", participants)}))
    if not members:
        raise InvalidOption("popdist.registerCommunicator: a communicator has at least one instance")
    _check_alike(members, id)
    _communicators[id] = members


def _check_alike(members: tuple[int, ...], id: int) -> None:
    """All instances register the same."""
    found = peers()
    if found is None:
        return
    line = line_text(caller_location())
    told = gathered(found, (members, id), "popdist.registerCommunicator", lambda: f"popdist.registerCommunicator [{line}]")
    for process, (others, number) in enumerate(told):
        if (others, number) != told[0]:
            raise together(
                InvalidOption(
                    f"popdist.registerCommunicator: {found.name(0)} has registered {list(told[0][0])} as {told[0][1]}, and "
                    f"{found.name(process)} {list(others)} as {number}: all instances register the same"
                ),
                process,
            )


def members(call: str, communicator: int) -> tuple[int, ...]:
    """The instances of a communicator."""
    if communicator == 0 and not isinstance(communicator, bool):
        return tuple(range(instance_environment.instances()))
    if communicator not in _communicators:
        raise PoplarIndexError(f"popdist.{call}: no communicator {communicator!r} is registered")
    return _communicators[communicator]


def peers() -> Peers | None:
    """All instances; None where there is only one."""
    return instance_peers()


@public
def execute_on_instances(instances: Iterable[int], func: Callable[..., object], *args: object, **kwargs: object) -> object:
    """Call a function on some of the instances; the others go on.

    Parameters
    ----------
    instances:
        Their numbers.
    func:
        What they call.
    args, kwargs:
        Its arguments.

    Returns
    -------
    object
        What it gives; None on the others.

    Raises
    ------
    PoplarIndexError
        If there is no such instance.
    PoplarTypeError
        If `func` cannot be called.
    """
    if not callable(func):
        raise PoplarTypeError(f"popdist.execute_on_instances: func is a function, got {func!r}")
    numbers = {_instance("execute_on_instances", one) for one in _listed("execute_on_instances", instances)}
    return func(*args, **kwargs) if instance_environment.instance() in numbers else None


def _listed(call: str, instances: object) -> list[object]:
    if isinstance(instances, set | frozenset):
        return sorted(instances, key=repr)
    if isinstance(instances, str) or not isinstance(instances, Iterable):
        raise PoplarTypeError(f"popdist.{call} takes numbers of instances, [0, 1], got {instances!r}")
    return list(ordered(instances, f"popdist.{call}", "[0, 1]"))


def _instance(call: str, number: object) -> int:
    count = instance_environment.instances()
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise PoplarTypeError(f"popdist.{call} takes numbers of instances, got {number!r}")
    whole = int(number.__index__())
    if not 0 <= whole < count:
        raise PoplarIndexError(f"popdist.{call}: instance {whole} is out of range, there are {count}, from 0 on")
    return whole
