"""The programs of a search: the classes of all steps in order, the loop over steps, and the labels of the best beams."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.popnn.ctc.ctc_tensors import by_sample
from pypoplar.popnn.ctc.search_plan import FIELDS, SearchPlan
from pypoplar.popnn.ctc.time_chunks import TimeChunks, spread
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.tiles_of_elements import place_on
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy, Execute, Repeat, Sequence
from pypoplar.types import FLOAT, UNSIGNED_INT, ElementType


@frozen(eq=False)
class SearchProgram:
    """Programs for probabilities [steps, samples, classes] and lengths [samples]; `prog` is extended. A sample has one tile."""

    graph: Graph
    plan: SearchPlan
    logProbs: Tensor
    dataLengths: Tensor
    blankClass: int
    prog: Sequence
    debug: str

    def best_paths(self, topPaths: int) -> tuple[Tensor, Tensor, Tensor]:
        """Logarithms of probabilities, FLOATs [samples, paths], lengths, and labels [samples, paths, steps]."""
        rows = {"logProbs": by_sample(self.logProbs).flatten(1, 3), "ranked": self._ranked()}
        rows = {name: self._beside(name, tensor) for name, tensor in rows.items()}
        lengths = self._beside("lengths", self.dataLengths)
        beams, tree, turns = self._beams(), self._tree(), self._turns()
        cs = self._set("Start")
        fields = {**beams, **turns, "dataLength": lengths, "maxTime": self._time}
        self.graph.add_vertices(cs, templateVertex("popnn::CTCSearchStart", self.plan.partialsType), fields, self._tiles)
        self.prog.add(Execute(cs))
        turn, lists = Sequence(), self._lists()
        self._candidates({**rows, **beams, **tree, **turns, "dataLength": lengths}, lists, turn)
        self._select({**beams, **tree, **turns, **lists, "dataLength": lengths}, turn)
        self.prog.add(Repeat(self._time, turn, below(self.debug, "Loop")))
        return self._decode({**tree, "totals": beams["totals"], "beams": beams["beams"], "alive": turns["alive"]}, topPaths)

    @property
    def _time(self) -> int:
        return self.logProbs.dim(0)

    @property
    def _tiles(self) -> Int64s:
        """Of each sample."""
        return spread(self.plan.batchSize, self.graph.getTarget().getNumTiles())

    def _variable(self, type: ElementType, shape: list[int], name: str) -> Tensor:
        """A new tensor [samples, ...] that lies where they are."""
        variable = self.graph.addVariable(type, [self.plan.batchSize, *shape], below(self.debug, name))
        place_on(self.graph, variable, np.broadcast_to(self._tiles.reshape([-1, *[1] * len(shape)]), variable.shape()))
        return variable

    def _beside(self, name: str, tensor: Tensor) -> Tensor:
        """A copy of a tensor [samples, ...] where they are."""
        copy = self._variable(tensor.elementType(), tensor.shape()[1:], name)
        self.prog.add(Copy(tensor, copy))
        return copy

    def _set(self, name: str) -> ComputeSet:
        return self.graph.addComputeSet(below(self.debug, name))

    def _ranked(self) -> Tensor:
        """The classes of all steps in order, [samples, steps * ranks], where the probabilities lie."""
        batch, ranks = self.plan.batchSize, self.plan.ranks
        chunks = TimeChunks.of(self.graph.getTarget(), batch, self._time)
        ranked = self.graph.addVariable(UNSIGNED_INT, [batch, self._time, ranks], below(self.debug, "ranked"))
        place_on(self.graph, ranked, np.repeat(chunks.tile_of_steps().T[..., None], ranks, -1))
        cs, vertex = self._set("Rank"), templateVertex("popnn::CTCRank", self.logProbs.elementType())
        for begin, end, tiles in chunks.alike():
            fields = {
                "logProbs": chunks.cut(by_sample(self.logProbs), begin, end),
                "ranked": chunks.cut(ranked, begin, end),
                "numClasses": self.plan.numClasses,
                "blankClass": self.blankClass,
                "count": ranks,
            }
            self.graph.add_vertices(cs, vertex, fields, tiles.ravel())
        self.prog.add(Execute(cs))
        return ranked.flatten(1, 3)

    def _beams(self) -> dict[str, Tensor]:
        width, partials = self.plan.beamwidth, self.plan.partialsType
        probabilities = {name: self._variable(partials, [width], name) for name in ("blanks", "symbols", "totals")}
        return {**probabilities, "beams": self._variable(UNSIGNED_INT, [FIELDS, width], "beams")}

    def _tree(self) -> dict[str, Tensor]:
        """A node for each beam of each step, and the root."""
        nodes = 1 + self._time * self.plan.beamwidth
        return {name: self._variable(UNSIGNED_INT, [nodes], name) for name in ("nodeParent", "nodeSymbol")}

    def _turns(self) -> dict[str, Tensor]:
        return {name: self._variable(UNSIGNED_INT, [], name) for name in ("alive", "count")}

    def _lists(self) -> dict[str, Tensor]:
        """Candidates, [samples, lists, beams], best first, and how many there are."""
        shape = [self.plan.lists, self.plan.beamwidth]
        floats = ("candidateBlanks", "candidateSymbols", "candidateTotals")
        types = dict.fromkeys(floats, FLOAT) | dict.fromkeys(("parents", "added"), UNSIGNED_INT)
        lists = {name: self._variable(type, shape, name) for name, type in types.items()}
        return {**lists, "found": self._variable(UNSIGNED_INT, shape[:1], "found")}

    def _candidates(self, given: dict[str, Tensor], lists: dict[str, Tensor], turn: Sequence) -> None:
        """A vertex for each list of each sample."""
        count, own = self.plan.lists, self.plan.own
        vertex = templateVertex("popnn::CTCCandidates", self.logProbs.elementType(), self.plan.partialsType)
        scratch = {
            "heads": self._variable(FLOAT, [count, 5, own], "heads"),
            "ranks": self._variable(UNSIGNED_INT, [count, own], "ranks"),
            "children": self._variable(UNSIGNED_INT, [count, 2, self.plan.beamwidth], "children"),
        }
        cs = self._set("Candidates")
        for place in range(count):
            fields: dict[str, object] = {**given, "numClasses": self.plan.numClasses, "blankClass": self.blankClass}
            fields |= {name: tensor[:, place] for name, tensor in (scratch | lists).items()}
            self.graph.add_vertices(cs, vertex, fields | {"first": place * own}, self._tiles)
        turn.add(Execute(cs))

    def _select(self, given: dict[str, Tensor], turn: Sequence) -> None:
        cs = self._set("Select")
        scratch = {
            "before": self._variable(UNSIGNED_INT, [FIELDS, self.plan.beamwidth], "before"),
            "taken": self._variable(UNSIGNED_INT, [self.plan.lists], "taken"),
            "scores": self._variable(FLOAT, [self.plan.lists], "scores"),
        }
        self.graph.add_vertices(cs, templateVertex("popnn::CTCSelect", self.plan.partialsType), {**given, **scratch}, self._tiles)
        turn.add(Execute(cs))

    def _decode(self, given: dict[str, Tensor], paths: int) -> tuple[Tensor, Tensor, Tensor]:
        results = {
            "labelProbs": self._variable(FLOAT, [paths], "labelProbs"),
            "labelLengths": self._variable(UNSIGNED_INT, [paths], "labelLengths"),
            "decodedLabels": self._variable(UNSIGNED_INT, [paths, self._time], "decodedLabels"),
        }
        cs = self._set("Decode")
        fields = {**given, **results, "decodedLabels": results["decodedLabels"].flatten(1, 3)}
        self.graph.add_vertices(cs, templateVertex("popnn::CTCDecode", self.plan.partialsType), fields, self._tiles)
        self.prog.add(Execute(cs))
        return results["labelProbs"], results["labelLengths"], results["decodedLabels"]
