"""Machine code on disk: what was compiled once is there for the next process.

An entry is a file named by a hash of what its content was made from, with a checksum over both: a damaged or foreign file is
found out, deleted and made again. Files appear whole or not at all, so processes need not wait for each other.

What lies there becomes instructions of this process. So an entry is opened without following a link, and the file that was opened
must belong to the user or to root, and be writable to nobody else; the same goes for the directory. There is no secret in an entry:
a directory that was filled elsewhere, for an image or by a job of CI, is read, even if it cannot be written.

An entry without content is a mark: it says of something else, by a digest, what this pypoplar has found out, such as that an
executable has been verified.

The directory is the user's own, or the one that the environment variable ``PYPOPLAR_CACHE_DIR`` names. Where the user's own cannot
be written, one under the system's temporary directory takes its place. Without any, all works, compiled anew in each process.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import importlib.util
import os
import stat
import warnings
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from pypoplar.files import written_whole

MOST_ENTRIES = 4096  # beyond it the oldest quarter goes
_MAGIC = b"pypoplar machine code 1\n"
_SUFFIX = ".code"
_DIGEST = 32
_LOOK_AFTER = 256  # entries stored between looks at their number
_OPEN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

_stored = 0
_told = False


@frozen
class _Directory:
    """Where entries lie. In a directory that all may write to, others may have put a `path` that is a link."""

    path: Path
    shared: bool = False  # whether it stands in a directory that all may write to

    def check(self) -> None:
        """Raise `OSError` unless the directory exists, and nobody but the user and root may write to it."""
        status = os.lstat(self.path) if self.shared else os.stat(self.path)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self.path))
        if not is_private(status):
            raise PermissionError(errno.EPERM, "It belongs to another user, or others may write to it", str(self.path))

    def make(self) -> None:
        """Create the directory unless it exists; `OSError` as `check` raises it."""
        if not self.path.is_absolute() and not _given():
            raise FileNotFoundError(errno.ENOENT, "The user has no home directory", str(self.path))
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700, exist_ok=True)
        self.check()

    def is_usable(self) -> bool:
        """Whether entries may be read from it."""
        with contextlib.suppress(OSError):
            self.check()
            return True
        return False


def location() -> Path:
    """The directory of the cache, whether or not it exists."""
    given = _given()
    if given:
        return Path(given)
    import platformdirs

    try:
        return Path(platformdirs.user_cache_dir("pypoplar", appauthor=False))
    except RuntimeError:  # the user has no home directory; earlier versions return what follows
        return Path("~/.cache/pypoplar")


def substitute() -> Path | None:
    """The directory that is used where the user's own cannot be, whether or not it exists; None where the user has chosen one."""
    if _given():
        return None
    import tempfile

    try:
        return Path(tempfile.gettempdir(), f"pypoplar-{os.geteuid() if hasattr(os, 'geteuid') else 'code'}")
    except OSError:  # there is no temporary directory
        return None


def places() -> list[Path]:
    """The directory of the cache, and the one in its place if it is there."""
    path = substitute()
    return [location()] if path is None or not path.exists() else [location(), path]


def _given() -> str | None:
    return os.environ.get("PYPOPLAR_CACHE_DIR")


def _directories() -> Iterator[_Directory]:
    """Entries are looked for in all of them, and kept in the first that can be written."""
    yield _Directory(location() / "compiled")
    path = substitute()
    if path is not None:
        yield _Directory(path, shared=True)


def is_private(status: os.stat_result) -> bool:
    """Whether a file or directory belongs to the user or to root, and nobody else may write to it."""
    return not hasattr(os, "geteuid") or (status.st_uid in (os.geteuid(), 0) and not status.st_mode & 0o022)


def _name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:40] + _SUFFIX


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(key.encode()).digest() + content).digest()


def load(key: str) -> bytes | None:
    """What was stored under a key, or None; an entry that is not whole and ours is deleted."""
    for directory in _directories():
        if directory.is_usable():
            path = directory.path / _name(key)
            with contextlib.suppress(OSError):
                entry = _entry(path)
                head = len(_MAGIC) + _DIGEST
                content = entry[head:]
                if entry[:head] == _MAGIC + _digest(key, content):
                    return content
                path.unlink()
    return None


def _entry(path: Path) -> bytes:
    """The bytes of a regular file that only the user or root may have written, nothing of any other; `OSError` if there is none."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _OPEN)) as file:
            status = os.fstat(file.fileno())
            return file.read() if stat.S_ISREG(status.st_mode) and is_private(status) else b""
    except OSError as problem:
        if problem.errno == errno.ELOOP:  # a link
            return b""
        raise


def store(key: str, content: bytes) -> bool:
    """Keep content under a key; False where there is no directory to write to."""
    problems = []
    for directory in _directories():
        try:
            _store(directory, key, content)
        except OSError as problem:
            problems.append(f"{problem.strerror}: '{problem.filename}'")
        else:
            if problems:
                _tell(f"compiled code is kept in '{directory.path}'", problems)
            return True
    if not any(directory.is_usable() for directory in _directories()):
        _tell("compiled code is not kept, and each process compiles it anew", problems)
    return False


def _store(directory: _Directory, key: str, content: bytes) -> None:
    global _stored
    directory.make()
    if _stored % _LOOK_AFTER == 0:
        _drop_oldest(directory)
    with written_whole(directory.path / _name(key), mode=0o600) as part:
        part.write_bytes(_MAGIC + _digest(key, content) + content)
    _stored += 1


def _tell(consequence: str, problems: list[str]) -> None:
    """Warn, once in a process, of what happens instead of keeping code where the user's is kept."""
    global _told
    if not _told:
        _told = True
        text = f"{consequence}, since the cache cannot be written: {'; '.join(problems)}"
        warnings.warn(f"{text} (PYPOPLAR_CACHE_DIR names another directory)", RuntimeWarning, stacklevel=2)


def _files(directory: _Directory) -> Iterator[Path]:
    """The entries, and what processes that were killed left half written."""
    if directory.is_usable():
        for path in directory.path.iterdir():
            if path.suffix in (_SUFFIX, ".part") and path.is_file() and not path.is_symlink():
                yield path


def _all_files() -> Iterator[Path]:
    for directory in _directories():
        yield from _files(directory)


def _drop_oldest(directory: _Directory) -> None:
    ages = []
    for path in _files(directory):
        with contextlib.suppress(OSError):
            ages.append((path.stat().st_mtime, path))
    if len(ages) <= MOST_ENTRIES:
        return
    for _, path in sorted(ages)[: len(ages) - MOST_ENTRIES + MOST_ENTRIES // 4]:
        with contextlib.suppress(OSError):
            path.unlink()


def entries() -> int:
    """How many entries there are."""
    return sum(path.suffix == _SUFFIX for path in _all_files())


def size() -> int:
    """Bytes of all entries."""
    total = 0
    for path in _all_files():
        with contextlib.suppress(OSError):
            total += path.stat().st_size
    return total


def clear() -> None:
    """Delete all entries."""
    for path in _all_files():
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
