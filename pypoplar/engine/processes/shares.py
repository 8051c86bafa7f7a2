"""Which process holds which replicas, and what messages call it."""

from __future__ import annotations

from attrs import frozen

from pypoplar.errors import InvalidOption


@frozen
class Shares:
    """So many replicas in equal shares: process r of p holds those from r n / p on. 0 replicas: how many is not known yet."""

    replicas: int
    processes: int

    @staticmethod
    def of(replicas: int, processes: int) -> Shares:
        """Shares of all replicas of a graph; `InvalidOption` if they are not equal."""
        if replicas % processes:
            raise InvalidOption(
                f"{replicas} replica{'s' * (replicas != 1)} cannot be shared by {processes} processes: the graph is made for all "
                "replicas, Graph(target, replication_factor(n)), and n is a multiple of the processes; under poprun n is "
                "popdist.getNumTotalReplicas()"
            )
        return Shares(replicas, processes)

    def of_process(self, process: int) -> range:
        """The replicas of a process."""
        each = self.replicas // self.processes
        return range(process * each, (process + 1) * each)

    def holder(self, replica: int) -> int:
        """The process that holds a replica."""
        return replica // (self.replicas // self.processes)

    def of_replica(self, replica: int) -> str:
        """What messages call the process that holds a replica."""
        return self.name(self.holder(replica))

    def name(self, process: int) -> str:
        """What messages call a process: ``instance 1 (replicas 2 to 3)``."""
        held = self.of_process(process)
        if not held:
            return f"instance {process}"
        which = f"replica {held[0]}" if len(held) == 1 else f"replicas {held[0]} to {held[-1]}"
        return f"instance {process} ({which})"
