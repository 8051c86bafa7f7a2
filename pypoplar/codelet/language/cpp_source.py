"""What `Graph.addCodelets` is given, told apart: Python, and files or texts in C++ with their flags."""

from __future__ import annotations

import enum
import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attrs import frozen

from pypoplar.errors import CodeletCompileError, MissingFeature, PoplarTypeError

_CPP = (".cpp", ".cc", ".cxx", ".c++")
_ASSEMBLER, _OBJECTS = (".s", ".asm"), (".gp", ".o", ".ipu")


class CodeletFileType(enum.Enum):
    """What a file of codelets is, for `Graph.addCodelets`: `Auto`, as its ending says, or `CppSource`, a text in C++."""

    Auto = "auto"
    CppSource = "cpp"


@frozen
class CppSource:
    """A file in C++ by its path, or a text, and the flags that it is compiled with."""

    path: Path | None
    text: str
    flags: str


def told_apart(sources: Iterable[Any], flags: object) -> list[Any]:
    """The sources as they are, but those in C++ as a `CppSource` each."""
    given = list(sources)
    kind = CodeletFileType.Auto
    for position, source in enumerate(given):
        if isinstance(source, CodeletFileType):
            kind = source
            if position + 1 < len(given) and isinstance(given[position + 1], str):
                if flags:
                    raise PoplarTypeError("the flags are given twice: once behind the type of file, once as compileFlags")
                flags = given.pop(position + 1)
            del given[position]
            break
    if not isinstance(flags, str):
        raise PoplarTypeError(f"compileFlags is a text such as '-DX=1 -Idir -O3', got {flags!r}")
    found = [_told(source, kind, flags) for source in given]
    if flags and not any(isinstance(source, CppSource | list) for source in found):
        raise CodeletCompileError(f"compileFlags {flags!r} are for files in C++, and there is none")
    return found


def _told(source: Any, kind: CodeletFileType, flags: str) -> Any:
    if isinstance(source, list | tuple):
        return [_told(one, kind, flags) for one in source]
    if isinstance(source, io.TextIOBase):
        return CppSource(None, source.read(), flags)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        ending = path.suffix.lower()
        if ending in _ASSEMBLER:
            raise MissingFeature(
                f"'{path}' is a file of assembler, which pypoplar does not run: write the codelet in C++ or Python"
            )
        if ending in _OBJECTS:
            raise MissingFeature(f"'{path}' is compiled for an IPU, and pypoplar runs sources: give the .cpp or .py file")
        if ending in _CPP or (kind is CodeletFileType.CppSource and ending != ".py"):
            return CppSource(path, "", flags)
        if kind is CodeletFileType.CppSource:
            raise PoplarTypeError(f"'{path}' is a file of Python, not of C++")
    return source
