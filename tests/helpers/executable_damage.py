"""Takes saved executables apart, so that tests can change them; and a process of its own that loads and runs them."""

from __future__ import annotations

import functools
import io
import json
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pypoplar import Executable
from pypoplar.executable.codec import RECORDS, Unpacker
from pypoplar.executable.executable import UNPACKED_LIMIT
from pypoplar.executable.narrow_arrays import widened
from pypoplar.interface.opcodes import Opcode, ProgramRow

RUNNER = Path(__file__).with_name("executable_runner.py")


def saved(executable: Executable) -> bytes:
    """The bytes of the file."""
    file = io.BytesIO()
    executable.save(file)
    return file.getvalue()


@functools.lru_cache
def _read(content: bytes) -> Opened:
    """What is in a file, taken apart once; not to be changed."""
    opened = Opened.__new__(Opened)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        opened.head = json.loads(archive.read("executable.json"))
        names = [member for member in archive.namelist() if member != "executable.json"]
        stored: dict[str, Any] = {
            member.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(archive.read(member))) for member in names
        }
    unpacker = Unpacker(stored, _texts(opened), UNPACKED_LIMIT)
    unpacker.unpack(opened.tree, Executable)
    opened.arrays = {name: _roomy(array, RECORDS.get(name)) for name, array in unpacker.whole.items()}
    return opened


def _roomy(array: Any, record: Any) -> Any:
    """An array in a type that holds what a test puts there."""
    if record is not None:
        return widened(array, record)
    return array.astype(np.int64) if array.dtype == np.int32 else array


def _texts(opened: Opened) -> list[tuple[str, ...]]:
    return [tuple(listed) for listed in opened.head["texts"]]


class Opened:
    """A saved executable as its JSON text and its arrays, both to be changed at will."""

    head: Any
    arrays: dict[str, NDArray[Any]]

    def __init__(self, content: bytes) -> None:
        self._take(_read(content))

    def _take(self, other: Opened) -> None:
        self.head = pickle.loads(pickle.dumps(other.head))  # a tenth of what copy.deepcopy takes
        self.arrays = {name: array.copy() for name, array in other.arrays.items()}

    def copy(self) -> Opened:
        """Another one, which changes by itself."""
        twin = Opened.__new__(Opened)
        twin._take(self)
        return twin

    def executable(self) -> Executable:
        """The executable, which is not verified."""
        made: Executable = Unpacker(dict(self.arrays), _texts(self), UNPACKED_LIMIT).unpack(self.tree, Executable)
        return made

    @property
    def tree(self) -> Any:
        return self.head["executable"]

    def array(self, *path: Any) -> NDArray[Any]:
        """The array at a path of the tree, to be changed in place."""
        place = self.tree
        for key in path:
            place = place[key]
        name, begin, *shape = place
        return self.arrays[name][begin : begin + int(np.prod(shape))].reshape(shape)

    def members(self) -> dict[str, bytes]:
        """The file's members by name."""
        members = {"executable.json": json.dumps(self.head).encode()}
        for name, array in self.arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array)
            members[f"{name}.npy"] = member.getvalue()
        return members

    def content(self) -> bytes:
        """The bytes of the changed file."""
        return zipped(self.members())


Change = Callable[[Opened], None]


def put(path: str, where: Any, value: Any) -> Change:
    """A change of an array: ``array[where] = value``; a function gets the old value."""

    def change(opened: Opened) -> None:
        array = opened.array(*path.split("."))
        array[where] = value(array[where]) if callable(value) else value

    return change


def put_row(code: Opcode, operand: int, value: Any, which: int = 0) -> Change:
    """A change of a column of the `which`-th row with an operation; a function gets the row's number and the old value."""

    def change(opened: Opened) -> None:
        program = opened.array("program")
        row = np.flatnonzero(program[:, ProgramRow.OPERATION] == code)[which]
        program[row, operand] = value(row, program[row, operand]) if callable(value) else value

    return change


def own(row: int, old: int) -> int:
    """The number of the row itself."""
    return row


def put_leaf(*path_and_value: Any) -> Change:
    """A change of the tree."""
    *path, last, value = path_and_value

    def change(opened: Opened) -> None:
        place = opened.tree
        for key in path:
            place = place[key]
        place[last] = value

    return change


def reshaped(*path_and_shape: Any) -> Change:
    """The array at a path, with another shape."""
    *path, shape = path_and_shape

    def change(opened: Opened) -> None:
        place = opened.tree
        for key in path:
            place = place[key]
        place[2:] = shape

    return change


def array_places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Paths of all arrays of a tree, with the elements of each; of codelets there are none."""
    match tree:
        case [str(), int(), *shape] if all(type(size) is int for size in shape):
            yield path, int(np.prod(shape))
        case dict() | list():
            for key, branch in tree.items() if isinstance(tree, dict) else enumerate(tree):
                if key != "codelets":
                    yield from array_places(branch, (*path, key))


def more(old: Any) -> Any:
    return old + 1


def zipped(members: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return file.getvalue()


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all numbers, texts and flags of a tree."""
    if isinstance(tree, dict | list):
        for key, branch in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(branch, (*path, key))
    else:
        yield path


class Worker:
    """A process that loads and runs files; `ask` fails when the process dies."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "executable.npz"
        self.process: subprocess.Popen[str] | None = None

    def ask(self, content: bytes, mode: str = "native", seconds: float = 60.0) -> dict[str, Any]:
        """What became of a file: `refused`, `failed`, `stopped`, `ran` or `broken`, with what there is to say about it."""
        self.path.write_bytes(content)
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, str(RUNNER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([mode, str(self.path), seconds]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the process died with code {self.close()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> int | None:
        """End the process, if there is one; its exit code."""
        if self.process is None:
            return None
        process, self.process = self.process, None
        process.communicate()
        return process.returncode
