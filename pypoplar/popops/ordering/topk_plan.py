"""The steps of a top-k, and how rows and pairs are divided among tiles."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from pypoplar.popops.ordering.topk_cycles import Companions, swap_cycles
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.target import Target
from pypoplar.types import ElementType

WORD = 4  # bytes of a key and of a value
MOST_COMPARISONS = 1 << 29  # of all steps: each has its variables and views, which the host builds one step after the other
PAIRS_OF_A_WORKER = 2  # what a worker stores at least: whole words of 8 bytes


@frozen
class NetworkStep:
    """Each element of a row is compared with one of its block of ``2 * distance``, and the better one comes first.

    An element is compared with the one at `distance`, or, with `mirrored`, with the one as far from the other end of the block.
    With `halves` the second halves of the blocks are given up then.
    """

    elements: int
    distance: int
    mirrored: bool
    halves: bool = False

    def pairs(self) -> int:
        """How many pairs of a row are compared; the last block may be cut off."""
        blocks, rest = divmod(self.elements, 2 * self.distance)
        return blocks * self.distance + max(rest - self.distance, 0)


def power_of_two(number: int) -> int:
    """The smallest power of two that is not below."""
    return 1 << (number - 1).bit_length()


def network_steps(elements: int, k: int, ordered: bool) -> Iterator[NetworkStep]:
    """The steps after which the first `k` elements of a row are its best ones, in order if that is wanted.

    Blocks of the next power of two are sorted by a bitonic network. Then two blocks at a time become one: the better of the
    one's element and of the other's counted from its end, put in order again. A row that is no power of two is one whose last
    elements are worse than all others: they never move, so that they need not be there.
    """
    block = power_of_two(k)
    distance = 1
    while distance < min(block, elements):
        yield NetworkStep(elements, distance, mirrored=True)
        yield from _cleaning(elements, distance)
        distance *= 2
    while elements > block:
        yield NetworkStep(elements, block, mirrored=True, halves=True)
        pairs, rest = divmod(elements, 2 * block)
        elements = pairs * block + min(rest, block)
        if ordered or elements > block or k < block:
            yield from _cleaning(elements, block)


def check_network(call: str, rows: int, elements: int, k: int, ordered: bool) -> None:
    """`PoplibsError` for a network that would take minutes and many times the memory to build that a machine has."""
    pairs = [step.pairs() for step in network_steps(elements, k, ordered)]
    comparisons = rows * sum(pairs)
    if comparisons > MOST_COMPARISONS:
        raise PoplibsError(
            f"{call}: k = {k:,} of {elements:,} elements takes {comparisons:,} comparisons in {len(pairs)} steps, and at most "
            f"{MOST_COMPARISONS:,} are built; sort parts, and take the best of these"
        )


def _cleaning(elements: int, block: int) -> Iterator[NetworkStep]:
    """The steps that put blocks in order whose first halves have nothing worse than their second halves."""
    distance = block // 2
    while distance:
        yield NetworkStep(elements, distance, mirrored=False)
        distance //= 2


@frozen
class RowDivision:
    """Rows in groups, and the pairs of a group in parts: a tile has one part."""

    rows: int  # of a group
    parts: int

    def pairs_of_tile(self, pairs: int, rows: int) -> int:
        """The pairs of a tile, of `pairs` of each row, where a group has so many rows."""
        each = ceiling(pairs * rows, self.parts)
        return min(pairs * rows, ceiling(each, PAIRS_OF_A_WORKER) * PAIRS_OF_A_WORKER)


def step_cycles(target: Target, division: RowDivision, pairs: int, type: ElementType, companions: Companions) -> int:
    """Cycles of a step in which so many pairs of each row are compared: a vertex, and an exchange if rows are on several tiles."""
    each = division.pairs_of_tile(pairs, division.rows)
    workers = target.getNumWorkerContexts()
    share = min(each, ceiling(ceiling(each, PAIRS_OF_A_WORKER), workers) * PAIRS_OF_A_WORKER)
    compute = swap_cycles(share, type, companions) * workers
    if division.parts == 1:
        return compute
    arriving = 2 * each * WORD * (1 if companions is Companions.NONE else 2)
    return compute + target.getMinIPUSyncDelay() + ceiling(arriving, target.getExchangeBytesPerCycle())


def plan_division(
    target: Target, rows: int, elements: int, k: int, ordered: bool, type: ElementType, companions: Companions
) -> RowDivision:
    """The cheapest of all numbers of tiles for a row: the powers of two, and all tiles over the rows."""
    tiles = target.getNumTiles()
    candidates = {1 << power for power in range(tiles.bit_length())} | {max(tiles // max(rows, 1), 1)}
    pairs = [step.pairs() for step in network_steps(elements, k, ordered)]
    divisions = [RowDivision(ceiling(rows, min(rows, tiles // parts)), parts) for parts in sorted(candidates)]
    return min(divisions, key=lambda division: sum(step_cycles(target, division, each, type, companions) for each in pairs))
