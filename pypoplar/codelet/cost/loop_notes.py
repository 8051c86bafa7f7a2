"""What would make the counted loops of a codelet shorter: to write them so that they run on vectors, or to align their vectors."""

from __future__ import annotations

from attrs import evolve, frozen

from pypoplar.codelet.cost.compiled_code import compiled
from pypoplar.codelet.cost.pricing import COMPILED, Pricing, loop_blocks
from pypoplar.codelet.cost.vector_loops import ALIGNED
from pypoplar.codelet.ir.typed import TypedCodelet, TypedField

FLOATS = ("f32", "f16")


@frozen
class LoopNote:
    """A counted loop that could be shorter.

    `blocks` are the numbers of its blocks. `reason` says why it does not run on vectors, though the same arithmetic can be written
    so that it does; empty if it does. Then `saved` are the slots that an execution of its first block takes less where the vectors
    of `fields` are aligned to `ALIGNED` bytes.
    """

    where: int
    blocks: range
    reason: str = ""
    saved: int = 0
    fields: tuple[str, ...] = ()


def loop_notes(codelet: TypedCodelet, pricing: Pricing) -> list[LoopNote]:
    """The loops of which something is to be said; none where prices are not those of compiled code."""
    if pricing.cost != COMPILED or codelet.kind == "supervisor":
        return []
    fields = tuple(one.name for one in codelet.fields if _could_be_aligned(one))
    aligned = evolve(codelet, fields=tuple(evolve(one, alignment=ALIGNED) if one.name in fields else one for one in codelet.fields))
    as_it_is, other = (compiled(form, pricing.target, pricing.in_place).loops for form in (codelet, aligned))
    notes = []
    for loop, like_it, blocks in zip(as_it_is, other, loop_blocks(codelet, pricing), strict=True):
        if loop.curable:
            notes.append(LoopNote(loop.code.where, blocks, loop.reason))
        elif loop.price is not None and like_it.price is not None and like_it.price.slots < loop.price.slots:
            notes.append(LoopNote(loop.code.where, blocks, "", loop.price.slots - like_it.price.slots, fields))
    return notes


def _could_be_aligned(field: TypedField) -> bool:
    """Whether a field has vectors of floats that begin anywhere."""
    return field.form != "scalar" and field.element in FLOATS and field.alignment < ALIGNED
