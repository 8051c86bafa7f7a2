"""Networks of torchvision and transformers, and some that everybody writes, as they are, against PyTorch in float64."""

import copy
import importlib.util
import sys
from types import ModuleType

import pytest
import torch
from torch import nn

from pypoplar import poptorch

pytestmark = pytest.mark.slow

STEPS, RATE = 3, 0.01


class Training(nn.Module):
    """A network with its loss, as a training model wants it."""

    def __init__(self, network, loss):
        super().__init__()
        self.network, self.loss = network, loss

    def forward(self, *args):
        return self.loss(self.network, *args)


def doubled(given):
    return [one.double() if one.is_floating_point() else one for one in given]


def losses_on_the_host(model, given):
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(*given)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def difference(values, exact):
    """The largest relative difference of tensors, by the largest element of each."""
    pairs = [(one.detach().double(), other.detach().double()) for one, other in zip(values, exact, strict=True)]
    return max(((one - other).abs().max() / other.abs().max().clamp(min=1e-3)).item() for one, other in pairs if one.numel())


def check(network, loss, *given, output=lambda returned: returned):
    torch.manual_seed(1)
    network.eval()
    inference = poptorch.inferenceModel(Training(network, lambda net, *args: output(net(*args[: len(args) - loss.labels]))))
    with torch.no_grad():
        wanted = output(copy.deepcopy(network).double()(*doubled(given[: len(given) - loss.labels])))
    values = inference(*given)
    forward = difference([values], [wanted])
    inference.destroy()
    assert forward <= 1e-5, f"forward differs by {forward:.2e}"

    network.train()
    start = Training(network, loss)
    exact, plain = copy.deepcopy(start).double(), copy.deepcopy(start)
    exact_losses = losses_on_the_host(exact, doubled(given))
    plain_losses = losses_on_the_host(plain, given)
    training = poptorch.trainingModel(start, optimizer=torch.optim.SGD(start.parameters(), lr=RATE))
    losses = [training(*given).item() for _ in range(STEPS)]
    names = [name for name, _ in start.named_parameters()]
    own = difference(list(plain.parameters()), list(exact.parameters()))
    ours = difference(list(start.parameters()), list(exact.parameters()))
    told = f"{len(names)} parameters differ by {ours:.2e}, PyTorch's float32 by {own:.2e}; losses {losses}, {exact_losses}"
    print(f"forward {forward:.2e}, {told}, {plain_losses}, cycles {training.cycleCount()}")
    assert ours <= max(1e-4, 2 * own), told
    assert losses == pytest.approx(exact_losses, rel=max(1e-4, 2 * own))


def loss_of(labels):
    def mark(function):
        function.labels = labels
        return function

    return mark


@loss_of(1)
def classified(network, x, labels):
    return nn.functional.cross_entropy(network(x), labels)


def pictures(size, classes=10, batch=2):
    return torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch,))


def imported_torchvision():
    """torchvision. Where its operators were compiled for another build of PyTorch, it is imported without: networks need none."""
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    try:
        return importlib.import_module("torchvision")
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        sys.modules["torchvision._meta_registrations"] = ModuleType("operators")
        return importlib.import_module("torchvision")


def torchvisions(name):
    models = imported_torchvision().models
    made = {
        "resnet18": lambda: models.resnet18(num_classes=10),
        "mobilenet_v2": lambda: models.mobilenet_v2(num_classes=10, width_mult=0.35, dropout=0.0),
        "vgg11": lambda: nn.Sequential(
            models.vgg11(num_classes=10, dropout=0.0).features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)
        ),
        "densenet121": lambda: models.DenseNet(growth_rate=8, block_config=(6, 12, 24, 16), num_init_features=16, num_classes=10),
        "vit": lambda: models.VisionTransformer(32, 8, 2, 4, 64, 128, num_classes=10),
        "swin": lambda: models.SwinTransformer([2, 2], 16, [2, 2], [2, 4], [4, 4], stochastic_depth_prob=0.0, num_classes=10),
    }
    return made[name]()


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "vgg11", "densenet121", "vit", "swin"])
def test_networks_of_torchvision_are_pytorchs(name):
    torch.manual_seed(0)
    normalised = name in ("resnet18", "mobilenet_v2", "densenet121")  # by batches, which float32 does not follow if they are small
    check(torchvisions(name), classified, *(pictures(64, batch=4) if normalised else pictures(32)))


VOCABULARY, TOKENS = 99, 12


def texts():
    return torch.randint(1, VOCABULARY, (2, TOKENS)), torch.randint(0, 2, (2,))


@loss_of(1)
def sentence(network, ids, labels):
    return nn.functional.cross_entropy(network(input_ids=ids).logits, labels)


class Logits(nn.Module):
    """A model of transformers that gives its logits."""

    def __init__(self, model, **named):
        super().__init__()
        self.model, self.named = model, named

    def forward(self, *given):
        return self.model(*given, **self.named).logits


@loss_of(0)
def next_token(network, ids):
    logits = network(ids)
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


class Translated(nn.Module):
    def __init__(self, model, encoded):
        super().__init__()
        self.model, self.encoded = model, encoded

    def forward(self, given, ids):
        return self.model(**{self.encoded: given}, decoder_input_ids=ids).logits


@loss_of(1)
def translated(network, given, ids, labels):
    return nn.functional.cross_entropy(network(given, ids).flatten(0, 1), labels.flatten())


def small(**more):
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        **more,
    }


def transformers_case(name):
    library = pytest.importorskip("transformers")
    if importlib.util.find_spec("torchvision") is not None:  # which transformers imports then
        imported_torchvision()
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    ids, labels = texts()
    if name == "bert":
        return Logits(library.BertForSequenceClassification(library.BertConfig(**small(**no_dropout)))), classified, ids, labels
    if name == "distilbert":
        config = library.DistilBertConfig(
            vocab_size=VOCABULARY,
            dim=32,
            n_layers=2,
            n_heads=4,
            hidden_dim=64,
            dropout=0.0,
            attention_dropout=0.0,
            seq_classif_dropout=0.0,
        )
        return Logits(library.DistilBertForSequenceClassification(config)), classified, ids, labels
    if name == "gpt2":
        config = library.GPT2Config(
            vocab_size=VOCABULARY, n_positions=32, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
        )
        return Logits(library.GPT2LMHeadModel(config), use_cache=False), next_token, ids
    if name == "t5":
        config = library.T5Config(vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0)
        return (
            Translated(library.T5ForConditionalGeneration(config), "input_ids"),
            translated,
            ids,
            ids[:, :5].clone(),
            ids[:, 1:6].clone(),
        )
    if name == "whisper":
        config = library.WhisperConfig(
            vocab_size=VOCABULARY,
            num_mel_bins=8,
            d_model=32,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=64,
            decoder_ffn_dim=64,
            max_source_positions=20,
            max_target_positions=20,
            dropout=0.0,
            attention_dropout=0.0,
            activation_dropout=0.0,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
            suppress_tokens=None,
            begin_suppress_tokens=None,
        )
        return (
            Translated(library.WhisperForConditionalGeneration(config), "input_features"),
            translated,
            torch.randn(2, 8, 40),
            ids[:, :5].clone(),
            ids[:, 1:6].clone(),
        )
    config = library.ViTConfig(
        **{key: value for key, value in small(**no_dropout).items() if key != "vocab_size"},
        image_size=32,
        patch_size=8,
        num_labels=10,
    )
    return Logits(library.ViTForImageClassification(config)), classified, *pictures(32)


@pytest.mark.parametrize("name", ["bert", "distilbert", "gpt2", "t5", "whisper", "vit"])
def test_models_of_transformers_are_pytorchs(name):
    torch.manual_seed(0)
    network, loss, *given = transformers_case(name)
    check(network, loss, *given)


class UNet(nn.Module):
    def __init__(self, wide=8):
        super().__init__()

        def twice(before, after):
            return nn.Sequential(
                nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
                nn.Conv2d(after, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
            )  # fmt: skip

        self.down1, self.down2, self.middle = twice(3, wide), twice(wide, 2 * wide), twice(2 * wide, 4 * wide)
        self.up2, self.up1 = nn.ConvTranspose2d(4 * wide, 2 * wide, 2, 2), nn.ConvTranspose2d(2 * wide, wide, 2, 2)
        self.join2, self.join1 = twice(4 * wide, 2 * wide), twice(2 * wide, wide)
        self.last = nn.Conv2d(wide, 4, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(nn.functional.max_pool2d(first, 2))
        third = self.middle(nn.functional.max_pool2d(second, 2))
        second = self.join2(torch.cat([self.up2(third), second], 1))
        return self.last(self.join1(torch.cat([self.up1(second), first], 1)))


def test_a_u_net_is_pytorchs():
    torch.manual_seed(0)
    check(UNet(), classified, torch.randn(2, 3, 32, 32), torch.randint(0, 4, (2, 32, 32)))


class Autoencoder(nn.Module):
    """A variational one, whose noise is an argument, so that all draw the same."""

    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(784, 64), nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 784))
        self.mean, self.log_variance = nn.Linear(64, 8), nn.Linear(64, 8)

    def forward(self, x, noise):
        hidden = self.encode(x).relu()
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        logits = self.decode(mean + noise * (0.5 * log_variance).exp())
        return torch.cat([logits, mean, log_variance], 1)


@loss_of(0)
def evidence(network, x, noise):
    logits, mean, log_variance = network(x, noise).split([784, 8, 8], 1)
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
    pixels = nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    return (
        poptorch.identity_loss((pixels + divergence) / 1000, "none") if poptorch.isRunningOnIpu() else (pixels + divergence) / 1000
    )


def test_a_variational_autoencoder_is_pytorchs():
    torch.manual_seed(0)
    check(Autoencoder(), evidence, torch.rand(4, 784), torch.randn(4, 8))


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layer = nn.Embedding(VOCABULARY, 16), nn.GRU(16, 24, num_layers=2, bidirectional=True, batch_first=True)
        self.last = nn.Linear(48, 3)

    def forward(self, ids):
        return self.last(self.layer(self.words(ids))[0].mean(1))


def test_a_classifier_of_gated_units_is_pytorchs():
    torch.manual_seed(0)
    check(Gated(), classified, torch.randint(0, VOCABULARY, (3, TOKENS)), torch.randint(0, 3, (3,)))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.ConvTranspose2d(16, 16, 4, 1, 0, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
            nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
            nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False), nn.Tanh(),
        )  # fmt: skip

    def forward(self, noise):
        return self.layers(noise[:, :, None, None])


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 4, 2, 1, bias=False), nn.LeakyReLU(0.2),
            nn.Conv2d(8, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.LeakyReLU(0.2),
            nn.Conv2d(16, 1, 4, 1, 0, bias=False), nn.Flatten(0),
        )  # fmt: skip

    def forward(self, x):
        return self.layers(x)


class Judged(nn.Module):
    """The discriminator's step: pictures that are real, and others."""

    def __init__(self, discriminator):
        super().__init__()
        self.discriminator = discriminator

    def forward(self, real, made):
        scores = torch.cat([self.discriminator(real), self.discriminator(made)])
        wanted = torch.cat([torch.ones(len(real)), torch.zeros(len(made))]).to(scores.dtype)
        return nn.functional.binary_cross_entropy_with_logits(scores, wanted)


class Deceiving(nn.Module):
    """The generator's step through the discriminator, which it does not train."""

    def __init__(self, generator, discriminator):
        super().__init__()
        self.generator, self.discriminator = generator, discriminator

    def forward(self, noise):
        made = self.generator(noise)
        scores = self.discriminator(made)
        return made, nn.functional.binary_cross_entropy_with_logits(scores, torch.ones_like(scores))


def host_steps(generator, discriminator, real, noises):
    judged, deceiving = Judged(discriminator), Deceiving(generator, discriminator)
    optimizers = [torch.optim.Adam(one.parameters(), lr=2e-4, betas=(0.5, 0.999)) for one in (generator, discriminator)]
    losses = []
    for noise in noises:
        made, loss = deceiving(noise)
        generator.zero_grad()
        loss.backward()
        optimizers[0].step()
        losses.append(loss.item())
        discriminator.zero_grad()
        judge = judged(real, made.detach())
        judge.backward()
        optimizers[1].step()
        losses.append(judge.item())
    return losses


def test_two_networks_with_an_optimiser_each_train_against_each_other_as_in_pytorch():
    torch.manual_seed(0)
    generator, discriminator = Generator(), Discriminator()
    real, noises = torch.rand(4, 1, 16, 16) * 2 - 1, torch.randn(STEPS, 4, 16)
    exact = copy.deepcopy(generator).double(), copy.deepcopy(discriminator).double()
    wanted = host_steps(*exact, real.double(), noises.double())

    def optimizer(one):
        return torch.optim.Adam(one.parameters(), lr=2e-4, betas=(0.5, 0.999))

    deceive = poptorch.trainingModel(Deceiving(generator, discriminator), optimizer=optimizer(generator))
    judge = poptorch.trainingModel(Judged(discriminator), optimizer=optimizer(discriminator))
    losses = []
    for noise in noises:
        made, loss = deceive(noise)
        losses += [loss.item(), judge(real, made).item()]
    assert losses == pytest.approx(wanted, rel=1e-4)
    for network, other in zip((generator, discriminator), exact, strict=True):
        for (name, one), parameter in zip(network.named_parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(one.double(), parameter, rtol=1e-3, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}")
