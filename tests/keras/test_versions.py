"""The oldest version of Keras that is tried is the one that the extra asks for, and the page tells of."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_the_oldest_keras_is_the_same_everywhere():
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]["keras"]
    (oldest,) = [found[1] for one in extra if (found := re.fullmatch(r"keras>=([\d.]+)", one))]
    assert f"keras, from {oldest} on" in " ".join((ROOT / "docs" / "keras.md").read_text(encoding="utf-8").split())
    assert f"keras=={oldest}.0 " in (ROOT / ".ci" / "pytorch").read_text(encoding="utf-8")
