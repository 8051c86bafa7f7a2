"""Operations that are captured as several others give PyTorch's results and gradients."""

import pytest
import torch
import torch.nn.functional as F
from poptorch_functions import random
from poptorch_rig import Differentiated, Plain, check, compiled

from pypoplar import poptorch
from pypoplar.poptorch import CaptureError

MODES = [("bilinear", "zeros"), ("bilinear", "border"), ("bilinear", "reflection"), ("nearest", "zeros"), ("bicubic", "reflection")]


@pytest.mark.parametrize("corners", [True, False])
def test_images_are_sampled_as_pytorch_does(corners):
    image, grid = random(2, 3, 5, 4), random(2, 3, 4, 2) * 0.9

    def sampled(image, grid):
        found = [F.grid_sample(image, grid, mode, padding, corners) for mode, padding in MODES]
        return torch.stack([one * (number + 1) for number, one in enumerate(found)])

    check(sampled, image, grid)


def test_images_of_one_row_and_halves_are_sampled():
    for padding in ("border", "reflection"):
        check(
            lambda x, g, padding=padding: F.grid_sample(x, g, padding_mode=padding, align_corners=True),
            random(1, 2, 1, 4),
            random(1, 2, 2, 2),
        )
    check(
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        random(1, 2, 3, 4).half(),
        random(1, 2, 2, 2).half() / 2,
        gradients=False,
    )


def test_solids_are_sampled_as_pytorch_does():
    solid, grid = random(1, 2, 3, 4, 2), random(1, 2, 2, 2, 3) * 0.9
    check(lambda x, g: F.grid_sample(x, g, align_corners=False) + F.grid_sample(x, g, "nearest", "border", True), solid, grid)


def test_what_is_far_outside_is_zero_though_the_edge_is_infinite():
    image, far = torch.full((1, 1, 2, 2), torch.inf), torch.full((1, 1, 1, 2), -9.0)
    for mode in ("bilinear", "nearest", "bicubic"):
        check(lambda x, g, mode=mode: F.grid_sample(x, g, mode, align_corners=False), image, far, gradients=False)


@pytest.mark.parametrize("corners", [True, False])
def test_grids_of_matrices_are_pytorchs(corners):
    check(lambda theta: F.affine_grid(theta, [2, 3, 4, 5], corners), random(2, 2, 3))
    check(lambda theta: F.affine_grid(theta, [2, 3, 2, 4, 3], corners), random(2, 3, 4))


@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation", "ceil"), [
    (2, 2, 0, 1, False), (3, 2, 1, 1, True), ((2, 3), (1, 2), (1, 0), (2, 1), False), (2, None, 0, (1, 3), True),
])  # fmt: skip
def test_max_pools_tell_the_places_of_what_they_take(kernel, stride, padding, dilation, ceil):
    image = torch.randperm(2 * 3 * 7 * 8, generator=torch.Generator().manual_seed(3)).reshape(2, 3, 7, 8) / 16.0

    def pooled(x):
        values, places = F.max_pool2d(x, kernel, stride, padding, dilation, ceil, return_indices=True)
        return values * 2, places

    check(lambda x: pooled(x)[0], image)
    check(pooled, image, gradients=False)
    check(lambda x: F.max_pool2d(x, kernel, stride, padding, dilation, ceil), image)


def test_max_pools_of_sequences_and_solids_have_gaps():
    image = torch.randperm(64, generator=torch.Generator().manual_seed(3)).reshape(1, 4, 4, 4) / 16.0
    check(lambda x: F.max_pool1d(x.reshape(2, 32), 3, dilation=2), image)
    check(lambda x: F.max_pool3d(x, 2, 1, dilation=(1, 2, 1)), image)


def test_equal_elements_of_a_window_are_told_by_the_first():
    check(lambda x: F.max_pool2d(x, 2, return_indices=True), torch.zeros(1, 1, 4, 4), gradients=False)


def test_what_pools_took_is_put_back():
    image = torch.randperm(64, generator=torch.Generator().manual_seed(3)).reshape(1, 4, 4, 4) / 16.0
    check(lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), image)
    check(lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(5, 5)), image)
    check(lambda x: F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2), image.reshape(1, 1, 4, 4, 4))
    check(lambda x: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2), image.reshape(2, 4, 8))


def test_places_among_sorted_values_are_pytorchs():
    rows, values = random(3, 6).sort(-1)[0], random(3, 4)
    rows[0, 2], values[1, 1] = rows[0, 3], rows[1, 2]
    values[2, 0] = torch.nan
    order = torch.randperm(6, generator=torch.Generator().manual_seed(1)).expand(3, 6).contiguous()
    mixed = torch.empty(3, 6).scatter(1, order, rows)

    def found(rows, values, mixed, order):
        return (
            torch.searchsorted(rows, values),
            torch.searchsorted(rows, values, right=True),
            torch.searchsorted(rows[1].contiguous(), values, side="right"),
            torch.searchsorted(rows[1].contiguous(), 0.25),
            torch.searchsorted(mixed, values, sorter=order),
            torch.bucketize(values, rows[0].contiguous()),
            torch.bucketize(values, rows[0].contiguous(), right=True),
        )

    check(found, rows, values, mixed, order, gradients=False)


def test_elements_among_others_are_found():
    def found(x, y):
        return torch.isin(x, y), torch.isin(x, y, invert=True), torch.isin(x, 3), torch.isin(4, y)

    check(found, torch.tensor([[1, 2, 3], [4, 5, 5]]), torch.tensor([2, 5, 7]), gradients=False)


def test_a_mask_takes_elements_of_a_source_in_their_order():
    mask = torch.tensor([[True, False, True], [False, True, False]])
    check(lambda x, s: x.masked_scatter(mask, s), random(2, 3), random(5))
    check(lambda x, s, m: x.masked_scatter(m, s), random(4, 3), random(3, 4), arguments=(torch.tensor([True, False, True]),))
    check(lambda x, s: x.masked_scatter(torch.zeros(2, 3, dtype=torch.bool), s), random(2, 3), random(5))


def test_rows_are_repeated_by_a_tensor_whose_sum_is_said():
    check(lambda x, r: x.repeat_interleave(r, 0, output_size=4), random(3, 2), torch.tensor([1, 0, 3]), gradients=False)


def test_bags_begin_at_offsets():
    entries, weights = torch.tensor([1, 4, 0, 2, 2, 3]), random(6)
    for offsets in ([0, 2, 2, 5], [0], [0, 6]):
        for mode in ("sum", "mean", "max"):
            check(
                lambda table, entries, offsets, mode=mode: F.embedding_bag(entries, table, offsets, mode=mode),
                random(5, 3),
                arguments=(entries, torch.tensor(offsets)),
            )
    check(
        lambda table, w: F.embedding_bag(entries, table, torch.tensor([0, 4]), mode="sum", per_sample_weights=w),
        random(5, 3),
        weights,
    )
    check(lambda table: F.embedding_bag(entries, table, torch.tensor([0, 4, 6]), include_last_offset=True), random(5, 3))
    small = entries.to(torch.int16)  # indices have the wider type of both
    check(lambda table, small: F.embedding_bag(small, table, torch.tensor([0, 4])), random(5, 3), arguments=(small,))


def test_filled_tensors_and_cross_products_are_pytorchs():
    check(lambda x: x * x.clone().fill_(3.0) + torch.fill(x, 2.0), random(2, 3))
    check(lambda y, x: torch.fill(x, y) * y, torch.tensor(1.5), arguments=(random(2, 3),))
    check(lambda x, y: torch.linalg.cross(x, y), random(4, 3), random(4, 3, seed=5))
    check(lambda x, y: torch.linalg.cross(x, y, dim=0) + torch.cross(x, y, dim=0), random(3, 4), random(3, 1))


def test_functions_of_gamma_and_the_inverse_of_erf_are_pytorchs():
    places = torch.tensor([-9.3, -4.5, -2.2, -0.7, -1e-3, 1e-3, 0.2, 0.499, 0.5, 0.9, 1.0, 1.1, 1.9, 2.0, 2.5, 7.25, 33.0, 1e4])
    check(torch.lgamma, places)
    check(torch.digamma, places)
    check(torch.lgamma, torch.tensor([0.0, -1.0, -3.0, torch.inf, 3e5]), gradients=False)
    check(torch.digamma, torch.tensor([-1.0, -3.0, 0.0, 3e5]), gradients=False)
    check(torch.erfinv, torch.tensor([-0.99999, -0.9, -0.3, -1e-4, 0.0, 1e-6, 0.5, 0.97, 0.999]))
    check(torch.erfinv, torch.tensor([-1.0, 1.0, 1.5]), gradients=False)
    check(lambda x: torch.lgamma(x) + torch.digamma(x), torch.tensor([0.75, 3.0]).half(), gradients=False)


def test_a_tensor_of_one_number_is_an_index():
    x = random(3, 4, 5)

    def chosen(x, i, j):
        return x[i], x[:, i], x[..., i], x[0, i], x[None, :, j, 1:3], x[1, ..., j], x[j][i], x[i, j], x[torch.tensor(2)]

    check(lambda *given: torch.cat([one.reshape(-1) for one in chosen(*given)]), x, arguments=(torch.tensor(2), torch.tensor(-1)))


def placed(y, v, i, j):
    y[i], y[:, j], y[..., i, 2] = v[0, :4], v[:3, 1:2].detach().half(), 7.0
    y[None, j, 1:3] = v[None, None, :2, :4]
    y[i] += v[1, 0]
    y[i, j] = v[2, 3]


def changed_through(y, v, i, j):
    row = y[i]
    row[1:].mul_(v[:3, :1])
    row[j] = v[0, :4]
    i = i + 0
    row = y[i]
    i -= 1
    row += v[2, 4]
    F.relu(y[:, j], inplace=True)


def changed_behind(y, v, i, j):
    row, column, again = y[i], y[:, j], y[i]
    y.mul_(2)
    y[1] = v[0, :4]
    row.add_(column.sum(0))
    element = again[j]
    again[0, 1:] += v[1, 1:4] * element[1:].clone()
    y += row[0] + element + column.sum()


def exchanged(y, v, i, j):
    for round in range(2):
        kept = y[i].clone()
        y[i] = y[1]
        y[1] = kept * v[0, round]


@pytest.mark.parametrize("change", [placed, changed_through, changed_behind, exchanged])
def test_what_a_tensor_of_one_number_chooses_is_a_view(change):
    """In PyTorch it is: its changes are those of the whole, and the other way round."""

    def whole(x, v, i, j):
        y = x * 1
        change(y, v, i, j)
        return y

    for type in (torch.int64, torch.int16):
        numbers = torch.tensor(2, dtype=type), torch.tensor(-1, dtype=type)
        check(lambda x, v, numbers=numbers: whole(x, v, *numbers), random(3, 4, 4), random(3, 5, seed=1))
        check(whole, random(3, 4, 4), random(3, 5, seed=1), arguments=numbers)


class Cache(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(3, 4))

    def forward(self, row, number):
        self.rows[number] = row
        self.rows[number][1:].mul_(2)
        return self.rows.sum(0)


def test_a_buffer_keeps_what_is_placed_at_a_number():
    here, there = Cache(), Cache()
    model = poptorch.inferenceModel(here)
    for number in (2, 0, 2, -2):
        row = random(4, seed=number + 2)
        assert torch.equal(model(row, torch.tensor(number)), there(row, torch.tensor(number)))
        assert torch.equal(here.rows, there.rows)
    with pytest.raises(IndexError):
        model(row, torch.tensor(3))


def test_an_index_beyond_its_dimension_is_named():
    model = poptorch.inferenceModel(Chosen())
    assert torch.equal(model(torch.arange(4.0), torch.tensor(3)), torch.tensor(3.0))
    with pytest.raises(IndexError):
        model(torch.arange(4.0), torch.tensor(4))


class Chosen(torch.nn.Module):
    def forward(self, x, number):
        return x[number]


def test_distributions_of_tensors_are_drawn_and_measured():
    def densities(x):
        normal = torch.distributions.Normal(x, x + 4)
        return normal.log_prob(x * 2) + torch.distributions.Uniform(x, x + 1).log_prob(x + 0.5)

    check(densities, random(6))
    drawn = poptorch.inferenceModel(Drawn())(torch.full((2000,), 3.0))
    normal, uniform = drawn
    assert abs(normal.mean() - 3) < 0.2
    assert abs(normal.std() - 2) < 0.2
    assert 3 <= uniform.min() < 3.1
    assert 4.9 < uniform.max() <= 5


class Drawn(torch.nn.Module):
    def forward(self, x):
        return torch.distributions.Normal(x, 2.0).sample(), torch.distributions.Uniform(x, x + 2).sample()


def test_distributions_are_checked_again_after_a_capture():
    poptorch.inferenceModel(Drawn())(torch.ones(2))
    with pytest.raises(ValueError, match="scale"):
        torch.distributions.Normal(torch.zeros(2), -torch.ones(2))


COMPOSED = {
    "special.entr": lambda x, y: torch.special.entr(x.abs() + 0.1),
    "special.ndtr": lambda x, y: torch.special.ndtr(x),
    "special.xlog1py": lambda x, y: torch.special.xlog1py(x, y.abs()) + torch.special.xlog1py(2.0, y.abs()),
    "mvlgamma": lambda x, y: torch.mvlgamma(x.abs() + 2.5, 3),
    "addr": lambda x, y: torch.addr(x[:3, :3], x[0, :3], y[0, :3]),
    "trace": lambda x, y: torch.trace(x)[None],
    "sinc": lambda x, y: torch.sinc(x + 3),  # near 0 its gradient cancels
    "multi_margin_loss": lambda x, y: F.multi_margin_loss(x, torch.tensor([0, 2, 1, 4]), 2, 0.5, reduction="none"),
    "dist": lambda x, y: torch.dist(x, y, 3)[None],
    "pdist": lambda x, y: F.pdist(x),
    "log_softmax of a number": lambda x, y: x[0, 0].log_softmax(-1)[None] * 2 + x[0, 1].softmax(0),
}


@pytest.mark.parametrize("form", COMPOSED.values(), ids=COMPOSED)
def test_what_pytorch_composes_of_others_is_computed_as_these_with_its_gradients(form):
    check(form, random(4, 5), random(4, 5))


@pytest.mark.parametrize("norm", [1, 2])
def test_slices_are_brought_to_a_norm(norm):
    check(lambda x: torch.renorm(x, norm, 0, 0.7), random(3, 4))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_labels_of_a_margin_loss_end_at_the_first_that_is_negative(reduction):
    labels = torch.tensor([[0, 2, -1, 0, 0], [1, -1, 3, 2, 0], [4, 3, 2, 1, 0], [-1, 0, 0, 0, 0]])
    check(lambda x: F.multilabel_margin_loss(x, labels, reduction=reduction).reshape(-1), random(4, 5))
    check(lambda x: F.multilabel_margin_loss(x, labels[1], reduction=reduction).reshape(-1), random(5))


def test_data_of_a_computed_tensor_is_told_with_its_line_and_without_pytorchs_own_words():
    class Changing(torch.nn.Module):
        def forward(self, x):
            y = x * 1
            y.data.mul_(2)
            return y

    with pytest.raises(CaptureError, match=r"Tensor\.data is not seen by a graph.*`y\.data\.mul_\(2\)`") as caught:
        poptorch.inferenceModel(Changing())(torch.rand(3))
    assert "fake tensor" not in str(caught.value)


def test_a_list_of_truths_takes_the_places_of_what_is_true():
    check(lambda x: x[[True, False, True]], random(3, 4))
    check(lambda x: x[1:, [False, True, True, False]], random(3, 4))
    check(lambda x: x[[True, False, True], 1], random(3, 4))
    check(lambda x: x[[True, False, True], [1, 2]], random(3, 4))
    check(lambda x: x[[False, False, False]].sum()[None] + x[0, :1], random(3, 4))
    with pytest.raises(IndexError, match="shape of the mask"):
        poptorch.inferenceModel(Masked())(torch.rand(3, 4))


class Masked(torch.nn.Module):
    def forward(self, x):
        return x[[True, False]]


MODES_OF = [[3, 1, 2, 1, 3], [5, 5, 4, 4, 0], [9, 8, 7, 6, 5], [2, 2, 2, 2, 2]]


def test_the_most_frequent_elements_are_pytorchs():
    """The least of several, at the last of its places, which has the gradient."""
    x = torch.tensor(MODES_OF, dtype=torch.float32)
    for dim, keepdim in ((1, False), (-1, True), (0, False)):
        check(lambda a, dim=dim, keepdim=keepdim: a.mode(dim, keepdim), x)
    check(lambda a: torch.mode(a.reshape(2, 2, 5), 1), x)
    check(lambda a: torch.mode(a), torch.tensor(3.0))
    check(lambda a: torch.mode(a.int()), x, gradients=False)
    check(lambda a: torch.mode(a), torch.tensor([[1.0, torch.nan, torch.nan], [torch.inf, 2.0, torch.inf]]), gradients=False)
    with pytest.raises(CaptureError, match="non-zero size"):
        check(lambda a: torch.mode(a[:, :0]), x, gradients=False)


def test_next_numbers_are_pytorchs_to_the_bit():
    edges = [0.0, -0.0, 1.0, -1.0, torch.inf, -torch.inf, torch.nan, 3.4028234663852886e38, 1e-45, -1e-45, 1.1754943508222875e-38]
    start, goal = (one.reshape(-1) for one in torch.meshgrid(torch.tensor(edges), torch.tensor(edges), indexing="ij"))
    machine = compiled(Plain(lambda a, b: (torch.nextafter(a, b), torch.nextafter(a, b[:1]))), (start, goal), training=False)
    for found, other in zip(machine.run([start, goal]), (goal, goal[:1]), strict=True):
        expected = torch.nextafter(start, other)
        same = (found.view(torch.int32) == expected.view(torch.int32)) | (found.isnan() & expected.isnan())
        assert same.all(), (start[~same], found[~same], expected[~same])


def test_next_halves_are_pytorchs_to_the_bit():
    edges = [0.0, -0.0, 1.0, -1.0, torch.inf, -torch.inf, torch.nan, 65504.0, -65504.0, 6e-8, -6e-8, 6.104e-05, -6.104e-05, 0.1]
    pairs = torch.meshgrid(torch.tensor(edges).half(), torch.tensor(edges).half(), indexing="ij")
    start, goal = (one.reshape(-1) for one in pairs)
    found = compiled(Plain(torch.nextafter), (start, goal), training=False).run([start, goal])[0]
    expected = torch.nextafter(start, goal)
    same = (found.view(torch.int16) == expected.view(torch.int16)) | (found.isnan() & expected.isnan())
    assert same.all(), (start[~same], found[~same], expected[~same])


def test_next_numbers_of_other_types_and_gradients_of_them_are_refused_as_pytorch_does():
    with pytest.raises(CaptureError, match=r"nextafter of torch.bfloat16 and torch.bfloat16: expected two of torch.float32"):
        compiled(Plain(torch.nextafter), (random(3).bfloat16(), random(3).bfloat16()), training=False)
    with pytest.raises(CaptureError, match="the derivative for 'nextafter' is not implemented"):
        compiled(Differentiated(lambda a: torch.nextafter(a, a + 1), (random(3),)), (), training=True)


@pytest.mark.parametrize(
    "mapped",
    [
        lambda x, w: torch.vmap(lambda row: (row * w).softmax(0) * row.sum())(x),
        lambda x, w: torch.vmap(torch.vmap(lambda one: one * 2 + 1))(x) * w,
        lambda x, w: torch.vmap(torch.dot, in_dims=(0, None))(x, w),
        lambda x, w: torch.vmap(lambda row: row.clone().mul_(w))(x),
    ],
)
def test_a_function_of_parts_is_mapped_over_them(mapped):
    check(mapped, random(2, 3), random(3, seed=1))
