"""Checks an executable that comes from a file, before the driver may use its numbers.

The driver trusts its tables. After these checks a foreign executable can compute wrongly, but touches nothing but the simulated
memory, its own tables and its host buffers, and never leaves its program. All that scales with the program is checked in bulk.
"""

from __future__ import annotations

from pypoplar.executable.claims import LARGEST, claim, claim_each, claim_number, claim_range, claim_shape
from pypoplar.executable.exchange_account import NamedExchange
from pypoplar.executable.executable import Executable
from pypoplar.executable.graph_facts import PRICED_BY
from pypoplar.executable.memory_layout import TILE_ALIGNMENT
from pypoplar.executable.steps import StaticStep
from pypoplar.executable.verify.compute_claims import verify_computes
from pypoplar.executable.verify.host_claims import verify_host
from pypoplar.executable.verify.life_claims import verify_lives
from pypoplar.executable.verify.move_claims import verify_moves
from pypoplar.executable.verify.program_claims import verify_program
from pypoplar.executable.verify.touch_claims import verify_touches

STEP_KINDS = ("exchange", "compute", "copy", "stream", "sync", "handle")
PHASES = ("before", "after", "copy")
ACCOUNT = ("bytes_sent", "bytes_received")
CATEGORIES = ("variables", "constants", "exchange_buffers", "vertex_state", "edge_pointers", "code", "stack", "gaps")
MEMORY = (*CATEGORIES, "always_live", "not_always_live")


def verify(executable: Executable) -> None:
    """Raise `FileLoadError`, naming what is wrong, unless every number of `executable` fits the others."""
    tiles = executable.target.getNumTiles()
    claim_shape("tile_bytes", executable.tile_bytes, tiles)
    claim_range("tile_bytes", executable.tile_bytes, 0, LARGEST)
    claim_each("tile_bytes", executable.tile_bytes % TILE_ALIGNMENT == 0, f"is no multiple of {TILE_ALIGNMENT}")
    claim_number("touch_bytes", executable.touch_bytes, 0, LARGEST)
    _verify_memory(executable, tiles)
    _verify_image(executable)
    _verify_names(executable, tiles)
    for number, exchange in enumerate(executable.exchanges):
        _verify_exchange(exchange, f"exchanges[{number}]", tiles)
    for number, step in enumerate(executable.steps):
        _verify_step(executable, step, f"steps[{number}]", tiles)
    verify_host(executable)
    ends = verify_moves(executable)
    verify_computes(executable, len(ends.lists))
    verify_touches(executable)
    verify_program(executable, ends)
    verify_lives(executable, tiles)


def _verify_image(executable: Executable) -> None:
    image = executable.image
    pieces, size = len(image.tile), len(image.data)
    claim_shape("image.tile", image.tile, pieces)
    claim_shape("image.offset", image.offset, pieces)
    claim_shape("image.bytes", image.bytes, pieces)
    claim_shape("image.data", image.data, size)
    claim_range("image.tile", image.tile, 0, len(executable.tile_bytes))
    claim_range("image.offset", image.offset, 0, LARGEST)
    claim_range("image.bytes", image.bytes, 0, size + 1)
    claim_each("image.offset", image.offset + image.bytes <= executable.tile_bytes[image.tile], "reaches beyond the tile")
    claim(int(image.bytes.sum()) == size, f"image.data has {size} bytes, its pieces have {int(image.bytes.sum())}")


def _verify_memory(executable: Executable, tiles: int) -> None:
    """Tiles have no more memory than what lies there needs, and what lies there fits if the options ask for it."""
    for name in MEMORY:
        values = getattr(executable.memory, name)
        claim_shape(f"memory.{name}", values, tiles)
        claim_range(f"memory.{name}", values, 0, LARGEST)
    total, limit = executable.memory.total(), executable.target.getBytesPerTile()
    claim_each("tile_bytes", executable.tile_bytes <= total + TILE_ALIGNMENT, "is more memory than the tile needs")
    fits = executable.options.run_out_of_memory or int(total.max()) <= limit
    claim(fits, f"a tile holds {int(total.max())} bytes: expected at most {limit}")


def _verify_names(executable: Executable, tiles: int) -> None:
    """What is only reported: counts, places in the user's code."""
    claim_shape("vertex_bytes", executable.vertex_bytes, len(executable.codelets))
    claim_shape("priced_by", executable.priced_by, len(executable.codelets), len(PRICED_BY))
    claim_range("priced_by", executable.priced_by.ravel(), 0, len(executable.vertex_names.location) + 1)
    names = executable.vertex_names
    claim_shape("vertex_names.location", names.location, len(names.location))
    claim_shape("vertex_names.tile", names.tile, len(names.location))
    claim_range("vertex_names.location", names.location, 0, len(names.locations))
    claim_range("vertex_names.tile", names.tile, -1, tiles)


def _verify_step(executable: Executable, step: StaticStep, where: str, tiles: int) -> None:
    claim(step.kind in STEP_KINDS, f"{where}.kind is {step.kind!r}: expected {', '.join(STEP_KINDS)}")
    for name in ("sync_cycles", "host_bytes", "host_cycles", "global_exchange_cycles", "depth"):
        claim_number(f"{where}.{name}", getattr(step, name), 0, LARGEST)
    claim(len(step.exchange_cycles) >= len(step.rearrange_cycles), f"{where}.rearrange_cycles without exchange_cycles")
    for name in ("exchange_cycles", "rearrange_cycles"):
        if len(getattr(step, name)):
            claim_shape(f"{where}.{name}", getattr(step, name), tiles)
            claim_range(f"{where}.{name}", getattr(step, name), 0, LARGEST)
    claim_number(f"{where}.compute", step.compute, -1, len(executable.computes.result_tile))
    claim((step.compute >= 0) == (step.kind == "compute"), f"{where}.compute is {step.compute}, of a step {step.kind!r}")
    claim_number(f"{where}.exchange", step.exchange, -1, len(executable.exchanges))


def _verify_exchange(exchange: NamedExchange, where: str, tiles: int) -> None:
    claim(exchange.phase in PHASES, f"{where}.phase is {exchange.phase!r}: expected {', '.join(PHASES)}")
    account = exchange.account
    for name in ACCOUNT:
        claim_shape(f"{where}.{name}", getattr(account, name), tiles)
        claim_range(f"{where}.{name}", getattr(account, name), 0, LARGEST)
    claim_shape(f"{where}.messages", account.messages, len(account.messages))
    for column, high in (("source", tiles), ("destination", tiles), ("bytes", LARGEST), ("variable", len(exchange.variables))):
        claim_range(f"{where}.messages.{column}", account.messages[column], 0, high)
