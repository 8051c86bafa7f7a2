"""Native code of codelets: `compile_codelet` turns the typed form into machine instructions, called by address.

A call runs a group of vertices of one codelet on one tile; `pypoplar.interface.context_words` says how, and the other modules of
`pypoplar.interface` what the code finds in edge rows and writes of faults and debug prints. A vertex that faults stops, the others
run; of a MultiVertex the workers run one after the other, and its result is the AND of theirs.
"""

from __future__ import annotations

from typing import Any

from attrs import evolve, frozen
from llvmlite import ir

from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.eight_lanes_plan import LanesPlan, plan_vertices
from pypoplar.codelet.ir.typed import Apply, Price, PricedCodelet
from pypoplar.codelet.ir.walk import walk
from pypoplar.codelet.llvm import cache, machine
from pypoplar.codelet.llvm.arithmetic import is_lanewise
from pypoplar.codelet.llvm.eight_lanes import TOGETHER, JammedCode
from pypoplar.codelet.llvm.emitter_state import Frame
from pypoplar.codelet.llvm.memory_access import BYTE, INT, WORD, word
from pypoplar.codelet.llvm.once import one_at_a_time
from pypoplar.codelet.operations.table import operation
from pypoplar.interface.context_words import CALL_ARGUMENTS, WORK_WORDS, Context, Work
from pypoplar.interface.layout import WORD_BYTES

ENTRY = "pypoplar_codelet"


@frozen(eq=False)
class NativeCodelet:
    """Machine instructions in this process; `address` holds as long as this object lives."""

    address: int
    _code: machine.LoadedCode


class _Group(JammedCode):
    """The whole function: goes through the vertices of a group."""

    def write_function(self) -> None:
        builder = self.builder
        start = builder.block
        top, following, after = (self.function.append_basic_block(name) for name in ("vertex", "vertex.next", "return"))
        builder.cbranch(builder.icmp_signed(">", self.count, word(0)), top, after)
        builder.position_at_end(top)
        number = builder.phi(WORD)
        number.add_incoming(word(0), start)
        jam = plan_vertices(self.codelet, self.checks, is_lanewise)
        if self.codelet.kind == "multi":
            self.workers(number, following)
        else:
            if jam is not None:
                self.run(jam, number, top, after)
            self.vertex(number, following)
        builder.position_at_end(following)
        upcoming = builder.add(number, word(1))
        number.add_incoming(upcoming, following)
        builder.cbranch(builder.icmp_signed("<", upcoming, self.count), top, after)
        builder.position_at_end(after)
        builder.ret_void()
        self.allocations.branch(start)

    def run(self, jam: LanesPlan, number: Any, top: Any, after: Any) -> None:
        """Where enough vertices are left, try to run several at a time; go on here for a single one."""
        builder = self.builder
        names = ("together", "together.end", "single")
        together, done, single = (builder.append_basic_block(name) for name in names)
        upcoming = builder.add(number, word(TOGETHER))
        builder.cbranch(builder.icmp_signed("<=", upcoming, self.count), together, single)
        builder.position_at_end(together)
        self.vertices(jam, number, single, done)
        builder.position_at_end(done)
        number.add_incoming(upcoming, done)
        builder.cbranch(builder.icmp_signed("<", upcoming, self.count), top, after)
        builder.position_at_end(single)

    def vertex(self, number: Any, following: Any) -> None:
        builder = self.builder
        end = builder.append_basic_block("vertex.end")
        frame = self.begin(number, end)
        self.block(frame, self.codelet.body)
        self.finish(frame)
        builder.branch(following)

    def finish(self, frame: Frame) -> None:
        """The end of a vertex; both those that fault and those that do not come here."""
        self.go(frame.end)
        self.builder.position_at_end(frame.end)
        self.put_counts(frame, frame.number)
        self.put_result(frame)

    def workers(self, number: Any, following: Any) -> None:
        """A MultiVertex: each worker in turn; after a fault the rest of them does nothing."""
        builder = self.builder
        first, count = self.load_context(Context.FIRST_WORKER), self.load_context(Context.WORKERS)
        names = ("worker.end", "worker", "workers.end", "worker.runs", "worker.failed")
        end, top, done, running, failed = (builder.append_basic_block(name) for name in names)
        frame = self.begin(number, end, failed)
        stopped = self.allocate(BYTE)
        builder.store(BYTE(0), stopped)
        start = builder.block
        builder.branch(top)
        builder.position_at_end(top)
        worker = builder.phi(WORD)
        worker.add_incoming(word(0), start)
        self.begin_counting(frame)
        builder.cbranch(builder.icmp_unsigned("==", builder.load(stopped), BYTE(0)), running, end)
        builder.position_at_end(failed)
        builder.store(BYTE(1), stopped)
        builder.branch(end)
        builder.position_at_end(running)
        self.load_scalars(frame)
        if self.codelet.worker is not None:
            self.assign(frame, self.codelet.worker, builder.trunc(builder.add(first, worker), INT))
        self.block(frame, self.codelet.body)
        self.go(end)
        builder.position_at_end(end)
        self.put_counts(frame, builder.add(builder.mul(number, count), worker))
        upcoming = builder.add(worker, word(1))
        worker.add_incoming(upcoming, end)
        builder.cbranch(builder.icmp_signed("<", upcoming, count), top, done)
        builder.position_at_end(done)
        self.put_result(frame)
        builder.branch(following)

    def put_counts(self, frame: Frame, number: Any) -> None:
        """Leave what a vertex, or a worker of one, has cost, as entry `number` of the tables."""
        self.put_word(self.slots, number, self.builder.load(frame.slots))
        if frame.work:
            table, first = self.load_context(Context.WORK), self.builder.mul(number, word(WORK_WORDS))
            for column, counted in zip((Work.FLOPS, Work.BYTES), frame.work, strict=True):
                self.put_word(table, self.builder.add(first, word(column)), self.builder.load(counted))

    def put_word(self, table: Any, number: Any, value: Any) -> None:
        address = self.builder.add(table, self.builder.mul(number, word(WORD_BYTES)))
        self.builder.store(value, self.builder.inttoptr(address, WORD.as_pointer()), align=8)

    def put_result(self, frame: Frame) -> None:
        builder = self.builder
        with builder.if_then(builder.icmp_signed("!=", self.results, word(0))):
            address = builder.inttoptr(builder.add(self.results, frame.number), BYTE.as_pointer())
            builder.store(builder.load(frame.result), address)


def assembly_text(codelet: PricedCodelet, checks: Checks = Checks()) -> str:  # noqa: B008  # frozen
    """The codelet in LLVM's language, before LLVM works on it."""
    module = ir.Module(ENTRY)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [WORD] * CALL_ARGUMENTS), ENTRY)
    function.attributes.add("nounwind")
    _Group(function, codelet, checks).write_function()
    return str(module)


# The packages that decide what the code of a codelet is: code of other versions of them is not used.
_MAKERS = ("pypoplar.codelet.llvm", "pypoplar.codelet.ir", "pypoplar.codelet.operations", "pypoplar.interface")
_compiled: dict[str, NativeCodelet] = {}


def compile_codelet(
    codelet: PricedCodelet,
    *,
    record_touches: bool = False,
    uninitialised_checks: bool = False,
    floating_point_checks: bool = False,
    count_flops: bool = False,
) -> NativeCodelet:
    """The native code of a codelet, compiled or found in the cache; each of the flags is a version of its own.

    Codelets that differ in names alone share their code. What has an operation that was registered from outside is not kept on
    disk: nothing there would tell its recipe from another.
    """
    checks = Checks(record_touches, uninitialised_checks, floating_point_checks, count_flops)
    registrations = _registrations(codelet)
    key = _key(codelet, checks, registrations)
    with one_at_a_time():
        if key not in _compiled:
            instructions = None if registrations else cache.load(key)
            if instructions is None:
                instructions = machine.compile_text(assembly_text(codelet, checks))
                if not registrations:
                    cache.store(key, instructions)
            code = machine.load(instructions)
            _compiled[key] = NativeCodelet(code.address(ENTRY), code)
        return _compiled[key]


def _registrations(codelet: PricedCodelet) -> list[int]:
    """Those of the operations from outside that a codelet has."""
    used = {operation(statement.operation).number for statement in walk(codelet.body) if isinstance(statement, Apply)}
    return sorted(used - {0})


def _key(codelet: PricedCodelet, checks: Checks, registrations: list[int]) -> str:
    """All that the code depends on, as text: equality of literals would not do, for 0.0 == -0.0 and 1 == True."""
    essence = evolve(codelet, name="", locations=(), texts=(), helpers=())
    work = [(one.flops, one.bytes) for one in walk(codelet.body) if isinstance(one, Price)] if checks.flops else []
    parts = (essence, work, checks, registrations)
    return "\n".join((*map(repr, parts), machine.host().identity, cache.fingerprint(*_MAKERS)))
