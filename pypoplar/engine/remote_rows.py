"""The rows of a remote buffer on the host: pages of rows, each made when a row of it is first written."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import AnyArray, Int64s
from pypoplar.arrays.groups import opens
from pypoplar.types import ElementType

PAGE_BYTES = 1 << 16  # of small rows; a page has one row at least


class RemoteRows:
    """Rows of so many elements, all zeros at first. Numbers of rows are from 0 and have been checked."""

    __slots__ = ("_dtype", "_elements", "_pages", "_rows_of_page", "repeats")

    def __init__(self, repeats: int, elements: int, type: ElementType) -> None:
        self.repeats = repeats
        self._elements = elements
        self._dtype = type.dtype
        self._rows_of_page = min(repeats, max(1, PAGE_BYTES // max(elements * type.size, 1)))
        self._pages: dict[int, AnyArray] = {}

    def row(self, number: int) -> AnyArray:
        """One row, to be read or written to."""
        page, place = divmod(number, self._rows_of_page)
        values: AnyArray = self._page(page)[place]
        return values

    def read(self, numbers: Int64s, into: AnyArray) -> None:
        """Copy rows into an array of as many."""
        for page, here, places in self._by_page(numbers):
            into[here] = self._pages[page][places] if page in self._pages else 0

    def write(self, numbers: Int64s, values: AnyArray) -> None:
        """Copy an array into as many rows; where a number stands several times, the last one stays."""
        for page, here, places in self._by_page(numbers):
            self._page(page)[places] = values[here]

    def _by_page(self, numbers: Int64s) -> list[tuple[int, Int64s, Int64s]]:
        """Each page with the positions among the numbers that are its rows, in order, and the places of these rows in it."""
        pages, places = np.divmod(numbers, self._rows_of_page)
        order = np.argsort(pages, kind="stable")
        parts = np.split(order, np.flatnonzero(opens(pages[order]))[1:]) if len(order) else []
        return [(int(pages[part[0]]), part, places[part]) for part in parts]

    def _page(self, number: int) -> AnyArray:
        if number not in self._pages:
            self._pages[number] = np.zeros((self._rows_of_page, self._elements), self._dtype)
        return self._pages[number]
