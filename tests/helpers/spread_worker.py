"""A process of several that run cases of `spread_cases`: each gets them from the test, and sends it what its replicas have left."""

import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import pickle
import struct

from mpi4py import MPI
from spread_cases import outcome

from pypoplar.engine.processes import mpi_meeting, shared_segments


def receive(connection: socket.socket) -> Any:
    """An object that `send` has sent."""
    (size,) = struct.unpack("q", _exactly(connection, 8))
    return pickle.loads(_exactly(connection, size))


def send(connection: socket.socket, what: Any) -> None:
    """Send an object."""
    packed = pickle.dumps(what)
    connection.sendall(struct.pack("q", len(packed)) + packed)


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise EOFError("the other side has closed the connection")
        parts += part
    return bytes(parts)


def main(port: int) -> None:
    """Run cases until there is None. Between them it waits at a socket, where it takes no processor time as in MPI."""
    comm = MPI.COMM_WORLD
    mpi_meeting.PATIENCE = 60  # where a machine is busy the others come late, and are to raise the same
    directory = tempfile.TemporaryDirectory()
    boot = shared_segments.BOOT = Path(directory.name) / "boot_id"
    connection = socket.create_connection(("127.0.0.1", port))
    send(connection, comm.rank)
    while (case := receive(connection)) is not None:
        boot.write_text(f"machine {comm.rank % case.machines}", encoding="ascii")
        send(connection, outcome(case, comm))


if __name__ == "__main__":
    main(int(sys.argv[1]))
