"""Programs of replicas that meet, drawn from a seed, and all that a run of them leaves, in one process or in several."""

import io
import random
from typing import Any

import numpy as np
from attrs import frozen
from engine_builder import tiny
from engine_random import PURE, RandomProgram

from pypoplar import (
    FLOAT,
    INT,
    UNSIGNED_INT,
    AtomicStoreError,
    Engine,
    InOut,
    Input,
    PoplarError,
    Tensor,
    Vector,
    Vertex,
    gcl,
    popdist,
    popops,
)
from pypoplar.gcl import CollectiveOperator, CommGroup, CommGroupType
from pypoplar.graph.host_links import ReplicatedStreamMode
from pypoplar.program import (
    AssumeEqualAcrossReplicas,
    Copy,
    CrossReplicaCopy,
    Execute,
    If,
    PrintTensor,
    Program,
    Repeat,
    Sequence,
)

METHODS = ("auto", "clockwise_ring", "anticlockwise_ring", "bidirectional_ring_pair", "meet_in_middle_ring", "broadcast")


class Spend(Vertex):
    """Takes longer on higher replicas."""

    replica: Input[UNSIGNED_INT]
    value: InOut[INT]

    def compute(self) -> None:
        for _ in range(100 * int(self.replica)):
            self.value += 1


class At(Vertex):
    """Reads an element behind the end where the number of the replica is as large as the limit."""

    replica: Input[UNSIGNED_INT]
    limit: UNSIGNED_INT
    value: InOut[Vector[INT]]

    def compute(self) -> None:
        self.value[0] = self.value[self.replica // self.limit]


@frozen
class Case:
    """A program and how it is run."""

    seed: int
    replicas: int
    mode: Any = "native"
    threads: int = 1
    machines: int = 1  # on which processes believe that they are, in turn


class Drawn:
    """The program of a case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.chosen = random.Random(case.seed)
        self.device = tiny(3, ipus=case.replicas)
        self.random = RandomProgram(self.chosen, self.device, PURE, self.chosen.randint(1, 2), size=8, replicas=case.replicas)
        self.graph = self.random.graph
        popops.addCodelets(self.graph)
        self.index = self.graph.addReplicationIndexConstant()
        self.graph.setTileMapping(self.index, 0)
        self.names = 0
        self.counters = self._variable(INT, 3, [0, 0, 0])
        self.own = self._variable(INT, 4, [0, 0, 0, 0])
        self.graph.createHostWrite("own", self.graph.getNonReplicatedTensor(self.own))
        self.shared = self.graph.addHostToDeviceFIFO("shared", INT, 2, ReplicatedStreamMode.BROADCAST)
        self.told = self.graph.addHostToDeviceFIFO("told", INT, 2, ReplicatedStreamMode.BROADCAST)
        self.each = self.graph.addHostToDeviceFIFO("each", FLOAT, 5)
        self.out = self.graph.addDeviceToHostFIFO("out", INT, 4)
        pieces = [self._piece() for _ in range(self.chosen.randint(2, 6))]
        self.program = Sequence([Repeat(self.chosen.choice([1, 1, 3]), Sequence(pieces)), *self.random.programs[:1]])

    def _variable(self, type: Any, size: int, values: Any = None) -> Tensor:
        self.names += 1
        name = f"extra{self.names}"
        tensor = self.graph.addVariable(type, [size], name)
        self.graph.setTileMapping(tensor, self.chosen.randrange(3))
        self.graph.setInitialValue(tensor, np.arange(size).astype(type.dtype) if values is None else values)
        self.graph.createHostRead(name, tensor)
        self.random.handles.append(name)
        return tensor

    def _vertex(self, codelet: type[Vertex], **fields: Any) -> Execute:
        self.names += 1
        compute_set = self.graph.addComputeSet(f"{codelet.__name__}{self.names}")
        vertex = self.graph.addVertex(compute_set, codelet, {"replica": self.index, **fields})
        self.graph.setTileMapping(vertex, 0)
        return Execute(compute_set)

    def _copy(self) -> Program:
        count = self.case.replicas
        step = self.chosen.randint(1, count - 1)
        order = self.chosen.sample(range(count), count)
        receivers = {sender: order[(order.index(sender) + step) % count] for sender in range(count)}
        other = self.own if self.chosen.random() < 0.5 else self._variable(INT, 4)
        return CrossReplicaCopy(self.own, other, receivers)

    def _collective(self) -> Program:
        count = self.case.replicas
        size = self.chosen.choice([one for one in range(1, count + 1) if count % one == 0])
        group = self.chosen.choice([None, CommGroup(CommGroupType.CONSECUTIVE, size), CommGroup(CommGroupType.ORTHOGONAL, size)])
        data = self._variable(self.chosen.choice([FLOAT, INT]), self.chosen.randint(1, 9))
        program = Sequence()
        options = {"method": self.chosen.choice(METHODS)}
        gcl.allReduceInPlaceCrossReplica(self.graph, data, CollectiveOperator.ADD, program, group, f"sum{self.names}", options)
        return program

    def _piece(self) -> Program:
        kind = self.chosen.randrange(13)
        if kind < 3:
            return self._copy()
        if kind < 5:
            return self._collective()
        if kind == 5:
            return self._vertex(Spend, value=self.counters[0])
        if kind == 6:
            return If(
                self.own[0], self._vertex(Spend, value=self.counters[1]), self._copy() if self.chosen.random() < 0.2 else Sequence()
            )
        if kind == 7:
            return Copy(self.shared, self.own[self.chosen.randrange(3) :][:2])
        if kind == 8:
            return Sequence([Copy(self.told, self.own[:2]), AssumeEqualAcrossReplicas(self.own[self.chosen.choice([0, 0, 0, 3])])])
        if kind == 9:
            return Copy(self.own, self.out)
        if kind == 10:
            return PrintTensor("own", self.own)
        if kind == 11 and self.chosen.random() < 0.5:
            return self._vertex(At, limit=self.chosen.randint(1, self.case.replicas), value=self.own[:1])
        return Copy(self.each, self._variable(FLOAT, 5))

    def _rows(self, name: str, array: Any, replicas: range) -> Any:
        return np.stack([np.random.default_rng([replica, len(name)]).permutation(array) for replica in replicas])

    def run(self, comm: Any = None) -> list[dict[str, Any]]:
        """What a run leaves of each replica of this process; `error` is the same of all."""
        engine = Engine(self.graph, self.program, {"pypoplar.threads": self.case.threads}, mode=self.case.mode, comm=comm)
        numbers = range(self.case.replicas) if engine._spread is None else engine._spread.ours
        self.random.arrays = {name: self._rows(name, array, numbers) for name, array in self.random.arrays.items()}
        connected = self.random.connect(engine)
        connected["each"] = self._rows("each", np.arange(15, dtype=np.float32), numbers)
        engine.connectStream("each", connected["each"])
        engine.connectStream("shared", np.arange(6, dtype=np.int32))
        engine.connectStreamToCallback("told", iter([np.full(2, number % 3, np.int32) for number in range(1000)]))
        taken: dict[int, list[Any]] = {number: [] for number in numbers}
        fails = self.chosen.random() < 0.15
        for number in numbers:

            def take(chunk: Any, number: int = number) -> None:
                taken[number].append(chunk.tolist())
                if fails and number % 3 == 1:
                    raise ValueError(f"no more of {number}")

            engine.connectStreamToCallback("out", number, take)
        engine.load(self.device)
        engine.writeTensor(
            "own", np.arange(4 * self.case.replicas, dtype=np.int32).reshape(-1, 4)[numbers.start : numbers.stop] % 3
        )
        outs = [io.StringIO() for _ in numbers]
        for replica, out in zip(engine._replicas, outs, strict=True):
            replica.services.stream_out = out
        error = ""
        try:
            engine.run()
        except (PoplarError, ValueError) as problem:
            error = f"{type(problem).__name__}: {problem} {getattr(problem, '__notes__', '')}"
        if error:
            return [{"error": error} for _ in numbers]
        values = {name: engine.readTensor(name) for name in self.random.handles}
        left = [
            {
                "values": {name: value[row] for name, value in values.items()},
                "arrays": {name: array[row] for name, array in connected.items()},
                "report": report_facts(engine.getReport(number)),
                "clock": engine._replicas[row].state.clock,
                "printed": outs[row].getvalue(),
                "taken": taken[number],
            }
            for row, number in enumerate(numbers)
        ]
        merged = popdist.getReport(engine, self.case.seed % self.case.replicas)
        if merged is not None:
            left[0]["merged"] = [report_facts(merged), merged.name, dict(merged.compilation.options)]
        return left


def report_facts(report: Any) -> list[Any]:
    """What a report says of what a replica has run, and of the exchanges of its program."""
    steps = [] if report.execution is None else [step_facts(step) for step in report.execution.steps]
    exchanges = [
        (one.name, one.phase, one.source.tolist(), one.destination.tolist(), one.bytes.tolist())
        for one in report.compilation.exchanges
    ]
    return [steps, exchanges, report.compilation.target.numReplicas]


def step_facts(step: Any) -> list[Any]:
    """What a report says of a step."""
    numbers = (step.name, step.type, step.executions, step.sync_cycles, step.exchange_cycles, step.compute_cycles)
    return [*numbers, step.cyclesByTile, step.activeCyclesByTile, step.exchange_cycles_by_tile, step.host_bytes]


def outcome(case: Case, comm: Any = None) -> list[dict[str, Any]] | None:
    """What a case leaves of each replica; None where its program is none of the machine's."""
    try:
        return Drawn(case).run(comm)
    except AtomicStoreError:
        return None
