"""A compiled model as it is kept in files: its executable, and what the host has to know to run it."""

from __future__ import annotations

import hashlib
import io
import json
import os
from pathlib import Path
from typing import BinaryIO

from attrs import frozen

from pypoplar.errors import FileLoadError
from pypoplar.executable.executable import UNPACKED_LIMIT, Executable
from pypoplar.executable.executable_file import deserialize
from pypoplar.files import written_whole
from pypoplar.host_code import cache
from pypoplar.poptorch.user_log import logger

MAGIC = b"pypoplar kept model 2\n"
DIGEST = hashlib.sha256().digest_size
LENGTH = 8  # bytes of the head's length
AT_ONCE = 1 << 20  # bytes that are read at once to be digested
MOST_UNPACKED = 64  # times its size a large file may take: programs of networks take some 20


@frozen(eq=False)
class KeptModel:
    """An executable, the key of the model that it was made for, and what the host knows of it, so that nothing is lowered again."""

    executable: Executable
    made_for: str
    interface: str | None  # `ModelInterface.to_json`; None: the model has to be lowered to know it
    optimizer: str | None = None  # `HostOptimizer.to_json`, if it trains

    def serialize(self) -> bytes:
        """Bytes that `deserialize` reads."""
        head = json.dumps({"made_for": self.made_for, "interface": self.interface, "optimizer": self.optimizer}).encode()
        content = len(head).to_bytes(LENGTH, "little") + head + self.executable.serialize()
        return MAGIC + hashlib.sha256(content).digest() + content

    @classmethod
    def deserialize(cls, content: bytes) -> KeptModel:
        """What `serialize` wrote; `FileLoadError` for anything else, and for executables of another pypoplar."""
        return cls.read(io.BytesIO(content))

    @classmethod
    def read(cls, file: BinaryIO) -> KeptModel:
        """What `deserialize` makes of the content of a file, which is not held in memory as a whole.

        What was verified once is marked by its digest, where machine code is kept, too, and is not verified again by the same
        pypoplar; files that others may write to always are, since they might change behind the digest.
        """
        begin = len(MAGIC) + DIGEST
        magic, digest = file.read(len(MAGIC)), file.read(DIGEST)
        if magic != MAGIC or _digest_of_rest(file) != digest:
            raise FileLoadError("damaged, or no executable of a model")
        size = file.tell() - begin
        file.seek(begin)
        try:
            head = json.loads(file.read(min(size, int.from_bytes(file.read(LENGTH), "little"))))
            made_for, interface, optimizer = (head[name] for name in ("made_for", "interface", "optimizer"))
        except (ValueError, KeyError, TypeError) as problem:
            raise FileLoadError(f"damaged: {problem}") from problem
        if not isinstance(made_for, str) or not isinstance(interface, str | None) or not isinstance(optimizer, str | None):
            raise FileLoadError("damaged: it does not say for which model it was made")
        verified = _is_private(file) and cache.load(_mark(digest)) is not None
        executable = deserialize(file, max(UNPACKED_LIMIT, MOST_UNPACKED * size), verified=verified)
        if not verified:
            cache.store(_mark(digest), b"")
        return cls(executable, made_for, interface, optimizer)


def _mark(digest: bytes) -> str:
    """The key of what says that the content of this digest has been verified."""
    return f"verified model {cache.fingerprint('pypoplar')} {digest.hex()}"


def _is_private(file: BinaryIO) -> bool:
    """Whether nobody else can write to an open file, which bytes in memory are, too."""
    return isinstance(file, io.BytesIO) or cache.is_private(os.fstat(file.fileno()))


def _digest_of_rest(file: BinaryIO) -> bytes:
    """The digest of what follows in a file."""
    hashed = hashlib.sha256()
    while part := file.read(AT_ONCE):
        hashed.update(part)
    return hashed.digest()


def find(path: Path, made_for: str) -> KeptModel | None:
    """The model that is kept in a file of the cache, if there is one for this key that can be read."""
    try:
        with path.open("rb") as file:
            kept = KeptModel.read(file)
        if kept.made_for == made_for:
            return kept
        problem: object = "it was made for another model"
    except FileLoadError as refused:
        problem = refused
    except OSError:
        return None
    logger.warning("the executable %s cannot be used and is made again: %s", path, problem)
    return None


def keep(path: Path, kept: KeptModel) -> None:
    """Put a model that has been compiled here into a file of the cache, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = kept.serialize()
    with written_whole(path) as part:
        part.write_bytes(content)
    cache.store(_mark(content[len(MAGIC) : len(MAGIC) + DIGEST]), b"")
