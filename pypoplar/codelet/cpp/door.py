"""Where `Graph.addCodelets` comes in: a file or a text in C++."""

from __future__ import annotations

import hashlib
import linecache

from pypoplar.codelet.cpp.cpp_codelets import CppCodelets, codelets_of
from pypoplar.codelet.cpp.translation_unit import CppFile, flags_of, read_file
from pypoplar.codelet.language.cpp_source import CppSource


def cpp_codelets(source: CppSource) -> CppCodelets:
    """The codelets of a source in C++."""
    return codelets_of(file_of(source))


def file_of(source: CppSource) -> CppFile:
    """What is parsed; a text has a name by which listings and messages find its lines."""
    flags = flags_of(source.flags)
    if source.path is not None:
        return read_file(source.path, flags)
    name = f"<codelets {hashlib.sha256(source.text.encode()).hexdigest()[:8]}>"
    linecache.cache[name] = (len(source.text), None, source.text.splitlines(keepends=True), name)
    return CppFile(name, source.text, flags)
