"""The compute graph and the graph of vertices as DOT text."""

import io
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from pypoplar import FLOAT, INT, Graph, InOut, Input, IPUModel, Output, Vector, VectorList, Vertex
from pypoplar.errors import PoplarTypeError
from pypoplar.program import Call, Execute, Repeat, Sequence

NASTY = 'a "quoted" \\ name & <b>\n\tsecond line\\'
SHOWN_NASTY = 'a "quoted" \\ name & <b> second line\\'


class Scale(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]
    factor: FLOAT
    table: Vector[INT]

    def compute(self):
        for i in range(len(self.x)):
            self.y[i] = self.factor * self.x[i]


class Bump(Vertex):
    rows: InOut[VectorList[FLOAT]]

    def compute(self):
        self.rows[0][0] += 1.0


def small_graph(name="x"):
    """Two compute sets: scale reads x and writes y, bump changes two rows of y."""
    graph = Graph(IPUModel("tiny").createDevice())
    x = graph.addVariable(FLOAT, [2, 3], name)
    y = graph.addVariable(FLOAT, [2, 3], "y")
    graph.addConstant(FLOAT, [1], 0, "zero")
    scale, bump = graph.addComputeSet("scale"), graph.addComputeSet("bump")
    made = graph.add_vertices(scale, Scale, {"x": x, "y": y, "factor": [0.5, -2.0], "table": [1, 2, 3, 4, 5]}, np.array([3, 7]))
    assert len(made) == 2
    graph.addVertex(bump, Bump, {"rows": [y[0], y[1].subSample(2, 0)]})
    return graph, scale, bump


def text_of(write, *arguments):
    stream = io.StringIO()
    write(stream, *arguments)
    return stream.getvalue()


def nodes(text):
    return {one[0]: one[1].encode().decode("unicode_escape") for one in re.findall(r'^ *(\w+) \[label="(.*?[^\\])",', text, re.M)}


def edges(text):
    return re.findall(r'^ *(\w+) -> (\w+) \[label="(.*?)"(?:, dir=(\w+))?\];$', text, re.M)


def test_the_computation_graph_has_variables_compute_sets_and_what_is_read_and_written():
    text = text_of(small_graph()[0].outputComputationGraph)
    names = nodes(text)
    assert sorted(names.values()) == [
        *("bump\n1 Bump", "scale\n2 Scale", "x\nFLOAT [2, 3]", "y\nFLOAT [2, 3]", "zero\nFLOAT [1]"),
    ]
    first = {number: name.partition("\n")[0] for number, name in names.items()}
    assert sorted((first[a], first[b], elements) for a, b, elements, _ in edges(text)) == [
        ("bump", "y", "5 elements"),
        ("scale", "y", "6 elements"),
        ("x", "scale", "6 elements"),
        ("y", "bump", "5 elements"),
    ]


def test_the_vertex_graph_has_tiles_plain_fields_and_the_elements_of_each_field():
    text = text_of(small_graph()[0].outputVertexGraph)
    assert nodes(text) == {
        "d0": "x\nFLOAT [2, 3]",
        "d1": "y\nFLOAT [2, 3]",
        "d2": "zero\nFLOAT [1]",
        "v0": "Scale\nvertex 0, tile 3\nfactor = 0.5\ntable = [1 2 3 4 ... 5 elements]",
        "v1": "Scale\nvertex 1, tile 7\nfactor = -2.0\ntable = [1 2 3 4 ... 5 elements]",
        "v2": "Bump\nvertex 2, no tile",
    }
    assert re.findall(r'subgraph (\w+) \{\n    label="(\w+)";', text) == [("cluster0", "scale"), ("cluster1", "bump")]
    assert sorted(edges(text)) == [
        ("d0", "v0", "x [0:3)", ""),
        ("d0", "v1", "x [3:6)", ""),
        ("d1", "v2", "rows[0] [0:3)", "both"),
        ("d1", "v2", "rows[1] (2 elements)", "both"),
        ("v0", "d1", "y [0:3)", ""),
        ("v1", "d1", "y [3:6)", ""),
    ]


def test_programs_restrict_what_is_shown_to_the_compute_sets_that_they_execute():
    graph, scale, bump = small_graph()
    function = graph.addFunction(Sequence([Execute(bump)]))
    only_bump = Sequence([Repeat(3, Sequence([Call(function), Call(function)]))])
    assert sorted(nodes(text_of(graph.outputComputationGraph, only_bump)).values()) == ["bump\n1 Bump", "y\nFLOAT [2, 3]"]
    assert set(nodes(text_of(graph.outputVertexGraph, [only_bump]))) == {"d1", "v2"}
    assert set(nodes(text_of(graph.outputVertexGraph, [only_bump, Execute(scale)]))) == {"d0", "d1", "v0", "v1", "v2"}
    assert nodes(text_of(graph.outputVertexGraph, [])) == {}


def test_what_is_no_program_of_the_graph_is_refused():
    graph, scale, _ = small_graph()
    with pytest.raises(PoplarTypeError, match="list of programs"):
        graph.outputVertexGraph(io.StringIO(), [scale])
    with pytest.raises(PoplarTypeError, match="another graph"):
        graph.outputComputationGraph(io.StringIO(), Execute(small_graph()[1]))


def test_a_stream_of_bytes_is_refused():
    graph = small_graph()[0]
    for write in (graph.outputComputationGraph, graph.outputVertexGraph):
        with pytest.raises(PoplarTypeError, match="writes to an open text file, got"):
            write(io.BytesIO())


def test_a_graph_with_nothing_in_it_is_written():
    graph = Graph(IPUModel("tiny").createDevice())
    graph.addComputeSet("empty")
    assert nodes(text_of(graph.outputComputationGraph)) == {"n0": "empty"}
    assert 'label="empty"' in text_of(graph.outputVertexGraph)


def test_a_virtual_graph_writes_the_whole_graph():
    graph = small_graph()[0]
    assert text_of(graph.createVirtualGraph(4).outputVertexGraph) == text_of(graph.outputVertexGraph)


def test_vertices_by_the_hundred_thousand_are_all_there():
    graph = Graph(IPUModel().createDevice())
    x = graph.addVariable(FLOAT, [100_000, 2], "x")
    y = graph.addVariable(FLOAT, [100_000, 2], "y")
    graph.add_vertices(graph.addComputeSet("scale"), Scale, {"x": x, "y": y, "factor": 1.0}, np.arange(100_000) % 1472)
    text = text_of(graph.outputVertexGraph)
    assert text.count("vertex ") == 100_001  # one is in the title
    assert text.count(" -> ") == 200_000


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("method", ["outputComputationGraph", "outputVertexGraph"])
def test_graphviz_draws_it_and_shows_names_as_they_are(method):
    text = text_of(getattr(small_graph(NASTY)[0], method))
    drawn = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, check=True)
    assert drawn.stderr == ""
    shown = [one.text for one in ElementTree.fromstring(drawn.stdout).iter("{http://www.w3.org/2000/svg}text")]
    assert " ".join(" ".join(shown).split()).count(SHOWN_NASTY) == 1
