"""A worker's share of what a MultiVertex works on: ``for i in ipu.worker_range(worker, self.out)``."""

from __future__ import annotations

import ast

from pypoplar.codelet.frontend.inference import NAMES, Number, RowsView, SpanView, Weak
from pypoplar.codelet.frontend.inlining import Inlining
from pypoplar.codelet.ir.typed import Literal, Operand, Special, WorkerShare
from pypoplar.codelet.language.source import Meaning
from pypoplar.codelet.operations.tile_readings import WORKER_COUNT
from pypoplar.ipu import WORD

WORKER_RANGE = Meaning("ipu", "worker_range")


class WorkerShares(Inlining):
    """The range of a worker: pieces of equal size, whole words of the vector that it divides."""

    def worker_share(self, call: ast.Call) -> tuple[Operand, Operand, WorkerShare]:
        """First index and end of the share, and what is shared."""
        if call.keywords or len(call.args) != 2:
            self.refuse(call, "write ipu.worker_range(worker, self.out): the worker's number, and a vector or a number")
        worker = self._index(self.number(call.args[0]), call.args[0])
        divided = self.value(call.args[1])
        if isinstance(divided, SpanView | RowsView):
            grain = 1 if isinstance(divided, RowsView) else max(WORD // divided.span.size, 1)
            count: Operand = self.length(divided, call)
        else:
            grain, count = 1, self._index(self.as_number(divided, call.args[1]), call.args[1])
        workers = self.temporary("i32")
        self.emit(Special(workers, WORKER_COUNT, self.where(call)))
        share = self._share(count, workers, grain, call)
        start = self.operate("*", (worker, share), call)
        stop = self.operate("min", (self.operate("+", (start, share), call), count), call)
        return start, stop, WorkerShare(worker, count, grain)

    def _index(self, number: Number, node: ast.expr) -> Operand:
        kind = number.alone if isinstance(number, Weak) else number.type
        if kind != "i32":
            self.refuse(node, f"ipu.worker_range takes INT, got {NAMES[kind]}: write int(...)")
        return self.converted(number, "i32", node)

    def _share(self, count: Operand, workers: Operand, grain: int, node: ast.AST) -> Operand:
        """``count / (workers * grain)``, rounded up, times grain."""
        unit = workers if grain == 1 else self.operate("*", (workers, Literal(grain, "i32")), node)
        below = self.operate("-", (self.operate("+", (count, unit), node), Literal(1, "i32")), node)
        share = self.apply("part_i32", (below, unit), "i32", node)
        return share if grain == 1 else self.operate("*", (share, Literal(grain, "i32")), node)
