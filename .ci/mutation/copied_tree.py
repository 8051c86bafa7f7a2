"""A copy of the work tree, in which mutants are tried: the user's own files are read only."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from attrs import define, field

COMMANDS = Path(__file__).parents[1]  # where the plugin is found


@define(eq=False)
class CopiedTree:
    """The files of a work tree that git has, or would take, in another folder, where Python finds them first."""

    root: Path
    cache: Path  # of compiled codelets
    files: list[str] = field(factory=list)
    _writings: int = 0

    PYTEST: ClassVar[tuple[str, ...]] = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:cov", "-p", "mutation.test_order")

    @staticmethod
    def of(tree: Path, place: Path, cache: Path) -> CopiedTree:
        """Copy a tree to a place."""
        made = CopiedTree(place.resolve(), cache, _git_files(tree))
        for name in made.files:
            (made.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, made.root / name)
        return made

    def digest(self) -> str:
        """A hash of all of its files that Python reads."""
        found = hashlib.sha256()
        for name in self.files:
            if name.endswith((".py", ".toml")) and not name.startswith("."):
                found.update(name.encode() + b"\0" + (self.root / name).read_bytes() + b"\0")
        return found.hexdigest()

    @contextlib.contextmanager
    def changed(self, module: str, source: str) -> Iterator[None]:
        """The tree with another source of a module, as long as the context lasts."""
        path = self.root / module
        before, status = path.read_bytes(), path.stat()
        try:
            path.write_text(source)
            self._writings += 1  # bytecode is taken for that of a source of the same time and size
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + self._writings * 2_000_000_000))
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def run(
        self,
        arguments: Sequence[str],
        variables: Mapping[str, str],
        seconds: float | None = None,
        write_bytecode: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run Python here, with few examples of laws.

        Raises
        ------
        subprocess.TimeoutExpired
            After so many seconds, when it and what it has started has ended.
        """
        paths = os.pathsep.join((str(self.root), str(COMMANDS)))
        unmeasured = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE_", "COV_"))}
        environment = {"HYPOTHESIS_PROFILE": "few", **unmeasured, **variables, "PYTHONPATH": paths}
        environment |= {"PYPOPLAR_CACHE_DIR": str(self.cache), "PYTHONDONTWRITEBYTECODE": "" if write_bytecode else "1"}
        with subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as running:
            try:
                out, error = running.communicate(timeout=seconds)
            except BaseException:
                os.killpg(running.pid, signal.SIGKILL)  # with the processes that tests have started
                raise
        return subprocess.CompletedProcess(arguments, running.returncode, out, error)


def _git_files(tree: Path) -> list[str]:
    command = ["git", "-C", str(tree), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted({name for name in listed if name and (tree / name).is_file()})
