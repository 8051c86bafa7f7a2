"""Saves and loads executables.

The file is a NumPy ``.npz`` archive: the arrays, and ``executable.json`` with all that is not an array. Nothing is pickled and
nothing of the file is executed: codelets are kept as source, which an engine translates, and all numbers are checked by
`pypoplar.executable.verify.executable_claims` before anything uses them. Cycles are derived from the code anew, by the prices of
the pypoplar that loads the file.

The archive is compressed at zlib's lowest level: that makes it about a ninth as large for 0.05 s at 80,000 vertices, where the
default level takes five times as long for an eighth less.
"""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
import zlib
from importlib.metadata import version
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.errors import FileLoadError, PoplarTypeError
from pypoplar.executable.claims import claim
from pypoplar.executable.codec import Packer, Unpacker, claim_kind, short
from pypoplar.executable.executable import Executable
from pypoplar.executable.verify.executable_claims import verify
from pypoplar.files import check_regular, written_whole
from pypoplar.interface.saved_layout import saved_layout

FORMAT = "pypoplar executable"
VERSION = 3
TREE = "executable.json"
COMPRESSION = 1

DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    LookupError,
    NotImplementedError,  # a way of compression or a version of the format that nobody writes
    OSError,
    OverflowError,
    RuntimeError,  # a member that is encrypted
    ValueError,
    struct.error,
)
"""What zipfile and zlib raise where an archive or a member of one is damaged."""
NO_ARRAY = (EOFError, MemoryError, OverflowError, RecursionError, SyntaxError, TypeError, ValueError, struct.error, TokenError)
"""What NumPy raises where a member is no array: its header is Python text that is taken apart."""

Place = str | os.PathLike[str] | BinaryIO


def save(executable: Executable, path: Place) -> None:
    """Write an executable to a path or a binary file object. Equal executables give equal files.

    A file at `path` is replaced as a whole, or not at all if the disk is full or the process ends halfway.
    """
    if not isinstance(path, str | os.PathLike):
        _check_file(path, "write")
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
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def load(path: Place) -> Executable:
    """Read an executable that `save` wrote, from a path or a binary file object.

    Raises `FileLoadError` if there is no such file, if it is damaged, not one of ours, or holds anything that `verify` refuses.
    """
    if not isinstance(path, str | os.PathLike):
        _check_file(path, "read")
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else getattr(path, "name", "the file")
    try:
        with _open(path) as archive:
            return _read(archive)
    except FileLoadError as problem:
        raise FileLoadError(f"{name}: {problem}") from problem.__cause__


def _check_file(path: object, method: str) -> None:
    if not hasattr(path, method):
        raise PoplarTypeError(f"expected a path or a binary file to {method}, got {type(path).__name__}")


def _open(path: Place) -> zipfile.ZipFile:
    try:
        if isinstance(path, str | os.PathLike):
            check_regular(path)
        return zipfile.ZipFile(path)
    except OSError as problem:
        raise FileLoadError(f"cannot be read: {problem.strerror or problem}") from problem
    except DAMAGED as problem:
        raise FileLoadError(f"not a saved executable, or damaged: {str(problem) or type(problem).__name__}") from problem


def _read(archive: zipfile.ZipFile) -> Executable:
    names = archive.namelist()
    claim(TREE in names, f"not a saved executable: it has no {TREE}")
    head = _head(_content(archive, TREE))
    arrays = {name.removesuffix(".npy"): _array(archive, name) for name in names if name != TREE}
    claim(len(arrays) == len(names) - 1, "a member is there twice")
    texts = claim_kind(head["texts"], list, "texts")
    for number, listed in enumerate(texts):
        plain = isinstance(listed, list) and all(isinstance(text, str) for text in listed)
        claim(plain, f"texts[{number}] is {short(listed)}: expected a list of texts")
    unpacker = Unpacker(arrays, [tuple(listed) for listed in texts])
    executable: Executable = unpacker.unpack(head["executable"], Executable)
    surplus = sorted(arrays.keys() - unpacker.used)
    claim(not surplus, f"surplus arrays: {', '.join(surplus)}")
    verify(executable)
    return executable


def _content(archive: zipfile.ZipFile, name: str) -> bytes:
    """All bytes of a member; zipfile compares them with their checksum."""
    try:
        return archive.read(name)
    except DAMAGED as problem:
        raise FileLoadError(f"the member {name} is damaged: {str(problem) or type(problem).__name__}") from problem


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


def _array(archive: zipfile.ZipFile, name: str) -> AnyArray:
    """A member as an array of rank 1. Objects, which only pickle could restore, are refused."""
    claim(name.endswith(".npy"), f"surplus member {name}")
    content = io.BytesIO(_content(archive, name))
    try:
        array: Any = np.lib.format.read_array(content, allow_pickle=False)
    except NO_ARRAY as problem:
        raise FileLoadError(f"the member {name} is not an array of numbers: {str(problem) or type(problem).__name__}") from problem
    claim(array.ndim == 1, f"the array of the member {name} has rank {array.ndim}: expected 1")
    claim(content.read(1) == b"", f"the member {name} goes on after its array")
    whole: AnyArray = array
    return whole
