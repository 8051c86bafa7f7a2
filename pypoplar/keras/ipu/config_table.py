"""The options of `IPUConfig`: each with its place in the tree, what it is at first, and what it does here."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from attrs import frozen

from pypoplar.errors import InvalidOption, PoplarTypeError

Check = Callable[[str, Any], Any]


class OptionEffect(Enum):
    """What setting an option does here."""

    DOES = "does what it says"
    NOTHING = "changes nothing"
    REFUSED = "is refused"


class DeviceConnectionType(Enum):
    """When a model takes its IPUs."""

    ALWAYS = 0
    ON_DEMAND = 1
    PRE_COMPILE = 2
    NEVER = 3


class SelectionOrder(Enum):
    """How IPUs are numbered; here they are all alike."""

    AUTO = 0
    ZIGZAG = 1
    SNAKE = 2
    HOOF = 3


class StochasticRoundingBehaviour(Enum):
    """Whether halves are rounded up or down at random."""

    OFF = 0
    ON = 1
    REPLICA_IDENTICAL_ONLY = 2

    @staticmethod
    def from_bool(value: bool) -> StochasticRoundingBehaviour:
        """`ON` for True, `OFF` for False.

        Parameters
        ----------
        value:
            Whether it rounds at random.
        """
        return StochasticRoundingBehaviour.ON if value else StochasticRoundingBehaviour.OFF


class MergeRemoteBuffersBehaviour(Enum):
    """When remote buffers of equal shapes are one; there are none here."""

    NO_MERGING = 0
    MERGE = 1
    IF_BENEFICIAL = 2


class SchedulingAlgorithm(Enum):
    """How operations are put in order; here they stay in the order of the model."""

    CHOOSE_BEST = 0
    POST_ORDER = 1
    CLUSTERING = 2
    LOOK_AHEAD = 3
    SHORTEST_PATH = 4


@frozen
class ConfigOption:
    """A leaf of the tree."""

    path: str
    initial: Any
    check: Check
    effect: OptionEffect
    told: str = ""  # of one that does nothing, why; of one that is refused, what is there instead


def _flag(option: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise PoplarTypeError(f"{option} is True or False, got {value!r}")
    return value


def _whole(option: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise PoplarTypeError(f"{option} is a whole number, got {value!r}")
    if value < 0:
        raise InvalidOption(f"{option} is 0 or more, got {value}")
    return value


def _number(option: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PoplarTypeError(f"{option} is a number, got {value!r}")
    return float(value)


def _text(option: str, value: Any) -> str:
    if not isinstance(value, str):
        raise PoplarTypeError(f"{option} is a text, got {value!r}")
    return value


def _texts(option: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or any(not isinstance(key, str) for key in value):
        raise PoplarTypeError(f"{option} is a dict from options' names to their values, got {value!r}")
    return {key: str(one) for key, one in value.items()}


def _ipus(option: str, value: Any) -> Any:
    """A number of IPUs, or a list of one for each process."""
    given = list(value) if isinstance(value, list | tuple) else [value]
    for one in given:
        if _whole(option, one) == 0:
            raise InvalidOption(f"{option} is at least 1")
    return value


def _one_of(kind: type[Enum]) -> Check:
    def check(option: str, value: Any) -> Any:
        if kind is StochasticRoundingBehaviour and isinstance(value, bool):
            return StochasticRoundingBehaviour.from_bool(value)
        if not isinstance(value, kind):
            raise PoplarTypeError(f"{option} is a {kind.__name__}: {', '.join(one.name for one in kind)}; got {value!r}")
        return value

    return check


_DOES, _NOTHING, _REFUSED = OptionEffect.DOES, OptionEffect.NOTHING, OptionEffect.REFUSED
_HOST = "the host is simulated, and its copies take no time of its own"
_ORDER = "operations stay in the order of the model"
_SEPARATE = "collectives and copies between IPUs are compiled as they come"

_ROWS: tuple[tuple[str, Any, Check, OptionEffect, str], ...] = (
    ("allow_recompute", False, _flag, _DOES, ""),
    ("auto_select_ipus", [], _ipus, _DOES, ""),
    ("compilation_poplar_options", {}, _texts, _DOES, ""),
    ("gcl_poplar_options", {}, _texts, _NOTHING, "collectives have one algorithm"),
    ("select_ipus", [], _ipus, _NOTHING, "all IPUs are alike"),
    ("selection_order", SelectionOrder.AUTO, _one_of(SelectionOrder), _NOTHING, "all IPUs are alike"),
    ("serialization_output_folder", "", _text, _REFUSED, "poptorch's PoplarExecutor.save writes executables"),
    ("convolutions.poplar_options", {}, _texts, _DOES, ""),
    ("device_connection.enable_remote_buffers", False, _flag, _NOTHING, "states are in the IPU's memory"),
    ("device_connection.type", DeviceConnectionType.ALWAYS, _one_of(DeviceConnectionType), _DOES, ""),
    ("device_connection.version", "", _text, _DOES, ""),
    ("experimental.always_rearrange_copies_on_the_host", False, _flag, _NOTHING, _HOST),
    ("experimental.enable_prng_stability", False, _flag, _NOTHING, "random numbers do not depend on the compiler as it is"),
    ("experimental.enable_remote_buffer_embedding", False, _flag, _REFUSED, "tables are in the IPU's memory"),
    ("experimental.multi_replica_distribution.process_count", 0, _whole, _REFUSED, "replicas of Keras models are missing"),
    ("experimental.multi_replica_distribution.process_index", 0, _whole, _REFUSED, "replicas of Keras models are missing"),
    ("floating_point_behaviour.div0", False, _flag, _DOES, ""),
    ("floating_point_behaviour.esr", StochasticRoundingBehaviour.OFF, _one_of(StochasticRoundingBehaviour), _DOES, ""),
    ("floating_point_behaviour.inv", False, _flag, _DOES, ""),
    ("floating_point_behaviour.nanoo", False, _flag, _REFUSED, "halves that overflow are infinite, or an error with oflo"),
    ("floating_point_behaviour.oflo", False, _flag, _DOES, ""),
    ("floating_point_behaviour.set_all", False, _flag, _DOES, ""),
    ("io_tiles.available_memory_proportion", 0.9, _number, _NOTHING, "there are no tiles for the host alone"),
    ("io_tiles.num_io_tiles", 0, _whole, _NOTHING, "there are no tiles for the host alone"),
    ("io_tiles.place_ops_on_io_tiles", False, _flag, _NOTHING, "there are no tiles for the host alone"),
    ("ipu_model.compile_ipu_code", True, _flag, _NOTHING, "the simulated IPU is no model of Poplar's"),
    ("ipu_model.tiles_per_ipu", 0, _whole, _NOTHING, "the simulated IPU is no model of Poplar's"),
    ("ipu_model.version", "", _text, _NOTHING, "the simulated IPU is no model of Poplar's"),
    ("matmuls.clear_pass_type", False, _flag, _NOTHING, "products are planned by their shapes alone"),
    ("matmuls.poplar_options", {}, _texts, _DOES, ""),
    ("norms.experimental.distributed_batch_norm_replica_group_size", 1, _whole, _REFUSED, "replicas of Keras models are missing"),
    ("norms.use_stable_statistics", False, _flag, _DOES, ""),
    ("optimizations.cholesky_block_size", 0, _whole, _NOTHING, "there is no such operation"),
    ("optimizations.combine_embedding_lookups", False, _flag, _NOTHING, _SEPARATE),
    ("optimizations.combine_matmuls", False, _flag, _NOTHING, "products are computed one by one"),
    ("optimizations.enable_dynamic_slice_replacement", True, _flag, _NOTHING, _ORDER),
    ("optimizations.enable_fast_math", False, _flag, _NOTHING, "functions are exact to the last bits"),
    ("optimizations.enable_gather_simplifier", True, _flag, _NOTHING, _ORDER),
    ("optimizations.enable_graph_outlining", True, _flag, _DOES, ""),
    ("optimizations.math.dot_strength", True, _flag, _NOTHING, _ORDER),
    ("optimizations.math.fast", False, _flag, _NOTHING, "functions are exact to the last bits"),
    ("optimizations.maximum_all_gather_buffer_size", 0, _whole, _NOTHING, _SEPARATE),
    ("optimizations.maximum_cross_replica_sum_buffer_size", 0, _whole, _NOTHING, _SEPARATE),
    ("optimizations.maximum_inter_ipu_copies_buffer_size", 0, _whole, _NOTHING, _SEPARATE),
    ("optimizations.maximum_reduce_many_buffer_size", 0, _whole, _NOTHING, _SEPARATE),
    ("optimizations.maximum_reduce_scatter_buffer_size", 0, _whole, _NOTHING, _SEPARATE),
    ("optimizations.maximum_send_recv_cluster_size", 0, _whole, _NOTHING, _SEPARATE),
    ("optimizations.merge_infeed_io_copies", True, _flag, _NOTHING, _HOST),
    (
        "optimizations.merge_remote_buffers",
        MergeRemoteBuffersBehaviour.IF_BENEFICIAL,
        _one_of(MergeRemoteBuffersBehaviour),
        _NOTHING,
        "there are no remote buffers",
    ),
    ("optimizations.minimum_remote_tensor_size", 128, _whole, _NOTHING, "there are no remote buffers"),
    ("optimizations.prefetch_data_streams", True, _flag, _NOTHING, _HOST),
    ("optimizations.triangular_solve_expander_block_size", 0, _whole, _NOTHING, "there is no such operation"),
    ("pooling.poplar_options", {}, _texts, _REFUSED, "pooling of Keras models has no options"),
    ("scheduling.algorithm", SchedulingAlgorithm.CHOOSE_BEST, _one_of(SchedulingAlgorithm), _NOTHING, _ORDER),
    ("scheduling.maximum_scheduler_lookahead_depth", 5, _whole, _NOTHING, _ORDER),
    ("scheduling.maximum_scheduler_search_space_size", 64, _whole, _NOTHING, _ORDER),
    ("slices.poplar_options", {}, _texts, _REFUSED, "slices and look-ups of Keras models have no options"),
)
OPTIONS: dict[str, ConfigOption] = {row[0]: ConfigOption(*row) for row in _ROWS}
"""All leaves by their paths."""
