"""Analyses that are kept with a typed form: made once, of this form and these arguments, and gone with it."""

import gc
import weakref

import pytest
from attrs import evolve
from codelet_rig import codelet_of, priced_codelet, vertex

from pypoplar.codelet.ir.kept_analyses import found_once, kept
from pypoplar.codelet.ir.span_roots import loaded_scalars, span_roots, stored_fields
from pypoplar.codelet.ir.typed import TypedCodelet
from pypoplar.compiler.liveness import full_writes

FIELDS = "x: Input[Vector[INT]]\ny: Output[Vector[INT]]\nz: Output[Vector[INT]]\nn: INT"
LOOP = "for i in range(len(self.y)):\n    self.y[i] = self.x[i] + self.n"


def typed(body=LOOP, **options) -> TypedCodelet:
    return codelet_of(vertex(body, fields=FIELDS, **options)).typed


class Counter:
    """An analysis that counts how often it is made."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def of(self, codelet: TypedCodelet, number: int) -> int:
        self.calls.append((codelet.name, number))
        if number < 0:
            raise ValueError(number)
        return 10 * number


def test_an_analysis_is_made_once_for_each_form_and_arguments():
    counter, one, other = Counter(), typed(), typed("self.z[0] = 1")
    analysis = kept(lambda codelet, number: counter.of(codelet, number))
    assert [analysis(one, 1), analysis(one, 1), analysis(one, 2), analysis(other, 1), analysis(one, 2)] == [10, 10, 20, 10, 20]
    assert len(counter.calls) == 3


def test_two_analyses_of_one_form_and_arguments_are_two():
    one = typed()
    assert kept(lambda codelet, number: number)(one, 1) == 1
    assert kept(lambda codelet, number: -number)(one, 1) == -1
    assert stored_fields(one) == {"y"}
    assert full_writes.surely_stored_fields(one, 6) == {"y": "y"}


def test_an_error_is_raised_each_time():
    counter, one = Counter(), typed()
    analysis = kept(lambda codelet, number: counter.of(codelet, number))
    for _ in range(2):
        with pytest.raises(ValueError, match="-1"):
            analysis(one, -1)
    assert len(counter.calls) == 2


def test_what_is_made_of_a_form_has_its_own_analyses():
    whole = priced_codelet(vertex(LOOP, fields=FIELDS))
    assert (stored_fields(whole), loaded_scalars(whole)) == ({"y"}, {"n"})
    bare = evolve(whole, body=())
    assert (stored_fields(bare), loaded_scalars(bare), bare.analyses is whole.analyses) == (frozenset(), frozenset(), False)


def test_forms_are_equal_and_look_equal_whatever_is_kept_with_them():
    one = typed()
    shown, same = repr(one), evolve(one)
    stored_fields(one)
    assert (repr(one), one == same, hash(one) == hash(same)) == (shown, True, True)


def test_what_is_kept_cannot_be_changed():
    with pytest.raises(TypeError):
        span_roots(typed())["y"] = frozenset()
    with pytest.raises(TypeError):
        full_writes.surely_stored_fields(typed(), 6)["y"] = "z"


def test_what_is_kept_goes_with_its_form():
    class Found:
        pass

    one = evolve(typed())  # which nothing else holds
    found = found_once(one, "it", Found)
    gone = weakref.ref(found)
    assert found_once(one, "it", Found) is found
    del found
    gc.collect()
    assert gone() is not None
    del one
    gc.collect()
    assert gone() is None


def test_a_constant_that_changes_makes_another_form():
    cls = vertex("if FIRST:\n    self.y[0] = 1\nelse:\n    self.z[0] = 1", fields=FIELDS, prelude="FIRST = True")
    before = codelet_of(cls)
    assert stored_fields(before.typed) == {"y"}
    cls.compute.__globals__["FIRST"] = False
    assert stored_fields(codelet_of(cls).typed) == {"z"}
    assert stored_fields(before.typed) == {"y"}  # a graph keeps what it has
