"""The example programs run unchanged, and are those that lie beside the checkout or that PYPOPLAR_EXAMPLES names."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pypoplar import resources

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NAMES = sorted(script.stem for script in EXAMPLES.glob("*.py"))
GIVEN = Path(os.environ.get("PYPOPLAR_EXAMPLES", ROOT.parent / "shared" / "examples"))
GIVEN_NAMES = sorted({*NAMES, *(script.stem for script in GIVEN.glob("*.py"))})


def test_the_examples_are_there():
    assert {"matvec", "races", "regression", "variables"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_without_a_warning(name, tmp_path):
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", GIVEN_NAMES)
def test_an_example_is_the_one_that_was_given(name):
    if not GIVEN.is_dir():
        pytest.skip(f"{GIVEN} is not there; the environment variable PYPOPLAR_EXAMPLES names the folder of the examples as given")
    assert (EXAMPLES / f"{name}.py").read_bytes() == (GIVEN / f"{name}.py").read_bytes()


def test_the_regression_learns_what_numpy_learns():
    spec = importlib.util.spec_from_file_location("regression_example", EXAMPLES / "regression.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    with np.load(resources.directory("tutorials") / "data" / "digits.npz") as data:
        images = (data["images"].reshape(-1, 64) / 16).astype(np.float32)[:1500]
        labels = data["labels"].astype(np.uint32)[:1500]
    rate, epochs = 0.05, 2
    weights, biases, accuracy = example.train(images, labels, epochs=epochs, rate=rate, seed=3)
    expected_weights, expected_biases, expected_accuracy = train(images, labels, epochs, rate, 3)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(biases, expected_biases, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(accuracy, expected_accuracy, atol=2 / 1500)
    assert accuracy[1] > accuracy[0]
    assert accuracy[1] > 0.7


def train(images, labels, epochs, rate, seed):
    """The example's arithmetic in NumPy."""
    random = np.random.default_rng(seed)
    weights = random.standard_normal((10, images.shape[1]), np.float32)
    biases = random.standard_normal((10, 1), np.float32)[:, 0]
    accuracy = []
    for _ in range(epochs):
        right = 0
        for image, label in zip(images, labels, strict=True):
            logits = weights @ image + biases
            powers = np.exp(logits - logits.max())
            delta = powers / powers.sum()
            right += int(delta.argmax() == label)
            delta[label] -= 1
            biases -= np.float32(rate) * delta
            weights -= np.float32(rate) * np.outer(delta, image)
        accuracy.append(right / len(images))
    return weights, biases, accuracy
