"""Files at the user's paths: regular ones only, and written whole or not at all."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pypoplar.errors import PoplarTypeError

AnyPath = str | os.PathLike[str]

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


def check_regular(path: AnyPath) -> os.stat_result:
    """The status of the file at `path`, links followed; `OSError` if there is none, or if it is no regular file.

    To open a named pipe may take for ever, a device may have no end, and what replaces one is no longer a device.
    """
    check_possible(path)
    status = os.stat(path)
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if kind != stat.S_IFREG:
        raise OSError(errno.EINVAL, f"Is {_KINDS.get(kind, 'something else')}, not a regular file", os.fspath(path))
    return status


@contextmanager
def written_whole(path: AnyPath, mode: int = 0o666) -> Iterator[Path]:
    """``with written_whole(path) as part:``: `part` is an empty file, which takes the place of `path` when the block has filled it.

    If the block raises, or the process ends halfway, the file at `path` stays as it was. A file that is replaced hands on its
    permissions; a new one gets `mode` as far as the process's umask allows. A link stays; the file that it leads to is replaced.

    Raises `OSError` with the name of that file if it cannot be written, or if it is there and no regular file.
    """
    check_possible(path)
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{os.urandom(8).hex()}.part")
    try:
        kept = _permissions(target)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode if kept is None else 0o600))
        yield part
        if kept is not None:
            part.chmod(kept)
        os.replace(part, target)
    except OSError as problem:
        if problem.errno is None:
            raise
        raise OSError(problem.errno, problem.strerror, str(target)) from problem
    finally:
        with suppress(OSError):
            part.unlink()


def is_possible(path: AnyPath) -> bool:
    """Whether a file can have the name: not if it has a null character, or one that the file system's encoding has not."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def check_possible(path: AnyPath) -> None:
    """Raise `OSError` if no file can have the name."""
    if not is_possible(path):
        raise OSError(errno.EILSEQ, "No file has such a name", os.fspath(path))


def _permissions(target: Path) -> int | None:
    """Of the file that is to be replaced; None if there is none yet."""
    try:
        return check_regular(target).st_mode & 0o777
    except FileNotFoundError:
        return None


def check_text_stream(stream: object, call: str) -> None:
    """`PoplarTypeError` unless text can be written to `stream`, as `call` does."""
    if not hasattr(stream, "write") or isinstance(stream, io.RawIOBase | io.BufferedIOBase):
        raise PoplarTypeError(f"{call} writes to an open text file, got {stream!r}; write sys.stdout, or open('name.txt', 'w')")
