"""What may run side by side: the shapes of code that a backend may run for eight vertices, or rounds of a loop, at a time.

A sum in the order written waits for its last addition, so eight sums are run together: of eight vertices of a group, or of
eight rounds of a loop around the sum. Each keeps its own order of operations, so nothing changes but the time. The shape is: some
straight code, one loop that carries a floating-point value from round to round, and some more code. Only that last part writes to
memory and faults, so that the others can be tried out for eight at once and given up again.

Which operations can be done for eight values at once is what their rows say (`pypoplar.codelet.operations`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from attrs import frozen

from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.loop_checks import LoopPlan, never_faults, plan_loop
from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.proven_accesses import AccessLine, PlannedBlock, PlannedStatement, ProvenLoad
from pypoplar.codelet.ir.span_roots import span_roots, stored_fields
from pypoplar.codelet.ir.typed import (
    Apply,
    Block,
    Breakpoint,
    For,
    Length,
    Literal,
    Load,
    Local,
    Member,
    Price,
    PricedCodelet,
    Row,
    Slice,
    Span,
    Statement,
    Store,
    ViewAs,
    While,
)
from pypoplar.codelet.ir.walk import assigned, inner_blocks, read_first, reads, walk
from pypoplar.codelet.operations.registers import FLOATS
from pypoplar.codelet.operations.table import typed_operation

_MOST_COMMON_LINES = 2
_LONGEST_ENDING = 40  # statements; it is written once for each of the eight


@frozen
class LanesPlan:
    """Code of the shape that is run eight times side by side."""

    before: Block
    loop: For
    step: int  # the loop's, not 0
    loop_plan: LoopPlan
    after: Block
    body: PlannedBlock  # the loop plan's, without what only computed indices
    taken: frozenset[str]  # locals that the loop finds set
    left: frozenset[str]  # locals that the loop sets and something after it reads
    stored: tuple[Span, ...]  # scalar fields that are written before `after`
    common: tuple[AccessLine, ...]  # lines of elements that all eight may have in common


def plan_vertices(codelet: PricedCodelet, checks: Checks) -> LanesPlan | None:
    """The shape of a codelet for running eight vertices at a time, if it has it and gains by it."""
    if codelet.kind == "multi" or codelet.in_place or checks.stochastic or not checks.only_counts:
        return None
    return _plan(codelet.body, codelet, read_first)


def plan_rounds(loop: For, codelet: PricedCodelet, checks: Checks) -> LanesPlan | None:
    """The shape of a loop's body for running eight rounds at a time, if it has it and gains by it.

    No round may read what another one sets, in locals or in memory.
    """
    if codelet.in_place or checks.stochastic or not checks.only_counts:
        return None
    if loop.variable.name in assigned(loop.body):
        return None
    if read_first(loop.body) & assigned(loop.body):
        return None
    roots = span_roots(codelet)
    written, read = (_fields_of(loop.body, kind, roots) for kind in (Store, Load))
    if not all(_only_own_element(loop, name, roots) for name in written & read):
        return None
    inside = next((statement for statement in loop.body if isinstance(statement, For)), loop)
    lanes = _plan(loop.body, codelet, lambda after: _read_outside(codelet.body, inside))
    return lanes if lanes is not None and not lanes.stored else None


def _plan(block: Block, codelet: PricedCodelet, read_later: Callable[[Block], set[str]]) -> LanesPlan | None:
    place = next((i for i, statement in enumerate(block) if isinstance(statement, For)), None)
    if place is None:
        return None
    before, loop, after = block[:place], block[place], block[place + 1 :]
    assert isinstance(loop, For)
    if loop.price is not None:  # its rounds carry nothing
        return None
    ending = list(walk(after))
    if len(ending) > _LONGEST_ENDING or any(isinstance(statement, For | While) for statement in ending):
        return None
    stored = stored_fields(codelet)
    plan = plan_loop(loop, stored)
    if plan is None or not plan.straight or not isinstance(loop.step, Literal) or loop.step.value == 0:
        return None
    needed = read_later(after)
    body = _without_unused(plan.body, needed)
    if not all(map(_can_be_tried, before)) or not all(_has_lanes(statement) for statement in body):
        return None
    if not _carries_float(body):
        return None
    return LanesPlan(
        before=before,
        loop=loop,
        step=int(loop.step.value),
        loop_plan=plan,
        after=after,
        body=body,
        taken=frozenset(read_first(body)),
        left=frozenset(needed & assigned(body)),
        stored=tuple(dict.fromkeys(statement.span for statement in (*before, *body) if isinstance(statement, Store))),
        common=_common_lines(plan, codelet, stored),
    )


def _only_own_element(loop: For, name: str, roots: Mapping[str, frozenset[str]]) -> bool:
    """Whether a round reads and writes only its own element of a field: the one that the loop's variable numbers."""
    accesses = [statement for statement in walk(loop.body) if isinstance(statement, Load | Store)]
    of_field = [access for access in accesses if name in roots[access.span.name]]
    return all(access.span.name == name and access.index == loop.variable for access in of_field)


def _read_outside(block: Block, loop: For) -> set[str]:
    """Names that a block reads anywhere but in one loop."""
    names: set[str] = set()
    for statement in block:
        if statement is not loop:
            names |= reads(statement).union(*(_read_outside(inner, loop) for inner in inner_blocks(statement)))
    return names


def _fields_of(block: Block, kind: type[Load] | type[Store], roots: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The fields that a block loads from or stores to."""
    spans: Iterable[Span] = [statement.span for statement in walk(block) if isinstance(statement, kind)]
    return frozenset(root for span in spans for root in roots[span.name])


def _without_unused(body: PlannedBlock, wanted: set[str]) -> PlannedBlock:
    """A loop's body without the operations whose results nobody reads: many only computed an index that has been proven."""
    while True:
        read = wanted.union(*map(reads, body))
        kept = tuple(statement for statement in body if not isinstance(statement, Apply) or statement.target.name in read)
        if len(kept) == len(body):
            return body
        body = kept


def _can_be_tried(statement: Statement) -> bool:
    """Whether a statement leaves nothing behind; scalar fields are written later."""
    if isinstance(statement, Store):
        return not statement.checked
    return isinstance(statement, Price | Length | Breakpoint | Apply | Load | Row | Slice | Member | ViewAs)


def _has_lanes(statement: PlannedStatement) -> bool:
    """Whether a statement of the loop can be done for all eight at once."""
    if isinstance(statement, Apply):
        return never_faults(statement) and typed_operation(statement.operation).has_lanes
    if isinstance(statement, Load | Store):
        element = statement.span.element
        return not statement.checked and (SIZES[element] >= 4 or element == "f16")
    return isinstance(statement, ProvenLoad | Breakpoint)


def _carries_float(body: PlannedBlock) -> bool:
    """Whether a round of a loop whose body has lanes needs a float that an earlier one has set."""
    known: set[str] = set()
    changing = assigned(body)
    written = {statement.span.name for statement in body if isinstance(statement, Store)}
    for statement in body:
        if isinstance(statement, Apply):
            floats = {operand.name for operand in statement.arguments if isinstance(operand, Local) and operand.type in FLOATS}
            if floats & (changing - known):
                return True
        elif isinstance(statement, Load) and statement.span.name in written and statement.target.type in FLOATS:
            return True
        known |= assigned((statement,))
    return False


def _common_lines(plan: LoopPlan, codelet: PricedCodelet, stored: frozenset[str]) -> tuple[AccessLine, ...]:
    """The lines of elements that are only read; often all eight read the same one."""
    roots = span_roots(codelet)
    loads = [statement for statement in plan.body if isinstance(statement, ProvenLoad)]
    only_read = [load for load in loads if not roots.get(load.span.name.partition("~")[0], frozenset()) & stored]
    lines = dict.fromkeys(AccessLine.of(load.span, load.index) for load in only_read)
    return tuple(lines) if len(lines) <= _MOST_COMMON_LINES else ()
