"""An If whose condition data decide runs one of its branches on the device."""

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import pypoplar.onnx
from pypoplar.errors import MissingFeature
from pypoplar.onnx import ModelError


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def node(kind, inputs, outputs, name="", **attributes):
    return helper.make_node(kind, inputs, outputs, name, **attributes)


def branch(nodes, *results, constants=()):
    given = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants]
    return helper.make_graph(nodes, "branch", [], [value(one, None) for one in results], given)


def choosing(then, otherwise, results=("r",), inputs=(("x", [1, 3]),), condition=None, after=()):
    """An If by whether the sum of x is above 0; `h`, which branches may use, is exp(x)."""
    nodes = [
        node("Exp", ["x"], ["h"], "/exp"),
        node("ReduceSum", ["x"], ["s"], "/sum", keepdims=0),
        node("Greater", ["s", "zero"], ["c"], "/above"),
        node("If", [condition or "c"], list(results), "/choose", then_branch=then, else_branch=otherwise),
        *after,
    ]
    last = after[-1].output if after else results
    zero = numpy_helper.from_array(np.float32(0), "zero")
    graph = helper.make_graph(nodes, "g", [value(*one) for one in inputs], [value(one, None) for one in last], [zero])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


DOUBLE = branch([node("Mul", ["x", "by"], ["t"], "/scaled")], "t", constants=[("by", np.float32([2, 3, 4]))])
NEGATIVE = branch([node("Neg", ["h"], ["e"], "/negative")], "e")
ABOVE, BELOW = np.float32([[1, 2, 3]]), np.float32([[-1, -2, 1]])  # of two dimensions: no shapes, for which a model is compiled


def check(model):
    """Both branches give what the reference evaluator gives, from one compilation."""
    loaded = pypoplar.onnx.load(model)
    for x in (ABOVE, BELOW, ABOVE):
        wanted = ReferenceEvaluator(model).run(None, {"x": x})
        for got, expected in zip(loaded(x=x).values(), wanted, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5)
            assert got.dtype == expected.dtype
    assert len(loaded._compiled) == 1
    return loaded


def test_the_device_runs_the_branch_that_data_choose_and_no_other():
    loaded = check(choosing(DOUBLE, NEGATIVE, after=[node("Add", ["r", "x"], ["y"], "/add")]))
    steps = {one.name: one.cycles for one in loaded.getReport().execution.steps}
    assert any(name.startswith("choose/then/scaled") for name in steps)
    assert not any(name.startswith("choose/else") for name in steps)
    assert loaded.node_paths()["choose"] == "g: node /choose (If)"


def test_branches_give_several_values_also_known_ones_and_those_from_outside():
    then = branch(
        [node("Constant", [], ["k"], value=numpy_helper.from_array(np.int64([7, 8]))), node("Identity", ["h"], ["i"])], "k", "i"
    )
    otherwise = branch([node("Constant", [], ["k2"], value=numpy_helper.from_array(np.int64([1, 2])))], "k2", "x")
    check(choosing(then, otherwise, results=("a", "b")))


def test_a_choice_lies_within_a_choice():
    inner = branch(
        [
            node("ReduceMax", ["x"], ["m"], keepdims=0),
            node("Greater", ["m", "two"], ["larger"]),
            node("If", ["larger"], ["i"], "/inner", then_branch=DOUBLE, else_branch=NEGATIVE),
        ],
        "i",
        constants=[("two", np.float32(2))],
    )
    loaded = check(choosing(inner, NEGATIVE))
    np.testing.assert_allclose(loaded(x=np.float32([[1, 1, 1]]))["r"], [[-np.e] * 3], rtol=1e-5)


def test_a_choice_lies_in_rounds_of_a_loop():
    step = helper.make_graph(
        [
            node("ReduceSum", ["carry"], ["s2"], keepdims=0),
            node("Greater", ["s2", "zero"], ["above"]),
            node(
                "If",
                ["above"],
                ["next"],
                "/turn",
                then_branch=branch([node("Sub", ["carry", "one"], ["t"])], "t", constants=[("one", np.float32(1))]),
                else_branch=branch([node("Neg", ["carry"], ["e"])], "e"),
            ),
            node("Identity", ["on"], ["on_out"]),
        ],
        "body",
        [value("i", [], TensorProto.INT64), value("on", [], TensorProto.BOOL), value("carry", [1, 3])],
        [value("on_out", [], TensorProto.BOOL), value("next", [1, 3])],
    )
    given = [numpy_helper.from_array(np.float32(0), "zero"), numpy_helper.from_array(np.int64(4), "n")]
    given.append(numpy_helper.from_array(np.array(True), "go"))
    graph = helper.make_graph(
        [node("Loop", ["n", "go", "x"], ["y"], "/loop", body=step)], "g", [value("x", [1, 3])], [value("y", [1, 3])], given
    )
    check(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]))


def test_branches_of_other_shapes_are_told_or_the_model_is_compiled_for_a_condition_that_a_call_gives():
    first = branch(
        [node("Slice", ["x", "zeros", "ones", "last"], ["t"])],
        "t",
        constants=[("zeros", np.int64([0])), ("ones", np.int64([1])), ("last", np.int64([1]))],
    )
    with pytest.raises(
        ModelError,
        match=r"node /choose \(If\): data choose the branch.*output 0 is float \[1, 1\] of then_branch and float \[1, 3\]",
    ):
        pypoplar.onnx.load(choosing(first, NEGATIVE))(x=ABOVE)
    given = choosing(first, NEGATIVE, inputs=(("x", [1, 3]), ("flag", [], TensorProto.BOOL)), condition="flag")
    loaded = pypoplar.onnx.load(given)
    assert loaded(x=ABOVE, flag=np.array(True))["r"].tolist() == [[1]]
    np.testing.assert_allclose(loaded(x=ABOVE, flag=np.array(False))["r"], -np.exp(ABOVE), rtol=1e-5)


def test_a_condition_that_a_call_gives_needs_one_compilation_where_shapes_agree():
    loaded = pypoplar.onnx.load(
        choosing(DOUBLE, NEGATIVE, inputs=(("x", [1, 3]), ("flag", [], TensorProto.BOOL)), condition="flag")
    )
    loaded.compile()
    assert loaded(x=ABOVE, flag=np.array(True))["r"].tolist() == [[2, 6, 12]]
    np.testing.assert_allclose(loaded(x=ABOVE, flag=np.array(False))["r"], -np.exp(ABOVE), rtol=1e-5)


@pytest.mark.parametrize(
    ("otherwise", "message"),
    [
        (branch([node("Neg", ["h"], ["e"])], "missing"), "the output missing of branch is computed by no node"),
        (
            branch([node("NonZero", ["h"], ["e"], "/nz")], "e"),
            r"node /nz \(NonZero\): what comes out depends on the data of its input h",
        ),
        (branch([node("Cast", ["h"], ["e"], to=TensorProto.INT32)], "e"), "output 0 is float .* of then_branch and int32"),
        (branch([node("Neg", ["h"], ["e"])], "e", "h"), "then_branch has 1 outputs, and else_branch 2"),
    ],
)
def test_what_is_wrong_with_a_branch_is_told(otherwise, message):
    with pytest.raises(ModelError, match=message):
        pypoplar.onnx.load(choosing(DOUBLE, otherwise))(x=ABOVE)


def test_a_condition_has_one_element():
    with pytest.raises(ModelError, match=r"node /choose \(If\): its condition flags has one element, got shape \[3\]"):
        pypoplar.onnx.load(choosing(DOUBLE, NEGATIVE, inputs=(("x", [1, 3]), ("flags", [3], TensorProto.BOOL)), condition="flags"))(
            x=ABOVE, flags=np.ones(3, bool)
        )


def test_a_choice_has_no_gradient():
    weighted = branch([node("Mul", ["x", "w"], ["t"])], "t")
    model = choosing(weighted, NEGATIVE)
    model.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "w"))
    training = pypoplar.onnx.training(model, torch.nn.functional.mse_loss, lambda weights: torch.optim.SGD(weights, lr=0.1))
    with pytest.raises(MissingFeature, match=r"poptorch\.cond\(\) is only supported in inference.*no gradient"):
        training(torch.ones(1, 3), torch.ones(1, 3))
