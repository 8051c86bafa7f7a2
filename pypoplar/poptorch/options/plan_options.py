"""The options of plans: of convolutions, products of matrices and recurrent layers, by IPU and operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

RECURRENT = ("lstm", "gru", "rnn")


@frozen
class PlanOptions:
    """What a model's options say of plans. `proportions` are parts of memory, by IPU."""

    proportions: Mapping[int, float] = field(factory=dict)
    convolutions: Mapping[str, Any] = field(factory=dict)
    products: Mapping[str, Any] = field(factory=dict)
    recurrent: Mapping[str, Any] = field(factory=dict)

    def of(self, operation: str, ipu: int, proportion: float | None = None) -> dict[str, str]:
        """Those of an operation, such as ``"convolution_backward"``, on an IPU; a `proportion` of its own goes before the IPU's."""
        kind = self.products
        if operation.startswith("convolution"):
            kind = self.convolutions
        elif any(name in operation for name in RECURRENT):
            kind = self.recurrent
        options = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in kind.items()}
        memory = self.proportions.get(ipu) if proportion is None else proportion
        return options if memory is None else {**options, "availableMemoryProportion": str(memory)}
