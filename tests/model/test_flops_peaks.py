"""The peaks of rooflines come out of the targets' parameters as they were published."""

import pytest

from pypoplar import FLOAT, HALF, INT, UNSIGNED_CHAR
from pypoplar.target import Target

TRIAD = (46.55e12, 7.76e12)  # bytes and flops in a second of STREAM's triad in assembler, measured on an ipu2


@pytest.mark.parametrize(
    ("name", "half", "float"), [("ipu1", 124.5e12, 31.1e12), ("ipu2", 250.6e12, 62.6e12), ("bow", 348.6e12, 87.1e12)]
)
def test_the_peaks_of_the_convolution_units_are_the_published_ones(name, half, float):
    target = Target.of_preset(name)
    assert target.peak_flops(HALF) == pytest.approx(half, rel=1e-3)
    assert target.peak_flops(FLOAT) == pytest.approx(float, rel=1e-3)
    assert target.peak_flops(INT) == 0


def test_the_measured_peak_of_a_bow_is_met():
    assert Target.of_preset("bow").peak_flops(FLOAT) == pytest.approx(87.1078e12, rel=1e-3)


def test_triad_nearly_reaches_the_peaks_of_memory_and_of_vector_code():
    target = Target.of_preset("ipu2")
    assert TRIAD[0] / target.peak_memory_bytes() == pytest.approx(0.991, abs=0.002)
    assert TRIAD[1] / target.peak_vector_flops(FLOAT) == pytest.approx(0.991, abs=0.002)


def test_peaks_of_a_tile_and_of_several_ipus():
    bow, pod = Target.of_preset("bow"), Target.of_preset("pod16")
    assert (bow.conv_unit_flops_per_cycle(HALF), bow.conv_unit_flops_per_cycle(FLOAT)) == (128, 32)
    assert [bow.vector_flops_per_cycle(one) for one in (FLOAT, HALF, INT, UNSIGNED_CHAR)] == [4, 8, 0, 0]
    assert bow.tile_memory_bytes_per_cycle == 24
    for one in (FLOAT, HALF):
        assert pod.peak_flops(one) == 16 * bow.peak_flops(one)
        assert pod.peak_vector_flops(one) == 16 * bow.peak_vector_flops(one)
    assert pod.peak_memory_bytes() == 16 * bow.peak_memory_bytes()
