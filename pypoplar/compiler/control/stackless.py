"""Functions that call themselves, however deep: programs nest deeper than Python's own stack reaches.

Such a function is written as a generator that yields each call and is sent what that call returns:

    def height(node: Node) -> Calls[int]:
        heights = []
        for child in node.children:
            heights.append((yield height(child)))
        return 1 + max(heights, default=0)

    answer(height(root))
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

Answer = TypeVar("Answer")
Calls: TypeAlias = Generator["Calls[Any]", Any, Answer]


def answer(call: Calls[Answer]) -> Answer:
    """What a call returns, with all calls below it."""
    unfinished: list[Calls[Any]] = [call]
    value: Any = None
    while unfinished:
        try:
            inner = unfinished[-1].send(value)
        except StopIteration as finished:
            value = finished.value
            unfinished.pop()
        else:
            unfinished.append(inner)
            value = None
    returned: Answer = value
    return returned
