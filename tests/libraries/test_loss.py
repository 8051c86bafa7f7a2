"""popnn: losses, gradients, counts of right answers, argMax."""

import numpy as np
import pytest
from library_programs import new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, PoplarTypeError, popnn, poputil
from pypoplar.popnn import LossType
from pypoplar.program import Sequence

MASKED = 0xFFFFFFFF
CROSS_ENTROPY, SQUARES = LossType.CROSS_ENTROPY_LOSS, LossType.SUM_SQUARED_LOSS


def probabilities(samples, classes, seed=0):
    powers = np.exp(np.random.default_rng(seed).standard_normal((samples, classes)) * 2)
    return (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)


class Case:
    """Tensors of a loss on `samples` x `classes`, and what running it gives."""

    def __init__(self, samples, classes, type=FLOAT, label=UNSIGNED_INT, tiles=16):
        self.graph, self.device = new_graph(tiles)
        self.type = type
        self.outputs = variable(self.graph, type, [samples, classes], "outputs")
        self.expected = variable(self.graph, label, [samples], "expected")
        self.loss = variable(self.graph, type, [samples], "loss")
        self.deltas = variable(self.graph, type, [samples, classes], "deltas")
        self.numCorrect = variable(self.graph, UNSIGNED_INT, [1], "numCorrect")

    def run(self, program, p, labels, values=None, mode="native"):
        given = {"outputs": p.astype(self.type.dtype), "expected": labels, "numCorrect": np.array([5], np.uint32)} | (values or {})
        results = {"loss": self.loss, "deltas": self.deltas, "numCorrect": self.numCorrect}
        read, self.engine = run(self.graph, self.device, program, given, results, mode)
        return read["loss"], read["deltas"], int(read["numCorrect"][0])


def one_hot(labels, classes):
    return (np.arange(classes) == labels[:, np.newaxis]).astype(np.float64)


@pytest.mark.parametrize("label", [UNSIGNED_INT, INT])
@pytest.mark.parametrize("type", [FLOAT, HALF])
@pytest.mark.parametrize("samples", [1, 6])
def test_cross_entropy_has_the_gradient_by_the_logits_and_adds_to_the_count(samples, type, label, mode):
    p = probabilities(samples, 10).astype(type.dtype)
    labels = np.arange(samples, dtype=label.dtype) % 10
    labels[0] = p[0].argmax()
    case = Case(samples, 10, type, label)
    program = popnn.calcLoss(
        case.graph, case.outputs, case.expected, case.loss, case.deltas, case.numCorrect, CROSS_ENTROPY, "loss"
    )
    loss, deltas, correct = case.run(program, p, labels, mode=mode)
    exact = p.astype(np.float64)
    tolerance = {"rtol": 2e-6} if type is FLOAT else {"rtol": 1e-3}
    np.testing.assert_allclose(loss, -np.log(exact[np.arange(samples), labels]), **tolerance)
    np.testing.assert_allclose(deltas, exact - one_hot(labels, 10), **tolerance, atol=1e-7)
    assert correct == 5 + int((p.argmax(axis=1) == labels).sum())


@pytest.mark.parametrize("samples", [1, 5])
def test_squared_loss_is_half_the_sum_of_squared_differences(samples, mode):
    p = probabilities(samples, 4)
    labels = np.arange(samples, dtype=np.uint32) % 4
    case = Case(samples, 4)
    program = popnn.calcLoss(case.graph, case.outputs, case.expected, case.loss, case.deltas, SQUARES)
    loss, deltas, correct = case.run(program, p, labels, mode=mode)
    difference = p - one_hot(labels, 4)
    np.testing.assert_allclose(deltas, difference, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(loss, 0.5 * (difference**2).sum(axis=1), rtol=1e-6)
    assert correct == 5


@pytest.mark.parametrize("samples", [1, 3])
def test_a_masked_label_counts_for_nothing(samples):
    p = probabilities(samples, 10)
    labels = np.full(samples, MASKED, np.uint32)
    case = Case(samples, 10)
    program = popnn.calcLoss(case.graph, case.outputs, case.expected, case.loss, case.deltas, case.numCorrect, CROSS_ENTROPY)
    loss, deltas, correct = case.run(program, p, labels)
    assert (loss == 0).all()
    assert (deltas == 0).all()
    assert correct == 5


def test_a_probability_of_zero_has_a_large_but_finite_loss():
    for type, limit in ((FLOAT, 88), (HALF, 17)):
        case = Case(1, 2, type)
        program = popnn.calcLoss(case.graph, case.outputs, case.expected, case.loss, case.deltas, CROSS_ENTROPY)
        loss, _, _ = case.run(program, np.array([[1.0, 0.0]], np.float32), np.array([1], np.uint32))
        assert limit - 1.5 < loss[0] < limit


@pytest.mark.parametrize("with_count", [False, True])
def test_scales_of_outputs_and_deltas_cancel_as_documented(with_count):
    p = probabilities(4, 10)
    labels = np.array([1, 2, 3, 4], np.uint32)
    case = Case(4, 10)
    scale = variable(case.graph, FLOAT, [1], "scale")
    scaling = variable(case.graph, FLOAT, [], "scaling")
    tensors = [scale, scaling, *([case.numCorrect] if with_count else [])]
    program = popnn.calcLoss(
        case.graph, case.outputs, case.expected, case.loss, case.deltas, *tensors, CROSS_ENTROPY, debugContext="loss"
    )
    values = {"scale": np.array([8.0], np.float32), "scaling": np.array(4.0, np.float32)}
    loss, deltas, correct = case.run(program, 4 * p, labels, values)
    np.testing.assert_allclose(loss, -np.log(p[np.arange(4), labels]), rtol=1e-5)
    np.testing.assert_allclose(deltas, 8 * (p - one_hot(labels, 10)), rtol=1e-5, atol=1e-6)
    assert correct == 5 + with_count * int((p.argmax(axis=1) == labels).sum())


def test_the_loss_of_one_sample_is_one_compute_set_on_one_tile():
    case = Case(1, 10)
    program = popnn.calcLoss(case.graph, case.outputs, case.expected, case.loss, case.deltas, case.numCorrect, CROSS_ENTROPY)
    case.run(program, probabilities(1, 10), np.array([3], np.uint32))
    report = case.engine.getReport()
    assert report.compilation.graph.numComputeSets == 1
    assert [one.activeTiles for one in report.execution.steps if one.type == "OnTileExecute"] == [1]
    assert all(len(one.messages) == 0 for one in case.engine.executable.exchanges)


def test_results_without_tiles_get_those_of_the_outputs():
    graph, _ = new_graph()
    outputs, expected = variable(graph, FLOAT, [4, 40], "outputs"), variable(graph, UNSIGNED_INT, [4], "expected")
    loss, deltas = graph.addVariable(FLOAT, [4], "loss"), graph.addVariable(FLOAT, [4, 40], "deltas")
    popnn.calcLoss(graph, outputs, expected, loss, deltas, CROSS_ENTROPY)
    assert [tile for tile, held in enumerate(graph.getTileMapping(loss)) if held] == [0, 1, 3, 4]
    assert graph.getTileMapping(deltas) == graph.getTileMapping(outputs)


@pytest.mark.parametrize("samples", [1, 7])
def test_accuracy_adds_the_rows_whose_largest_output_is_at_the_label(samples, mode):
    p = probabilities(samples, 5)
    labels = np.where(np.arange(samples) % 2, p.argmax(axis=1), 4).astype(np.uint32)
    case = Case(samples, 5)
    program = popnn.calcAccuracy(case.graph, case.outputs, case.expected, case.numCorrect, "accuracy")
    _, _, correct = case.run(program, p, labels, mode=mode)
    assert correct == 5 + int((p.argmax(axis=1) == labels).sum())


@pytest.mark.parametrize("type", [FLOAT, HALF])
def test_arg_max_is_the_first_largest_element_of_each_row(type, mode):
    values = np.array([[1, 3, 3, 2], [0, 0, 0, 0], [-4, -3, -2, -1], [5, 1, 5, 1]], type.dtype)
    graph, device = new_graph()
    program = Sequence()
    result = popnn.argMax(graph, variable(graph, type, [4, 4], "x"), program)
    read, _ = run(graph, device, program, {"x": values}, {"result": result}, mode)
    assert read["result"].dtype == np.uint32
    assert read["result"].tolist() == [1, 0, 3, 0]


def test_wrong_tensors_are_refused_with_their_names():
    case = Case(2, 10)
    graph, outputs, expected, loss, deltas = case.graph, case.outputs, case.expected, case.loss, case.deltas
    with pytest.raises(poputil.PoplibsError, match=r"loss is FLOAT \[2\].*'deltas'"):
        popnn.calcLoss(graph, outputs, expected, deltas, deltas, CROSS_ENTROPY)
    with pytest.raises(poputil.PoplibsError, match=r"deltas is FLOAT \[2, 10\].*'loss'"):
        popnn.calcLoss(graph, outputs, expected, loss, loss, CROSS_ENTROPY)
    with pytest.raises(poputil.PoplibsError, match="label, UNSIGNED_INT or INT, for each row"):
        popnn.calcLoss(graph, outputs, loss, loss, deltas, CROSS_ENTROPY)
    with pytest.raises(poputil.PoplibsError, match="matrix"):
        popnn.calcLoss(graph, loss, expected, loss, deltas, CROSS_ENTROPY)
    with pytest.raises(poputil.PoplibsError, match="numCorrect has one element"):
        popnn.calcLoss(graph, outputs, expected, loss, deltas, expected, CROSS_ENTROPY)
    with pytest.raises(poputil.PoplibsError, match="only CROSS_ENTROPY_LOSS"):
        popnn.calcLoss(graph, outputs, expected, loss, deltas, loss, loss, SQUARES)
    with pytest.raises(poputil.PoplibsError, match="deltasScale has one element"):
        popnn.calcLoss(graph, outputs, expected, loss, deltas, loss, loss, CROSS_ENTROPY)
    with pytest.raises(PoplarTypeError, match=r"lossType is a LossType such as .*, got 'CROSS"):
        popnn.calcLoss(graph, outputs, expected, loss, deltas, "CROSS_ENTROPY_LOSS")
    with pytest.raises(PoplarTypeError, match="missing a required argument: 'lossType'"):
        popnn.calcLoss(graph, outputs, expected, loss, deltas, case.numCorrect)
    with pytest.raises(poputil.PoplibsError, match="argMax"):
        popnn.argMax(graph, loss, Sequence())
