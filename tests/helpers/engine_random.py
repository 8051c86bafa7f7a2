"""Random graphs and programs for the tests that compare engines: every kind of vertex, field and program, on random tiles.

`RandomProgram(random, ...)` draws everything from one `random.Random`; the same numbers give the same program, whatever order its
vertices are added in.
"""

import functools
from itertools import pairwise

import numpy as np

from pypoplar import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    SHORT,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    Graph,
    InOut,
    Input,
    MultiVertex,
    Output,
    SupervisorVertex,
    SyncType,
    Vector,
    VectorList,
    Vertex,
    concat,
    cycleCount,
    ipu,
)
from pypoplar.codelet.language.codelet import Codelet
from pypoplar.program import (
    Call,
    Copy,
    Execute,
    If,
    PrintTensor,
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

    def compute(self):
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

    def compute(self):
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

    def compute(self):
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

    def compute(self):
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

    def compute(self):
        for i in range(min(len(self.out), len(self.rows))):
            total = LONGLONG(0)
            for value in self.rows[i]:
                total = total * 1000003 + value
            self.out[i] = total


class Rows(Vertex):
    """Rows in place, from the row before."""

    rows: InOut[VectorList[FLOAT]]
    weights: Input[Vector[FLOAT]]

    def compute(self):
        for r in range(len(self.rows)):
            row = self.rows[r]
            for i in range(len(row)):
                if r > 0 and i < len(self.rows[r - 1]):
                    row[i] = row[i] + self.rows[r - 1][i]
                if i < len(self.weights):
                    row[i] *= self.weights[i]


class Deal(MultiVertex):
    """Six workers share the elements."""

    x: Input[Vector[INT]]
    out: Output[Vector[SHORT]]
    bytes: InOut[Vector[UNSIGNED_CHAR]]

    def compute(self, worker):
        for i in range(worker, min(len(self.out), len(self.x)), 6):
            self.out[i] = self.x[i] >> 3
        for i in range(len(self.bytes)):
            if i % 6 == worker:
                self.bytes[i] = self.bytes[i] * 7 + worker


class Largest(SupervisorVertex):
    x: Input[Vector[FLOAT]]
    out: Output[FLOAT]
    place: Output[UNSIGNED_INT]

    def compute(self):
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

    def compute(self):
        for i in range(len(self.out)):
            self.out[i] = ipu.random_uint() ^ ipu.cycle_count()
        for i in range(len(self.flags)):
            self.flags[i] = ipu.random_float() < 0.5


class Speak(Vertex):
    x: Input[Vector[SHORT]]
    out: Output[SHORT]

    def compute(self):
        for value in self.x:
            ipu.debug_print(f"{value} of {len(self.x)}")
        self.out = len(self.x)


class Look(Vertex):
    """Fails where an index from the data is out of range."""

    where: Input[Vector[INT]]
    table: Input[Vector[LONGLONG]]
    out: InOut[Vector[LONGLONG]]

    def compute(self):
        for i in range(len(self.out)):
            self.out[i] += self.table[self.where[i] % 16]


class Tick(Vertex):
    """Counts down and says whether there is more to do."""

    left: InOut[INT]
    more: Output[BOOL]
    done: Output[BOOL]

    def compute(self):
        self.left -= 1
        self.more = self.left >= 0
        self.done = self.left < 0


PURE = [Mix, Halve, Count, Compare, Long, Rows, Deal, Largest]
ALL = [*PURE, Noise, Speak]
TYPES = [FLOAT, INT, HALF, SHORT, BOOL, LONGLONG, UNSIGNED_CHAR, UNSIGNED_INT]


@functools.cache
def fields_of(codelet):
    return Codelet.of_class(codelet).fields


def _reverse(given, taken):
    taken[:] = given[::-1]


class RandomProgram:
    """A graph with programs.

    Its vertices are of `codelets`; `order` sorts those of each compute set before they are added (by number).
    With `clock` the program counts cycles, which depend on that order. `tiles` are those that may be used. `hidden` variables more
    have neither handles nor initial values; programs fill them now and then.
    """

    def __init__(self, random, device, codelets=ALL, steps=6, size=24, order=None, clock=True, tiles=None, hidden=0):
        self.random, self.device, self.codelets, self.size, self.order, self.clock = random, device, codelets, size, order, clock
        self.tiles = tiles or range(device.getTarget().getNumTiles())
        self.graph = Graph(device)
        self.variables = {}
        for number, type in enumerate([*TYPES, *TYPES, *random.choices(TYPES, k=4)]):
            self._variable(f"v{number}", type)
        self.hidden = [self._variable(f"hidden{number}", random.choice(TYPES), False) for number in range(hidden)]
        self.functions = []
        self.arrays, self.rows, self.host_functions = {}, [], []  # memory of streams; remote buffers; functions that reverse
        self.names = 0
        for _ in range(random.randrange(3)):
            self.functions.append(self.graph.addFunction(self._sequence(2, 1)))
        self.programs = [self._sequence(steps, 2) for _ in range(random.choice([1, 1, 2]))]
        self.handles = [name for name in self.variables if not name.startswith("hidden")]
        for name in self.handles:
            self.graph.createHostRead(name, self.variables[name])

    def connect(self, engine):
        """Connect what the programs need of the host; returns the arrays of the streams."""
        arrays = {name: array.copy() for name, array in self.arrays.items()}
        for name, array in arrays.items():
            engine.connectStream(name, array)
        used = {one["name"] for one in engine.executable.services if one["kind"] == "host_function"}
        for name in used & set(self.host_functions):
            engine.connectHostFunction(name, _reverse)
        return arrays

    # Variables and views

    def _variable(self, name, type, initial=True):
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

    def _tile(self):
        return self.random.choice(self.tiles)

    def _value(self, type):
        random = self.random
        if type is BOOL:
            return random.random() < 0.5
        if type.is_floating:
            return random.choice([random.uniform(-8, 8), random.randint(-3, 3), 0.0, -0.0, 1e4])
        low, high = np.iinfo(type.dtype).min, np.iinfo(type.dtype).max
        return random.choice([random.randint(low, high), random.randint(max(low, -5), 5)])

    def _of_type(self, type):
        return [one for one in self.variables.values() if one.elementType() is type]

    def _read_view(self, candidates):
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

    def _writable_parts(self, tensors):
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
                    tensor[chosen[0] : chosen[-1] + 1] if straight else concat([tensor[one].expand([0]) for one in chosen])
                )
        self.random.shuffle(parts)
        return parts

    # Compute sets

    def _compute_set(self):
        random = self.random
        self.names += 1
        compute_set = self.graph.addComputeSet(f"set{self.names}")
        readable, writable = {}, {}
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

    def _fields(self, codelet, readable, writable):
        """Values for all fields of a vertex; None where nothing is left to write to."""
        made = {}
        for field in fields_of(codelet):
            rows = self.random.randint(1, 4) if field.form == "list" else 1
            if field.access == "state":
                made[field.name] = self._value(field.type)
                continue
            if field.access == "input":
                found = [self._read_view(readable[field.type]) for _ in range(rows)]
            else:
                if len(writable[field.type]) < rows:
                    return None
                found = [writable[field.type].pop() for _ in range(rows)]
            if field.form == "scalar":
                if found[0].numElements() == 0:
                    return None
                made[field.name] = found[0][0]
            else:
                made[field.name] = found if field.form == "list" else found[0]
        return made

    # Programs

    def _sequence(self, steps, depth):
        made = []
        for _ in range(self.random.randint(1, steps)):
            made += [self._fill(one) for one in self.hidden if self.random.random() < 0.4] + [self._step(depth)]
        return Sequence(made)

    def _fill(self, tensor):
        """A program that writes all of a tensor, at once or in parts."""
        type, count = tensor.elementType(), tensor.numElements()
        values = self.graph.addConstant(type, [count], np.array([self._value(type) for _ in range(count)], type.dtype))
        self.graph.setTileMapping(values, self._tile())
        middle = self.random.randint(0, count)
        parts = [Copy(values[:middle], tensor[:middle]), Copy(values[middle:], tensor[middle:])]
        return Copy(values, tensor) if self.random.random() < 0.5 else Sequence(parts)

    def _step(self, depth):
        random = self.random
        kinds = [self._execute] * 5 + [self._copy] * 3 + [self._stream] * 2
        kinds += [self._remote, self._host_call, self._print, self._undefined, self._sync]
        if depth:
            kinds += [self._repeat, self._if, self._switch, self._while, self._call, *([self._count] if self.clock else [])]
        return random.choice(kinds)(depth)

    def _execute(self, depth):
        compute_set = self._compute_set()
        result = self._scalar(BOOL) if self.random.random() < 0.3 else None
        return Execute(compute_set, result)

    def _scalar(self, type):
        tensor = self.random.choice(self._of_type(type))
        return tensor[self.random.randrange(tensor.numElements())]

    def _copy(self, depth):
        source = self.random.choice(list(self.variables.values()))
        targets = [
            one
            for one in self._of_type(source.elementType())
            if one.variable_names() != source.variable_names() and one.numElements() > 0
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

    def _stream(self, depth):
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

    def _place(self):
        """Some elements to write to."""
        tensor = self.random.choice(list(self.variables.values()))
        begin = self.random.randrange(tensor.numElements())
        place = tensor[begin : self.random.randint(begin, tensor.numElements())]
        return place.reverse(0) if self.random.random() < 0.3 else place

    def _remote(self, depth):
        """To a row of a buffer and back from another, or the same."""
        self.names += 1
        place = self._place()
        name, type, count = f"rows{self.names}", place.elementType(), place.numElements()
        if count == 0:
            return Sequence()
        self.rows.append((name, type.dtype, count))
        buffer = self.graph.addRemoteBuffer(name, type, count, 2)
        return Sequence([Copy(place, buffer, self._constant(INT, self.random.randrange(2))), Copy(buffer, place.reverse(0))])

    def _host_call(self, depth):
        """The host reverses what it is given."""
        self.names += 1
        place = self._place()
        argument = [(place.elementType(), place.numElements())]
        self.host_functions.append(f"reverse{self.names}")
        return Call(self.graph.addHostFunction(self.host_functions[-1], argument, argument), [place], [place])

    def _print(self, depth):
        return PrintTensor(self._read_view([self.random.choice(list(self.variables.values()))]))

    def _undefined(self, depth):
        tensor = self.random.choice(list(self.variables.values()))
        return WriteUndef(tensor[0 : self.random.randint(0, tensor.numElements())])

    def _sync(self, depth):
        return Sync(self.random.choice(list(SyncType)))

    def _repeat(self, depth):
        return Repeat(self.random.randint(0, 3), self._sequence(3, depth - 1))

    def _if(self, depth):
        predicate = self._scalar(self.random.choice([BOOL, INT, SHORT]))
        return If(predicate, self._sequence(2, depth - 1), self._sequence(2, depth - 1))

    def _switch(self, depth):
        cases = [(value, self._sequence(2, depth - 1)) for value in self.random.sample(range(-5, 6), 2)]
        return Switch(self._scalar(INT), cases, self._sequence(2, depth - 1) if self.random.random() < 0.5 else None)

    def _while(self, depth):
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

    def _constant(self, type, value):
        constant = self.graph.addConstant(type, [1], value)
        self.graph.setTileMapping(constant, self._tile())
        return constant

    def _count(self, depth):
        sequence = self._sequence(2, depth - 1)
        self.names += 1
        self.variables[f"cycles{self.names}"] = cycleCount(self.graph, sequence, self._tile(), name=f"cycles{self.names}")
        return sequence

    def _call(self, depth):
        return Call(self.random.choice(self.functions)) if self.functions else Sequence()
