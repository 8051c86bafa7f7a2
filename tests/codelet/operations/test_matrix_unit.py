"""`ipu.multiply_accumulate`: products of matrices, in both engines and on the host, to the bit; what it costs; what it refuses."""

import inspect
from typing import Generic, TypeVar

import numpy as np
import pytest
from codelet_rig import codelet_of, priced_codelet, run, vertex
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from native_rig import Memory, run_native

from pypoplar import (
    FLOAT,
    HALF,
    INT,
    AtomicStoreError,
    CodeletError,
    CodeletIndexError,
    Engine,
    Executable,
    Graph,
    GraphCycleError,
    InOut,
    Input,
    IPUModel,
    MultiVertex,
    Output,
    UninitialisedReadError,
    Vector,
    Vertex,
    ipu,
)
from pypoplar.codelet.language.diagnostics import STARS
from pypoplar.codelet.operations.matrix_unit import MULTIPLY_ACCUMULATE
from pypoplar.codelet.python.interpreted import VertexContext
from pypoplar.codelet.python.python_form import PythonForm
from pypoplar.codelet.registry import collect
from pypoplar.interface.fault_codes import FaultCode, FloatingPoint
from pypoplar.program import Execute

T = TypeVar("T", FLOAT, HALF)
R = TypeVar("R", FLOAT, HALF)
TYPES = [(FLOAT, FLOAT), (HALF, FLOAT), (HALF, HALF)]  # of the factors and of the sums
DTYPES = {"f32": np.float32, "f16": np.float16}


class Product(Vertex, Generic[T, R]):
    out: InOut[Vector[R]]
    a: Input[Vector[T]]
    b: Input[Vector[T]]
    begin: INT
    rows: INT
    depth: INT
    columns: INT
    outStride: INT
    aStride: INT
    bStride: INT

    def compute(self):
        ipu.multiply_accumulate(
            self.out[self.begin :],
            self.a[self.begin :],
            self.b[self.begin :],
            self.rows,
            self.depth,
            self.columns,
            self.outStride,
            a_stride=self.aStride,
            b_stride=self.bStride,
        )


PRODUCTS = {types: collect(Product)[0].instance(types) for types in TYPES}


def numbers(begin, rows, depth, columns, out_stride, a_stride, b_stride):
    return {
        "begin": begin, "rows": rows, "depth": depth, "columns": columns,
        "outStride": out_stride, "aStride": a_stride, "bStride": b_stride,
    }  # fmt: skip


def random_vector(random, type, length):
    """Numbers of several sizes, so that every order of their sum is another number."""
    return (random.standard_normal(length) * 2.0 ** random.integers(-6, 7, length)).astype(DTYPES[type.code])


def vectors(random, types, sizes, more=0):
    """out, a and b, as long as they have to be."""
    begin, *sizes = sizes
    lengths = [begin + extent + more for extent in MULTIPLY_ACCUMULATE.extents(*sizes)]
    return [random_vector(random, type, length) for type, length in zip((types[1], types[0], types[0]), lengths, strict=True)]


def expected(out, a, b, sizes):
    begin, *sizes = sizes
    sums = out.copy()
    ipu.multiply_accumulate(sums[begin:], a[begin:], b[begin:], *sizes)
    return sums


@st.composite
def products(draw, most=9, most_columns=40):
    rows, depth = draw(st.integers(0, most)), draw(st.integers(0, 2 * most))
    columns = draw(st.integers(0, most_columns))
    gaps = [draw(st.integers(0, 3)) for _ in range(3)]
    a_stride = draw(st.sampled_from([depth + gaps[1], gaps[1]]))
    b_stride = draw(st.sampled_from([columns + gaps[2], gaps[2]]))
    return draw(st.integers(0, 3)), rows, depth, columns, columns + gaps[0], a_stride, b_stride


@given(st.sampled_from(TYPES), products(), st.integers(0, 2**32 - 1), st.integers(0, 2))
@examples(150)
def test_both_engines_and_the_host_multiply_alike_to_the_bit(types, sizes, seed, more):
    out, a, b = vectors(np.random.default_rng(seed), types, sizes, more)
    found = run(PRODUCTS[types], out=out, a=a, b=b, **numbers(*sizes))
    assert found.fault is None
    np.testing.assert_array_equal(found.fields["out"], expected(out, a, b, sizes))


@given(st.sampled_from(TYPES), st.integers(1, 40), st.integers(1, 70), st.integers(1, 150), st.integers(0, 2**32 - 1))
@examples(25)
def test_tiles_of_every_size_add_in_order(types, rows, depth, columns, seed):
    """Machine code alone, against whole rows of NumPy's sums: each step of the depth for all elements at once."""
    sizes = (0, rows, depth, columns, columns, depth, columns)
    out, a, b = vectors(np.random.default_rng(seed), types, sizes)
    codelet = priced_codelet(PRODUCTS[types])
    found = run_native(codelet, [{"out": out, "a": a, "b": b, **numbers(*sizes)}]).fields[0]["out"]
    sums = out.reshape(rows, columns).astype(np.float32)
    for p in range(depth):
        sums += a.reshape(rows, depth)[:, p, None].astype(np.float32) * b.reshape(depth, columns)[p].astype(np.float32)
    np.testing.assert_array_equal(found, sums.astype(out.dtype).ravel())


@given(st.sampled_from(TYPES), products(5, 6), st.integers(0, 2**32 - 1))
@examples(40)
def test_what_is_looked_after_at_each_access_changes_no_bit(types, sizes, seed):
    out, a, b = vectors(np.random.default_rng(seed), types, sizes)
    fields = {"out": out, "a": a, "b": b, **numbers(*sizes)}
    plain = run(PRODUCTS[types], **fields)
    for looked_after in ({"touches": True}, {"uninitialised_is_fault": True}, {"floating_point_mask": 7}):
        found = run(PRODUCTS[types], **fields, **looked_after)
        assert (found.fault, found.slots) == (None, plain.slots)
        np.testing.assert_array_equal(found.fields["out"], plain.fields["out"])


@pytest.mark.parametrize(
    ("rows", "depth", "columns", "stride"),
    [(0, 3, 3, 3), (3, 3, 0, 0), (1, 0, 3, 3), (4, 20, 5, 9), (900, 1, 5, 5), (2, 1, 4100, 4101), (2, 2, 4096, 4096)],
)
def test_sums_that_are_rounded_at_random_are_so_in_order_of_rows_and_columns(rows, depth, columns, stride):
    sizes = (0, rows, depth, columns, stride, depth, columns)
    out, a, b = vectors(np.random.default_rng(rows), (HALF, HALF), sizes)
    run(PRODUCTS[HALF, HALF], out=out, a=a, b=b, floating_point_mask=FloatingPoint.STOCHASTIC, **numbers(*sizes))


def test_infinities_and_nans_go_through_it():
    a, b = np.array([np.inf, 1.0, 0.0, np.nan], np.float32), np.array([0.0, 2.0, np.inf, 3.0], np.float32)
    for types in TYPES:
        dtype = DTYPES[types[0].code]
        found = run(
            PRODUCTS[types],
            out=np.ones(4, DTYPES[types[1].code]), a=a.astype(dtype), b=b.astype(dtype), **numbers(0, 2, 2, 2, 2, 2, 2),
        )  # fmt: skip
        np.testing.assert_array_equal(found.fields["out"], [np.nan, np.inf, np.nan, np.nan])


# Elements that are written and read


OVERLAPPING = vertex(
    """
    x = self.x
    ipu.multiply_accumulate(x[self.o:], x[self.p:], x[self.q:], 3, 4, 5, a_stride=self.s, b_stride=self.s)
    """,
    fields="x: InOut[Vector[FLOAT]]\no: INT\np: INT\nq: INT\ns: INT",
)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 6), st.integers(0, 2**32 - 1))
def test_an_element_that_is_written_and_read_is_read_as_the_loops_find_it(o, p, q, s, seed):
    x = np.random.default_rng(seed).integers(-3, 4, 60).astype(np.float32)
    found = run(OVERLAPPING, x=x, o=o, p=p, q=q, s=s)
    with np.errstate(over="ignore", invalid="ignore"):  # sums that are added up again and again leave the numbers
        ipu.multiply_accumulate(x[o:], x[p:], x[q:], 3, 4, 5, a_stride=s, b_stride=s)
    np.testing.assert_array_equal(found.fields["x"], x)


def test_a_table_and_a_scratch_array_may_be_operands():
    codelet = vertex(
        """
        sums = ipu.array(FLOAT, 6)
        for i in range(6):
            sums[i] = self.out[i]
        ipu.multiply_accumulate(sums, self.a, WEIGHTS, 2, 2, 3)
        for i in range(6):
            self.out[i] = sums[i]
        """,
        fields="out: InOut[Vector[FLOAT]]\na: Input[Vector[FLOAT]]",
        prelude="WEIGHTS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)",
    )
    assert run(codelet, out=np.ones(6), a=[1, 10, 100, 1000])["out"] == [42, 53, 64, 4101, 5201, 6301]


# Errors


FAULTS = [  # begin, rows, depth, columns, strides, lengths of out, a, b; code, value, bound
    ((0, -1, 1, 1, 1, 1, 1), (9, 9, 9), (FaultCode.VECTOR_COUNT, -1, 0)),
    ((0, 1, -2, 1, 1, 1, 1), (9, 9, 9), (FaultCode.VECTOR_COUNT, -2, 1)),
    ((0, 1, 1, -(2**31), 1, 1, 1), (9, 9, 9), (FaultCode.VECTOR_COUNT, -(2**31), 2)),
    ((0, 1, 1, 1, -1, 1, 1), (9, 9, 9), (FaultCode.VECTOR_COUNT, -1, 3)),
    ((0, 1, 1, 1, 1, -7, 1), (9, 9, 9), (FaultCode.VECTOR_COUNT, -7, 4)),
    ((0, 0, 0, 0, 0, 0, -1), (9, 9, 9), (FaultCode.VECTOR_COUNT, -1, 5)),
    ((0, 2, 1, 3, 2, 1, 3), (9, 9, 9), (FaultCode.VECTOR_ROWS, 2, 3)),
    ((0, 2, 1, 1, 0, 0, 0), (9, 9, 9), (FaultCode.VECTOR_ROWS, 0, 1)),
    ((0, 3, 3, 3, 3, 3, 3), (8, 9, 9), (FaultCode.VECTOR_EXTENT, 9, 8)),
    ((0, 3, 3, 3, 3, 3, 3), (9, 8, 9), (FaultCode.VECTOR_EXTENT, 9, 1 << 32 | 8)),
    ((0, 3, 3, 3, 3, 3, 3), (9, 9, 8), (FaultCode.VECTOR_EXTENT, 9, 2 << 32 | 8)),
    ((1, 3, 3, 3, 3, 3, 3), (9, 9, 9), (FaultCode.VECTOR_EXTENT, 9, 8)),
    ((0, 3, 0, 3, 3, 3, 3), (8, 0, 0), (FaultCode.VECTOR_EXTENT, 9, 8)),
    ((0, 2**31 - 1, 2**31 - 1, 2**31 - 1, 2**31 - 1, 2**31 - 1, 2**31 - 1), (9, 9, 9),
     (FaultCode.VECTOR_EXTENT, (2**31 - 1) ** 2, 9)),
]  # fmt: skip


@pytest.mark.parametrize("types", TYPES, ids=lambda types: "-".join(type.__name__ for type in types))
@pytest.mark.parametrize(("sizes", "lengths", "fault"), FAULTS)
def test_what_lies_outside_is_an_error_and_nothing_is_written(types, sizes, lengths, fault):
    out, a, b = (np.ones(length, DTYPES[type.code]) for length, type in zip(lengths, (types[1], types[0], types[0]), strict=True))
    found = run(PRODUCTS[types], out=out, a=a, b=b, **numbers(*sizes))
    code, _, value, bound = found.fault
    assert (code, value, bound) == fault
    np.testing.assert_array_equal(found.fields["out"], out)


@pytest.mark.parametrize("sizes", [(0, 0, 2**31 - 1, 2**31 - 1), (2**31 - 1, 2**31 - 1, 0), (0, 0, 0), (2**31 - 1, 0, 0)])
def test_a_count_of_zero_changes_and_reads_nothing(sizes):
    rows, depth, columns, *_ = (*sizes, 0)
    for types in TYPES:
        fields = {"out": np.ones(2, DTYPES[types[1].code]), "a": [], "b": []}
        found = run(PRODUCTS[types], **fields, **numbers(0, rows, depth, columns, 0, 0, 0))
        assert (found.fault, found["out"]) == (None, [1, 1])


def test_the_cycle_limit_is_judged_before_the_product():
    fields = {"out": np.ones(4), "a": np.ones(4), "b": np.ones(4), **numbers(0, 2, 2, 2, 2, 2, 2)}
    product = PRODUCTS[FLOAT, FLOAT]
    slots = run(product, **fields).slots
    assert run(product, **fields, cycle_limit=slots).fault is None
    found = run(product, **fields, cycle_limit=slots - 1)
    assert found.fault[0] == FaultCode.CYCLE_LIMIT
    assert found["out"] == [1] * 4


# Prices


def of_poplibs(rows, inner, outer, *, floats, zeroes, units=16):
    """getConvPartial1x1SupervisorCycleEstimate of six workers with so many rows, as it is written there."""
    saved, saved_inner = (0, 0) if floats else (7, 3)
    zero_cycles = 8 if floats and units == 16 else 4

    def of_worker(zeroing):
        if floats:
            slots = {1: 47, 2: 46}.get(rows, 46 + (rows - 3) * 8) + (2 + zero_cycles * rows) * zeroing
        elif rows < 3:
            slots = {1: 31, 2: 40}[rows] + (1 if zeroing else 2)
        else:
            slots = (37 if zeroing else 38) + (rows - 3) * 4
        return 6 * (slots - saved)

    loads = 32
    return (
        50
        + 6 * (saved + saved_inner * (inner - 1))
        + 13
        + (inner - 1) * (15 - 1 + 1 + outer * (19 + 6 + loads + of_worker(False)))
        + 10
        + 1
        + outer * (19 - 1 + 7 + loads + of_worker(zeroes))
    )


@pytest.mark.parametrize("zeroes", [False, True])
@pytest.mark.parametrize("architecture", ["ipu1", "ipu2", "cpu"])
def test_a_product_costs_what_the_convolution_of_poplibs_does(architecture, zeroes):
    units = 8 if architecture == "ipu1" else 16
    for type, deep in (("f32", 8), ("f16", 16)):
        price = MULTIPLY_ACCUMULATE.price(architecture, type)
        for rows in (1, 2, 3, 4, 11, 100):
            for inner in (1, 2, 7):
                for outer in (1, 3):
                    cycles = of_poplibs(rows, inner, outer, floats=type == "f32", zeroes=zeroes, units=units)
                    assert price.cycles(rows, deep * inner, units * outer - 1, zeroes=zeroes) == cycles
                    assert price.slots(rows, deep * inner - 1, units * outer, zeroes=zeroes) == -(-cycles // 6)


def test_no_product_is_faster_than_the_unit():
    for type, peak in (("f32", 16), ("f16", 64)):
        price = MULTIPLY_ACCUMULATE.price("ipu2", type)
        rates = [6 * rows * 1024 * 64 / price.cycles(rows, 1024, 64) for rows in (1, 10, 100, 1000, 10000)]
        assert rates == sorted(rates)
        assert 0.98 * peak < rates[-1] < peak


@given(st.sampled_from(TYPES), products(5, 20))
@examples(30)
def test_both_engines_count_the_same_work(types, sizes):
    out, a, b = vectors(np.random.default_rng(0), types, sizes)
    _, rows, depth, columns, *_ = sizes
    codelet = priced_codelet(PRODUCTS[types])
    fields = {"out": out, "a": a, "b": b, **numbers(*sizes)}
    native = run_native(codelet, [fields], count_flops=True)
    _, context = interpreted_work(codelet, fields)
    ((flops, moved, _, bound),) = native.work
    assert (context.flops, context.bytes, context.bound) == (flops, moved, bound)
    assert flops == 2 * rows * depth * columns
    inner, outer = -(-depth // (8 if types[0] is FLOAT else 16)), -(-columns // 16)
    plain_fields = 9 * 4  # `begin` is read three times
    of_unit = types[0].size * (depth * columns + rows * depth * outer) + types[1].size * 2 * rows * columns * inner
    assert moved == of_unit + plain_fields


def interpreted_work(codelet, fields):
    memory, context = Memory(codelet, [fields]), VertexContext()
    slots = PythonForm(codelet, count_flops=True).run(memory.bytes, memory.rows[0], 0, memory.table, context)
    return slots, context


# Refusals of the code


UNIT = "ipu.multiply_accumulate"
REFUSED = [  # what it is given, the message
    ("self.y, self.x, self.x, 1, 1", "needs a value for 'columns': write ipu.multiply_accumulate(out, a, b, rows, depth, columns)"),
    ("self.y, self.x, self.x, 1, 1, 1, 1, 1, 1, 1", "takes at most 9 arguments"),
    ("self.y, self.x, self.x, 1, 1, 1, colums=3", "has no parameter 'colums'; did you mean 'columns'?"),
    ("self.y, self.x, self.x, 1, 1, 1, rows=3", "gets 'rows' twice"),
    ("*self.y, self.x, self.x, 1, 1, 1", STARS),
    ("self.y, self.x, self.x, **TABLE", STARS),
    ("self.x, self.x, self.x, 1, 1, 1", "writes 'out', and self.x is an Input, which device code only reads"),
    ("TABLE, self.x, self.x, 1, 1, 1", "writes 'out', and TABLE is a constant table, which device code only reads"),
    (
        "self.y, self.rows, self.x, 1, 1, 1",
        "a row list, self.rows; index it; give it a flat Vector and the stride of its rows",
    ),
    ("self.y, self.x, 1.0, 1, 1, 1", "'b' is a vector, 1.0 is a number"),
    ("self.y, self.x, self.h, 1, 1, 1", "got out of FLOATs, a of FLOATs, b of HALFs"),
    ("self.h, self.x, self.x, 1, 1, 1", "takes out of FLOATs, a of FLOATs, b of FLOATs, or out of FLOATs, a of HALFs, b of HALFs"),
    ("self.n, self.n, self.n, 1, 1, 1", "got out of INTs, a of INTs, b of INTs"),
    ("self.y, self.x, self.x, 1, 1.0, 1", "'depth' is an INT, got FLOAT: write int(...)"),
    ("self.y, self.x, self.x, 1, 1, self.u", "'columns' is an INT, got UNSIGNED_INT: write int(...)"),
    ("self.y, self.x, self.x, -1, 1, 1", "'rows' is -1, which is below 0"),
]
OTHER_LINES = [
    (f"z = {UNIT}(self.y, self.x, self.x, 1, 1, 1)", "multiply_accumulate has no value: write it on a line of its own"),
    (
        "ipu.multiply_acumulate(self.y, self.x, self.x, 1, 1, 1)",
        "module pypoplar.ipu has no 'multiply_acumulate'; did you mean",
    ),
]
FIELDS = """
x: Input[Vector[FLOAT]]
y: InOut[Vector[FLOAT]]
h: InOut[Vector[HALF]]
n: InOut[Vector[INT]]
rows: InOut[VectorList[FLOAT]]
u: UNSIGNED_INT
"""


@pytest.mark.parametrize(("line", "message"), [*((f"{UNIT}({given})", message) for given, message in REFUSED), *OTHER_LINES])
def test_a_wrong_call_is_refused_at_the_users_line(line, message):
    with pytest.raises(CodeletError) as caught:
        codelet_of(vertex(line, fields=FIELDS, prelude="TABLE = (1.0, 2.0)"))
    assert message in caught.value.msg
    assert caught.value.text.strip() == line


def test_the_supervisor_has_no_matrix_unit():
    line = "ipu.multiply_accumulate(self.y, self.x, self.x, 1, 1, 1)"
    with pytest.raises(CodeletError, match="an instruction of workers, not of the supervisor"):
        codelet_of(vertex(line, fields=FIELDS, base="SupervisorVertex"))


# In programs


class Shared(MultiVertex):
    """Each worker multiplies `share` rows from its `step`-th on."""

    out: InOut[Vector[FLOAT]]
    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    step: INT
    share: INT
    columns: INT

    def compute(self, worker):
        first = worker * self.step
        ipu.multiply_accumulate(self.out[first * self.columns :], self.a[first:], self.b, self.share, 1, self.columns)


class SharedHalves(MultiVertex):
    out: InOut[Vector[HALF]]
    a: Input[Vector[HALF]]
    b: Input[Vector[HALF]]

    def compute(self, worker):
        ipu.multiply_accumulate(self.out[worker * 3 :], self.a[worker:], self.b, 1, 1, 3)


def program(codelet, mode, options=None, values=None, **fields):
    device = IPUModel("tiny").createDevice()
    graph = Graph(device)
    connected = {name: value if isinstance(value, int) else graph.addVariable(*value, name) for name, value in fields.items()}
    for name, tensor in connected.items():
        if not isinstance(tensor, int):
            graph.setTileMapping(tensor, 0)
            graph.createHostRead(name, tensor)
            if values is None or name in values:
                graph.setInitialValue(tensor, np.ones(tensor.shape(), tensor.elementType().dtype))
    compute_set = graph.addComputeSet("product")
    graph.setTileMapping(graph.addVertex(compute_set, codelet, connected), 0)
    engine = Engine(graph, Execute(compute_set), options or {}, mode=mode)
    engine.load(device)
    engine.run()
    return engine


MODES = pytest.mark.parametrize("mode", ["native", "interpret"])
SHARED = {"out": (FLOAT, [36]), "a": (FLOAT, [12]), "b": (FLOAT, [3])}


@MODES
def test_workers_that_multiply_rows_of_their_own_do_not_race(mode):
    for races in ("regions", "elements"):
        engine = program(Shared, mode, {"pypoplar.races": races}, **SHARED, step=2, share=2, columns=3)
        assert engine.readTensor("out").tolist() == [2] * 36


def test_workers_that_multiply_the_same_rows_are_refused_when_the_engine_is_made():
    with pytest.raises(GraphCycleError, match=r"test_matrix_unit\.py"):
        program(Shared, "native", **SHARED, step=1, share=2, columns=3)
    with pytest.raises(AtomicStoreError):
        program(SharedHalves, "native", out=(HALF, [18]), a=(HALF, [6]), b=(HALF, [3]))


class Decided(MultiVertex):
    """Where workers begin is in memory, so nothing is known before a run."""

    out: InOut[Vector[FLOAT]]
    a: Input[Vector[FLOAT]]
    begins: Input[Vector[INT]]

    def compute(self, worker):
        ipu.multiply_accumulate(self.out[self.begins[worker] :], self.a, self.a, 1, 1, 2)


@MODES
def test_a_run_finds_workers_that_multiply_the_same_rows(mode):
    fields = {"out": (FLOAT, [8]), "a": (FLOAT, [2]), "begins": (INT, [6])}
    with pytest.raises(GraphCycleError, match="multiply_accumulate"):
        program(Decided, mode, {"pypoplar.races": "elements"}, **fields)


class Beyond(Vertex):
    out: Output[Vector[FLOAT]]
    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]

    def compute(self):
        ipu.multiply_accumulate(self.out, self.a, self.b, 2, 2, 3)


@MODES
@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ((5, 4, 6), "ipu.multiply_accumulate goes to element 6 of 'out', which has a length of 5"),
        ((6, 3, 6), "ipu.multiply_accumulate goes to element 4 of 'a', which has a length of 3"),
        ((6, 4, 5), "ipu.multiply_accumulate goes to element 6 of 'b', which has a length of 5"),
    ],
)
def test_an_error_names_the_vector_and_the_users_line(mode, lengths, message):
    fields = {name: (FLOAT, [length]) for name, length in zip(("out", "a", "b"), lengths, strict=True)}
    with pytest.raises(CodeletIndexError) as caught:
        program(Beyond, mode, **fields)
    assert message in str(caught.value)
    first = inspect.getsourcelines(Beyond)[1]
    assert f"test_matrix_unit.py:{first + 6}" in str(caught.value)


@MODES
def test_an_error_says_how_far_rows_lie_apart_and_which_count_is_negative(mode):
    fields = {"out": (FLOAT, [9]), "a": (FLOAT, [9]), "b": (FLOAT, [9])}
    product = Product[FLOAT, FLOAT]
    with pytest.raises(
        CodeletIndexError, match=r"the rows of 'out' would overlap: with a stride of 2 they are 3 long, write out_stride=3"
    ):
        program(product, mode, **fields, **numbers(0, 2, 1, 3, 2, 1, 3))
    with pytest.raises(CodeletIndexError, match=r"ipu\.multiply_accumulate: 'a_stride' is -1, which is below 0"):
        program(product, mode, **fields, **numbers(0, 2, 1, 3, 3, -1, 3))


@MODES
def test_sums_that_nothing_has_written_are_found(mode):
    fields = {"out": (FLOAT, [6]), "a": (FLOAT, [4]), "b": (FLOAT, [6])}
    with pytest.raises(UninitialisedReadError, match="element 0 is read"):
        program(Beyond, mode, {"pypoplar.uninitialised": "error"}, {"a", "b"}, **fields)


@MODES
def test_an_output_that_is_added_to_keeps_what_it_held(mode):
    engine = program(Beyond, mode, out=(FLOAT, [7]), a=(FLOAT, [4]), b=(FLOAT, [6]))
    assert engine.readTensor("out").tolist() == [3] * 6 + [1]


@MODES
@pytest.mark.parametrize("cost", ["compiled", "scalar"])
def test_the_profile_of_lines_has_every_slot_of_the_unit(mode, cost):
    options = {"profiler.includeFlopEstimates": "true", "pypoplar.codelet_cost": cost}
    execution = program(Beyond, mode, options, out=(FLOAT, [6]), a=(FLOAT, [4]), b=(FLOAT, [6])).getReport().execution
    costs = execution.cycles_by_vertex_type["Beyond"]
    of_lines = {line.source.text.strip(): line.slots for line in execution.lines.lines("Beyond")}
    assert sum(of_lines.values()) == costs.cycles
    unit = MULTIPLY_ACCUMULATE.price("ipu2", "f32").slots(2, 2, 3)
    assert of_lines["ipu.multiply_accumulate(self.out, self.a, self.b, 2, 2, 3)"] > unit
    assert costs.bound_cycles <= costs.cycles


class InPlace(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]
    w: Input[Vector[FLOAT]]

    def compute(self):
        for row in range(2):
            ipu.multiply_accumulate(self.y[2 * row :], self.x[2 * row :], self.w, 1, 2, 2)


def test_an_output_that_is_the_input_is_added_to_as_the_loops_do():
    """Also by an executable that has been saved, and read in again."""
    found = []
    for mode in ("native", "interpret", "saved"):
        device = IPUModel("tiny").createDevice()
        graph = Graph(device)
        x, w = graph.addVariable(FLOAT, [4], "x"), graph.addVariable(FLOAT, [4], "w")
        for tensor in (x, w):
            graph.setTileMapping(tensor, 0)
            graph.setInitialValue(tensor, np.array([1, 2, 3, 4], np.float32))
        graph.createHostRead("x", x)
        compute_set = graph.addComputeSet("product")
        graph.setTileMapping(graph.addVertex(compute_set, InPlace, {"x": x, "y": x, "w": w}), 0)
        engine = Engine(graph, Execute(compute_set), mode="interpret" if mode == "interpret" else "native")
        if mode == "saved":
            engine = Engine(Executable.deserialize(engine.executable.serialize()))
        engine.load(device)
        engine.run()
        found.append(engine.readTensor("x").tolist())
    x = np.array([1, 2, 3, 4], np.float32)
    for row in range(2):
        ipu.multiply_accumulate(x[2 * row :], x[2 * row :], np.array([1, 2, 3, 4], np.float32), 1, 2, 2)
    assert found == [x.tolist()] * 3
