"""poputil.graphfn: parts of a graph used again, with arguments that are read, written, both, or made."""

import numpy as np
import pytest
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, HALF, PoplarTypeError, popops, poputil
from pypoplar.poputil import graphfn
from pypoplar.program import Copy, Sequence


@pytest.mark.parametrize("inlined", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_a_function_reads_writes_and_makes_its_arguments(inlined, mode):
    graph, device = new_graph(4)
    a, b, total, other = (variable(graph, FLOAT, [3, 5], name) for name in ("a", "b", "total", "other"))

    def build(args, prog):
        x, accumulator, copy, _ = args
        popops.addInPlace(graph, accumulator, x, prog)
        prog.add(Copy(accumulator, copy))
        args[3] = popops.mul(graph, x, 2.0, prog)

    signature = [graphfn.input(a, "x"), graphfn.inout(total), graphfn.output(other), graphfn.created("double")]
    function = graphfn.VoidFunction(graph, signature, build, inlined, "f")
    prog, results = Sequence(), {}
    for number, x in enumerate((a, b)):
        args = [x, total, other, None]
        function(args, prog, f"call {number}")
        results[f"double {number}"] = args[3]
    values = {name: np.random.default_rng(len(name)).random((3, 5), np.float32) for name in ("a", "b", "total")}
    read, _ = run(graph, device, prog, values, {**results, "total": total, "other": other}, mode)
    np.testing.assert_array_equal(read["double 0"], 2 * values["a"])
    np.testing.assert_array_equal(read["double 1"], 2 * values["b"])
    np.testing.assert_array_equal(read["total"], values["total"] + values["a"] + values["b"])
    np.testing.assert_array_equal(read["other"], read["total"])


def test_functions_that_return_a_tensor_or_a_program():
    graph, device = new_graph(4)
    a, out = variable(graph, FLOAT, [7], "a"), variable(graph, FLOAT, [7], "out")
    names = []

    def build(args, prog, name):
        names.append(name)
        return popops.add(graph, args[0], 1.0, prog, name)

    def steps(args):
        return Sequence([Copy(args[0], args[1])])

    increment = graphfn.TensorFunction(graph, [graphfn.input(a)], build, debugContext="increment")
    copy = graphfn.ProgramFunction(graph, [graphfn.input(a), graphfn.output(a)], steps)
    before = graph.numVertices()
    prog = Sequence()
    first = increment([a], prog)
    second = increment([first], prog)
    prog.add(copy([second, out]))
    assert graph.numVertices() == before
    assert names == ["increment"]
    values = np.arange(7, dtype=np.float32)
    read, _ = run(graph, device, prog, {"a": values}, {"first": first, "second": second, "out": out})
    np.testing.assert_array_equal(read["first"], values + 1)
    np.testing.assert_array_equal(read["second"], values + 2)
    np.testing.assert_array_equal(read["out"], values + 2)


def test_calls_with_other_arguments_are_refused_and_change_nothing():
    graph, _ = new_graph(4)
    a = variable(graph, FLOAT, [7], "a")
    function = graphfn.TensorFunction(graph, [graphfn.inout(a)], lambda args, prog: args[0])
    prog = Sequence()
    for args, message in (
        ([], "a call takes a list of 1 arguments, got 0"),
        ((a,), "a call takes a list of 1 arguments, got"),
        ([a.slice(0, 3)], r"argument 0 is like .*'a' FLOAT \[7\].*, got .*\[3\]"),
        ([graph.addVariable(HALF, [7], "h")], "argument 0 is like"),
        ([graph.addConstant(FLOAT, [7], 1.0, "c")], "cannot be written"),
    ):
        with pytest.raises(poputil.PoplibsError, match=f"graphfn.TensorFunction: .*{message}"):
            function(args, prog)
    with pytest.raises(PoplarTypeError, match=r"graphfn\.TensorFunction takes a tensor, got 3"):
        function([3], prog)
    with pytest.raises(PoplarTypeError, match="the argument prog is the Sequence"):
        function([a], None)
    assert len(prog) == 0


def test_functions_that_are_not_as_their_signatures_are_refused():
    graph, _ = new_graph(4)
    a = variable(graph, FLOAT, [7], "a")
    with pytest.raises(PoplarTypeError, match="expected a function of args and prog, got"):
        graphfn.VoidFunction(graph, [graphfn.input(a)], lambda: None)
    with pytest.raises(PoplarTypeError, match=r"a signature has input\(t\), .* at 0"):
        graphfn.VoidFunction(graph, [a], lambda args, prog: None)
    with pytest.raises(poputil.PoplibsError, match="sets its created parameter 0 to a tensor, got None"):
        graphfn.VoidFunction(graph, [graphfn.created()], lambda args, prog: None)
    with pytest.raises(PoplarTypeError, match="the function returns a tensor, got None"):
        graphfn.TensorFunction(graph, [], lambda args, prog: None)
    with pytest.raises(PoplarTypeError, match="the function returns a program, got None"):
        graphfn.ProgramFunction(graph, [], lambda args: None)
    with pytest.raises(PoplarTypeError, match=r"graphfn\.inout takes a tensor, got 3"):
        graphfn.inout(3)
