"""Checks an executable that comes from a file, before the driver may use its numbers.

The driver trusts its tables. After these checks a foreign executable can compute wrongly, but touches nothing but the simulated
memory, its own tables and its host buffers, and never leaves its program. All that scales with the program is checked in bulk.
"""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import StructuredArray
from pypoplar.codelet.operations.device_operation import ARCHITECTURES
from pypoplar.executable.claims import LARGEST
from pypoplar.executable.exchange_account import NamedExchange
from pypoplar.executable.executable import Executable
from pypoplar.executable.graph_facts import PRICED_BY
from pypoplar.executable.memory_layout import TILE_ALIGNMENT
from pypoplar.executable.steps import StaticStep
from pypoplar.executable.verify.compute_claims import verify_computes
from pypoplar.executable.verify.host_claims import verify_host
from pypoplar.executable.verify.life_claims import verify_lives
from pypoplar.executable.verify.move_claims import verify_moves
from pypoplar.executable.verify.named_checks import (
    check,
    check_each,
    check_least,
    check_limit,
    check_most,
    check_number,
    check_range,
    check_shape,
)
from pypoplar.executable.verify.program_claims import verify_program
from pypoplar.executable.verify.replication_claims import verify_replication
from pypoplar.executable.verify.touch_claims import verify_touches
from pypoplar.interface.layout import NOTHING

STEP_KINDS = ("exchange", "compute", "copy", "stream", "sync", "handle")
PHASES = ("before", "after", "copy", "stream", "replicas")
ACCOUNT = ("bytes_sent", "bytes_received")
CATEGORIES = (
    "variables",
    "constants",
    "constant_tables",
    "exchange_buffers",
    "vertex_state",
    "edge_pointers",
    "code",
    "stack",
    "gaps",
)
MEMORY = (*CATEGORIES, "always_live", "not_always_live")


def verify(executable: Executable) -> None:
    """Raise `FileLoadError`, naming what is wrong, unless every number of `executable` fits the others."""
    tiles, architecture = executable.target.getNumTiles(), executable.target.architecture
    known = ", ".join(ARCHITECTURES)
    check("target.architecture", architecture in ARCHITECTURES, f"target.architecture is {architecture!r}: expected {known}")
    check_shape("tile_bytes", executable.tile_bytes, tiles)
    check_least("tile_bytes", executable.tile_bytes, 0)
    whole = sum(executable.tile_bytes.tolist())
    check_limit("tile_bytes total", whole, LARGEST - 1, f"the tiles have {whole} bytes of memory: expected less than {LARGEST}")
    aligned = executable.tile_bytes % TILE_ALIGNMENT == 0
    check_each("tile_bytes alignment", aligned, f"is no multiple of {TILE_ALIGNMENT}", "tile_bytes")
    check_number("touch_bytes", executable.touch_bytes, 0, LARGEST)
    _verify_memory(executable, tiles)
    _verify_image(executable)
    _verify_names(executable, tiles)
    for number, exchange in enumerate(executable.exchanges):
        _verify_exchange(exchange, f"exchanges[{number}]", tiles)
    for number, step in enumerate(executable.steps):
        _verify_step(executable, step, f"steps[{number}]", tiles)
    if executable.replication is not None:
        verify_replication(executable, executable.replication)
    verify_host(executable)
    ends = verify_moves(executable)
    verify_computes(executable, len(ends.lists))
    _verify_in_place(executable)
    verify_touches(executable)
    verify_program(executable, ends)
    verify_lives(executable, tiles)


def _verify_in_place(executable: Executable) -> None:
    """Each pair is an Input and an Output of a codelet."""
    pairs = executable.in_place
    check_shape("in_place", pairs, *pairs.shape[:1], 3)
    accesses = {
        (number, position): field.access
        for number, codelet in enumerate(executable.codelets)
        for position, field in enumerate(codelet.fields)
    }
    for column, access in ((1, "input"), (2, "output")):
        known = [accesses.get((number, position)) == access for number, position in pairs[:, [0, column]].tolist()]
        check_each(f"in_place {access}", np.array(known, bool), f"is no {access} of its codelet", "in_place")
    apart = {(number, *sorted(pair)) for number, codelet in enumerate(executable.codelets) for pair in codelet.distinct}
    kept = [(number, *sorted(pair)) not in apart for number, *pair in pairs.tolist()]
    check_each("in_place apart", np.array(kept, bool), "are two fields that their codelet demands to be apart", "in_place")


def _verify_image(executable: Executable) -> None:
    image = executable.image
    pieces, size = len(image.tile), len(image.data)
    check_shape("image.tile", image.tile, pieces)
    check_shape("image.offset", image.offset, pieces)
    check_shape("image.bytes", image.bytes, pieces)
    check_shape("image.data", image.data, size)
    check_range("image.tile", image.tile, 0, len(executable.tile_bytes))
    check_range("image.offset", image.offset, 0, LARGEST)
    check_range("image.bytes", image.bytes, 0, size + 1)
    reach = executable.tile_bytes[image.tile]
    check_most("image reach", image.offset + image.bytes, reach, "reaches beyond the tile", "image.offset")
    total = int(image.bytes.sum())
    check("image total", total == size, f"image.data has {size} bytes, its pieces have {total}")


def _verify_memory(executable: Executable, tiles: int) -> None:
    """Tiles have no more memory than what lies there needs, and what lies there fits if the options ask for it."""
    for name in MEMORY:
        values = getattr(executable.memory, name)
        check_shape(f"memory.{name}", values, tiles)
        check_range(f"memory.{name}", values, 0, LARGEST)
    total, limit = executable.memory.total(), executable.target.getBytesPerTile()
    most = total + TILE_ALIGNMENT
    check_most("tile_bytes need", executable.tile_bytes, most, "is more memory than the tile needs", "tile_bytes")
    if not executable.options.run_out_of_memory:
        held = int(total.max())
        check_limit("memory", held, limit, f"a tile holds {held} bytes: expected at most {limit}")


def _verify_names(executable: Executable, tiles: int) -> None:
    """What is only reported: counts, places in the user's code."""
    check_shape("vertex_bytes", executable.vertex_bytes, len(executable.codelets))
    check_shape("priced_by", executable.priced_by, len(executable.codelets), len(PRICED_BY))
    check_range("priced_by", executable.priced_by.ravel(), 0, len(executable.vertex_names.location) + 1)
    names = executable.vertex_names
    check_shape("vertex_names.location", names.location, len(names.location))
    check_shape("vertex_names.tile", names.tile, len(names.location))
    check_range("vertex_names.location", names.location, 0, len(names.locations))
    check_range("vertex_names.tile", names.tile, -1, tiles)
    for name, many in (("variables", len(executable.variable_names)), ("compute_sets", len(executable.compute_names))):
        entries = len(getattr(executable.made_at, name))
        check(f"made_at.{name}", entries == many, f"made_at.{name} has {entries} entries: expected {many}")


def _verify_step(executable: Executable, step: StaticStep, where: str, tiles: int) -> None:
    check("steps.kind", step.kind in STEP_KINDS, f"{where}.kind is {step.kind!r}: expected {', '.join(STEP_KINDS)}")
    for name in ("sync_cycles", "host_bytes", "host_cycles", "global_exchange_cycles", "depth"):
        check_number(f"steps.{name}", getattr(step, name), 0, LARGEST, f"{where}.{name}")
    for name in ("exchange_cycles", "rearrange_cycles", "exchange_pieces"):
        cycles = getattr(step, name)
        check_shape(f"steps.{name}", cycles, tiles if cycles.size else 0, where=f"{where}.{name}")
        check_range(f"steps.{name}", cycles, 0, LARGEST, f"{where}.{name}")
    alone = len(step.exchange_cycles) < len(step.rearrange_cycles)
    check("steps.rearrange_cycles alone", not alone, f"{where}.rearrange_cycles without exchange_cycles")
    check_number("steps.compute", step.compute, NOTHING, len(executable.computes.result_tile), f"{where}.compute")
    runs_on = step.kind == "compute" and step.fixed_cycles == 0
    check("steps.waits", step.waits or runs_on, f"{where}.waits is False: expected a step of nothing but vertices")
    right = (step.compute > NOTHING) == (step.kind == "compute")
    check("steps.compute kind", right, f"{where}.compute is {step.compute}, of a step {step.kind!r}")
    check_number("steps.exchange", step.exchange, NOTHING, len(executable.exchanges), f"{where}.exchange")


def _verify_exchange(exchange: NamedExchange, where: str, tiles: int) -> None:
    check("exchanges.phase", exchange.phase in PHASES, f"{where}.phase is {exchange.phase!r}: expected {', '.join(PHASES)}")
    account = exchange.account
    for name in ACCOUNT:
        check_shape(f"exchanges.{name}", getattr(account, name), tiles, where=f"{where}.{name}")
        check_range(f"exchanges.{name}", getattr(account, name), 0, LARGEST, f"{where}.{name}")
    _verify_messages("exchanges.messages", exchange, account.messages, f"{where}.messages", tiles)
    for number, share in enumerate(exchange.shares):
        check_number("exchanges.shares.bytes_sent", share.bytes_sent, 0, LARGEST, f"{where}.shares[{number}].bytes_sent")
        _verify_messages("exchanges.shares.messages", exchange, share.messages, f"{where}.shares[{number}].messages", tiles)


def _verify_messages(name: str, exchange: NamedExchange, messages: StructuredArray, where: str, tiles: int) -> None:
    check_shape(name, messages, len(messages), where=where)
    for column, high in (("source", tiles), ("destination", tiles), ("bytes", LARGEST), ("variable", len(exchange.variables))):
        check_range(f"{name}.{column}", messages[column], 0, high, f"{where}.{column}")
