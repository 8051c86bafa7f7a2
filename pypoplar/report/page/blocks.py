"""The heavy data of a page: arrays and tables, compressed, one script element of text for each, unpacked when a view needs it."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any

import numpy as np

from pypoplar.arrays.dtypes import AnyArray, Numbers

LEVEL = 3  # of zlib: three times as fast as the most thorough, and hardly larger
ROWS = 32  # rows of a matrix that are packed together
MOST_CELLS = 16_000_000  # of all rows of a page; beyond it, rows are left out: the page would be too large to open
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
Reference = dict[str, Any]  # what the page's data says of a block: {"block": its number, "type": ..., "length": ...}


class Blocks:
    """Numbered pieces of text, each an array or a value, that page.js reads by their references."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def array(self, values: AnyArray) -> Reference:
        """An array of numbers, in the fewest bytes that hold them: "u1", "u2", "u4", "i4" or "f8"."""
        flat = np.ascontiguousarray(values).reshape(-1)
        packed = flat.astype(_element_type(flat))
        return {**self._add(packed.tobytes()), "type": packed.dtype.str[1:], "length": len(flat)}

    def value(self, value: Any) -> Reference:
        """Anything that JSON can hold."""
        return {**self._add(json_text(value).encode()), "type": "json"}

    def known(self, value: Any) -> Reference | None:
        """The same of what is known, None of what is not."""
        return None if value is None else self.value(value)

    def _add(self, data: bytes) -> Reference:
        self.texts.append(base64.b64encode(zlib.compress(data, LEVEL)).decode("ascii"))
        return {"block": len(self.texts) - 1}


def json_text(value: Any) -> str:
    """A value as JSON in ASCII. Lone surrogates are spelled out: browsers have no text with them, and draw something else."""
    text = json.dumps(value, separators=(",", ":"), default=plain)
    if "\\ud" not in text:
        return text
    spelled = LONE_SURROGATE.sub(lambda match: f"\\\\u{ord(match[0]):04x}", json.dumps(value, default=plain, ensure_ascii=False))
    return json.dumps(json.loads(spelled), separators=(",", ":"))


def plain(value: Any) -> Any:
    """NumPy's numbers and arrays as JSON holds them."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a page's data cannot hold {type(value).__name__}")


def _element_type(values: AnyArray) -> np.dtype[Any]:
    if not len(values) or values.dtype == np.bool_:
        return np.dtype("<u1")
    if values.dtype.kind == "f":
        return np.dtype("<f8")
    least, most = int(values.min()), int(values.max())
    if least < 0:
        return np.dtype("<i4") if least >= -(2**31) and most < 2**31 else np.dtype("<f8")
    for name, limit in (("<u1", 2**8), ("<u2", 2**16), ("<u4", 2**32)):
        if most < limit:
            return np.dtype(name)
    return np.dtype("<f8")  # exact up to 2**53, about seven weeks of cycles


class TileRows:
    """Rows of one number per tile, equal ones kept once, packed by `ROWS`. A row is known by its number; -1 is no row."""

    def __init__(self, blocks: Blocks, tiles: int) -> None:
        self.left_out = 0
        self._blocks = blocks
        self.tiles = tiles
        self._known: dict[bytes, int] = {}
        self._waiting: list[Numbers] = []
        self._chunks: list[Reference] = []

    def add(self, values: Numbers) -> int:
        """The number of the row; -1 for an empty array, and for one too many, which `left_out` counts."""
        if not len(values):
            return -1
        key = np.ascontiguousarray(values).tobytes()
        number = self._known.get(key)
        if number is not None:
            return number
        if (len(self._known) + 1) * self.tiles > MOST_CELLS:
            self.left_out += 1
            return -1
        number = self._known[key] = len(self._known)
        self._waiting.append(values)
        if len(self._waiting) == ROWS:
            self._pack()
        return number

    def data(self) -> dict[str, Any]:
        """What page.js needs to find them."""
        self._pack()
        return {"tiles": self.tiles, "rows": ROWS, "chunks": self._chunks, "left_out": self.left_out}

    def _pack(self) -> None:
        if self._waiting:
            self._chunks.append(self._blocks.array(np.stack(self._waiting)))
            self._waiting = []
