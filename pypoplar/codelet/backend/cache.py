"""Machine code on disk: what was compiled once is there for the next process.

An entry is a file named by a hash of what its content was made from, with a checksum over both: a damaged or foreign file is
found out, deleted and made again. Files appear whole or not at all, so processes need not wait for each other. The directory is
the user's own: one that belongs to somebody else, or that others may write to, is not used, for what lies there becomes
instructions of this process. Without a usable directory everything works, compiled anew in each process.

The environment variable ``PYPOPLAR_CACHE_DIR`` names another directory.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from pypoplar.files import written_whole

MOST_ENTRIES = 4096  # beyond it the oldest quarter goes
_MAGIC = b"pypoplar machine code 1\n"
_SUFFIX = ".code"
_DIGEST = 32
_LOOK_AFTER = 256  # entries stored between looks at their number

_stored = 0


def location() -> Path:
    """The directory of the cache, whether or not it exists."""
    given = os.environ.get("PYPOPLAR_CACHE_DIR")
    if given:
        return Path(given)
    import platformdirs

    return Path(platformdirs.user_cache_dir("pypoplar", appauthor=False))


def _entries_in() -> Path:
    return location() / "compiled"


def _is_ours(directory: Path) -> bool:
    """Whether a directory exists, belongs to this user, and nobody else may write to it."""
    try:
        status = directory.stat()
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        return False
    return not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & 0o022)


def _path(key: str) -> Path:
    return _entries_in() / (hashlib.sha256(key.encode()).hexdigest()[:40] + _SUFFIX)


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(key.encode()).digest() + content).digest()


def load(key: str) -> bytes | None:
    """What was stored under a key, or None; an entry that is not whole and ours is deleted."""
    if not _is_ours(_entries_in()):
        return None
    path = _path(key)
    try:
        entry = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + _DIGEST
    content = entry[head:]
    if entry[:head] == _MAGIC + _digest(key, content):
        return content
    with contextlib.suppress(OSError):
        path.unlink()
    return None


def store(key: str, content: bytes) -> bool:
    """Keep content under a key; False where there is no directory to write to."""
    global _stored
    directory = _entries_in()
    try:
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return False
    if not _is_ours(directory):
        return False
    if _stored % _LOOK_AFTER == 0:
        _drop_oldest()
    _stored += 1
    try:
        with written_whole(_path(key), mode=0o600) as part:
            part.write_bytes(_MAGIC + _digest(key, content) + content)
    except OSError:
        return False
    return True


def _files() -> Iterator[Path]:
    """The entries, and what processes that were killed left half written."""
    directory = _entries_in()
    if _is_ours(directory):
        yield from (path for path in directory.iterdir() if path.is_file() and not path.is_symlink())


def _drop_oldest() -> None:
    ages = []
    for path in _files():
        with contextlib.suppress(OSError):
            ages.append((path.stat().st_mtime, path))
    if len(ages) <= MOST_ENTRIES:
        return
    for _, path in sorted(ages)[: len(ages) - MOST_ENTRIES + MOST_ENTRIES // 4]:
        with contextlib.suppress(OSError):
            path.unlink()


def entries() -> int:
    """How many entries there are."""
    return sum(path.suffix == _SUFFIX for path in _files())


def size() -> int:
    """Bytes of all entries."""
    total = 0
    for path in _files():
        with contextlib.suppress(OSError):
            total += path.stat().st_size
    return total


def clear() -> None:
    """Delete all entries."""
    for path in _files():
        with contextlib.suppress(OSError):
            path.unlink()


@functools.cache
def fingerprint(*sources: str) -> str:
    """A hash of modules, and of all modules of packages: what they make is not to be mixed up with what other versions made."""
    digest = hashlib.sha256()
    for name in sources:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        for path in sorted(origin.parent.rglob("*.py")) if spec.submodule_search_locations else [origin]:
            place = path.relative_to(origin.parent).as_posix()
            digest.update(f"{name} {place}".encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
