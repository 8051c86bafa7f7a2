"""The options of recurrent layers."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from pypoplar.errors import MissingFeature
from pypoplar.poputil.arguments import whole_number
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.exceptions import PoplibsError

Options = Mapping[str, object] | None

PARTIALS = ("half", "float")
GRU_OPTIONS: dict[str, Kind] = {
    "availableMemoryProportion": float,
    "inferenceOnly": bool,
    "partialsType": PARTIALS,
    "numShards": int,
    "rnnCodeReuse": bool,
}
LSTM_OPTIONS: dict[str, Kind] = {
    **GRU_OPTIONS,
    "preCalcWeights": bool,
    "weightAccumulatorsType": PARTIALS,
    "recomputationMode": ("none", "cellAndTanh", "full"),
    "rnnStepsPerWU": int,
    "disableWUPartialInterleaving": bool,
}


@frozen
class RecurrentOptions:
    """What the options of a layer say: of its products, and of what is kept for the backward pass."""

    products: Mapping[str, object]
    inference_only: bool
    weighs_first: bool = False
    recomputes: bool = False

    @staticmethod
    def lstm(call: str, options: Options) -> RecurrentOptions:
        """`InvalidOption` for unknown options and values, `MissingFeature` for what is not there."""
        chosen = read_options(call, options, LSTM_OPTIONS)
        if chosen.get("recomputationMode") == "full":
            raise MissingFeature(f"{call}: recomputationMode 'full' is not there, as in PopLibs; 'cellAndTanh' keeps fewer results")
        _check_counts(call, chosen)
        inference, first = (bool(chosen.get(name, False)) for name in ("inferenceOnly", "preCalcWeights"))
        return RecurrentOptions(_products(call, chosen), inference, first, chosen.get("recomputationMode") == "cellAndTanh")

    @staticmethod
    def gru(call: str, options: Options) -> RecurrentOptions:
        """As `lstm`, of those that GRUs have."""
        chosen = read_options(call, options, GRU_OPTIONS)
        _check_counts(call, chosen)
        return RecurrentOptions(_products(call, chosen), bool(chosen.get("inferenceOnly", True)))

    def of_pass(self, name: str) -> dict[str, object]:
        """The options of the products of a pass, such as "TRAINING_BWD"."""
        return {**self.products, "fullyConnectedPass": name}

    @property
    def forward(self) -> dict[str, object]:
        return self.of_pass("INFERENCE_FWD" if self.inference_only else "TRAINING_FWD")


def _products(call: str, chosen: Mapping[str, object]) -> dict[str, object]:
    products: dict[str, object] = {"partialsType": chosen.get("partialsType", "float")}
    memory = chosen.get("availableMemoryProportion")
    if isinstance(memory, float):
        if not 0 <= memory <= 1:
            raise PoplibsError(f"{call}: the option 'availableMemoryProportion' is from 0 to 1, got {memory:g}")
        products["availableMemoryProportion"] = memory
    return products


def _check_counts(call: str, chosen: Mapping[str, object]) -> None:
    """Options that count are at least 1, though they change nothing."""
    for name in ("numShards", "rnnStepsPerWU"):
        whole_number(call, f"the option {name!r}", chosen.get(name, 1), 1)
