"""Saves and loads executables.

The file is a NumPy ``.npz`` archive: the arrays, and ``executable.json`` with all that is not an array. Nothing is pickled and
nothing of the file is executed: codelets are kept as source, which an engine translates, and all numbers are checked by
`pypoplar.executable.verify.executable_claims` before anything uses them. Cycles are derived from the code anew, by the prices of
the pypoplar that loads the file.

Arrays are kept in the smallest whole numbers that hold them, and the archive is compressed at zlib's lowest level: that made wide
ones about a ninth as large for 0.05 s at 80,000 vertices, where the default level takes five times as long for an eighth less.
Large arrays that it hardly makes smaller, which take longest to unpack, stay as they are.
"""

from __future__ import annotations

import io
import json
import operator
import os
import zipfile
import zlib
from importlib.metadata import version
from typing import Any, BinaryIO

import numpy as np

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.errors import FileLoadError, PoplarTypeError
from pypoplar.executable.archive import Archive, HeldArray, Place, StoredArray, claim_unpacked, opened
from pypoplar.executable.claims import claim
from pypoplar.executable.codec import LATER, Packer, Unpacker, claim_kind, short
from pypoplar.executable.executable import UNPACKED_LIMIT, Executable
from pypoplar.executable.verify.executable_claims import verify
from pypoplar.files import written_whole
from pypoplar.interface.saved_layout import saved_layout

FORMAT = "pypoplar executable"
VERSION = 19
TREE = "executable.json"
COMPRESSION = 1
LARGE = 1 << 22  # bytes of an array that has to be worth the time of unpacking
SAMPLES, SAMPLE = 8, 1 << 16  # pieces of it that are tried, and their bytes
WORTH_UNPACKING = 0.3  # of its size

JSON_BYTES = {b"[": 96, b"{": 240, b",": 100, b":": 100}
"""The most memory that what begins or ends with each takes once JSON has been read; a text of a megabyte could take 40."""


def save(executable: Executable, path: Place) -> None:
    """Write an executable to a path or a binary file object. Equal executables give equal files.

    A file at `path` is replaced as a whole, or not at all if the disk is full or the process ends halfway.
    """
    if not isinstance(path, str | os.PathLike):
        _check_file(path, "write", "a path")
        _write(executable, path)
        return
    with written_whole(path) as part, part.open("wb") as file:
        _write(executable, file)


def _write(executable: Executable, file: BinaryIO) -> None:
    packer = Packer()
    tree = packer.pack(executable, Executable)
    made_by = {"format": FORMAT, "version": VERSION, "layout": saved_layout(), "pypoplar": version("pypoplar")}
    head = {**made_by, "texts": packer.texts, "executable": tree}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION) as archive:
        with archive.open(TREE, "w") as member:
            member.write(json.dumps(head, separators=(",", ":")).encode())
        for name, array in packer.arrays().items():
            archive.compression = zipfile.ZIP_DEFLATED if _shrinks(array) else zipfile.ZIP_STORED
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _shrinks(array: AnyArray) -> bool:
    """Whether compression makes an array small enough to be worth the time that unpacking takes; by samples of large ones."""
    if array.nbytes < LARGE:
        return True
    step = len(array) // SAMPLES
    count = min(step, SAMPLE // array.itemsize)
    samples = b"".join(array[begin : begin + count].tobytes() for begin in range(0, len(array), step))
    return len(zlib.compress(samples, COMPRESSION)) < len(samples) * WORTH_UNPACKING


def load(path: Place, unpacked_limit: int = UNPACKED_LIMIT, *, verified: bool = False) -> Executable:
    """Read an executable that `save` wrote, from a path or a binary file object.

    Of bytes that this pypoplar has `verified` before, which nobody else can have changed since, nothing is verified again, and what
    reports alone ask for is unpacked when they do.

    Raises `FileLoadError` if there is no such file, if it is damaged, not one of ours, unpacks to more than `unpacked_limit` bytes,
    or holds anything that `verify` refuses.
    """
    if not isinstance(path, str | os.PathLike):
        _check_file(path, "read", "a path")
    limit = _whole_number(unpacked_limit)
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else getattr(path, "name", "the file")
    try:
        with opened(path, limit) as archive:
            return _read(archive, verified)
    except FileLoadError as problem:
        raise FileLoadError(f"{name}: {problem}") from problem.__cause__


def _whole_number(unpacked_limit: int) -> int:
    try:
        return operator.index(unpacked_limit)
    except TypeError:
        raise PoplarTypeError(f"unpacked_limit is a whole number of bytes, got {unpacked_limit!r}") from None


def serialize(executable: Executable, out: BinaryIO | None) -> bytes | None:
    """What `save` writes to a file object, as bytes if there is none."""
    if out is not None:
        _check_file(out, "write", "nothing")
        _write(executable, out)
        return None
    content = io.BytesIO()
    _write(executable, content)
    return content.getvalue()


def deserialize(source: bytes | BinaryIO, unpacked_limit: int, *, verified: bool = False) -> Executable:
    """What `load` reads from a file object, or from bytes."""
    if isinstance(source, bytes | bytearray | memoryview):
        return load(io.BytesIO(source), unpacked_limit, verified=verified)
    _check_file(source, "read", "bytes")
    return load(source, unpacked_limit, verified=verified)


def _check_file(file: object, verb: str, other: str) -> None:
    """Raise `PoplarTypeError` unless `file` is a binary file; `other` is what might be given in its place."""
    expected = f"expected {other} or a binary file to {verb}, got"
    if isinstance(file, io.TextIOBase):
        raise PoplarTypeError(f"{expected} a text file: open it with the mode {'rb' if verb == 'read' else 'wb'!r}")
    if isinstance(file, str | os.PathLike):
        raise PoplarTypeError(f"{expected} a path: Executable.{'load' if verb == 'read' else 'save'} takes one")
    if not hasattr(file, verb):
        raise PoplarTypeError(f"{expected} {type(file).__name__}")


def _read(archive: Archive, verified: bool) -> Executable:
    names = archive.names
    claim(TREE in names, f"not a saved executable: it has no {TREE}")
    claim(len(set(names)) == len(names), "a member is there twice")
    text = archive.content(TREE)
    claim_unpacked(f"{TREE} takes up to", sum(size * text.count(mark) for mark, size in JSON_BYTES.items()), archive.limit)
    head = _head(text)
    later = LATER if verified else ()
    arrays: dict[str, StoredArray | HeldArray | AnyArray] = {}
    for member in names:
        claim(member == TREE or member.endswith(".npy"), f"surplus member {member}")
        if member != TREE:
            name = member.removesuffix(".npy")
            array: StoredArray | HeldArray | AnyArray = archive.array(member)
            if isinstance(array, StoredArray) and name.startswith(tuple(f"{path}." for path in later)):
                array = archive.held(array)
            arrays[name] = array
    texts = claim_kind(head["texts"], list, "texts")
    for number, listed in enumerate(texts):
        plain = isinstance(listed, list) and all(isinstance(text, str) for text in listed)
        claim(plain, f"texts[{number}] is {short(listed)}: expected a list of texts")
    unpacker = Unpacker(arrays, [tuple(listed) for listed in texts], archive.limit, later=later)
    executable: Executable = unpacker.unpack(head["executable"], Executable)
    surplus = sorted(name for name, array in unpacker.arrays.items() if not isinstance(array, HeldArray))
    claim(not surplus, f"surplus arrays: {', '.join(surplus)}")
    unpacker.read_all()
    if not verified:
        verify(executable)
    return executable


def _head(text: bytes) -> dict[str, Any]:
    """The JSON text, if it is of this format, version and layout of tables."""
    try:
        head = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise FileLoadError(f"not a saved executable: {TREE} is not JSON: {problem}") from problem
    ours = isinstance(head, dict) and head.get("format") == FORMAT
    claim(ours, f"not a saved executable: {TREE} does not say that it is a {FORMAT}")
    claim(
        head.get("version") == VERSION,
        f"of format version {short(head.get('version'))}, written by pypoplar {short(head.get('pypoplar'))}: "
        f"this pypoplar ({version('pypoplar')}) reads version {VERSION}; compile and save the program again",
    )
    claim(
        head.get("layout") == saved_layout(),
        f"of the layout {short(head.get('layout'))}, written by pypoplar {short(head.get('pypoplar'))}: "
        f"this pypoplar ({version('pypoplar')}) reads the layout {saved_layout()}; compile and save the program again",
    )
    wrong = sorted(head.keys() ^ {"format", "version", "layout", "pypoplar", "texts", "executable"})
    claim(not wrong, f"{TREE}: {', '.join(wrong)} surplus or missing")
    return dict(head)
