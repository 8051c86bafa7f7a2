"""popops.cast, castWithOutput, fill and zero: every pair of types, every type, against NumPy."""

from itertools import product

import numpy as np
import pytest
from library_programs import new_graph, run, variable

from pypoplar import BOOL, FLOAT, HALF, INT, LONGLONG, UNSIGNED_INT, PoplarError, PoplarTypeError, popops
from pypoplar.popops.elements.fill import fill_cycles
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence
from pypoplar.types import SUPPORTED

TYPES = tuple({type.code: type for type in SUPPORTED}.values())
VALUES = np.array([0, 1, 2, 3, 100, 127, -1, -3, -128], np.float64)


def given(type):
    """Values that every type has; the negative ones wrap in unsigned types."""
    return (VALUES != 0) if type is BOOL else VALUES.astype(np.int64).astype(type.dtype)


def expected(values, type):
    """Floats are held at the ends of the range, integers wrap."""
    if type is BOOL:
        return values != 0
    if values.dtype.kind == "f" and type.dtype.kind in "iu":
        wide = np.trunc(values.astype(np.float64))
        limits = np.iinfo({1: np.int32, 2: np.int32}.get(type.dtype.itemsize, type.dtype))
        return np.clip(wide, float(limits.min), float(limits.max)).astype(np.int64).astype(type.dtype)
    with np.errstate(over="ignore"):
        return values.astype(type.dtype)


def test_every_type_is_cast_to_every_other(mode):
    graph, device = new_graph(4)
    prog, values, results = Sequence(), {}, {}
    for source, target in product(TYPES, TYPES):
        name = f"{source.code} to {target.code}"
        tensor = variable(graph, source, [len(VALUES)], name)
        values[name], results[name] = given(source), popops.cast(graph, tensor, target, prog, name)
        assert results[name].elementType() is target
    read, _ = run(graph, device, prog, values, results, mode)
    for source, target in product(TYPES, TYPES):
        name = f"{source.code} to {target.code}"
        np.testing.assert_array_equal(read[name], expected(values[name], target), err_msg=name)


def test_a_cast_goes_into_a_given_tensor_or_into_a_program_of_its_own():
    graph, device = new_graph(4)
    x = variable(graph, FLOAT, [3, 5], "x")
    first, second = (variable(graph, HALF, [3, 5], name) for name in ("first", "second"))
    prog = Sequence()
    assert popops.castWithOutput(graph, x, first, prog) is None
    prog.add(popops.cast(graph, x, second))
    values = np.linspace(-3, 3, 15).reshape(3, 5).astype(np.float32)
    read, _ = run(graph, device, prog, {"x": values}, {"first": first, "second": second})
    np.testing.assert_array_equal(read["first"], values.astype(np.float16))
    np.testing.assert_array_equal(read["second"], values.astype(np.float16))


@pytest.mark.parametrize("value", [0, 1, 77])
def test_every_type_is_filled(value, mode):
    graph, device = new_graph(4)
    prog, results = Sequence(), {}
    for type in TYPES:
        for name, call in (("fill", popops.fill), ("zero", popops.zero)):
            tensor = variable(graph, type, [5, 7], f"{name} {type.code}")
            call(graph, tensor, prog, *([bool(value) if type is BOOL else value] if name == "fill" else []))
            results[f"{name} {type.code}"] = tensor
    read, _ = run(graph, device, prog, {}, results, mode)
    for name, array in read.items():
        wanted = 0 if name.startswith("zero") else bool(value) if name.endswith("bool") else value
        np.testing.assert_array_equal(array, np.full([5, 7], wanted, array.dtype), err_msg=name)


def test_filling_costs_what_poplibs_says():
    figures = [(FLOAT, 1, 24), (FLOAT, 2, 24), (FLOAT, 4, 25), (HALF, 1, 15), (HALF, 2, 21), (HALF, 8, 28), (LONGLONG, 9, 14)]
    for type, elements, cycles in figures:
        assert fill_cycles(elements, type) == cycles
    assert fill_cycles(64, BOOL) == 47


def test_what_does_not_fit_is_refused():
    graph, _ = new_graph(4)
    x, other = variable(graph, FLOAT, [4], "x"), variable(graph, INT, [3], "other")
    prog = Sequence()
    with pytest.raises(PoplibsError, match=r"popops.castWithOutput gives INT \[4\], which does not fit into .*'other'"):
        popops.castWithOutput(graph, x, other, prog)
    with pytest.raises(PoplarTypeError, match="Cast takes an expression and an element type, got 'half'"):
        popops.cast(graph, x, "half", prog)
    with pytest.raises(PoplarTypeError, match=r"popops.cast: .*prog.* got None"):
        popops.cast(graph, x, HALF)
    with pytest.raises(PoplarTypeError, match=r"popops.cast takes a tensor, got 3"):
        popops.cast(graph, 3, HALF, prog)
    with pytest.raises(PoplarTypeError, match=r"popops.fill: the value is a number, got 'one'"):
        popops.fill(graph, x, prog, "one")
    with pytest.raises(PoplibsError, match="holds an element twice"):
        popops.zero(graph, x.broadcast(2, 0), prog)
    with pytest.raises(PoplarError, match=r"1\.5"):
        popops.fill(graph, variable(graph, UNSIGNED_INT, [2], "count"), prog, 1.5)
