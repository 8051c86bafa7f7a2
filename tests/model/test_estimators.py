"""The libraries' codelets carry PopLibs' closed forms: what the engine reports, against values tabulated from the source."""

import numpy as np
import pytest

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, Engine, Graph, IPUModel, poplin, popnn, popops
from pypoplar.poplin.matmul.matmul_cycles import ENTRY
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence

SIZES = (1, 64, 1024, 4096)
WORKERS = 6
ROUNDING = 3  # a supervisor's cycles are counted in whole slots of six


def tile_cycles(vertex_type, fields, sizes=SIZES):
    """Cycles that the engine reports for a vertex of each size. A field is (type, shape), for a list with rows, or a value."""
    model = IPUModel("bow")
    model.tilesPerIPU = 2
    device = model.createDevice()
    graph = Graph(device)
    for library in (popops, poplin, popnn):
        library.addCodelets(graph)
    programs = []
    for n in sizes:
        connected = {name: variable(graph, *one) if isinstance(one, tuple) else one for name, one in fields(n).items()}
        compute_set = graph.addComputeSet(str(n))
        graph.setTileMapping(graph.addVertex(compute_set, vertex_type, connected), 0)
        programs.append(Execute(compute_set))
    engine = Engine(graph, Sequence(programs))
    engine.load(device)
    engine.run()
    return [int(step.cyclesByTile[0]) for step in engine.getReport().execution.steps]


def variable(graph, type, shape):
    tensor = graph.addVariable(type, shape)
    graph.setTileMapping(tensor, 0)
    graph.setInitialValue(tensor, np.zeros(shape, type.dtype))
    return tensor


def element_wise(operation, type, in_place=False, scalar=False):
    def fields(n):
        first = {"in1Out": (type, [n])} if in_place else {"in1": (type, [n]), "out": (type, [n])}
        return {**first, "in2": (type, [1 if scalar else n])}

    return templateVertex("popops::BinaryOp1DInPlace" if in_place else "popops::BinaryOp1D", operation, type), fields


def scaled_add(type, delta=None):
    def fields(n):
        return {"A": (type, [n]), "B": (delta or type, [n]), "scale": 1.0}

    return templateVertex("popops::ScaledAdd", type, delta or type), fields


def scaled_both(type):
    def fields(n):
        return {"A": (type, [n]), "B": (type, [n]), "scaleA": 1.0, "scaleB": 1.0}

    return templateVertex("popops::aXPlusbY", type, type, type), fields


def non_linearity(name, type):
    return templateVertex("popnn::NonLinearity1D", name, type), lambda n: {"data": (type, [n]), "out": (type, [n])}


# fmt: off
MULTI_VERTICES = [  # what it is, vertex type and fields, tile cycles at SIZES
    ("BinaryOp1D ADD f32", element_wise("ADD", FLOAT), (203, 293, 1733, 6341)),
    ("BinaryOp1D SUB f32", element_wise("SUBTRACT", FLOAT), (203, 293, 1733, 6341)),
    ("BinaryOp1D MUL f32", element_wise("MULTIPLY", FLOAT), (203, 293, 1733, 6341)),
    ("BinaryOp1D MAX f32", element_wise("MAXIMUM", FLOAT), (203, 293, 1733, 6341)),
    ("BinaryOp1D MIN f32", element_wise("MINIMUM", FLOAT), (203, 293, 1733, 6341)),
    ("BinaryOp1D ADD f16", element_wise("ADD", HALF), (185, 221, 941, 3245)),
    ("BinaryOp1D MUL f16", element_wise("MULTIPLY", HALF), (185, 221, 941, 3245)),
    ("BinaryOp1DInPlace ADD f32", element_wise("ADD", FLOAT, in_place=True), (377, 467, 1907, 6515)),
    ("BinaryOp1D DIV f32", element_wise("DIVIDE", FLOAT), (245, 545, 5345, 20705)),
    ("BinaryOp1D DIV f16", element_wise("DIVIDE", HALF), (293, 545, 5585, 21713)),
    ("BinaryOp1D ADD i32", element_wise("ADD", INT), (209, 629, 7349, 28853)),
    ("BinaryOp1D MUL u32", element_wise("MULTIPLY", UNSIGNED_INT), (209, 629, 7349, 28853)),
    ("BinaryOp1D MAX f16", element_wise("MAXIMUM", HALF), (191, 239, 1199, 4271)),
    ("BinaryOp1DInPlace MAX f32", element_wise("MAXIMUM", FLOAT, in_place=True), (383, 503, 2423, 8567)),
    ("BroadcastScalar1D DIV f32", element_wise("DIVIDE", FLOAT, scalar=True), (347, 3227, 12443)),
    ("BroadcastScalar1D MIN u32", element_wise("MINIMUM", UNSIGNED_INT, scalar=True), (659, 8339, 32915)),
    ("BroadcastScalar1D ADD f32", element_wise("ADD", FLOAT, scalar=True), (203, 1163, 4235)),
    ("ScaledAddSupervisor f32", scaled_add(FLOAT), (225, 279, 1719, 6327)),
    ("ScaledAddSupervisor f16", scaled_add(HALF), (207, 225, 945, 3249)),
    ("ScaledAddSupervisor f16, f32", scaled_add(HALF, FLOAT), (243, 285, 1485, 5325)),
    ("ScaledAddSupervisor i32",
     ("popops::ScaledAddInteger<int>", lambda n: {"A": (INT, [n]), "B": (INT, [n]), "scale": 1}), (99, 645, 8965, 35589)),
    ("aXPlusbYSupervisor f32", scaled_both(FLOAT), (213, 285, 1725, 6333)),
    ("UnaryOp1D TANH f32", non_linearity("TANH", FLOAT), (194, 554, 6314, 24746)),
    ("UnaryOp1D SIGMOID f32", non_linearity("SIGMOID", FLOAT), (194, 554, 6314, 24746)),
    ("UnaryOp1D TANH f16", non_linearity("TANH", HALF), (146, 194, 1154, 4226)),
    ("UnaryOp1D RELU f32", non_linearity("RELU", FLOAT), (140, 230, 1670, 6278)),
    ("NonLinearity1D GELU f32", non_linearity("GELU", FLOAT), (237, 603, 5403, 20763)),
    ("poplin ReduceAdd f32, 8 partials",
     ("poplin::ReduceAdd<float,float>", lambda n: {"partials": (FLOAT, [8, n]), "out": (FLOAT, [n])}),
     (366, 750, 8190, 31998)),
]
WORKER_VERTICES = [  # the same with worker cycles, and what our vertex does beyond the tabulated loop
    ("Reduce ADD single input f32",
     ("poplin::SumPartials<float>", lambda n: {"partials": (FLOAT, [1, n]), "out": (FLOAT, [1])}),
     (18, 49, 529, 2065), lambda n: 0),
    ("Dot product f32",
     ("poplin::DotProducts<float>", lambda n: {"a": (FLOAT, [1, n]), "b": (FLOAT, [n]), "out": (FLOAT, [1])}),
     (10, 39, 519, 2055), lambda n: ENTRY),
    ("Dot product f16",
     ("poplin::DotProducts<half>", lambda n: {"a": (HALF, [1, n]), "b": (HALF, [n]), "out": (FLOAT, [1])}),
     (9, 22, 262, 1030), lambda n: ENTRY),
    ("LossCrossEntropyTransform f32",  # ours adds up the losses of its row as well
     ("popnn::LossCrossEntropy<float>",
      lambda n: {"probs": (FLOAT, [1, n]), "expected": (UNSIGNED_INT, [1]), "deltas": (FLOAT, [1, n]), "loss": (FLOAT, [1]),
                 "smallest": 0.0}),
     (29, 596, 9236, 36884), lambda n: 17 + -(-n // 2)),
]
SHARED_VERTICES = [  # rows of single workers that a MultiVertex of ours shares out, by the elements of the busiest worker
    ("OuterProduct 1 x n f32",
     ("poplin::OuterProduct<float,float>",
      lambda n: {"a": (FLOAT, []), "b": (FLOAT, [WORKERS * n]), "out": (FLOAT, [WORKERS * n])}),
     (48, 71, 551, 2087)),
]
BLOCKS = [  # ConvPartial1x1Out, n rows: the supervisor loads the weights, which our workers' cycles include
    ("ConvPartial1x1Out h/h, 16 in, 16 out", HALF, 16, (323, 545, 4385, 16673)),
    ("ConvPartial1x1Out f/f, 8 in, 16 out", FLOAT, 8, (473, 1331, 16691, 65843)),
]
# fmt: on


def cases(rows):
    return [pytest.param(*row[1:], id=row[0]) for row in rows]


@pytest.mark.parametrize(("vertex", "expected"), cases(MULTI_VERTICES))
def test_a_multi_vertex_takes_the_tile_cycles_of_the_table(vertex, expected):
    found = tile_cycles(*vertex, SIZES[-len(expected) :])
    assert found == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.parametrize(("vertex", "expected", "beyond"), cases(WORKER_VERTICES))
def test_a_vertex_of_one_worker_takes_the_slots_of_the_table(vertex, expected, beyond):
    assert tile_cycles(*vertex) == [WORKERS * (slots + beyond(n)) for slots, n in zip(expected, SIZES, strict=True)]


@pytest.mark.parametrize(("vertex", "expected"), cases(SHARED_VERTICES))
def test_a_shared_vertex_takes_the_slots_of_its_busiest_worker(vertex, expected):
    assert tile_cycles(*vertex) == [WORKERS * slots for slots in expected]


@pytest.mark.parametrize(("type", "depth", "expected"), cases(BLOCKS))
def test_a_block_product_takes_the_tile_cycles_of_the_convolution(type, depth, expected):
    def fields(n):
        vectors = {"a": (type, [n * depth]), "b": (type, [depth * 16]), "out": (FLOAT, [n * 16])}
        return {**vectors, "groups": 1, "depth": depth, "columns": 16, "stride": 16, "rowGroups": 6, "columnShare": 16}

    assert tile_cycles(templateVertex("poplin::BlockProduct", type, FLOAT), fields) == pytest.approx(expected, abs=ROUNDING)
