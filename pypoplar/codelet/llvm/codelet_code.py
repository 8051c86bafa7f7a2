"""The code of a codelet in LLVM's language: one function, that goes through the vertices of a group.

Where halves may be rounded at random there are two, one that does so and one that knows nothing of it, and a call goes to the one
that the context says. A vertex that faults stops, the others run; of a MultiVertex the workers run one after the other, and its
result is the AND of theirs.
"""

from __future__ import annotations

from typing import Any, assert_never

from attrs import evolve
from llvmlite import ir

from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.eight_lanes_plan import LanesPlan, plan_vertices
from pypoplar.codelet.ir.typed import PricedCodelet
from pypoplar.codelet.llvm.eight_lanes import FEWEST, LANES, emit_eight_vertices
from pypoplar.codelet.llvm.emitter_state import CodeletFunction, load_context
from pypoplar.codelet.llvm.memory_forms import BYTE, INT, WORD, word
from pypoplar.codelet.llvm.symbols import ENTRY, library_symbol
from pypoplar.codelet.llvm.vertex_code import emit
from pypoplar.codelet.llvm.vertex_life import (
    BusiestWorker,
    begin_vertex,
    end_vertex,
    leave_blocks,
    leave_counts,
    leave_result,
    load_scalars,
)
from pypoplar.codelet.operations.table import library_functions
from pypoplar.interface.context_words import CALL_ARGUMENTS, CallArgument, Context
from pypoplar.interface.fault_codes import FloatingPoint


def assembly_text(codelet: PricedCodelet, checks: Checks = Checks()) -> str:  # noqa: B008  # frozen
    """The codelet in LLVM's language, before LLVM works on it."""
    module = ir.Module(ENTRY)
    function = _function(module, ENTRY)
    if checks.stochastic:
        _emit_choice(function, codelet, checks)
    else:
        _emit_group(CodeletFunction.begin(function, codelet, checks))
    _check_calls(module, codelet)
    return str(module)


def _function(module: Any, name: str) -> Any:
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [WORD] * CALL_ARGUMENTS), name)
    function.attributes.add("nounwind")
    return function


def _emit_choice(entry: Any, codelet: PricedCodelet, checks: Checks) -> None:
    """Both functions, and the one that calls one of them."""
    functions = []
    for stochastic in (False, True):
        function = _function(entry.module, "at_random" if stochastic else "to_nearest")
        function.linkage = "internal"
        _emit_group(CodeletFunction.begin(function, codelet, evolve(checks, stochastic=stochastic)))
        functions.append(function)
    builder = ir.IRBuilder(entry.append_basic_block())
    bits = load_context(builder, entry.args[CallArgument.CONTEXT], Context.FLOATING_POINT)
    asked = builder.icmp_unsigned("!=", builder.and_(bits, word(FloatingPoint.STOCHASTIC)), word(0))
    with builder.if_else(asked) as branches:
        for branch, function in zip(branches, reversed(functions), strict=True):
            with branch:
                builder.call(function, entry.args)
    builder.ret_void()


def _check_calls(module: Any, codelet: PricedCodelet) -> None:
    """Nothing may be called whose address nobody knows: the call would jump to nowhere."""
    known = {library_symbol(name) for name in library_functions()}
    for function in module.functions:
        if function.is_declaration and function.name not in known and not function.name.startswith("llvm."):
            raise ValueError(f"the code of codelet {codelet.name} calls '{function.name}', which no row of its operations names")


def _emit_group(function: CodeletFunction) -> None:
    """The whole function."""
    builder, count = function.builder, function.arguments[CallArgument.COUNT]
    start = builder.block
    top, following, after = (builder.append_basic_block(name) for name in ("vertex", "vertex.next", "return"))
    builder.cbranch(builder.icmp_signed(">", count, word(0)), top, after)
    builder.position_at_end(top)
    number = builder.phi(WORD)
    number.add_incoming(word(0), start)
    plan = plan_vertices(function.codelet, function.checks)
    if plan is not None:
        _emit_eight(function, plan, number, top, after)
    match function.codelet.kind:
        case "multi":
            _emit_workers(function, number, following)
        case "vertex" | "supervisor":
            _emit_vertex(function, number, following)
        case unknown:
            assert_never(unknown)
    builder.position_at_end(following)
    upcoming = builder.add(number, word(1))
    number.add_incoming(upcoming, following)
    builder.cbranch(builder.icmp_signed("<", upcoming, count), top, after)
    builder.position_at_end(after)
    builder.ret_void()
    function.allocations.branch(start)


def _emit_eight(function: CodeletFunction, plan: LanesPlan, number: Any, top: Any, after: Any) -> None:
    """Where enough vertices are left, try to run eight at a time; go on here for a single one."""
    builder, count = function.builder, function.arguments[CallArgument.COUNT]
    together, done, single = (builder.append_basic_block(name) for name in ("together", "together.end", "single"))
    upcoming = builder.add(number, word(LANES))
    builder.cbranch(builder.icmp_signed("<=", builder.add(number, word(FEWEST)), count), together, single)
    builder.position_at_end(together)
    emit_eight_vertices(function, emit, plan, number, single, done)
    builder.position_at_end(done)
    number.add_incoming(upcoming, done)
    builder.cbranch(builder.icmp_signed("<", upcoming, count), top, after)
    builder.position_at_end(single)


def _emit_vertex(function: CodeletFunction, number: Any, following: Any) -> None:
    state = begin_vertex(function, emit, number, function.builder.append_basic_block("vertex.end"))
    state.emit_block(function.codelet.body)
    end_vertex(state)
    function.builder.branch(following)


def _emit_workers(function: CodeletFunction, number: Any, following: Any) -> None:
    """A MultiVertex: each worker in turn; after a fault the rest of them does nothing."""
    builder, codelet = function.builder, function.codelet
    first, count = function.load_context(Context.FIRST_WORKER), function.load_context(Context.WORKERS)
    names = ("worker.end", "worker", "workers.end", "worker.runs", "worker.failed")
    end, top, done, running, failed = (builder.append_basic_block(name) for name in names)
    state = begin_vertex(function, emit, number, end, failed)
    stopped = function.allocate(BYTE)
    builder.store(BYTE(0), stopped)
    longest = BusiestWorker.begin(state)
    start = builder.block
    builder.branch(top)
    builder.position_at_end(top)
    worker = builder.phi(WORD)
    worker.add_incoming(word(0), start)
    state.begin_counting()
    builder.cbranch(builder.icmp_unsigned("==", builder.load(stopped), BYTE(0)), running, end)
    builder.position_at_end(failed)
    builder.store(BYTE(1), stopped)
    builder.branch(end)
    builder.position_at_end(running)
    state.begin_blocks()
    load_scalars(state)
    state.worker = builder.add(first, worker)
    if codelet.worker is not None:
        state.assign(codelet.worker, builder.trunc(state.worker, INT))
    state.emit_block(codelet.body)
    state.go(end)
    builder.position_at_end(end)
    leave_counts(state, builder.add(builder.mul(number, count), worker))
    longest.take(state)
    upcoming = builder.add(worker, word(1))
    worker.add_incoming(upcoming, builder.block)
    builder.cbranch(builder.icmp_signed("<", upcoming, count), top, done)
    builder.position_at_end(done)
    leave_blocks(state, longest.blocks)
    leave_result(state)
    builder.branch(following)
