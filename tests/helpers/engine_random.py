"""Random graphs and programs for the tests that compare engines: every kind of vertex, field and program, on random tiles.

`RandomProgram(random, ...)` draws everything from one `random.Random`; the same numbers give the same program, whatever order its
vertices are added in.
"""

import functools
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Row
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pypoplar import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    SHORT,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    ComputeSet,
    Device,
    Engine,
    Function,
    Graph,
    InOut,
    Input,
    MultiVertex,
    Output,
    SupervisorVertex,
    SyncType,
    Tensor,
    Vector,
    VectorList,
    Vertex,
    concat,
    cycleCount,
    ipu,
)
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.language.declaration import Field as CodeletField
from pypoplar.program import (
    Call,
    Copy,
    Execute,
    If,
    PrintTensor,
    Program,
    Repeat,
    RepeatWhileFalse,
    RepeatWhileTrue,
    Sequence,
    Switch,
    Sync,
    WriteUndef,
)


class Mix(Vertex):
    """Floats and halves of different lengths."""

    a: Input[Vector[FLOAT]]
    b: Input[Vector[HALF]]
    scale: Input[FLOAT]
    out: Output[Vector[FLOAT]]
    offset: FLOAT

    def compute(self) -> None:
        total = 0.0
        for i in range(len(self.b)):
            total += self.b[i] * self.scale
        for i in range(len(self.out)):
            if i < len(self.a):
                self.out[i] = self.a[i] * total + self.offset
            elif i % 3 != 1:
                self.out[i] = total - i


class Halve(Vertex):
    """Halves in place; reads back what it wrote."""

    x: InOut[Vector[HALF]]
    y: Input[Vector[FLOAT]]
    z: Input[HALF]

    def compute(self) -> None:
        for i in range(len(self.x)):
            self.x[i] = self.x[i] / 2 + self.z
            if i > 0:
                self.x[i] += self.x[i - 1]
        for value in self.y:
            if len(self.x) > 0:
                self.x[0] = self.x[0] * 0.5 + HALF(value)


class Count(Vertex):
    """Keeps a number of its own over runs."""

    x: InOut[Vector[INT]]
    steps: Input[Vector[SHORT]]
    runs: INT
    last: SHORT

    def compute(self) -> bool:
        self.runs += 1
        for value in self.steps:
            self.last = value + self.last
            for i in range(len(self.x)):
                self.x[i] = self.x[i] * 3 + self.last - self.runs
        return self.runs % 3 != 0


class Compare(Vertex):
    """Bools of a comparison; its result is whether all are true."""

    left: Input[Vector[INT]]
    right: Input[INT]
    out: Output[Vector[BOOL]]

    def compute(self) -> bool:
        every = True
        for i in range(len(self.out)):
            if i < len(self.left):
                self.out[i] = self.left[i] > self.right
                every = every and self.out[i]
        return every


class Long(Vertex):
    """Sums of jagged rows in 64 bits."""

    rows: Input[VectorList[INT]]
    out: Output[Vector[LONGLONG]]

    def compute(self) -> None:
        for i in range(min(len(self.out), len(self.rows))):
            total = LONGLONG(0)
            for value in self.rows[i]:
                total = total * 1000003 + value
            self.out[i] = total


class Rows(Vertex):
    """Rows in place, from the row before."""

    rows: InOut[VectorList[FLOAT]]
    weights: Input[Vector[FLOAT]]

    def compute(self) -> None:
        for r in range(len(self.rows)):
            row = self.rows[r]
            for i in range(len(row)):
                if r > 0 and i < len(self.rows[r - 1]):
                    row[i] = row[i] + self.rows[r - 1][i]
                if i < len(self.weights):
                    row[i] *= self.weights[i]


class Deal(MultiVertex):
    """Six workers share the elements, two or four at a time: they lie in one word."""

    x: Input[Vector[INT]]
    out: Output[Vector[SHORT]]
    bytes: InOut[Vector[UNSIGNED_CHAR]]

    def compute(self, worker: int) -> None:
        for i in range(min(len(self.out), len(self.x))):
            if i // 2 % 6 == worker:
                self.out[i] = self.x[i] >> 3
        for i in range(len(self.bytes)):
            if i // 4 % 6 == worker:
                self.bytes[i] = self.bytes[i] * 7 + worker


class Largest(SupervisorVertex):
    x: Input[Vector[FLOAT]]
    out: Output[FLOAT]
    place: Output[UNSIGNED_INT]

    def compute(self) -> None:
        self.place = 0
        best = -1e30
        for i in range(len(self.x)):
            if self.x[i] > best:
                best = self.x[i]
                self.place = UNSIGNED_INT(i)
        self.out = best


class Noise(Vertex):
    out: Output[Vector[UNSIGNED_INT]]
    flags: Output[Vector[BOOL]]

    def compute(self) -> None:
        for i in range(len(self.out)):
            self.out[i] = ipu.random_uint() ^ ipu.cycle_count()
        for i in range(len(self.flags)):
            self.flags[i] = ipu.random_float() < 0.5


class Speak(Vertex):
    x: Input[Vector[SHORT]]
    out: Output[SHORT]

    def compute(self) -> None:
        for value in self.x:
            ipu.debug_print(f"{value} of {len(self.x)}")
            print(value, f"{value / 3:.3f}", f"{value=:4d}", sep=",", end=" ")
        self.out = len(self.x)


class Look(Vertex):
    """Fails where an index from the data is out of range."""

    where: Input[Vector[INT]]
    table: Input[Vector[LONGLONG]]
    out: InOut[Vector[LONGLONG]]

    def compute(self) -> None:
        for i in range(len(self.out)):
            self.out[i] += self.table[self.where[i] % 16]


class Merge(Vertex):
    """Sums of elements; often its Inputs are its Output."""

    x: Input[Vector[FLOAT]]
    rows: Input[VectorList[FLOAT]]
    out: Output[Vector[FLOAT]]

    def compute(self) -> None:
        for i in range(len(self.out)):
            total = 0.0
            if i < len(self.x):
                total = self.x[i] * 0.5
            for row in self.rows:
                if i < len(row):
                    total += row[i]
            self.out[i] = total


class Tick(Vertex):
    """Counts down and says whether there is more to do."""

    left: InOut[INT]
    more: Output[BOOL]
    done: Output[BOOL]

    def compute(self) -> None:
        self.left -= 1
        self.more = self.left >= 0
        self.done = self.left < 0


Views = Mapping[Any, list[Tensor]]  # of variables, by element type
PURE: list[type[Vertex]] = [Mix, Halve, Count, Compare, Long, Rows, Deal, Largest, Merge]
ALL = [*PURE, Noise, Speak]
TYPES = [FLOAT, INT, HALF, SHORT, BOOL, LONGLONG, UNSIGNED_CHAR, UNSIGNED_INT]


@functools.cache
def fields_of(codelet: Any) -> tuple[CodeletField, ...]:
    return Codelet.of_class(codelet).fields


def _reverse(given: NDArray[Any], taken: NDArray[Any]) -> None:
    taken[:] = given[::-1]


class RandomProgram:
    """A graph with programs.

    Its vertices are of `codelets`; `order` sorts those of each compute set before they are added (by number).
    With `clock` the program counts cycles, which depend on that order. `tiles` are those that may be used. `hidden` variables more
    have neither handles nor initial values; programs fill them now and then.
    """

    def __init__(  # noqa: PLR0913 - a knob for everything
        self,
        random: Random,
        device: Device,
        codelets: Row[type[Vertex]] = ALL,
        steps: int = 6,
        size: int = 24,
        order: Callable[[int], int] | None = None,
        clock: bool = True,
        tiles: Row[int] | None = None,
        hidden: int = 0,
        replicas: int = 1,
    ) -> None:
        self.random, self.device, self.codelets, self.size, self.order, self.clock = random, device, codelets, size, order, clock
        self.graph = Graph(device, replicas)
        self.tiles = tiles or range(self.graph.getTarget().getNumTiles())
        self.variables: dict[str, Tensor] = {}
        for number, type in enumerate([*TYPES, *TYPES, *random.choices(TYPES, k=4)]):
            self._variable(f"v{number}", type)
        self.hidden = [self._variable(f"hidden{number}", random.choice(TYPES), False) for number in range(hidden)]
        self.functions: list[Function] = []
        self.arrays: dict[str, NDArray[Any]] = {}  # memory of streams
        self.rows: list[tuple[str, Any, int]] = []  # remote buffers
        self.host_functions: list[str] = []  # they reverse
        self.names = 0
        for _ in range(random.randrange(3)):
            self.functions.append(self.graph.addFunction(self._sequence(2, 1)))
        self.programs = [self._sequence(steps, 2) for _ in range(random.choice([1, 1, 2]))]
        self.handles = [name for name in self.variables if not name.startswith("hidden")]
        for name in self.handles:
            self.graph.createHostRead(name, self.variables[name])

    def connect(self, engine: Engine) -> dict[str, NDArray[Any]]:
        """Connect what the programs need of the host; returns the arrays of the streams."""
        arrays = {name: array.copy() for name, array in self.arrays.items()}
        for name, array in arrays.items():
            engine.connectStream(name, array)
        used = {service["name"] for service in engine.executable.services if service["kind"] == "host_function"}
        for name in used & set(self.host_functions):
            engine.connectHostFunction(name, _reverse)
        return arrays

    # Variables and views

    def _variable(self, name: str, type: Any, initial: bool = True) -> Tensor:
        random = self.random
        values = [self._value(type) for _ in range(random.randint(1, self.size))]
        tensor = self.graph.addVariable(type, [len(values)], name)
        bounds = sorted({0, len(values), *(random.randint(0, len(values)) for _ in range(random.choice([0, 1, 2, 6])))})
        for begin, end in pairwise(bounds):
            self.graph.setTileMapping(tensor[begin:end], self._tile())
        if initial and random.random() < 0.9:
            self.graph.setInitialValue(tensor, np.array(values, type.dtype))
        self.variables[name] = tensor
        return tensor

    def _tile(self) -> int:
        return self.random.choice(self.tiles)

    def _value(self, type: Any) -> Any:
        random = self.random
        if type is BOOL:
            return random.random() < 0.5
        if type.is_floating:
            return random.choice([random.uniform(-8, 8), random.randint(-3, 3), 0.0, -0.0, 1e4])
        low, high = np.iinfo(type.dtype).min, np.iinfo(type.dtype).max
        return random.choice([random.randint(low, high), random.randint(max(low, -5), 5)])

    def _of_type(self, type: Any) -> list[Tensor]:
        return [tensor for tensor in self.variables.values() if tensor.elementType() is type]

    def _read_view(self, candidates: Row[Tensor]) -> Tensor:
        """Any elements of any of the candidates, in any order, some twice."""
        parts = []
        for _ in range(self.random.choice([1, 1, 1, 2])):
            tensor = self.random.choice(candidates)
            count = tensor.numElements()
            begin = self.random.randrange(count)
            part = tensor[begin : self.random.randint(begin, count)]
            kind = self.random.randrange(6)
            if kind == 1:
                part = part.reverse(0)
            elif kind == 2:
                part = part.subSample(self.random.randint(1, 4), 0)
            elif kind == 3:
                part = concat([tensor[self.random.randrange(count)].expand([0]) for _ in range(self.random.randint(1, 5))])
            elif kind == 4:
                part = part.broadcast(2, 0)
            parts.append(part)
        return concat(parts)

    def _writable_parts(self, tensors: Row[Tensor]) -> list[Tensor]:
        """Disjoint pieces of tensors, to be given to fields that write."""
        parts = []
        for tensor in tensors:
            places = list(range(tensor.numElements()))
            if self.random.random() < 0.3:
                self.random.shuffle(places)
            step = self.random.choice([1, 2, 4, 8, len(places)])
            for begin in range(0, len(places), step):
                chosen = places[begin : begin + step]
                straight = chosen == list(range(chosen[0], chosen[-1] + 1))
                parts.append(
                    tensor[chosen[0] : chosen[-1] + 1] if straight else concat([tensor[place].expand([0]) for place in chosen])
                )
        self.random.shuffle(parts)
        return parts

    # Compute sets

    def _compute_set(self) -> ComputeSet:
        random = self.random
        self.names += 1
        compute_set = self.graph.addComputeSet(f"set{self.names}")
        readable: dict[Any, list[Tensor]] = {}
        writable: dict[Any, list[Tensor]] = {}
        for type in TYPES:  # half of the variables are read, the others are written
            variables = self._of_type(type)
            random.shuffle(variables)
            readable[type] = variables[: len(variables) // 2]
            writable[type] = self._writable_parts(variables[len(variables) // 2 :])
        vertices = []
        for _ in range(random.randint(1, 14)):
            codelet = random.choice(self.codelets)
            fields = self._fields(codelet, readable, writable)
            if fields is not None:
                vertices.append((codelet, fields, self._tile(), random.random() < 0.15, random.randint(1, 400)))
        numbers = range(len(vertices))
        for number in numbers if self.order is None else sorted(numbers, key=self.order):
            codelet, fields, tile, estimated, cycles = vertices[number]
            vertex = self.graph.addVertex(compute_set, codelet, fields)
            self.graph.setTileMapping(vertex, tile)
            if estimated:
                self.graph.setPerfEstimate(vertex, cycles)
        return compute_set

    def _fields(self, codelet: Any, readable: Views, writable: Views) -> dict[str, Any] | None:
        """Values for all fields of a vertex; None where nothing is left to write to."""
        values = {}
        for field in fields_of(codelet):
            rows = self.random.randint(1, 4) if field.form == "list" else 1
            if field.access == "state":
                values[field.name] = self._value(field.type)
                continue
            if field.access == "input":
                views = [self._read_view(readable[field.type]) for _ in range(rows)]
            else:
                if len(writable[field.type]) < rows:
                    return None
                views = [writable[field.type].pop() for _ in range(rows)]
            if field.form == "scalar":
                if views[0].numElements() == 0:
                    return None
                values[field.name] = views[0][0]
            else:
                values[field.name] = views if field.form == "list" else views[0]
        if self.random.random() < 0.3:
            self._work_in_place(codelet, values)
        return values

    def _work_in_place(self, codelet: Any, values: dict[str, Any]) -> None:
        """Give Inputs of a vertex the tensors of its Outputs, cut into other slices."""
        for target in fields_of(codelet):
            if target.access == "output" and target.form == "vector":
                tensor = values[target.name]
                middle = self.random.randint(0, tensor.numElements())
                for source in fields_of(codelet):
                    if source.access == "input" and source.type == target.type and self.random.random() < 0.7:
                        whole = concat([tensor[:middle], tensor[middle:]])
                        if source.form == "vector":
                            values[source.name] = whole
                        elif source.form == "list":
                            values[source.name][-1] = whole

    # Programs

    def _sequence(self, steps: int, depth: int) -> Sequence:
        programs = []
        for _ in range(self.random.randint(1, steps)):
            programs += [self._fill(tensor) for tensor in self.hidden if self.random.random() < 0.4] + [self._step(depth)]
        return Sequence(programs)

    def _fill(self, tensor: Tensor) -> Program:
        """A program that writes all of a tensor, at once or in parts."""
        type, count = tensor.elementType(), tensor.numElements()
        values = self.graph.addConstant(type, [count], np.array([self._value(type) for _ in range(count)], type.dtype))
        self.graph.setTileMapping(values, self._tile())
        middle = self.random.randint(0, count)
        parts = [Copy(values[:middle], tensor[:middle]), Copy(values[middle:], tensor[middle:])]
        return Copy(values, tensor) if self.random.random() < 0.5 else Sequence(parts)

    def _step(self, depth: int) -> Program:
        random = self.random
        kinds = [self._execute] * 5 + [self._copy] * 3 + [self._stream] * 2
        kinds += [self._remote, self._host_call, self._print, self._undefined, self._sync]
        if depth:
            kinds += [self._repeat, self._if, self._switch, self._while, self._call, *([self._count] if self.clock else [])]
        return random.choice(kinds)(depth)

    def _execute(self, depth: int) -> Program:
        compute_set = self._compute_set()
        result = self._scalar(BOOL) if self.random.random() < 0.3 else None
        return Execute(compute_set, result)

    def _scalar(self, type: Any) -> Tensor:
        tensor = self.random.choice(self._of_type(type))
        return tensor[self.random.randrange(tensor.numElements())]

    def _copy(self, depth: int) -> Program:
        source = self.random.choice(list(self.variables.values()))
        targets = [
            tensor
            for tensor in self._of_type(source.elementType())
            if tensor.variable_names() != source.variable_names() and tensor.numElements() > 0
        ]
        if not targets:
            return Sequence()
        target = self.random.choice(targets)
        view = self._read_view([source])
        count = min(view.numElements(), target.numElements())
        begin = self.random.randint(0, target.numElements() - count)
        place = target[begin : begin + count]
        if self.random.random() < 0.3:
            place = place.reverse(0)
        return Copy(view[0:count], place, name=f"copy{self.random.randrange(100)}")

    def _stream(self, depth: int) -> Program:
        """A stream of one or two chunks, in or out."""
        self.names += 1
        name, chunks = f"stream{self.names}", self.random.choice([1, 2])
        inward = self.random.random() < 0.5
        tensor = self._place() if inward else self._read_view([self.random.choice(list(self.variables.values()))])
        type, count = tensor.elementType(), tensor.numElements()
        values = [self._value(type) if inward else 0 for _ in range(chunks * count)]
        self.arrays[name] = np.array(values, type.dtype)
        if inward:
            return Copy(self.graph.addHostToDeviceFIFO(name, type, count), tensor)
        return Copy(tensor, self.graph.addDeviceToHostFIFO(name, type, count))

    def _place(self) -> Tensor:
        """Some elements to write to."""
        tensor = self.random.choice(list(self.variables.values()))
        begin = self.random.randrange(tensor.numElements())
        place = tensor[begin : self.random.randint(begin, tensor.numElements())]
        return place.reverse(0) if self.random.random() < 0.3 else place

    def _remote(self, depth: int) -> Program:
        """To a row of a buffer and back from another, or the same."""
        self.names += 1
        place = self._place()
        name, type, count = f"rows{self.names}", place.elementType(), place.numElements()
        per_ipu = self.graph.getTarget().getTilesPerIPU()
        ipus = {tile // per_ipu for tile, pieces in enumerate(self.graph.getTileMapping(place)) if pieces}
        if count == 0 or len(ipus) > 1:  # a buffer is of one IPU
            return Sequence()
        self.rows.append((name, type.dtype, count))
        buffer = self.graph.addRemoteBuffer(name, type, count, 2)
        return Sequence([Copy(place, buffer, self._constant(INT, self.random.randrange(2))), Copy(buffer, place.reverse(0))])

    def _host_call(self, depth: int) -> Program:
        """The host reverses what it is given."""
        self.names += 1
        place = self._place()
        argument = [(place.elementType(), place.numElements())]
        self.host_functions.append(f"reverse{self.names}")
        return Call(self.graph.addHostFunction(self.host_functions[-1], argument, argument), [place], [place])

    def _print(self, depth: int) -> Program:
        return PrintTensor(self._read_view([self.random.choice(list(self.variables.values()))]))

    def _undefined(self, depth: int) -> Program:
        tensor = self.random.choice(list(self.variables.values()))
        return WriteUndef(tensor[0 : self.random.randint(0, tensor.numElements())])

    def _sync(self, depth: int) -> Program:
        return Sync(self.random.choice(list(SyncType)))

    def _repeat(self, depth: int) -> Program:
        return Repeat(self.random.randint(0, 3), self._sequence(3, depth - 1))

    def _if(self, depth: int) -> Program:
        predicate = self._scalar(self.random.choice([BOOL, INT, SHORT]))
        return If(predicate, self._sequence(2, depth - 1), self._sequence(2, depth - 1))

    def _switch(self, depth: int) -> Program:
        cases = [(value, self._sequence(2, depth - 1)) for value in self.random.sample(range(-5, 6), 2)]
        return Switch(self._scalar(INT), cases, self._sequence(2, depth - 1) if self.random.random() < 0.5 else None)

    def _while(self, depth: int) -> Program:
        """A loop that a vertex ends after at most three rounds; nothing else writes what it counts with."""
        self.names += 1
        rounds = self.random.randint(0, 3)
        left, more, done = (self.graph.addVariable(type, [], f"{type.__name__}{self.names}") for type in (INT, BOOL, BOOL))
        tiles = [self._tile() for _ in range(4)]
        for tensor, tile in zip((left, more, done), tiles[1:], strict=True):
            self.graph.setTileMapping(tensor, tile)
        compute_set = self.graph.addComputeSet(f"tick{self.names}")
        vertex = self.graph.addVertex(compute_set, Tick, {"left": left, "more": more, "done": done})
        self.graph.setTileMapping(vertex, tiles[0])
        start, tick, body = Copy(self._constant(INT, rounds), left), Execute(compute_set), self._sequence(2, depth - 1)
        if self.random.random() < 0.5:
            return Sequence([start, RepeatWhileTrue(tick, more, body)])
        return Sequence([start, RepeatWhileFalse(tick, done, body)])

    def _constant(self, type: Any, value: Any) -> Tensor:
        constant = self.graph.addConstant(type, [1], value)
        self.graph.setTileMapping(constant, self._tile())
        return constant

    def _count(self, depth: int) -> Program:
        sequence = self._sequence(2, depth - 1)
        self.names += 1
        self.variables[f"cycles{self.names}"] = cycleCount(self.graph, sequence, self._tile(), name=f"cycles{self.names}")
        return sequence

    def _call(self, depth: int) -> Program:
        return Call(self.random.choice(self.functions)) if self.functions else Sequence()
