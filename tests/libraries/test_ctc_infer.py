"""popnn.ctc_infer against a prefix beam search in NumPy's float64, and against the sums of all paths."""

from collections import defaultdict
from itertools import groupby, product

import numpy as np
import pytest
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, CodeletRuntimeError, InvalidOption, PoplarTypeError
from pypoplar.popnn import ctc, ctc_infer
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

NEVER, NOTHING = -65504, 0xFFFFFFFF
RACES = {"pypoplar.races": "elements"}  # everywhere, so that codelets are compiled once


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def searched(probs, beamwidth, blank):
    """The likeliest labels by probabilities [time, classes], and theirs, best first."""
    beams = {(): np.array([1.0, 0.0])}  # that the last step is a blank, and that it is a symbol
    for row in probs:
        candidates = defaultdict(lambda: np.zeros(2))
        for label, both in beams.items():
            candidates[label] += [both.sum() * row[blank], both[1] * row[label[-1]] if label else 0]
            for symbol in set(range(len(row))) - {blank}:
                before = both[0] if label[-1:] == (symbol,) else both.sum()
                candidates[(*label, symbol)] += [0, before * row[symbol]]
        best = sorted(candidates, key=lambda label: -candidates[label].sum())[:beamwidth]
        beams = {label: candidates[label] for label in best if candidates[label].sum() > 0}
    return [(label, both.sum()) for label, both in beams.items()]


def decoded(logits, lengths, beams, blank=0, *, tiles=4, mode="native", type=FLOAT, planned=None):
    """The results of a call, of probabilities where some are 0, and the engine; `beams` are their number and that of paths."""
    beamwidth, paths = beams
    graph, device = new_graph(tiles)
    time, batch, classes = logits.shape
    plan = ctc_infer.plan(graph, type, batch, time, classes, beamwidth, planned)
    data = ctc_infer.createDataInput(graph, type, batch, time, classes, plan, "data")
    graph.createHostWrite("data", data)
    steps, prog = variable(graph, UNSIGNED_INT, [batch], "lengths"), Sequence()
    call = ctc_infer.beamSearchDecoderLogits
    if np.isinf(logits).any():
        call = ctc_infer.beamSearchDecoderLogProbabilities
    results = call(graph, data, steps, prog, blank, beamwidth, paths, plan, "search")
    values = {"data": logits.astype(type.dtype), "lengths": np.array(lengths, np.uint32)}
    named = dict(zip(("probs", "lengths", "labels"), results, strict=True))
    return run(graph, device, prog, values, named, mode, RACES)


def check(read, expected, tolerance):
    """Whether the results of each sample are the expected labels and probabilities."""
    for sample, paths in enumerate(expected):
        for path, (label, probability) in enumerate(paths):
            length = int(read["lengths"][sample, path])
            assert tuple(read["labels"][sample, path, :length].tolist()) == label
            assert (read["labels"][sample, path, length:] == NOTHING).all()
            assert read["probs"][sample, path] == pytest.approx(np.log(probability), rel=tolerance, abs=tolerance)


@pytest.mark.parametrize(
    ("type", "partials", "time", "classes", "beamwidth", "blank", "tiles"),
    [(FLOAT, "float", 9, 4, 5, 0, 4), (HALF, "float", 6, 5, 7, 4, 2), (HALF, "half", 5, 3, 1, 1, 16)],
)
def test_the_best_labels_are_those_of_numpy_in_both_engines(type, partials, time, classes, beamwidth, blank, tiles):
    logits = (2 * np.random.default_rng(3).standard_normal([time, 3, classes])).astype(type.dtype).astype(float)
    lengths, paths = [time, time - 1, 3], min(beamwidth, 3)
    reads = [
        decoded(logits, lengths, (beamwidth, paths), blank, tiles=tiles, mode=mode, type=type, planned={"partialsType": partials})
        for mode in MODES
    ]
    bits = [
        ([array.tobytes() for array in read.values()], [step.cycles for step in engine.getReport().execution.steps])
        for read, engine in reads
    ]
    assert bits[0] == bits[1]
    probs = np.exp(log_softmax(logits))
    expected = [searched(probs[:steps, sample], beamwidth, blank)[:paths] for sample, steps in enumerate(lengths)]
    check(reads[0][0], expected, 1e-5 if type is FLOAT else 5e-3)


def test_with_beams_for_all_labels_probabilities_are_sums_over_all_paths():
    logits = np.random.default_rng(5).standard_normal([4, 1, 3]).astype(np.float32)
    probs, sums = np.exp(log_softmax(logits.astype(float)))[:, 0], defaultdict(float)
    for path in product(range(3), repeat=4):
        sums[tuple(symbol for symbol, _ in groupby(path) if symbol != 0)] += probs[range(4), path].prod()
    best = sorted(sums.items(), key=lambda item: -item[1])
    read, _ = decoded(logits, [4], (len(best) + 2, len(best) + 2))
    check(read, [best], 1e-5)
    np.testing.assert_array_equal(read["probs"][0, len(best) :], NEVER)
    np.testing.assert_array_equal(read["lengths"][0, len(best) :], 0)
    np.testing.assert_array_equal(read["labels"][0, len(best) :], NOTHING)


def test_labels_that_were_dropped_and_come_back_are_known_again():
    random = np.random.default_rng(11)
    logits = 0.7 * random.standard_normal([40, 2, 3])  # many labels are nearly equal, two symbols alone make them
    read, _ = decoded(logits, [40, 37], (6, 6))
    probs = np.exp(log_softmax(logits.astype(np.float32).astype(float)))
    check(read, [searched(probs[:steps, sample], 6, 0) for sample, steps in enumerate((40, 37))], 1e-5)
    labels = [tuple(read["labels"][0, path, : read["lengths"][0, path]]) for path in range(6)]
    assert len(set(labels)) == 6


def test_a_batch_of_long_sequences_is_decoded():
    logits = 2 * np.random.default_rng(7).standard_normal([120, 8, 30])
    lengths = [120, 100, 0, *[77] * 5]
    read, _ = decoded(logits, lengths, (12, 2), 29, tiles=64)
    probs = np.exp(log_softmax(logits.astype(np.float32).astype(float)))
    check(read, [searched(probs[:steps, sample], 12, 29)[:2] for sample, steps in enumerate(lengths[:3])], 1e-5)
    assert read["probs"][2].tolist() == [0, NEVER]  # of no data the empty label is certain


def test_what_is_impossible_is_no_path():
    probabilities = np.full([3, 1, 4], -np.inf)
    probabilities[:, 0, 0], probabilities[:, 0, 2] = np.log(0.75), np.log(0.25)
    read, _ = decoded(probabilities, [3], (8, 4))
    check(read, [searched(np.exp(probabilities[:, 0]), 8, 0)], 1e-5)
    assert read["probs"][0, 3] == NEVER  # (), (2,) and (2, 2) are all there is
    with pytest.raises(CodeletRuntimeError, match="a data length is beyond the time steps"):
        decoded(probabilities, [4], (8, 4))


def test_a_plan_shares_beams_among_workers_and_says_what_it_is_for():
    graph, _ = new_graph(4)
    plan = ctc_infer.plan(graph, FLOAT, 3, 9, 5, 20)
    assert repr(plan) == "<Plan of a search for 3 samples of 9 steps and 5 classes with 20 beams, FLOAT in FLOAT: 5 lists of 4>"
    assert plan == ctc_infer.plan(graph, FLOAT, 3, 9, 5, 20, {"sortStageGroups": "2,1"})
    assert ctc_infer.plan(graph, FLOAT, 100, 9, 5, 20).search.lists < 5
    sizes = (3, 9, 5, 4)
    refused = [
        (lambda: ctc_infer.plan(graph, INT, *sizes), PoplibsError, "popnn.ctc_infer.plan: inType is FLOAT or HALF, got INT"),
        (lambda: ctc_infer.plan(None, FLOAT, *sizes), PoplarTypeError, "popnn.ctc_infer.plan: the first argument is the graph"),
        (lambda: ctc_infer.plan(graph, FLOAT, 3, 9, 1, 4), PoplibsError, "numClasses is 2 at least, got 1"),
        (lambda: ctc_infer.plan(graph, FLOAT, 3, 9, 5, 0), PoplibsError, "beamwidth is 1 at least, got 0"),
        (lambda: ctc_infer.plan(graph, FLOAT, 3, 10**5, 5, 20), PoplibsError, "no plan of 3 samples of 100000 steps"),
        (lambda: ctc_infer.plan(graph, FLOAT, *sizes, {"partialsType": "half"}), PoplibsError, "is for inType HALF, got FLOAT"),
        (lambda: ctc_infer.plan(graph, FLOAT, *sizes, {"sortStageGroups": "a"}), InvalidOption, "'sortStageGroups' is 'a'"),
        (lambda: ctc_infer.plan(graph, FLOAT, *sizes, {"planConstraints": ""}), InvalidOption, "no option 'planConstraints'"),
    ]
    for call, error, message in refused:
        with pytest.raises(error, match=message):
            call()


def test_what_does_not_fit_the_plan_is_refused_before_the_graph_changes():
    graph, _ = new_graph(4)
    plan, prog = ctc_infer.plan(graph, FLOAT, 2, 9, 5, 3), Sequence()
    data, lengths = variable(graph, FLOAT, [9, 2, 5], "data"), variable(graph, UNSIGNED_INT, [2], "lengths")
    right = {
        "graph": graph, "logits": data, "dataLengths": lengths, "prog": prog, "blankClass": 0, "beamwidth": 3, "topPaths": 2,
        "plan": plan,
    }  # fmt: skip
    before = len(graph.freeze().variables.names), graph.numComputeSets()
    refused = [
        ({"logits": data[:, :1]}, r"the plan is for \[at most 9 steps, 2 samples, 5 classes\], got \[9, 1, 5\]"),
        ({"logits": lengths}, r"logits is FLOAT \[time, batch, classes\] by the plan"),
        ({"dataLengths": data[0, :, 0]}, r"dataLengths are UNSIGNED_INT \[2\], one of each sample"),
        ({"blankClass": 5}, "blankClass is one of 5 classes from 0 on, got 5"),
        ({"beamwidth": 4}, "beamwidth is 3 by the plan, got 4"),
        ({"topPaths": 4}, "topPaths are 3 at most, as many as there are beams, got 4"),
        ({"topPaths": 0}, "topPaths is 1 at least, got 0"),
        ({"plan": ctc.plan(graph, FLOAT, FLOAT, 2, 9, 3, 5)}, "needs a plan of popnn.ctc_infer.plan, got <Plan of a loss"),
        ({"options": {"partialsType": "float"}}, "has no option 'partialsType'"),
        ({"prog": None}, "the argument prog is the Sequence"),
    ]
    for changed, message in refused:
        with pytest.raises(Exception, match=message) as caught:
            ctc_infer.beamSearchDecoderLogits(**(right | changed))
        assert "popnn.ctc_infer.beamSearchDecoderLogits" in str(caught.value)
    with pytest.raises(PoplibsError, match=r"ctc_infer.createDataInput: the plan is for .*, got \[10, 2, 5\]"):
        ctc_infer.createDataInput(graph, FLOAT, 2, 10, 5, plan)
    with pytest.raises(PoplibsError, match=r"createLabelsInput needs a plan of popnn.ctc.plan, got <Plan of a search"):
        ctc.createLabelsInput(graph, UNSIGNED_INT, 2, 3, plan)
    assert (len(graph.freeze().variables.names), graph.numComputeSets()) == before
    assert len(prog) == 0
