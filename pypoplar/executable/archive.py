"""The ``.npz`` archive that an executable is kept in: what it gives is no more than it declares, and that is within a limit."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import prod
from tokenize import TokenError
from typing import IO, Any, BinaryIO

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.errors import FileLoadError
from pypoplar.executable.claims import claim
from pypoplar.executable.narrow_arrays import fill
from pypoplar.files import check_regular

DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    LookupError,
    NotImplementedError,  # a version of the format that nobody writes
    OSError,
    OverflowError,
    RuntimeError,  # a member that is encrypted
    ValueError,
    struct.error,
)
"""What zipfile and zlib raise where an archive or a member of one is damaged."""
NO_ARRAY = (EOFError, MemoryError, OverflowError, RecursionError, SyntaxError, TypeError, ValueError, struct.error, TokenError)
"""What NumPy raises where a member is no array: its header is Python text that is taken apart."""

AT_ONCE = 1 << 18  # bytes of an array that are unpacked before they are put where they belong: within a processor's cache

LOCAL_HEADER = 30  # bytes that stand before each member, with its name behind them

READERS = 4
WORTH_THREADS = 1 << 20  # elements

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # of all others zipfile unpacks as much as there is

Place = str | os.PathLike[str] | BinaryIO


@frozen(eq=False)
class Archive:
    """An archive whose members together declare at most `limit` bytes."""

    _members: zipfile.ZipFile
    limit: int

    @property
    def names(self) -> list[str]:
        """The names of its members, in their order."""
        return self._members.namelist()

    def content(self, name: str) -> bytes:
        """All bytes of a member; zipfile compares them with their checksum."""
        size = self._members.getinfo(name).file_size
        with self._opened(name) as member:
            content = member.read(size)  # without the size it would unpack all, and then cut it
        claim(len(content) == size, f"the member {name} is damaged: it has {len(content):,} bytes, and declares {size:,}")
        return content

    def array(self, name: str) -> StoredArray | AnyArray:
        """A member as an array of rank 1, which may have to be read yet. Objects, which only pickle could restore, are refused."""
        with self._opened(name) as member, _of_numbers(name):
            stored = self._stored_array(member, name)
        if stored is not None:
            return stored
        content = self.content(name)
        with _of_numbers(name):
            array: Any = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
        claim(array.ndim == 1, f"the array of the member {name} has rank {array.ndim}: expected 1")
        whole: AnyArray = array
        return whole

    def held(self, stored: StoredArray) -> HeldArray:
        """An array that can be read when the file is closed: what is held of it is compressed as in the file."""
        info, file = self._members.getinfo(stored.name), self._members.fp
        assert file is not None
        with self._opened(stored.name):
            file.seek(info.header_offset)
            names = struct.unpack("<26x2H", file.read(LOCAL_HEADER))  # how long its name is, and what else stands behind it
            file.seek(sum(names), os.SEEK_CUR)
            content = file.read(info.compress_size)
        packed = info.compress_type != zipfile.ZIP_STORED
        return HeldArray(stored.name, stored.dtype, stored.size, stored.begin, content, packed, info.CRC)

    def _stored_array(self, member: IO[bytes], name: str) -> StoredArray | None:
        """The array that the header declares is what follows it; None where it is no plain row of numbers."""
        version = np.lib.format.read_magic(member)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(member)
        if dtype.hasobject:
            return None  # which is refused when it is read
        begin = member.tell()
        declared, size = prod(shape) * max(dtype.itemsize, 1), self._members.getinfo(name).file_size - begin
        claim(declared >= size, f"the member {name} goes on after its array")
        claim(declared == size, f"the member {name} is not an array of numbers: it declares {declared:,} bytes, and has {size:,}")
        plain = len(shape) == 1 and dtype.itemsize and dtype.subdtype is None
        return StoredArray(self, name, dtype, shape[0], begin) if plain else None

    def read_into(self, array: AnyArray, stored: StoredArray) -> None:
        """Fill an array with the elements of a member. They are unpacked a few at a time, so that they are there once alone."""
        item = stored.dtype.itemsize
        most = max(1, AT_ONCE // item)
        with self._opened(stored.name) as member:
            head = len(member.read(stored.begin))
            claim(head == stored.begin, f"the member {stored.name} is damaged: it ends within its header")
            for begin in range(0, stored.size, most):
                part = array[begin : begin + most]
                content = member.read(len(part) * item)
                claim(len(content) == len(part) * item, f"the member {stored.name} is damaged: it ends within its array")
                fill(part, np.frombuffer(content, stored.dtype))

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        """A member, to be read; `FileLoadError` where it is damaged."""
        try:
            with self._members.open(name) as member:
                yield member
        except FileLoadError:
            raise
        except DAMAGED as problem:
            raise FileLoadError(f"the member {name} is damaged: {str(problem) or type(problem).__name__}") from problem


@frozen(eq=False)
class StoredArray:
    """An array of an archive that has not been read yet."""

    _archive: Archive
    name: str  # of the member
    dtype: np.dtype[Any]
    size: int
    begin: int  # bytes of the header

    def read_into(self, array: AnyArray) -> None:
        """Fill an array as long, of a type that `holds` the elements."""
        self._archive.read_into(array, self)


@frozen(eq=False)
class HeldArray:
    """An array that has not been read yet, with the bytes of its member."""

    name: str  # of the member
    dtype: np.dtype[Any]
    size: int
    begin: int  # bytes of the header
    _content: bytes = field(repr=False)
    _compressed: bool
    _checksum: int

    def read_into(self, array: AnyArray) -> None:
        """Fill an array as long, of a type that `holds` the elements."""
        size, content, rest = self.begin + self.size * self.dtype.itemsize, self._content, b""
        if self._compressed:
            unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
            try:
                content = unpacking.decompress(content, size + 1)
            except zlib.error as problem:
                raise FileLoadError(f"the member {self.name} is damaged: {problem}") from problem
            rest = unpacking.unused_data
        whole = len(content) == size and not rest and zlib.crc32(content) == self._checksum
        claim(whole, f"the member {self.name} is damaged: it is not what its checksum was made of")
        fill(array, np.frombuffer(content, self.dtype, offset=self.begin))


def read_all(wanted: Iterable[tuple[StoredArray | HeldArray, AnyArray]]) -> None:
    """Fill arrays, the largest first, on a few threads: zlib lets go of the interpreter's lock."""
    largest_first = sorted(wanted, key=lambda pair: -pair[0].size * pair[0].dtype.itemsize)
    if sum(stored.size for stored, _ in largest_first) < WORTH_THREADS:
        for stored, array in largest_first:
            stored.read_into(array)
        return
    with ThreadPoolExecutor(READERS, "pypoplar reader") as readers:
        for done in [readers.submit(stored.read_into, array) for stored, array in largest_first]:
            done.result()


@contextmanager
def _of_numbers(name: str) -> Iterator[None]:
    """What a member is told as that is no array."""
    try:
        yield
    except FileLoadError:
        raise
    except NO_ARRAY as problem:
        text = str(problem) or type(problem).__name__
        raise FileLoadError(f"the member {name} is not an array of numbers: {text}") from problem


@contextmanager
def opened(path: Place, limit: int) -> Iterator[Archive]:
    """The archive at a path or in a binary file; `FileLoadError` if there is none, or if it unpacks to more than `limit` bytes."""
    members, position = _opened(path)
    with members:
        infos = members.infolist()
        begin = min((info.header_offset for info in infos), default=0)
        claim(begin in (0, position), f"there is something else before the executable, which begins at byte {begin:,}")
        claim_unpacked("it unpacks to", sum(info.file_size for info in infos), limit)
        for info in infos:
            claim(info.compress_type in METHODS, f"the member {info.filename} is compressed in a way that no executable is")
        yield Archive(members, limit)


def _opened(path: Place) -> tuple[zipfile.ZipFile, int]:
    """The archive, and where in the file its reader stands."""
    try:
        if isinstance(path, str | os.PathLike):
            check_regular(path)
            return zipfile.ZipFile(path), 0
        position = path.tell()
        return zipfile.ZipFile(path), position
    except OSError as problem:
        raise FileLoadError(f"cannot be read: {problem.strerror or problem}") from problem
    except DAMAGED as problem:
        raise FileLoadError(f"not a saved executable, or damaged: {str(problem) or type(problem).__name__}") from problem


def claim_unpacked(text: str, size: int, limit: int) -> None:
    """What a file unpacks to is within the limit that its reader has set."""
    claim(size <= limit, f"{text} {size:,} bytes: expected at most {limit:,}; for a file that you trust, raise unpacked_limit")
