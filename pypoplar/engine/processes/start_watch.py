"""Where MPI starts Python does nothing else: a process of its own watches that all instances come to it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

WATCH = """
import os, select, sys
if not select.select([0], [], [], float(sys.argv[2]))[0]:
    os.write(2, sys.argv[3].encode() + bytes([10]))
    os.kill(int(sys.argv[1]), 9)
"""


@contextlib.contextmanager
def watched_start(name: str, line: str, timeout: float) -> Iterator[None]:
    """End this process with a message if what is done within takes longer than so many seconds, as others do not come to it."""
    text = (
        f"{name}: the other instances have not come within {timeout:g} s (option pypoplar.mpi_timeout); {name} waits at the start "
        f"of MPI [{line}]: every instance runs the whole script, and none ends before it has met the others"
    )
    command = [sys.executable, "-I", "-S", "-c", WATCH, str(os.getpid()), str(timeout), text]
    watcher = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert watcher.stdin is not None
    try:
        yield
    finally:
        watcher.stdin.close()  # which ends it, as the end of this process does
        watcher.wait()
