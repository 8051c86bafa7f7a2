"""What a program in several instances asks and does, with popdist's names: ``import pypoplar.popdist as popdist``.

Under `poprun` the getters tell of this instance, and instances have collectives. Without it they tell of a program that is alone.
`pypoplar.popdist.poptorch` has the options of a model whose replicas are spread over instances.
"""

from pypoplar.popdist.getters import (
    checkNumIpusPerReplica,
    getDeviceId,
    getInstanceIndex,
    getLocalInstanceIndex,
    getNumInstances,
    getNumIpusPerReplica,
    getNumLocalReplicas,
    getNumTotalReplicas,
    getReplicaIndexOffset,
    isPopdistEnvSet,
)
from pypoplar.popdist.instance_collectives import allGather, allReduceSum, broadcast, synchronize
from pypoplar.popdist.instance_runs import getReport, run
from pypoplar.popdist.mpi_backend import (
    execute_on_instances,
    finalizeBackend,
    init,
    initializeBackend,
    isBackendInitialized,
    registerCommunicator,
)

__all__ = [
    "allGather",
    "allReduceSum",
    "broadcast",
    "checkNumIpusPerReplica",
    "execute_on_instances",
    "finalizeBackend",
    "getDeviceId",
    "getInstanceIndex",
    "getLocalInstanceIndex",
    "getNumInstances",
    "getNumIpusPerReplica",
    "getNumLocalReplicas",
    "getNumTotalReplicas",
    "getReplicaIndexOffset",
    "getReport",
    "init",
    "initializeBackend",
    "isBackendInitialized",
    "isPopdistEnvSet",
    "registerCommunicator",
    "run",
    "synchronize",
]
