"""The forward pass of LSTM layers."""

from __future__ import annotations

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.matmul.mat_mul import matMul
from pypoplar.poplin.planning_cache import PlanningCache, check_cache
from pypoplar.popnn.recurrent.cell_functions import FUNCTIONS
from pypoplar.popnn.recurrent.forward_notes import ForwardNote, note_results
from pypoplar.popnn.recurrent.lstm_operands import check_state, check_weights, kernel
from pypoplar.popnn.recurrent.lstm_params import UNITS, LstmParams, LstmState, LstmWeights, check_params
from pypoplar.popnn.recurrent.recurrent_operands import check_shaped, copied, one_by_one, side_by_side
from pypoplar.popnn.recurrent.recurrent_options import Options, RecurrentOptions
from pypoplar.popnn.recurrent.step_layout import StepLayout
from pypoplar.popnn.recurrent.step_loop import StepLoop
from pypoplar.popops.elements.fill import zero
from pypoplar.popops.elements.map_functions import mapInPlace
from pypoplar.popops.expr import Expr, PlaceHolder, Select
from pypoplar.poputil.arguments import check_call
from pypoplar.poputil.naming import below
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public

KEPT = 6  # matrices of a step: forget gate, input gate, candidate, output gate, activated cell state, cell state before
GATES = 4  # of those, and all that is kept with the option "cellAndTanh"


@public
def lstmFwd(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    params: LstmParams,
    stateInit: LstmState,
    in_: Tensor,
    weights: LstmWeights,
    fwdProg: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The layer's output, its cell state after the last step, and what `lstmBwd` needs of each step; `fwdProg` is extended.

    Of a cell with gates f, i, o and candidate g the state is ``c = f c + i g`` and the output ``o activation(c)``. HALFs are
    rounded after each operation of the cell. With ``varTimeSteps`` outputs behind a sample's last step are zeros, and so is the
    cell state of a sample that ends before others do, unless ``params.preserveFinalState`` is set.

    Parameters
    ----------
    params:
        The layer's parameters.
    stateInit:
        Output and cell state before the first step.
    in_:
        The input, [steps, batch, layerSizes[0]].
    weights:
        Weights and biases.
    fwdProg:
        The Sequence that is extended.
    options:
        As for `createInput`.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    tuple[Tensor, Tensor, Tensor | None]
        The output [steps, batch, layerSizes[1]], or without ``params.outputFullSequence`` that of each sample's own last step,
        [batch, layerSizes[1]] (PopLibs: zeros, where a sample ends early); the cell state [batch, layerSizes[1]]; and what the
        backward pass needs, [steps, matrices, batch, layerSizes[1]], None with the option ``inferenceOnly``.

    Raises
    ------
    PoplibsError
        For parameters that make no layer, and other shapes and types.
    InvalidTileMapping
        If an element of a tensor has no tile.

    Notes
    -----
    One loop computes all steps: a step takes its input, multiplies it together with the output of the step before by all
    weights, in one product, and computes the cell in one compute set. The cell is that of Gers et al., "Learning to Forget:
    Continual Prediction with LSTM", 2000.

    Examples
    --------
    >>> from pypoplar import FLOAT, Graph, IPUModel, poplin, popnn, popops, program
    >>> graph, prog = Graph(IPUModel("tiny").createDevice()), program.Sequence()
    >>> for library in (popops, poplin, popnn):
    ...     library.addCodelets(graph)
    >>> params = popnn.lstm.LstmParams(FLOAT, 2, 5, [3, 4])  # 2 samples, 5 steps, 3 elements in and 4 out
    >>> x, weights = popnn.lstm.createInput(graph, params), popnn.lstm.createWeights(graph, params)
    >>> state = popnn.lstm.createInitialState(graph, params)
    >>> popnn.lstm.zeroInitialState(graph, state, prog)
    >>> output, cell, intermediates = popnn.lstm.lstmFwd(graph, params, state, x, weights, prog)
    >>> output.shape(), cell.shape(), intermediates.shape()
    ([5, 2, 4], [2, 4], [5, 6, 2, 4])
    """
    call = "popnn.lstm.lstmFwd"
    check_call(call, graph, fwdProg, debugContext)
    check_params(call, graph, params)
    check_cache(call, planningCache)
    chosen = RecurrentOptions.lstm(call, options)
    output, cell = check_state(call, graph, params, "stateInit", stateInit)
    sizes = [params.rnn.maxTimeSteps, params.rnn.batchSize, params.rnn.layerSizes[0]]
    check_shaped(call, graph, "in_", in_, params.rnn.dataType, sizes, "[steps, batch, in]")
    check_weights(call, graph, params, weights)
    pass_ = LstmForward(graph, params, chosen, weights, planningCache, below(debugContext, "lstmFwd"))
    result, state, kept = pass_.build(output, cell, in_, fwdProg)
    note_results(graph, ForwardNote(call, pass_.debug, params.settings), result, kept)
    return result, state, kept


@frozen(eq=False)
class LstmForward:
    """A forward pass whose arguments are checked."""

    graph: Graph
    params: LstmParams
    options: RecurrentOptions
    weights: LstmWeights
    cache: PlanningCache | None
    debug: str

    def build(self, output: Tensor, cell: Tensor, input: Tensor, prog: Sequence) -> tuple[Tensor, Tensor, Tensor | None]:
        """Extend `prog` by the pass."""
        graph, rnn, type = self.graph, self.params.rnn, self.params.rnn.dataType
        kept = 0 if self.options.inference_only else GATES if self.options.recomputes else KEPT
        layout, single = (self._layout(multiple) for multiple in (kept + 1, 1))
        step = layout.create(graph, type, 1, below(self.debug, "step"))
        planes = layout.shaped(step)[0]
        state, result = single.shaped(single.create(graph, type, 1, below(self.debug, "cellState")))[0][0], planes[kept]
        prog.add(Copy(cell, state))
        prog.add(Copy(output, result))
        loop, body = StepLoop.of(graph, rnn, False, prog, self.debug), Sequence()
        units = self._units(loop, input, result, prog, body)
        self._cell(loop, state, result, [planes[number] for number in range(kept)], units, body)
        if not kept and not self.params.outputFullSequence:
            loop.run(body, prog)
            return result, state, None
        sequence = layout.create(graph, type, rnn.maxTimeSteps, below(self.debug, "sequence"))
        if rnn.variableTimeSteps():
            zero(graph, sequence, prog, below(self.debug, "zero"))
        loop.put([(sequence, step)], body)
        loop.run(body, prog)
        steps = layout.shaped(sequence)
        if self.params.outputFullSequence:
            return steps.slice(kept, kept + 1, 1).squeeze([1]), state, steps.slice(0, kept, 1) if kept else None
        return result, state, steps

    def _layout(self, multiple: int) -> StepLayout:
        return StepLayout.of(self.graph, multiple, self.params.rnn.batchSize, self.params.rnn.layerSizes[1])

    def _units(self, loop: StepLoop, input: Tensor, before: Tensor, prog: Sequence, body: Sequence) -> list[Tensor]:
        """Tensors [units, batch, size] whose sum goes into the gates of a step, of which biases are one."""
        graph, weights, debug = self.graph, self.weights, self.debug
        assert weights.biases is not None
        assert weights.outputWeights is not None
        layout, batch = self._layout(UNITS), self.params.rnn.batchSize
        spread = weights.biases.expand([0, 1]).broadcast(batch, 2)
        biases = layout.shaped(copied(graph, layout, spread, prog, below(debug, "biases")))[0]
        added, left, right = [biases], before, side_by_side(weights.outputWeights)
        if self.params.doInputWeightCalc and self.options.weighs_first:
            assert weights.inputWeights is not None
            every = input.reshape([-1, input.dim(2)])
            name = below(debug, "weighInput")
            product = matMul(graph, every, side_by_side(weights.inputWeights), prog, name, self.options.forward, self.cache)
            weighed = product.reshape([input.dim(0), batch, UNITS, -1]).dimRoll(2, 1)
            (part,) = loop.take([copied(graph, layout, weighed, prog, name)], body)
            added.append(layout.shaped(part)[0])
        elif self.params.doInputWeightCalc:
            steps = StepLayout.of(graph, 1, batch, input.dim(2))
            (part,) = loop.take([copied(graph, steps, input.expand([1]), prog, below(debug, "input"))], body)
            left, right = concat(steps.shaped(part)[0][0], before, 1), side_by_side(kernel(weights))
        product = matMul(graph, left, right, body, below(debug, "weigh"), self.options.forward, self.cache)
        return [one_by_one(product, UNITS), *added]

    def _cell(self, loop: StepLoop, state: Tensor, result: Tensor, kept: list[Tensor], units: list[Tensor], body: Sequence) -> None:
        """One compute set for the cell: its state and result in place, and what is kept."""
        places = self.params.places
        mask = loop.lasting(body)
        tensors = [state, result, *kept, *(unit[place] for place in places for unit in units)]
        numbers = iter(range(len(kept) + 3, len(tensors) + 1))
        sums: list[Expr] = []
        for _ in places:
            first, *others = (PlaceHolder(next(numbers)) for _ in units)
            sums.append(sum(others, start=first))
        flag = None if mask is None else PlaceHolder(len(tensors) + 1)
        trees = self._trees(sums, flag)
        mapInPlace(
            self.graph, trees[: 2 + len(kept)], tensors if mask is None else [*tensors, mask], body, below(self.debug, "cell")
        )

    def _trees(self, sums: list[Expr], flag: Expr | None) -> list[Expr]:
        """Cell state, result and all that may be kept, of the sums of the units; where a flag is false the sample has ended."""
        gate, other = FUNCTIONS[self.params.recurrentActivation], FUNCTIONS[self.params.activation]
        state, result = PlaceHolder(1), PlaceHolder(2)
        forget, into, candidate, out = (function(total) for function, total in zip((gate, gate, other, gate), sums, strict=True))
        updated = forget * state + into * candidate
        activated = other(updated)
        final, shown = updated, activated * out
        if flag is not None:
            final = Select(updated, state if self.params.preserveFinalState else 0.0, flag)
            shown = Select(shown, 0.0 if self.params.outputFullSequence else result, flag)
        return [final, shown, forget, into, candidate, out, activated, state]
