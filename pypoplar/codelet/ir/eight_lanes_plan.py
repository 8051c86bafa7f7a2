"""What may run side by side: the shapes of code that `pypoplar.codelet.llvm.eight_lanes` runs eight at a time.

A sum in the order written waits for its last addition, so eight sums are run together: of eight vertices of a group, or of
eight rounds of a loop around the sum. Each keeps its own order of operations, so nothing changes but the time. The shape is: some
straight code, one loop that carries a floating-point value from round to round, and some more code. Only that last part writes to
memory and faults, so that the others can be tried out for eight at once and given up again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from attrs import frozen

from pypoplar.codelet.ir.loop_checks import (
    LoopPlan,
    ProvenLoad,
    assigned,
    inner_blocks,
    never_faults,
    plan_loop,
    read_first,
    reads,
    walk,
)
from pypoplar.codelet.ir.operations import FLOATS
from pypoplar.codelet.ir.typed import (
    Apply,
    Block,
    For,
    HostCall,
    Length,
    Literal,
    Load,
    Local,
    Price,
    Row,
    Slice,
    Span,
    Statement,
    Store,
    TypedCodelet,
    While,
)
from pypoplar.codelet.llvm import arithmetic
from pypoplar.codelet.llvm.emitter_state import Checks, Line
from pypoplar.codelet.llvm.memory_access import SIZES, span_roots, stored_fields

_MOST_COMMON_LINES = 2
_LONGEST_ENDING = 40  # statements; it is written once for each of the eight


@frozen
class Jam:
    """Code of the shape that is run eight times side by side."""

    before: Block
    loop: For
    plan: LoopPlan
    after: Block
    body: Block  # the plan's, without what only computed indices
    taken: frozenset[str]  # locals that the loop finds set
    left: frozenset[str]  # locals that the loop sets and something after it reads
    stored: tuple[Span, ...]  # scalar fields that are written before `after`
    common: tuple[Line, ...]  # lines of elements that all eight may have in common


def plan_vertices(codelet: TypedCodelet, checks: Checks) -> Jam | None:
    """The shape of a codelet for running eight vertices at a time, if it has it and gains by it."""
    if codelet.kind == "multi" or not checks.only_counts:
        return None
    return _plan(codelet.body, codelet, read_first)


def plan_rounds(loop: For, codelet: TypedCodelet, checks: Checks) -> Jam | None:
    """The shape of a loop's body for running eight rounds at a time, if it has it and gains by it.

    No round may read what another one sets, in locals or in memory.
    """
    if not checks.only_counts or loop.variable.name in assigned(loop.body):
        return None
    if read_first(loop.body) & assigned(loop.body):
        return None
    roots = span_roots(codelet)
    written, read = (_fields_of(loop.body, kind, roots) for kind in (Store, Load))
    if not all(_only_own_element(loop, name, roots) for name in written & read):
        return None
    inside = next((one for one in loop.body if isinstance(one, For)), loop)
    jam = _plan(loop.body, codelet, lambda after: _read_outside(codelet.body, inside))
    return jam if jam is not None and not jam.stored else None


def _plan(block: Block, codelet: TypedCodelet, wanted: Callable[[Block], set[str]]) -> Jam | None:
    places = [i for i, one in enumerate(block) if isinstance(one, For)]
    if not places:
        return None
    before, loop, after = block[: places[0]], block[places[0]], block[places[0] + 1 :]
    assert isinstance(loop, For)
    endings = list(walk(after))
    if len(endings) > _LONGEST_ENDING or any(isinstance(one, For | While) for one in endings):
        return None
    stored = stored_fields(codelet)
    plan = plan_loop(loop, stored)
    if plan is None or not plan.straight or not isinstance(loop.step, Literal) or loop.step.value == 0:
        return None
    needed = wanted(after)
    body = _without_unused(plan.body, needed)
    if not all(map(_can_be_tried, before)) or not all(map(_has_lanes, body)) or not _carries_float(body):
        return None
    spans = dict.fromkeys(one.span for one in before + body if isinstance(one, Store))
    taken, left = frozenset(read_first(body)), frozenset(needed & assigned(body))
    return Jam(before, loop, plan, after, body, taken, left, tuple(spans), _common_lines(plan, codelet, stored))


def _only_own_element(loop: For, name: str, roots: Mapping[str, frozenset[str]]) -> bool:
    """Whether a round reads and writes only its own element of a field: the one that the loop's variable numbers."""
    accesses = [one for one in walk(loop.body) if isinstance(one, Load | Store) and name in roots[one.span.name]]
    return all(one.span.name == name and one.index == loop.variable for one in accesses)


def _read_outside(block: Block, loop: For) -> set[str]:
    """Names that a block reads anywhere but in one loop."""
    found: set[str] = set()
    for statement in block:
        if statement is not loop:
            found |= reads(statement).union(*(_read_outside(inner, loop) for inner in inner_blocks(statement)))
    return found


def _fields_of(block: Block, kind: type[Load] | type[Store], roots: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The fields that a block loads from or stores to."""
    spans: Iterable[Span] = [one.span for one in walk(block) if isinstance(one, kind)]
    return frozenset(root for span in spans for root in roots[span.name])


def _without_unused(body: Block, wanted: set[str]) -> Block:
    """A loop's body without the operations whose results nobody reads: many only computed an index that has been proven."""
    while True:
        read = wanted.union(*map(reads, body))
        kept = tuple(one for one in body if not isinstance(one, Apply) or one.target.name in read)
        if len(kept) == len(body):
            return body
        body = kept


def _can_be_tried(statement: Statement) -> bool:
    """Whether a statement leaves nothing behind; scalar fields are written later."""
    match statement:
        case Price() | Length() | HostCall() | Apply() | Load() | Row() | Slice():
            return True
        case Store(checked=checked):
            return not checked
    return False


def _has_lanes(statement: Statement) -> bool:
    """Whether a statement of the loop can be done for all eight at once."""
    match statement:
        case ProvenLoad() | HostCall():
            return True
        case Apply(operation=operation):
            return never_faults(statement) and arithmetic.is_lanewise(operation)
        case Load(span=span, checked=False) | Store(span=span, checked=False):
            return SIZES[span.element] >= 4 or span.element == "f16"
    return False


def _carries_float(body: Block) -> bool:
    """Whether a round needs a float that an earlier one has made."""
    made: set[str] = set()
    changing = assigned(body)
    written = {one.span.name for one in body if isinstance(one, Store)}
    for statement in body:
        match statement:
            case Apply(target=target, arguments=arguments):
                names = {one.name for one in arguments if isinstance(one, Local) and one.type in FLOATS}
                if names & (changing - made):
                    return True
                made.add(target.name)
            case ProvenLoad(target=target):
                made.add(target.name)
            case Load(target=target, span=span):
                if span.name in written and target.type in FLOATS:
                    return True
                made.add(target.name)
    return False


def _common_lines(plan: LoopPlan, codelet: TypedCodelet, stored: frozenset[str]) -> tuple[Line, ...]:
    """The lines of elements that are only read; often all eight read the same one."""
    roots = span_roots(codelet)
    found: dict[Line, None] = {}
    for one in plan.body:
        if isinstance(one, ProvenLoad) and not roots.get(one.span.name.partition("~")[0], frozenset()) & stored:
            found[Line.of(one.span, one.index)] = None
    return tuple(found) if len(found) <= _MOST_COMMON_LINES else ()
