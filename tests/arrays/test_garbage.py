"""The search for cycles of objects is left for later, and all that was searched is searched later."""

import gc
import weakref

import pytest

from pypoplar.arrays.garbage import made_to_stay, searched_later


class Knot:
    def __init__(self):
        self.itself = self


@pytest.fixture
def searching():
    """As programs have it: runs of tests freeze what they have collected."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    yield
    gc.enable()
    if frozen:
        gc.freeze()


@pytest.mark.parametrize("left", [searched_later, made_to_stay])
def test_nothing_is_searched_meanwhile_and_all_behind_it(searching, left):
    with left():
        assert not gc.isenabled()
        knot = weakref.ref(Knot())
    assert gc.isenabled()
    gc.collect()
    assert knot() is None


@pytest.mark.parametrize("left", [searched_later, made_to_stay])
def test_where_nobody_searches_it_stays_so(searching, left):
    gc.disable()
    with left():
        pass
    assert not gc.isenabled()


def test_what_is_made_to_stay_counts_as_old_and_nothing_stays_frozen(searching):
    with made_to_stay():
        kept = Knot()
    assert not any(one is kept for young in (0, 1) for one in gc.get_objects(young))
    assert any(one is kept for one in gc.get_objects(2))
    assert gc.get_freeze_count() == 0


def test_what_the_program_has_frozen_stays_frozen(searching):
    gc.freeze()
    with made_to_stay():
        Knot()
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
