"""The types that elements have in memory, by the codes that the typed form names them by."""

from __future__ import annotations

from collections.abc import Mapping

from pypoplar.types import SUPPORTED

SIZES: Mapping[str, int] = {type.code: type.size for type in SUPPORTED}  # bytes of an element
REGISTERS_OF: Mapping[str, str] = {type.code: type.register for type in SUPPORTED}  # the register type of a loaded element
