"""Damage to the target, the tiles' memory, its image, steps and exchanges."""

from __future__ import annotations

from damage import LAST, Damages, both, given, holding, on, room_on, tried
from executable_checks import OFF
from executable_damage import Change, Opened, more, put, put_leaf

from pypoplar.executable.claims import LARGEST
from pypoplar.executable.verify.executable_claims import CATEGORIES


def total(damaged: Opened, tile: int) -> int:
    """Bytes that a tile holds."""
    return sum(int(damaged.array("memory", name)[tile]) for name in CATEGORIES)


def one_byte_too_much(damaged: Opened) -> None:
    limit = damaged.executable().target.getBytesPerTile()
    damaged.array("memory", "gaps")[0] += limit + 1 - total(damaged, 0)


def one_byte_more_than_needed(damaged: Opened) -> None:
    """A tile has 65 bytes more than what it holds."""
    whole = total(damaged, 0) // 64 * 64 + 128
    damaged.array("tile_bytes")[0] = whole
    damaged.array("memory", "gaps")[0] += whole - 65 - total(damaged, 0)


def as_large_as_addresses(damaged: Opened) -> None:
    """All tiles together have LARGEST bytes."""
    sizes = damaged.array("tile_bytes")
    holding(0, code=LARGEST - 1, variables=LARGEST - 1)(damaged)
    sizes[0] += LARGEST - int(sizes.sum())


def first_pieces(**values: tuple[int, ...]) -> Change:
    """Changes of the first pieces of the image, in whose places all fits."""

    def change(damaged: Opened) -> None:
        image = {name: damaged.array("image", name) for name in ("offset", "bytes", "tile")}
        image["offset"][:4] = 0
        for name, numbers in values.items():
            image[name][: len(numbers)] = numbers
        rest = len(damaged.arrays["image.data"]) - int(image["bytes"].sum())
        image["bytes"][len(values["bytes"])] += rest

    return change


def rearranged_without_exchange(damaged: Opened) -> None:
    step = next(step for step in damaged.tree["steps"] if step["rearrange_cycles"][2])
    step["exchange_cycles"][2] = 0


def computing_step(damaged: Opened) -> None:
    """The step of a Sync is one of the compute set after the last."""
    step = next(step for step in damaged.tree["steps"] if step["kind"] == "sync")
    step.update(kind="compute", compute=len(damaged.arrays["computes.result_tile"]))


def beyond_the_tile(damaged: Opened) -> Change:
    """The first piece of the image ends one byte beyond its tile."""
    image, size = damaged.executable().image, damaged.array("tile_bytes")
    return put("image.offset", 0, size[image.tile[0]] - image.bytes[0] + 1)


OF_MEMORY: Damages = {
    "target.architecture": on("transfers", put_leaf("target", "architecture", "ipu9")),
    "tile_bytes": on("nothing", put("tile_bytes", 0, -64), OFF),  # by one it would not be aligned
    "tile_bytes alignment": on("transfers", put("tile_bytes", 3, more)),
    "tile_bytes need": on("nothing", one_byte_more_than_needed),
    "tile_bytes total": on("nothing", as_large_as_addresses),
    "memory": on("nothing", one_byte_too_much),
    "memory parts": on("vertices", put("memory.always_live", 0, more)),
    **{f"memory.{name} low": on("nothing", holding(0, **{"variables": 999, "code": 999, name: -1})) for name in CATEGORIES},
    **{f"memory.{name} high": on("nothing", holding(0, **{name: LARGEST})) for name in CATEGORIES},
    "memory.always_live low": on("nothing", holding(0, code=99, always_live=-1)),
    "memory.always_live high": on("nothing", holding(0, code=LARGEST - 1, stack=1, always_live=LARGEST)),
    "memory.not_always_live low": on("nothing", holding(0, code=99, always_live=100, not_always_live=-1)),
    "memory.not_always_live high": on("nothing", holding(0, code=LARGEST - 1, stack=1, always_live=0, not_always_live=LARGEST)),
    "image.offset high": on("transfers", put("image.offset", 0, LAST), OFF),  # with the bytes it goes round, as the next does
    "image.bytes high": on("transfers", both(room_on(0), first_pieces(bytes=(LAST, LAST), offset=(1, 1), tile=(0, 0, 0))), OFF),
    "image.bytes low": on("transfers", first_pieces(bytes=(-1,))),
    "image reach": on("transfers", given(beyond_the_tile)),
    "image total": on("transfers", put("image.bytes", 0, more)),
    "exchanges.phase": on("vertices", put_leaf("exchanges", 0, "phase", "during")),
    "steps.kind": on("vertices", put_leaf("steps", 1, "kind", "rest")),
    "steps.waits": on("vertices", put_leaf("steps", 1, "waits", False)),
    "steps.rearrange_cycles alone": tried("transfers", [rearranged_without_exchange]),
    "steps.compute high": on("control", computing_step),
    "steps.compute kind": on("vertices", put_leaf("steps", 1, "compute", 0)),
}
