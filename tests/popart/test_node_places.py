"""Nodes run on the IPUs and in the stages that a builder says, with the same results as on one IPU."""

import logging

import numpy as np
import pytest

from pypoplar import popart
from pypoplar.errors import MissingFeature

X = np.float32(np.random.default_rng(1).normal(size=(4, 2, 6)))
LABELS = np.int32([[0, 1], [2, 0], [1, 1], [2, 2]])


class Placed:
    """Two layers, on IPUs and of stages that are given."""

    def __init__(self, ipus=(0, 1), stages=(0, 1)):
        generator = np.random.default_rng(3)
        builder = popart.Builder()
        self.x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2, 6]), "x")
        self.labels = builder.addInputTensor(popart.TensorInfo("INT32", [2]), "labels")
        w1, w2 = (
            builder.addInitializedInputTensor(np.float32(generator.normal(size=shape) / 2), name)
            for name, shape in (("w1", (6, 8)), ("w2", (8, 3)))
        )
        with builder.virtualGraph(ipus[0]), builder.pipelineStage(stages[0]):
            hidden = builder.aiOnnx.relu([builder.aiOnnx.matmul([self.x, w1], debugContext="first")])
        with builder.virtualGraph(ipus[1]), builder.pipelineStage(stages[1]):
            self.y = builder.aiOnnx.softmax([builder.aiOnnx.matmul([hidden, w2], debugContext="second")], axis=1)
            self.loss = builder.aiGraphcore.nllloss([self.y, self.labels])
        self.proto = builder.getModelProto()

    def run(self, mode="Manual", pipelined=False, trained=True, ipus=2, batches=4, accumulated=1, again=0):
        options = popart.SessionOptions()
        options.virtualGraphMode = getattr(popart.VirtualGraphMode, mode)
        options.enablePipelining, options.autoRecomputation = pipelined, again
        options.enableGradientAccumulation, options.accumulationFactor = accumulated > 1, accumulated
        device = popart.DeviceManager().createIpuModelDevice({"numIPUs": ipus})
        flow = popart.DataFlow(batches // accumulated, [self.y, self.loss])
        if trained:
            session = popart.TrainingSession(self.proto, flow, self.loss, popart.ConstSGD(0.1), device, userOptions=options)
        else:
            session = popart.InferenceSession(self.proto, flow, device, userOptions=options)
        session.prepareDevice()
        session.weightsFromHost()
        anchors = session.initAnchorArrays()
        given = {self.x: X, self.labels: LABELS}
        if accumulated > 1:
            given = {name: array.reshape(-1, accumulated, *array.shape[1:]) for name, array in given.items()}
            given = {name: array[0] if batches == accumulated else array for name, array in given.items()}
        session.run(popart.PyStepIO(given, anchors))
        return session, anchors


@pytest.mark.parametrize(
    ("trained", "pipelined"),
    [
        (False, False),
        (True, True),
        pytest.param(False, True, marks=pytest.mark.slow),
        pytest.param(True, False, marks=pytest.mark.slow),
    ],
)
def test_places_change_where_a_model_runs_and_not_what_comes_out(trained, pipelined):
    how = {"accumulated": 4} if trained and pipelined else {}
    _, alone = Placed().run("Off", trained=trained, ipus=1, **how)
    session, anchors = Placed().run(pipelined=pipelined, trained=trained, **how)
    for name, wanted in alone.items():
        np.testing.assert_allclose(anchors[name], wanted, rtol=1e-5, atol=1e-6)
    report = session.getReport()
    assert report.compilation.target.numIPUs == 2
    assert all(any(tile.memory.vertices for tile in ipu.tiles) for ipu in report.compilation.ipus)


def test_what_stages_compute_again_changes_what_they_put_aside_and_no_result():
    (keeping, kept), (recomputing, again) = (
        Placed().run(pipelined=True, accumulated=4, again=kind)
        for kind in (popart.RecomputationType.None_, popart.RecomputationType.Pipeline)
    )
    for name, wanted in kept.items():
        np.testing.assert_array_equal(again[name], wanted)
    stashed = [
        sum(one.size for one in session.getReport().compilation.loweredVariables if "/stash, " in one.name)
        for session in (keeping, recomputing)
    ]
    assert stashed[1] < stashed[0]
    with pytest.raises(popart.popart_exception, match=r"autoRecomputation is one of popart.RecomputationType, got 5"):
        popart.SessionOptions().autoRecomputation = 5


def test_a_pipeline_overlaps_its_stages():
    together, _ = Placed().run(pipelined=True, trained=False)
    in_turn, _ = Placed().run(trained=False)
    assert together.getCycleCount() < in_turn.getCycleCount()


def test_stages_are_those_of_ipus_where_no_node_says_one_and_nodes_may_go_back_to_an_ipu():
    builder = popart.Builder()
    x = y = builder.addInputTensor(popart.TensorInfo("FLOAT", [4]), "x")
    for ipu in (0, 1, 0):
        y = builder.aiOnnx.neg([y])
        builder.virtualGraph(y, ipu)
    options = popart.SessionOptions()
    options.virtualGraphMode = popart.VirtualGraphMode.Manual
    device = popart.DeviceManager().createIpuModelDevice({"numIPUs": 2})
    session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, [y]), device, userOptions=options)
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({x: np.float32([1, 2, 3, 4])}, anchors))
    assert anchors[y].tolist() == [-1, -2, -3, -4]
    options.enablePipelining = True
    session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(2, [y]), device, userOptions=options)
    with pytest.raises(popart.popart_exception, match=r"Neg_2 \(Neg\): it is of stage 0, and takes Neg:0__1 of stage 1"):
        session.prepareDevice()


@pytest.mark.parametrize(
    ("places", "how", "message"),
    [
        (((0, 2), (0, 1)), {}, r"second \(MatMul\): it is on IPU 2 by virtualGraph, and the device has 2 of them"),
        (((0, 1), (0, 1)), {"mode": "Off", "pipelined": True}, "enablePipelining needs virtualGraphMode Manual"),
        (((0, 1), (0, 0)), {"pipelined": True}, r"second \(MatMul\): stage 0 is on IPU 0 by .*first \(MatMul\), and on IPU 1"),
        (((0, 1), (1, 0)), {"pipelined": True}, "it is of stage 0, and takes .* of stage 1"),
        (((0, 1), (0, 1)), {"pipelined": True, "batches": 1}, "a pipeline of 2 stages takes at least as many batches.*got 1"),
    ],
)
def test_places_that_contradict_each_other_are_told(places, how, message):
    with pytest.raises(popart.popart_exception, match=message):
        Placed(*places).run(trained=False, **how)


def test_places_that_change_nothing_are_told_and_other_modes_are_missing(caplog):
    with caplog.at_level(logging.WARNING, "popart"):
        Placed().run("Off", trained=False)
    assert "virtualGraph changes nothing: SessionOptions.virtualGraphMode is Off" in caplog.text
    with pytest.raises(MissingFeature, match="there are Off and Manual"):
        popart.SessionOptions().virtualGraphMode = popart.VirtualGraphMode.Auto
    builder = popart.Builder()
    y = builder.aiOnnx.neg([builder.addInputTensor("FLOAT", [2])])
    for make, message in (
        (lambda: builder.virtualGraph("1"), "a number from 0 on"),
        (lambda: builder.pipelineStage(-1), "a number from 0 on"),
        (lambda: builder.virtualGraph(), "a number from 0 on"),
        (lambda: builder.virtualGraph("z", 1), r"no node makes \['z'\]"),
        (lambda: builder.virtualGraph(y, True), "a number from 0 on"),
    ):
        with pytest.raises(popart.popart_exception, match=message):
            make()
