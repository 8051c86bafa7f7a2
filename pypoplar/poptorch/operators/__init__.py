"""Operators of PopTorch's own: they run on the CPU as they do on the IPU, have gradients, and are kept whole by capture.

Beside them, other forms of PyTorch's operations, which are traced in their place.
"""

from __future__ import annotations

from pypoplar.poptorch.operators.identity_loss import identity_loss
from pypoplar.poptorch.operators.norms import running_statistics_in_the_graph
from pypoplar.poptorch.operators.replacements import REPLACEMENTS

__all__ = ["REPLACEMENTS", "identity_loss", "running_statistics_in_the_graph"]
