"""Prices of basic blocks: each straight run of statements begins with the sum of its slots, and of its work."""

from __future__ import annotations

from attrs import evolve

from pypoplar.codelet.ir.flops import bytes_of, flops_of
from pypoplar.codelet.ir.prices import BRANCH, ENTRY_AND_EXIT, LOOP_START, price_of, round_slots
from pypoplar.codelet.ir.typed import Block, Break, Continue, For, If, Leave, Once, Price, Return, Special, Statement, While


def priced(body: Block) -> Block:
    """The body of a codelet with its prices. Entry and exit are paid at its start."""
    return _block(body, ENTRY_AND_EXIT)


def _block(block: Block, slots: int = 0) -> Block:
    """`block` with a price before each straight run; the first has `slots` on top."""
    made: list[Statement] = []
    run: list[Statement] = []

    def close() -> None:
        nonlocal slots
        flops, size = sum(map(flops_of, run)), sum(map(bytes_of, run))
        if slots or flops or size:
            made.append(Price(slots, flops, size))
        made.extend(run)
        run.clear()
        slots = 0

    for one in block:
        match one:
            case If():
                slots += BRANCH
                close()
                made.append(evolve(one, then=_block(one.then), orelse=_block(one.orelse)))
            case While():
                close()
                made.append(evolve(one, head=_block(one.head, BRANCH), body=_block(one.body)))
            case For():
                slots += LOOP_START
                bound = next((last for last in run[-1:] if getattr(last, "target", None) == one.stop), None)
                close()
                made.append(evolve(one, body=_block(one.body, round_slots(one.body, bound))))
            case Once():
                close()
                made.append(evolve(one, body=_block(one.body)))
            case Leave() | Break() | Continue() | Return():
                close()
                made.append(one)
            case _:
                slots += price_of(one)
                run.append(one)
                if isinstance(one, Special) and one.name == "cycle_count":
                    close()  # what comes after the reading is not part of it
    close()
    return tuple(made)
