"""Floating-point operations and bytes of codelets: what they count, in both engines, and that nobody else pays for it."""

from collections import Counter

import numpy as np
import pytest
from attrs import evolve
from codelet_rig import Memory, array, priced_codelet
from engine_random import Compare, Halve, Largest, Long, Mix, Rows
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from native_rig import DTYPES, compile_codelet, run_interpreted, run_native

from pypoplar import FLOAT, HALF, INT, InOut, Input, MultiVertex, Output, Vector, VectorList, Vertex, ipu
from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.typed import For, IfElse, Once, Price, While
from pypoplar.codelet.ir.walk import walk
from pypoplar.codelet.llvm.codelet_code import assembly_text
from pypoplar.codelet.operations.registers import FLOATS
from pypoplar.codelet.operations.table import OPERATIONS
from pypoplar.codelet.python.interpreted import VertexContext, VertexFault
from pypoplar.codelet.python.python_form import PythonForm, meaning_of


class Dot(Vertex):
    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for i in range(len(self.a)):
            total += self.a[i] * self.b[i]
        self.out = total


class Halves(MultiVertex):
    x: InOut[Vector[HALF]]

    def compute(self, worker):
        for i in range(worker, len(self.x), 6):
            self.x[i] = self.x[i] * self.x[i] + 1


class Branches(Vertex):
    x: InOut[Vector[FLOAT]]
    count: Output[INT]

    def compute(self):
        self.count = 0
        i = 0
        while i < len(self.x):
            if self.x[i] < 0.0:
                self.x[i] = -self.x[i]
                self.count += 1
            i += 2


class Transcendental(Vertex):
    x: InOut[FLOAT]

    def compute(self):
        self.x = ipu.exp(self.x) % 2.0


class Unrolled(Vertex):
    rows: Input[VectorList[FLOAT]]
    out: Output[Vector[FLOAT]]

    def compute(self):
        for r in range(len(self.rows)):
            total = 0.0
            for value in self.rows[r]:
                total += value
            self.out[r] = total


def work(cls, *vertices):
    """Flops and bytes of some vertices, which both engines count alike."""
    codelet = priced_codelet(cls)
    native = run_native(codelet, list(vertices), count_flops=True)
    assert native.work == run_interpreted(codelet, list(vertices), flops=True).work
    return [[flops, moved] for flops, moved, *_ in native.work]


def floats(count):
    return np.random.default_rng(count).standard_normal(count, np.float32)


def test_operations_on_floats_say_what_they_count_and_integers_count_none():
    for operation in OPERATIONS.values():
        assert operation.row.flops.mark in ("S", "I")
        assert operation.flops >= 0
        assert operation.flops == 0 or set(operation.arguments) <= set(FLOATS), operation.name


@pytest.mark.parametrize("count", [0, 1, 7, 8, 100_000])
def test_a_dot_product_is_a_product_and_a_sum_for_each_element(count):
    assert work(Dot, {"a": floats(count), "b": floats(count), "out": 0}) == [[2 * count, 8 * count + 4]]


def test_vertices_that_run_side_by_side_count_each_for_itself():
    sizes = [20] * 8 + [3, 20] + [5] * 9
    vertices = [{"a": floats(size), "b": floats(size), "out": 0} for size in sizes]
    assert work(Dot, *vertices) == [[2 * size, 8 * size + 4] for size in sizes]


def test_rounds_that_run_side_by_side_count_each_for_itself():
    sizes = [20] * 17 + [3, 20]
    assert work(Unrolled, {"rows": [floats(size) for size in sizes], "out": floats(len(sizes))}) == [
        [sum(sizes), 4 * sum(sizes) + 4 * len(sizes)]
    ]


def test_the_workers_of_a_multi_vertex_count_together():
    assert work(Halves, {"x": array("f16", [1.0] * 100)}) == [[200, 100 * 3 * 2]]


def test_branches_count_what_ran():
    x = array("f32", [-1, 0, 2, 0, -3])  # each second: compared; two negated, which are counted in an INT
    assert work(Branches, {"x": x, "count": 0}) == [[3 + 2, 4 * (1 + 3 + 2 * (2 + 2))]]


def test_functions_count_what_their_table_says():
    assert work(Transcendental, {"x": 1.0}) == [[OPERATIONS["exp_f32"].flops + OPERATIONS["mod_f32"].flops, 8]] == [[1 + 3, 8]]


class Counted:
    """The meanings of operations, each counting its calls."""

    def __init__(self):
        self.calls = Counter()

    def __call__(self, name):
        def called(*arguments):
            self.calls[name] += 1
            return meaning_of(name)(*arguments)

        return called


class Watched:
    """A view whose loads and stores are counted by element type."""

    def __init__(self, view, accesses):
        self.view, self.accesses = view, accesses

    def __getattr__(self, name):
        if name in ("load", "store"):
            self.accesses[self.view._element] += 1
        found = getattr(self.view, name)
        if name in ("row", "slice"):
            return lambda *arguments: Watched(found(*arguments), self.accesses)
        return found


class Watching(PythonForm):
    def views(self, *arguments):
        return {name: Watched(view, self.accesses) for name, view in super().views(*arguments).items()}


def field_values(data, field):
    def of(length):
        if DTYPES[field.element] in (np.float32, np.float16):
            return data.draw(st.lists(st.sampled_from([-2.0, -0.5, 0.0, 1.0, 3.0]), min_size=length, max_size=length))
        return data.draw(st.lists(st.integers(0, 1), min_size=length, max_size=length))

    lengths = st.integers(0, 9)
    if field.form == "list":
        return [array(field.element, of(data.draw(lengths))) for _ in range(data.draw(st.integers(0, 4)))]
    return array(field.element, of(1 if field.form == "scalar" else data.draw(lengths)))


@pytest.mark.parametrize("cls", [Dot, Halves, Branches, Unrolled, Mix, Halve, Compare, Long, Rows, Largest])
@examples(40)
@given(data=st.data())
def test_flops_and_bytes_are_those_of_the_operations_and_accesses_that_ran(cls, data):
    codelet = priced_codelet(cls)
    vertex = {one.name: field_values(data, one) for one in codelet.fields}
    memory, functions, context, accesses = Memory(codelet, [vertex]), Counted(), VertexContext(), Counter()
    form = Watching(codelet, functions, count_flops=True)
    form.accesses = accesses
    try:
        form.run(memory.bytes, memory.rows[0], 0, memory.table, context)
    except VertexFault:  # a block that is left in the middle is paid whole
        assert context.flops >= sum(OPERATIONS[name].flops * calls for name, calls in functions.calls.items())
        return
    assert context.flops == sum(OPERATIONS[name].flops * calls for name, calls in functions.calls.items())
    assert context.bytes == sum(np.dtype(DTYPES[element]).itemsize * count for element, count in accesses.items())
    work(cls, vertex)


# -- where nobody asks for it --------------------------------------------------------------------------------------------------


def without_work(block):
    made = []
    for one in block:
        match one:
            case Price():
                made.append(Price(one.slots))
            case IfElse():
                made.append(evolve(one, then=without_work(one.then), orelse=without_work(one.orelse)))
            case For() | Once():
                made.append(evolve(one, body=without_work(one.body)))
            case While():
                made.append(evolve(one, head=without_work(one.head), body=without_work(one.body)))
            case _:
                made.append(one)
    return tuple(made)


@pytest.mark.parametrize("cls", [Dot, Halves, Branches, Unrolled])
def test_without_the_option_the_code_has_no_counters(cls):
    codelet = priced_codelet(cls)
    bare = evolve(codelet, body=without_work(codelet.body))
    assert bare != codelet
    assert assembly_text(codelet) == assembly_text(bare)
    assert len(assembly_text(codelet, Checks(flops=True))) > len(assembly_text(codelet))


def test_without_the_option_flops_are_no_part_of_what_code_is_cached_by():
    codelet = priced_codelet(Dot)
    other = evolve(codelet, body=without_work(codelet.body))
    assert compile_codelet(codelet).address == compile_codelet(other).address
    counting = compile_codelet(codelet, Checks(flops=True)).address
    assert len({counting, compile_codelet(codelet).address, compile_codelet(other, Checks(flops=True)).address}) == 3


def test_slots_and_results_are_the_same_with_and_without_the_option():
    vertices = [{"a": floats(size), "b": floats(size), "out": 0} for size in (9, 9, 9, 9, 9, 9, 9, 9, 4)]
    codelet = priced_codelet(Dot)
    one, other = run_native(codelet, vertices), run_native(codelet, vertices, count_flops=True)
    assert one.slots == other.slots
    assert [each["out"].tobytes() for each in one.fields] == [each["out"].tobytes() for each in other.fields]


def test_prices_of_blocks_carry_work_even_where_they_cost_no_slots():
    prices = [one for one in walk(priced_codelet(Dot).body) if isinstance(one, Price)]
    assert sum(one.flops for one in prices) == 2
    assert sum(one.bytes for one in prices) == 12
