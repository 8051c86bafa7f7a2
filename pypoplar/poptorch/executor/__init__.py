"""A model that runs on the simulated IPU: its compiled form, and the wrapper that users call."""

from __future__ import annotations

from pypoplar.poptorch.executor.executor import PoplarExecutor

__all__ = ["PoplarExecutor"]
