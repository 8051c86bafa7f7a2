"""Graphs that are drawn from the table give what ONNX's reference evaluator gives, and cost cycles where there is arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import pypoplar.onnx

UNARY = (
    "Abs",
    "Neg",
    "Relu",
    "Sigmoid",
    "Tanh",
    "Exp",
    "Softplus",
    "Erf",
    "Floor",
    "Identity",
    "Sin",
    "Elu",
    "LeakyRelu",
    "HardSigmoid",
)
BINARY = ("Add", "Sub", "Mul", "Max", "Min", "Sum", "Mean")
REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp")
OPSETS = (13, 17, 18, 21)
TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "int32": TensorProto.INT32, "int64": TensorProto.INT64}
ON_INTEGERS = {"unary": ("Abs", "Neg", "Identity"), "binary": ("Add", "Sub", "Max", "Min"), "reduce": ("ReduceMax", "ReduceMin")}


class Drawing:
    """A graph that grows by nodes; names have their shapes."""

    def __init__(self, draw, opset, kind):
        self.draw, self.opset, self.kind = draw, opset, kind
        self.nodes, self.constants, self.shapes = [], [], {}

    def name(self):
        return self.draw(st.sampled_from(sorted(self.shapes)))

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, kind, inputs, shape, **attributes):
        made = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [made], f"/{kind}_{len(self.nodes)}", **attributes))
        self.shapes[made] = tuple(shape)

    def of(self, form, all_names):
        return self.draw(st.sampled_from(ON_INTEGERS[form] if self.kind.startswith("int") else all_names))

    def unary(self):
        name = self.name()
        self.add(self.of("unary", UNARY), [name], self.shapes[name])

    def binary(self):
        name = self.name()
        alike = sorted(other for other, shape in self.shapes.items() if shape == self.shapes[name])
        self.add(self.of("binary", BINARY), [name, self.draw(st.sampled_from(alike))], self.shapes[name])

    def reduce(self):
        name = self.name()
        shape = self.shapes[name]
        if shape:
            axis = self.draw(st.integers(0, len(shape) - 1))
            kind, keep = self.of("reduce", REDUCTIONS), self.draw(st.booleans())
            rest = [1 if place == axis else size for place, size in enumerate(shape) if keep or place != axis]
            as_operand = self.opset >= 18 or kind == "ReduceSum"
            axes = {} if as_operand else {"axes": [axis]}
            self.add(kind, [name, *([self.constant(np.int64([axis]))] if as_operand else [])], rest, keepdims=int(keep), **axes)

    def transpose(self):
        name = self.name()
        order = self.draw(st.permutations(range(len(self.shapes[name]))))
        if order:
            self.add("Transpose", [name], [self.shapes[name][axis] for axis in order], perm=list(order))

    def reshape(self):
        name = self.name()
        self.add("Reshape", [name, self.constant(np.int64([-1]))], [int(np.prod(self.shapes[name]))])

    def part(self):
        name = self.name()
        shape = self.shapes[name]
        if shape and shape[0] > 1:
            back = self.draw(st.booleans())
            start, end, step = ([-1], [-(2**40)], [-1]) if back else ([1], [2**40], [1])
            given = [self.constant(np.int64(one)) for one in (start, end, [0], step)]
            self.add("Slice", [name, *given], shape if back else [shape[0] - 1, *shape[1:]])

    def join(self):
        name = self.name()
        shape = self.shapes[name]
        if shape and np.prod(shape) < 300:
            self.add("Concat", [name, name], [2 * shape[0], *shape[1:]], axis=0)

    def softmax(self):
        name = self.name()
        if self.shapes[name] and not self.kind.startswith("int"):
            self.add("Softmax", [name], self.shapes[name], axis=-1)


KINDS = ("unary", "binary", "reduce", "transpose", "reshape", "part", "join", "softmax")


@st.composite
def graphs(draw):
    drawing = Drawing(draw, draw(st.sampled_from(OPSETS)), draw(st.sampled_from(sorted(TYPES))))
    shapes = st.lists(st.integers(1, 4), min_size=0, max_size=3).map(tuple)
    inputs = {f"x{number}": draw(shapes) for number in range(draw(st.integers(1, 2)))}
    drawing.shapes.update(inputs)
    for kind in draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=12)):
        getattr(drawing, kind)()
    drawing.add("Identity", [sorted(inputs)[0]], inputs["x0"])
    kind = TYPES[drawing.kind]
    values = [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()]
    results = [helper.make_tensor_value_info(name, kind, shape) for name, shape in drawing.shapes.items() if name not in inputs]
    graph = helper.make_graph(drawing.nodes, "drawn", values, results, drawing.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", drawing.opset)], ir_version=8)
    return model, {name: (shape, drawing.kind) for name, shape in inputs.items()}, draw(st.integers(0, 99))


@pytest.mark.slow
@pytest.mark.no_cover
@examples(40)
@given(graphs())
def test_drawn_graphs_give_what_the_reference_evaluator_gives(drawn):
    model, inputs, seed = drawn
    generator = np.random.default_rng(seed)
    arrays = {name: (2 * generator.normal(size=shape)).astype(dtype) for name, (shape, dtype) in inputs.items()}
    loaded = pypoplar.onnx.load(model)
    results = loaded(arrays)
    with np.errstate(all="ignore"):
        wanted = ReferenceEvaluator(model).run(None, arrays)
    half = any(dtype == "float16" for _, dtype in inputs.values())
    for (name, result), expected in zip(results.items(), wanted, strict=True):
        assert result.dtype == expected.dtype, name
        assert result.shape == np.shape(expected), name
        np.testing.assert_allclose(result, expected, rtol=3e-2 if half else 1e-4, atol=3e-2 if half else 1e-5, err_msg=name)
    assert loaded.cycleCount() > 0
