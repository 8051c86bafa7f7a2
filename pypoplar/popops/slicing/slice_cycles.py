"""Worker cycles of the vertices that slice and update: popopsCycleEstimators and PerformanceEstimation of PopLibs.

Planners and the codelets' estimators call the same formulas.
"""

from __future__ import annotations

from collections.abc import Iterable

from pypoplar.poputil.cycles import ceiling, share_of_worker, supervisor_slots
from pypoplar.target import Target
from pypoplar.types import ElementType

SUPERVISOR_1D = supervisor_slots(11 + 14)  # basicOpSupervisorOverhead, and the division among workers
START_1D, ROW_1D = 39, 24
START_1D_BYTES, ROW_1D_BYTES = 76, 72
START_2D, REGION_2D = 27, 13
ROW_2D = {1: 50, 2: 31, 4: 29, 8: 30}  # by bytes of an element


def _words(elements: int, bytes_of_element: int) -> int:
    """64-bit elements are moved as twice as many 32-bit ones."""
    return 2 * elements if bytes_of_element == 8 else elements


def _vector(target: Target, bytes_of_element: int) -> int:
    """Elements of one round of the loop: four bytes, or what the data path takes."""
    return 4 if bytes_of_element == 1 else target.getDataPathWidth() // (16 if bytes_of_element == 2 else 32)


def dynamic_slice_1d_cycles(target: Target, type: ElementType, region: int, rows: int) -> int:
    """getDynamicSlice1DEstimate: `rows` rows of `region` elements on a tile, each divided among its workers."""
    bytes_of_element = type.size
    copies = share_of_worker(_words(region, bytes_of_element), target) // _vector(target, bytes_of_element)
    start, row = (START_1D_BYTES, ROW_1D_BYTES) if bytes_of_element == 1 else (START_1D, ROW_1D)
    return SUPERVISOR_1D + start + (row + 2 * copies) * rows


def dynamic_slice_2d_cycles(target: Target, type: ElementType, regions: Iterable[int], rows: int, update: bool) -> int:
    """DynamicSlice2D and DynamicUpdateSlice2D: for each region, of so many elements, `rows` rows by one worker."""
    bytes_of_element = type.size
    of_vector = {1: 23 if update else 2, 2: 2}.get(bytes_of_element, 1)
    vector, row = _vector(target, bytes_of_element), ROW_2D[bytes_of_element]
    vectors = (ceiling(_words(region, bytes_of_element), vector) for region in regions)
    return START_2D + sum((row + of_vector * count) * rows + REGION_2D for count in vectors)
