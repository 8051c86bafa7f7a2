"""Starts processes of MPI for tests, with each MPI that is installed."""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HELPERS = Path(__file__).parent
AS_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def require_mpi(kind: str | None = None) -> None:
    """Skip a test where there is no mpi4py, no MPI for it, or another than this `kind`."""
    pytest.importorskip("mpi4py")
    from pypoplar.errors import MissingFeature
    from pypoplar.poprun.launchers import find_launcher

    try:
        found = find_launcher().kind
    except MissingFeature as problem:
        pytest.skip(str(problem))
    if kind not in (None, found):
        pytest.skip(f"mpi4py has the library of {found}, not of {kind}")


def environment(**more: str) -> dict[str, str]:
    """What processes of tests have: this checkout first, and a buffer, since without one `print` writes ends of lines apart."""
    without = ("POPDIST_", "PMI_", "OMPI_", "COV_", "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(without)}
    return {**kept, **AS_ROOT, "PYTHONPATH": os.pathsep.join([str(ROOT), str(HELPERS)]), **more}


def mpiexec(processes: int, *command: str) -> list[str]:
    """A command in so many processes, each of them by `python -m mpi4py`."""
    from pypoplar.poprun.launchers import find_launcher

    return [find_launcher().path, "-n", str(processes), sys.executable, "-m", "mpi4py", *command]


def run_ranks(
    processes: int, script: str | Path, *arguments: str, timeout: float = 100, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a script in so many processes."""
    command = mpiexec(processes, str(script), *arguments)
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment(**more), check=False)


class Ranks:
    """Processes that wait for cases of `spread_cases`."""

    def __init__(self, processes: int) -> None:
        from spread_worker import receive

        with socket.create_server(("127.0.0.1", 0), backlog=processes) as server:
            port = server.getsockname()[1]
            self.process = subprocess.Popen(mpiexec(processes, str(HELPERS / "spread_worker.py"), str(port)), env=environment())
            server.settimeout(60)
            connected = [server.accept()[0] for _ in range(processes)]
        by_rank = {receive(connection): connection for connection in connected}
        self.connections = [by_rank[rank] for rank in range(processes)]

    def begin(self, case: Any) -> None:
        """Let them run a case."""
        from spread_worker import send

        for connection in self.connections:
            send(connection, case)

    def outcome(self) -> list[Any] | None:
        """What all replicas leave of the case that has begun, in order."""
        from spread_worker import receive

        left: Sequence[Any] = [receive(connection) for connection in self.connections]
        return None if left[0] is None else [one for of_process in left for one in of_process]

    def close(self) -> None:
        """End them."""
        self.begin(None)
        self.process.wait(30)
        for connection in self.connections:
            connection.close()
