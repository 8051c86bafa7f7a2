"""Handwritten digits for the tutorials: MNIST from its IDX files, or the UCI digits that lie beside the tutorials."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from pypoplar import FileLoadError

IDX_BYTES = 0x08  # the only element type that MNIST's files have: unsigned bytes
LIMIT = 1 << 30  # bytes: far more than any file of this kind, far less than what a forged header can ask for


def uci_digits():
    """1,797 digits of 8 x 8 pixels: float32 [1797, 64] in 0..1 and uint32 [1797]."""
    with np.load(Path(__file__).parent / "data" / "digits.npz") as data:
        images = data["images"].reshape(len(data["images"]), -1)
        return images.astype(np.float32) / 16, data["labels"].astype(np.uint32)


def uci_parts():
    """The UCI digits in two parts: images and labels to train on, then every sixth, which is kept aside."""
    images, labels = uci_digits()
    kept = np.arange(len(labels)) % 6 == 5
    return images[~kept], labels[~kept], images[kept], labels[kept]


def mnist_digits(directory, part="train"):
    """The ``"train"`` or ``"t10k"`` digits of MNIST: float32 [n, rows x columns] in 0..1 and uint32 [n].

    The files are called as they were published, ``train-images-idx3-ubyte`` and ``train-labels-idx1-ubyte``, with or
    without ``.gz``. Pixels are divided by 256.
    """
    images = read_idx(find(directory, f"{part}-images", "idx3-ubyte"), 3)
    labels = read_idx(find(directory, f"{part}-labels", "idx1-ubyte"), 1)
    if len(images) != len(labels):
        raise FileLoadError(f"{directory} has {len(images)} {part} images but {len(labels)} labels")
    if len(images) == 0 or images.size == 0:
        raise FileLoadError(f"{directory} has no {part} images in its files")
    if labels.max() > 9:
        raise FileLoadError(f"the {part} labels in {directory} go up to {labels.max()}; digits are 0 to 9")
    return images.reshape(len(images), -1).astype(np.float32) / 256, labels.astype(np.uint32)


def resized(images, side):
    """Images [n, rows, columns] as [n, side, side]: each pixel is between its neighbours, in proportion to the distance."""

    def between(count):
        places = np.clip((np.arange(side) + 0.5) * count / side - 0.5, 0, count - 1)
        below = np.minimum(places.astype(int), count - 2)
        weights = np.zeros((side, count), np.float32)
        weights[np.arange(side), below] = 1 - (places - below)
        weights[np.arange(side), below + 1] += places - below
        return weights

    rows, columns = images.shape[1:]
    return np.einsum("ri,nij,cj->nrc", between(rows), images, between(columns))


def find(directory, name, kind):
    """The path of one of MNIST's files: ``name-kind`` or ``name.kind``, with or without ``.gz``."""
    directory = Path(directory)
    if not directory.is_dir():
        raise FileLoadError(f"{directory} is not a directory; --data names the one that holds MNIST's four files")
    for joint in "-.":
        for ending in ("", ".gz"):
            path = directory / f"{name}{joint}{kind}{ending}"
            if path.is_file():
                return path
    raise FileLoadError(f"{directory} has no {name}-{kind} (or {name}-{kind}.gz)")


def read_idx(path, rank):
    """An IDX file of unsigned bytes, plain or compressed, as a uint8 array of `rank` dimensions."""
    try:
        with open(path, "rb") as raw:
            compressed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if compressed else open(path, "rb") as file:
            return read_array(file, path, rank)
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise FileLoadError(f"{path} is damaged: {problem}") from None


def read_array(file, path, rank):
    header = file.read(4)
    if len(header) < 4 or header[:2] != b"\0\0":
        raise FileLoadError(f"{path} is not an IDX file: it begins with {header.hex(' ') or 'nothing'}, not with 00 00")
    if header[2] != IDX_BYTES or header[3] != rank:
        raise FileLoadError(
            f"{path} holds type 0x{header[2]:02x} in {header[3]} dimensions; expected unsigned bytes (0x08) in {rank}"
        )
    sizes = file.read(4 * rank)
    if len(sizes) < 4 * rank:
        raise FileLoadError(f"{path} ends within its header")
    shape = struct.unpack(f">{rank}I", sizes)
    count = math.prod(shape)
    if count > LIMIT:
        raise FileLoadError(f"{path} says that it holds {' x '.join(map(str, shape))} bytes, which is too much to be true")
    data = file.read(count + 1)
    if len(data) != count:
        found = f"only {len(data)}" if len(data) < count else "more"
        raise FileLoadError(f"{path} should hold {' x '.join(map(str, shape))} = {count} bytes of data, it has {found}")
    return np.frombuffer(data, np.uint8).reshape(shape)
