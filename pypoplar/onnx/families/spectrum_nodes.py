"""Fourier transforms, as products with matrices that are known, and windows."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import operator


@operator("DFT", since=17)
def dft(op: NodeCall, x: Tensor) -> Tensor:
    """Along an axis that is an attribute."""
    return _transformed(op, x, op.attribute("axis", 1))


@operator("DFT", since=20)
def dft_by_operand(op: NodeCall, x: Tensor) -> Tensor:
    """Along an axis that is an operand."""
    return _transformed(op, x, int(op.number(2, -2)))


def _transformed(op: NodeCall, x: Tensor, axis: int) -> Tensor:
    axis = axis % x.dim()
    one_sided, inverse = bool(op.attribute("onesided", 0)), bool(op.attribute("inverse", 0))
    given = op.number(1, None)
    spectrum = inverse and one_sided  # half of a spectrum, of which numbers come that are real
    length = int(given) if given is not None else 2 * (x.shape[axis] - 1) if spectrum else x.shape[axis]
    taken = length // 2 + 1 if spectrum else length
    real, imaginary = torch.select(x, -1, 0), torch.select(x, -1, 1) if x.shape[-1] == 2 else None
    count = length // 2 + 1 if one_sided and not inverse else length
    real = _sized(real, axis, taken)
    imaginary = None if imaginary is None else _sized(imaginary, axis, taken)
    cosines, sines = _matrices(taken, count, length, inverse)
    if spectrum:
        weights = np.full(taken, 2.0)
        weights[0] = 1.0
        if length % 2 == 0:
            weights[-1] = 1.0
        cosines, sines = cosines * weights[:, None], sines * weights[:, None]
        result = _product(real, axis, cosines)
        if imaginary is not None:
            result = result - _product(imaginary, axis, sines)
        return result.unsqueeze(-1)
    parts = [_product(real, axis, cosines), _product(real, axis, sines)]
    if imaginary is not None:
        parts = [parts[0] - _product(imaginary, axis, sines), parts[1] + _product(imaginary, axis, cosines)]
    return torch.stack(parts, -1)


def _sized(x: Tensor, axis: int, size: int) -> Tensor:
    """An axis cut, or continued with zeros."""
    if x.shape[axis] >= size:
        return x.narrow(axis, 0, size)
    zeros = torch.zeros(
        [size - x.shape[axis] if one == axis else have for one, have in enumerate(x.shape)], dtype=x.dtype, device=x.device
    )
    return torch.cat([x, zeros], axis)


def _matrices(taken: int, count: int, length: int, inverse: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    angles = 2 * np.pi * (np.outer(np.arange(taken), np.arange(count)) % max(length, 1)) / max(length, 1)
    cosines, sines = np.cos(angles), np.sin(angles)
    return (cosines / length, sines / length) if inverse else (cosines, -sines)


def _product(x: Tensor, axis: int, matrix: NDArray[np.float64]) -> Tensor:
    weights = torch.tensor(matrix.tolist(), dtype=x.dtype, device=x.device)
    return torch.matmul(x.transpose(axis, -1), weights).transpose(axis, -1)


@operator("STFT", since=17)
def stft(op: NodeCall, signal: Tensor) -> Tensor:
    """Transforms of windows that lie at equal distances."""
    step, window = int(op.number(1)), op.tensor(2)
    length = op.number(3, None)
    size = int(length) if length is not None else window.shape[0] if window is not None else None
    if size is None:
        raise op.error("a window or frame_length is needed")
    count = 1 + (signal.shape[1] - size) // step
    if count < 1:
        raise op.error(f"the signal of {signal.shape[1]} samples is shorter than a frame of {size}")
    frames = torch.stack([signal.narrow(1, one * step, size) for one in range(count)], 1)  # [batch, frames, size, 1 or 2]
    if window is not None:
        frames = frames * window.reshape(1, 1, -1, 1)
    one_sided = bool(op.attribute("onesided", 1))
    bins = size // 2 + 1 if one_sided else size
    cosines, sines = _matrices(size, bins, size, inverse=False)
    real = torch.select(frames, -1, 0)
    parts = [_product(real, 2, cosines), _product(real, 2, sines)]
    if frames.shape[-1] == 2:
        imaginary = torch.select(frames, -1, 1)
        parts = [parts[0] - _product(imaginary, 2, sines), parts[1] + _product(imaginary, 2, cosines)]
    return torch.stack(parts, -1)


@operator("MelWeightMatrix", since=17)
def mel_weights(op: NodeCall) -> Tensor:
    """Triangles of equal widths on the mel scale; known."""
    bins, length, rate, low, high = (op.number(one) for one in range(5))
    spectrum = int(length) // 2 + 1
    step = (2595 * np.log10(1 + high / 700) - 2595 * np.log10(1 + low / 700)) / (int(bins) + 2)
    ends = 2595 * np.log10(1 + low / 700) + np.arange(int(bins) + 2) * step
    places = np.floor((int(length) + 1) * (700 * (10 ** (ends / 2595) - 1)) / rate).astype(int)
    weights = np.zeros((spectrum, int(bins)))
    for one in range(int(bins)):
        left, middle, right = places[one : one + 3]
        if middle == left:
            weights[middle, one] = 1
        else:
            for place in range(left, middle + 1):
                weights[place, one] = (place - left) / (middle - left)
        if right > middle:
            for place in range(middle, right):
                weights[place, one] = (right - place) / (right - middle)
    return torch.from_numpy(weights).to(op.dtype(op.attribute("output_datatype", 1)))
