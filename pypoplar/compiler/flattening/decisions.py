"""Where data decide how a program goes on, and what is known of that without a run: what was assumed, and what never changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from attrs import define, field, frozen

from pypoplar.arrays.dtypes import AnyArray, Bools, Bytes, Int64s
from pypoplar.codelet.ir.terms import line_text
from pypoplar.compiler.check.computed_control import ComputedControl
from pypoplar.compiler.check.connected_regions import Regions
from pypoplar.compiler.control.operation_tree import OperationTree
from pypoplar.compiler.exchange.merged_copies import MergedCopies
from pypoplar.compiler.flattening.flattening_state import Flattening
from pypoplar.errors import ControlProgramError
from pypoplar.executable.claims import LARGEST
from pypoplar.executable.cost_facts import COMPUTED, ROUNDS, SHARE, UNKNOWN, VALUE, CostFacts, Decision
from pypoplar.graph.frozen import ElementRuns, FrozenGraph
from pypoplar.graph.graph import Graph
from pypoplar.graph.host_links import HostConnections
from pypoplar.graph.tensor import Tensor
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import Opcode, ProgramRow
from pypoplar.program.assumptions import AssumedCount, AssumedShare, AssumedValue, Assumption
from pypoplar.program.base import Program
from pypoplar.program.branches import If, Switch
from pypoplar.program.loops import RepeatWhileFalse, RepeatWhileTrue
from pypoplar.program.messages import AbortOnCondition

DECIDING = (Opcode.BRANCH, Opcode.UNLESS_EQUAL)
DECIDED = frozenset((If, Switch, RepeatWhileTrue, RepeatWhileFalse, AbortOnCondition))  # kinds of programs that ask data


@frozen(eq=False)
class Assumed:
    """The assumptions of a program that is priced and never run, and what is known of the data that decide in it, if any do."""

    assumptions: tuple[Assumption, ...]
    changes: Changes | None


@frozen(eq=False)
class Changes:
    """Which variables a program writes, and what they follow from."""

    written: Bools  # [variables]
    computed: ComputedControl

    @staticmethod
    def of(
        graph: FrozenGraph, tree: OperationTree, regions: Regions, by_host: Iterable[Tensor], differing: Sequence[int]
    ) -> Changes | None:
        """Of the programs of an engine, see `ComputedControl.of`; None where no data decide."""
        if DECIDED.isdisjoint(tree.kinds):
            return None
        written = written_variables(graph, regions, tree)
        written[differing] = True  # constants that are not the same on all replicas are data
        return Changes(written, ComputedControl.of(graph, tree, regions, by_host, differing))


@frozen(eq=False)
class ControlProgram:
    """What computes values that decide: copies and executions of compute sets, and the tensors to be read afterwards."""

    programs: tuple[Program, ...]
    reads: tuple[Tensor, ...]


def check_own_graph(assumption: Assumption, graph: Graph) -> None:
    """`ControlProgramError` for an assumption about a tensor of another graph; about programs of others nobody asks."""
    if isinstance(assumption, AssumedValue) and assumption.tensor.graph is not graph:
        raise ControlProgramError(f"{assumption} is about a tensor of another graph: an Engine's programs are of its own graph")


def written_variables(graph: FrozenGraph, regions: Regions, tree: OperationTree) -> Bools:
    """bool [variables]: those of which vertices or programs write anything."""
    written = np.zeros(len(graph.variables.names) + 1, bool)  # one for elements of no variable
    tensors = [tensor for access in tree.accesses for tensor in access.writes]
    for starts in (regions.key[regions.written] % regions.span, *(tensor.runs().start for tensor in tensors)):
        written[np.searchsorted(graph.variables.first, starts, side="right") - 1] = True
    return written[:-1]


def find_decisions(flattening: Flattening, assumed: Assumed, compiled: Callable[[ControlProgram], Bytes]) -> CostFacts:
    """The decisions of a control program whose rows are all there; `compiled` makes a file of what computes some of them.

    `ControlProgramError` for assumptions that are given twice, or about what none of its programs asks for.
    """
    known, changes = _Known.of(assumed.assumptions), assumed.changes
    if changes is None:
        known.require_use()
        return CostFacts((), tuple(map(str, assumed.assumptions)), np.zeros(0, np.uint8), np.zeros((0, 2), np.int64))
    decisions, control = [], _Control(flattening, changes.computed)
    for number, (row, owner) in enumerate(zip(flattening.rows, flattening.row_owners, strict=True)):
        if row[ProgramRow.OPERATION] not in DECIDING or owner is None:
            continue
        tensor = owner.reads()[0]
        how, amount, assumption = known.of_program(owner, _element(tensor))
        value = _unchanging(flattening.graph, changes.written, flattening.host, _element(tensor)) if how == UNKNOWN else None
        if value is not None:
            how, amount = VALUE, value
        if how == UNKNOWN and (place := control.read_of(tensor)) != NOTHING:
            how, amount = COMPUTED, place
        if how == VALUE:
            amount = _as_compared(int(amount), Opcode(row[ProgramRow.OPERATION]))
        made_at = line_text(owner.location)
        decisions.append(Decision(number, type(owner).__name__, made_at, tensor.getDebugStr(), how, float(amount), assumption))
    known.require_use()
    needed = control.program()
    file = compiled(needed) if needed.reads else np.zeros(0, np.uint8)
    return CostFacts(tuple(decisions), tuple(map(str, assumed.assumptions)), file, control.rows(needed))


def _element(tensor: Tensor) -> int:
    """The element id of a tensor of one element."""
    return int(tensor.runs().start[0])


def _as_compared(value: int, operation: Opcode) -> int:
    """A value as a row of the program sees it: a Switch compares 32 bits as a signed number, a branch asks only whether it is 0."""
    if operation == Opcode.UNLESS_EQUAL:
        return (value + (1 << 31)) % (1 << 32) - (1 << 31)
    return max(-LARGEST, min(value, LARGEST))


@define(eq=False)
class _Control:
    """Collects what computes values that decide."""

    flattening: Flattening
    computed: ComputedControl
    reads: dict[int, Tensor] = field(factory=dict)  # by element
    programs: dict[int, Program] = field(factory=dict)  # by id, in the order in which they were found
    _groups: dict[int, list[MergedCopies]] = field(init=False)  # by the id of a copy

    def __attrs_post_init__(self) -> None:
        self._groups = {}
        for group in self.flattening.merged:
            for placed in group.copies:
                self._groups.setdefault(id(placed.copy), []).append(group)

    def read_of(self, tensor: Tensor) -> int:
        """The number of the read that gives a tensor of one element; NOTHING if it is data."""
        element = _element(tensor)
        if element not in self.reads:
            needed = self.computed.programs_for(tensor)
            if needed is None or not all(map(self._stands_alone, needed)):
                return NOTHING
            self.programs |= {id(program): program for program in needed}
            self.reads[element] = tensor
        return list(self.reads).index(element)

    def _stands_alone(self, program: Program) -> bool:
        """Whether its row tells that it runs: of copies that are one step the first has the row, so each is there once."""
        groups = self._groups.get(id(program), [])
        several = [group for group in groups if len(group.copies) > 1]
        return all(self.computed.occurrences[id(placed.copy)] == 1 for group in several for placed in group.copies)

    def program(self) -> ControlProgram:
        return ControlProgram(tuple(self.programs.values()), tuple(self.reads.values()))

    def rows(self, control: ControlProgram) -> Int64s:
        """[operations, 2]: rows at which an operation of the control program runs, and its number."""
        numbers = {id(program): number for number, program in enumerate(control.programs)}
        found = [
            (row, numbers[one])
            for row, owner in enumerate(self.flattening.row_owners)
            if self.flattening.rows[row][ProgramRow.OPERATION] in (Opcode.COMPUTE, Opcode.MOVE) and owner is not None
            for one in self._together(owner)
            if one in numbers
        ]
        return np.array(found, np.int64).reshape(-1, 2)

    def _together(self, owner: Program) -> list[int]:
        """The ids of the programs that run at the row of one."""
        groups = self._groups.get(id(owner), [])
        if groups and len(groups[0].copies) > 1:
            return [id(placed.copy) for placed in groups[0].copies]
        return [id(owner)]


@define(eq=False)
class _Known:
    """Assumptions by what they are about, and which of them anybody has asked for."""

    assumptions: Sequence[Assumption]
    by_element: dict[int, int] = field(factory=dict)  # number of the assumption
    by_program: dict[int, int] = field(factory=dict)  # the same, by the id of the program
    used: set[int] = field(factory=set)

    @staticmethod
    def of(assumptions: Sequence[Assumption]) -> _Known:
        known = _Known(assumptions)
        for number, assumption in enumerate(assumptions):
            places, key = (
                (known.by_element, _element(assumption.tensor))
                if isinstance(assumption, AssumedValue)
                else (known.by_program, id(assumption.program))
            )
            if key in places:
                raise ControlProgramError(f"{assumption} is about the same as {assumptions[places[key]]}: leave one of the two out")
            places[key] = number
        return known

    def of_program(self, program: Program, element: int) -> tuple[str, float, int]:
        """What is assumed of a program that asks for an element: how it is known, the number, and which assumption says so."""
        by_program, by_element = self.by_program.get(id(program)), self.by_element.get(element)
        if by_program is not None and by_element is not None:
            first, second = self.assumptions[by_program], self.assumptions[by_element]
            raise ControlProgramError(f"{second} is about the same as {first}: leave one of the two out")
        number = by_program if by_program is not None else by_element
        if number is None:
            return UNKNOWN, 0, NOTHING
        self.used.add(number)
        match self.assumptions[number]:
            case AssumedValue(value=value):
                return VALUE, value, number
            case AssumedCount(count=count):
                return ROUNDS, count, number
            case AssumedShare(share=share):
                return SHARE, share, number

    def require_use(self) -> None:
        unused = [str(assumption) for number, assumption in enumerate(self.assumptions) if number not in self.used]
        if unused:
            what = "a tensor or program" if len(unused) == 1 else "tensors or programs"
            raise ControlProgramError(f"{' and '.join(unused)}: no program of the engine decides by such {what}")


def _unchanging(graph: FrozenGraph, written: Bools, host: HostConnections, element: int) -> int | None:
    """What an element holds from the start, if nothing changes it: no program, and not the host by a handle."""
    variable = _variable_of(graph, element)
    by_host = (_variable_of(graph, int(start)) for tensor in host.writes.values() for start in tensor.runs().start)
    return None if written[variable] or variable in by_host else _value_at(graph, variable, element)


def _variable_of(graph: FrozenGraph, element: int) -> int:
    return int(np.searchsorted(graph.variables.first, element, side="right")) - 1


def _value_at(graph: FrozenGraph, variable: int, element: int) -> int | None:
    """What an element holds when the program is loaded, if it is said."""
    if variable in graph.variables.constants:
        flat: AnyArray = np.broadcast_to(graph.variables.constants[variable], _size(graph, variable))
        return int(flat[element - int(graph.variables.first[variable])])
    value = None
    for runs, values in graph.variables.initial:
        place = _place_in(runs, element)
        if place is not None:
            value = int(np.broadcast_to(values, runs.elements())[place])
    return value


def _size(graph: FrozenGraph, variable: int) -> int:
    return int(graph.variables.first[variable + 1] - graph.variables.first[variable])


def _place_in(runs: ElementRuns, element: int) -> int | None:
    """Where an element is in a view, if it is there; the last place where it is."""
    before = 0
    found = None
    for start, count, step in zip(runs.start.tolist(), runs.count.tolist(), runs.step.tolist(), strict=True):
        distance = element - start
        if step == 0:
            if distance == 0:
                found = before + count - 1
        elif distance % step == 0 and 0 <= distance // step < count:
            found = before + distance // step
        before += count
    return found
