"""Which of all places get a mutant: as many on each line, as far as the number goes, and lines at even distances."""

from __future__ import annotations

import itertools
import random
from collections.abc import Hashable, Sequence


def drawn_places(lines: Sequence[Hashable], count: int, seed: int) -> list[int]:
    """Places of `lines`, the line of each, in another order: the first `count` are spread evenly, so are those that follow.

    Each line gives one place before one gives its second.
    """
    numbers = random.Random(seed)
    by_line: dict[Hashable, list[int]] = {}
    for place, line in enumerate(lines):
        by_line.setdefault(line, []).append(place)
    waiting = list(by_line.values())
    for places in waiting:
        numbers.shuffle(places)
    order: list[int] = []
    while waiting:
        portion = max(min(count - len(order), len(waiting)), 1)
        bounds = [number * len(waiting) // portion for number in range(portion + 1)]
        chosen = [numbers.randrange(begin, end) for begin, end in itertools.pairwise(bounds)]
        order += [waiting[number].pop() for number in chosen]
        rest = [number for number in range(len(waiting)) if number not in set(chosen)]
        if len(order) >= count:
            numbers.shuffle(rest)
            order += [waiting[number].pop() for number in rest]
        waiting = [places for places in waiting if places]
    return order
