"""The codelets of an executable that comes from a file: they are source until an engine is made."""

from __future__ import annotations

from pypoplar.errors import CodeletError, FileLoadError
from pypoplar.executable.executable import Executable


def translate_codelets(executable: Executable) -> None:
    """Translate what has not been translated yet; `FileLoadError` names a codelet that cannot be, and says why."""
    for number, codelet in enumerate(executable.codelets):
        try:
            _ = codelet.typed  # made on demand, and kept
        except CodeletError as problem:
            raise FileLoadError(f"codelets[{number}], {codelet.name}, cannot be translated: {problem}") from problem
