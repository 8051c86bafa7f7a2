"""popops.countedLoop, countedForLoop and addForLoopCounterVertex."""

import numpy as np
import pytest
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, INT, UNSIGNED_INT, PoplarTypeError, popops
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence


def adding(graph, counter, total):
    prog = Sequence()
    popops.addInPlace(graph, total, counter, prog)
    return prog


@pytest.mark.parametrize("arguments", [(0, 10, 1), (3, 11, 4), (5, 6, 7), (4,)])
@pytest.mark.parametrize("mode", MODES)
def test_a_counted_loop_goes_over_its_range(arguments, mode):
    graph, device = new_graph(4)
    total = variable(graph, UNSIGNED_INT, [1], "total")
    prog = popops.countedLoop(graph, *arguments, lambda counter: adding(graph, counter, total), "loop")
    read, _ = run(graph, device, prog, {"total": np.array([0], np.uint32)}, {"total": total}, mode)
    assert read["total"] == sum(range(*arguments))


@pytest.mark.parametrize(
    ("type", "start", "limit", "step"), [(INT, -3, 5, 2), (INT, 4, -4, -1), (UNSIGNED_INT, 0, 6, 3), (INT, 2, 2, 1)]
)
@pytest.mark.parametrize("mode", MODES)
def test_a_loop_with_a_limit_ends_where_the_counter_equals_it(type, start, limit, step, mode):
    graph, device = new_graph(4)
    total, end = variable(graph, type, [1], "total"), variable(graph, type, [], "end")
    count = variable(graph, type, [], "count", tile=2)
    body = adding(graph, count, total)
    loop = popops.countedForLoop(graph, count, start, end, step, body, "loop")
    rounds = variable(graph, type, [1], "rounds")
    one = graph.addConstant(type, [1], 1)
    graph.setTileMapping(one, 0)
    second = popops.countedForLoop(graph, start, end, step, adding(graph, one, rounds))
    zero = np.zeros(1, type.dtype)
    values = {"total": zero, "rounds": zero, "end": np.array(limit, type.dtype)}
    read, _ = run(graph, device, Sequence([loop, second]), values, {"total": total, "rounds": rounds, "count": count}, mode)
    assert read["total"] == sum(range(start, limit, step))
    assert read["rounds"] == len(range(start, limit, step))
    assert read["count"] == limit


def test_loops_that_never_end_or_begin_are_refused():
    graph, _ = new_graph(4)
    t, f, prog = variable(graph, INT, [], "t"), variable(graph, FLOAT, [], "f"), Sequence()
    wide = variable(graph, INT, [2], "wide")
    refused = [
        (lambda: popops.countedLoop(graph, 4, 4, 1, lambda counter: prog), "begin is below end, both UNSIGNED_INTs, got 4 and 4"),
        (lambda: popops.countedLoop(graph, 0, 4, 0, lambda counter: prog), "step is 1 at least, got 0"),
        (lambda: popops.countedLoop(graph, 0, lambda counter: prog), "begin is below end"),
        (lambda: popops.countedForLoop(graph, 0, t, 0, prog), "countStep is a whole number other than 0"),
        (lambda: popops.countedForLoop(graph, 0, f, 1, prog), "got .*'f'"),
        (lambda: popops.countedForLoop(graph, wide, 0, t, 1, prog), "count is one INT or UNSIGNED_INT, got .*'wide'"),
        (lambda: popops.countedForLoop(graph, 2**31, t, 1, prog), "2147483648 is no INT"),
        (lambda: popops.addForLoopCounterVertex(graph, t, variable(graph, UNSIGNED_INT, [], "u"), 1, 0, prog), "have one type"),
    ]
    for call, message in refused:
        with pytest.raises(PoplibsError, match=message):
            call()
    with pytest.raises(PoplarTypeError, match="the body returns a program, got None"):
        popops.countedLoop(graph, 3, lambda counter: None)
    assert len(prog) == 0
