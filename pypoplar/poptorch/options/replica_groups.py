"""Which replicas of a model are given the same batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from pypoplar.errors import InvalidOption
from pypoplar.poptorch.enums import CommGroupType

if TYPE_CHECKING:
    from pypoplar.poptorch.options.model_options import Options


@frozen
class ReplicaGroups:
    """So many replicas, in groups of a size, each of which is given batches of its own: of neighbours, or of equal distances."""

    replicas: int = 1
    size: int = 1
    consecutive: bool = True

    @classmethod
    def of_options(cls, options: Options) -> ReplicaGroups:
        """Those of a model's options; `InvalidOption` for groups that do not divide the replicas."""
        check_divides("Options.inputReplicaGrouping", options.input_group_size, options.replication_factor)
        return cls(options.replication_factor, options.input_group_size, options.input_cgt is CommGroupType.Consecutive)

    @property
    def count(self) -> int:
        """How many groups there are."""
        return self.replicas // self.size

    @property
    def of_each(self) -> list[int]:
        """The group of each replica."""
        return [replica // self.size if self.consecutive else replica % self.count for replica in range(self.replicas)]


def check_divides(call: str, size: int, replicas: int) -> None:
    """`InvalidOption` unless replicas can be divided into groups of a size."""
    if replicas % size:
        raise InvalidOption(f"{call}: groups of {size} do not divide the {replicas} replicas of Options.replicationFactor")
