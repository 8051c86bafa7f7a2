"""What the passes of GRU layers have in common: their layer, checked, and its layouts."""

from __future__ import annotations

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.planning_cache import PlanningCache, check_cache
from pypoplar.popnn.recurrent.gru_operands import GruMatrices
from pypoplar.popnn.recurrent.gru_params import GruParams, GruWeights, check_gru
from pypoplar.popnn.recurrent.recurrent_operands import check_shaped, copied
from pypoplar.popnn.recurrent.recurrent_options import Options, RecurrentOptions
from pypoplar.popnn.recurrent.rnn_params import RnnParams
from pypoplar.popnn.recurrent.step_layout import StepLayout
from pypoplar.poputil.arguments import check_call
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.program import Sequence

KEPT = 4  # matrices of a step: reset gate, update gate, candidate, output before; with resetAfter also the candidate's product


@frozen(eq=False)
class GruLayer:
    """A layer whose parameters, weights and options are checked; `rnn` has the tensor of steps of the call, if it has one."""

    call: str
    graph: Graph
    params: GruParams
    rnn: RnnParams
    matrices: GruMatrices
    options: RecurrentOptions
    cache: PlanningCache | None
    debug: str

    @staticmethod
    def read(  # noqa: PLR0913 (PopLibs' arguments)
        call: str,
        graph: Graph,
        params: GruParams,
        prog: Sequence,
        weights: GruWeights,
        realTimeSteps: Tensor | None,
        debugContext: str | None,
        options: Options,
        cache: PlanningCache | None,
    ) -> GruLayer:
        check_call(call, graph, prog, debugContext)
        check_gru(call, graph, params)
        check_cache(call, cache)
        chosen = RecurrentOptions.gru(call, options)
        rnn = params.rnn
        if realTimeSteps is not None:
            if rnn.varTimeSteps is not None:
                raise PoplibsError(f"{call}: steps are those of params, or realTimeSteps, got both: {realTimeSteps!r}")
            rnn = RnnParams(rnn.dataType, rnn.batchSize, rnn.maxTimeSteps, realTimeSteps, rnn.layerSizes)
            rnn.check_of(call, graph)
        matrices = GruMatrices.of(call, graph, params, weights)
        return GruLayer(call, graph, params, rnn, matrices, chosen, cache, below(debugContext, call.rpartition(".")[2]))

    @property
    def kept(self) -> int:
        """Matrices that a forward pass keeps of a step."""
        return KEPT + self.params.resetAfter

    @property
    def settings(self) -> dict[str, object]:
        """What forward and backward passes have in common, beside sizes."""
        return {
            "cellOrder": tuple(self.params.cellOrder),
            "activation": self.params.activation,
            "recurrentActivation": self.params.recurrentActivation,
        }

    def layout(self, multiple: int) -> StepLayout:
        return StepLayout.of(self.graph, multiple, self.rnn.batchSize, self.rnn.layerSizes[1])

    def matrix(self, name: str) -> Tensor:
        """A new matrix [batch, out]."""
        layout = self.layout(1)
        return layout.shaped(layout.create(self.graph, self.rnn.dataType, 1, below(self.debug, name)))[0][0]

    def check(self, name: str, tensor: object, shape: list[int], what: str) -> Tensor:
        return check_shaped(self.call, self.graph, name, tensor, self.rnn.dataType, shape, what)

    def check_state(self, name: str, state: object) -> Tensor:
        return self.check(name, state, [self.rnn.batchSize, self.rnn.layerSizes[1]], "[batch, out]")

    def check_input(self, name: str, input: object) -> Tensor:
        return self.check(name, input, [self.rnn.maxTimeSteps, self.rnn.batchSize, self.rnn.layerSizes[0]], "[steps, batch, in]")

    @property
    def output_shape(self) -> list[int]:
        shape = [self.rnn.batchSize, self.rnn.layerSizes[1]]
        return [self.rnn.maxTimeSteps, *shape] if self.params.outputFullSequence else shape

    def attention_rows(self, scores: Tensor, name: str, prog: Sequence) -> Tensor:
        """Attention scores [batch, steps] as rows of steps."""
        self.check(name, scores, [self.rnn.batchSize, self.rnn.maxTimeSteps], "[batch, steps]")
        layout = StepLayout.of(self.graph, 1, self.rnn.batchSize, 1)
        return copied(self.graph, layout, scores.transpose().expand([1, 2]), prog, below(self.debug, name))

    def attention_of(self, row: Tensor) -> Tensor:
        """A row of the scores as [batch, 1]."""
        return StepLayout.of(self.graph, 1, self.rnn.batchSize, 1).shaped(row)[0][0]
