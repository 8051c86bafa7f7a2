"""Which lines of codelets the cycles of vertices went to: executions of blocks, times what lines have of their prices.

A block is a straight run of code, from one branch or loop to the next (`pypoplar.codelet.ir.block_numbers`); what a bundle costs
belongs to the line of its instruction for the main pipe, as in a listing. The slots of a line are those that its vertices were
charged: where estimates decide, lines share them in proportion to what the code would cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NoReturn

from attrs import field, frozen

from pypoplar.arrays.number_ranges import counted
from pypoplar.report.libpva_hints import missing
from pypoplar.spelling import MOST_LISTED, nearest_or_all


@frozen
class SourceLine:
    """A line of a codelet's text, or of a helper function's that it calls, given by `LineCost.source`.

    Attributes
    ----------
    function:
        The function that has it.
    file:
        The file that has it.
    line:
        Its number in the file.
    text:
        The line without its newline.
    """

    function: str
    file: str
    line: int
    text: str


@frozen
class LinePart:
    """What a line has of an execution of a block, given by `CodeletText.blocks`.

    Attributes
    ----------
    line:
        Its place in `CodeletText.lines`.
    slots:
        Worker slots.
    bound:
        Slots that hand-written code could reach, at most `slots`; 0 where it is not known.
    """

    line: int
    slots: int
    bound: int


@frozen
class LoopHint:
    """A loop of a codelet that could be shorter, given by `CodeletText.loops`.

    Attributes
    ----------
    line:
        The place of its line in `CodeletText.lines`.
    first:
        The number of its first block.
    end:
        That of the first block behind it.
    reason:
        Why it does not run on vectors, though the same arithmetic can be written so that it does; empty if it does run on them.
    saved:
        Slots that an execution of its first block takes less where `fields` are `Aligned` to 8 bytes.
    fields:
        The fields that are vectors of floats and not aligned.
    """

    line: int
    first: int
    end: int
    reason: str = ""
    saved: int = 0
    fields: tuple[str, ...] = ()


@frozen
class CodeletText:
    """The text of a vertex type, and what its blocks cost; given by `LineProfile.texts`.

    Attributes
    ----------
    vertex_type:
        The codelet's name.
    workers:
        How many workers a vertex takes: all, of a MultiVertex.
    lines:
        The lines of the codelet and of its helper functions.
    blocks:
        By number of the block what lines have of an execution of it.
    loops:
        The loops that could be shorter.
    """

    vertex_type: str
    workers: int
    lines: tuple[SourceLine, ...]
    blocks: tuple[tuple[LinePart, ...], ...]
    loops: tuple[LoopHint, ...] = ()


@frozen
class VertexGroup:
    """The vertices of one type in one compute set, with all their executions; given by `LineProfile.groups`.

    Attributes
    ----------
    compute_set:
        The compute set's name.
    vertex_type:
        The codelet's name.
    vertices:
        How many vertices there are.
    slots:
        Worker slots that they were charged, by estimates where there are any.
    executions:
        Those of each block; of a MultiVertex the blocks of the worker that took longest count, for the others wait for it.
    """

    compute_set: str
    vertex_type: str
    vertices: int
    slots: int
    executions: tuple[int, ...]


@frozen
class FieldSize:
    """How long a vertex's field is, given by `SlowestVertex.sizes`.

    Attributes
    ----------
    name:
        The field's name.
    elements:
        Elements of all rows.
    rows:
        Rows of a list of vectors; else None.
    """

    name: str
    elements: int
    rows: int | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.elements:,}" + (
            f" in {self.rows:,} {'row' if self.rows == 1 else 'rows'}" if self.rows is not None else ""
        )


@frozen
class SlowestVertex:
    """The vertex of a compute set that took the most cycles in one execution, given by `LineProfile.slowest`.

    Of several it is the first, by tile.

    Attributes
    ----------
    compute_set:
        The compute set's name.
    vertex_type:
        The codelet's name.
    tile:
        Where the vertex is.
    cycles:
        Tile cycles of the execution.
    sizes:
        How long its fields are.
    """

    compute_set: str
    vertex_type: str
    tile: int
    cycles: int
    sizes: tuple[FieldSize, ...]


@frozen
class LineCost:
    """A line with what it cost, given by `LineProfile.lines`.

    Attributes
    ----------
    source:
        The line.
    slots:
        Worker slots as executed.
    share:
        That of all slots of the lines beside it, 0 to 1.
    compiled:
        Slots that its code takes as compiled; None where prices are not those of compiled code.
    bound:
        Slots that hand-written code could reach; None likewise.
    executions:
        Those of the block on it that ran most often: a loop that takes several elements at a time goes round less often than
        there are elements.
    """

    source: SourceLine
    slots: int
    share: float
    compiled: int | None
    bound: int | None
    executions: int


@frozen
class ExecutedBlock:
    """A block of a vertex type as one compute set executed it, and the lines that it stands on; given by `LineProfile.blocks`.

    Attributes
    ----------
    compute_set:
        The compute set's name.
    vertex_type:
        The codelet's name.
    number:
        That of the block in the codelet.
    executions:
        How often it ran.
    slots:
        Worker slots as charged: those of all blocks add up to their vertices'.
    lines:
        The lines that it stands on.
    compiled:
        Slots that its code takes, whatever estimates say; None where prices are not those of compiled code.
    """

    compute_set: str
    vertex_type: str
    number: int
    executions: int
    slots: int
    lines: tuple[SourceLine, ...]
    compiled: int | None = None


@frozen(eq=False, repr=False)
class LineProfile:
    """Cycles by source line, of all runs together, given by `Execution.lines`.

    Attributes
    ----------
    compiled:
        Whether prices are those of compiled code.
    texts:
        The text of each vertex type, and what its blocks cost.
    groups:
        The vertices of each type in each compute set, with their executions.
    slowest:
        The slowest vertex of each compute set.
    """

    compiled: bool
    texts: tuple[CodeletText, ...] = ()
    groups: tuple[VertexGroup, ...] = ()
    slowest: tuple[SlowestVertex, ...] = ()
    _text: Mapping[str, CodeletText] = field(init=False, repr=False)

    if not TYPE_CHECKING:
        __getattr__ = missing

    @_text.default
    def _by_vertex_type(self) -> Mapping[str, CodeletText]:
        return {text.vertex_type: text for text in self.texts}

    def __repr__(self) -> str:
        """How much it is, not all of it: ``<LineProfile of 2 vertex types: 'Scale', 'Sum'>``."""
        names = ", ".join(map(repr, self.vertex_types[:MOST_LISTED])) + (", ..." if len(self.vertex_types) > MOST_LISTED else "")
        return f"<LineProfile of {counted(len(self.vertex_types), 'vertex type')}{f': {names}' if names else ''}>"

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{self!r} is not iterable: lines(vertex_type) gives the lines of a vertex type")

    @property
    def vertex_types(self) -> tuple[str, ...]:
        """The vertex types that ran, those with the most slots first."""
        slots = dict.fromkeys(self._text, 0)
        for group in self.groups:
            slots[group.vertex_type] += group.slots
        ran = {group.vertex_type for group in self.groups}
        return tuple(sorted(ran, key=lambda name: (-slots[name], name)))

    def groups_of(self, vertex_type: str) -> tuple[VertexGroup, ...]:
        """The vertices of a type, by compute set, those with the most slots first.

        Parameters
        ----------
        vertex_type:
            The codelet's name.

        Returns
        -------
        tuple[VertexGroup, ...]
            One for each compute set that has executed it.

        Raises
        ------
        KeyError
            For a type that has not run.
        """
        if vertex_type not in self._text:
            raise KeyError(f"no vertex of the type {vertex_type!r} has run{nearest_or_all(vertex_type, self._text)}")
        groups = [group for group in self.groups if group.vertex_type == vertex_type]
        return tuple(sorted(groups, key=lambda group: -group.slots))

    def lines(self, vertex_type: str, compute_set: str | None = None) -> tuple[LineCost, ...]:
        """All lines of a vertex type's text with what they cost, in one compute set or in all.

        Parameters
        ----------
        vertex_type:
            The codelet's name.
        compute_set:
            The compute set's name; None: all together.

        Returns
        -------
        tuple[LineCost, ...]
            In the order of the text.

        Raises
        ------
        KeyError
            For a type that has not run, or not in this compute set.
        """
        of_type = self.groups_of(vertex_type)
        text, groups = self._text[vertex_type], [group for group in of_type if compute_set in (None, group.compute_set)]
        if compute_set is not None and not groups:
            sets = [group.compute_set for group in of_type]
            raise KeyError(
                f"no vertex of {vertex_type!r} has run in compute set {compute_set!r}{nearest_or_all(compute_set, sets)}"
            )
        charged, code, bounds = ([0] * len(text.lines) for _ in range(3))
        executions = [0] * len(text.lines)
        for group in groups:
            of_group, of_bound = _code_slots(text, group, executions)
            for total, counts in ((charged, _charged(group.slots, of_group)), (code, of_group), (bounds, of_bound)):
                total[:] = map(sum, zip(total, counts, strict=True))
        bounds = [min(pair) for pair in zip(bounds, charged, strict=True)]  # an estimate may say less than the code's bound
        whole = sum(charged)
        return tuple(
            LineCost(
                source,
                slots,
                slots / whole if whole else 0.0,
                compiled if self.compiled else None,
                bound if self.compiled else None,
                times,
            )
            for source, slots, compiled, bound, times in zip(text.lines, charged, code, bounds, executions, strict=True)
        )

    @property
    def blocks(self) -> tuple[ExecutedBlock, ...]:
        """The blocks of codelets that ran, by compute set and vertex type."""
        return tuple(block for group in self.groups for block in _blocks(group, self._text[group.vertex_type], self.compiled))


def _code_slots(text: CodeletText, group: VertexGroup, executions: list[int]) -> tuple[list[int], list[int]]:
    """By line the slots of a group's code, and its bound; `executions` of lines become at least those of the group's blocks."""
    slots, bounds = [0] * len(text.lines), [0] * len(text.lines)
    counts = [0] * len(text.lines)
    for times, parts in zip(group.executions, text.blocks, strict=True):
        for part in parts:
            slots[part.line] += times * part.slots * text.workers
            bounds[part.line] += times * part.bound * text.workers
            counts[part.line] = max(counts[part.line], times)
    executions[:] = map(sum, zip(executions, counts, strict=True))
    return slots, bounds


def _charged(slots: int, code: Sequence[int]) -> list[int]:
    """Slots shared out in proportion to those of the code, all of them. What costs nothing as code is the first line's."""
    whole = sum(code)
    if slots == whole:
        return list(code)
    if not whole:
        return [slots, *[0] * (len(code) - 1)][: len(code)]
    return [after - before for before, after in pairwise([0, *(end * slots // whole for end in accumulate(code))])]


def _blocks(group: VertexGroup, text: CodeletText, compiled: bool) -> Iterable[ExecutedBlock]:
    """The blocks that the vertices of a group ran, with their part of what these were charged."""
    numbers = [number for number, times in enumerate(group.executions) if times]
    code = [group.executions[number] * text.workers * sum(part.slots for part in text.blocks[number]) for number in numbers]
    for number, slots, of_code in zip(numbers, _charged(group.slots, code), code, strict=True):
        lines = tuple(text.lines[place] for place in sorted({part.line for part in text.blocks[number]}))
        executions = group.executions[number]
        yield ExecutedBlock(group.compute_set, group.vertex_type, number, executions, slots, lines, of_code if compiled else None)
