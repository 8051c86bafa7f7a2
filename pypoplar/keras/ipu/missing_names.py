"""Names of IPU TensorFlow that are not there: what to use instead, or the nearest name."""

from __future__ import annotations

from collections.abc import Iterable

from pypoplar.errors import MissingFeature
from pypoplar.spelling import nearest

CONFIGURE = "make an ipu.config.IPUConfig, set its options and call its configure_ipu_system()"
LOOPS = "compile a Keras model in IPUStrategy().scope() and call fit: Keras reads the data"
INSTEAD = {
    **dict.fromkeys(
        (
            *("create_ipu_config", "auto_select_ipus", "select_ipus", "set_ipu_model_options", "set_ipu_connection_type"),
            *("set_convolution_options", "set_matmul_options", "set_pooling_options", "set_norm_options", "set_report_options"),
            *("set_floating_point_behaviour_options", "set_optimization_options", "set_io_tile_options", "set_compilation_options"),
            *("set_recomputation_options", "set_gcl_options", "set_experimental_multi_replica_distribution_options"),
            "configure_ipu_system",
        ),
        CONFIGURE,
    ),
    **dict.fromkeys(("ipu_infeed_queue", "ipu_outfeed_queue", "loops", "ipu_compiler", "scopes", "ipu_estimator"), LOOPS),
    "keras": "layers and optimizers of Keras itself run on the IPU",
    "optimizers": "optimizers of Keras run on the IPU; accumulation is model.set_gradient_accumulation_options",
    "embedding_ops": "keras.layers.Embedding",
    "normalization_ops": "keras.layers.GroupNormalization, LayerNormalization",
    "rnn_ops": "keras.layers.LSTM and GRU",
    "rand_ops": "keras.layers.Dropout",
    "cross_replica_ops": "replicas sum their gradients themselves",
    "custom_ops": "pypoplar.poptorch.custom_op has operations of one's own, for PyTorch models",
    "serving": "model.save writes Keras models",
    "embedded_runtime": "model.save writes Keras models",
    "horovod": "auto_select_ipus has replicas in one process",
    "pipelining_ops": "with keras.ipu.PipelineStage(n) and model.set_pipelining_options",
    "running_on_ipu_model": "the simulated IPU is one always",
    "extract_all_events": "model.ipu_report() has what an execution cost",
    "extract_all_strings_from_event_trace": "model.ipu_report() has what an execution cost",
}
"""By names of modules and functions."""


class MissingName(MissingFeature, AttributeError):
    """A name of TensorFlow's, or of IPU TensorFlow's, that is not there."""


class MissingModule(MissingFeature, ImportError):
    """A module of theirs that is not there; ``from tensorflow.python.ipu import loops`` tells of it, and not of a missing name."""


def missing(module: str, name: str, known: Iterable[str]) -> MissingFeature:
    """What to raise for a name of a module that has the `known` ones.

    Parameters
    ----------
    module:
        The module, as scripts write it.
    name:
        The name that was asked for.
    known:
        The names that it has.
    """
    if name in INSTEAD:
        return MissingModule(f"{module}.{name} is not there on the simulated IPU: {INSTEAD[name]}")
    return MissingName(f"{module}.{name} is not there on the simulated IPU{nearest(name, list(known))}")
