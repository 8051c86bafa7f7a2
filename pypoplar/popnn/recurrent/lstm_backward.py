"""The backward pass of LSTM layers, and the gradients of their weights."""

from __future__ import annotations

from typing import overload

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.matmul.mat_mul import matMul
from pypoplar.poplin.matmul.matmul_operands import preArrangeMatMulInputRHS
from pypoplar.poplin.planning_cache import PlanningCache, check_cache
from pypoplar.popnn.recurrent.cell_functions import BACKWARD, FUNCTIONS
from pypoplar.popnn.recurrent.forward_notes import check_notes, note_of, note_results
from pypoplar.popnn.recurrent.lstm_forward import GATES, KEPT
from pypoplar.popnn.recurrent.lstm_operands import check_state, check_weights
from pypoplar.popnn.recurrent.lstm_params import UNITS, LstmParams, LstmState, LstmWeights, check_params
from pypoplar.popnn.recurrent.recurrent_operands import check_shaped, copied, previous_steps, side_by_side
from pypoplar.popnn.recurrent.recurrent_options import Options, RecurrentOptions
from pypoplar.popnn.recurrent.recurrent_products import bias_gradients, input_gradients, weight_products
from pypoplar.popnn.recurrent.step_layout import StepLayout
from pypoplar.popnn.recurrent.step_loop import StepLoop
from pypoplar.popops.elements.element_functions import addInPlace
from pypoplar.popops.elements.fill import zero
from pypoplar.popops.elements.map_functions import mapInPlace
from pypoplar.popops.expr import Expr, PlaceHolder, Select
from pypoplar.poputil.arguments import check_call
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public


@overload
def lstmBwd(
    graph: Graph,
    params: LstmParams,
    prog: Sequence,
    fwdStateInit: LstmState,
    fwdIntermediates: Tensor,
    weights: LstmWeights,
    input: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    lastStepStateGrad: LstmState | None,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[LstmState, Tensor | None, Tensor]: ...
@overload
def lstmBwd(
    graph: Graph,
    params: LstmParams,
    prog: Sequence,
    fwdStateInit: LstmState,
    fwdIntermediates: Tensor,
    weights: LstmWeights,
    input: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    lastCellStateGrad: Tensor | None,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[LstmState, Tensor | None, Tensor]: ...
@overloaded("popnn.lstm.lstmBwd")
def lstmBwd(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    params: LstmParams,
    prog: Sequence,
    fwdStateInit: LstmState,
    fwdIntermediates: Tensor,
    weights: LstmWeights,
    input: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    lastStepStateGrad: LstmState | None = None,
    lastCellStateGrad: Tensor | None = None,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[LstmState, Tensor | None, Tensor]:
    """The gradients of the initial state, of the input, and of what goes into the gates of each step; `prog` is extended.

    Parameters
    ----------
    params:
        The layer's parameters.
    fwdStateInit:
        Output and cell state before the first step, as in `lstmFwd`.
    fwdIntermediates:
        What `lstmFwd` kept.
    weights:
        Weights and biases.
    input:
        The input, as in `lstmFwd`.
    output:
        The output of `lstmFwd`.
    outputGrad:
        The gradient of that, of its shape.
    lastStepStateGrad:
        The gradient of the state after the last step, each part or both None for none.
    lastCellStateGrad:
        That of the cell state alone.
    options:
        Those of `lstmFwd`.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    tuple[LstmState, Tensor | None, Tensor]
        The gradients of the initial state and of the input [steps, batch, layerSizes[0]], None unless
        ``params.calcInputGradients``; and [steps, 4, batch, layerSizes[1]] in ``params.cellOrder``, for `lstmWU`.

    Raises
    ------
    PoplibsError
        For parameters that make no layer, other shapes and types, tensors that are not of one forward pass with these
        parameters, a gradient of the last state with ``varTimeSteps``, and with the option ``inferenceOnly``.

    Notes
    -----
    The gradient of the input is one product after the loop.
    """
    state = lastStepStateGrad if lastCellStateGrad is None else LstmState(None, lastCellStateGrad)
    pass_ = LstmBackward.read(
        "popnn.lstm.lstmBwd", graph, params, prog, fwdStateInit, weights, debugContext, options, planningCache
    )
    pass_.check_kept(fwdIntermediates, input, output)
    return pass_.build(fwdIntermediates, output, outputGrad, state, prog)


@public
def lstmWU(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    params: LstmParams,
    prog: Sequence,
    fwdStateInit: LstmState,
    fwdIntermediates: Tensor,
    bwdIntermediates: Tensor,
    weights: LstmWeights,
    input: Tensor,
    output: Tensor,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> LstmWeights:
    """The gradients of weights and biases, to be added to them as an optimiser says; `prog` is extended.

    Parameters
    ----------
    params:
        The layer's parameters.
    fwdStateInit:
        Output and cell state before the first step, as in `lstmFwd`.
    fwdIntermediates:
        What `lstmFwd` kept.
    bwdIntermediates:
        The last result of `lstmBwd`.
    weights:
        Weights and biases.
    input:
        The input, as in `lstmFwd`.
    output:
        The output of `lstmFwd`.
    options:
        Those of `lstmFwd`.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    LstmWeights
        Of the shapes of `weights`.

    Raises
    ------
    PoplibsError
        For parameters that make no layer, other shapes and types, tensors that are not of one forward pass with these
        parameters, a gradient of the last state with ``varTimeSteps``, and with the option ``inferenceOnly``.

    Notes
    -----
    The gradients of all weights are one product over all steps and samples.
    """
    pass_ = LstmBackward.read("popnn.lstm.lstmWU", graph, params, prog, fwdStateInit, weights, debugContext, options, planningCache)
    pass_.check_kept(fwdIntermediates, input, output)
    pass_.check_slopes(bwdIntermediates, fwdIntermediates)
    return pass_.of_weights(fwdIntermediates, bwdIntermediates, input, output, prog)


@overload
def lstmBwdWithWU(
    graph: Graph,
    params: LstmParams,
    prog: Sequence,
    fwdStateInit: LstmState,
    fwdIntermediates: Tensor,
    weights: LstmWeights,
    input: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    lastStepStateGrad: LstmState | None,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[LstmState, Tensor | None, LstmWeights]: ...
@overload
def lstmBwdWithWU(
    graph: Graph,
    params: LstmParams,
    prog: Sequence,
    fwdStateInit: LstmState,
    fwdIntermediates: Tensor,
    weights: LstmWeights,
    input: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    lastCellStateGrad: Tensor | None,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[LstmState, Tensor | None, LstmWeights]: ...
@overloaded("popnn.lstm.lstmBwdWithWU")
def lstmBwdWithWU(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    params: LstmParams,
    prog: Sequence,
    fwdStateInit: LstmState,
    fwdIntermediates: Tensor,
    weights: LstmWeights,
    input: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    lastStepStateGrad: LstmState | None = None,
    lastCellStateGrad: Tensor | None = None,
    debugContext: str | None = None,
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[LstmState, Tensor | None, LstmWeights]:
    """The gradients of the initial state, of the input, and of the weights: `lstmBwd` and `lstmWU`; `prog` is extended.

    Parameters
    ----------
    params:
        The layer's parameters.
    fwdStateInit:
        Output and cell state before the first step, as in `lstmFwd`.
    fwdIntermediates:
        What `lstmFwd` kept.
    weights:
        Weights and biases.
    input:
        The input, as in `lstmFwd`.
    output:
        The output of `lstmFwd`.
    outputGrad:
        The gradient of that, of its shape.
    lastStepStateGrad:
        The gradient of the state after the last step, each part or both None for none.
    lastCellStateGrad:
        That of the cell state alone.
    options:
        Those of `lstmFwd`.
    planningCache:
        Where the plans of products are kept.

    Returns
    -------
    tuple[LstmState, Tensor | None, LstmWeights]
        Of the initial state, of the input [steps, batch, layerSizes[0]], None unless ``params.calcInputGradients``, and of
        weights and biases.

    Raises
    ------
    PoplibsError
        For parameters that make no layer, other shapes and types, tensors that are not of one forward pass with these
        parameters, a gradient of the last state with ``varTimeSteps``, and with the option ``inferenceOnly``.
    """
    state = lastStepStateGrad if lastCellStateGrad is None else LstmState(None, lastCellStateGrad)
    call = "popnn.lstm.lstmBwdWithWU"
    pass_ = LstmBackward.read(call, graph, params, prog, fwdStateInit, weights, debugContext, options, planningCache)
    pass_.check_kept(fwdIntermediates, input, output)
    gradient, of_input, slopes = pass_.build(fwdIntermediates, output, outputGrad, state, prog)
    return gradient, of_input, pass_.of_weights(fwdIntermediates, slopes, input, output, prog)


@frozen(eq=False)
class LstmBackward:
    """A backward pass whose layer, state and weights are checked."""

    call: str
    graph: Graph
    params: LstmParams
    initial: tuple[Tensor, Tensor]
    weights: LstmWeights
    options: RecurrentOptions
    cache: PlanningCache | None
    debug: str

    @staticmethod
    def read(  # noqa: PLR0913 (PopLibs' arguments)
        call: str,
        graph: Graph,
        params: LstmParams,
        prog: Sequence,
        state: LstmState,
        weights: LstmWeights,
        debugContext: str | None,
        options: Options,
        cache: PlanningCache | None,
    ) -> LstmBackward:
        check_call(call, graph, prog, debugContext)
        check_params(call, graph, params)
        check_cache(call, cache)
        chosen = RecurrentOptions.lstm(call, options)
        if chosen.inference_only:
            raise PoplibsError(f"{call}: with the option 'inferenceOnly' nothing is kept for a backward pass")
        initial = check_state(call, graph, params, "fwdStateInit", state)
        check_weights(call, graph, params, weights)
        debug = below(debugContext, call.rpartition(".")[2])
        return LstmBackward(call, graph, params, initial, weights, chosen, cache, debug)

    @property
    def _kept(self) -> int:
        return GATES if self.options.recomputes else KEPT

    @property
    def _output_shape(self) -> list[int]:
        shape = [self.params.rnn.batchSize, self.params.rnn.layerSizes[1]]
        return [self.params.rnn.maxTimeSteps, *shape] if self.params.outputFullSequence else shape

    def check_kept(self, intermediates: Tensor, input: Tensor, output: Tensor) -> None:
        """`PoplibsError` for what is not of a forward pass with these parameters and options."""
        rnn, matrices = self.params.rnn, self._kept + (not self.params.outputFullSequence)
        shapes = {
            "fwdIntermediates": (intermediates, [rnn.maxTimeSteps, matrices, rnn.batchSize, rnn.layerSizes[1]]),
            "input": (input, [rnn.maxTimeSteps, rnn.batchSize, rnn.layerSizes[0]]),
            "output": (output, self._output_shape),
        }
        words = ("[steps, matrices, batch, out]", "[steps, batch, in]", "what lstmFwd gave")
        for (name, (tensor, shape)), what in zip(shapes.items(), words, strict=True):
            check_shaped(self.call, self.graph, name, tensor, rnn.dataType, shape, what)
        check_notes(self.call, self.graph, self.params.settings, fwdIntermediates=intermediates, output=output)

    def check_slopes(self, intermediates: Tensor, kept: Tensor) -> None:
        """`PoplibsError` for what `lstmBwd` did not give of this layer."""
        rnn = self.params.rnn
        shape = [rnn.maxTimeSteps, UNITS, rnn.batchSize, rnn.layerSizes[1]]
        check_shaped(self.call, self.graph, "bwdIntermediates", intermediates, rnn.dataType, shape, "[steps, units, batch, out]")
        check_notes(self.call, self.graph, {}, fwdIntermediates=kept, bwdIntermediates=intermediates)

    def build(
        self, intermediates: Tensor, output: Tensor, outputGrad: Tensor, last: LstmState | None, prog: Sequence
    ) -> tuple[LstmState, Tensor | None, Tensor]:
        """Extend `prog` by the pass: the gradients of the initial state, of the input, and of the sums that go into the units."""
        graph, rnn, type = self.graph, self.params.rnn, self.params.rnn.dataType
        check_shaped(self.call, graph, "outputGrad", outputGrad, type, self._output_shape, "as output")
        if self.params.calcInputGradients and not self.params.doInputWeightCalc:
            raise PoplibsError(
                f"{self.call}: without doInputWeightCalc the input has no gradient; calcInputGradients is false then"
            )
        grads = self._last(last)
        single, four = self._layout(1), self._layout(UNITS)
        kept = [self._kept_rows(intermediates, output)]
        if self.options.recomputes:
            kept.append(self._computed_again(kept[0], prog))
        of_output, of_cell = (self._matrix(single, name) for name in ("outputGrad", "cellStateGrad"))
        self._begin(of_output, of_cell, outputGrad, grads, prog)
        loop, body = StepLoop.of(graph, rnn, True, prog, self.debug), Sequence()
        taken = list(kept)
        if self.params.outputFullSequence:
            taken.append(copied(graph, single, outputGrad.expand([1]), prog, below(self.debug, "outputGrads")))
        parts = loop.take(taken, body)
        step = four.create(graph, type, 1, below(self.debug, "step"))
        values = list(self._layout(self._kept + 1).shaped(parts[0])[0])[: self._kept]
        values += [matrix for part in parts[1 : len(kept)] for matrix in self._layout(2).shaped(part)[0]]
        arriving = [of_output, *(single.shaped(part)[0][0] for part in parts[len(kept) :])]
        mask = loop.lasting(body)
        self._cell(of_cell, four.shaped(step)[0], values, arriving, mask, body)
        self._step_back(of_output, four.shaped(step)[0], mask, prog, body)
        sequence = four.create(graph, type, rnn.maxTimeSteps, below(self.debug, "sequence"))
        if rnn.variableTimeSteps():
            zero(graph, sequence, prog, below(self.debug, "zero"))
        loop.put([(sequence, step)], body)
        loop.run(body, prog)
        slopes = four.shaped(sequence)
        note_results(graph, note_of(graph, intermediates), slopes)
        return LstmState(of_output, of_cell), self._of_input(slopes, prog), slopes

    def _kept_rows(self, intermediates: Tensor, output: Tensor) -> Tensor:
        """What was kept, as rows: together with the outputs, beside which it lies, each row is one piece of memory."""
        whole = concat(intermediates, output.expand([1]), 1) if self.params.outputFullSequence else intermediates
        return self._layout(self._kept + 1).rows(whole)

    def of_weights(self, intermediates: Tensor, slopes: Tensor, input: Tensor, output: Tensor, prog: Sequence) -> LstmWeights:
        """Extend `prog` by the gradients of weights and biases."""
        outputs = output if self.params.outputFullSequence else intermediates.slice(self._kept, self._kept + 1, 1).squeeze([1])
        before = previous_steps(self.initial[0], outputs)
        read = [input, before] if self.params.doInputWeightCalc else [before]
        debug = below(self.debug, "weights")
        *of_input, of_output = weight_products(self.graph, read, slopes, prog, self.options, self.cache, debug)
        biases = bias_gradients(self.graph, slopes, prog, below(debug, "biases"))
        return LstmWeights(of_input[0] if of_input else None, of_output, biases)

    def _layout(self, multiple: int) -> StepLayout:
        return StepLayout.of(self.graph, multiple, self.params.rnn.batchSize, self.params.rnn.layerSizes[1])

    def _matrix(self, layout: StepLayout, name: str) -> Tensor:
        return layout.shaped(layout.create(self.graph, self.params.rnn.dataType, 1, below(self.debug, name)))[0][0]

    def _last(self, last: LstmState | None) -> tuple[Tensor | None, Tensor | None]:
        """The gradient of the last state, each part or None."""
        if last is None:
            return None, None
        if self.params.rnn.variableTimeSteps():
            raise PoplibsError(f"{self.call}: with varTimeSteps the state after the last step has no gradient, got {last!r}")
        shape, type = [self.params.rnn.batchSize, self.params.rnn.layerSizes[1]], self.params.rnn.dataType
        for name, tensor in (("output", last.output), ("cellState", last.cellState)):
            if tensor is not None:
                check_shaped(self.call, self.graph, f"lastStepStateGrad.{name}", tensor, type, shape, "[batch, out]")
        return last.output, last.cellState

    def _begin(
        self, of_output: Tensor, of_cell: Tensor, outputGrad: Tensor, last: tuple[Tensor | None, Tensor | None], prog: Sequence
    ) -> None:
        """The gradients of the state after the last step."""
        given = [last[0], None if self.params.outputFullSequence else outputGrad]
        for target, sources in ((of_output, given), (of_cell, [last[1]])):
            there = [source for source in sources if source is not None]
            if there:
                prog.add(Copy(there[0], target))
            else:
                zero(self.graph, target, prog, below(self.debug, "zero"))
            for source in there[1:]:
                addInPlace(self.graph, target, source, prog, below(self.debug, "lastOutputGrad"))

    def _cell(
        self, of_cell: Tensor, slopes: Tensor, values: list[Tensor], arriving: list[Tensor], mask: Tensor | None, body: Sequence
    ) -> None:
        """One compute set: the gradient of the cell state, in place, and of what goes into the units, in the order of weights."""
        gate, other = BACKWARD[self.params.recurrentActivation], BACKWARD[self.params.activation]
        tensors = [of_cell, *(slopes[place] for place in self.params.places), *values, *arriving]
        numbers = [PlaceHolder(number) for number in range(1, len(tensors) + 2)]
        forget, into, candidate, out, activated, before = numbers[1 + UNITS : 1 + UNITS + KEPT]
        grad: Expr = sum(numbers[2 + UNITS + KEPT : len(tensors)], start=numbers[1 + UNITS + KEPT])
        if mask is not None:
            grad = Select(grad, 0.0, numbers[len(tensors)])
        state = numbers[0] + other(grad * out, activated)
        final = state * forget if mask is None else Select(state * forget, numbers[0], numbers[len(tensors)])
        if mask is not None:
            tensors.append(mask)
        trees = [
            final,
            gate(state * before, forget),
            gate(state * candidate, into),
            other(state * into, candidate),
            gate(grad * activated, out),
        ]
        mapInPlace(self.graph, trees, tensors, body, below(self.debug, "cell"))

    def _step_back(self, of_output: Tensor, slopes: Tensor, mask: Tensor | None, prog: Sequence, body: Sequence) -> None:
        """The gradient of the output of the step before."""
        assert self.weights.outputWeights is not None
        graph, options = self.graph, {**self.options.of_pass("TRAINING_BWD"), "inputRHSIsPreArranged": True}
        left, right = side_by_side(slopes), side_by_side(self.weights.outputWeights).transpose()
        debug = below(self.debug, "stepBack")
        arranged = preArrangeMatMulInputRHS(graph, left.shape(), right, prog, debug, options, self.cache)
        product = matMul(graph, left, arranged, body, debug, options, self.cache)
        if mask is None:
            body.add(Copy(product, of_output))
            return
        kept = Select(PlaceHolder(2), PlaceHolder(1), PlaceHolder(3))
        mapInPlace(graph, kept, [of_output, product, mask], body, below(debug, "lasting"))

    def _of_input(self, slopes: Tensor, prog: Sequence) -> Tensor | None:
        if not self.params.calcInputGradients:
            return None
        assert self.weights.inputWeights is not None
        debug = below(self.debug, "input")
        return input_gradients(self.graph, slopes, self.weights.inputWeights, prog, self.options, self.cache, debug)

    def _computed_again(self, kept: Tensor, prog: Sequence) -> Tensor:
        """Activated cell state and cell state before, of each step, as rows: from the gates that were kept."""
        graph, rnn, type, debug = self.graph, self.params.rnn, self.params.rnn.dataType, below(self.debug, "again")
        gates, pair, single = self._layout(GATES + 1), self._layout(2), self._layout(1)
        cell, step = self._matrix(single, "again"), pair.create(graph, type, 1, debug)
        sequence = pair.create(graph, type, rnn.maxTimeSteps, debug)
        prog.add(Copy(self.initial[1], cell))
        if rnn.variableTimeSteps():
            zero(graph, sequence, prog, below(debug, "zero"))
        loop, body = StepLoop.of(graph, rnn, False, prog, debug), Sequence()
        (part,) = loop.take([kept], body)
        forget, into, candidate, *_ = gates.shaped(part)[0]
        state, _, _, f, i, g = (PlaceHolder(number) for number in range(1, 7))
        updated = f * state + i * g
        trees = [updated, FUNCTIONS[self.params.activation](updated), state]
        mapInPlace(graph, trees, [cell, *pair.shaped(step)[0], forget, into, candidate], body, below(debug, "cell"))
        loop.put([(sequence, step)], body)
        loop.run(body, prog)
        return sequence
