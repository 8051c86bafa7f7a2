"""The error of the libraries."""

from __future__ import annotations

from pypoplar.errors import PoplarError


class PoplibsError(PoplarError, ValueError):
    """Operands that a library function cannot take: shapes, types or mappings that do not fit each other."""
