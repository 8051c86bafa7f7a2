"""Softmaxes of the rows of matrices, and their gradients: by a worker for each row, or by all tiles that hold some of it."""

from __future__ import annotations

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.nonlinearities.nonlinearity_type import NonLinearityType
from pypoplar.popnn.nonlinearities.softmax_plan import SoftmaxSteps, rows_are_cheaper
from pypoplar.popnn.row_vertices import RowGroups, add_row_vertices, group_rows
from pypoplar.popops.elements.map_functions import map, mapWithOutput
from pypoplar.popops.expr import Cast, Exp, Expr, Log, _1, _2, _3
from pypoplar.popops.reduction.reduce_call import reduce
from pypoplar.popops.reduction.reduce_params import Operation
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.types import FLOAT

LIKE_SOFTMAX = SoftmaxSteps(("MAX", "ADD"), ("SUBTRACT", "EXPONENT", "MULTIPLY"))
UNSTABLE = SoftmaxSteps(("ADD",), ("EXPONENT", "MULTIPLY"))
GRADIENT = SoftmaxSteps(("ADD",), ("MULTIPLY", "SUBTRACT", "MULTIPLY"))


@frozen(eq=False)
class Softmax:
    """A softmax, its logarithm, or its gradient: how large its results are, whether it subtracts the largest element."""

    graph: Graph
    debug: str
    stable: bool = True
    scaling: float = 1.0
    logarithm: bool = False

    @staticmethod
    def of(graph: Graph, kind: NonLinearityType, debug: str) -> Softmax:
        return Softmax(graph, debug, kind is not NonLinearityType.SOFTMAX, kind.scaling)

    def add(self, prog: Sequence, rows: Tensor, out: Tensor) -> None:
        """The softmax of each row, into a matrix of the same shape; `rows` may be that matrix."""
        if rows.numElements() == 0:
            return
        groups = group_rows(self.graph, out)
        if rows_are_cheaper(self.graph, rows, out, groups, LIKE_SOFTMAX if self.stable else UNSTABLE):
            vertex = templateVertex("popnn::LogSoftMax" if self.logarithm else "popnn::SoftMax", rows.elementType())
            values = {} if self.logarithm else {"stable": self.stable, "scaling": self.scaling}
            self._by_rows(prog, vertex, groups, {"in": rows, "out": out}, values)
            return
        self._spread(prog, rows, out)

    def add_gradient(self, prog: Sequence, out: Tensor, outGradient: Tensor, inGradient: Tensor) -> None:
        """The gradient by what went into the softmax, whose results were `out`: out (g - sum(out g) / scaling)."""
        if out.numElements() == 0:
            return
        operands = {"out": out, "outGrad": outGradient, "inGrad": inGradient}
        groups = group_rows(self.graph, inGradient)
        if rows_are_cheaper(self.graph, out, inGradient, groups, GRADIENT):
            vertex = templateVertex("popnn::SoftMaxGrad", out.elementType())
            self._by_rows(prog, vertex, groups, operands, {"scaling": self.scaling})
            return
        products = map(self.graph, self._float(_1) * self._float(_2), [out, outGradient], prog, below(self.debug, "products"))
        sums = reduce(self.graph, products, FLOAT, [1], Operation.ADD, prog, below(self.debug, "sum")).expand([1])
        value = self._float(_1) * (self._float(_2) - _3 * (1.0 / self.scaling))
        self._write(Cast(value, out.elementType()), [out, outGradient, sums], inGradient, prog, "gradient")

    def _by_rows(self, prog: Sequence, vertex: str, groups: RowGroups, rows: dict[str, Tensor], values: dict[str, float]) -> None:
        cs = self.graph.addComputeSet(self.debug)
        add_row_vertices(self.graph, cs, vertex, groups, rows, shared=values)
        prog.add(Execute(cs))

    def _spread(self, prog: Sequence, rows: Tensor, out: Tensor) -> None:
        """By operations on elements and reductions, where the elements lie."""
        graph, type = self.graph, out.elementType()
        value: Expr = self._float(_1)
        largest: list[Tensor] = []
        if self.stable:
            largest = [reduce(graph, rows, [1], Operation.MAX, prog, below(self.debug, "largest")).expand([1])]
            value = value - self._float(_2)
        if self.logarithm:
            powers = map(graph, Exp(value), [rows, *largest], prog, below(self.debug, "powers"))
            total = reduce(graph, powers, FLOAT, [1], Operation.ADD, prog, below(self.debug, "sum")).expand([1])
            self._write(Cast(value - Log(_3), type), [rows, *largest, total], out, prog, "logarithms")
            return
        power = Exp(value) * self.scaling if self.scaling != 1 else Exp(value)
        self._write(Cast(power, type), [rows, *largest], out, prog, "powers")
        total = reduce(graph, out, FLOAT, [1], Operation.ADD, prog, below(self.debug, "sum")).expand([1])
        self._write(Cast(self._float(_1) * (self.scaling / _2), type), [out, total], out, prog, "scale")

    def _write(self, value: Expr, operands: list[Tensor], out: Tensor, prog: Sequence, step: str) -> None:
        mapWithOutput(self.graph, value, operands, out, prog, below(self.debug, step))

    @staticmethod
    def _float(operand: Expr) -> Expr:
        return Cast(operand, FLOAT)
