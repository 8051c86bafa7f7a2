"""popops.scaledAddTo and scaledSubtractFrom: all forms and types against NumPy, what they cost and what they refuse."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import call, new_graph, run, variable

from pypoplar import BOOL, FLOAT, HALF, INT, LONGLONG, UNSIGNED_INT, InvalidOption, PoplarTypeError, popops, poputil
from pypoplar.program import Sequence

SPECIAL = popops.ScaledAddSpecialisation
REALS, INTEGERS = (FLOAT, HALF), (INT, UNSIGNED_INT)
FORMS = ("A + bB", "A - bB", "aA + bB", "aA - bB", "A - aA + bB")


def numbers(type, shape, seed):
    random = np.random.default_rng(seed)
    if type in REALS:
        return (random.standard_normal(shape) * 100).astype(type.dtype)
    return random.integers(0, 2**32, shape, dtype=np.uint64).astype(np.uint32).view(type.dtype)


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def add(graph, form, A, B, a, b, prog, *more, **options):
    """The call of a form."""
    subtract = form.endswith("- bB")
    function = popops.scaledSubtractFrom if subtract else popops.scaledAddTo
    scaled = [A, B, b] if form[0:3] == "A +" or form == "A - bB" else [A, a, B, b]
    special = [SPECIAL.X_MINUS_AX_PLUS_BY] if form == "A - aA + bB" else []
    assert function(graph, *scaled, prog, *special, *more, **options) is None


def expected(form, A, B, a, b):
    """In float, rounded once; integers wrap."""
    if A.dtype.kind == "f":
        wide, a, b = A.astype(np.float32), np.float32(a), np.float32(b)
        other = B.astype(np.float32)
    else:
        wide, other = A, B.astype(np.int64).astype(A.dtype) if B.dtype.kind != "f" else B.astype(A.dtype)
        a, b = np.array([a, b], np.int64).astype(A.dtype)
    with np.errstate(over="ignore"):
        sums = {
            "A + bB": lambda: wide + b * other,
            "A - bB": lambda: wide - b * other,
            "aA + bB": lambda: a * wide + b * other,
            "aA - bB": lambda: a * wide - b * other,
            "A - aA + bB": lambda: wide - a * wide + b * other,
        }
        return sums[form]().astype(A.dtype)


CASES = [(form, A, B) for form in FORMS for A, B in product(REALS, REALS)]
CASES += [(form, A, B) for form in FORMS[:4] for A, B in product(INTEGERS, INTEGERS)]
CASES += [(form, A, B) for form in FORMS for A, B in product(REALS, INTEGERS)]


@pytest.mark.parametrize("kind", ["numbers", FLOAT, HALF, INT])
def test_every_form_is_numpys_for_every_pair_of_types(kind, mode):
    graph, device = new_graph(4)
    prog, values, results, wanted = Sequence(), {}, {}, {}
    for number, (form, a_type, b_type) in enumerate(CASES):
        name = f"{form} {a_type.code} {b_type.code}"
        shape = [(7, 11), (5,), (), (3, 1, 2)][number % 4]
        arrays = {f"A {name}": numbers(a_type, shape, number), f"B {name}": numbers(b_type, shape, number + 1)}
        if b_type in INTEGERS and a_type in REALS:
            arrays[f"B {name}"] = np.abs(arrays[f"B {name}"].astype(np.int64) % 100).astype(b_type.dtype)
        A, B = (variable(graph, type, shape, key) for type, key in zip((a_type, b_type), arrays, strict=True))
        a, b = (3, 5) if a_type in INTEGERS or kind is INT else (0.75, -0.0009765625 if kind is HALF else -0.0009)
        scales = [a, b]
        if kind != "numbers":
            scales = [graph.addConstant(kind, [1], scale, name) for scale in (a, b)]
            for place, scale in enumerate(scales):
                graph.setTileMapping(scale, place)
        add(graph, form, A, B, *scales, prog, name)
        values |= arrays
        results[name], wanted[name] = A, expected(form, *arrays.values(), a, b)
    read, _ = run(graph, device, prog, values, results, mode)
    for name in results:
        np.testing.assert_array_equal(bits(read[name]), bits(wanted[name]), err_msg=name)


@examples(15)
@given(
    st.lists(st.integers(1, 9), min_size=0, max_size=3),
    st.sampled_from(FORMS),
    st.sampled_from([(FLOAT, FLOAT), (HALF, HALF), (HALF, FLOAT), (FLOAT, HALF)]),
    st.sampled_from([1, 4, 7]),
)
def test_shapes_and_tiles_do_not_matter(shape, form, types, tiles):
    A, B = numbers(types[0], shape, 1), numbers(types[1], shape, 2)
    modes = []
    for mode in ("native", "interpret"):

        def function(graph, t, prog):
            add(graph, form, *t, 1.5, 0.3, prog)
            return t[0]

        result, engine = call(function, types, [A, B], tiles, mode)
        np.testing.assert_array_equal(bits(result), bits(expected(form, A, B, 1.5, 0.3)))
        modes.append([step.cycles for step in engine.getReport().execution.steps])
    assert modes[0] == modes[1]


def test_scales_of_two_types_meet_in_float():
    A, B = numbers(HALF, [40], 1), numbers(HALF, [40], 2)

    def function(graph, t, prog):
        a, b = graph.addConstant(HALF, [], 0.3), graph.addConstant(FLOAT, [], 0.3)
        for scale in (a, b):
            graph.setTileMapping(scale, 0)
        popops.scaledAddTo(graph, t[0], a, t[1], b, prog)
        return t[0]

    wanted = (np.float32(np.float16(0.3)) * A.astype(np.float32) + np.float32(0.3) * B.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(bits(call(function, [HALF, HALF], [A, B])[0]), bits(wanted))


@pytest.mark.parametrize(("tolerance", "scale"), [("1e-6", np.float32(0.3)), ("0.01", np.float32(np.float16(0.3)))])
def test_a_scale_within_the_tolerance_is_a_half(tolerance, scale):
    A, B = np.zeros(8, np.float16), np.full(8, 1000, np.float16)

    def function(graph, t, prog):
        popops.scaledAddTo(graph, *t, 0.3, prog, None, {"scaleFloatToHalfTolerance": tolerance, "optimizeForSpeed": "true"})
        return t[0]

    assert (call(function, [HALF, HALF], [A, B])[0] == np.float16(scale * np.float32(1000))).all()
    exact = call(function, [FLOAT, HALF], [A, B])[0]  # where not all is HALF it stays a FLOAT
    assert (exact == np.float32(0.3) * np.float32(1000)).all()


def test_operands_may_have_elements_of_the_sum():
    a = numbers(FLOAT, [6, 6], 12)

    def function(graph, t, prog):
        popops.scaledAddTo(graph, t[0], t[0].transpose(), t[0][1, 2], prog)
        return t[0]

    def twice(graph, t, prog):
        popops.scaledSubtractFrom(graph, t[0], 2.0, t[0], 0.5, prog)
        return t[0]

    assert (call(function, [FLOAT], [a])[0] == a + a[1, 2] * a.T).all()
    assert (call(twice, [FLOAT], [a])[0] == 2 * a - np.float32(0.5) * a).all()
    whole = np.arange(36, dtype=np.int32).reshape(6, 6)

    def turned(graph, t, prog):
        popops.scaledAddTo(graph, t[0], t[0][0, 3], t[0].transpose(), t[0][0, 2], prog)
        return t[0]

    assert (call(turned, [INT], [whole])[0] == 3 * whole + 2 * whole.T).all()


def test_a_scaled_add_is_done_where_the_sum_lives():
    graph, device = new_graph()
    a, b = variable(graph, FLOAT, [96], "a"), variable(graph, FLOAT, [96], "b", tile=9)
    prog = Sequence()
    popops.scaledAddTo(graph, a, b, 2.0, prog)
    values = np.arange(96, dtype=np.float32)
    read, engine = run(graph, device, prog, {"a": values, "b": values}, {"a": a})
    assert (read["a"] == 3 * values).all()
    (before,) = [one for one in engine.executable.exchanges if one.phase == "before"]
    assert before.messages["variable"].tolist() == ["b"] * 3
    assert before.bytes_received[:3].tolist() == [128] * 3


def test_an_empty_sum_is_nothing():
    graph, device = new_graph()
    a = variable(graph, FLOAT, [0, 3], "a")
    prog = Sequence()
    popops.scaledAddTo(graph, a, a, 2.0, prog)
    popops.scaledSubtractFrom(graph, a, 2.0, a, 3.0, prog)
    run(graph, device, prog, {}, {})


def tensors():
    graph, _ = new_graph()
    made = {
        name: variable(graph, type, shape, name)
        for name, type, shape in [
            ("a", FLOAT, [4]),
            ("five", FLOAT, [5]),
            ("flags", BOOL, [4]),
            ("long", LONGLONG, [4]),
            ("whole", INT, [4]),
            ("count", UNSIGNED_INT, [4]),
            ("flag", BOOL, []),
        ]
    }
    made["constant"] = graph.addConstant(FLOAT, [4], 1.0)
    graph.setTileMapping(made["constant"], 0)
    return graph, made


MISTAKES = [
    (lambda g, t, p: popops.scaledAddTo(g, t["a"], t["five"], 1.0, p), poputil.PoplibsError, r"one shape, got .*'a'.*'five'"),
    (
        lambda g, t, p: popops.scaledAddTo(g, t["a"], t["flags"], 1.0, p),
        poputil.PoplibsError,
        "takes FLOAT, HALF, INT or UNSIGNED_INT, got .*'flags'",
    ),
    (lambda g, t, p: popops.scaledSubtractFrom(g, t["long"], t["long"], 1.0, p), poputil.PoplibsError, "got .*'long'"),
    (
        lambda g, t, p: popops.scaledAddTo(g, t["a"], t["a"], t["five"], p),
        poputil.PoplibsError,
        "scaleB is a number or a tensor of one element, .*'five'",
    ),
    (lambda g, t, p: popops.scaledAddTo(g, t["a"], t["flag"], t["a"], t["flag"], p), poputil.PoplibsError, "scaleA is .*'flag'"),
    (lambda g, t, p: popops.scaledAddTo(g, t["a"], t["a"], float("nan"), p), poputil.PoplibsError, "scaleB is a number, got nan"),
    (lambda g, t, p: popops.scaledAddTo(g, t["whole"], t["whole"], 1.5, p), PoplarTypeError, r"scaleB of popops.scaledAddTo.*1\.5"),
    (lambda g, t, p: popops.scaledAddTo(g, t["whole"], t["whole"], float("inf"), p), PoplarTypeError, "scaleB of .*inf"),
    (lambda g, t, p: popops.scaledAddTo(g, t["count"], t["count"], -1, p), PoplarTypeError, "scaleB of .*-1"),
    (lambda g, t, p: popops.scaledAddTo(g, t["constant"], t["a"], 1.0, p), poputil.PoplibsError, "scaledAddTo: .*constant"),
    (
        lambda g, t, p: popops.scaledAddTo(g, t["a"][0:1].broadcast(4, 0), t["a"], 1.0, p),
        poputil.PoplibsError,
        "holds an element twice",
    ),
    (
        lambda g, t, p: popops.scaledAddTo(g, t["whole"], 1, t["whole"], 2, p, SPECIAL.X_MINUS_AX_PLUS_BY),
        poputil.PoplibsError,
        "X_MINUS_AX_PLUS_BY of FLOAT and HALF, got .*'whole'",
    ),
    (lambda g, t, p: popops.scaledAddTo(g, t["a"], 1.0, t["a"], t["flag"], p), PoplarTypeError, "scaleB is a number, got .*'flag'"),
    (lambda g, t, p: popops.scaledAddTo(g, t["a"], t["a"], "2", p), PoplarTypeError, "scaleB is a number or a tensor, got '2'"),
    (lambda g, t, p: popops.scaledAddTo(g, t["a"], t["a"], 1.0, None), PoplarTypeError, "argument prog is the Sequence"),
    (lambda g, t, p: popops.scaledAddTo(g, t["a"], t["a"], 1.0), PoplarTypeError, r"scaledAddTo: .*'prog'; it takes \(graph, A, B"),
    (
        lambda g, t, p: popops.scaledAddTo(g, t["a"], t["a"], 1.0, p, "x", {"optimiseForSpeed": "true"}),
        InvalidOption,
        "no option 'optimiseForSpeed'; did you mean 'optimizeForSpeed'",
    ),
    (
        lambda g, t, p: popops.scaledAddTo(g, t["a"], t["a"], 1.0, p, "x", {"scaleFloatToHalfTolerance": "-1"}),
        poputil.PoplibsError,
        "is 0 at least, got -1",
    ),
]


@pytest.mark.parametrize(("mistake", "error", "text"), MISTAKES)
def test_mistakes_are_refused_before_the_graph_is_changed(mistake, error, text):
    graph, made = tensors()
    prog = Sequence()
    before = len(graph.getVertexTypes()), graph.numComputeSets(), len(graph._variables.names)
    with pytest.raises(error, match=text):
        mistake(graph, made, prog)
    assert (len(graph.getVertexTypes()), graph.numComputeSets(), len(graph._variables.names)) == before
    assert len(prog) == 0
