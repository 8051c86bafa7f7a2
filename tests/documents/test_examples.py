"""The example programs run unchanged: those in the folder that PYPOPLAR_EXAMPLES names, or those beside the checkout."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pypoplar import resources

EXAMPLES = Path(os.environ.get("PYPOPLAR_EXAMPLES", Path(__file__).parents[3] / "shared" / "examples"))
NAMES = sorted({"matvec", "races", "regression", "variables"} | {one.stem for one in EXAMPLES.glob("*.py")})


def example_named(name):
    script = EXAMPLES / f"{name}.py"
    if not script.exists():
        pytest.skip(f"{script} is not there; the environment variable PYPOPLAR_EXAMPLES names the folder of the examples")
    return script


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_without_a_warning(name, tmp_path):
    command = [sys.executable, "-W", "error", str(example_named(name))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_regression_learns_what_numpy_learns():
    script = example_named("regression")
    spec = importlib.util.spec_from_file_location("regression_example", script)
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
