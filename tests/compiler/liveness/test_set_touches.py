"""What compute sets touch, held against the elements of their edges."""

from collections import defaultdict

import numpy as np
from engine_builder import tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from sweeping import swept_at_once

from pypoplar import INT, Graph, InOut, Input, Output, Vector, Vertex
from pypoplar.arrays.run_sweeps import name_parts
from pypoplar.compiler.liveness.block_effects import touched_variables
from pypoplar.compiler.liveness.set_touches import touches_of_parts, touches_of_variables
from pypoplar.graph.views import concat
from pypoplar.program import Execute

VARIABLES, ELEMENTS = 4, 6


class Touching(Vertex):
    """A field of each access."""

    a: Input[Vector[INT]]
    b: Output[Vector[INT]]
    c: InOut[Vector[INT]]

    def compute(self):
        for i in range(len(self.b)):
            self.b[i] = self.c[0]


def drawn(seed, sets, vertices):
    """A graph of random views, and by compute set the elements that it reads and writes."""
    random = np.random.default_rng(seed)
    graph = Graph(tiny(2))
    variables = [graph.addVariable(INT, [ELEMENTS], f"v{number}") for number in range(VARIABLES)]
    for one in variables:
        graph.setTileMapping(one, 0)
    whole = concat(variables)
    read, written = defaultdict(set), defaultdict(set)

    def view():
        pieces, ids = [], []
        for _ in range(random.integers(1, 4)):
            begin, end = np.sort(random.choice(VARIABLES * ELEMENTS + 1, 2, replace=False))
            step = int(random.integers(1, 6))
            piece, own = whole[begin:end].subSample(step, 0), np.arange(begin, end, step)
            back = random.random() < 0.3
            pieces.append(piece.reverse(0) if back else piece)
            ids += own.tolist()
        return concat(pieces), set(ids)

    for number in range(sets):
        compute_set = graph.addComputeSet(f"set{number}")
        for _ in range(random.integers(0, vertices)):
            (a, of_a), (b, of_b), (c, of_c) = (view() for _ in range(3))
            vertex = graph.addVertex(compute_set, Touching, {"a": a, "b": b, "c": c})
            graph.setTileMapping(vertex, 0)
            read[number] |= of_a | of_c
            written[number] |= of_b | of_c
    return graph, read, written


def parts_of(by_set, first):
    """The parts of elements, which begin at `first`."""
    return {one: {int(np.searchsorted(first, element, "right")) - 1 for element in ids} for one, ids in by_set.items()}


@examples(60)
@given(st.integers(0, 2**32 - 1), st.sets(st.integers(1, VARIABLES * ELEMENTS - 1), max_size=5))
def test_compute_sets_touch_the_parts_that_their_elements_are_of(seed, bounds):
    graph, read, written = drawn(seed, 3, 3)
    frozen = graph.freeze()
    first = np.array([0, *sorted(bounds)])
    touched = touches_of_parts(frozen, first)
    assert (touched.read, touched.written) == (parts_of(read, first), parts_of(written, first))
    touched, first = touches_of_variables(frozen), frozen.variables.first[:-1]
    assert (touched.read, touched.written) == (parts_of(read, first), parts_of(written, first))


def test_many_edges_are_looked_at_by_machine_code_as_by_numpy():
    graph, _, _ = drawn(5, 40, 20)
    frozen, first = graph.freeze(), np.array([0, 3, 8, 9, 20])
    plain = touches_of_parts(frozen, first)
    with swept_at_once(name_parts):
        swept = touches_of_parts(frozen, first)
    assert (swept.read, swept.written) == (plain.read, plain.written)


def test_a_stretch_that_goes_on_in_the_next_variable_touches_both():
    graph = Graph(tiny(2))
    first, second, out = (graph.addVariable(INT, [4], name) for name in ("first", "second", "out"))
    for one in (first, second, out):
        graph.setTileMapping(one, 0)
    compute_set = graph.addComputeSet("set")
    graph.setTileMapping(graph.addVertex(compute_set, Touching, {"a": concat([first, second]), "b": out, "c": out}), 0)
    (touched,) = touched_variables(graph, graph.freeze(), [Execute(compute_set)])
    assert touched.read == {0, 1, 2}
    assert touched.written == {2}


def test_a_graph_without_vertices_touches_nothing():
    touched = touches_of_variables(Graph(tiny(2)).freeze())
    assert (touched.read, touched.written) == ({}, {})
