"""What messages say of a name that nobody has."""

import pytest

from pypoplar.spelling import nearest, nearest_name, nearest_or_all


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("colour", ["color", "size"], "; did you mean 'color'?"),
        ("zzz", ["color", "size"], "; otherwise"),
        (3, ["color"], "; otherwise"),
        ("x", [], "; otherwise"),
    ],
)
def test_the_nearest_name_is_named_or_what_is_said_otherwise(name, known, hint):
    assert nearest(name, known, "; otherwise") == hint


def test_a_lower_cutoff_finds_names_that_are_less_alike():
    assert nearest_name("sync", ["syncDelayInCycles"]) is None
    assert nearest_name("sync", ["syncDelayInCycles"], cutoff=0.3) == "syncDelayInCycles"


def test_where_none_is_near_the_first_eight_names_are_listed():
    assert nearest_or_all("zzz", ["a", "b"]) == "; there are 'a', 'b'"
    assert nearest_or_all("zzz", map(str, range(9))).endswith("'6', '7' and more")
    assert nearest_or_all("zzz", ()) == "; there are none"
