"""Collectives of instances: arrays and numbers of the host, beside what replicas do on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.codelet.ir.terms import line_text
from pypoplar.engine.processes import instance_environment
from pypoplar.engine.processes.coming_together import gathered
from pypoplar.engine.processes.peers import together
from pypoplar.errors import ApplicationRuntimeError, PoplarIndexError, PoplarTypeError
from pypoplar.graph.location import caller_location
from pypoplar.popdist.mpi_backend import members, peers
from pypoplar.tracebacks import public


@frozen
class _Call:
    """What an instance has called."""

    name: str
    communicator: int
    root: int
    shape: tuple[int, ...] | None
    dtype: str
    line: str

    def text(self) -> str:
        """In words."""
        what = "" if self.shape is None else f" of {self.dtype} {list(self.shape)}"
        root = f" from instance {self.root}" if self.name == "broadcast" else ""
        of = f" in communicator {self.communicator}" if self.communicator else ""
        return f"popdist.{self.name}{what}{root}{of} [{self.line}]"

    def alike(self) -> tuple[object, ...]:
        """What is the same on all instances."""
        return (self.name, self.communicator, self.root, self.shape, self.dtype)


def synchronize() -> None:
    """Wait until all instances have called it."""
    _met("synchronize", None, 0)


@public
def allReduceSum(data: Any, communicatorId: int = 0) -> Any:
    """The sum of what instances give, which all of them get.

    Parameters
    ----------
    data:
        An array or a number; of all instances of one shape and type. They are added in the order of the instances.
    communicatorId:
        That of a communicator of `registerCommunicator`, whose instances call it; without it all do.

    Returns
    -------
    AnyArray | int | float
        A new array of the same shape and type, or a number.

    Raises
    ------
    PoplarTypeError
        For what is no array of numbers.
    ApplicationRuntimeError
        If instances give arrays of different shapes or types, or call something else.
    """
    own = _array("allReduceSum", data)
    given = _met("allReduceSum", own, communicatorId)
    total = given[0].copy()
    for other in given[1:]:
        total = (total + other).astype(own.dtype)
    return _as_given(total, data)


@public
def allGather(data: Any, communicatorId: int = 0) -> AnyArray:
    """What all instances give, in their order, which all of them get.

    Parameters
    ----------
    data:
        An array or a number; of all instances of one shape and type.
    communicatorId:
        As for `allReduceSum`.

    Returns
    -------
    AnyArray
        With a first axis for the instances.

    Raises
    ------
    PoplarTypeError, ApplicationRuntimeError
        As from `allReduceSum`.
    """
    gathered: AnyArray = np.stack(_met("allGather", _array("allGather", data), communicatorId))
    return gathered


@public
def broadcast(data: Any, root: int = 0, communicatorId: int = 0) -> Any:
    """What one instance gives, which all get.

    Parameters
    ----------
    data:
        An array or a number; of all instances of one shape and type.
    root:
        The instance whose values count.
    communicatorId:
        As for `allReduceSum`.

    Returns
    -------
    AnyArray | int | float
        A new array of the same shape and type, or a number.

    Raises
    ------
    PoplarIndexError
        If there is no such instance.
    PoplarTypeError, ApplicationRuntimeError
        As from `allReduceSum`.
    """
    of = members("broadcast", communicatorId)
    if isinstance(root, bool) or root not in of:
        raise PoplarIndexError(f"popdist.broadcast: root {root!r} is none of the instances {list(of)}")
    given = _met("broadcast", _array("broadcast", data), communicatorId, root)
    return _as_given(given[of.index(root)].copy(), data)


def _met(name: str, own: AnyArray | None, communicator: int, root: int = 0) -> list[AnyArray]:
    """What the instances of a communicator give, in their order."""
    of = members(name, communicator)
    if instance_environment.instance() not in of:
        raise ApplicationRuntimeError(f"popdist.{name}: this instance is not in communicator {communicator}, of {list(of)}")
    found = peers()
    if found is None or len(of) == 1:
        return [] if own is None else [own]
    shape, dtype = (None, "") if own is None else (own.shape, str(own.dtype))
    call = _Call(name, communicator, root, shape, dtype, line_text(caller_location()))
    told = gathered(found.part(of), (call, own), f"popdist.{name}", call.text)
    first = told[0][0]
    for process, (other, _) in zip(of, told, strict=True):
        if other.alike() != first.alike():
            raise together(
                ApplicationRuntimeError(
                    f"{found.name(of[0])} has called {first.text()}, and {found.name(process)} {other.text()}: all call the same, "
                    "with one shape, type and root"
                ),
                process,
            )
    return [] if own is None else [array for _, array in told]


def _array(call: str, data: Any) -> AnyArray:
    array = np.asarray(data)
    if array.dtype.kind not in "biuf":
        raise PoplarTypeError(f"popdist.{call} takes an array of numbers or a number, got {data!r}")
    return array


def _as_given(result: AnyArray, data: Any) -> Any:
    """A number where a number was given."""
    return result.item() if isinstance(data, int | float) else result
