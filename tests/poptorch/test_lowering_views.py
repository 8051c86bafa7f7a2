"""Views, joined and padded tensors, and parts that are written, give PyTorch's results and gradients."""

import pytest
import torch
import torch.nn.functional as F
from poptorch_functions import of_all, random, total_of
from poptorch_rig import check

VIEWS = [
    lambda a: a.view(-1),
    lambda a: a.reshape(2, 6, -1),
    lambda a: a.permute(2, 0, 1),
    lambda a: a.transpose(0, -1),
    lambda a: a.mT,
    lambda a: a[:, 1],
    lambda a: a[..., -1],
    lambda a: a[1:],
    lambda a: a[:, ::2],
    lambda a: a[:, -3:-1],
    lambda a: a.narrow(1, 1, 2),
    lambda a: a.unsqueeze(1),
    lambda a: a.expand(2, 3, 4, 5),
    lambda a: a.flip(0, 2),
    lambda a: a.roll(2, 1),
    lambda a: a.roll(7),
    lambda a: a.roll((1, -1), (0, 2)),
    lambda a: torch.cat(a.split([1, 3], 1)[::-1], 1),
    lambda a: torch.stack(a.unbind(1)[1:], 2),
    lambda a: a.diagonal(),
    lambda a: a.diagonal(1, 1, 2),
    lambda a: a.diagonal(-1, 2, 1),
    lambda a: torch.diag_embed(a[0]),
    lambda a: torch.cat(a.chunk(2, 1), 0),
    lambda a: a.repeat(2, 1, 1, 2),
    lambda a: a.repeat_interleave(2, 1),
    lambda a: a.tile(2),
    lambda a: a.unfold(1, 2, 1),
    lambda a: a.unfold(2, 2, 2),
    lambda a: a.tril(),
    lambda a: a.triu(1),
    lambda a: a.movedim(0, 2),
    lambda a: torch.meshgrid(a[0, 0], a[0, 1], indexing="ij")[1],
    lambda a: a.as_strided((2, 3), (1, 2), 1),
    lambda a: a.swapaxes(0, 1),
]
PADS = [
    lambda a: F.pad(a, (1, 2)),
    lambda a: F.pad(a, (-1, 1, 0, 2), value=1.5),
    lambda a: F.pad(a, (2, 1), mode="reflect"),
    lambda a: F.pad(a, (2, 1), mode="replicate"),
    lambda a: F.pad(a, (1, 2), mode="circular"),
    lambda a: F.pad(a[None], (1, 2, 2, 1), mode="reflect"),
    lambda a: F.pad(a[None], (1, 0, 2, 2), mode="replicate"),
]


@pytest.mark.parametrize("type", [torch.float32, torch.float16])
def test_views_and_their_gradients(type):
    check(total_of(*VIEWS), random(3, 4, 5, type=type))


def test_paddings():
    check(total_of(*PADS), random(3, 4, 5))


def test_windows_of_images():
    check(total_of(lambda a: F.unfold(a, 2, padding=1), lambda a: F.unfold(a, (2, 3), dilation=2, stride=2)), random(2, 3, 6, 7))
    check(lambda a: F.fold(a, (4, 5), 2), random(2, 8, 12))
    check(total_of(lambda a: F.pixel_shuffle(a, 2), lambda a: F.pixel_unshuffle(a, 2)), random(1, 4, 4, 6))


def test_parts_are_written():
    def write(a):
        b = a.clone()
        b[:, 1] = 0.0
        b[0] = a[1] * 2
        b[1:, ::2] += 1
        b.diagonal().mul_(3)
        return b

    check(write, random(3, 4))
    check(
        total_of(lambda a, b: torch.slice_scatter(a, b, 1, 1, 3), lambda a, b: torch.diagonal_scatter(a, b[:, 0])),
        random(3, 4),
        random(3, 2),
    )


def test_an_input_is_seen_in_several_views_before_it_has_tiles():
    check(lambda a, b: a.t().reshape(-1).flip(0) * b.roll(1) + a.view(12)[1:3].sum(), random(3, 4), random(12))


def test_views_of_nothing_and_of_one_number():
    several = [
        lambda a: a.reshape(-1),
        lambda a: a.expand(3),
        lambda a: a.unsqueeze(0),
        lambda a: a.flip(()),
        lambda a: torch.stack([a, a]),
    ]
    check(of_all(*several, lambda a: a.squeeze(), lambda a: a.repeat(2)), torch.tensor(2.0), gradients=False)
    empty = [
        lambda a: a.t(),
        lambda a: a[1:],
        lambda a: torch.cat([a, torch.ones(2, 3)]),
        lambda a: a.reshape(3, 0),
        lambda a: F.pad(a, (1, 1)),
    ]
    check(of_all(*empty, lambda a: a.flip(0), lambda a: a.roll(1, 0), lambda a: a * 2), torch.zeros(0, 3), gradients=False)


def test_turns_diagonals_and_blocks_are_pytorchs():
    x = torch.randn(2, 3, generator=torch.Generator().manual_seed(3))
    check(lambda x: torch.cat([x.rot90(turns).flatten() for turns in range(4)]), x)
    check(lambda x: torch.cat([x.diag(1), x[0].diag(-1).flatten()]), x)
    check(lambda x, y: torch.block_diag(x, y, x[0]), x, torch.tensor(2.0))
