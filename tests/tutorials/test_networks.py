"""The networks of the tutorials learn, on few tiles; what they compute is compared with PyTorch where that is installed."""

import re

import numpy as np
import pytest
from tutorial_modules import tutorial_module, tutorial_pages

from pypoplar import FLOAT, HALF

STEPS = 100
BATCH = 8
STABLE = 4  # a seed of weights with which no value of 100 steps is so near a tie that the order of sums decides; with 0 one is


def cycles_of_parts(text):
    """The cycles that a prediction has by layer and pass, and those of the step."""
    rows = re.findall(r"^(\w+) +([\d,]+) +([\d,]+) +([\d,]+)$", text, re.MULTILINE)
    parts = {layer: [int(number.replace(",", "")) for number in numbers] for layer, *numbers in rows}
    return parts, int(re.search(r"^A step: ([\d,]+) cycles", text, re.MULTILINE)[1].replace(",", ""))


def test_the_convolutional_network_trains_and_tells_its_cycles_by_layer_and_pass():
    text = tutorial_pages().record("mnist_cnn").runs[0].printed  # which tests/tutorials/test_pages.py compares
    first, second = (float(loss) for loss in re.findall(r"loss ([\d.]+)", text))
    assert second < first
    parts, step = cycles_of_parts(text)
    assert set(parts) >= {"conv1", "pool1", "relu1", "conv2", "pool2", "relu2", "linear1", "relu3", "dropout", "linear2", "softmax"}
    assert all(all(parts[layer]) for layer in ("conv2", "linear1", "linear2"))  # forward, backward, update
    assert abs(sum(map(sum, parts.values())) - step) <= len(parts) * 3  # each is rounded


def test_the_recurrent_network_learns_in_half_precision():
    text = tutorial_pages().record("digits_lstm").runs[0].printed
    accuracies = [float(share) for share in re.findall(r"kept aside ([\d.]+)%", text)]
    assert accuracies[-1] > 60
    parts, _ = cycles_of_parts(text)
    assert all(parts["lstm"])


def small_transformer():
    """The tutorial's module with a network that fits on a few tiles."""
    tutorial = tutorial_module("transformer")
    tutorial.LAYERS, tutorial.UNITS, tutorial.TOKENS, tutorial.HIDDEN = 1, 16, 8, 2
    return tutorial


def test_the_transformer_learns_in_half_precision_and_tells_its_cycles_by_layer_and_pass():
    text = tutorial_pages().record("transformer").runs[0].printed
    losses = [float(loss) for loss in re.findall(r": loss ([\d.]+)", text)]
    assert losses[-1] < losses[0] * 0.55
    parts, _ = cycles_of_parts(text)
    assert set(parts) >= {"embedding", "attention", "feedforward", "norm", "linear", "softmax", "adamw"}
    assert all(parts["attention"])
    assert all(parts["feedforward"])


def transformer_after_steps(tutorial, type):
    """Its loss in each step, its parameters behind the last, and the report of two steps more."""
    trainer = tutorial.build(type, 1, 2, 0.01, 8)
    trainer.write(tutorial.initial({name: value.shape for name, value in trainer.read().items()}, 0))
    tokens, labels = tutorial.masked(tutorial.texts()[0][:2], np.random.default_rng(0))
    losses = [trainer.run(trainer.TRAIN, tokens=tokens, labels=labels)["loss"].ravel() for _ in range(2)]
    return np.concatenate(losses), trainer.read(), trainer.prediction()


@pytest.mark.parametrize("type", [FLOAT, HALF])
def test_equal_layers_of_the_transformer_that_are_built_once_have_the_results_of_layers_built_each(type, monkeypatch):
    tutorial = small_transformer()
    tutorial.LAYERS, tutorial.UNITS = 2, 8
    losses, parameters, report = transformer_after_steps(tutorial, type)

    def built(shared, name, equal):
        part = {"attention": tutorial.Attention, "feedforward": tutorial.FeedForward}[equal.name]
        return tutorial.Residual(shared, name, part(shared, name))

    monkeypatch.setattr(tutorial, "Layer", built)
    own_losses, own_parameters, own_report = transformer_after_steps(tutorial, type)
    assert losses.tolist() == own_losses.tolist()
    assert parameters.keys() == own_parameters.keys()
    for name, value in parameters.items():
        np.testing.assert_array_equal(value, own_parameters[name], err_msg=name)
    called, each = (one.compilation.graph.numVertices for one in (report, own_report))
    assert called < 0.75 * each


def test_the_transformer_names_a_text_that_is_not_there_or_too_short(tmp_path):
    tutorial = tutorial_module("transformer")
    with pytest.raises(SystemExit, match=r"cannot read .*missing"):
        tutorial.main(["--text", str(tmp_path / "missing")])
    (tmp_path / "short").write_text("a few words")
    with pytest.raises(SystemExit, match="has 11 bytes"):
        tutorial.main(["--text", str(tmp_path / "short")])


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def losses_of_steps(trainer, images, labels):
    """The losses of STEPS steps of training, each over BATCH samples in their order."""
    taken = BATCH * trainer.steps
    runs = [slice(start, start + taken) for start in range(0, BATCH * STEPS, taken)]
    return (
        np.concatenate([trainer.run(trainer.TRAIN, images=images[some], labels=labels[some])["loss"].ravel() for some in runs])
        / BATCH
    )


def losses_of_pytorch(torch, network, rate, images, labels):
    optimiser = torch.optim.SGD([one for one in network.parameters() if one.requires_grad], lr=rate)
    losses = []
    for start in range(0, BATCH * STEPS, BATCH):
        some = slice(start, start + BATCH)
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(torch.tensor(images[some])), torch.tensor(labels[some].astype(np.int64)))
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return np.array(losses)


def assert_same_weights(pairs):
    for ours, theirs in pairs:
        assert np.linalg.norm(ours - theirs) < 1e-3 * np.linalg.norm(theirs)


@pytest.mark.slow
def test_the_convolutional_network_has_the_losses_of_pytorch(torch):
    tutorial = tutorial_module("mnist_cnn")
    images, labels, *_ = tutorial.load(None, 100)
    trainer = tutorial.build(FLOAT, BATCH, 25, 0.03, 1472, dropout=False)
    first = tutorial.initial({name: value.shape for name, value in trainer.read().items()}, STABLE)
    trainer.write(first)
    nn = torch.nn
    layers = [nn.Conv2d(1, 32, 3), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten()]
    network = nn.Sequential(*layers, nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10))

    def pairs(values):
        for name, place in (("conv1", 0), ("conv2", 3), ("linear1", 7), ("linear2", 9)):
            weights = values[f"{name}/weights"]
            yield weights[0] if name.startswith("conv") else weights.T, network[place].weight
            yield values[f"{name}/biases"], network[place].bias

    with torch.no_grad():
        for value, parameter in pairs(first):
            parameter.copy_(torch.tensor(value))
    expected = losses_of_pytorch(torch, network, 0.03, images.reshape(-1, 1, 28, 28).astype(np.float32), labels)
    np.testing.assert_allclose(losses_of_steps(trainer, images, labels), expected, rtol=1e-3)
    assert_same_weights([(ours, theirs.detach().numpy()) for ours, theirs in pairs(trainer.read())])


@pytest.mark.slow
@pytest.mark.parametrize(("type", "error"), [(FLOAT, 1e-3), (HALF, 0.03)])
def test_the_recurrent_network_has_the_losses_of_pytorch(torch, type, error):
    tutorial = tutorial_module("digits_lstm")
    images, labels, *_ = tutorial.uci_parts()
    trainer = tutorial.build(type, BATCH, 25, 0.3, 1472)
    first = tutorial.initial({name: value.shape for name, value in trainer.read().items()}, 0)
    trainer.write(first)

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.linear = torch.nn.LSTM(8, 64), torch.nn.Linear(64, 10)

        def forward(self, rows):
            return self.linear(self.lstm(rows.permute(1, 0, 2))[0][-1])

    network = Network()
    order = [1, 0, 2, 3]  # PyTorch has the input gate first

    def pairs(values):
        yield np.concatenate([values["lstm/inputWeights"][unit].T for unit in order]), network.lstm.weight_ih_l0
        yield np.concatenate([values["lstm/outputWeights"][unit].T for unit in order]), network.lstm.weight_hh_l0
        yield values["lstm/biases"][order].ravel(), network.lstm.bias_ih_l0
        yield values["linear/weights"].T, network.linear.weight
        yield values["linear/biases"], network.linear.bias

    with torch.no_grad():
        network.lstm.bias_hh_l0.zero_().requires_grad_(False)  # PyTorch has two vectors of biases
        for value, parameter in pairs(first):
            parameter.copy_(torch.tensor(value))
    expected = losses_of_pytorch(torch, network, 0.3, images.reshape(-1, 8, 8), labels)
    np.testing.assert_allclose(losses_of_steps(trainer, images, labels), expected, rtol=error)
    if type is FLOAT:
        assert_same_weights([(ours, theirs.detach().numpy()) for ours, theirs in pairs(trainer.read())])


def encoder_of_pytorch(torch, tutorial):
    """The transformer in PyTorch, and a function of its parameters: pairs of what the tutorial calls them and those."""
    nn, units = torch.nn, tutorial.UNITS

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.places = nn.Embedding(256, units), nn.Parameter(torch.zeros(tutorial.TOKENS, units))

            def gelu(x):
                return nn.functional.gelu(x, approximate="tanh")

            options = {"dropout": 0.0, "activation": gelu, "batch_first": True, "norm_first": True}
            layers = [nn.TransformerEncoderLayer(units, tutorial.HEADS, 4 * units, **options) for _ in range(tutorial.LAYERS)]
            self.layers, self.norm, self.linear = nn.ModuleList(layers), nn.LayerNorm(units), nn.Linear(units, 256)

        def forward(self, tokens):
            x = self.table(tokens) + self.places
            for layer in self.layers:
                x = layer(x)
            return self.linear(self.norm(x))

    network = Network()

    def pairs(values):
        yield values["embedding/table"], network.table.weight
        yield values["embedding/places"], network.places
        for number, layer in enumerate(network.layers, 1):
            attention, feed = f"attention{number}", f"feedforward{number}"
            own = layer.self_attn
            yield values[f"{attention}/queries/weights"].T, own.in_proj_weight
            yield values[f"{attention}/queries/biases"], own.in_proj_bias
            linears = {f"{attention}/output": own.out_proj, f"{feed}/wide": layer.linear1, f"{feed}/narrow": layer.linear2}
            norms = {f"{attention}/norm": layer.norm1, f"{feed}/norm": layer.norm2}
            yield from of_layers(values, linears, norms)
        yield from of_layers(values, {"linear": network.linear}, {"norm": network.norm})

    def of_layers(values, linears, norms):
        for name, linear in linears.items():
            yield values[f"{name}/weights"].T, linear.weight
            yield values[f"{name}/biases"], linear.bias
        for name, norm in norms.items():
            yield values[f"{name}/gamma"], norm.weight
            yield values[f"{name}/beta"], norm.bias

    return network, pairs


@pytest.mark.slow
@pytest.mark.parametrize(("type", "error"), [(FLOAT, 1e-3), (HALF, 0.03)])
def test_the_transformer_has_the_losses_of_pytorch(torch, type, error):
    tutorial, batch, rate = small_transformer(), 4, 0.003
    trainer = tutorial.build(type, batch, 25, rate, 16)
    first = tutorial.initial({name: value.shape for name, value in trainer.read().items()}, 0)
    trainer.write(first)
    network, pairs = encoder_of_pytorch(torch, tutorial)
    with torch.no_grad():
        for value, parameter in pairs(first):
            parameter.copy_(torch.tensor(value))
    rows = tutorial.texts()[0][: batch * STEPS]
    tokens, labels = tutorial.masked(rows, np.random.default_rng(0))
    optimiser = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=0.01)
    expected = []
    for start in range(0, len(rows), batch):
        some = slice(start, start + batch)
        goals = np.where(labels[some] == 0xFFFFFFFF, -100, labels[some].astype(np.int64)).ravel()
        optimiser.zero_grad()
        answers = network(torch.tensor(tokens[some].astype(np.int64))).reshape(-1, 256)
        loss = torch.nn.functional.cross_entropy(answers, torch.tensor(goals))
        loss.backward()
        optimiser.step()
        expected.append(loss.item())
    taken = batch * trainer.steps
    runs = [slice(start, start + taken) for start in range(0, len(rows), taken)]
    losses = [trainer.run(trainer.TRAIN, tokens=tokens[some], labels=labels[some])["loss"].ravel() for some in runs]
    np.testing.assert_allclose(np.concatenate(losses) / (batch * tutorial.HIDDEN), expected, rtol=error)
    if type is FLOAT:
        both = [(ours.ravel(), theirs.detach().numpy().ravel()) for ours, theirs in pairs(trainer.read())]
        # Together: the keys' biases change nothing, so that AdamW moves them by what was rounded.
        assert_same_weights([tuple(map(np.concatenate, zip(*both, strict=True)))])
