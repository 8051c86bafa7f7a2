"""Operators made of a program's own codelets: PopART's example of a leaky ReLU, which infers and trains."""

import numpy as np
import pytest
import torch
from onnx import TensorProto, ValueInfoProto, helper

import pypoplar.onnx
from pypoplar import FLOAT, Input, Output, Vector, Vertex, popart, poptorch
from pypoplar.program import Execute


class LeakyReluOfElements(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]
    alpha: FLOAT

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = self.x[i] if self.x[i] > 0 else self.alpha * self.x[i]


class LeakyReluGradient(Vertex):
    x: Input[Vector[FLOAT]]
    above: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]
    alpha: FLOAT

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = self.above[i] if self.x[i] > 0 else self.alpha * self.above[i]


def vertices(graph, codelet, like, prog, name, alpha, **fields):
    y = graph.clone(like)
    graph.setTileMapping(y, 0)
    computing = graph.addComputeSet(name)
    flat = {key: one.flatten() for key, one in {**fields, "y": y}.items()}
    graph.setTileMapping(graph.addVertex(computing, codelet, {**flat, "alpha": alpha}), 0)
    prog.add(Execute(computing))
    return [y]


@pytest.fixture
def leaky():
    @poptorch.registerCustomOp("LeakyRelu", "custom.ops", 1)
    def leaky_relu(graph, inputs, attributes, prog, name):
        return vertices(graph, LeakyReluOfElements, inputs[0], prog, name, attributes["alpha"], x=inputs[0])

    @leaky_relu.backward
    def gradient(graph, gradients, inputs, outputs, attributes, prog, name):
        return vertices(graph, LeakyReluGradient, inputs[0], prog, name, attributes["alpha"], x=inputs[0], above=gradients[0])


def test_the_user_guide_s_leaky_relu_infers(leaky):
    builder = popart.Builder()
    input_tensor = builder.addInputTensor(popart.TensorInfo("FLOAT", [2, 3]))
    output_tensor = builder.customOp(
        opName="LeakyRelu", opVersion=1, domain="custom.ops", inputs=[input_tensor], attributes={"alpha": 0.25}
    )[0]
    builder.addOutputTensor(output_tensor)
    anchors = {output_tensor: popart.AnchorReturnType("ALL")}
    device = popart.DeviceManager().createIpuModelDevice({"numIPUs": 1})
    session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, anchors), device)
    session.prepareDevice()
    result = session.initAnchorArrays()
    x = np.float32([[-4, 1, -8], [2, -1, 0]])
    session.run(popart.PyStepIO({input_tensor: x}, result))
    assert result[output_tensor].tolist() == [[-1, 1, -2], [2, -0.25, 0]]
    assert session.getCycleCount() > 0


def test_a_custom_operator_trains_by_its_gradient(leaky):
    builder, first = popart.Builder(), np.float32([[1, -2], [-3, 4], [0.5, -0.5]])
    x, w = builder.addInputTensor(popart.TensorInfo("FLOAT", [2, 3]), "x"), builder.addInitializedInputTensor(first, "w")
    (y,) = builder.customOp("LeakyRelu", 1, "custom.ops", [builder.aiOnnx.matmul([x, w])], {"alpha": 0.1})
    loss = builder.aiGraphcore.l1loss([y], 1.0, popart.ReductionType.Sum)
    gradient = popart.reservedGradientPrefix() + w
    device = popart.DeviceManager().createCpuDevice()
    session = popart.TrainingSession(
        builder.getModelProto(), popart.DataFlow(1, [gradient, loss]), loss, popart.ConstSGD(0.1), device
    )
    session.prepareDevice()
    session.weightsFromHost()
    anchors, given = session.initAnchorArrays(), np.float32([[1, 2, 3], [-1, 0, 2]])
    session.run(popart.PyStepIO({x: given}, anchors))
    weight = torch.tensor(first, requires_grad=True)
    wanted = torch.nn.functional.leaky_relu(torch.from_numpy(given) @ weight, 0.1).abs().sum()
    wanted.backward()
    np.testing.assert_allclose(anchors[loss], wanted.item(), rtol=1e-5)
    np.testing.assert_allclose(anchors[gradient], weight.grad.numpy(), rtol=1e-5)


def test_a_file_may_have_custom_operators_whose_shapes_a_reference_says():
    @poptorch.registerCustomOp("FirstRow", "custom.ops", 2, reference=lambda x: x[:1] * 1)
    def first_row(graph, inputs, attributes, prog, name):
        return [inputs[0].slice(0, 1)]

    node = helper.make_node("FirstRow", ["x"], ["y"], "/row", domain="custom.ops")
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])], [ValueInfoProto(name="y")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("custom.ops", 2)])
    assert pypoplar.onnx.load(model)(x=np.float32([[1, 2, 3], [4, 5, 6]]))["y"].tolist() == [[1, 2, 3]]
    model.graph.node[0].op_type = "FirstRwo"
    with pytest.raises(pypoplar.onnx.ModelError, match=r"node /row \(FirstRwo\).*the nearest is FirstRow"):
        pypoplar.onnx.load(model)


def test_an_operator_that_was_not_registered_is_told_and_one_of_another_shape(leaky):
    builder = popart.Builder()
    x = builder.addInputTensor("FLOAT", [2], "x")
    with pytest.raises(popart.popart_exception, match=r"no operator 'LeakyReul' of custom\.ops.*LeakyRelu.*registerCustomOp"):
        builder.customOp("LeakyReul", 1, "custom.ops", [x], {})
    with pytest.raises(popart.popart_exception, match="version 7 is registered"):
        builder.customOp("LeakyRelu", 7, "custom.ops", [x], {})
    with pytest.raises(popart.popart_exception, match="a list of tensors"):
        builder.customOp("LeakyRelu", 1, "custom.ops", x, {})

    @poptorch.registerCustomOp("Half", "custom.ops", 1)
    def half(graph, inputs, attributes, prog, name):
        return [inputs[0].slice(0, 1)]

    (y,) = builder.customOp("Half", 1, "custom.ops", [x], {})
    session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, [y]), popart.DeviceManager().createCpuDevice())
    with pytest.raises(pypoplar.PoplarError, match=r"result 0 is FLOAT \[2\] by its example, got FLOAT \[1\]"):
        session.prepareDevice()
