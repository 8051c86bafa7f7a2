"""The programs of a loss: probabilities by symbol, the loop over steps that goes forward and back at once, and the gradient."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popnn.ctc.ctc_plan import LossPlan
from pypoplar.popnn.ctc.ctc_tensors import by_sample, data_input, tile_of_pieces
from pypoplar.popnn.ctc.logarithms import NEVER
from pypoplar.popnn.ctc.time_chunks import TimeChunks
from pypoplar.popops.elements.fill import fill
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.tiles_of_elements import place_on
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy, Execute, Repeat, Sequence
from pypoplar.types import FLOAT, UNSIGNED_INT, ElementType


@frozen(eq=False)
class Direction:
    """The states of one direction, [samples, pieces, ...]: `history` those of all steps, `neighbour` what the next piece gives."""

    vertex: str
    state: Tensor
    neighbour: Tensor
    history: Tensor
    count: Tensor


@frozen(eq=False)
class LossProgram:
    """Programs for probabilities [steps, samples, classes], labels [samples, symbols] and lengths [samples]; `prog` is extended."""

    graph: Graph
    loss: LossPlan
    logProbs: Tensor
    labels: Tensor
    dataLengths: Tensor
    labelLengths: Tensor
    blankClass: int
    prog: Sequence
    debug: str

    @property
    def time(self) -> int:
        return self.logProbs.dim(0)

    @property
    def chunks(self) -> TimeChunks:
        return TimeChunks.of(self.graph.getTarget(), self.loss.batchSize, self.time)

    @property
    def tiles(self) -> Int64s:
        """[samples, pieces of a label]."""
        return tile_of_pieces(self.graph, self.loss)

    def loss_alone(self, bound: float) -> Tensor:
        """The losses, FLOATs [samples], 0 where the logarithm of the label's probability is not above `bound`."""
        return self._losses([self._side("Alpha")], bound)[1]

    def loss_and_gradient(self, bound: float, softmax: bool) -> tuple[Tensor, Tensor]:
        """The losses, and the gradients, FLOATs [steps, samples, classes], also 0 there."""
        sides = [self._side("Alpha"), self._side("Beta")]
        total, loss = self._losses(sides, bound)
        return loss, self._gradient(sides, total, bound, softmax)

    def _losses(self, sides: list[Direction], bound: float) -> tuple[Tensor, Tensor]:
        emissions = self._emissions()
        self._start(sides)
        self._loop(sides, emissions)
        return self._total_and_loss(sides[0], bound)

    def _variable(self, type: ElementType, shape: list[int], name: str, tiles: Int64s) -> Tensor:
        """A new tensor, each index of whose first dimensions has a tile."""
        variable = self.graph.addVariable(type, shape, below(self.debug, name))
        place_on(self.graph, variable, np.broadcast_to(tiles.reshape([*tiles.shape, *[1] * (len(shape) - tiles.ndim)]), shape))
        return variable

    def _emissions(self) -> Tensor:
        """[samples, pieces, steps, 1 + width] where pieces are: of the blank, and of each symbol."""
        width, pieces, batch = self.loss.width, self.loss.pieces, self.loss.batchSize
        shape = [batch, pieces, self.time, 1 + width]
        gathered = self.graph.addVariable(FLOAT, shape, below(self.debug, "gathered"))
        steps = self.chunks.tile_of_steps().T[:, None, :, None]
        place_on(self.graph, gathered, np.broadcast_to(steps, shape))
        cs = self.graph.addComputeSet(below(self.debug, "Gather"))
        vertex = templateVertex("popnn::CTCGather", self.logProbs.elementType())
        for begin, end, tiles in self.chunks.alike():
            fields = self._of_chunks(begin, end, tiles.shape[1])
            fields |= {"emissions": self.chunks.cut_pieces(gathered, begin, end), "maxTime": self.time}
            self.graph.add_vertices(cs, vertex, fields, tiles.ravel())
        emissions = self._variable(FLOAT, shape, "emissions", self.tiles)
        self.prog.add(Execute(cs))
        self.prog.add(Copy(gathered, emissions))
        return emissions

    def _of_chunks(self, begin: int, end: int, count: int) -> dict[str, object]:
        """What vertices of chunks have of the probabilities and of the labels."""
        return {
            "logProbs": self.chunks.cut(by_sample(self.logProbs), begin, end),
            "labels": _for_each(self.labels, count),
            "labelLength": _for_each(self.labelLengths, count),
            "dataLength": _for_each(self.dataLengths, count),
            "numClasses": self.loss.numClasses,
            "blankClass": self.blankClass,
            "width": self.loss.width,
        }

    def _side(self, name: str) -> Direction:
        """The variables of a direction."""
        type, shape, tiles = self.loss.partialsType, [self.loss.batchSize, self.loss.pieces], self.tiles
        states = 2 * self.loss.width
        return Direction(
            f"popnn::CTC{name}",
            self._variable(type, [*shape, states], f"state{name}", tiles),
            self._variable(type, [*shape, 1 if name == "Alpha" else 2], f"neighbour{name}", tiles),
            self._variable(type, [*shape, self.time, states], f"history{name}", tiles),
            self._variable(UNSIGNED_INT, shape, f"count{name}", tiles),
        )

    def _start(self, sides: list[Direction]) -> None:
        """Before the first step: the first state forward, the last blank back."""
        cs = self.graph.addComputeSet(below(self.debug, "Start"))
        tiles = self.tiles.ravel()
        vertex = templateVertex("popnn::CTCStart", self.loss.partialsType)
        for place, side in enumerate(sides):
            fields = {"state": side.state.flatten(0, 2), "count": side.count.flatten(), "factor": 2 * place}
            fields |= {"labelLength": _for_each(self.labelLengths, self.loss.pieces), "first": self._first_symbols()}
            self.graph.add_vertices(cs, vertex, fields, tiles)
            fill(self.graph, side.neighbour, self.prog, NEVER, below(self.debug, "Start"))
        self.prog.add(Execute(cs))

    def _first_symbols(self) -> Int64s:
        """For each sample and piece."""
        return np.tile(np.arange(self.loss.pieces) * self.loss.width, self.loss.batchSize)

    def _loop(self, sides: list[Direction], emissions: Tensor) -> None:
        """All steps, forward and back at once: pieces get what their neighbours have, and advance."""
        turn, tiles = Sequence(), self.tiles.ravel()
        cs = self.graph.addComputeSet(below(self.debug, "Step"))
        symbols = self._symbols_of_pieces()
        lengths = self._lengths_of_pieces()
        received = [
            (side.state[:, :-1, -1:], side.neighbour[:, 1:]) if place == 0 else (side.state[:, 1:, :2], side.neighbour[:, :-1])
            for place, side in enumerate(sides)
        ]
        if self.loss.pieces > 1:
            source, target = (concat([pair[end].flatten() for pair in received]) for end in (0, 1))
            turn.add(Copy(source, target))
        for place, side in enumerate(sides):
            fields: dict[str, object] = {
                "emissions": emissions.flatten(2, 4).flatten(0, 2),
                "labels": symbols.slice(place, place + self.loss.width + 1, 2).flatten(0, 2),
                "labelLength": lengths[..., 0].flatten(),
                "dataLength": lengths[..., 1].flatten(),
                "neighbour": side.neighbour.flatten(0, 2),
                "state": side.state.flatten(0, 2),
                "history": side.history.flatten(2, 4).flatten(0, 2),
                "count": side.count.flatten(),
                "first": self._first_symbols(),
            }
            self.graph.add_vertices(cs, templateVertex(side.vertex, self.loss.partialsType), fields, tiles)
        turn.add(Execute(cs))
        self.prog.add(Repeat(self.time, turn, below(self.debug, "Loop")))

    def _symbols_of_pieces(self) -> Tensor:
        """[samples, pieces, 2 + width] where pieces are: their symbols, between those before and behind them."""
        width, pieces, batch = self.loss.width, self.loss.pieces, self.loss.batchSize
        behind = 1 + width * pieces - self.labels.dim(1)
        padded = concat([self.labels[:, :1], self.labels, self.labels[:, -1:].broadcast(behind, 1)], 1)
        whole = [padded[:, start : start + width * pieces].reshape([batch, pieces, width]) for start in (0, 1, 2)]
        symbols = self._variable(UNSIGNED_INT, [batch, pieces, 2 + width], "symbols", self.tiles)
        self.prog.add(Copy(concat([whole[0][..., :1], whole[1], whole[2][..., -1:]], 2), symbols))
        return symbols

    def _lengths_of_pieces(self) -> Tensor:
        """[samples, pieces, 2] where pieces are: the lengths of label and data."""
        shape = [self.loss.batchSize, self.loss.pieces, 2]
        lengths = self._variable(UNSIGNED_INT, shape, "lengths", self.tiles)
        both = concat([self.labelLengths.expand([1]), self.dataLengths.expand([1])], 1)
        self.prog.add(Copy(both.expand([1]).broadcast(self.loss.pieces, 1), lengths))
        return lengths

    def _total_and_loss(self, forward: Direction, bound: float) -> tuple[Tensor, Tensor]:
        tiles = self.tiles[:, 0]
        total, loss = (self._variable(FLOAT, [self.loss.batchSize], name, tiles) for name in ("total", "loss"))
        cs = self.graph.addComputeSet(below(self.debug, "Loss"))
        fields: dict[str, object] = {"state": forward.state.flatten(1, 3), "labelLength": self.labelLengths}
        fields |= {"total": total, "loss": loss, "bound": bound}
        self.graph.add_vertices(cs, templateVertex("popnn::CTCLoss", self.loss.partialsType), fields, tiles)
        self.prog.add(Execute(cs))
        return total, loss

    def _gradient(self, sides: list[Direction], total: Tensor, bound: float, softmax: bool) -> Tensor:
        """FLOATs [steps, samples, classes] in chunks of steps."""
        gradient = data_input(self.graph, FLOAT, self.logProbs.shape(), below(self.debug, "gradient"))
        cs = self.graph.addComputeSet(below(self.debug, "Gradient"))
        vertex = templateVertex("popnn::CTCGradient", self.logProbs.elementType(), self.loss.partialsType)
        for begin, end, tiles in self.chunks.alike():
            count = tiles.shape[1]
            fields = self._of_chunks(begin, end, count)
            fields |= {"alphas": self.chunks.cut_pieces(sides[0].history, begin, end)}
            fields |= {"betas": self.chunks.cut_pieces(sides[1].history, begin, end)}
            fields |= {"total": _for_each(total, count), "bound": bound, "softmax": softmax}
            fields |= {"gradients": self.chunks.cut(by_sample(gradient), begin, end)}
            fields |= {"first": np.tile(begin + self.chunks.length * np.arange(count), self.loss.batchSize)}
            self.graph.add_vertices(cs, vertex, fields, tiles.ravel())
        self.prog.add(Execute(cs))
        return gradient


def _for_each(tensor: Tensor, count: int) -> Tensor:
    """Index i of dimension 0 `count` times, one after the other."""
    rows = tensor.expand([1]).broadcast(count, 1)
    return rows.flatten(0, 2)
