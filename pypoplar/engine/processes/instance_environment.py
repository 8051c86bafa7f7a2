"""What `poprun` tells an instance of itself: environment variables, and their values where nothing is set."""

from __future__ import annotations

import os

from attrs import frozen

from pypoplar.errors import InvalidOption


@frozen
class InstanceVariable:
    """An environment variable that holds a whole number.

    Parameters
    ----------
    name:
        As the environment has it.
    default:
        Its value where it is not set.
    least:
        The least value that it can have.
    meaning:
        What it says, in words.
    """

    name: str
    default: int
    least: int
    meaning: str

    def value(self) -> int:
        """Its value; `InvalidOption` where it is no such number."""
        text = os.environ.get(self.name, "")
        if not text:
            return self.default
        if not text.strip().isdecimal() or int(text) < self.least:
            raise InvalidOption(f"the environment variable {self.name} is a whole number of at least {self.least}, got {text!r}")
        return int(text)

    def is_set(self) -> bool:
        """Whether the environment has it."""
        return bool(os.environ.get(self.name))


TOTAL_REPLICAS = InstanceVariable("POPDIST_NUM_TOTAL_REPLICAS", 1, 1, "the replicas of all instances")
LOCAL_REPLICAS = InstanceVariable("POPDIST_NUM_LOCAL_REPLICAS", 1, 1, "the replicas of this instance")
IPUS_PER_REPLICA = InstanceVariable("POPDIST_NUM_IPUS_PER_REPLICA", 1, 1, "the IPUs of each replica")
REPLICA_OFFSET = InstanceVariable("POPDIST_REPLICA_INDEX_OFFSET", 0, 0, "the number of this instance's first replica")
LOCAL_INSTANCE = InstanceVariable("POPDIST_LOCAL_INSTANCE_INDEX", 0, 0, "the number of this instance among those of its host")
UNIFORM = InstanceVariable("POPDIST_UNIFORM_REPLICAS_PER_INSTANCE", 1, 0, "1 if all instances have as many replicas")
VARIABLES = (TOTAL_REPLICAS, LOCAL_REPLICAS, IPUS_PER_REPLICA, REPLICA_OFFSET, LOCAL_INSTANCE, UNIFORM)


def is_set() -> bool:
    """Whether this process was started by `poprun`."""
    return TOTAL_REPLICAS.is_set()


def instances() -> int:
    """How many instances there are; `InvalidOption` where they have different numbers of replicas, or numbers do not fit."""
    total, local = TOTAL_REPLICAS.value(), LOCAL_REPLICAS.value()
    if not UNIFORM.value():
        raise InvalidOption("the instances have different numbers of replicas: how many there are, and which this is, is not known")
    if total % local or REPLICA_OFFSET.value() % local or REPLICA_OFFSET.value() >= total:
        raise InvalidOption(
            f"{TOTAL_REPLICAS.name}={total}, {LOCAL_REPLICAS.name}={local} and {REPLICA_OFFSET.name}={REPLICA_OFFSET.value()} "
            "do not fit together: instances have equal parts of all replicas"
        )
    return total // local


def instance() -> int:
    """The number of this instance."""
    instances()
    return REPLICA_OFFSET.value() // LOCAL_REPLICAS.value()
