"""Claims about what the replicas of an executable do not have in common."""

from __future__ import annotations

from pypoplar.executable.executable import Executable
from pypoplar.executable.replication import Replication
from pypoplar.executable.verify.host_claims import TO_DEVICE
from pypoplar.executable.verify.named_checks import check, check_least, check_most, check_number, check_range, check_shape

MOST_REPLICAS = 1 << 16
INDEX_BYTES = 4  # of an UNSIGNED_INT


def verify_replication(executable: Executable, replication: Replication) -> None:
    """There are several replicas, the number of each lies in memory, and names mean something."""
    check_number("replication.factor", replication.factor, 2, MOST_REPLICAS + 1)
    index = replication.index
    check_shape("replication.index", index, *index.shape[:1], 2)
    tile, offset = index[:, 0], index[:, 1]
    check_range("replication.index", tile, 0, len(executable.tile_bytes))
    check_least("replication.index offset", offset, 0)
    reach = executable.tile_bytes[tile] - INDEX_BYTES
    check_most("replication.index reach", offset, reach, "reaches beyond the tile", "replication.index")
    for number in replication.broadcast:
        check_number("replication.broadcast", number, 0, len(executable.streams))
        kind = executable.streams[number].kind
        check("replication.broadcast kind", kind == TO_DEVICE, f"replication.broadcast has a stream {kind}")
    unknown = sorted(set(replication.parted) - executable.writes.keys())
    check("replication.parted", not unknown, f"replication.parted has {', '.join(unknown)}, which no host write is called")
    for row, _ in replication.branches:
        check_number("replication.branches", row, 0, len(executable.program))
