"""Operators of PopTorch's own: they run on the CPU as they do on the IPU, have gradients, and are kept whole by capture."""

from __future__ import annotations

from pypoplar.poptorch.operators.identity_loss import identity_loss

__all__ = ["identity_loss"]
