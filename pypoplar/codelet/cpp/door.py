"""Where `Graph.addCodelets` comes in: a file or a text in C++, translated once and kept by all that was read for it."""

from __future__ import annotations

import functools
import hashlib
import json
import linecache
from pathlib import Path
from typing import Any

from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.cpp.cpp_codelets import CppCodelets, codelets_of
from pypoplar.codelet.cpp_tree.translation_unit import HEADERS, CppFile, flags_of, read_file
from pypoplar.codelet.ir.terms import Location
from pypoplar.codelet.language.cpp_source import CppSource
from pypoplar.errors import FileLoadError
from pypoplar.host_code import cache


def cpp_codelets(source: CppSource) -> CppCodelets:
    """The codelets of a source in C++."""
    file = file_of(source)
    key = _key(file)
    kept = cache.load(key)
    found = None if kept is None else _read(kept, file)
    if found is None:
        found = codelets_of(file)
        cache.store(key, json.dumps(_written(found)).encode())
    return found


def file_of(source: CppSource) -> CppFile:
    """What is parsed; a text has a name by which listings and messages find its lines."""
    flags = flags_of(source.flags)
    if source.path is not None:
        return read_file(source.path, flags)
    try:
        source.text.encode()
    except UnicodeEncodeError as problem:
        raise FileLoadError(
            f"the text of the codelets is not UTF-8: character {problem.start} is {source.text[problem.start]!a}"
        ) from None
    name = f"<codelets {hashlib.sha256(source.text.encode()).hexdigest()[:8]}>"
    linecache.cache[name] = (len(source.text), None, source.text.splitlines(keepends=True), name)
    return CppFile(name, source.text, flags)


def _modules() -> list[Path]:
    rooms = (Path(__file__).parent, HEADERS.parent.parent / "cpp_tree")
    return [path for room in rooms for path in room.glob("*.py")]


@functools.cache
def _translator() -> str:
    """What this translator and its headers are, so that another one does not take what they have made."""
    files = sorted((*_modules(), *(path for path in HEADERS.rglob("*") if path.is_file())))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def _key(file: CppFile) -> str:
    return json.dumps(["C++", _translator(), str(Path.cwd()), file.name, file.flags, file.text])


def _digest(path: str) -> str | None:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None


def _written(found: CppCodelets) -> dict[str, Any]:
    return {
        "headers": {path: _digest(path) for path in found.headers},
        "codelets": [codelet.to_json() for codelet in found.codelets],
        "templates": {name: [place.file, place.line, place.function] for name, place in found.templates.items()},
        "kinds": found.kinds,
        "bare": found.bare,
        "instances": found.instances,
    }


def _read(kept: bytes, file: CppFile) -> CppCodelets | None:
    """What was kept, if all files are what they were."""
    try:
        tree = json.loads(kept)
        if any(_digest(path) != digest for path, digest in tree["headers"].items()):
            return None
        codelets = [Codelet.from_json(codelet) for codelet in tree["codelets"]]
        templates = {name: Location(*place) for name, place in tree["templates"].items()}
        return CppCodelets(
            file, codelets, templates, tree["kinds"], tree["instances"], bare=tree["bare"], headers=tuple(tree["headers"])
        )
    except (ValueError, KeyError, TypeError, FileLoadError):
        return None
