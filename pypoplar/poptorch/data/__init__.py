"""Batches for models: PyTorch's loader with PopTorch's arguments, and what fetches ahead."""

from pypoplar.poptorch.data.asynchronous_accessor import AsynchronousDataAccessor
from pypoplar.poptorch.data.data_loader import DataLoader

__all__ = ["AsynchronousDataAccessor", "DataLoader"]
