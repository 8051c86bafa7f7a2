"""A compiled model as it is kept in files: its executable, and what the host has to know to run it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from attrs import frozen

from pypoplar.errors import FileLoadError
from pypoplar.executable.executable import UNPACKED_LIMIT, Executable
from pypoplar.files import written_whole
from pypoplar.poptorch.user_log import logger

MAGIC = b"pypoplar kept model 2\n"
DIGEST = hashlib.sha256().digest_size
LENGTH = 8  # bytes of the head's length
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
        begin = len(MAGIC) + DIGEST
        digest, rest = content[len(MAGIC) : begin], content[begin:]
        if not content.startswith(MAGIC) or hashlib.sha256(rest).digest() != digest:
            raise FileLoadError("damaged, or no executable of a model")
        end = LENGTH + int.from_bytes(rest[:LENGTH], "little")
        try:
            head = json.loads(rest[LENGTH:end])
            made_for, interface, optimizer = (head[name] for name in ("made_for", "interface", "optimizer"))
        except (ValueError, KeyError, TypeError) as problem:
            raise FileLoadError(f"damaged: {problem}") from problem
        if not isinstance(made_for, str) or not isinstance(interface, str | None) or not isinstance(optimizer, str | None):
            raise FileLoadError("damaged: it does not say for which model it was made")
        limit = max(UNPACKED_LIMIT, MOST_UNPACKED * len(rest))
        return cls(Executable.deserialize(rest[end:], limit), made_for, interface, optimizer)


def find(path: Path, made_for: str) -> KeptModel | None:
    """The model that is kept in a file of the cache, if there is one for this key that can be read."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    try:
        kept = KeptModel.deserialize(content)
        if kept.made_for == made_for:
            return kept
        problem: object = "it was made for another model"
    except FileLoadError as refused:
        problem = refused
    logger.warning("the executable %s cannot be used and is made again: %s", path, problem)
    return None


def keep(path: Path, kept: KeptModel) -> None:
    """Put a model into a file of the cache, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as part:
        part.write_bytes(kept.serialize())
