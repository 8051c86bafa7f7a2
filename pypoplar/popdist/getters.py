"""What an instance is told of itself and of all."""

from __future__ import annotations

from pypoplar.device import DeviceManager
from pypoplar.engine.processes import instance_environment
from pypoplar.errors import InvalidOption, PoplarTypeError
from pypoplar.tracebacks import public


def isPopdistEnvSet() -> bool:
    """Whether `poprun` has started this process."""
    return instance_environment.is_set()


def getNumTotalReplicas() -> int:
    """The replicas of all instances; 1 without `poprun`."""
    return instance_environment.TOTAL_REPLICAS.value()


def getNumLocalReplicas() -> int:
    """The replicas of this instance; 1 without `poprun`."""
    return instance_environment.LOCAL_REPLICAS.value()


def getNumIpusPerReplica() -> int:
    """The IPUs of each replica; 1 without `poprun`."""
    return instance_environment.IPUS_PER_REPLICA.value()


def getReplicaIndexOffset() -> int:
    """The number, among all replicas, of the first one of this instance; 0 without `poprun`."""
    return instance_environment.REPLICA_OFFSET.value()


def getInstanceIndex() -> int:
    """The number of this instance; 0 without `poprun`. `InvalidOption` where instances have different numbers of replicas."""
    return instance_environment.instance()


def getNumInstances() -> int:
    """How many instances there are; 1 without `poprun`. `InvalidOption` where they have different numbers of replicas."""
    return instance_environment.instances()


def getLocalInstanceIndex() -> int:
    """The number of this instance among those of its host; 0 without `poprun`."""
    return instance_environment.LOCAL_INSTANCE.value()


@public
def getDeviceId(ipusPerReplica: int = 0) -> int:
    """The number of the device that has this instance's IPUs, as a `DeviceManager` numbers them.

    Parameters
    ----------
    ipusPerReplica:
        The IPUs of each replica; 0 for those that `poprun` was told.

    Returns
    -------
    int
        What `DeviceManager.getDevice` takes.

    Raises
    ------
    InvalidOption
        If there is no device of so many IPUs.
    """
    each = _count("getDeviceId", ipusPerReplica, 0) or getNumIpusPerReplica()
    ipus = each * getNumLocalReplicas()
    devices = [device.getId() for device in DeviceManager().getDevices() if device.getTarget().getNumIPUs() == ipus]
    if len(devices) <= getInstanceIndex():
        raise InvalidOption(
            f"getDeviceId: {getNumLocalReplicas()} replicas of {each} IPUs for each of {getNumInstances()} instances: a machine "
            "has devices of a power of two IPUs, 64 in all"
        )
    return devices[getInstanceIndex()]


@public
def checkNumIpusPerReplica(numIpus: int) -> None:
    """Check that a model's replica takes as many IPUs as `poprun` was told.

    Parameters
    ----------
    numIpus:
        Those that a replica of the model takes.

    Raises
    ------
    InvalidOption
        If they are others; without `poprun` any number will do.
    """
    number = _count("checkNumIpusPerReplica", numIpus, 1)
    if isPopdistEnvSet() and number != getNumIpusPerReplica():
        raise InvalidOption(
            f"a replica takes {number} IPUs, and poprun was told --ipus-per-replica {getNumIpusPerReplica()}: "
            f"start it with {number}"
        )


def _count(call: str, number: object, least: int) -> int:
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise PoplarTypeError(f"popdist.{call} takes a whole number, got {number!r}")
    whole = int(number.__index__())
    if whole < least:
        raise InvalidOption(f"popdist.{call} takes a whole number of at least {least}, got {whole}")
    return whole
