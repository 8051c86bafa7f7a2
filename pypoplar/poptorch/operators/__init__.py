"""Operators of PopTorch's own: they run on the CPU as they do on the IPU, have gradients, and are kept whole by capture.

Beside them, other forms of PyTorch's operations, which are exported or traced in their place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pypoplar.poptorch.operators import (
    ctc_shapes,  # noqa: F401 (tells PyTorch)
    forms,  # noqa: F401 (they are entered)
)
from pypoplar.poptorch.operators.attention import plain_attention
from pypoplar.poptorch.operators.bags import bags_as_sums
from pypoplar.poptorch.operators.captured_forms import REPLACEMENTS, isRunningOnIpu, running_on_ipu
from pypoplar.poptorch.operators.custom_operators import custom_op, custom_operator, registerCustomOp
from pypoplar.poptorch.operators.device_loops import cond, for_loop
from pypoplar.poptorch.operators.dynamic_slices import dynamic_slice, dynamic_update
from pypoplar.poptorch.operators.elements_by_tensors import distributions_as_given, numbers_as_indices
from pypoplar.poptorch.operators.forms.undropped import undropped_operands
from pypoplar.poptorch.operators.hints import (
    NameScope,
    recomputationCheckpoint,
    scope_of,
    set_available_memory,
)
from pypoplar.poptorch.operators.host_calls import CALLED, CPU, host_call, name_calls
from pypoplar.poptorch.operators.identity_loss import identity_loss
from pypoplar.poptorch.operators.label_search import ctc_beam_search_decoder
from pypoplar.poptorch.operators.loss_arguments import losses_of_all_arguments
from pypoplar.poptorch.operators.missing_operators import fps, nearest
from pypoplar.poptorch.operators.mixed_types import halves_beside_floats
from pypoplar.poptorch.operators.multi_conv import MultiConv
from pypoplar.poptorch.operators.norms import running_statistics_in_the_graph
from pypoplar.poptorch.operators.observing import ipu_print_tensor, nop
from pypoplar.poptorch.operators.overlapping import checked_overlaps, set_overlap_for_input, set_overlap_for_output
from pypoplar.poptorch.operators.recurrent import padded_sequences
from pypoplar.poptorch.operators.serialized_products import serializedMatMul

__all__ = [
    "CALLED",
    "CPU",
    "MultiConv",
    "NameScope",
    "REPLACEMENTS",
    "checked_overlaps",
    "cond",
    "ctc_beam_search_decoder",
    "custom_op",
    "custom_operator",
    "dynamic_slice",
    "dynamic_update",
    "for_loop",
    "forms_of_graphs",
    "fps",
    "host_call",
    "identity_loss",
    "ipu_print_tensor",
    "isRunningOnIpu",
    "name_calls",
    "nearest",
    "nop",
    "numbers_as_indices",
    "recomputationCheckpoint",
    "registerCustomOp",
    "scope_of",
    "serializedMatMul",
    "set_available_memory",
    "set_overlap_for_input",
    "set_overlap_for_output",
]


@contextlib.contextmanager
def forms_of_graphs() -> Iterator[None]:
    """While a module is exported, layers of PyTorch have forms that a graph can hold."""
    layers = running_statistics_in_the_graph, plain_attention, bags_as_sums, padded_sequences, losses_of_all_arguments
    with contextlib.ExitStack() as stack:
        for form in (*layers, distributions_as_given, halves_beside_floats, undropped_operands, running_on_ipu):
            stack.enter_context(form())
        yield
