"""popnn.ctc against paths that are counted one by one, NumPy in float64 forward and back, and PyTorch where it is installed."""

from itertools import groupby, product

import numpy as np
import pytest
from library_programs import MODES, new_graph, run, variable

from pypoplar import (
    FLOAT,
    HALF,
    INT,
    UNSIGNED_INT,
    CodeletRuntimeError,
    Graph,
    InvalidOption,
    MissingFeature,
    PoplarTypeError,
    UnknownVertexType,
    popnn,
)
from pypoplar.popnn import ctc
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

NEVER = 65504  # the loss of a label without paths
RACES = {"pypoplar.races": "elements"}  # everywhere, so that codelets are compiled once


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def label_loss(log_probs, label, blank):
    """Forward over the states of a sample [time, classes], of reals or of complex numbers; infinite without paths."""
    states = [blank] + [symbol for each in label for symbol in (each, blank)]
    alpha = np.zeros(len(states), log_probs.dtype)
    alpha[0] = 1
    for step in np.exp(log_probs):
        moved = alpha.copy()
        moved[1:] += alpha[:-1]
        for place in range(3, len(states), 2):
            moved[place] += alpha[place - 2] * (states[place] != states[place - 2])
        alpha = moved * step[states]
    total = alpha[-1] + (alpha[-2] if label else 0)
    return -np.log(total) if total else np.inf


def case(time, classes, symbols, lengths, label_lengths, blank=0, seed=1):
    """Random logits, and labels of which every third repeats the one before."""
    random = np.random.default_rng(seed)
    logits = random.standard_normal([time, len(lengths), classes])
    labels = (blank + random.integers(1, classes, [len(lengths), symbols])) % classes
    labels[:, 2::3] = labels[:, 1 : labels[:, 2::3].shape[1] * 3 : 3]
    return {
        "data": logits.astype(np.float32),
        "labels": labels.astype(np.uint32),
        "dataLengths": np.array(lengths, np.uint32),
        "labelLengths": np.array(label_lengths, np.uint32),
    }


def losses(logits, values, blank):
    """Of logits [time, samples, classes]."""
    sizes = list(zip(values["dataLengths"], values["labelLengths"], strict=True))
    log_probs = log_softmax(logits)
    labels = [list(map(int, values["labels"][sample, :length])) for sample, (_, length) in enumerate(sizes)]
    return np.array([label_loss(log_probs[:steps, s], labels[s], blank) for s, (steps, _) in enumerate(sizes)])


def gradients(logits, values, blank):
    """The derivatives of losses by logits, each by a step along the imaginary axis."""
    gradient = np.zeros(logits.shape)
    for index in np.ndindex(*logits.shape[::2]):  # all samples at once, which have nothing in common
        changed = logits.astype(complex)
        changed[index[0], :, index[1]] += 1e-30j
        gradient[index[0], :, index[1]] = losses(changed, values, blank).imag / 1e-30
    return gradient


def computed(values, call, *, tiles=4, mode="native", types=(FLOAT, FLOAT), blank=0, options=None, planned=None):
    """What a call gives for the values of a case, as arrays, and the engine."""
    inType, outType = types
    graph, device = new_graph(tiles)
    time, batch, classes = values["data"].shape
    symbols = values["labels"].shape[1]
    plan = ctc.plan(graph, inType, outType, batch, time, symbols, classes, planned)
    data = ctc.createDataInput(graph, inType, batch, time, classes, plan, "data")
    labels = ctc.createLabelsInput(graph, UNSIGNED_INT, batch, symbols, plan, "labels")
    for name, tensor in (("data", data), ("labels", labels)):
        graph.createHostWrite(name, tensor)
    lengths = [variable(graph, UNSIGNED_INT, [batch], name) for name in ("dataLengths", "labelLengths")]
    prog = Sequence()
    result = call(graph, outType, data, labels, *lengths, prog, blank, plan, "ctc", options)
    results = dict(zip(("loss", "gradient"), result if isinstance(result, tuple) else (result,), strict=False))
    given = values | {"data": values["data"].astype(inType.dtype)}
    return run(graph, device, prog, given, results, mode, RACES)


def bits(read, engine):
    return [array.tobytes() for array in read.values()], [step.cycles for step in engine.getReport().execution.steps]


def test_the_reference_counts_all_paths():
    values, blank = case(5, 3, 2, [5], [2], 1), 1
    probs = np.exp(log_softmax(values["data"].astype(float)))[:, 0]
    label = values["labels"][0].tolist()
    paths = product(range(3), repeat=5)
    total = sum(probs[range(5), path].prod() for path in paths if [c for c, _ in groupby(path) if c != blank] == label)
    assert losses(values["data"].astype(float), values, blank) == pytest.approx(-np.log(total))


@pytest.mark.parametrize(
    ("inType", "partials", "time", "classes", "symbols", "tiles", "blank"),
    [(FLOAT, "float", 9, 5, 4, 4, 0), (HALF, "float", 6, 4, 3, 16, 3), (HALF, "half", 7, 3, 3, 1, 1)],
)
def test_losses_and_gradients_are_those_of_float64_in_both_engines(inType, partials, time, classes, symbols, tiles, blank):
    values = case(time, classes, symbols, [time, time - 1, 4, time, 0], [symbols, 2, 1, 0, 0], blank)
    values["data"] = values["data"].astype(inType.dtype).astype(np.float32)
    reads = [
        computed(values, ctc.calcLossAndGradientLogits, tiles=tiles, mode=mode, types=(inType, inType), blank=blank,
                 planned={"partialsType": partials})
        for mode in MODES
    ]  # fmt: skip
    assert bits(*reads[0]) == bits(*reads[1])
    read = reads[0][0]
    tolerance = 1e-5 if inType is FLOAT else 5e-3 if partials == "float" else 0.03
    logits = values["data"].astype(float)
    np.testing.assert_allclose(read["loss"], losses(logits, values, blank), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(read["gradient"], gradients(logits, values, blank), atol=tolerance)


def test_a_label_that_is_the_blank_class_is_a_symbol_like_any_other():
    values = case(6, 4, 3, [6, 6], [3, 3])
    values["labels"][:] = [[1, 0, 2], [0, 0, 3]]
    read, _ = computed(values, ctc.calcLossAndGradientLogits)
    logits = values["data"].astype(float)
    np.testing.assert_allclose(read["loss"], losses(logits, values, 0), rtol=1e-5)
    np.testing.assert_allclose(read["gradient"], gradients(logits, values, 0), atol=1e-5)


def test_all_four_calls_agree():
    values = case(6, 4, 3, [6, 5], [3, 2])
    softmaxed = values | {"data": log_softmax(values["data"].astype(float)).astype(np.float32)}
    both, _ = computed(values, ctc.calcLossAndGradientLogits)
    alone, _ = computed(values, ctc.calcCTCLossLogits)
    of_probs, _ = computed(softmaxed, ctc.calcLossAndGradientLogProbabilities)
    alone_of_probs, _ = computed(softmaxed, ctc.calcCTCLossLogProbabilities, types=(FLOAT, HALF))
    np.testing.assert_array_equal(alone["loss"], both["loss"])
    for name in ("loss", "gradient"):
        np.testing.assert_allclose(of_probs[name], both[name], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(alone_of_probs["loss"], of_probs["loss"].astype(np.float16))
    plain, _ = computed(softmaxed, ctc.calcLossAndGradientLogProbabilities, options={"includeSoftmaxGradient": False})
    steps = np.array([[6, 5]]) > np.arange(6)[:, None]
    np.testing.assert_allclose(plain["gradient"], both["gradient"] - np.exp(softmaxed["data"]) * steps[..., None], atol=1e-6)


@pytest.mark.parametrize("zeroInfinity", [False, True])
def test_labels_without_paths_have_the_loss_of_poplibs_or_none(zeroInfinity):
    values = case(5, 4, 3, [5, 2, 0, 3], [3, 3, 1, 3])
    values["labels"][3] = [2, 1, 1]  # two equal symbols have a blank between them: four steps
    read, _ = computed(values, ctc.calcLossAndGradientLogits, options={"zeroInfinity": zeroInfinity})
    assert read["loss"][0] == pytest.approx(losses(values["data"].astype(float), values, 0)[0], rel=1e-5)
    np.testing.assert_array_equal(read["loss"][1:], 0 if zeroInfinity else NEVER)
    assert np.isfinite(read["gradient"]).all()
    if zeroInfinity:
        np.testing.assert_array_equal(read["gradient"][:, 1:], 0)


def test_probabilities_of_zero_and_steps_behind_the_data_are_no_matter():
    values = case(4, 3, 1, [3, 4], [1, 1])
    values["data"] = log_softmax(values["data"])
    values["data"][3, 0] = np.nan
    values["data"][1:, 1] = -np.inf
    values["labels"][:] = 1
    values["data"][1, 1, 1] = values["data"][2:, 1, 0] = 0  # one path through the last steps
    read, _ = computed(values, ctc.calcLossAndGradientLogProbabilities)
    assert read["loss"][1] == pytest.approx(-np.logaddexp(*values["data"][0, 1, :2]), rel=1e-5)
    np.testing.assert_array_equal(read["gradient"][3, 0], 0)
    np.testing.assert_allclose(read["gradient"][1:, 1], 0, atol=1e-6)
    assert np.isfinite(read["gradient"]).all()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("labels", 4, "a label is beyond the classes"),
        ("dataLengths", 6, "a data length is beyond the time steps"),
        ("labelLengths", 3, "a label length is beyond the labels of a sample"),
    ],
)
def test_labels_and_lengths_that_cannot_be_stop_the_run(name, value, message):
    values = case(5, 4, 2, [5, 5], [2, 1])
    values[name][1] = value
    if name == "labels":
        values[name][1, 0] = 1
        computed(values, ctc.calcCTCLossLogits)  # beyond its length a label may have any value
        values["labelLengths"][1] = 2
    with pytest.raises(CodeletRuntimeError, match=message):
        computed(values, ctc.calcCTCLossLogits)


def test_shorter_data_and_labels_than_planned_are_taken():
    values = case(5, 4, 2, [5, 3], [2, 1])
    graph, device = new_graph(4)
    plan, prog = ctc.plan(graph, FLOAT, FLOAT, 2, 8, 5, 4), Sequence()
    types = {"data": FLOAT, "labels": UNSIGNED_INT, "dataLengths": UNSIGNED_INT, "labelLengths": UNSIGNED_INT}
    tensors = [variable(graph, types[name], value.shape, name) for name, value in values.items()]
    loss = ctc.calcCTCLossLogits(graph, FLOAT, *tensors, prog, 0, plan)
    read, _ = run(graph, device, prog, values, {"loss": loss}, options=RACES)
    np.testing.assert_allclose(read["loss"], losses(values["data"].astype(float), values, 0), rtol=1e-5)


def test_losses_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    values = case(24, 7, 8, [24, 20, 23], [8, 0, 5])
    read, _ = computed(values, ctc.calcLossAndGradientLogits, tiles=16)
    logits = torch.tensor(values["data"], dtype=torch.float64, requires_grad=True)
    others = [torch.tensor(values[name].astype(np.int64)) for name in ("labels", "dataLengths", "labelLengths")]
    loss = torch.nn.functional.ctc_loss(torch.log_softmax(logits, -1), *others, blank=0, reduction="none")
    loss.sum().backward()
    np.testing.assert_allclose(read["loss"], loss.detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(read["gradient"], logits.grad.numpy(), atol=1e-4)


def test_a_plan_gives_workers_few_symbols_and_says_what_it_is_for():
    graph, _ = new_graph(64)
    plan = ctc.plan(graph, FLOAT, HALF, 2, 9, 30, 5)
    assert plan.loss.width == 1
    assert plan == ctc.plan(graph, FLOAT, HALF, 2, 9, 30, 5, {"enableReducedClassesInLabel": "false"})
    assert plan != ctc.plan(graph, FLOAT, HALF, 2, 9, 29, 5)
    assert (plan < ctc.plan(graph, FLOAT, HALF, 3, 9, 30, 5)) == (repr(plan) < "<Plan of a loss for 3")
    assert repr(plan) == (
        "<Plan of a loss for 2 samples of 9 steps, 30 symbols and 5 classes, FLOAT to HALF in FLOAT: 31 pieces of 1>"
    )
    assert repr(ctc.Plan()) == "Plan()"
    assert ctc.plan(graph, FLOAT, FLOAT, 64, 9, 30, 5).loss.width == 11  # three pieces on a tile, for its six workers
    with pytest.raises(PoplibsError, match=r"popnn\.ctc\.plan: no plan of 64 samples of 20000 steps and 30 symbols fits into"):
        ctc.plan(graph, FLOAT, FLOAT, 64, 20000, 30, 5)


def test_what_cannot_be_planned_is_refused():
    graph, _ = new_graph(4)
    sizes = (2, 9, 3, 5)
    refused = [
        (lambda: ctc.plan(None, FLOAT, FLOAT, *sizes), PoplarTypeError, "popnn.ctc.plan: the first argument is the graph"),
        (lambda: ctc.plan(graph, INT, FLOAT, *sizes), PoplibsError, "popnn.ctc.plan: inType is FLOAT or HALF, got INT"),
        (lambda: ctc.plan(graph, FLOAT, INT, *sizes), PoplibsError, "outType is FLOAT or HALF, got INT"),
        (lambda: ctc.plan(graph, FLOAT, FLOAT, 0, 9, 3, 5), PoplibsError, "batchSize is 1 at least, got 0"),
        (lambda: ctc.plan(graph, FLOAT, FLOAT, 2, 9, 0, 5), PoplibsError, "maxLabelLength is 1 at least, got 0"),
        (lambda: ctc.plan(graph, FLOAT, FLOAT, 2, 1.5, 3, 5), PoplarTypeError, "maxTime is a whole number, got 1.5"),
        (lambda: ctc.plan(graph, FLOAT, FLOAT, *sizes, {"partials": "half"}), InvalidOption, "no option 'partials'"),
        (
            lambda: ctc.plan(graph, FLOAT, FLOAT, *sizes, {"partialsType": "half"}),
            PoplibsError,
            "partialsType 'half' is for inType HALF, got FLOAT",
        ),
        (
            lambda: ctc.plan(graph, FLOAT, FLOAT, *sizes, {"availableMemoryProportion": 2}),
            PoplibsError,
            "'availableMemoryProportion' is from 0 to 1, got 2",
        ),
        (
            lambda: ctc.plan(graph, FLOAT, FLOAT, *sizes, {"planConstraints": '{"parallel": {"time": 2}}'}),
            MissingFeature,
            "planConstraints",
        ),
    ]
    for call, error, message in refused:
        with pytest.raises(error, match=message):
            call()
    with pytest.raises(AttributeError, match="has no 'calcLoss'"):
        ctc.calcLoss


def test_what_does_not_fit_the_plan_is_refused_before_the_graph_changes():
    graph, _ = new_graph(4)
    plan, prog = ctc.plan(graph, FLOAT, FLOAT, 2, 9, 3, 5), Sequence()
    data, labels = variable(graph, FLOAT, [9, 2, 5], "data"), variable(graph, UNSIGNED_INT, [2, 3], "labels")
    lengths, loose = variable(graph, UNSIGNED_INT, [2], "lengths"), graph.addVariable(FLOAT, [9, 2, 5], "loose")
    right = {
        "graph": graph, "outType": FLOAT, "logits": data, "labels": labels, "dataLengths": lengths, "labelLengths": lengths,
        "prog": prog, "blankClass": 0, "plan": plan,
    }  # fmt: skip
    before = len(graph.freeze().variables.names), graph.numComputeSets()
    refused = [
        ({"logits": loose}, "90 of 90 elements of logits = <Tensor 'loose' .* have no tile"),
        ({"logits": lengths}, r"logits is FLOAT \[time, batch, classes\] by the plan, got .*'lengths'"),
        ({"logits": data[:, :1]}, r"the plan is for \[at most 9 steps, 2 samples, 5 classes\], got \[9, 1, 5\]"),
        ({"logits": data[:0]}, r"the plan is for .*, got \[0, 2, 5\]"),
        ({"labels": labels.reinterpret(INT)}, r"labels are UNSIGNED_INT \[batch, symbols\], got"),
        ({"labels": labels.reshape([3, 2])}, r"labels \[2 samples, at most 3 symbols\], got \[3, 2\]"),
        ({"dataLengths": labels}, r"dataLengths are UNSIGNED_INT \[2\], one of each sample, got .*'labels'"),
        ({"labelLengths": lengths[:1]}, r"labelLengths are UNSIGNED_INT \[2\]"),
        ({"outType": HALF}, "outType is FLOAT by the plan, got HALF"),
        ({"blankClass": 5}, "blankClass is one of 5 classes from 0 on, got 5"),
        ({"prog": []}, "the argument prog is the Sequence"),
        ({"plan": None}, "plan is a Plan, which popnn.ctc.plan makes, got None"),
        ({"plan": ctc.Plan()}, r"calcLossAndGradientLogits needs a plan of popnn.ctc.plan, got Plan\(\)"),
        ({"options": {"zeroInfinite": True}}, "no option 'zeroInfinite'; did you mean 'zeroInfinity'"),
        ({"options": {"zeroInfinityRelTolerance": -1}}, "'zeroInfinityRelTolerance' is from 0 to 1, got -1"),
        ({"options": {"returnReducedCodeletGradient": True}}, "'returnReducedCodeletGradient' is for PopLibs' own tests"),
    ]
    for changed, message in refused:
        with pytest.raises(Exception, match=message) as caught:
            ctc.calcLossAndGradientLogits(**(right | changed))
        assert "popnn.ctc.calcLossAndGradientLogits" in str(caught.value)
    for call, message in (
        (lambda: ctc.createDataInput(graph, FLOAT, 2, 10, 5, plan), r"createDataInput: the plan is for .*, got \[10, 2, 5\]"),
        (lambda: ctc.createLabelsInput(graph, FLOAT, 2, 4, plan), r"createLabelsInput: the plan is for labels .*, got \[2, 4\]"),
        (lambda: ctc.createLabelsInput(graph, None, 2, 3, plan), "createLabelsInput"),
    ):
        with pytest.raises((PoplibsError, PoplarTypeError), match=message):
            call()
    assert (len(graph.freeze().variables.names), graph.numComputeSets()) == before
    assert len(prog) == 0
    bare = Graph(graph.getTarget())
    right |= {"graph": bare, "logits": variable(bare, FLOAT, [9, 2, 5], "data")}
    right |= {"labels": variable(bare, UNSIGNED_INT, [2, 3], "labels")}
    right |= dict.fromkeys(("dataLengths", "labelLengths"), variable(bare, UNSIGNED_INT, [2], "n"))
    with pytest.raises(UnknownVertexType, match=r"call popnn.addCodelets\(graph\) first"):
        ctc.calcLossAndGradientLogits(**right)
    assert popnn.ctc is ctc
