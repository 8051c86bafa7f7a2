"""Operators of PopTorch's own: they run on the CPU as they do on the IPU, have gradients, and are kept whole by capture.

Beside them, other forms of PyTorch's operations, which are exported or traced in their place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pypoplar.poptorch.operators.attention import plain_attention
from pypoplar.poptorch.operators.bags import bags_of_one_length
from pypoplar.poptorch.operators.identity_loss import identity_loss
from pypoplar.poptorch.operators.norms import running_statistics_in_the_graph
from pypoplar.poptorch.operators.recurrent import padded_sequences
from pypoplar.poptorch.operators.replacements import REPLACEMENTS

__all__ = ["REPLACEMENTS", "forms_of_graphs", "identity_loss"]


@contextlib.contextmanager
def forms_of_graphs() -> Iterator[None]:
    """While a module is exported, layers of PyTorch have forms that a graph can hold."""
    with running_statistics_in_the_graph(), plain_attention(), bags_of_one_length(), padded_sequences():
        yield
