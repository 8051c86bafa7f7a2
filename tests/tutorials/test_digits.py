"""Reading MNIST's IDX files: plain and compressed, and whatever may be wrong with them."""

import gzip
import importlib.util
import struct

import numpy as np
import pytest

from pypoplar import FileLoadError, resources

SPEC = importlib.util.spec_from_file_location("_digits", resources.directory("tutorials") / "_digits.py")
digits = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(digits)


def idx(array, type=8, shape=None):
    """An IDX file of unsigned bytes, as its bytes."""
    sizes = array.shape if shape is None else shape
    return struct.pack(f">BBBB{len(sizes)}I", 0, 0, type, len(sizes), *sizes) + array.astype(np.uint8).tobytes()


IMAGES = np.random.default_rng(0).integers(0, 256, (5, 4, 3), np.uint8)
LABELS = np.array([0, 9, 3, 3, 7], np.uint8)


@pytest.fixture
def directory(tmp_path):
    def write(images=None, labels=None, part="train", joint="-", pack=False):
        files = {"images": ("idx3-ubyte", idx(IMAGES) if images is None else images)}
        files["labels"] = ("idx1-ubyte", idx(LABELS) if labels is None else labels)
        for name, (kind, content) in files.items():
            path = tmp_path / f"{part}-{name}{joint}{kind}{'.gz' if pack else ''}"
            path.write_bytes(gzip.compress(content) if pack else content)
        return tmp_path

    return write


@pytest.mark.parametrize("joint", ["-", "."])
@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("part", ["train", "t10k"])
def test_images_and_labels_are_read_plain_and_compressed(directory, part, pack, joint):
    images, labels = digits.mnist_digits(directory(part=part, pack=pack, joint=joint), part)
    assert images.dtype == np.float32
    assert labels.dtype == np.uint32
    assert (images == IMAGES.reshape(5, 12) / np.float32(256)).all()
    assert labels.tolist() == LABELS.tolist()


def test_a_compressed_file_is_known_by_its_first_bytes(directory, tmp_path):
    directory(pack=True)
    for path in tmp_path.glob("*.gz"):
        path.rename(path.with_suffix(""))
    assert len(digits.mnist_digits(tmp_path)[1]) == 5


WRONG_IMAGES = {
    "begins with nothing": b"",
    "begins with 89 50 4e 47": b"\x89PNG\r\n",
    "holds type 0x0d in 3 dimensions": idx(IMAGES, type=13),
    "in 1 dimensions; expected unsigned bytes": idx(LABELS),
    "ends within its header": idx(IMAGES)[:9],
    "5 x 4 x 3 = 60 bytes of data, it has only 59": idx(IMAGES)[:-1],
    "it has more": idx(IMAGES) + b"\0",
    "too much to be true": idx(IMAGES, shape=(2**32 - 1, 2**16, 2**16)),
    "no train images": idx(IMAGES[:0]),
    "has 4 train images but 5 labels": idx(IMAGES[:4]),
    "is damaged": gzip.compress(idx(IMAGES))[:-12],
    "is damaged: CRC check failed": gzip.compress(idx(IMAGES))[:-8] + bytes(8),
}


@pytest.mark.parametrize("words", WRONG_IMAGES)
def test_a_damaged_file_is_refused_with_what_is_wrong(directory, words):
    labels = idx(LABELS[:0]) if "no train" in words else None
    place = directory(images=WRONG_IMAGES[words], labels=labels)
    with pytest.raises(FileLoadError) as caught:
        digits.mnist_digits(place)
    assert words in str(caught.value)


def test_labels_beyond_nine_are_no_digits(directory):
    with pytest.raises(FileLoadError, match="go up to 10"):
        digits.mnist_digits(directory(labels=idx(LABELS + 1)))


def test_missing_files_and_directories_are_named(directory, tmp_path):
    with pytest.raises(FileLoadError, match="nowhere is not a directory"):
        digits.mnist_digits(tmp_path / "nowhere")
    with pytest.raises(FileLoadError, match=r"no t10k-images-idx3-ubyte \(or"):
        digits.mnist_digits(directory(), "t10k")


def test_the_digits_that_come_with_pypoplar_lie_between_0_and_1():
    images, labels = digits.uci_digits()
    assert images.shape == (1797, 64)
    assert images.min() == 0
    assert images.max() == 1
    assert labels.dtype == np.uint32
