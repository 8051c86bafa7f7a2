"""What is put aside is told from a look at some variables alone as from a look at all elements."""

import random
from types import SimpleNamespace

from engine_builder import tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import INT, Graph, Input, Output, Vector, Vertex
from pypoplar.compiler.liveness.block_effects import block_effects, effects_on_each_other
from pypoplar.graph.views import concat
from pypoplar.poptorch.pipelines.stage_segments import NotPipelined
from pypoplar.poptorch.pipelines.stash_plan import stashes
from pypoplar.program import Copy, Execute, If, Repeat, Sequence

VARIABLES = 6


class Summing(Vertex):
    """Writes all of its result."""

    given: Input[Vector[INT]]
    result: Output[Vector[INT]]

    def compute(self):
        for i in range(len(self.result)):
            self.result[i] = self.given[0] + i


class Partly(Vertex):
    """Leaves most of its result."""

    given: Input[Vector[INT]]
    result: Output[Vector[INT]]

    def compute(self):
        if self.given[0] > 0:
            self.result[0] = 1


class DrawnPrograms:
    """Random programs of compute sets and copies on a few variables, whole or in part."""

    def __init__(self, seed, programs):
        self.random, self.graph = random.Random(seed), Graph(tiny(2))
        self.variables = [self.graph.addVariable(INT, [self.random.choice([1, 2, 4])], f"v{n}") for n in range(VARIABLES)]
        for one in self.variables:
            self.graph.setTileMapping(one, 0)
        self.initial = frozenset(n for n in range(VARIABLES) if self.random.random() < 0.25)
        self.programs = [Sequence([self._step(1) for _ in range(self.random.randint(0, 4))]) for _ in range(programs)]
        self.offsets = sorted(self.random.randrange(programs) for _ in range(programs))

    def _step(self, depth):
        kind = self.random.randrange(8 if depth else 6)
        if kind == 7:
            return If(self.variables[0][0], Sequence([self._step(0)]))
        if kind == 6:
            return Repeat(2, Sequence([self._step(0), self._step(0)]))
        if kind > 3:
            source, target = map(self._part_of, self.random.sample(self.variables, 2))
            size = min(source.numElements(), target.numElements())
            return Copy(source[:size], target[:size])
        compute_set = self.graph.addComputeSet("set")
        target = self.random.choice(self.variables) if self.random.random() < 0.7 else self._part()
        codelet = Partly if kind == 3 else Summing
        vertex = self.graph.addVertex(compute_set, codelet, {"given": concat([self._part(), self._part()]), "result": target})
        self.graph.setTileMapping(vertex, 0)
        return Execute(compute_set)

    def _part(self):
        return self._part_of(self.random.choice(self.variables))

    def _part_of(self, one):
        size = one.numElements()
        begin = self.random.randrange(size)
        return one if self.random.random() < 0.5 else one[begin : self.random.randint(begin + 1, size)]

    def stashed(self, effects):
        """What is put aside, or why that cannot be."""
        units = tuple(SimpleNamespace(offset=offset, name=f"unit{n}") for n, offset in enumerate(self.offsets))
        try:
            return sorted(stashes(SimpleNamespace(units=units, effects=effects, initial=self.initial)), key=repr)
        except NotPipelined as reason:
            return str(reason)


@examples(400)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_what_is_put_aside_is_that_of_all_elements(seed, programs):
    drawn = DrawnPrograms(seed, programs)
    frozen = drawn.graph.freeze()
    some = effects_on_each_other(drawn.graph, frozen, drawn.programs, drawn.initial)
    everything = block_effects(drawn.graph, frozen, drawn.programs)
    assert drawn.stashed(some) == drawn.stashed(everything)


def test_a_part_that_nobody_writes_is_not_put_aside():
    drawn = DrawnPrograms(0, 0)
    graph = drawn.graph
    tensors = [graph.addVariable(INT, [2], name) for name in ("x", "y", "z")]
    for one in tensors:
        graph.setTileMapping(one, 0)
    x, y, z = tensors
    drawn.programs, drawn.offsets = [Sequence([Copy(z[:1], x[:1])]), Sequence([Copy(x[1:], y[1:])])], [0, 2]
    assert drawn.stashed(effects_on_each_other(graph, graph.freeze(), drawn.programs, frozenset())) == []
    drawn.programs[1].add(Copy(x[:1], y[:1]))
    assert len(drawn.stashed(effects_on_each_other(graph, graph.freeze(), drawn.programs, frozenset()))) == 1
