"""`testing.run` and `testing.run_vertex`: they run both engines, compare them, and hand on what came of it."""

import numpy as np
import pytest

from pypoplar import (
    FLOAT,
    HALF,
    INT,
    CodeletIndexError,
    GraphConnectionError,
    InOut,
    Input,
    IPUModel,
    MultiVertex,
    Output,
    PoplarTypeError,
    TensorShapeError,
    UnknownField,
    UnknownHandle,
    Vector,
    VectorList,
    Vertex,
    testing,
)
from pypoplar.program import Copy, Execute, PrintTensor, Repeat, Sequence
from pypoplar.testing import running


class Scale(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]
    factor: FLOAT

    def compute(self):
        for i in range(len(self.x)):
            self.y[i] = self.factor * self.x[i]


class Count(Vertex):
    value: InOut[INT]

    def compute(self):
        self.value += 1


class Rows(Vertex):
    rows: InOut[VectorList[HALF]]

    def compute(self):
        for row in range(len(self.rows)):
            for i in range(len(self.rows[row])):
                self.rows[row][i] = self.rows[row][i] * 2.0


class Workers(MultiVertex):
    y: Output[Vector[INT]]

    def compute(self, worker):
        for i in range(worker, len(self.y), 6):
            self.y[i] = worker


def scale_by_two(graph, x, y):
    compute_set = graph.addComputeSet("scale")
    graph.setTileMapping(graph.addVertex(compute_set, Scale, {"x": x, "y": y, "factor": 2.0}), 3)
    return compute_set


def floats(*values):
    return np.array(values, np.float32)


def test_a_vertex_gives_its_outputs_in_the_fields_types():
    result = testing.run_vertex(Scale, {"x": [1, 2.5], "y": [0, 0], "factor": 2})
    assert result["y"].dtype == np.float32
    assert result["y"].tolist() == [2, 5]
    assert list(result) == ["x", "y"]
    testing.assert_no_exchange(result)


def test_scalars_lists_and_workers():
    assert testing.run_vertex(Count, {"value": 41})["value"] == 42
    rows = testing.run_vertex(Rows, {"rows": [[1, 2], [3]]})["rows"]
    assert [row.tolist() for row in rows] == [[2, 4], [6]]
    assert rows[0].dtype == np.float16
    assert testing.run_vertex(Workers, {"y": [9] * 8})["y"].tolist() == [0, 1, 2, 3, 4, 5, 0, 1]


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"x": [1, 2], "y": [0], "factor": 1.0}, CodeletIndexError, "y"),
        ({"x": [1, 2], "factor": 1.0}, GraphConnectionError, "y"),
        ({"x": [1, 2], "y": [0], "factr": 1.0}, UnknownField, "factor"),
        ({"x": 1, "y": [0]}, TensorShapeError, "'x' takes a sequence"),
        ({"x": [[1]], "y": [0]}, TensorShapeError, "'x' takes a sequence"),
    ],
)
def test_errors_of_a_vertex_are_raised_once_both_engines_agree(fields, error, message):
    with pytest.raises(error, match=message):
        testing.run_vertex(Scale, fields)


def test_values_that_a_field_cannot_hold_are_refused():
    with pytest.raises(PoplarTypeError, match=r"field 'value' is INT, which cannot hold 1\.5"):
        testing.run_vertex(Count, {"value": 1.5})
    with pytest.raises(PoplarTypeError, match="field 'value' is INT, which cannot hold 3000000000"):
        testing.run_vertex(Count, {"value": 3_000_000_000})
    with pytest.raises(TensorShapeError, match="'value' takes a number"):
        testing.run_vertex(Count, {"value": [1]})
    with pytest.raises(TensorShapeError, match="'y' takes a sequence of numbers, got rows of different lengths"):
        testing.run_vertex(Workers, {"y": [[1], [2, 3]]})


def test_a_vector_may_be_empty():
    assert testing.run_vertex(Workers, {"y": []})["y"].tolist() == []


def test_names_that_are_not_there_are_refused():
    result = testing.run_vertex(Count, {"value": 1})
    with pytest.raises(UnknownHandle, match="no array of the result is called 'valu'; did you mean 'value'"):
        result["valu"]
    with pytest.raises(UnknownHandle, match="no array to map is called 'z'"):
        testing.run(lambda graph, x: Sequence(), {"x": floats(1)}, mapping={"z": 3})


def test_arrays_have_a_type_of_the_device():
    with pytest.raises(PoplarTypeError, match=r"array 'x': no element type has the NumPy dtype float64; .* use numpy.float32"):
        testing.run(lambda graph, x: Sequence(), {"x": np.ones(2)})


def test_a_compute_set_runs_on_arrays_and_leaves_the_users_alone():
    x, y = floats(1, 2, 3), floats(0, 0, 0)
    result = testing.run(scale_by_two, {"x": x, "y": y})
    assert result["y"].tolist() == [2, 4, 6]
    assert y.tolist() == [0, 0, 0]
    assert result.report.execution.totalCycles.total > 0


def test_variables_are_spread_unless_mapped():
    arrays = {"x": floats(1, 2), "y": floats(0, 0)}
    spread = testing.run(scale_by_two, arrays)
    testing.assert_exchange(spread, "scale", {(0, 3): 4, (1, 3): 4}, "before")
    testing.assert_exchange(spread, "scale", {(3, 0): 4, (3, 1): 4}, "after")
    testing.assert_no_exchange(testing.run(scale_by_two, arrays, mapping={"x": 3, "y": 3}))
    by_interval = testing.run(scale_by_two, arrays, mapping={"x": [[(0, 2)]], "y": {3: [(0, 2)]}})
    testing.assert_exchange(by_interval, "scale", {(0, 3): 8})
    testing.assert_exchange_at_most(by_interval, 8)


def test_a_program_may_have_further_outputs():
    def build(graph, x):
        doubled = graph.addVariable(FLOAT, [2], "doubled")
        graph.setTileMapping(doubled, 1)
        return Sequence([Execute(scale_by_two(graph, x, doubled)), Copy(doubled, x)]), {"doubled": doubled}

    result = testing.run(build, {"x": floats(1, 2)}, runs=2)
    assert result["doubled"].tolist() == result["x"].tolist() == [4, 8]


def test_streams_are_copies_and_come_back():
    given, taken = floats(1, 2, 3, 4), floats(0, 0)

    def build(graph, x):
        stream_in = graph.addHostToDeviceFIFO("in", FLOAT, 2)
        stream_out = graph.addDeviceToHostFIFO("out", FLOAT, 2)
        return Sequence([Repeat(2, Copy(stream_in, x)), Copy(x, stream_out)])

    result = testing.run(build, {"x": floats(0, 0)}, streams={"in": given, "out": taken})
    assert result.streams["out"].tolist() == [3, 4]
    assert taken.tolist() == [0, 0]


def test_what_is_printed_is_kept(capsys):
    result = testing.run(lambda graph, x: PrintTensor("x", x), {"x": floats(1.5)})
    assert "1.5000000" in result.printed
    assert capsys.readouterr().err == result.printed


def test_the_device_is_the_users():
    model = IPUModel("tiny")
    model.tilesPerIPU = 4
    result = testing.run(scale_by_two, {"x": floats(1), "y": floats(0)}, device=model.createDevice())
    assert result.engine.executable.target.getNumTiles() == 4


def test_scalars_and_empty_arrays_are_arrays():
    result = testing.run(lambda graph, x, y: Sequence(), {"x": np.float32(2), "y": np.zeros((0, 3), np.int32)})
    assert result["x"] == 2
    assert result["y"].shape == (0, 3)


def test_what_is_not_a_program_is_refused():
    with pytest.raises(PoplarTypeError, match="build must return"):
        testing.run(lambda graph, x: 7, {"x": floats(1)})
    with pytest.raises(PoplarTypeError, match="float64"):
        testing.run(scale_by_two, {"x": np.zeros(1), "y": np.zeros(1)})


def outcome(mode, error=None, **arrays):
    engine = running.Engine
    result = None if error else running.Result(arrays, {}, "", engine)
    return running._Outcome(mode, result, error)


def test_engines_that_disagree_fail_with_both_sides():
    with pytest.raises(AssertionError, match=r"y\[0\]: interpret 1\.0 .*, native 2\.0"):
        running._compare(outcome("interpret", y=floats(1)), outcome("native", y=floats(2)))
    with pytest.raises(AssertionError, match="interpret gives ValueError: no; native gives no error"):
        running._compare(outcome("interpret", ValueError("no")), outcome("native", y=floats(1)))
    with pytest.raises(AssertionError, match="native gives KeyError"):
        running._compare(outcome("interpret", ValueError("no")), outcome("native", KeyError("no")))
    running._compare(outcome("interpret", ValueError("no")), outcome("native", ValueError("no")))
