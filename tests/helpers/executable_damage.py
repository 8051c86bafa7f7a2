"""Takes saved executables apart, so that tests can change them; and a process of its own that loads and runs them."""

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np

RUNNER = Path(__file__).with_name("executable_runner.py")


def saved(executable):
    """The bytes of the file."""
    file = io.BytesIO()
    executable.save(file)
    return file.getvalue()


class Opened:
    """A saved executable as its JSON text and its arrays, both to be changed at will."""

    def __init__(self, content):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            self.head = json.loads(archive.read("executable.json"))
            names = [one for one in archive.namelist() if one != "executable.json"]
            self.arrays = {one.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(archive.read(one))) for one in names}

    @property
    def tree(self):
        return self.head["executable"]

    def array(self, *path):
        """The array at a path of the tree, to be changed in place."""
        place = self.tree
        for one in path:
            place = place[one]
        name, begin, *shape = place
        return self.arrays[name][begin : begin + int(np.prod(shape))].reshape(shape)

    def members(self):
        """The file's members by name."""
        made = {"executable.json": json.dumps(self.head).encode()}
        for name, array in self.arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array)
            made[f"{name}.npy"] = member.getvalue()
        return made

    def content(self):
        """The bytes of the changed file."""
        return zipped(self.members())


def zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return file.getvalue()


def leaves(tree, path=()):
    """Paths of all numbers, texts and flags of a tree."""
    if isinstance(tree, dict | list):
        for key, one in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(one, (*path, key))
    else:
        yield path


class Worker:
    """A process that loads and runs files; `ask` fails when the process dies."""

    def __init__(self, folder):
        self.path = folder / "executable.npz"
        self.process = None

    def ask(self, content, mode="native", seconds=60.0):
        """What became of a file: `refused`, `failed`, `stopped`, `ran` or `broken`, with what there is to say about it."""
        self.path.write_bytes(content)
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, str(RUNNER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        self.process.stdin.write(json.dumps([mode, str(self.path), seconds]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            code, self.process = self.process.wait(), None
            raise AssertionError(f"the process died with code {code}")
        return json.loads(line)

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
            self.process = None
