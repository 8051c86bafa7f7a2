"""The program tree: every program is in it in its place, and its leaves are the steps."""

import io

import numpy as np
import pytest
from engine_builder import Bench
from executable_damage import Opened, saved
from hypothesis import given
from hypothesis import strategies as st

from pypoplar import FLOAT, Executable, FileLoadError, InOut, Input, Output, SyncType, Vector, Vertex, cycleCount
from pypoplar.compiler.flattening.tree_builder import TreeBuilder
from pypoplar.program import (
    AbortOnCondition,
    Call,
    Copy,
    Execute,
    If,
    PrintTensor,
    Repeat,
    RepeatWhileTrue,
    Sequence,
    Switch,
    Sync,
)
from pypoplar.report.making.make_report import make_report
from pypoplar.report.program_nodes import Program


class Double(Vertex):
    value: InOut[FLOAT]

    def compute(self):
        self.value *= 2.0


class Sum(Vertex):
    values: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for value in self.values:
            total += value
        self.out = total


def compiled(bench, program):
    return bench.engine(program, "interpret").executable


def outline(program):
    """A tree as text: type, name and detail of each node, indented by depth."""
    return [f"{'  ' * depth}{one.type} {one.name} {one.detail}".rstrip() for depth, one in program.walk()]


def outlines(bench, *programs):
    return [outline(one) for one in make_report(compiled(bench, list(programs))).compilation.programs]


@pytest.fixture
def bench():
    return Bench()


def doubled(bench, name="double", tile=3):
    compute_set = bench.graph.addComputeSet(name)
    bench.vertex(compute_set, Double, tile, value=bench.variable(f"{name} value", 1.0, tile))
    return Execute(compute_set)


def test_programs_stand_below_those_that_contain_them(bench):
    flag, index = bench.variable("flag", True), bench.variable("index", 0)
    x, y = bench.variable("x", np.zeros(5), 1), bench.variable("y", np.zeros(5), 2)
    double = doubled(bench)
    program = Sequence(
        [
            Repeat(1000, double, "epochs"),
            If(flag, double, Copy(x, y, name="to y")),
            If(flag, double),
            Switch(index, [(0, double), (7, Sequence([double, double]))], Sequence()),
            RepeatWhileTrue(double, flag, Sequence([Sync(SyncType.INTERNAL)])),
            PrintTensor("values", x),
            AbortOnCondition(flag, "no"),
        ]
    )
    assert outlines(bench, program)[0] == [
        "Sequence",
        "  Repeat epochs 1,000 times",
        "    OnTileExecute double",
        "  If  if flag",
        "    Sequence then",
        "      OnTileExecute double",
        "    Sequence else",
        "      DoExchange to y copy",
        "  If  if flag",
        "    Sequence then",
        "      OnTileExecute double",
        "  Switch  by index",
        "    Sequence case 0",
        "      OnTileExecute double",
        "    Sequence case 7",
        "      OnTileExecute double",
        "      OnTileExecute double",
        "    Sequence default",
        "  RepeatWhileTrue  while flag",
        "    Sequence condition",
        "      OnTileExecute double",
        "    Sequence body",
        "      Sync Sync",
        "  PrintTensor  values",
        "  AbortOnCondition  if flag",
    ]


def test_a_compute_set_is_the_exchange_before_it_the_vertices_and_the_exchange_after_it(bench):
    x, total = bench.variable("x", np.zeros(8), np.arange(8)), bench.variable("total", 0.0, 2)
    compute_set = bench.graph.addComputeSet("sum")
    bench.vertex(compute_set, Sum, 9, values=x, out=total)
    bench.vertex(compute_set, Double, 9, value=bench.variable("d", 0.0, 9))
    bench.vertex(compute_set, Double, 4, value=bench.variable("e", 0.0, 4))
    root = make_report(compiled(bench, Execute(compute_set))).compilation.programs[0]
    assert outline(root) == ["Sequence", "  DoExchange sum before", "  OnTileExecute sum", "  DoExchange sum after"]
    execute = root.children[1]
    assert dict(execute.vertices) == {"Sum": 1, "Double": 2}
    assert execute.computeset.numVertices == 3


def test_streams_say_where_to_and_how_much(bench):
    x = bench.variable("x", np.zeros(25), 1)
    down = bench.graph.addHostToDeviceFIFO("down", FLOAT, 25)
    up = bench.graph.addDeviceToHostFIFO("up", FLOAT, 25)
    assert outlines(bench, Sequence([Copy(down, x), Copy(x, up, name="give")]))[0][1:] == [
        "  StreamCopy down 100 bytes to the device",
        "  StreamCopy give 100 bytes to the host",
    ]


def test_named_sequences_are_nodes_and_nameless_ones_are_not(bench):
    double = doubled(bench)
    program = Sequence([Sequence([double, Sequence([Sequence([double])], name="inner")])], name="outer")
    assert outlines(bench, program)[0] == [
        "Sequence",
        "  Sequence outer",
        "    OnTileExecute double",
        "    Sequence inner",
        "      OnTileExecute double",
    ]


def test_every_program_of_the_engine_has_its_tree(bench):
    first, second = doubled(bench, "first"), doubled(bench, "second")
    assert outlines(bench, first, Sequence(), Repeat(0, second)) == [
        ["Sequence", "  OnTileExecute first"],
        ["Sequence"],
        ["Sequence", "  Repeat  0 times", "    OnTileExecute second"],
    ]


def test_a_function_is_one_object_in_every_call(bench):
    inner = bench.graph.addFunction(doubled(bench))
    outer = bench.graph.addFunction(Sequence([Call(inner), Call(inner)]))
    trees = make_report(compiled(bench, [Repeat(2, Call(outer)), Sequence([Call(inner), Call(outer)])])).compilation.programs
    called = [one.children[0] for tree in trees for _, one in tree.walk() if one.type == "Call"]
    assert len({id(one) for one in called if one.name == "function 0"}) == 1
    assert len({id(one) for one in called if one.name == "function 1"}) == 1
    assert outline(trees[0])[2:6] == [
        "    Call",
        "      Sequence function 1",
        "        Call",
        "          Sequence function 0",
    ]
    assert len({one.step for tree in trees for _, one in tree.walk() if one.type == "OnTileExecute"}) == 1


def test_leaves_are_the_steps_of_the_program_in_order(bench):
    sequence = Sequence([doubled(bench, "a"), Repeat(3, doubled(bench, "b")), doubled(bench, "c")])
    cycleCount(bench.graph, sequence, 0)
    compilation = make_report(compiled(bench, sequence)).compilation
    leaves = [one for _, one in compilation.programs[0].walk() if one.step >= 0]
    assert [one.name for one in leaves] == ["a", "b", "c"]
    assert [one.step for one in leaves] == sorted(one.step for one in leaves)
    assert all(compilation.step_programs[one.step] is one for one in leaves)
    assert [one.step for one in compilation.step_programs] == list(range(len(compilation.step_programs)))


def test_trees_of_any_depth_are_saved_and_walked(bench):
    program = Sequence([doubled(bench)], name="innermost")
    for number in range(5000):
        program = Sequence([program], name=f"level {number}")
    executable = compiled(bench, program)
    again = Executable.load(io.BytesIO(saved(executable)))
    (root,) = make_report(again).compilation.programs
    depths = [depth for depth, _ in root.walk()]
    assert max(depths) == 5002
    assert outline(root) == outline(make_report(executable).compilation.programs[0])


@given(st.recursive(st.just(()), lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=30), st.data())
def test_the_table_holds_what_was_built(shape, data):
    builder = TreeBuilder()

    def build(node, label):
        builder.open("Sequence", label)
        for number, child in enumerate(node):
            build(child, f"{label}.{number}")
        builder.close()

    builder.open_root("Sequence", "root")
    build(shape, "0")
    builder.close()
    tree = builder.finish()

    def check(number, node, label):
        assert tree.name[number] == label
        children = tree.children(number)
        assert len(children) == len(node)
        for place, (child, below) in enumerate(zip(children, node, strict=True)):
            assert child < number
            check(child, below, f"{label}.{place}")

    (root,) = tree.root
    check(tree.children(root)[0], shape, "0")


def damage(path, value):
    opened = Opened(CONTENT())
    opened.array("tree", path)[...] = value(opened.array("tree", path))
    return opened.content()


def CONTENT():
    bench = Bench()
    return saved(compiled(bench, Sequence([Repeat(2, doubled(bench, "a")), doubled(bench, "b")])))


def changed(where, value):
    def change(array):
        array = array.copy()
        array[where] = value
        return array

    return change


@pytest.mark.parametrize(
    ("path", "change", "text"),
    [
        ("child", changed(0, 5), "does not come before its parent|expected 0 to"),
        ("child", changed(0, -1), "tree.child"),
        ("step", changed(0, 99), "tree.step"),
        ("step", lambda array: np.where(array > 0, array.max(), array), "a step twice"),
        ("step", changed(-1, 0), "consists of other programs"),
        ("first_child", changed(1, 7), "tree.first_child"),
        ("root", changed(0, 40), "tree.root"),
    ],
)
def test_a_damaged_tree_is_refused(path, change, text):
    with pytest.raises(FileLoadError, match=text):
        Executable.load(io.BytesIO(damage(path, change)))


def test_visitors_meet_the_types_of_libpva(bench):
    root = make_report(compiled(bench, Repeat(2, doubled(bench)))).compilation.programs[0]

    class Names:
        def visitOnTileExecute(self, program: Program) -> str:
            return program.name

        def visitRepeat(self, program: Program) -> str:
            return program.detail

    assert [one.accept(Names()) for _, one in root.walk()] == [None, "2 times", "double"]
