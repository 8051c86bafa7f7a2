"""Small modules, drawn from the table's operations and of layers, give PyTorch's results and gradients."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from poptorch_rig import agrees, check, compiled
from torch import nn
from torch.nn import functional

SHAPES = [(), (3,), (1,), (2, 3), (3, 1), (2, 1, 4)]
OF_ONE = {
    "abs": torch.abs,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "sin": torch.sin,
    "erf": torch.erf,
    "square": torch.square,
    "neg": torch.neg,
    "clamp": lambda a: a.clamp(-0.5, 1.0),
    "relu": torch.relu,
    "half of it": lambda a: a * 0.5 + 0.125,
    "from one": lambda a: 1 - a,
    "positive root": lambda a: (a * a + 1).sqrt(),
    "logarithm": lambda a: torch.log1p(a.abs()),
    "flat": lambda a: a.reshape(-1),
    "turned": lambda a: a.mT if a.dim() > 1 else a,
    "flipped": lambda a: a.flip(0) if a.dim() else a,
    "rolled": lambda a: a.roll(1),
    "first": lambda a: a[..., :1] if a.dim() else a,
    "sum": lambda a: a.sum(-1, keepdim=True) if a.dim() else a,
    "mean": lambda a: a.mean(),
    "largest": lambda a: a.amax(0) if a.dim() else a,
    "sums up to": lambda a: a.cumsum(-1) if a.dim() else a,
    "twice": lambda a: torch.cat([a, a * 2], 0) if a.dim() else a,
    "padded": lambda a: torch.nn.functional.pad(a, (1, 0), value=0.5) if a.dim() else a,
}
OF_TWO = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "maximum": torch.maximum,
    "choice": lambda a, b: torch.where(a > b, a, b * 0.5),
    "quotient": lambda a, b: a / (b * b + 1),
    "mixture": lambda a, b: torch.lerp(a, b, 0.25),
}
STEP = st.one_of(
    st.tuples(st.sampled_from(sorted(OF_ONE)), st.integers(0, 9), st.just(0)),
    st.tuples(st.sampled_from(sorted(OF_TWO)), st.integers(0, 9), st.integers(0, 9)),
)


def module_of(steps):
    """A function of tensors: each step takes earlier values; those that cannot be broadcast together are left out."""

    def run(*tensors):
        values = list(tensors)
        for name, first, second in steps:
            a, b = values[first % len(values)], values[second % len(values)]
            if name in OF_ONE:
                values.append(OF_ONE[name](a))
            elif fits(a, b):
                values.append(OF_TWO[name](a, b))
        return values[-1]

    return run


def fits(a, b):
    try:
        torch.broadcast_shapes(a.shape, b.shape)
    except RuntimeError:
        return False
    return True


@examples(6)
@given(
    steps=st.lists(STEP, min_size=3, max_size=8),
    shapes=st.lists(st.sampled_from(SHAPES), min_size=1, max_size=2),
    half=st.booleans(),
)
def test_drawn_modules_are_pytorchs(steps, shapes, half):
    generator = torch.Generator().manual_seed(len(steps) + 7 * len(shapes))
    tensors = [torch.randn(shape, generator=generator).to(torch.float16 if half else torch.float32) for shape in shapes]
    check(module_of(steps), *tensors)


def _convolution(shape, k):
    return nn.Conv2d(shape[1], 2 + k, 1 + k, stride=1 + k % 2, padding=k // 2, bias=k != 2)


# Of an image's shape and a small number; None where the image is too small for it.
OF_IMAGES = {
    "convolution": lambda shape, k: _convolution(shape, k) if min(shape[2:]) > k else None,
    "grouped": lambda shape, k: nn.Conv2d(shape[1], 2 * shape[1], 3, padding=1 + k, dilation=1 + k, groups=shape[1]),
    "turned convolution": lambda shape, k: nn.ConvTranspose2d(shape[1], 2, 2 + k, stride=1 + k % 2, output_padding=k % 2),
    "largest": lambda shape, k: nn.MaxPool2d(2 + k, stride=1 + k, ceil_mode=k == 1) if min(shape[2:]) > 3 + k else None,
    "means": lambda shape, k: nn.AvgPool2d(2, stride=1 + k, padding=k % 2, count_include_pad=k > 0) if min(shape[2:]) > 3 else None,
    "adaptive": lambda shape, k: nn.AdaptiveAvgPool2d((1 + k, 2)),
    "batch norm": lambda shape, k: nn.BatchNorm2d(shape[1], affine=k != 1, track_running_stats=k != 2),
    "group norm": lambda shape, k: nn.GroupNorm(1 + (shape[1] % 2 == 0), shape[1], affine=k != 1),
    "instance norm": lambda shape, k: nn.InstanceNorm2d(shape[1], affine=k == 1) if shape[2] * shape[3] > 3 else None,
    "upsampled": lambda shape, k: nn.Upsample(scale_factor=1 + k, mode="nearest") if max(shape[2:]) < 8 else None,
    "shuffled": lambda shape, k: nn.PixelShuffle(2) if shape[1] % 4 == 0 else None,
    "leaky": lambda shape, k: nn.LeakyReLU(0.1 * (k + 1)),
    "swish": lambda shape, k: [nn.SiLU(), nn.Hardswish(), nn.Mish()][k],
}
OF_ROWS = {
    "linear": lambda width, k: nn.Linear(width, 3 + k, bias=k != 1),
    "layer norm": lambda width, k: nn.LayerNorm(width, elementwise_affine=k != 1),
    "gelu": lambda width, k: nn.GELU(approximate="tanh" if k else "none"),
    "softplus": lambda width, k: [nn.Softplus(), nn.Softsign(), nn.ELU(alpha=0.7)][k],
    "softmax": lambda width, k: nn.Softmax(-1),
    "slopes": lambda width, k: nn.PReLU(),
    "tanh": lambda width, k: nn.Tanh(),
}
LOSSES = {
    "cross entropy": lambda y, labels: functional.cross_entropy(y, labels, label_smoothing=0.125),
    "likelihood": lambda y, labels: functional.nll_loss(functional.log_softmax(y, -1), labels, reduction="sum"),
    "square": lambda y, labels: functional.mse_loss(y, torch.zeros_like(y)),
    "absolute": lambda y, labels: functional.smooth_l1_loss(y, torch.ones_like(y), beta=0.5),
    "logits": lambda y, labels: functional.binary_cross_entropy_with_logits(y, torch.full_like(y, 0.25)),
}


class DrawnLayers(nn.Module):
    """Layers of images, then of rows, then a loss; those that do not fit what comes to them are left out."""

    def __init__(self, images, of_images, of_rows, loss):
        super().__init__()
        self.loss, before = LOSSES[loss], []
        for name, k in of_images:
            layer = OF_IMAGES[name](images.shape, k)
            if layer is not None:
                with torch.no_grad():
                    images = layer(images)
                before.append(layer)
        width = images[0].numel()
        after = []
        for name, k in of_rows:
            after.append(OF_ROWS[name](width, k))
            width = 3 + k if name == "linear" else width
        self.layers = nn.Sequential(*before, nn.Flatten(), *after)
        for module in self.modules():  # as they were: the shapes were found by running them
            if isinstance(module, nn.BatchNorm2d) and module.track_running_stats:
                module.reset_running_stats()

    def forward(self, images, labels):
        y = self.layers(images)
        return y, self.loss(y, labels)


@examples(6)
@given(
    shape=st.tuples(st.integers(2, 3), st.integers(1, 4), st.integers(5, 9), st.integers(5, 9)),
    of_images=st.lists(st.tuples(st.sampled_from(sorted(OF_IMAGES)), st.integers(0, 2)), min_size=1, max_size=4),
    of_rows=st.lists(st.tuples(st.sampled_from(sorted(OF_ROWS)), st.integers(0, 2)), max_size=3),
    loss=st.sampled_from(sorted(LOSSES)),
)
def test_drawn_layers_train_as_pytorchs(shape, of_images, of_rows, loss):
    torch.manual_seed(sum(shape))
    images = torch.randn(shape)
    module = DrawnLayers(images, of_images, [*of_rows, ("linear", 2)], loss)
    labels = torch.arange(len(images)) % 5
    machine = compiled(module, (images, labels), training=True, stable_norms=True)  # whatever the means that were drawn
    wanted, wanted_loss = module(images, labels)
    wanted_loss.backward()
    got, got_loss = machine.run((images, labels))
    agrees(got, wanted.detach(), "the output", scale=10.0)
    agrees(got_loss, wanted_loss.detach(), "the loss", scale=10.0)
    for name, parameter in module.named_parameters():
        gradient = machine.engine.readTensor(f"gradient/{name}").reshape(parameter.shape)
        agrees(gradient, parameter.grad, f"gradient by {name}", scale=10.0)
