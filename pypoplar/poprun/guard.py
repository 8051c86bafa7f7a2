"""Starts an instance and watches over it: tags its lines, and tells poprun how it ended. Run as a script, without pypoplar.

    python -I -S guard.py NAME TAGGED SHOWN ENVIRONMENT program arguments

ENVIRONMENT is a JSON object of variables. It needs nothing but Python, so that it starts in 20 ms.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from typing import IO

KEPT = 400  # lines of an instance that is not shown, for where it fails
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
GUARD = "POPRUN_GUARD"  # the variable by which an instance knows that this process, its parent, tells poprun how it ends
MARK = "poprun-instance-ended"  # begins a line for poprun: which instance, and its exit status or, below 0, the signal


def _die_with_parent() -> None:
    import ctypes  # late: poprun itself takes a name from here only

    ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)


def launchable_word(word: str) -> str:
    """A word of the program's as it stands in the launcher's line, where a colon by itself begins the next instance."""
    return "\\" + word if word.endswith(":") and not word.strip(":\\") else word


def plain_word(word: str) -> str:
    """The word again."""
    return word[1:] if word.startswith("\\") and word.endswith(":") and not word.strip(":\\") else word


class Pump(threading.Thread):
    """Passes on the lines of a stream, each in one piece and with its tag; or keeps the last ones."""

    def __init__(self, source: IO[bytes], target: int, tag: bytes, shown: bool) -> None:
        super().__init__(daemon=True)
        self.source, self.target, self.tag, self.shown = source, target, tag, shown
        self.kept: deque[bytes] = deque(maxlen=KEPT)

    def run(self) -> None:
        """Until the stream ends."""
        for line in self.source:
            whole = self.tag + (line if line.endswith(b"\n") or not self.tag else line + b"\n")
            if self.shown:
                write(self.target, whole)
            else:
                self.kept.append(whole)


def write(target: int, text: bytes) -> None:
    """Write all of a text; if nobody reads any more that is the end of it."""
    try:
        while text:
            text = text[os.write(target, text) :]
    except OSError:
        pass


def main() -> int:
    """Run the instance; its exit status, or 128 and the number of the signal that killed it."""
    name, tagged, shown, variables, *program = sys.argv[1:]
    _die_with_parent()
    number = name.split()[1]

    def pass_on(received: int, _: object) -> None:
        if child.poll() is None:
            child.send_signal(received)

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        _die_with_parent()

    for stopping in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stopping, pass_on)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
    child = subprocess.Popen(
        [plain_word(word) for word in program],
        stdin=None if number == "0" else subprocess.DEVNULL,  # of which others would wait for an end that never comes
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        close_fds=False,  # by some of them it talks with the launcher
        env={**os.environ, **json.loads(variables), GUARD: str(os.getpid())},
        preexec_fn=prepare,
    )
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    pumps = []
    for source, target, stream in ((child.stdout, 1, "stdout"), (child.stderr, 2, "stderr")):
        assert source is not None
        tag = f"[1,{number}]<{stream}>: " if tagged == "1" else ""
        pumps.append(Pump(source, target, tag.encode(), shown == "1"))
        pumps[-1].start()
    status = child.wait()
    for pump in pumps:
        pump.join(0.5)
    if status:
        write(2, b"".join(line for line in list(pumps[1].kept) if b"instance " in line))
        write(2, f"{MARK} {number} {status}\n".encode())
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
