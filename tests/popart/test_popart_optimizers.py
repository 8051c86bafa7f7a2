"""PopART's optimisers make the steps that its documentation writes down, in NumPy here; weights may have settings of their own."""

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("torch")

from pypoplar import popart
from pypoplar.popart import AdamMode, AdaptiveMode, WeightDecayMode

STEPS, LR = 5, 0.125


def device():
    return popart.DeviceManager().createIpuModelDevice({"numIPUs": 1})


class Slopes:
    """Two weights whose gradients are what the step is given: the loss is the sum of their products with it."""

    def __init__(self):
        generator = np.random.default_rng(5)
        self.start = {name: np.float32(generator.normal(size=3)) for name in ("one", "other")}
        self.gradients = np.float32(generator.normal(size=(STEPS, 3)))
        builder = popart.Builder()
        x = builder.addInputTensor(popart.TensorInfo("FLOAT", [3]), "x")
        for name, value in self.start.items():
            builder.addInitializedInputTensor(value, name)
        products = [builder.aiOnnx.mul([x, name]) for name in self.start]
        self.loss = builder.aiGraphcore.identityloss([builder.aiOnnx.add(products)], popart.ReductionType.Sum)
        self.proto = builder.getModelProto()

    def session(self, optimizer, batches=STEPS):
        session = popart.TrainingSession(self.proto, popart.DataFlow(batches, [self.loss]), self.loss, optimizer, device())
        session.prepareDevice()
        session.weightsFromHost()
        return session

    def trained(self, session, gradients):
        session.run(popart.PyStepIO({"x": gradients}, session.initAnchorArrays()))
        return weights_of(session)


def weights_of(session):
    there = {name: np.zeros(3, np.float32) for name in ("one", "other")}
    session.weightsToHost()
    session.readWeights(popart.PyWeightsIO(there))
    return there


def descent(w, gradients, lr=LR, decay=0.0, momentum=0.0, dampening=0.0, nesterov=False):
    v = np.zeros(3)
    for one in gradients:
        g = one + decay * w
        v = momentum * v + (1 - dampening) * g
        w = w - lr * (g + momentum * v if nesterov else v)
    return w


def adaptive_moments(  # noqa: PLR0913 (what the algorithm has)
    w, gradients, lr=LR, decay=0.0, eps=1e-6, betas=(0.9, 0.999), decoupled=True, corrected=True, largest=False
):
    m, v = np.zeros(3), np.zeros(3)
    for step, one in enumerate(gradients, 1):
        g = one if decoupled else one + decay * w
        m = betas[0] * m + (1 - betas[0]) * g
        v = np.maximum(betas[1] * v, np.abs(g)) if largest else betas[1] * v + (1 - betas[1]) * g * g
        first = m / (1 - betas[0] ** step) if corrected or largest else m
        second = v if largest else np.sqrt(v / (1 - betas[1] ** step) if corrected else v)
        w = w - lr * (first / (second + eps) + (decay * w if decoupled else 0))
    return w


def adam(settings, **modes):
    names = {"lr": "defaultLearningRate", "decay": "defaultWeightDecay", "eps": "defaultEps"}
    given = {names[name]: (value, True) for name, value in settings.items()}
    return popart.Adam({"defaultLearningRate": (LR, True), **given}, **modes)


def sgd(**settings):
    return popart.SGD({"defaultLearningRate": (LR, True), **{name: (value, True) for name, value in settings.items()}})


CASES = {
    "damped without momentum": (
        lambda: sgd(defaultDampening=0.25, defaultWeightDecay=0.5, lossScaling=8.0),
        lambda w, g: descent(w, g, decay=0.5, dampening=0.25),
    ),
    "damped from the first step on": (
        lambda: sgd(defaultDampening=0.25, defaultMomentum=0.5),
        lambda w, g: descent(w, g, momentum=0.5, dampening=0.25),
    ),
    "nesterov": (
        lambda: sgd(nesterov=1.0, defaultMomentum=0.5, defaultWeightDecay=0.25),
        lambda w, g: descent(w, g, momentum=0.5, decay=0.25, nesterov=True),
    ),
    "Adam with L2Regularization": (
        lambda: adam({"decay": 0.5}, weight_decay_mode=WeightDecayMode.L2Regularization),
        lambda w, g: adaptive_moments(w, g, decay=0.5, decoupled=False),
    ),
    "Adam with Decay": (lambda: adam({"decay": 0.5}), lambda w, g: adaptive_moments(w, g, decay=0.5)),
    "AdamNoBias": (lambda: adam({}, mode=AdamMode.AdamNoBias), lambda w, g: adaptive_moments(w, g, corrected=False)),
    "AdaMax with a large eps": (
        lambda: adam({"eps": 0.5}, mode=AdamMode.AdaMax),
        lambda w, g: adaptive_moments(w, g, eps=0.5, largest=True),
    ),
    "AdaMax with Decay": (
        lambda: adam({"decay": 0.5}, mode=AdamMode.AdaMax),
        lambda w, g: adaptive_moments(w, g, decay=0.5, largest=True),
    ),
    "AdaMax with L2Regularization": (
        lambda: adam({"decay": 0.5}, mode=AdamMode.AdaMax, weight_decay_mode=WeightDecayMode.L2Regularization),
        lambda w, g: adaptive_moments(w, g, decay=0.5, decoupled=False, largest=True),
    ),
}


USUAL = ("damped from the first step on", "Adam with L2Regularization", "AdaMax with a large eps")


@pytest.mark.parametrize("name", [one if one in USUAL else pytest.param(one, marks=pytest.mark.slow) for one in CASES])
def test_steps_are_popart_s(name):
    network, (optimizer, formula) = Slopes(), CASES[name]
    there = network.trained(network.session(optimizer()), network.gradients)
    for weight, start in network.start.items():
        np.testing.assert_allclose(there[weight], formula(start.astype(np.float64), network.gradients), rtol=2e-5, atol=1e-6)


def test_the_learning_rate_of_an_adam_that_says_none_is_popart_s():
    assert [popart.Adam({}).settings["defaultLearningRate"], popart.Adaptive({}).settings["defaultLearningRate"]] == [0.1, 0.01]


SPECIFIC = {
    "SGD": (
        lambda: popart.SGD({"defaultLearningRate": (LR, False), "defaultMomentum": (0.5, True)}),
        {"learningRate": (0.5, False), "momentum": (0.25, True), "weightDecay": (0.125, True)},
        lambda w, g: descent(w, g, momentum=0.5),
        lambda w, g: descent(w, g, lr=0.5, momentum=0.25, decay=0.125),
    ),
    "Adam": (
        lambda: adam({"decay": 0.5}),
        {"weightDecay": (0.0, True), "beta1": 0.5, "eps": 0.25},
        lambda w, g: adaptive_moments(w, g, decay=0.5),
        lambda w, g: adaptive_moments(w, g, betas=(0.5, 0.999), eps=0.25),
    ),
    "AdaMax": (
        lambda: adam({}, mode=AdamMode.AdaMax),
        {"learningRate": 1.0},
        lambda w, g: adaptive_moments(w, g, largest=True),
        lambda w, g: adaptive_moments(w, g, lr=1.0, largest=True),
    ),
}


@pytest.mark.parametrize("kind", ["SGD", *(pytest.param(one, marks=pytest.mark.slow) for one in ("Adam", "AdaMax"))])
def test_a_weight_has_settings_of_its_own(kind):
    make, settings, usual, own = SPECIFIC[kind]
    network, optimizer = Slopes(), make()
    optimizer.insertSpecific("other", settings)
    there = network.trained(network.session(optimizer), network.gradients)
    for weight, formula in (("one", usual), ("other", own)):
        np.testing.assert_allclose(there[weight], formula(network.start[weight], network.gradients), rtol=2e-5, atol=1e-6)


def test_settings_of_a_weight_change_without_compiling_and_keep_the_velocity():
    network = Slopes()

    def optimizer(rate, own):
        made = popart.SGD({"defaultLearningRate": (rate, False), "defaultMomentum": (0.5, True)})
        made.insertSpecific("other", {"learningRate": (own, False)})
        return made

    session = network.session(optimizer(0.5, 0.25), batches=1)
    rates = {"one": [0.5, 0.125], "other": [0.25, 1.0]}
    velocity, wanted = np.zeros(3), {name: start.astype(np.float64) for name, start in network.start.items()}
    for number in range(2):
        if number:
            session.updateOptimizerFromHost(optimizer(0.125, 1.0))
        there = network.trained(session, network.gradients[number])
        velocity = 0.5 * velocity + network.gradients[number]
        for name, of_steps in rates.items():
            wanted[name] = wanted[name] - of_steps[number] * velocity
            np.testing.assert_allclose(there[name], wanted[name], rtol=1e-5, atol=1e-6)


def test_what_a_session_was_given_does_not_change_behind_it():
    network, optimizer = Slopes(), popart.SGD({"defaultLearningRate": (LR, True)})
    session = popart.TrainingSession(network.proto, popart.DataFlow(1, [network.loss]), network.loss, optimizer, device())
    optimizer.insertSpecific("one", {"learningRate": 8.0})
    session.prepareDevice()
    there = network.trained(session, network.gradients[0])
    np.testing.assert_allclose(there["one"], network.start["one"] - LR * network.gradients[0], rtol=1e-6)


WRONG = {
    "an unknown setting": (lambda one: one.insertSpecific("one", {"learningrate": 1.0}), "did you mean 'learningRate'"),
    "a loss scaling of a weight": (lambda one: one.insertSpecific("one", {"lossScaling": 1.0}), "no setting 'lossScaling'"),
    "a tensor that is no name": (lambda one: one.insertSpecific(3, {}), "which is a name, got 3"),
    "a negative number": (lambda one: one.insertSpecific("one", {"learningRate": -1.0}), "at least 0, got -1.0"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes_in_settings_of_a_weight_are_told(mistake):
    make, told = WRONG[mistake]
    with pytest.raises(popart.popart_exception, match=told):
        make(popart.SGD({}))


def test_settings_of_what_is_no_weight_are_told():
    optimizer = popart.ConstSGD(0.1)
    optimizer.insertSpecific("ohter", {"learningRate": 1.0})
    with pytest.raises(popart.popart_exception, match="no weight 'ohter' that is trained; did you mean 'other'"):
        Slopes().session(optimizer)


REPLACED = {
    "another mode": (
        lambda: adam({}),
        lambda: adam({}, mode=AdamMode.AdaMax),
        "the session has Adam Adam Decay, got Adam AdaMax Decay",
    ),
    "another way to decay": (
        lambda: adam({}),
        lambda: adam({}, weight_decay_mode=WeightDecayMode.L2Regularization),
        "got Adam Adam L2Regularization",
    ),
    "a constant that may change now": (
        lambda: popart.ConstSGD(0.1),
        lambda: popart.SGD({"defaultLearningRate": (0.2, False)}),
        "defaultLearningRate is constant in the session, and may change in the new optimiser",
    ),
    "another constant": (lambda: popart.ConstSGD(0.1), lambda: popart.ConstSGD(0.2), "is constant, 0.1, got 0.2"),
    "another algorithm": (
        lambda: popart.Adaptive({}, mode=AdaptiveMode.AdaGrad),
        lambda: popart.Adaptive({}),
        "the session has Adaptive AdaGrad, got Adaptive RMSProp",
    ),
}


@pytest.mark.parametrize("name", REPLACED)
def test_an_optimiser_of_another_kind_does_not_replace_a_session_s(name):
    before, after, told = REPLACED[name]
    with pytest.raises(popart.popart_exception, match=f"updateOptimizerFromHost: .*{told}"):
        after().check_replaces(before())


def test_a_session_does_not_take_an_optimiser_of_another_kind():
    session = Slopes().session(adam({}), batches=1)
    for other, told in (
        (popart.ConstSGD(LR), "the session has Adam Adam Decay, got SGD"),
        ("SGD", "takes an optimizer, .*got 'SGD'"),
    ):
        with pytest.raises(popart.popart_exception, match=told):
            session.updateOptimizerFromHost(other)
