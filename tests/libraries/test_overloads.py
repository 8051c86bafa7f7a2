"""Calls with several forms: the first that the arguments fit is taken, and what fits none is told by name."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, overload

import numpy as np
import pytest
from library_programs import new_graph, variable

from pypoplar import FLOAT, HALF, Graph, PoplarTypeError, Tensor
from pypoplar.poputil.overloads import fits, forms, overloaded, type_words
from pypoplar.program import Sequence
from pypoplar.types import ElementType


class Colour(Enum):
    RED = 1
    BLUE = 2


@overload
def paint(graph: Graph, t: Tensor, prog: Sequence, debugContext: str | None = None) -> str: ...
@overload
def paint(graph: Graph, t: Tensor, type: ElementType, dims: Iterable[int], prog: Sequence) -> str: ...
@overload
def paint(graph: Graph, t: Tensor, scale: float, colour: Colour) -> str: ...
@overloaded("test.paint")
def paint(graph: Graph, t: Tensor, **given: Any) -> str:
    """Paint a tensor."""
    return ",".join(given)


@pytest.fixture(name="case")
def make_case():
    graph, _ = new_graph()
    return graph, variable(graph, FLOAT, [2], "t"), Sequence()


def test_the_form_that_fits_is_taken_by_place_and_by_name(case):
    graph, t, prog = case
    assert paint(graph, t, prog) == "prog"
    assert paint(graph, t, prog, "name") == "prog,debugContext"
    assert paint(graph, t, HALF, [0, 1], prog) == "type,dims,prog"
    assert paint(graph, t, prog=prog, dims=np.array([1]), type=HALF) == "type,dims,prog"
    assert paint(graph, t, 2, Colour.RED) == "scale,colour"
    assert paint(graph=graph, t=t, scale=np.float32(2), colour=Colour.RED) == "scale,colour"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda g, t, p: (g, t, HALF, [0], None), "test.paint: the argument prog is the Sequence that the call extends, got None"),
        (lambda g, t, p: (g, t, HALF, [0.5], p), r"test.paint: dims is a list, each a whole number, got \[0.5\]"),
        (lambda g, t, p: (g, t, HALF, {0, 1}, p), r"got \{0, 1\} for dims of test.paint: a set has no order"),
        (lambda g, t, p: (g, t, 1.0, "RED"), "test.paint: colour is a Colour such as Colour.RED, got 'RED'"),
        (lambda g, t, p: (g, [t], p), r"test.paint takes a tensor, got \[<Tensor"),
        (lambda g, t, p: (t, g, p), "test.paint: the first argument is the graph"),
        (lambda g, t, p: (g, t, p, 3), "test.paint: a debug name is a string, got 3; options come after it"),
        (
            lambda g, t, p: (g,),
            r"test.paint: missing a required argument: 't'; it takes \(graph, t, prog\[, debugContext\]\) or \(graph",
        ),
        (lambda g, t, p: (g, t, p, "name", 1, 2), r"test.paint: too many positional arguments; it takes"),
    ],
)
def test_what_fits_no_form_names_the_argument_of_the_form_that_fits_furthest(case, arguments, message):
    with pytest.raises(PoplarTypeError, match=message):
        paint(*arguments(*case))


def test_a_misspelt_name_is_told_with_the_forms(case):
    graph, t, prog = case
    with pytest.raises(PoplarTypeError, match=r"test.paint: got an unexpected keyword argument 'debugName'; it takes"):
        paint(graph, t, prog, debugName="x")


@pytest.mark.parametrize(
    ("value", "hint", "whether"),
    [
        (True, int, False),
        (True, float, False),
        (True, bool, True),
        (np.bool_(True), bool, True),
        (np.int8(3), int, True),
        (3, float, True),
        (3.0, int, False),
        (np.float16(3), float, True),
        ("x", Iterable[str], False),
        ([], Iterable[int], True),
        ((1, 2), Iterable[int], True),
        ((1, 2), list[int], False),
        (frozenset([1]), Iterable[int], False),
        ((i for i in range(3)), Iterable[int], True),
        ({"a": "b"}, Mapping[str, object], True),
        ([("a", "b")], Mapping[str, object], False),
        (len, Callable[[int], int], True),
        (3, Callable[[int], int], False),
        (None, int | None, True),
        (None, int, False),
        (3, Any, True),
    ],
)
def test_types_are_those_that_annotations_write(value, hint, whether):
    assert fits(value, hint) is whether


def test_types_are_named_in_words():
    assert type_words(int | None) == "a whole number"
    assert type_words(ElementType | Tensor) == "an element type or a tensor"
    assert type_words(Mapping[str, object]) == "a dict"
    assert type_words(Callable[[], None]) == "a function"
    assert type_words(Iterable[Tensor]) == "a list, each a tensor"


def test_the_forms_are_those_that_were_declared():
    assert [str(form) for form in forms(paint.__wrapped__.__wrapped__)] == [
        "(graph, t, prog[, debugContext])",
        "(graph, t, type, dims, prog)",
        "(graph, t, scale, colour)",
    ]
    assert paint.__doc__ == "Paint a tensor."
