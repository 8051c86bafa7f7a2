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


def expected_in_range(offsets: int, rows: int, entries: int, uniform: bool = True) -> int:
    """Of so many offsets those that fall into `rows` of the entries, rounded up; all of them unless they are spread evenly."""
    return ceiling(offsets * min(rows, entries), entries) if uniform and entries else offsets


def _search_cycles(offsets: int, of_entry: int) -> int:
    """binarySearchForIndicesCycleEstimate: the offsets of a range, where they are sorted."""
    return 2 * 10 * (max(offsets, 1) - 1).bit_length() + of_entry * (7 + 8) + 4 + 5


def multi_slice_cycles(
    target: Target, type: ElementType, region: int, offsets: int, in_range: int, *, update: bool = False, divided: bool = False
) -> int:
    """getMultiSliceCycleEstimate, of one worker: `in_range` of its `offsets` copy `region` elements, the others are passed over.

    Where there is a single offset, its elements are `divided` among the workers.
    """
    vector = 4 if type.size == 1 else 2
    vectors = ceiling(_words(region, type.size), vector)
    if divided:
        vectors = share_of_worker(vectors, target)
    copied = in_range * (19 + vectors * (3 if type.size == 1 else 2))
    return (29 if update else 30) + copied + (offsets - in_range) * 8


DIVISION = 12  # slots that find the part of an offset: a product with the reciprocal, put right (ours)


def select_part_cycles(target: Target, type: ElementType, region: int, offsets: int) -> int:
    """A second stage, of one worker: the row of the part that has it, for each of its offsets."""
    return multi_slice_cycles(target, type, region, offsets, offsets) + DIVISION * offsets


def update_op_cycles(
    type: ElementType,
    region: int,
    offsets: int,
    in_range: int,
    *,
    scaled: bool = False,
    scale_is_wider: bool = False,
    in_order: bool = False,
) -> int:
    """getMultiUpdateOpCycleEstimate, of one worker: `in_range` of all `offsets` fall into its rows."""
    wide = type.size == 4
    special = scaled and region in ((2, 4) if wide else (4,))
    cycles = 3 + (29 if wide else 30) - special + (4 + 2 * wide if scaled else 0)
    if in_order:
        cycles += _search_cycles(offsets, 1) + 15
    if wide:
        each = 11
    else:
        each = 12 + scaled
    atoms = region if wide else region // 2
    if not wide and region % 2:
        each += region * 20
    elif special:
        each = (8 if region == 2 else 16) if wide else (12 if scale_is_wider else 9)
    else:
        each += (atoms - 1) * (3 + scale_is_wider)
    return cycles + each * in_range + (0 if in_order else 5 * (offsets - in_range))


def row_scalar_cycles(type: ElementType, rows: int) -> int:
    """SelectFromIntervals and UpdateIntervalsDEC: one element of so many rows by a worker; a half is read, changed and written."""
    return 5 + 1 + 1 + 20 + (12 if type.size == 2 else 8) * rows


def sequence_slice_cycles(target: Target, type: ElementType, elements: int, sequences: int) -> int:
    """SequenceSlice: `elements`, in sequences of one length, four bytes in two cycles; each takes 60 cycles of the supervisor."""
    if sequences == 0:
        return supervisor_slots(40)
    of_sequence = ceiling(elements * type.size // 4 * 2, sequences)
    return supervisor_slots(60 + 60 * sequences) + of_sequence * share_of_worker(sequences, target)
