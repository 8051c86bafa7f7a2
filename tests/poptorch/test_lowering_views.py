"""Views, joined and padded tensors, and parts that are written, give PyTorch's results and gradients."""

import pytest
import torch
import torch.nn.functional as F
from poptorch_functions import of_all, random, total_of
from poptorch_rig import Plain, check, compiled

from pypoplar import poptorch

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


def test_gradients_pass_what_is_written_by_strides_by():
    """PyTorch's own gradient of `as_strided_scatter` is that of the part alone, in the place of that of all else."""

    def diagonal(a):
        b = a * 2
        b.fill_diagonal_(0)
        return b * torch.arange(1.0, b.numel() + 1).reshape(b.shape)

    def part(a, v):
        b = a * 2
        b.as_strided((2, 2), (4, 1), 1).copy_(v * 3)
        b.as_strided((2,), (1,)).mul_(0.5)
        return b * b

    check(diagonal, random(3, 3))
    check(diagonal, random(1, 3))
    check(part, random(3, 4), random(2, 2, seed=1))


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


@pytest.fixture
def memory_of_large_numbers():
    """What nothing has written holds the largest integers, which have 64 bits."""
    before = torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    yield
    torch.use_deterministic_algorithms(before[0])
    torch.utils.deterministic.fill_uninitialized_memory = before[1]


def filled(x):
    return x + torch.empty(3, dtype=torch.int64).fill_(2)


def filled_by_parts(x):
    table = torch.empty(3, 4, dtype=torch.int64)
    table[:, 0::2] = torch.arange(6).reshape(3, 2)
    table[:, 1::2] = 7
    return x + table.sum(1)


def filled_in_a_loop(x):
    return x + poptorch.for_loop(2, lambda a: a.copy_(torch.ones(3, dtype=torch.int64)), [torch.empty(3, dtype=torch.int64)])[0]


def filled_in_part(x):
    table = torch.empty_like(x, dtype=torch.int64)
    table[0] = 1
    return x[0] + table[0]


def of_its_shape(x):
    return x + torch.full_like(x.new_empty(3, dtype=torch.int64), 4) + torch.empty(3, dtype=torch.int64) * 0


def masked_without_dimensions(x):
    scale = torch.tensor(0.7)
    scale[scale > 0.2] = 0.5
    return x * scale


UNWRITTEN = (filled, filled_by_parts, filled_in_a_loop, filled_in_part, of_its_shape, masked_without_dimensions)


@pytest.mark.parametrize("function", UNWRITTEN)
def test_memory_that_nothing_has_written_decides_nothing(function, memory_of_large_numbers):
    check(function, torch.tensor([1.0, 2.0, 3.0]), gradients=False)


DTYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool, torch.float32, torch.float16)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_has_no_value_is_the_same_in_each_run(dtype, memory_of_large_numbers):
    def function(x):
        return torch.empty(3, dtype=dtype), torch.empty(3, dtype=dtype) + 1, x * 2

    x, results = torch.tensor([1.0]), []
    for _ in range(2):
        *unwritten, twice = compiled(Plain(function), (x,), training=False).run((x,))
        assert twice == 2
        results.append(unwritten)
    for one, other in zip(*results, strict=True):
        assert torch.equal(one.nan_to_num(-1.0), other.nan_to_num(-1.0))
        assert one.isnan().all() or not dtype.is_floating_point


PARTS = [
    lambda a: torch.stack([a[0] * 2, a[2] * 3]),
    lambda a: torch.stack([a[-1] * 2, a[1] * 3, a[0] * 4]),
    lambda a: torch.cat([a[:, 2:4] * 2, a[:, :1] * 3, a[:, 4:] * 4], 1),
    lambda a: torch.cat([a[:1] * 2, a[1][None] * 3, a[2:3] * 4], 0),
]
OVERLAPS = [
    lambda a: torch.cat([a[:2] * 2, a[1:3] * 3]),
    lambda a: torch.stack([a[1] * 2, a[1] * 3]),
    lambda a: torch.cat([(a[0] * 2), (a[:, 1] * 3)]),
    lambda a: torch.cat([(a[::2] * 2), (a[1:2] * 3)]),
]


def adds(machine):
    names = [one.name for one in machine.engine.executable.codelets]
    return any("BinaryOp1D<ADD" in name or "Map<add" in name for name in names)


@pytest.mark.parametrize("type", [torch.float32, torch.float16])
def test_gradients_of_parts_that_do_not_overlap_are_joined_and_not_added(type):
    given = (torch.arange(20.0).reshape(4, 5) - 7).to(type)
    for function in PARTS:
        assert not adds(check(function, given))
    for function in OVERLAPS:
        assert adds(check(function, given))


def test_bits_are_read_as_another_type_as_wide():
    x = random(3, 4)
    machine = compiled(
        Plain(lambda a: (a.view(torch.int32), a.half().view(torch.int16), a.int().view(torch.float32), (a > 0).view(torch.uint8))),
        (x,),
        training=False,
    )
    expected = x.view(torch.int32), x.half().view(torch.int16), x.int().view(torch.float32), (x > 0).view(torch.uint8)
    for found, other in zip(machine.run([x]), expected, strict=True):
        torch.testing.assert_close(found, other, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("before", "after"), [
    (torch.float32, torch.int8), (torch.int8, torch.int32), (torch.float64, torch.int64), (torch.uint8, torch.bool),
])  # fmt: skip
def test_bits_that_types_on_the_device_do_not_share_are_refused(before, after):
    with pytest.raises(poptorch.UnsupportedOperation, match=f"view: {before} as {after}; the bits of two types of the same size"):
        compiled(Plain(lambda a: a.to(before).view(after)), (random(3, 4),), training=False)
