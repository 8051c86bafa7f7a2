"""The numbers of the splitmix64 generator."""

import numpy as np
import pytest

from pypoplar.arrays.splitmix import splitmix64

SEED = 1234567
PUBLISHED = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]


def test_the_numbers_are_the_published_ones():
    assert splitmix64(np.arange(5, dtype=np.uint64), SEED).tolist() == PUBLISHED


def test_a_place_has_its_number_wherever_it_stands():
    assert splitmix64(np.array([4, 0, 4], np.uint64), SEED).tolist() == [PUBLISHED[4], PUBLISHED[0], PUBLISHED[4]]


@pytest.mark.parametrize("seed", [0, -1, 2**63, 2**64 - 1, 2**64, 2**70 + 5])
def test_a_seed_counts_by_its_last_64_bits(seed):
    first, second = (splitmix64(np.arange(3, dtype=np.uint64), one) for one in (seed, seed % 2**64))
    assert first.tolist() == second.tolist()
    assert len(set(first.tolist())) == 3
