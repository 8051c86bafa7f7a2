"""Which index checks are found to hold for a whole loop, and which code may run eight at a time."""

import pytest
from written_codelets import DOT, OUT, STENCIL, A, B, K, N, X, Y, codelet, f32, i32

from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.eight_lanes_plan import plan_rounds, plan_vertices
from pypoplar.codelet.ir.loop_checks import BindRow, InRange, plan_loop
from pypoplar.codelet.ir.proven_accesses import Linear, ProvenLoad, ProvenStore
from pypoplar.codelet.ir.typed import (
    Apply,
    Break,
    For,
    IfElse,
    Leave,
    Length,
    Literal,
    Load,
    Local,
    Once,
    Price,
    Row,
    Slice,
    Span,
    SpanList,
    Special,
    Store,
    While,
)
from pypoplar.codelet.ir.walk import read_first, walk

J, M, FLAG = Local("j", "i32"), Local("m", "i32"), Local("flag", "bool")


def loop(*body, step=1):
    return For(K, i32(0), N, i32(step), tuple(body), 0)


def checks(*body, stored=frozenset()):
    plan = plan_loop(loop(*body), stored)
    return [] if plan is None else [one for one in plan.setup if isinstance(one, InRange | BindRow)]


def index(local, operation, *arguments):
    return Apply(local, operation, arguments, 0)


def test_sums_and_multiples_of_the_variable_are_linear():
    body = (
        index(J, "mul_i32", K, i32(3)),
        index(J, "sub_i32", J, M),
        index(J, "add_i32", i32(7), J),
        Load(X, A, J, 0),
        index(J, "shift_left_i32", K, i32(2)),
        index(J, "neg_i32", J),
        Store(OUT, J, X, 0),
    )
    assert checks(*body) == [InRange(A, Linear(3, ((M, -1),), 7)), InRange(OUT, Linear(-4, (), 0))]


def test_equal_accesses_share_a_check():
    assert len(checks(Load(X, A, K, 0), Load(Y, A, K, 0), Store(A, K, X, 0))) == 1


@pytest.mark.parametrize(
    "body",
    [
        (Load(J, Span("at", "i32"), i32(0), 0, checked=False), Store(Span("at", "i32"), i32(0), K, 0, checked=False)),
        (index(J, "mul_i32", K, K),),
        (index(J, "mul_i32", K, M),),
        (index(J, "floordiv_i32", K, i32(2)),),
        (index(J, "mul_i32", K, i32(2**30)),),
        (Special(J, "random_u32", 0),),
        (IfElse(FLAG, (index(J, "copy_i32", K),), (index(J, "copy_i32", M),), 0),),
        (Once((index(J, "copy_i32", K), IfElse(FLAG, (Leave(),), (), 0), index(J, "copy_i32", M))),),
    ],
    ids=["stored scalar", "square", "unknown factor", "division", "large factor", "random", "branches", "helper"],
)
def test_what_is_not_linear_is_checked_in_the_loop(body):
    assert checks(*body, Load(X, A, J, 0), stored=frozenset({"at"})) == []


def test_a_local_that_the_loop_carries_is_not_fixed():
    assert checks(Load(X, A, J, 0), index(J, "add_i32", J, i32(1))) == []


def test_branches_that_agree_and_assignments_to_the_variable_are_followed():
    both = IfElse(FLAG, (index(J, "add_i32", K, i32(1)),), (index(J, "add_i32", K, i32(1)),), 0)
    assert checks(both, Load(X, A, J, 0)) == [InRange(A, Linear(1, (), 1))]
    assert checks(index(K, "add_i32", K, i32(2)), Load(X, A, K, 0)) == [InRange(A, Linear(1, (), 2))]


def test_fixed_values_are_computed_before_the_loop():
    body = (
        Length(M, B, 0),
        Load(J, Span("at", "i32"), i32(0), 0, checked=False),
        index(J, "mul_i32", J, M),
        index(J, "add_i32", J, K),
        Load(X, A, J, 0),
    )
    plan = plan_loop(loop(*body), frozenset())
    assert [type(one) for one in plan.setup] == [Length, Load, Apply, InRange]
    assert plan.setup[-1].index == Linear(1, ((plan.setup[2].target, 1),), 0)


def test_rows_at_fixed_places_are_bound_before_the_loop_and_slices_are_not():
    row, piece, rows = Span("row", "f32"), Span("piece", "f32"), SpanList("rows", "f32")
    found = checks(Row(row, rows, M, 0), Load(X, row, K, 0))
    assert [type(one) for one in found] == [BindRow, InRange]
    assert checks(Row(row, rows, K, 0), Load(X, row, M, 0)) == []
    assert checks(Slice(piece, A, i32(0), M, 0), Load(X, piece, K, 0)) == []


def test_loops_with_loops_in_them_or_wide_variables_are_left_alone():
    assert plan_loop(loop(loop(Load(X, A, K, 0))), frozenset()) is None
    assert plan_loop(loop(While((), FLAG, (), 0), Load(X, A, K, 0)), frozenset()) is None
    wide = Local("w", "i64")
    zero, one = Literal(0, "i64"), Literal(1, "i64")
    assert plan_loop(For(wide, zero, zero, one, (Load(X, A, wide, 0),), 0), frozenset()) is None


def test_straight_loops_have_one_price():
    plan = plan_loop(loop(Price(3), Load(X, A, K, 0), Price(4), Store(OUT, K, X, 0)), frozenset({"out"}))
    assert plan.straight
    assert plan.price == Price(7)
    assert [type(one) for one in plan.body] == [ProvenLoad, ProvenStore]
    for extra in (IfElse(FLAG, (Price(1),), (), 0), Break(), index(J, "floordiv_i32", K, M), Special(J, "cycle_count", 0)):
        assert not plan_loop(loop(Price(3), Load(X, A, K, 0), extra), frozenset()).straight
    assert plan_loop(loop(Load(X, A, K, 0), index(J, "floordiv_i32", K, i32(2))), frozenset()).straight
    assert not plan_loop(loop(Load(X, A, K, 0), index(X, "neg_f32", X)), frozenset(), floats_fault=True).straight


def test_what_a_block_reads_before_it_sets_it():
    assert read_first((index(J, "copy_i32", M), index(M, "copy_i32", J))) == {"m"}
    assert read_first((IfElse(FLAG, (index(J, "copy_i32", i32(1)),), (), 0), index(M, "copy_i32", J))) == {"flag", "j"}
    assert read_first((While((index(FLAG, "less_i32", J, M),), FLAG, (index(J, "copy_i32", i32(1)),), 0),)) == {"j", "m"}
    assert read_first((loop(index(J, "copy_i32", K)), index(M, "copy_i32", K))) == {"n", K.name}


def nested(*after, before=(), carried=True):
    add = index(X, "add_f32", X, Y) if carried else index(X, "copy_f32", Y)
    inner = For(J, i32(0), M, i32(1), (Load(Y, B, J, 0), add), 0)
    return loop(*before, index(X, "copy_f32", f32(0.0)), inner, *after)


def in_codelet(made):
    return codelet(
        ["a input vector f32", "b input vector f32", "out output vector f32", "s inout scalar f32"],
        index(N, "copy_i32", i32(9)),
        index(M, "copy_i32", i32(9)),
        made,
    )


STORE = Store(OUT, K, X, 0)


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (nested(STORE), True),
        (
            nested(STORE, IfElse(FLAG, (Break(),), (), 0), before=(index(FLAG, "less_f32", X, Y),)),
            False,
        ),  # reads what was set before
        (nested(STORE, before=(Load(Y, A, K, 0), index(FLAG, "less_f32", Y, f32(1.0)))), True),
        (nested(STORE, carried=False), False),
        (nested(STORE, before=(Load(Y, OUT, K, 0),)), True),
        (nested(STORE, before=(Load(Y, OUT, M, 0),)), False),  # memory that other rounds write
        (nested(STORE, before=(Slice(Span("piece", "f32"), OUT, i32(0), M, 0), Load(Y, Span("piece", "f32"), K, 0))), False),
        (nested(Load(Y, Span("s", "f32"), i32(0), 0, checked=False), Store(Span("s", "f32"), i32(0), X, 0, checked=False)), False),
        (nested(STORE, before=(Store(OUT, K, f32(1.0), 0),)), False),
        (nested(STORE, loop(Load(Y, A, K, 0))), False),
        (nested(STORE, index(K, "copy_i32", i32(0))), False),
    ],
    ids=[
        "plain",
        "carried",
        "ending",
        "no sum",
        "own element",
        "reads writes",
        "slice",
        "scalar",
        "early store",
        "two loops",
        "variable",
    ],
)
def test_rounds_side_by_side_share_nothing(made, found):
    assert (plan_rounds(made, in_codelet(made), Checks()) is not None) is found
    assert plan_rounds(made, in_codelet(made), Checks(touches=True)) is None


def test_vertices_side_by_side_need_a_sum():
    assert plan_vertices(DOT, Checks()) is not None
    assert plan_vertices(STENCIL, Checks()) is None
    assert not any(isinstance(one, For) and plan_rounds(one, STENCIL, Checks()) for one in walk(STENCIL.body))
