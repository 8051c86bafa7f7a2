"""`popdist.poptorch.Options`: replicas and process are those of the environment."""

from __future__ import annotations

from typing import NoReturn

from pypoplar.popdist.getters import checkNumIpusPerReplica, getInstanceIndex, getNumInstances, getNumLocalReplicas
from pypoplar.poptorch.asserted_errors import BlockedOption
from pypoplar.poptorch.options import Options as PoptorchOptions
from pypoplar.poptorch.options.distributed_options import DistributedOptions
from pypoplar.tracebacks import public

REFUSED = ("useIpuId", "replicationFactor", "Distributed.disable", "Distributed.setEnvVarNames", "Distributed.configureProcessId")


class _Distributed(DistributedOptions):
    """Which instance this is, which only `poprun` decides."""

    def disable(self) -> NoReturn:
        """Refused."""
        refuse("Distributed.disable")

    def setEnvVarNames(self, var_num_processes: str, var_process_id: str) -> NoReturn:
        """Refused."""
        refuse("Distributed.setEnvVarNames")

    def configureProcessId(self, process_id: int, num_processes: int | None = None) -> NoReturn:
        """Refused."""
        refuse("Distributed.configureProcessId")


@public
class Options(PoptorchOptions):
    """`poptorch.Options` of a model whose replicas are those that `poprun` has started; without it there is one.

    Parameters
    ----------
    ipus_per_replica:
        The IPUs that a replica of the model takes; None: those that `poprun` was told.

    Raises
    ------
    InvalidOption, RuntimeError
        If `poprun` was told another number, and from `useIpuId`, `replicationFactor`, `Distributed.disable`,
        `Distributed.setEnvVarNames` and `Distributed.configureProcessId`, for the environment decides that.
    """

    def __init__(self, ipus_per_replica: int | None = None) -> None:
        if ipus_per_replica is not None:
            checkNumIpusPerReplica(ipus_per_replica)
        super().__init__()
        self._distributed = _Distributed()
        self._distributed._spread_over(getInstanceIndex(), getNumInstances())
        super().replicationFactor(getNumLocalReplicas())

    def useIpuId(self, ipu_id: int) -> NoReturn:
        """Refused: instances have the IPUs that follow each other."""
        refuse("useIpuId")

    def replicationFactor(self, replication_factor: int) -> NoReturn:
        """Refused: `poprun` was told it."""
        refuse("replicationFactor")


def refuse(name: str) -> NoReturn:
    """The error of a call that the environment decides."""
    raise BlockedOption(f"Cannot call `{name}` with popdist.poptorch.Options")
