"""Random programs of copies: views of any kind, tensors and streams, in sequences, loops, branches and functions."""

from __future__ import annotations

import io
from random import Random
from typing import Any

import numpy as np

from pypoplar import CHAR, HALF, INT, Device, Engine, Executable, Graph, InOut, Tensor, TensorWriteError, Vector, Vertex, concat
from pypoplar.compiler.compile import compile_graph
from pypoplar.interface.service_kinds import ServiceKind
from pypoplar.program import Call, Copy, Execute, If, PrintTensor, Program, Repeat, Sequence, Switch, WriteUndef

TYPES = (INT, HALF, CHAR)
STREAMS = 3  # of each type, direction and size
SIZES = (0, 1, 4)


class AddOne(Vertex):
    x: InOut[Vector[INT]]

    def compute(self) -> None:
        for i in range(len(self.x)):
            self.x[i] += 1


class CopyProgram:
    """A graph with two programs, most of it copies, which are called "copy 0", "copy 1", ..."""

    def __init__(self, random: Random, device: Device) -> None:
        self.random, self.device, self.graph = random, device, Graph(device)
        self.tensors: dict[type, list[Tensor]] = {type: [] for type in TYPES}
        for type in TYPES:
            for number in range(4):
                self._variable(type, f"{type.__name__} {number}", shown=number < 2)
        self.flag = self.graph.addVariable(INT, [1], "flag")
        self.graph.setTileMapping(self.flag, 0)
        self.graph.setInitialValue(self.flag, 1)
        self.graph.createHostWrite("flag", self.flag)
        self.names = 0
        self.arrays: dict[str, Any] = {}
        self.called: dict[str, Any] = {}  # streams that have a callback, with their arrays
        self.streams = self._streams()
        ipus = self.device.getTarget().getNumIPUs()
        self.remotes = [self.graph.addRemoteBuffer(f"remote {ipu}", INT, 4, 2) for ipu in range(ipus)]  # each is of one IPU
        self.host_function = self.graph.addHostFunction("next", [(INT, 2)], [(INT, 2)])
        self.functions = [self.graph.addFunction(self._sequence(1)) for _ in range(random.choice([0, 1, 2]))]
        self.programs = [self._sequence(2), self._sequence(2)]

    def _variable(self, type: Any, name: str, *, shown: bool) -> None:
        size = self.random.randint(12, 24)
        tensor = self.graph.addVariable(type, [size], name)
        tiles = self.device.getTarget().getNumTiles()
        part = self.random.choice([1, 3, size])
        for begin in range(0, size, part):
            self.graph.setTileMapping(tensor[begin : min(begin + part, size)], self.random.randrange(tiles))
        if shown:
            self.graph.setInitialValue(tensor, np.arange(size).astype(type.dtype))
            self.graph.createHostRead(name, tensor)
        self.tensors[type].append(tensor)

    def _streams(self) -> dict[tuple[Any, int, bool], list[Any]]:
        streams: dict[tuple[Any, int, bool], list[Any]] = {}
        for type in TYPES:
            for size in SIZES:
                for inward in (True, False):
                    add = self.graph.addHostToDeviceFIFO if inward else self.graph.addDeviceToHostFIFO
                    for number in range(STREAMS):
                        name = f"{type.__name__} {size} {'in' if inward else 'out'} {number}"
                        streams.setdefault((type, size, inward), []).append(add(name, type, size))
                        chunks = self.random.choice([1, 3])
                        values = self.random.choices(range(100), k=chunks * size)
                        held = self.called if self.random.random() < 0.3 else self.arrays
                        held[name] = np.array(values, type.dtype)
        return streams

    # Views

    def _view(self, type: Any, size: int) -> Tensor:
        """Elements of one or two variables; as a destination it may be refused."""
        random = self.random
        tensor = random.choice(self.tensors[type])
        if random.random() < 0.2:
            tensor = concat([tensor, random.choice(self.tensors[type])])
        kind = random.choice(["slice"] * 4 + ["reverse", "every", "columns", "pieces"])
        if kind == "every":
            tensor = tensor.subSample(random.choice([2, 3]), 0)
        elif kind == "columns":
            rows = tensor.numElements() // 2
            tensor = tensor[: 2 * rows].reshape([rows, 2]).transpose().flatten()
        elif kind == "pieces":
            half = tensor.numElements() // 2
            tensor = concat([tensor[half:], tensor[:half]])
        begin = random.randrange(max(tensor.numElements() - size, 0) + 1)
        view = tensor[begin : min(begin + size, tensor.numElements())]
        return view.reverse(0) if kind == "reverse" else view

    def _copy(self) -> Program:
        """A copy between tensors that can be."""
        random, type = self.random, self.random.choice(TYPES)
        while True:
            size = random.choice([0, 1, 2, 3, 4, 8])
            source, target = self._view(type, size), self._view(type, size)
            if random.random() < 0.1:
                target = source
            size = min(source.numElements(), target.numElements())
            if size and random.random() < 0.1:
                source = source[:1].broadcast(size, 0)
            try:
                return Copy(source[:size], target[:size], name=self._name())
            except TensorWriteError:
                continue

    def _constant(self) -> Program:
        type = self.random.choice(TYPES)
        constant = self.graph.addConstant(type, [2], np.array([self.random.randrange(50), 7], type.dtype))
        self.graph.setTileMapping(constant, self.random.randrange(self.device.getTarget().getNumTiles()))
        return Copy(constant, self._view(type, 2)[:2], name=self._name())

    def _stream(self) -> Program:
        type, inward, size = self.random.choice(TYPES), self.random.random() < 0.5, self.random.choice(SIZES)
        stream = self.random.choice(self.streams[type, size, inward])
        ends = [stream, self._view(type, size)]
        source, target = ends if inward else ends[::-1]
        try:
            return Copy(source, target, self.random.random() < 0.2, self._name())
        except TensorWriteError:
            return Sequence()

    def _remote(self) -> Program:
        view, per_ipu = self._view(INT, 4), self.device.getTarget().getTilesPerIPU()
        ipus = {tile // per_ipu for tile, pieces in enumerate(self.graph.getTileMapping(view)) if pieces}
        if len(ipus) != 1:
            return Sequence()
        remote = self.remotes[ipus.pop()]
        try:
            return Copy(remote, view) if self.random.random() < 0.5 else Copy(view, remote)
        except TensorWriteError:
            return Sequence()

    def _name(self) -> str:
        self.names += 1
        return f"copy {self.names - 1}"

    # Programs

    def _sequence(self, depth: int) -> Sequence:
        programs = [program for _ in range(self.random.randint(1, 4)) for program in self._row(depth)]
        return Sequence(programs, name=self.random.choice(["", "", "named"]))

    def _row(self, depth: int) -> list[Program]:
        """Some copies right after each other, or anything else."""
        kind = self.random.choice(["copies"] * 4 + ["streams"] * 3 + ["mixed", "other", "other"])
        if kind == "copies":
            return [self._constant() if self.random.random() < 0.2 else self._copy() for _ in range(self.random.randint(1, 8))]
        if kind == "streams":
            return [self._stream() for _ in range(self.random.randint(1, 6))]
        if kind == "mixed":
            return [self.random.choice([self._copy, self._stream, self._remote])() for _ in range(self.random.randint(1, 6))]
        return [self._other(depth)]

    def _other(self, depth: int) -> Program:
        random = self.random
        kinds = ["execute", "print", "undefined", "call", "host"] + ["repeat", "if", "switch", "sequence", "sequence"] * (depth > 0)
        match random.choice(kinds):
            case "execute":
                compute_set = self.graph.addComputeSet("add")
                vertex = self.graph.addVertex(compute_set, AddOne, {"x": random.choice(self.tensors[INT])[:4]})
                self.graph.setTileMapping(vertex, random.randrange(self.device.getTarget().getNumTiles()))
                return Execute(compute_set)
            case "print":
                return PrintTensor("printed", random.choice(self.tensors[INT]))
            case "undefined":
                return WriteUndef(random.choice(self.tensors[INT])[:3])
            case "repeat":
                return Repeat(random.choice([0, 1, 3]), self._sequence(depth - 1))
            case "if":
                return If(self.flag[0], self._sequence(depth - 1), self._sequence(depth - 1))
            case "switch":
                return Switch(self.flag[0], [(1, self._sequence(depth - 1))], self._sequence(depth - 1))
            case "host":
                first, second = (tensor[:2] for tensor in random.sample(self.tensors[INT], 2))
                return Call(self.host_function, [first], [second])
            case "call" if hasattr(self, "functions") and self.functions:
                return Call(random.choice(self.functions))
            case _:
                return self._sequence(depth - 1) if depth else Sequence()

    # Running

    def compiled(self, **options: Any) -> Executable:
        """The executable with these options of pypoplar."""
        return compile_graph(self.graph, self.programs, {name.replace("__", "."): value for name, value in options.items()})

    def outcome(self, executable: Executable, mode: Any) -> tuple[list[Any], list[int], list[int]]:
        """All that can be seen of some runs, in order; the cycles of each, and those in which its steps exchange and copy."""
        seen: list[Any] = []
        engine = Engine(executable, mode=mode)
        arrays = {name: array.copy() for name, array in self.arrays.items()}
        for name, array in arrays.items():
            engine.connectStream(name, array)
        for name, values in self.called.items():
            engine.connectStreamToCallback(name, self._callback(name, values, seen))
        if any(service["kind"] == ServiceKind.HOST_FUNCTION for service in executable.services):
            engine.connectHostFunction("next", self._next(seen))
        prints = io.StringIO()
        engine.setPrintStream(prints)
        engine.load(self.device)
        cycles, moving = [], []
        for number in (0, 1, 0):
            engine.writeTensor("flag", np.array([number], np.int32))
            engine.resetExecutionProfile()
            engine.run(number)
            report = engine.getReport().execution
            cycles.append(0 if report is None else int(report.totalCycles.total))
            moving.append(0 if report is None else sum(step.exchange_cycles + step.copy_cycles for step in report.steps))
            seen += [(name, engine.readTensor(name).tobytes()) for type in TYPES for name in self._shown(type)]
            seen += [(name, array.tobytes()) for name, array in arrays.items()]
        return [*seen, prints.getvalue()], cycles, moving

    @staticmethod
    def _shown(type: Any) -> list[str]:
        return [f"{type.__name__} {number}" for number in range(2)]

    @staticmethod
    def _next(seen: list[Any]) -> Any:
        def function(given: Any, result: Any) -> None:
            seen.append(("next", given.tobytes()))
            result[:] = given + 1

        return function

    @staticmethod
    def _callback(name: str, values: Any, seen: list[Any]) -> Any:
        times = [0]

        def callback(array: Any) -> None:
            times[0] += 1
            if " in " in name:
                array[:] = values[: len(array)] + times[0]
            seen.append((name, array.tobytes()))

        return callback
