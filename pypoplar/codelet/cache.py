"""The cache of native code on disk: object code of codelets and of the driver, by a hash of all that it depends on.

It lies in a directory of the user's own (mode 0700): `PYPOPLAR_CACHE_DIR`, or the platform's place for caches. An entry is written
beside its place and moved there, so two processes never see half of one; it carries a checksum, and what is damaged or foreign is
made anew. Where the directory cannot be used (read-only, somebody else's, open to others), code is compiled in memory each time.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import platformdirs

from pypoplar.codelet import machine

VARIABLE = "PYPOPLAR_CACHE_DIR"
SUFFIX = ".pypoplar-object"
MAGIC = b"pypoplar object code 1\n"


def location() -> Path:
    """Where the cache is, or would be."""
    given = os.environ.get(VARIABLE)
    return Path(given) if given else Path(platformdirs.user_cache_dir("pypoplar", appauthor=False))


def object_code(identity: str, make: Callable[[], bytes]) -> bytes:
    """The object code of what `identity` names in full, from the cache or from `make`, which is then kept."""
    directory = _usable()
    if directory is None:
        return make()
    whole = "\n".join((identity, machine.host().identity, version("pypoplar")))
    path = directory / (hashlib.sha256(whole.encode()).hexdigest() + SUFFIX)
    kept = _read(path)
    if kept is not None:
        return kept
    code = make()
    _write(path, code)
    return code


def size() -> int:
    """Bytes of all entries."""
    return sum(one.stat().st_size for one in _entries())


def clear() -> None:
    """Remove all entries; nothing else in the directory is touched."""
    for one in _entries():
        one.unlink(missing_ok=True)


def _entries() -> Iterator[Path]:
    directory = location()
    if directory.is_dir():
        yield from (one for one in directory.iterdir() if one.name.endswith(SUFFIX) and one.is_file())


def _usable() -> Path | None:
    """The directory, made if need be; None if it is not ours alone: what lies there becomes instructions of this process."""
    directory = location()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        return None
    return directory


def _read(path: Path) -> bytes | None:
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    head = len(MAGIC) + hashlib.sha256().digest_size
    code = whole[head:]
    if whole[: len(MAGIC)] != MAGIC or whole[len(MAGIC) : head] != hashlib.sha256(code).digest():
        return None
    return code


def _write(path: Path, code: bytes) -> None:
    try:
        handle, name = tempfile.mkstemp(dir=path.parent)
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + hashlib.sha256(code).digest() + code)
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
