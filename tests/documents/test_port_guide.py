"""What the cheat sheet says of PopLibs' calls holds; what a missing name raises is for `test_poplibs_names`."""

import numpy as np
import pytest

from pypoplar import (
    FLOAT,
    Graph,
    InvalidOption,
    IPUModel,
    UnknownVertexType,
    VariableMappingMethod,
    poplin,
    popnn,
    popops,
    poprand,
    testing,
)
from pypoplar.popops import expr as pe
from pypoplar.poputil import PoplibsError
from pypoplar.program import Sequence


@pytest.fixture
def prog():
    return Sequence()


@pytest.fixture
def bare():
    return Graph(IPUModel("tiny").createDevice())


@pytest.fixture
def graph(bare):
    for library in (popops, poprand, poplin, popnn):
        library.addCodelets(bare)
    return bare


def square(graph, size=4):
    return graph.addVariable(FLOAT, [size, size], VariableMappingMethod.LINEAR)


def test_a_library_whose_codelets_a_graph_lacks_is_named(bare, prog):
    with pytest.raises(UnknownVertexType, match=r"call popops\.addCodelets\(graph\) first"):
        popops.add(bare, square(bare), 1.0, prog)


def test_options_are_a_dict_and_a_cache_is_an_object_or_none(graph, prog):
    matrix, cache = square(graph), poplin.PlanningCache()
    poplin.matMul(graph, matrix, matrix, prog, options={"partialsType": "half"}, cache=cache)
    poplin.matMul(graph, matrix, matrix, prog, options=None, cache=None)
    assert cache.size() == 1
    with pytest.raises(InvalidOption, match="did you mean 'partialsType'"):
        poplin.matMul(graph, matrix, matrix, prog, options={"partialType": "half"})


def test_arguments_choose_the_form_by_place_or_by_name(graph, prog):
    x, add, stages = square(graph), popops.Operation.ADD, []
    popops.reduce(graph, x, [0], add, stages)
    assert len(stages) == 1
    assert popops.reduce(graph, x, dims=[0], params=add, prog=prog, outType=FLOAT).shape() == [4]


def test_expressions_are_of_the_module_expr(graph, prog):
    x = square(graph)
    above = popops.gt(graph, x, 1.0, prog)
    assert popops.map(graph, pe._1 * 2 + pe._2, [x, x], prog).shape() == [4, 4]
    assert popops.map(graph, pe.And(pe._1, pe.Not(pe._1)), [above], prog).shape() == [4, 4]


def test_tensors_that_a_call_writes_follow_its_result(graph, prog):
    params = popnn.lstm.LstmParams(FLOAT, 2, 5, [3, 4])
    x, weights = popnn.lstm.createInput(graph, params), popnn.lstm.createWeights(graph, params)
    state = popnn.lstm.createInitialState(graph, params)
    popnn.lstm.zeroInitialState(graph, state, prog)
    output, cellState, intermediates = popnn.lstm.lstmFwd(graph, params, state, x, weights, prog)
    assert [output.shape(), cellState.shape(), intermediates.dim(0)] == [[5, 2, 4], [2, 4], 5]
    assert popnn.lstm.lstmFwd(graph, params, state, x, weights, prog, options={"inferenceOnly": True})[2] is None
    gradients = popnn.lstm.lstmBwd(graph, params, prog, state, intermediates, weights, x, output, output, None)
    assert gradients[1].shape() == x.shape()


def test_fields_of_parameters_are_lists():
    params = poplin.ConvParams(FLOAT, 1, [4, 4], [2, 2], 1, 1, 1)
    params.outputTransform.stride = [2, 2]
    assert params.getOutputFieldShape() == [2, 2]


@pytest.mark.parametrize("masked", [np.int32([-1, 1]), np.uint32([popops.MASKED_LABEL_CODE, 1])], ids=["int", "unsigned"])
def test_masked_labels_have_no_loss(masked):
    def compute(graph, outputs, labels, loss, deltas):
        popnn.addCodelets(graph)
        return popnn.calcLoss(graph, outputs, labels, loss, deltas, popnn.LossType.CROSS_ENTROPY_LOSS)

    outputs = np.full((2, 2), 0.5, np.float32)
    found = testing.run(compute, {"outputs": outputs, "labels": masked, "loss": outputs[0], "deltas": outputs})
    assert found["loss"][0] == 0
    assert found["loss"][1] > 0


def test_the_error_of_the_libraries_is_a_value_error_too(graph, prog):
    with pytest.raises(PoplibsError) as caught:
        poplin.matMul(graph, square(graph), square(graph, 3), prog)
    assert isinstance(caught.value, ValueError)


def test_a_module_whose_name_is_a_word_of_python_has_an_underscore():
    assert popnn.in_.instanceNormalise
