"""Small modules, drawn from the table's operations, give PyTorch's results and gradients.

POPTORCH_DRAWN_MODULES is how many are drawn, for a longer run.
"""

import os

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from poptorch_rig import check

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


@settings(max_examples=int(os.environ.get("POPTORCH_DRAWN_MODULES", "6")), deadline=None)
@given(
    steps=st.lists(STEP, min_size=3, max_size=8),
    shapes=st.lists(st.sampled_from(SHAPES), min_size=1, max_size=2),
    half=st.booleans(),
)
def test_drawn_modules_are_pytorchs(steps, shapes, half):
    generator = torch.Generator().manual_seed(len(steps) + 7 * len(shapes))
    tensors = [torch.randn(shape, generator=generator).to(torch.float16 if half else torch.float32) for shape in shapes]
    check(module_of(steps), *tensors)
