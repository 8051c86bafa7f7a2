"""Whether all instances train the same weights: digests of what each gives its device, which they compare when they meet."""

from __future__ import annotations

import zlib
from collections.abc import Container, Iterable, Mapping

from attrs import define, field

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.engine.engine import Engine
from pypoplar.engine.processes.broadcast_checks import BroadcastChecks
from pypoplar.poptorch.capture import InputKind
from pypoplar.poptorch.executor.known_graphs.captured_facts import StateTensor


@define(eq=False)
class InstanceWeights:
    """Parameters, buffers that the model does not change, and numbers of the optimiser: replicas of all instances have the same."""

    engine: Engine
    checks: BroadcastChecks
    names: Mapping[str, str]  # what messages call a tensor, by its name
    _numbers: dict[str, int] = field(factory=dict)

    @staticmethod
    def of(engine: Engine, state: Iterable[StateTensor], changed: Container[str]) -> InstanceWeights | None:
        """Those of a model; None where it runs in one process, or nothing is to be compared. It changes buffers of these names."""
        spread = engine._spread
        if spread is None or spread.meeting is None or not spread.meeting.checks.wanted:
            return None
        names = {
            one.name: f"{'parameter' if one.kind is InputKind.PARAMETER else 'buffer'} {one.name!r}"
            for one in state
            if one.kind is InputKind.PARAMETER or one.name not in changed
        }
        return InstanceWeights(engine, spread.meeting.checks, names)

    def written(self, arrays: Mapping[str, AnyArray]) -> None:
        """Tensors, by name, are on the device now."""
        self.checks.keep_equal(self._digests(arrays), self._on_device)

    def number_written(self, handle: str, number: float) -> None:
        """A number of the optimiser is on the device now."""
        self._numbers[f"the optimizer's {handle!r}"] = zlib.crc32(repr(number).encode())
        self.checks.keep_equal(self._numbers, self._on_device)

    def _digests(self, arrays: Mapping[str, AnyArray]) -> dict[str, int]:
        return {text: zlib.crc32(arrays[name].tobytes()) for name, text in self.names.items()}

    def _on_device(self) -> Mapping[str, int]:
        """Read as a run begins, when the engine is already this run's."""
        reads = self.engine.executable.reads
        return {**self._digests({name: self.engine._read(reads[name])[0] for name in self.names}), **self._numbers}
