"""The backend is what ONNX's tests and other programs expect of one."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.backend.base import Backend
from onnx.backend.test import BackendTest

import pypoplar.onnx.backend as backend
from pypoplar.errors import InvalidOption, PoplarTypeError


def model(kind="Relu"):
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(kind, ["x"], ["y"])], "one", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


X = np.float32([-1, 0, 2])


def test_a_model_is_prepared_and_run_and_costs_cycles():
    prepared = backend.prepare(model())
    for given in ([X], {"x": X}, X):
        (result,) = prepared.run(given)
        assert result.tolist() == [0, 0, 2]
    assert prepared.cycleCount() > 0
    assert backend.run_model(model(), [X])[0].tolist() == [0, 0, 2]
    with pytest.raises(PoplarTypeError, match="takes inputs alone"):
        prepared.run([X], stream=1)


def test_a_node_is_run_alone():
    node = helper.make_node("Clip", ["x", "", "most"], ["y"])
    assert backend.run_node(node, [X, np.float32(1)])[0].tolist() == [-1, 0, 1]
    assert backend.run_node(helper.make_node("Abs", ["x"], ["y"]), [X], opset_version=13)[0].tolist() == [1, 0, 2]
    with pytest.raises(PoplarTypeError, match="takes 1 inputs here, got 2"):
        backend.run_node(helper.make_node("Abs", ["x"], ["y"]), [X, X])


def test_what_is_there_is_compatible():
    assert backend.is_compatible(model())
    assert not backend.is_compatible(model("Rellu"))
    assert [backend.supports_device(name) for name in ("CPU", "IPU:1", "CUDA")] == [True, True, False]
    with pytest.raises(InvalidOption, match="a device is one of CPU, IPU, got 'CUDA'"):
        backend.prepare(model(), "CUDA")


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")  # of ONNX's own tests, which are all made
def test_onnx_s_own_runner_takes_it():
    assert issubclass(backend.Backend, Backend)
    tests = BackendTest(backend, __name__).include("test_relu_cpu").include("test_relu_cuda").tests
    assert callable(tests.test_relu_cpu)
    tests("test_relu_cpu").test_relu_cpu()
