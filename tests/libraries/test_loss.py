"""popnn: losses, gradients, counts of right answers, argMax."""

import numpy as np
import pytest
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, Engine, PoplarTypeError, popnn, poputil
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


@pytest.mark.parametrize("type", [FLOAT, HALF, INT, UNSIGNED_INT])
def test_the_best_of_each_row_is_the_first_of_several(type):
    rng = np.random.default_rng(3)
    low = 0 if type is UNSIGNED_INT else -4
    arrays = [
        np.array([[1, 3, 3, 2], [0, 0, 0, 0], [4, 3, 2, 1], [5, 1, 5, 1]]),
        rng.integers(low, 900, (3, 700)),
        rng.integers(low, 9, (1, 997)),
        rng.integers(low, 9, (0, 5)),
        rng.integers(low, 9, (40, 1)),
    ]
    graph, device = new_graph()
    program, results, expected, values = Sequence(), {}, {}, {}
    for number, array in enumerate(arrays):
        x = variable(graph, type, array.shape, f"x{number}")
        values[f"x{number}"] = array.astype(type.dtype)
        largest, smallest = popnn.maxAndArgMax(graph, x, program), popnn.minAndArgMin(graph, x, program)
        calls = {"max": largest[0], "argMax of max": largest[1], "min": smallest[0], "argMin of min": smallest[1]}
        calls |= {"argMax": popnn.argMax(graph, x, program), "argMin": popnn.argMin(graph, x, program, "named")}
        for name, tensor in calls.items():
            assert tensor.elementType() is (UNSIGNED_INT if "arg" in name else type)
            results[f"{name} {number}"] = tensor
            function = getattr(array, name.partition(" ")[0].lower())
            expected[f"{name} {number}"] = function(axis=1)
    read = both(graph, device, program, values, results)
    for name, value in expected.items():
        assert read[name].tolist() == value.tolist(), name


def both(graph, device, program, values, results):
    """What both engines read, bit for bit, in as many cycles."""
    for name, tensor in results.items():
        graph.createHostRead(name, tensor)
    reads, cycles = [], []
    for mode in MODES:
        engine = Engine(graph, program, mode=mode)
        engine.load(device)
        for name, value in values.items():
            engine.writeTensor(name, value)
        engine.run()
        reads.append({name: engine.readTensor(name) for name in results})
        cycles.append([step.cycles for step in engine.getReport().execution.steps])
    assert all(reads[0][name].tobytes() == reads[1][name].tobytes() for name in results)
    assert cycles[0] == cycles[1]
    return reads[0]


@pytest.mark.parametrize("type", [FLOAT, HALF])
def test_rows_of_many_classes_are_cut_into_pieces(type):
    graph, device = new_graph()
    program, values, results, expected = Sequence(), {}, {}, {}
    for number, (samples, classes, loss_type) in enumerate(
        [(3, 500, CROSS_ENTROPY), (1, 1000, SQUARES), (2, 501, SQUARES), (2, 501, CROSS_ENTROPY)]
    ):
        p = probabilities(samples, classes, number).astype(type.dtype)
        labels = np.array([p[0].argmax(), MASKED, classes + 5])[:samples].astype(np.uint32)
        names = [f"{name}{number}" for name in ("outputs", "expected", "scale", "scaling", "correct")]
        outputs, wanted = variable(graph, type, p.shape, names[0]), variable(graph, UNSIGNED_INT, [samples], names[1])
        loss, deltas = graph.addVariable(type, [samples]), graph.addVariable(type, p.shape)
        scale, scaling, correct = (variable(graph, kind, [], name) for kind, name in zip((type, type, INT), names[2:], strict=True))
        scaled = [scale, scaling] if loss_type is CROSS_ENTROPY else []
        program.add(popnn.calcLoss(graph, outputs, wanted, loss, deltas, *scaled, correct, loss_type))
        program.add(popnn.calcAccuracy(graph, outputs, wanted, correct))
        by = 2.0 if scaled else 1.0
        given = ((p * by).astype(type.dtype), labels, np.array(4, type.dtype), np.array(2, type.dtype), np.array(7, np.int32))
        values |= dict(zip(names, given, strict=True))
        results |= {f"loss{number}": loss, f"deltas{number}": deltas, f"correct{number}": correct}
        p = p.astype(np.float64)
        difference = p - one_hot(labels, classes)
        if scaled:
            known = labels < classes
            at = np.where(known, labels, 0)
            expected[f"loss{number}"] = np.where(known, -np.log(p[np.arange(samples), at]), 0)
            expected[f"deltas{number}"] = 4 * np.where(known[:, np.newaxis], difference, 0)
        else:
            expected[f"loss{number}"], expected[f"deltas{number}"] = 0.5 * (difference**2).sum(axis=1), difference
        expected[f"correct{number}"] = 7 + 2
    read = both(graph, device, program, values, results)
    for name, value in expected.items():
        tolerance = {"rtol": 1e-5, "atol": 1e-6} if type is FLOAT else {"rtol": 4e-3, "atol": 1e-3}
        np.testing.assert_allclose(read[name], value, **tolerance, err_msg=name)


def test_a_thousand_samples_of_ten_classes_are_spread_over_tiles():
    p = probabilities(1000, 10)
    labels = np.arange(1000, dtype=np.uint32) % 10
    case = Case(1000, 10, tiles=1472)
    program = popnn.calcLoss(case.graph, case.outputs, case.expected, case.loss, case.deltas, case.numCorrect, CROSS_ENTROPY)
    loss, _, correct = case.run(program, p, labels)
    np.testing.assert_allclose(loss, -np.log(p[np.arange(1000), labels]), rtol=1e-5)
    assert correct == 5 + int((p.argmax(axis=1) == labels).sum())


def test_the_gradient_of_the_cross_entropy_is_that_by_the_logits():
    logits, label, step = np.array([0.3, -1.2, 2.0, 0.1]), 2, 1e-30

    def loss_of(z):
        powers = np.exp(z)
        return -np.log(powers[label] / powers.sum())

    case = Case(1, 4)
    program = popnn.calcLoss(case.graph, case.outputs, case.expected, case.loss, case.deltas, CROSS_ENTROPY)
    p = np.exp(logits) / np.exp(logits).sum()
    _, deltas, _ = case.run(program, p[np.newaxis], np.array([label], np.uint32))
    expected = [loss_of(logits + 1j * step * np.eye(4)[place]).imag / step for place in range(4)]
    np.testing.assert_allclose(deltas[0], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("sort", [False, True])
def test_top_k_are_the_largest_elements_with_their_places(sort):
    x = np.random.default_rng(0).permutation(60).reshape(3, 20).astype(np.float32)
    graph, device = new_graph()
    program = Sequence()
    values, places = popnn.topK(graph, variable(graph, FLOAT, [3, 20], "x"), 4, sort, program)
    assert values.shape() == places.shape() == [3, 1, 4]
    read, _ = run(graph, device, program, {"x": x}, {"values": values, "places": places})
    found, at = read["values"][:, 0], read["places"][:, 0]
    assert (np.take_along_axis(x, at.astype(int), 1) == found).all()
    order = np.sort(x)[:, :-5:-1]
    assert (found if sort else np.sort(found)[:, ::-1]).tolist() == order.tolist()


@pytest.mark.parametrize("kind", LossType)
@pytest.mark.parametrize(("samples", "classes", "tiles"), [(7, 5, 3), (2, 300, 16)])
def test_deltas_in_the_place_of_the_outputs_change_neither_loss_nor_count(samples, classes, tiles, kind, mode):
    scales = {"deltasScale": 0.5, "modelOutputScaling": 2.0} if kind is CROSS_ENTROPY else {}
    p = probabilities(samples, classes) * np.float32(scales.get("modelOutputScaling", 1))
    labels = np.arange(samples, dtype=np.uint32)
    labels[1] = p[1].argmax()
    results = []
    for in_place in (False, True):
        case = Case(samples, classes, tiles=tiles)
        case.deltas = case.outputs if in_place else case.deltas
        extra = [variable(case.graph, FLOAT, [], name) for name in scales]
        end = (*extra, case.numCorrect, kind)
        program = popnn.calcLoss(case.graph, case.outputs, case.expected, case.loss, case.deltas, *end)
        results.append(case.run(program, p, labels, {name: np.float32(value) for name, value in scales.items()}, mode))
    (loss, deltas, correct), changed = results
    assert (loss.tobytes(), deltas.tobytes(), correct) == (changed[0].tobytes(), changed[1].tobytes(), changed[2])
    assert correct == 5 + int((p.argmax(axis=1) == labels).sum())


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
    with pytest.raises(poputil.PoplibsError, match=r"deltas, .*has elements of modelOutputs"):
        popnn.calcLoss(graph, outputs, expected, loss, outputs.reverse(1), CROSS_ENTROPY)
    with pytest.raises(poputil.PoplibsError, match=r"loss, .*has elements of deltas"):
        popnn.calcLoss(graph, outputs, expected, deltas[:, 0], deltas, CROSS_ENTROPY)
    with pytest.raises(poputil.PoplibsError, match=r"numCorrect, .*has elements of expected"):
        popnn.calcLoss(graph, outputs, expected, loss, deltas, expected[0], CROSS_ENTROPY)
    with pytest.raises(poputil.PoplibsError, match=r"popnn.calcAccuracy: numCorrect, .*has elements of expected"):
        popnn.calcAccuracy(graph, outputs, expected, expected[1])
    with pytest.raises(poputil.PoplibsError, match="cannot be written"):
        popnn.calcLoss(graph, outputs, expected, loss, graph.addConstant(FLOAT, [2, 10], 0.0), CROSS_ENTROPY)
    with pytest.raises(PoplarTypeError, match="another graph"):
        popnn.calcAccuracy(graph, variable(new_graph()[0], FLOAT, [2, 10], "far"), expected, case.numCorrect)
    for call in (popnn.argMax, popnn.argMin, popnn.maxAndArgMax, popnn.minAndArgMin):
        with pytest.raises(poputil.PoplibsError, match=f"popnn.{call.__name__} takes a matrix"):
            call(graph, loss, Sequence())
    with pytest.raises(poputil.PoplibsError, match="K is at most the 10 columns"):
        popnn.topK(graph, outputs, 11, True, Sequence())
    with pytest.raises(PoplarTypeError, match="sort is True or False"):
        popnn.topK(graph, outputs, 2, 1, Sequence())


@pytest.mark.parametrize("samples", [3, 5])
def test_pieces_of_halves_that_begin_with_words_are_shared_by_the_workers_of_a_tile(samples, mode):
    p = probabilities(samples, 256).astype(np.float16)
    labels = np.arange(samples, dtype=np.uint32) * 5
    case = Case(samples, 256, HALF, tiles=7)
    program = popnn.calcLoss(case.graph, case.outputs, case.expected, case.loss, case.deltas, CROSS_ENTROPY, "loss")
    loss, deltas, _ = case.run(program, p, labels, mode=mode)
    exact = p.astype(np.float64)
    np.testing.assert_allclose(loss, -np.log(exact[np.arange(samples), labels]), rtol=1e-3)
    np.testing.assert_allclose(deltas, exact - one_hot(labels, 256), rtol=1e-3, atol=1e-7)
    assert case.engine.getReport().compilation.graph.numVertices > 3 * 7


def test_halves_that_begin_within_a_word_are_not_written_by_two_workers(mode):
    p = probabilities(3, 700).astype(np.float16)
    labels = np.array([0, 1, 699], np.uint32)
    case = Case(3, 700, HALF, tiles=2)
    longer = case.graph.addVariable(HALF, [2101], "longer")
    poputil.mapTensorLinearly(case.graph, longer)
    case.deltas = longer.slice(1, 2101).reshape([3, 700])
    case.graph.createHostRead("odd", case.deltas)
    program = popnn.calcLoss(case.graph, case.outputs, case.expected, case.loss, case.deltas, CROSS_ENTROPY, "loss")
    loss, *_ = case.run(program, p, labels, mode=mode)
    exact = p.astype(np.float64)
    np.testing.assert_allclose(loss, -np.log(exact[np.arange(3), labels]), rtol=1e-3)
    np.testing.assert_allclose(case.engine.readTensor("odd"), exact - one_hot(labels, 700), rtol=1e-3, atol=1e-7)
