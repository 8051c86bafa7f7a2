"""An engine whose replicas are spread over processes: what all processes do together beside runs."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, field

from pypoplar.arrays.freed_memory import give_back
from pypoplar.codelet.ir.terms import line_text
from pypoplar.engine.faults import Fault, fault_error
from pypoplar.engine.processes import instance_environment
from pypoplar.engine.processes.broadcast_checks import BroadcastChecks
from pypoplar.engine.processes.coming_together import gathered
from pypoplar.engine.processes.errors_told import packed_error, rebuilt_error
from pypoplar.engine.processes.graph_digest import GraphParts, digest_of, graph_parts
from pypoplar.engine.processes.instance_peers import instance_peers, peers_of
from pypoplar.engine.processes.mpi import checked_communicator
from pypoplar.engine.processes.mpi_meeting import MpiMeeting
from pypoplar.engine.processes.peers import Peers, together
from pypoplar.engine.processes.shared_segments import share_segments
from pypoplar.engine.replicas.host_side import replica_number
from pypoplar.engine.replicas.replica import Replica
from pypoplar.errors import ApplicationRuntimeError, InvalidOption, PoplarError
from pypoplar.executable.executable import Executable
from pypoplar.graph.graph import Graph
from pypoplar.graph.location import caller_location
from pypoplar.options import EngineOptions, Options
from pypoplar.program.base import Program

COMPILATION = 12  # times the timeout for which others wait for an executable
ANY_SIZE = 1 << 62
LARGE = 1 << 20  # bytes of an executable whose making took so much that it is worth giving back


@define(eq=False)
class SpreadReplicas:
    """The replicas of an engine in equal shares of processes."""

    peers: Peers
    meeting: MpiMeeting | None = field(default=None, init=False)
    common_options: EngineOptions | None = field(default=None, init=False)  # those that one process would have

    @property
    def ours(self) -> range:
        """The numbers of those of this process."""
        return self.peers.shares.of_process(self.peers.rank)

    def checked_replica(self, replica: object) -> int:
        """The number of a replica of any process; `PoplarIndexError` if there is none of it."""
        return replica_number(replica, self.peers.shares.replicas, "getReport")

    def compiled(self, graph: Graph, programs: Any, options: Options, compile: Callable[[], Executable]) -> Executable:
        """The executable that the first process compiles, if all have the same graph, programs and options."""
        line = line_text(caller_location())
        given: GraphParts | None = None
        error: Exception | None = None
        try:
            listed: Sequence[Any] = [programs] if isinstance(programs, Program) else [*programs]
            if all(isinstance(program, Program) for program in listed):  # else the compiler says what is wrong
                given = graph_parts(graph, listed, EngineOptions.parse(options))
        except Exception as problem:
            error = problem
        self._compare(given, error, line)
        return self._executable(compile, line)

    def _compare(self, given: GraphParts | None, error: Exception | None, line: str) -> None:
        def doing() -> str:
            return f"the comparison of graphs [{line}]"

        digests = {} if given is None else given.digests()
        told = gathered(self.peers, (digests, None if error is None else packed_error(error)), "graphs", doing)
        for process, (_, failed) in enumerate(told):
            if failed is not None:
                own = error if process == self.peers.rank and error is not None else rebuilt_error(failed, self.peers.name(process))
                raise together(own, process)
        names = [name for name in told[0][0] or digests if any(other.get(name) != told[0][0].get(name) for other, _ in told)]
        if not names:
            return
        part = names[0]
        process = next(number for number, (other, _) in enumerate(told) if other.get(part) != told[0][0].get(part))
        items = self.peers.gather([] if given is None else given.items(part), doing)
        number = _first_difference(items[0], items[process])
        texts = self.peers.gather("nothing" if given is None else given.text(part, number), doing)
        counts = f": {len(items[0])} against {len(items[process])}" if len(items[0]) != len(items[process]) else ""
        raise together(
            ApplicationRuntimeError(
                f"{self.peers.name(process)} compiles another graph than {self.peers.name(0)}: {part} differ{counts}\n"
                f"  {self.peers.name(0)} has {texts[0]}\n"
                f"  {self.peers.name(process)} has {texts[process]}\n"
                f"  all instances build the same graph and programs, for all replicas [{line}]"
            ),
            process,
        )

    def _executable(self, compile: Callable[[], Executable], line: str) -> Executable:
        content: Any = None
        own: Executable | None = None
        error: Exception | None = None
        if self.peers.rank == 0:
            try:
                own = compile()
                file = io.BytesIO()
                own.serialize(file)
                content = file.getbuffer()
            except Exception as problem:
                error, content = problem, b"\x00" + packed_error(problem)
        timeout, self.peers.timeout = self.peers.timeout, COMPILATION * self.peers.timeout
        try:
            whole = self.peers.from_root(content, lambda: f"the executable that {self.peers.name(0)} compiles [{line}]")
        finally:
            self.peers.timeout = timeout
        if error is not None:
            raise together(error, 0)
        if own is None:
            if whole[0] == 0:
                raise together(rebuilt_error(whole[1:].tobytes(), self.peers.name(0)), 0)
            own = Executable.deserialize(io.BytesIO(whole), ANY_SIZE)
        give_back(ANY_SIZE if len(whole) >= LARGE else 0)  # what compiling took: processes share the memory of their machine
        return own

    def check_equal(self, executable: Executable) -> None:
        """All processes run the same executable: what they have loaded, or compiled each for itself."""
        line = line_text(caller_location())
        facts = [
            executable.target.to_json(),
            executable.program,
            executable.entries,
            executable.image.data,
            executable.computes.words,
        ]
        digests = gathered(self.peers, digest_of(facts), "executables", lambda: f"the comparison of executables [{line}]")
        other = next((process for process, digest in enumerate(digests) if digest != digests[0]), None)
        if other is not None:
            raise together(
                ApplicationRuntimeError(
                    f"{self.peers.name(other)} has another executable than {self.peers.name(0)}: all run the same [{line}]"
                ),
                other,
            )

    def meet(self, executable: Executable, first: Replica) -> MpiMeeting:
        """The meeting of the engine's replicas."""
        memory = first.state.memory

        def error_of(fault: Fault) -> PoplarError:
            return fault_error(executable, memory, fault)

        checks = BroadcastChecks(executable, first.streams, executable.options.mpi_checks)
        segments = share_segments(self.peers, executable, line_text(caller_location()))
        self.meeting = MpiMeeting(self.peers, executable, error_of, checks, segments)
        return self.meeting

    def load(self, replicas: Sequence[Replica]) -> None:
        """Make the buffers and requests of all exchanges."""
        assert self.meeting is not None
        self.meeting.prepare(self.meeting.executable.services, [replica.streams for replica in replicas])
        give_back(len(self.meeting.executable.moves.bytes))  # what building and compiling took: processes share a machine's memory

    def begin(self, program: int) -> None:
        """All processes begin to run a program."""
        assert self.meeting is not None
        self.meeting.begin(program, line_text(caller_location()))

    def own_options(self, options: EngineOptions) -> EngineOptions:
        """The options with directories of reports of this process's own."""
        self.common_options = options
        directory = f"{options.report_directory}/instance_{self.peers.rank}"
        return options.changed({"autoReport.directory": directory})


def spread(comm: Any, replicas: int, options: Options) -> SpreadReplicas | None:
    """How an engine's replicas are spread; None where all are of this process."""
    if comm is None:
        if not instance_environment.is_set() or instance_environment.instances() == 1 or replicas == 1:
            return None
        peers = instance_peers()  # before errors, so that all of them tell the first one only
        assert peers is not None
        total = peers.shares.replicas
        if replicas != total:
            raise InvalidOption(
                f"the graph has {replicas} replicas, and {total} were started by poprun: it is made for all of them, "
                "Graph(target, replication_factor(popdist.getNumTotalReplicas()))"
            )
        comm = peers.comm
    else:
        comm = checked_communicator(comm)
    if comm.Get_size() == 1:
        return None
    parsed = EngineOptions.parse(options)
    return SpreadReplicas(peers_of(comm, replicas, float(parsed.mpi_timeout)))


def _first_difference(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    return next((number for number, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
